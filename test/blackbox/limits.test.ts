/** How much one caller, or many at once, can have of the server. */

import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { moment, ranMs } from "../support/clock.ts";
import { type Connection, Cut, standStill } from "../support/connection.ts";
import { expectWithin, long, makeKeys, onBoth, type Server, siteOf } from "../support/server.ts";

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
  /**
   * Of 200 callers, or on a slow machine, some wait for longer than a request may take, or read too slowly and are cut
   * off: they ask again. @returns the connection that is open then
   */
  const served = async (connection: Connection): Promise<Connection> => {
    try {
      while ((await readWhole(connection)) === 503);
      return connection;
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      connection.close();
      return served(await server.connect());
    }
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
        await moment(100);
      }
      connection.close();
    })();
    const all = await connections(callers);
    const reading = async (connection: Connection) => {
      let open = connection;
      do open = await served(open);
      while (waits.length < 4);
      open.close();
    };
    await Promise.all([
      Promise.all(all.map(reading)).finally(() => {
        done = true;
      }),
      watching,
    ]);
    // Generous, for the clients are part of this measure: they take the same processors.
    expectWithin(Math.max(...waits), 2000);
  });

  test("who go away at whatever moment leave nothing of the budget taken", async () => {
    for (const delayMs of long ? [0, 5, 20, 60, 150, 400] : [0, 20, 150]) {
      const all = await connections(callers);
      for (const connection of all) connection.ignore(path, headers());
      await moment(delayMs);
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
    let open = await server.connect();
    for (let times = 0; times < 3; times++) open = await served(open);
    open.close();
  });

  test("who never read are cut off while others wait, and no one can take what came for an answer", async () => {
    const asked = () => standStill(server.origin, path, { ...headers(), Connection: "close" });
    const idle = await Promise.all(Array.from({ length: 4 }, asked));
    (await served(await server.connect())).close(); // it waits first
    let cut = 0;
    for (const goOn of idle) {
      const received = (await goOn()).toString("latin1");
      expect(received.slice(0, 15)).toBe("HTTP/1.1 200 OK");
      if (received.endsWith("0\r\n\r\n")) expect(received.length).toBeGreaterThan(whole.length);
      else cut += 1;
    }
    expect(cut).toBeGreaterThan(0);
    await server.says('"event":"cut"');
    await expectBudgetFree();
  });

  if (process.platform === "linux") {
    test("never made the process larger than 600 MiB", () => expect(server.memory().peak / mebibyte).toBeLessThan(600));
  }
});
