import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ask, startReaders } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { fromSource, makeNewer } from "../support/from-source.ts";
import { runBinary } from "../support/keyhole.ts";
import { freePort } from "../support/port.ts";
import { connectTo } from "../support/postgres.ts";
import { startProgram } from "../support/program.ts";
import { furnish, type Key, makeSite, onBoth, type Server, type Site } from "../support/server.ts";

/* What docs/upgrade.md says, done with the built program and a newer one that has a migration more. */

const root = join(import.meta.dir, "../..");
const variables = "/projects/web/variables?environment=production";
const ofNewer = "keyhole: This database is of a newer Keyhole: use that version, or a newer one.\n";
const later = "ALTER TABLE organizations ADD COLUMN later text; --> statement-breakpoint CREATE TABLE later (id text)";
/** Never ends. */
const endless = {
  sqlite: "INSERT INTO later WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
  postgres: "SELECT pg_sleep(3600)",
};

onBoth("an upgrade", (dialect) => {
  let newer: string;
  let failing: string;
  let slow: string;
  let site: Site;
  let key: Key;
  let server: Server;
  const uses = ["serve", "people", "notary"] as const;
  const roles = Object.fromEntries(uses.map((use) => [use, `keyhole_${use}_${randomBytes(6).toString("hex")}`]));
  const owner = `keyhole_owner_${randomBytes(6).toString("hex")}`;

  beforeAll(async () => {
    newer = makeNewer(later);
    failing = makeNewer(`${later}; --> statement-breakpoint ALTER TABLE nowhere ADD COLUMN later text`);
    slow = makeNewer(`${later}; --> statement-breakpoint ${endless[dialect]}`);
    site = await furnish(await makeSite(dialect), { production: { TOKEN: "kept" } });
    key = await site.key("--org", "acme");
    server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    for (const use of dialect === "postgres" ? uses : []) {
      await site.sql(`create role ${roles[use]} login password 'of-a-test'`);
      await site.json(["db", "grants", "--for", use, "--role", roles[use] as string, "--apply"]);
    }
  });
  afterAll(async () => {
    if (dialect === "postgres") {
      const all = [owner, ...Object.values(roles)].map((role) => `'${role}'`).join();
      for (const { role } of await site.sql(`select rolname as role from pg_roles where rolname in (${all})`)) {
        for (const what of ["reassign owned by ROLE to current_user", "drop owned by ROLE", "drop role ROLE"]) {
          await site.sql(what.replace("ROLE", String(role)));
        }
      }
    }
    for (const one of Object.values(waiting)) await one.stop("SIGKILL");
    await site?.remove();
    for (const folder of [newer, failing, slow]) rmSync(folder, { recursive: true, force: true });
  });

  const run = (folder: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const program = fromSource(folder);
    return runBinary(args, { ...program, cwd: site.folder, env: { ...program.env, ...site.env, ...env } });
  };
  const backupWords = dialect === "postgres" ? "" : " with `keyhole backup FILE`";
  const ownerWords = dialect === "postgres" ? ", as the owner of its tables" : "";
  const ofOlder = `This database is of an older Keyhole: make a backup${backupWords}, then run \`keyhole db upgrade\`${ownerWords}.`;
  const upgraded =
    /The database was upgraded from version (\d+) to version (\d+), for Keyhole \S+\. Older programs cannot open it any more\.\n/;
  const failed = async () => ((await (await fetch(`${server.ops()}/readyz`)).json()) as { failed: string[] }).failed;
  const answers = async () => (await server.get(variables, key.key)).json<{ variables: object[] }>().variables;
  const unavailable = { error: expect.any(String), code: "unavailable" };
  /** Servers and a notary of the newer version, started before the upgrade. */
  const waiting = {} as Record<"one" | "many" | "onSocket" | "notary", Awaited<ReturnType<typeof startWaiting>>>;
  const startWaiting = async (command: "serve" | "notary", args: readonly string[] = []) => {
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    Object.assign(url, { username: roles[command], password: "of-a-test" });
    const program = fromSource(newer);
    const ops = freePort();
    const env = { ...program.env, ...site.env, DATABASE_URL: url.href, KEYHOLE_OPS_PORT: String(ops) };
    const whole = [...program.as, program.program, command, ...args];
    const running = startProgram(whole, { cwd: site.folder, env });
    await running.says(`Waits for the upgrade. ${ofOlder}`);
    return { ...running, ops: `http://127.0.0.1:${ops}`, port: args[1] };
  };
  const kept = [expect.objectContaining({ key: "TOKEN", value: "kept" })];
  const goesOn = async () => {
    expect(await failed()).toEqual([]);
    expect(await answers()).toEqual(kept);
    expect(await site.keyhole(["org", "list"])).toMatchObject({ exitCode: 0 });
  };

  test("is done by no other command of the newer version: each ends with 6 and what to run", async () => {
    const words = ["org list", "org create other", "db grants", "audit verify", "dashboard"];
    const commands = words.map((one) => one.split(" "));
    for (const args of commands) {
      const refused = { exitCode: 6, stdout: "", stderr: `keyhole: ${ofOlder}\n` };
      expect([args, await run(newer, args)]).toEqual([args, refused]);
    }
    const { exitCode, stderr } = await run(newer, ["org", "list", "--json"]);
    expect([exitCode, JSON.parse(stderr)]).toEqual([6, { error: ofOlder, code: "unavailable", requestId: null }]);
    expect(await run(newer, ["version"])).toMatchObject({ exitCode: 0 });
    await goesOn();
  });

  test("that fails changes nothing, and the older version goes on", async () => {
    if (dialect === "sqlite") {
      expect(await run(newer, ["db", "upgrade"])).toEqual({
        exitCode: 6,
        stdout: "",
        stderr: `keyhole: An older Keyhole serves ${site.data}: stop it, and upgrade again.\n`,
      });
      await goesOn();
      await server.stop();
    }
    expect(await run(failing, ["db", "upgrade"])).toMatchObject({ exitCode: 1, stdout: "" });
    if (dialect === "sqlite") server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    await goesOn();
  });

  if (dialect === "postgres") {
    test("needs the owner of the tables", async () => {
      const url = new URL(site.env["DATABASE_URL"] ?? "");
      Object.assign(url, { username: roles["serve"], password: "of-a-test" });
      const of = { DATABASE_URL: url.href };
      const ran = await run(newer, ["db", "upgrade"], of);
      expect(ran).toMatchObject({ exitCode: 3, stdout: "", stderr: expect.stringContaining("lacks a right") });
      await goesOn();
    });

    test("is waited for by servers and notaries of the newer version, which answer 503 and say why", async () => {
      const socket = join(site.folder, "api.sock");
      waiting.one = await startWaiting("serve", ["--port", String(freePort())]);
      waiting.many = await startWaiting("serve", ["--port", String(freePort()), "--workers", "2"]);
      waiting.onSocket = await startWaiting("serve", ["--host", `unix:${socket}`]);
      waiting.notary = await startWaiting("notary");
      for (const { ops, pid } of Object.values(waiting)) {
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
        for (const secret of ["KEYHOLE_ROOT_KEY", "DATABASE_URL"]) expect(environment).toContain(`\0${secret}=***`);
        const ready = await fetch(`${ops}/readyz`);
        expect(ready.status).toBe(503);
        const said = { status: "not_ready", failed: ["migrations"], reason: ofOlder, checks: { migrations: false } };
        expect(await ready.json()).toEqual(said);
        expect((await fetch(`${ops}/livez`)).status).toBe(200);
        expect(await (await fetch(`${ops}/metrics`)).text()).toContain("\nkeyhole_ready 0\n");
      }
      for (const path of [variables, "/projects", "/absent"]) {
        for (const { port } of [waiting.one, waiting.many]) {
          const { status, headers, json } = await ask(`http://127.0.0.1:${port}/api/v1${path}`, {
            Authorization: `Bearer ${key.key}`,
          });
          expect([status, headers.get("connection"), json()]).toEqual([503, "close", unavailable]);
        }
        const overSocket = await fetch(`http://localhost/api/v1${path}`, { unix: socket });
        expect([overSocket.status, await overSocket.json()]).toEqual([503, unavailable]);
      }
      await waiting.one.says('"event":"request"');
      const events = waiting.one
        .said()
        .stdout.split("\n")
        .map((line) => JSON.parse(line || "{}"));
      const notReady = { event: "readiness", ready: false, failed: ["migrations"], reason: ofOlder };
      expect(events).toContainEqual(expect.objectContaining(notReady));
      expect(events).toContainEqual(expect.objectContaining({ event: "request", status: 503, reason: ofOlder }));
      await goesOn();
      expect(await waiting.onSocket.stop()).toBe(0);
      expect(existsSync(socket)).toBe(false);
    });

    test("changes nothing while somebody keeps a table locked", async () => {
      const sql = connectTo(site.env["DATABASE_URL"] ?? "");
      const { promise: done, resolve: end } = Promise.withResolvers<void>();
      const { promise: locked, resolve: isLocked } = Promise.withResolvers<void>();
      const holder = sql.begin(async (held) => {
        await held`lock table organizations in access share mode`;
        isLocked();
        await done;
      });
      await locked;
      const ran = await run(newer, ["db", "upgrade"]);
      end();
      await holder;
      await sql.end();
      expect(ran).toMatchObject({ exitCode: 6, stdout: "", stderr: expect.stringContaining("keeps a table locked") });
      await goesOn();
    });
  } else {
    test("can be rehearsed with a backup, which either version makes", async () => {
      expect(await run(newer, ["backup", "before.db"])).toMatchObject({ exitCode: 0 });
      for (const backup of ["before.db", "older.db"]) {
        if (backup === "older.db") await site.keyhole(["backup", backup]);
        const verified = await run(newer, ["backup", "verify", backup]);
        expect([verified.exitCode, upgraded.test(verified.stderr)]).toEqual([0, false]);
      }
      await goesOn();
    });
  }

  test("that is killed changes nothing", async () => {
    if (dialect === "sqlite") await server.stop();
    const program = fromSource(slow);
    const command = [...program.as, program.program, "db", "upgrade"];
    const child = Bun.spawn(command, { cwd: site.folder, env: { ...program.env, ...site.env }, stderr: "ignore" });
    await eventually(async () => {
      if (dialect === "postgres") {
        const sleeps = "query ~ '^\\s*SELECT pg_sleep' and state = 'active'";
        const [asleep] = await site.sql(`select from pg_stat_activity where ${sleeps}`);
        return asleep !== undefined;
      }
      using file = new SqliteFile(join(site.data, "keyhole.db"));
      try {
        file.run("BEGIN IMMEDIATE");
        file.run("ROLLBACK");
        return false;
      } catch {
        return true; // the upgrade writes
      }
    });
    child.kill("SIGKILL");
    await child.exited;
    if (dialect === "sqlite") server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    await eventually(async () => (await server.get(variables, key.key)).status === 200);
    await goesOn();
  });

  test("is done once by two at a time; a server on PostgreSQL answers on, and says that it is not ready", async () => {
    if (dialect === "sqlite") await server.stop();
    else {
      await site.sql(`revoke select on audit_exceptions from ${roles["serve"]}`);
      await site.sql(`create role ${owner}`);
      await site.sql(`grant create on schema public to ${owner}`);
      await site.sql(`do $$ declare one record; begin
        for one in select oid::regclass as name from pg_class where relkind in ('r', 'p', 'v')
          and relnamespace = 'public'::regnamespace
        loop execute format('alter table %s owner to ${owner}', one.name); end loop; end $$`);
    }
    const other = dialect === "postgres" ? await site.key("--org", "acme") : key;
    const readers =
      dialect === "postgres"
        ? startReaders(
            1,
            () => server.origin,
            () => ({ path: variables, ...other }),
            200,
          )
        : undefined;
    const ran = await Promise.all([1, 2].map(() => run(newer, ["db", "upgrade", "--json"])));
    expect(ran).toEqual(ran.map(({ stdout }) => ({ exitCode: 0, stdout, stderr: "" })));
    const [first, second] = ran
      .map(({ stdout }) => JSON.parse(stdout) as { from: number; to: number; roles: object[] })
      .sort((a, b) => a.from - b.from);
    expect([first, second]).toEqual([
      { from: expect.any(Number), to: (first?.from ?? 0) + 1, roles: first?.roles ?? [] },
      { from: first?.to ?? 0, to: first?.to ?? 0, roles: first?.roles ?? [] },
    ]);
    const again = await run(newer, ["db", "upgrade"]);
    expect(again.exitCode).toBe(0);
    expect(again.stderr).toContain(`is up to date: version ${first?.to}`);
    expect(await run(newer, ["org", "list"])).toMatchObject({ exitCode: 0, stderr: "" });
    if (dialect === "sqlite") return;
    const statuses = ((await readers?.stop()) ?? []).map(({ status }) => status);
    expect([...new Set(statuses)].filter((status) => status !== 429)).toEqual([200]);
    expect(await failed()).toEqual(["migrations"]);
    expect(await answers()).toEqual(kept);
    expect(await server.stop()).toBe(0);
    for (const { port } of [waiting.one, waiting.many]) {
      const read = () => ask(`http://127.0.0.1:${port}/api/v1${variables}`, { Authorization: `Bearer ${key.key}` });
      await eventually(async () => (await read().catch(() => undefined))?.status === 200);
      expect((await read()).json<{ variables: object[] }>().variables).toEqual(kept);
    }
    for (const one of [waiting.one, waiting.many, waiting.notary]) {
      await eventually(async () => (await fetch(`${one.ops}/readyz`).catch(() => undefined))?.status === 200);
      expect(await one.stop()).toBe(0);
    }
    // What is new belongs to the owner of the rest, and roles have the rights on it.
    const [made] = await site.sql("select pg_get_userbyid(relowner) as owner from pg_class where relname = 'later'");
    expect(made).toEqual({ owner });
    const asJson = expect.arrayContaining(uses.map((use) => ({ role: roles[use], use })));
    expect(first?.roles).toEqual(asJson);
    const right = `has_table_privilege('${roles["serve"]}', 'audit_exceptions', 'SELECT')`;
    const [may] = await site.sql(`select ${right} as may`);
    expect(may).toEqual({ may: true });
  });

  test("has no way back but the backup", async () => {
    expect(readFileSync(join(root, "docs/upgrade.md"), "utf8")).toContain(`    ${ofNewer}`);
    for (const args of [
      ["org", "list"],
      ["db", "upgrade"],
      ["serve", "--port", "0"],
    ]) {
      expect(await site.keyhole(args)).toEqual({ exitCode: 6, stdout: "", stderr: ofNewer });
    }
    if (dialect === "postgres") return;
    expect(await site.keyhole(["restore", "before.db", "--force", "--yes"])).toMatchObject({ exitCode: 0 });
    server = await site.serve();
    expect(await answers()).toEqual(kept);
    expect(await server.stop()).toBe(0);
  });

  if (dialect === "sqlite") {
    test("is done by `serve` and `restore` of the embedded database, too, which say so", async () => {
      server = await site.serve({ ...fromSource(newer) });
      expect(server.said().stderr).toMatch(upgraded);
      expect(await answers()).toEqual(kept);
      expect(await server.stop()).toBe(0);
      const restored = await run(newer, ["restore", "before.db", "--force", "--yes"]);
      expect(restored).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(upgraded) });
      server = await site.serve({ ...fromSource(newer) });
      expect(server.said().stderr).not.toMatch(upgraded);
      expect(await answers()).toEqual(kept);
      expect(await server.stop()).toBe(0);
    });
  }
});
