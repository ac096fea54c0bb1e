/** The embedded database's file goes away: under a running server, or before one starts. */
import { Database as SqliteFile } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Segment } from "../../src/audit/segment.ts";
import { sqliteJournal } from "../../src/store/journal.ts";
import { eventually, keyOf, type Server, siteOf } from "../support/server.ts";

const values = "/projects/web/variables?environment=staging";
const metadata = `${values}&metadata_only=true`;

const site = siteOf("sqlite", { staging: { TOKEN: "canary" } });
const key = keyOf(site, "--org", "acme");
let database: string;
let aside: string;
beforeAll(() => {
  database = join(site.data, "keyhole.db");
  aside = join(site.folder, "aside.db");
});

describe("under a running server, a database file", () => {
  let server: Server;
  const statuses = () => Promise.all([values, metadata].map(async (path) => (await server.get(path, key.key)).status));
  const expectRefused = async () => {
    await Bun.sleep(1000); // the promise: within a second
    expect(await statuses()).toEqual([503, 503]);
    const answer = await server.get(values, key.key);
    expect(answer.json()).toMatchObject({ code: "unavailable" });
    expect(answer.body.toString()).not.toContain("canary");
  };

  test("that was moved away is a 503 within a second, and served again once it is back", async () => {
    server = await site.serve();
    expect(await statuses()).toEqual([200, 200]);
    renameSync(database, aside);
    await expectRefused();
    renameSync(aside, database);
    await eventually(async () => (await statuses()).join() === "200,200");
    expect(await server.stop()).toBe(0);
  });

  test("that was replaced by a copy is a 503 within a second", async () => {
    server = await site.serve();
    expect(await statuses()).toEqual([200, 200]);
    await site.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    copyFileSync(database, aside);
    renameSync(aside, database);
    await expectRefused();
    await server.kill();
    for (const side of ["-wal", "-shm"]) rmSync(`${database}${side}`, { force: true });
  });

  test("whose -wal was deleted is a 503 within a second: what others write would not be seen", async () => {
    server = await site.serve();
    expect(await statuses()).toEqual([200, 200]);
    rmSync(`${database}-wal`);
    await expectRefused();
    await server.kill();
    rmSync(`${database}-shm`, { force: true });
  });

  test("that was moved away takes no entries, from the very next segment on", async () => {
    const journal = sqliteJournal(database);
    const watcher = new SqliteFile(database);
    try {
      expect(await journal.append(segment(1), false)).toEqual({ outcome: "durable" });
      renameSync(database, aside);
      expect(await journal.append(segment(2), false)).toMatchObject({ outcome: "refused" });
      renameSync(aside, database);
      expect(await journal.append(segment(3), false)).toEqual({ outcome: "durable" });
      const found = watcher.query("select first_seq as seq from audit_segments where lane = 'lane' order by 1").all();
      expect(found).toEqual([{ seq: 1 }, { seq: 3 }]);
    } finally {
      await journal.close();
      watcher.close();
    }
  });
});

describe("a data folder that has a root key", () => {
  const start = (...args: readonly string[]) => site.keyhole(args);
  const expectNothingBegun = async () => {
    for (const command of [
      ["serve", "--port", "0"],
      ["org", "list"],
      ["org", "create", "other"],
    ]) {
      const { exitCode, stdout, stderr } = await start(...command);
      expect([command, exitCode, stdout]).toEqual([command, 1, ""]);
      expect(stderr).toContain(
        `restore a backup with \`keyhole restore FILE\`, or move ${join(site.data, "root.key")}`,
      );
    }
  };
  const backup = () => join(site.folder, "backup");
  beforeAll(async () => {
    expect((await start("backup", backup())).exitCode).toBe(0);
    for (const side of ["", "-wal", "-shm"]) rmSync(`${database}${side}`, { force: true });
  });

  test("and no database is not begun with an empty one", async () => {
    await expectNothingBegun();
    expect(existsSync(database)).toBe(false);
  });

  test("and an empty database is not begun either", async () => {
    writeFileSync(database, "");
    await expectNothingBegun();
    rmSync(database);
  });

  test("and no database takes a backup, and serves it", async () => {
    for (const side of ["-wal", "-shm"]) rmSync(`${database}${side}`, { force: true });
    expect(await start("restore", backup(), "--yes")).toMatchObject({ exitCode: 0 });
    const server = await site.serve();
    expect((await server.get(values, key.key)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  test("that was removed begins with an empty database", async () => {
    for (const name of ["keyhole.db", "keyhole.db-wal", "keyhole.db-shm", "root.key"]) {
      rmSync(join(site.data, name), { force: true });
    }
    expect(await site.json(["org", "create", "first"])).toMatchObject({ slug: "first" });
    expect(await site.json(["org", "list"])).toHaveLength(1);
  });
});

function segment(seq: number): Segment {
  return { lane: "lane", firstSeq: seq, lastSeq: seq, at: 1, texts: "[]", entries: "{}", mac: Buffer.alloc(32) };
}
