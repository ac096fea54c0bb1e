/** How much one caller, or many at once, can have of the server. */

import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ranMs } from "../support/clock.ts";
import {
  type Connection,
  eventually,
  long,
  makeKeys,
  onBoth,
  type Server,
  siteOf,
  standStill,
} from "../support/server.ts";

setDefaultTimeout(long ? 300_000 : 60_000);
const mebibyte = 1024 * 1024;

onBoth("callers of 8 MiB files", (dialect) => {
  /** Four times as many as the memory for large reads serves at once. */
  const callers = long ? 200 : 12;
  const path = "/api/v1/files?project=web&environment=staging";
  const content = randomBytes(8 * mebibyte);
  const site = siteOf(dialect, {});
  let server: Server;
  const keys: string[] = [];
  let requests = 0;
  /** Of one key after the other, so that none uses up its own bucket. */
  const headers = () => ({ Authorization: `Bearer ${keys[requests++ % keys.length]}` });
  beforeAll(async () => {
    const file = join(site.folder, "content");
    writeFileSync(file, content);
    await site.json(["file", "put", "acme/web", file, "--path", "large.bin", "--env", "staging"]);
    const made = await makeKeys(site, long ? 12 : 4, "projects,variables,files");
    keys.push(...made.map(({ key }) => key));
    server = await site.serve();
    const connection = await server.connect();
    const answer = await connection.get(path, headers());
    connection.close();
    const { files } = answer.json<{ files: { content: string }[] }>();
    expect(Buffer.from(files[0]?.content ?? "", "base64").equals(content)).toBe(true);
    whole = answer.body;
  });

  const connections = (count: number) => Promise.all(Array.from({ length: count }, () => server.connect()));
  /** The one right answer; comparing with it costs these tests less of the processor than parsing each would. */
  let whole: Buffer;
  const readWhole = async (connection: Connection): Promise<number> => {
    const { status, body } = await connection.get(path, headers());
    if (status === 200) expect(body.equals(whole)).toBe(true);
    else expect(status).toBe(503);
    return status;
  };
  const expectWhole = async (connection: Connection) => expect(await readWhole(connection)).toBe(200);
  /** Of 200 callers, or on a slow machine, some wait for longer than a request may take: they ask again. */
  const served = async (connection: Connection) => {
    while ((await readWhole(connection)) === 503);
  };
  /** More than the whole budget at once: eight answers of which not one is read to its end. */
  const expectBudgetFree = async () => {
    const eight = await connections(8);
    await Promise.all(eight.map((connection) => connection.taste(path, 1000, headers())));
    for (const connection of eight) connection.close();
  };

  test("who all read get it all, and metadata reads answer meanwhile", async () => {
    const waits: number[] = [];
    let done = false;
    const watching = (async () => {
      const connection = await server.connect();
      while (!done) {
        const askedAt = ranMs();
        expect((await connection.get("/api/v1/organization", headers())).status).toBe(200);
        waits.push(ranMs() - askedAt);
        await Bun.sleep(100);
      }
      connection.close();
    })();
    const all = await connections(callers);
    const reading = async (connection: Connection) => {
      do await served(connection);
      while (waits.length < 4);
    };
    await Promise.all([
      Promise.all(all.map(reading)).finally(() => {
        done = true;
      }),
      watching,
    ]);
    for (const connection of all) connection.close();
    // Generous, for the clients are part of this measure: they take the same processors.
    expect(Math.max(...waits)).toBeLessThan(2000);
  });

  test("who go away at whatever moment leave nothing of the budget taken", async () => {
    for (const delayMs of long ? [0, 5, 20, 60, 150, 400] : [0, 20, 150]) {
      const all = await connections(callers);
      for (const connection of all) connection.ignore(path, headers());
      await Bun.sleep(delayMs); // not awaiting anything: the moment itself is what is tried
      for (const connection of all) connection.close();
    }
    const halfWay = await connections(callers);
    await Promise.all(
      halfWay.map(async (connection) => {
        await connection.taste(path, mebibyte, headers());
        connection.close();
      }),
    );
    await expectBudgetFree();
    const [connection] = (await connections(1)) as [Connection];
    for (let times = 0; times < 3; times++) await expectWhole(connection);
    connection.close();
  });

  test("who never read hold up nobody's metadata, and once they are gone the others are served", async () => {
    const idle = await connections(callers / 2);
    for (const connection of idle) connection.ignore(path, headers());
    const [watcher, ...readers] = (await connections(5)) as [Connection, ...Connection[]];
    const reading = Promise.all(readers.map(served));
    for (let times = 0; times < 20; times++) {
      const askedAt = ranMs();
      expect((await watcher.get("/api/v1/organization", headers())).status).toBe(200);
      expect(ranMs() - askedAt).toBeLessThan(1000);
    }
    for (const connection of idle) connection.close();
    await reading;
    for (const connection of [watcher, ...readers]) connection.close();
    await expectBudgetFree();
  });

  test("who never read are cut off while others wait, and no one can take what came for an answer", async () => {
    const asked = () => standStill(server.origin, path, { ...headers(), Connection: "close" });
    const idle = await Promise.all(Array.from({ length: 4 }, asked));
    const [connection] = (await connections(1)) as [Connection];
    await served(connection); // it waits first
    connection.close();
    let cut = 0;
    for (const goOn of idle) {
      const received = (await goOn()).toString("latin1");
      expect(received.slice(0, 15)).toBe("HTTP/1.1 200 OK");
      if (received.endsWith("0\r\n\r\n")) expect(received.length).toBeGreaterThan(whole.length);
      else cut += 1;
    }
    expect(cut).toBeGreaterThan(0);
    await eventually(() => server.said().stdout.includes('"event":"cut"'));
    await expectBudgetFree();
  });

  if (process.platform === "linux") {
    test("never made the process larger than 600 MiB", () => {
      expect(server.memory().peak / mebibyte).toBeLessThan(600);
    });
  }
});

onBoth("16 callers of 8 MiB of variables", (dialect) => {
  const path = "/projects/web/variables?environment=staging";
  const site = siteOf(dialect, { production: { SMALL: "value" } });
  let server: Server;
  const values = new Map<string, string>();
  const keys: string[] = [];
  beforeAll(async () => {
    for (let i = 0; i < 125; i++) {
      values.set(`N${String(i).padStart(4, "0")}`, randomBytes(48 * 1024).toString("base64"));
    }
    const file = join(site.folder, "large.env");
    writeFileSync(file, [...values].map(([name, value]) => `${name}=${value}\n`).join(""));
    await site.json(["var", "import", "acme/web", "staging", file]);
    while (keys.length < 8) keys.push((await site.key("--org", "acme")).key);
    server = await site.serve();
  });

  /** Reads what is large, and keeps nothing of it. */
  const read = async (query: string, key: string): Promise<{ status: number; code?: string; bytes: number }> => {
    const { status, body, json } = await server.get(`${path}${query}`, key);
    return { status, bytes: body.length, ...(status !== 200 && json<{ code: string }>()) };
  };

  test("get all of it or a 503, and small reads go on meanwhile", async () => {
    const whole = await eventually(async () => {
      const answer = await server.get(path, keys[0] as string);
      return answer.status === 200 ? answer : undefined;
    }, 30_000);
    const { variables } = whole.json<{ variables: { key: string; value: string }[] }>();
    expect(variables.length).toBe(125);
    expect(variables.filter(({ key, value }) => values.get(key) !== value)).toEqual([]);

    let done = false;
    const statuses = new Set<number>();
    const watching = (async () => {
      while (!done) {
        const small = "/projects/web/variables?environment=production";
        statuses.add((await server.get(small, keys[7] as string)).status);
        await Bun.sleep(100);
      }
    })();
    const queries = ["", "&prefix=N", "&format=env", ""];
    const results = await Promise.all(
      Array.from({ length: 16 }, (_, i) => read(queries[i % 4] as string, keys[i % 7] as string)),
    );
    done = true;
    await watching;
    // On a machine so busy that the server stands still for 5 s, small reads may get a 503, too.
    expect([...statuses].filter((status) => status !== 503)).toEqual([200]);
    const envBytes = [...values].reduce((sum, [name, value]) => sum + name.length + value.length + 2, 0);
    for (const [i, { status, code, bytes }] of results.entries()) {
      if (status === 200) expect(bytes).toBe(queries[i % 4] === "&format=env" ? envBytes : whole.body.length);
      else expect({ status, code }).toEqual({ status: 503, code: "unavailable" });
    }
    expect(results.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
  });

  test("that do not read their answers are cut off while others wait, and their memory is given back", async () => {
    const url = `/api/v1${path}`;
    const idle = await Promise.all(
      [1, 2, 3].map(async (i) => {
        const connection = await server.connect();
        connection.ignore(url, { Authorization: `Bearer ${keys[i]}` });
        return connection;
      }),
    );
    const giveUpAt = performance.now() + 60_000;
    while ((await read("", keys[0] as string)).status !== 200) expect(performance.now()).toBeLessThan(giveUpAt);
    for (const connection of idle) connection.close();
    expect((await read("", keys[0] as string)).status).toBe(200);
  });

  if (process.platform === "linux") {
    test("never made the process larger than 1 GiB", () => {
      expect(server.memory().peak / mebibyte).toBeLessThan(1024);
    });
  }
});
