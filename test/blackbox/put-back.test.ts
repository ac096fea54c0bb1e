/** A database that somebody exchanges for an older copy of it: who notices, and when, and how it is accepted. */

import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { encodeWitness, witnessOf } from "../../src/record/note.ts";
import { moment } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";
import { runBinary } from "../support/keyhole.ts";
import { startNotary } from "../support/notary.ts";
import { freePort } from "../support/port.ts";
import { createDatabase, postgresUrl, type Replica, runOn } from "../support/postgres.ts";
import { withReplicas } from "../support/replicas.ts";
import { furnish, type Key, keyOf, makeSite, onBoth, type Server, type Site, siteOf } from "../support/server.ts";
import { startWitness } from "../support/witness.ts";

setDefaultTimeout(120_000);

const values = "/projects/web/variables?environment=staging";
// A running server looks every 10 s.
const isRefused = (server: Server) =>
  server.said().stdout.includes('"event":"database_put_back","reason":"The database was put back to an earlier state');
const isAccepted = (server: Server) => server.said().stdout.includes('"event":"database_accepted"');

onBoth("a database that was put back", (dialect) => {
  const site = siteOf(dialect, { staging: { TOKEN: "canary-of-the-put-back" } });
  const revoked = keyOf(site, "--org", "acme");
  const good = keyOf(site, "--org", "acme");
  let file: string;
  let seen: { KEYHOLE_CHECKPOINT_FILE: string };
  let seenAtCopy: string;
  let copy: Copy;
  let server: Server;

  /** Makes a change, and runs a notary until it has signed it. */
  const signMore = async (env: Readonly<Record<string, string>> = {}) => {
    await site.json(["var", "set", "acme/web", "staging", "OTHER"], crypto.randomUUID());
    const notary = await startNotary(site, env);
    const behind = `select 1 from audit_heads where seq > (
      select coalesce(max(last_seq), 0) from audit_leaves where lane = 'commands')`;
    await eventually(async () => (await site.sql(behind)).length === 0);
    expect(await notary.stop()).toBe(0);
    return notary.said();
  };
  /** Puts the database back to before what the file has seen. */
  const putBackBehindFile = async () => {
    if (readFileSync(file, "utf8") === seenAtCopy) await signMore(seen);
    await copy.putBack();
  };
  const answers = async (key: Key) => (await server.get(values, key.key)).status;
  const overSsh = (env: Readonly<Record<string, string>>) =>
    runBinary(["door", "--person", "ana"], {
      cwd: site.folder,
      env: { ...site.env, ...env, SSH_ORIGINAL_COMMAND: "var list acme/web staging" },
    });

  const verifying = (words: readonly string[], env: Readonly<Record<string, string>>) =>
    runBinary(["audit", "verify", ...words], { cwd: site.folder, env: { ...site.env, ...env } });
  /** What `audit verify` needs for both of its ways. */
  const bothWays = async () => {
    const { keys } = (await site.json(["audit", "key"])) as { keys: string[] };
    return [[], ["--public", "--key", keys.join()]];
  };

  beforeAll(async () => {
    mkdirSync(join(site.folder, "seen"));
    file = join(site.folder, "seen/checkpoint");
    seen = { KEYHOLE_CHECKPOINT_FILE: file };
    await site.json(["person", "add", "ana"]);
    await site.json(["person", "grant", "ana", "see", "--all-projects", "--all-environments"]);
    await signMore(seen);
    seenAtCopy = readFileSync(file, "utf8");
    copy = await takeCopy(site);
    await site.keyhole(["key", "revoke", revoked.id]);
    await signMore();
  });
  afterAll(() => copy?.drop());

  test("is compared by audit verify, which leaves the file to the account that it belongs to", async () => {
    const before = readFileSync(file, "utf8");
    const key = encodeWitness(witnessOf("witness.example", new Uint8Array(32).fill(8)));
    for (const way of await bothWays()) {
      const ran = await verifying(way, seen);
      expect(ran.exitCode).toBe(0);
      expect(`${ran.stdout}${ran.stderr}`).toContain(`Compared with the file ${file}: `);
      expect(readFileSync(file, "utf8")).toBe(before);
      const uncompared = await verifying([...way, "--json"], { ...seen, KEYHOLE_WITNESS: `http://127.0.0.1:1#${key}` });
      expect(uncompared.exitCode).toBe(1);
      expect(JSON.parse(uncompared.stderr)).toMatchObject({ code: "audit_not_compared" });
      expect(JSON.parse(uncompared.stdout)).toMatchObject({
        verified: false,
        compared: [{ with: `the file ${file}` }, { with: "the witness witness.example", reason: expect.any(String) }],
      });
    }
  });

  test("under a running server is refused within 60 s, by what the server has seen", async () => {
    server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    expect([await answers(revoked), await answers(good)]).toEqual([401, 200]);
    await copy.putBack();
    await eventually(() => isRefused(server));
    for (const key of [good, revoked, { id: "", key: "no key" }]) expect(await answers(key)).toBe(503);
    expect((await server.get("/organization", good.key)).json()).toEqual({
      error: "The service cannot answer now; nothing is returned.",
      code: "unavailable",
    });
    const ready = await fetch(`${server.ops()}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([503, { failed: ["history"] }]);
    expect(await server.stop()).toBe(0);
  });

  test("under a stopped server is refused from the first request on, if this host has a file", async () => {
    // The file is of the moment when the copy was taken, so it shows nothing.
    server = await site.serve({ env: seen });
    expect(await answers(good)).toBe(200);
    expect(await server.stop()).toBe(0);
    await signMore(seen);
    const newest = readFileSync(file, "utf8");
    await copy.putBack();
    server = await site.serve({ env: seen });
    expect([await answers(good), await answers(revoked)]).toEqual([503, 503]);
    expect(await server.stop()).toBe(0);
    const notary = await startNotary(site, seen);
    await notary.says('"event":"audit_flaw"');
    expect(await notary.stop()).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(newest);
    // Without the file nothing on this host knows better: the README says so.
    server = await site.serve();
    expect(await answers(revoked)).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  test("is refused over SSH, with a sentence and exit code 6; an operator's commands go on", async () => {
    await putBackBehindFile();
    const refused = await overSsh(seen);
    expect(refused).toMatchObject({ exitCode: 6, stdout: "" });
    expect(refused.stderr).toContain("The database was put back to an earlier state");
    expect(refused.stderr).toContain("ask an operator");
    expect((await site.keyhole(["key", "list"])).exitCode).toBe(0);
  });

  test("does not verify where something has seen more, though each entry is in order", async () => {
    await putBackBehindFile();
    for (const way of await bothWays()) {
      expect((await verifying(way, {})).exitCode).toBe(0);
      const refused = await verifying(way, seen);
      expect(refused).toMatchObject({ exitCode: way.length === 0 ? 6 : 1, stdout: "" });
      expect(refused.stderr).toStartWith("keyhole: The database was put back to an earlier state");
    }
    const asked = await runBinary(["whoami"], { cwd: site.folder, env: { ...site.env, ...seen } });
    expect(asked).toMatchObject({ exitCode: 6, stdout: "" });
    expect(asked.stderr).toStartWith("keyhole: The database was put back to an earlier state");
    expect((await runBinary(["whoami"], { cwd: site.folder, env: site.env })).exitCode).toBe(0);
  });

  test("is served again once an operator accepts it, by servers that run and by those that start", async () => {
    await putBackBehindFile();
    server = await site.serve({ env: seen });
    expect(await answers(good)).toBe(503);
    const asked = await site.keyhole(["audit", "accept-restore"]);
    expect(asked).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("so it needs --yes") });
    // The command need not have the file: the database tells it.
    expect((await site.keyhole(["audit", "accept-restore", "--yes"])).exitCode).toBe(0);
    await eventually(() => isAccepted(server));
    expect(await answers(good)).toBe(200);
    await eventually(() => readFileSync(file, "utf8").includes("\naudit.accept-restore "));
    expect(await server.stop()).toBe(0);
    expect((await overSsh(seen)).exitCode).toBe(0);
    expect((await site.json(["audit", "list", "--action", "audit.accept-restore"])) as unknown[]).toHaveLength(1);
    expect((await site.keyhole(["audit", "verify"])).exitCode).toBe(0);
    // The same copy once more is another loss.
    await signMore(seen);
    await copy.putBack();
    server = await site.serve({ env: seen });
    expect(await answers(good)).toBe(503);
    expect(await server.stop()).toBe(0);
    expect((await site.keyhole(["audit", "accept-restore", "--yes"])).exitCode).toBe(0);
  });

  test("under a stopped server is refused from the first request on by a witness, without a file", async () => {
    const { keys } = (await site.json(["audit", "key"])) as { keys: string[] };
    const folder = join(site.folder, "witness");
    const port = freePort();
    const witness = await startWitness({ folder, logs: keys, name: "witness.example", port });
    const KEYHOLE_WITNESS = witness.setting;
    // The copy is put back over a history that was accepted since, so this one is copied anew.
    await copy.drop();
    copy = await takeCopy(site);
    await signMore();
    const notary = await startNotary(site, { KEYHOLE_WITNESS });
    await notary.says('"event":"cosigned"');
    expect(await notary.stop()).toBe(0);
    await copy.putBack();
    const empty = { KEYHOLE_CHECKPOINT_FILE: join(site.folder, "seen/of-nothing") };
    for (const env of [{ KEYHOLE_WITNESS }, { KEYHOLE_WITNESS, ...empty }]) {
      server = await site.serve({ env });
      expect([await answers(good), await answers(revoked)]).toEqual([503, 503]);
      expect(await server.stop()).toBe(0);
      expect(server.said().stdout).toContain("and the witness witness.example has seen ");
      expect(await overSsh(env)).toMatchObject({ exitCode: 6, stderr: expect.not.stringContaining("witness.example") });
    }
    for (const way of await bothWays()) {
      const refused = await verifying(way, { KEYHOLE_WITNESS });
      expect(refused.exitCode).toBe(way.length === 0 ? 6 : 1);
      expect(refused.stderr).toContain("and the witness witness.example");
    }
    expect((await overSsh({})).exitCode).toBe(0);
    const late = await startNotary(site, { KEYHOLE_WITNESS });
    await late.says('"event":"audit_flaw"');
    expect(late.said()).not.toContain("signed_checkpoint");
    expect(await late.stop()).toBe(0);
    // A witness that is away refuses nothing, and is named.
    await witness.stop();
    server = await site.serve({ env: { KEYHOLE_WITNESS, KEYHOLE_OPS_PORT: "0" } });
    expect(await answers(good)).toBe(200);
    const ready = await fetch(`${server.ops()}/readyz`);
    const away = { "witness.example": expect.stringMatching(/^it /) };
    expect([ready.status, await ready.json()]).toMatchObject([200, { witnessesAway: away }]);
    expect(await server.stop()).toBe(0);
    expect((await overSsh({ KEYHOLE_WITNESS })).exitCode).toBe(0);
    // It never forgets, and does not refuse what was accepted.
    const again = await startWitness({ folder, logs: keys, port });
    server = await site.serve({ env: { KEYHOLE_WITNESS } });
    expect(await answers(good)).toBe(503);
    // On this host: without its witness, the command would take an acceptance of a moment ago for this one.
    const options = { cwd: site.folder, env: { ...site.env, KEYHOLE_WITNESS } };
    expect((await runBinary(["audit", "accept-restore", "--yes"], options)).exitCode).toBe(0);
    await eventually(() => isAccepted(server));
    expect(await answers(good)).toBe(200);
    expect(await server.stop()).toBe(0);
    server = await site.serve({ env: { KEYHOLE_WITNESS } });
    expect(await answers(good)).toBe(200);
    expect(await server.stop()).toBe(0);
    await again.stop();
  });

  test("the file is there whole whenever a process that writes it is killed", async () => {
    const notes = async () => (await site.sql("select note from audit_checkpoints_signed")).map(({ note }) => note);
    rmSync(file);
    for (let round = 0; round < 8; round++) {
      await site.json(["var", "set", "acme/web", "staging", `N${round}`], "x");
      const notary = await startNotary(site, seen);
      await moment(round * 12);
      await notary.stop("SIGKILL");
      if (existsSync(file)) expect(await notes()).toContain(readFileSync(file, "utf8"));
    }
    expect(await signMore(seen)).not.toContain("audit_flaw");
    const [newest] = await site.sql("select note from audit_checkpoints_signed order by size desc limit 1");
    expect(readFileSync(file, "utf8")).toBe(newest?.["note"] as string);
    for (const name of readdirSync(join(site.folder, "seen")))
      expect(name).toMatch(/^(checkpoint|\.keyhole-checkpoint-\w+\.part)$/);
  });

  test("a setting that cannot be a file stops each process that would write it, with its name", async () => {
    const env = { ...site.env, KEYHOLE_CHECKPOINT_FILE: join(site.folder, "nowhere/checkpoint") };
    const ran = await runBinary(["serve", "--port", "0"], { cwd: site.folder, env });
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr).toContain("KEYHOLE_CHECKPOINT_FILE: ");
  });
});

/** A whole database as it was at one moment. */
type Copy = { readonly putBack: () => Promise<void>; readonly drop: () => Promise<unknown> };

/** Copies the site's database. Nobody may be connected to it. */
async function takeCopy(site: Site): Promise<Copy> {
  if (site.dialect === "sqlite") {
    const path = join(site.folder, "copy.db");
    await site.json(["backup", path]);
    const putBack = async () => putBackRows(join(site.data, "keyhole.db"), path);
    return { putBack, drop: async () => rmSync(path, { force: true }) };
  }
  const nameOf = (url = "") => new URL(url).pathname.slice(1);
  const own = nameOf(site.env["DATABASE_URL"]);
  const server = postgresUrl ?? "";
  const copy = await createDatabase(server, own);
  return {
    putBack: async () => {
      await runOn(server, `alter database ${own} with allow_connections false`);
      await runOn(server, `drop database ${own} with (force)`);
      await runOn(server, `create database ${own} template ${nameOf(copy.url)} strategy file_copy`);
    },
    drop: copy.drop,
  };
}

/** Puts every row of a copy back, in the file that a server may have open. */
function putBackRows(path: string, copy: string): void {
  const scratch = `${copy}.attached`;
  copyFileSync(copy, scratch);
  const database = new SqliteFile(path);
  database.run("PRAGMA busy_timeout = 5000");
  database.run("PRAGMA foreign_keys = OFF");
  database.query("ATTACH ? AS earlier").run(scratch);
  database.run("BEGIN IMMEDIATE");
  const tables = database.query("select name from main.sqlite_schema where type = 'table'").all() as { name: string }[];
  for (const { name } of tables) {
    database.run(`delete from main."${name}"`);
    database.run(`insert into main."${name}" select * from earlier."${name}"`);
  }
  database.run("COMMIT");
  database.close();
}

await withReplicas("a failover", (a, { urlOf, run, received, cutOff, failOver }) => {
  let b: Replica;
  let c: Replica;
  let site: Site;
  let server: Server;
  let key: Key;
  let seen: { KEYHOLE_CHECKPOINT_FILE: string };
  const read = async () => (await server.get(values, key.key)).status;
  /** Signs all that there is. @param on - the primary */
  const signAll = async (on: Replica) => {
    const notary = await startNotary(site, seen);
    const entries = (table: string) => `(select sum(last_seq - first_seq + 1) from ${table})::int`;
    const counts = `select ${entries("audit_leaves")} a, ${entries("audit_segments")} b`;
    await eventually(async () => (await run(on, counts)).every(({ a, b }) => a === b));
    expect(await notary.stop()).toBe(0);
  };
  beforeAll(async () => {
    b = await a.startStandby();
    c = await b.startStandby();
    site = await makeSite("postgres", urlOf(a, b, c));
    seen = { KEYHOLE_CHECKPOINT_FILE: join(site.folder, "checkpoint") };
    await furnish(site, { staging: { TOKEN: "kept" } });
    key = await site.key("--org", "acme");
    await signAll(a);
    server = await site.serve({ env: seen });
  });
  afterAll(async () => {
    await site?.remove();
    await c?.stop();
    await b?.stop();
    await a.stop();
  });

  test("that lost nothing asks nothing: the next answers are 200, and the tree goes on", async () => {
    expect(await read()).toBe(200);
    await signAll(a);
    await received(a);
    await failOver(a, b);
    await eventually(async () => (await read()) === 200);
    await signAll(b);
    // The server looks again, and its file has what the new primary's notary signed.
    const [head] = await run(b, "select note from audit_checkpoints_signed order by size desc limit 1");
    expect(await server.stop()).toBe(0);
    expect(server.said().stdout).not.toContain("database_put_back");
    server = await site.serve({ env: seen });
    expect(await read()).toBe(200);
    expect(readFileSync(seen.KEYHOLE_CHECKPOINT_FILE, "utf8")).toBe(head?.["note"] as string);
    expect(server.said().stdout).not.toContain("database_put_back");
  });

  test("that lost what was signed is refused, until an operator accepts it", async () => {
    await received(b);
    await cutOff(c, b);
    await site.json(["var", "set", "web", "staging", "TOKEN"], "lost");
    await signAll(b);
    expect(await server.stop()).toBe(0);
    server = await site.serve({ env: seen });
    expect(await read()).toBe(200);
    await failOver(b, c);
    await eventually(() => isRefused(server));
    expect(await read()).toBe(503);
    expect((await site.keyhole(["audit", "accept-restore", "--yes"])).exitCode).toBe(0);
    await eventually(() => isAccepted(server));
    await eventually(async () => (await read()) === 200);
    await signAll(c);
    expect(await read()).toBe(200);
  });
});
