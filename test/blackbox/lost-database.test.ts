/** The database file of a running server goes away. Before a start: transcripts/data-folder.txt. */
import { Database as SqliteFile } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Segment } from "../../src/record/segment.ts";
import { sqliteJournal } from "../../src/record/store/journal.ts";
import { ranMs } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";
import { binary } from "../support/keyhole.ts";
import { blockOf } from "../support/markdown.ts";
import { run } from "../support/program.ts";
import { expectWithin, keyOf, type Server, siteOf } from "../support/server.ts";

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

test("under a running server, a root key that is lost leaves time to fetch everything, as the page says", async () => {
  writeFileSync(join(site.folder, "app.conf"), "a file");
  await site.json(["file", "put", "acme/web", "app.conf", "--path", "app.conf", "--env", "staging"]);
  const { key: both } = await site.key("--org", "acme", "--resource", "variables,files");
  const server = await site.serve();
  const [rootKey, lost] = [join(site.data, "root.key"), join(site.folder, "lost.key")];
  renameSync(rootKey, lost);
  try {
    expect(await site.keyhole(["key", "list"])).toMatchObject({ exitCode: 2, stdout: "" });
    const block = blockOf("docs/root-key.md", "sh", "keyhole pull")
      .replaceAll("production", "staging")
      .replace("API_", "");
    const env = { PATH: process.env["PATH"], HOME: site.folder, KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: both };
    const script = `keyhole() { '${binary}' "$@"; }\n${block}`;
    expect(await run(["bash", "-c", script], { cwd: site.folder, env })).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(site.folder, "web-staging.env"), "utf8")).toBe("TOKEN=canary\n");
    expect(readFileSync(join(site.folder, "web-staging/app.conf"), "utf8")).toBe("a file");
  } finally {
    renameSync(lost, rootKey);
    await server.stop();
  }
}, 60_000);

describe("under a running server, a database file", () => {
  let server: Server;
  const statuses = () => Promise.all([values, metadata].map(async (path) => (await server.get(path, key.key)).status));
  const expectRefused = async () => {
    const beganAt = ranMs();
    await eventually(async () => (await server.get("/organization", key.key)).status === 503);
    expectWithin(ranMs() - beganAt, 1500); // a second, and what one request takes
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
    await server.stop("SIGKILL");
    for (const side of ["-wal", "-shm"]) rmSync(`${database}${side}`, { force: true });
  });

  test("whose -wal was deleted is a 503 within a second: what others write would not be seen", async () => {
    server = await site.serve();
    expect(await statuses()).toEqual([200, 200]);
    rmSync(`${database}-wal`);
    await expectRefused();
    await server.stop("SIGKILL");
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

function segment(seq: number): Segment {
  return { lane: "lane", firstSeq: seq, lastSeq: seq, at: 1, texts: "[]", entries: "{}", mac: Buffer.alloc(32) };
}
