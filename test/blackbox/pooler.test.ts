import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startupSettings } from "../../src/store/postgres.ts";
import { earlierRootKey, loadDump, releaseFile } from "../releases/release.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { runBinary } from "../support/keyhole.ts";
import { startNotary } from "../support/notary.ts";
import { freePort } from "../support/port.ts";
import { clusterOwner, createDatabase, postgresUrl, runOn, type TestDatabase } from "../support/postgres.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { makeSite, onPostgres, type Site, siteOf } from "../support/server.ts";

/** The settings that a session begins with; a pooler can be told to drop them. */
const settings = Object.keys(startupSettings).join(", ");

/** What `alter role … set` may give a session, each as it is not by default. */
const turned: Readonly<Record<string, string>> = {
  array_nulls: "off",
  bytea_output: "escape",
  client_encoding: "LATIN1",
  datestyle: "SQL, DMY",
  default_transaction_deferrable: "on",
  default_transaction_isolation: "serializable",
  default_transaction_read_only: "on",
  extra_float_digits: "-15",
  idle_in_transaction_session_timeout: "1ms",
  idle_session_timeout: "20ms",
  intervalstyle: "sql_standard",
  lock_timeout: "1ms",
  quote_all_identifiers: "on",
  row_security: "off",
  search_path: "pg_catalog",
  standard_conforming_strings: "off",
  statement_timeout: "1ms",
  synchronous_commit: "off",
  timezone: "Asia/Kathmandu",
  transform_null_equals: "on",
};

/** Databases that are there before, each with a variable that it holds. */
const before = [
  { of: "now" },
  {
    of: "0.2.0",
    dump: "0.2.0/keyhole.sql",
    rootKey: releaseFile("0.2.0/root-key").trim(),
    holds: ["acme/shop", "production", "STRIPE_KEY"],
    value: "made-up-stripe-key",
  },
  {
    of: "a build before 0.3.0",
    dump: "f841f4c.postgres.sql",
    rootKey: earlierRootKey,
    holds: ["acme/web", "production", "TOKEN"],
    value: "second",
  },
] as const;

/** The version of a program of PostgreSQL; 0 if it is not installed. */
function majorOf(name: string): number {
  const program = findProgram(name);
  if (program === undefined) return 0;
  return Number(/\d+/.exec(Bun.spawnSync([program, "--version"]).stdout.toString())?.[0]);
}

/** Backs up a database and restores it in an empty one, as docs/backup.md says. @returns what went wrong */
function copyOf(from: string, to: string): string {
  const [dump, restore] = ["pg_dump", "pg_restore"].map((name) => findProgram(name) ?? name);
  const unchanged = "--no-owner --no-privileges";
  const pipe = `"$0" --format=custom --encoding=UTF8 ${unchanged} "$2" | "$1" --exit-on-error ${unchanged} --dbname="$3"`;
  // No program of PostgreSQL itself gets far without these. What a text means stays turned.
  const off = ["default_transaction_read_only", ...Object.keys(turned).filter((name) => name.endsWith("_timeout"))];
  const env = { PATH: process.env["PATH"] ?? "", PGOPTIONS: off.map((name) => `-c ${name}=0`).join(" ") };
  return Bun.spawnSync(["sh", "-c", pipe, dump ?? "", restore ?? "", from, to], { env }).stderr.toString();
}

onPostgres("a role whose sessions have other settings", () => {
  const role = `keyhole_turned_${randomBytes(4).toString("hex")}`;
  const run = (statement: string) => runOn(postgresUrl as string, statement);
  const sites: Site[] = [];
  const databases: TestDatabase[] = [];
  /** A site whose database is opened as this role. */
  const siteOn = async (template?: string, rootKey?: string, dump?: string) => {
    const database = await createDatabase(postgresUrl as string, template);
    databases.push(database);
    if (dump !== undefined) await loadDump(database.url, dump);
    const own = Object.assign(new URL(database.url), { username: role, password: "of-a-test" });
    sites.push(await makeSite("postgres", own.href, rootKey === undefined ? {} : { KEYHOLE_ROOT_KEY: rootKey }));
    return sites.at(-1) as Site;
  };
  beforeAll(async () => {
    await run(`create role ${role} login superuser password 'of-a-test'`);
    const [since17] = await run("select from pg_settings where name = 'transaction_timeout'");
    const all = { ...turned, ...(since17 && { transaction_timeout: "1s" }) };
    for (const [name, value] of Object.entries(all)) await run(`alter role ${role} set ${name} = '${value}'`);
  });
  afterAll(async () => {
    for (const site of sites) await site.remove();
    for (const database of databases) await database.drop();
    await run(`drop role ${role}`);
  });

  test.each(before)(
    "keeps nobody from all that people and machines do on a database of $of, nor on a copy of it",
    async (old) => {
      const value = "canary \\ ' \n\u00e9\u{1f511}";
      const had = "dump" in old ? old : undefined;
      const site = await siteOn(undefined, had?.rootKey, had?.dump);
      if (had) {
        expect(await site.keyhole(["var", "get", ...had.holds])).toMatchObject({ exitCode: 6, stdout: "" });
        await site.json(["db", "upgrade"]);
        expect(await site.json(["var", "get", ...had.holds])).toMatchObject({ value: had.value });
      }
      await site.json(["org", "create", "new"]);
      await site.json(["project", "create", "new/web"]);
      const words = ["var", "import", "new/web", "production", "-", "--format", "json"];
      await site.json(words, JSON.stringify({ TOKEN: value }));
      const put = ["file", "put", "new/web", "-", "--env", "production", "--path", "a.bin"];
      await site.json(put, Buffer.from([0, 92, 255, 39, 120]));
      const { key } = await site.key("--org", "new");
      const server = await site.serve();
      const notary = await startNotary(site);
      const read = async () => (await server.get("/projects/web/variables?environment=production", key)).json();
      for (let times = 0; times < 3; times++) {
        expect(await read()).toMatchObject({ variables: [{ key: "TOKEN", value }] });
        await Bun.sleep(30); // longer than `idle_session_timeout`
      }
      const env = { ...site.env, KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key };
      const program = ["run", "-p", "web", "-e", "production", "--", "printenv", "TOKEN"];
      expect(await runBinary(program, { cwd: site.folder, env })).toMatchObject({ exitCode: 0, stdout: `${value}\n` });
      await notary.says("signed_checkpoint");
      expect([await server.stop(), await notary.stop()]).toEqual([0, 0]);
      const wrong = /"event":"(?:defect|connection_lost|notary_failed|audit_flaw)"/;
      expect(server.said().stdout + notary.said()).not.toMatch(wrong);
      expect((await site.keyhole(["audit", "list"])).stdout).toContain("variables.read");
      expect(await site.keyhole(["audit", "verify"])).toMatchObject({ exitCode: 0 });
      const { DATABASE_URL: url = "", KEYHOLE_ROOT_KEY } = site.env;
      // An older pg_dump refuses the server. Then the copy is one of its files.
      const [version] = await run("select current_setting('server_version_num')::integer / 10000 as major");
      const canDump = majorOf("pg_dump") >= Number(version?.["major"]);
      const restored = await siteOn(canDump ? undefined : new URL(url).pathname.slice(1), KEYHOLE_ROOT_KEY);
      if (canDump) expect(copyOf(url, restored.env["DATABASE_URL"] ?? "")).toBe("");
      expect(await restored.json(["var", "get", "new/web", "production", "TOKEN"])).toMatchObject({ value });
    },
  );

  test("is refused by the name of the setting if it turns foreign keys off", async () => {
    await run(`alter role ${role} set session_replication_role = replica`);
    const site = await siteOn();
    for (const args of [["org", "list"], ["serve", "--port", "0"], ["notary"]]) {
      const ran = await site.keyhole(args);
      expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
      expect(ran.stderr).toContain("have session_replication_role = replica, and Keyhole needs origin");
    }
  });
});

onPostgres("PgBouncer before the database", () => {
  withPrograms(["pgbouncer"], "is not served through", (pgbouncer) => {
    const site = siteOf("postgres");
    const folder = newFolder();
    const poolers: Bun.Subprocess[] = [];
    beforeAll(() => site.json(["org", "create", "acme"]));
    afterAll(() => {
      for (const pooler of poolers) pooler.kill("SIGKILL");
    });

    test.each([
      ["that refuses the settings of a session", ""],
      ["that drops them", `ignore_startup_parameters = ${settings}`],
    ])("one %s", async (_, line) => {
      const server = new URL(site.env["DATABASE_URL"] ?? "");
      const { hostname, username, password, pathname } = server;
      const port = freePort();
      const file = join(folder, `${port}.ini`);
      const target = `host=${hostname} port=${server.port} user=${username} password=${password}`;
      const lines = [
        `[databases]\n${pathname.slice(1)} = ${target}`,
        `[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\n${line}\n`,
      ];
      writeFileSync(file, lines.join("\n"));
      // PgBouncer refuses to run as root.
      chmodSync(folder, 0o755);
      const options = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
      poolers.push(Bun.spawn([pgbouncer ?? "", file], { ...options, ...clusterOwner()?.ids }));
      server.port = String(port);
      const ran = await eventually(async () => {
        const env = { ...site.env, DATABASE_URL: server.href };
        const tried = await runBinary(["serve", "--port", "0"], { cwd: site.folder, env });
        return tried.exitCode === 6 ? undefined : tried; // PgBouncer does not listen yet
      });
      expect(ran).toEqual({
        exitCode: 2,
        stdout: "",
        stderr: "keyhole: DATABASE_URL leads to a connection pooler such as PgBouncer: name PostgreSQL itself.\n",
      });
      const through = (...args: string[]) =>
        runBinary(args, { cwd: site.folder, env: { ...site.env, DATABASE_URL: server.href } });
      expect(await through("db", "check")).toMatchObject({
        exitCode: 1,
        stdout: expect.stringContaining("; commits pass; no commit waits for a standby.\n"),
        stderr: expect.stringContaining(`WARNING: A pooler is between this host and ${server.host}: `),
      });
      const list = () => through("org", "list");
      expect(await list()).toMatchObject({ exitCode: 0, stderr: "" });
      await site.sql(`alter role current_user in database ${pathname.slice(1)} set bytea_output = escape`);
      await site.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      );
      const stderr = expect.stringContaining("have bytea_output = escape, and Keyhole needs hex");
      expect(await list()).toMatchObject({ exitCode: 2, stderr });
      await site.sql(`alter role current_user in database ${pathname.slice(1)} reset bytea_output`);
    });
  });
});
