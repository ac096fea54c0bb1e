import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { type Answer, ask, type Connection, connect } from "./connection.ts";
import { expectDescribed } from "./described.ts";
import { eventually } from "./eventually.ts";
import { type Furniture, fill } from "./furnish.ts";
import { runHere } from "./here.ts";
import { binary, jsonOf, makePlace, type Place, type RunOptions } from "./keyhole.ts";
import { migratedDatabase } from "./migrated.ts";
import { freePort } from "./port.ts";
import { createDatabase, postgresUrl, type TestDatabase, withPostgres } from "./postgres.ts";
import { type Running, startProgram } from "./program.ts";

export type Dialect = "sqlite" | "postgres";
export type Row = Readonly<Record<string, unknown>>;

/** KEYHOLE_TEST_LONG=1 runs the full numbers, which would make an everyday run too slow. */
export const long: boolean = process.env["KEYHOLE_TEST_LONG"] === "1";

/**
 * In a long run, expects that `tookMs` is less than `ms`. On a busy machine a time says nothing about the program, so in
 * other runs only the order of events counts.
 */
export function expectWithin(tookMs: number, ms: number): void {
  if (long) expect(tookMs).toBeLessThan(ms);
}

/** Runs a suite on both databases. Without PostgreSQL, its half is skipped under a name that says so. */
export function onBoth(name: string, suite: (dialect: Dialect) => void): void {
  describe(`${name}, on SQLite`, () => suite("sqlite"));
  onPostgres(name, () => suite("postgres"));
}

/** The same on PostgreSQL alone. */
export function onPostgres(name: string, suite: () => void): void {
  withPostgres(`${name}, on PostgreSQL`, suite);
}

/** A place with its own empty database. */
export type Site = Omit<Place, "remove"> & {
  readonly dialect: Dialect;
  /** Runs a command like `keyhole`, but in this process: for what is not about the program's own. */
  readonly here: Place["keyhole"];
  /** The same, its `--json` document parsed. @throws if it failed or printed more than one document */
  readonly json: Place["json"];
  /** The data folder; unused on PostgreSQL. */
  readonly data: string;
  /** Runs SQL on the database itself; `?` stands for a value on both databases. */
  readonly sql: (text: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** Starts a server and waits until it listens. Removing the site ends it. */
  readonly serve: (options?: ServeOptions) => Promise<Server>;
  /** Makes an API key. */
  readonly key: (...args: readonly string[]) => Promise<Key>;
  /** What machines read, ordered by lane and sequence. */
  readonly audit: () => Promise<Row[]>;
  /** Ends its servers and removes its folder and database. */
  readonly remove: () => Promise<void>;
};

export type Key = { readonly id: string; readonly key: string };

/** Its `env` are settings beside the site's. */
export type ServeOptions = Pick<RunOptions, "env" | "as" | "program"> & {
  /** Arguments beside `serve --port 0`. */
  readonly args?: readonly string[];
};

type Settings = Readonly<Record<string, string>>;

/**
 * @param url - the database; by default a new one on {@link postgresUrl}, which is dropped with the site
 * @param settings - of everything that runs in it; by default a new root key, which the embedded database makes itself
 * @param create - makes the new database, by default an empty one
 */
export async function makeSite(
  dialect: Dialect,
  url?: string,
  settings: Settings = {},
  create: (url: string) => Promise<TestDatabase> = createDatabase,
): Promise<Site> {
  const database = dialect === "postgres" && url === undefined ? await create(postgresUrl ?? "") : undefined;
  const databaseUrl = url ?? database?.url ?? "";
  const { remove: removeFolder, ...place } = makePlace({
    ...(dialect === "postgres" && { DATABASE_URL: databaseUrl, KEYHOLE_ROOT_KEY: randomBytes(32).toString("base64") }),
    ...settings,
  });
  const data = place.env["KEYHOLE_DATA"] ?? "";
  const servers: Server[] = [];
  const sql = async (text: string, values: readonly unknown[] = []): Promise<Row[]> => {
    if (dialect === "sqlite") {
      const file = new SqliteFile(join(data, "keyhole.db"));
      try {
        file.run("PRAGMA busy_timeout = 5000");
        return file.query(text).all(...(values as never[])) as Row[];
      } finally {
        file.close();
      }
    }
    const client = postgres(databaseUrl, { max: 1, fetch_types: false, connect_timeout: 10, onnotice: () => {} });
    let count = 0;
    try {
      return [
        ...(await client.unsafe(
          text.replaceAll("?", () => `$${++count}`),
          values as never[],
        )),
      ];
    } finally {
      await client.end({ timeout: 5 });
    }
  };
  const here: Site["here"] = (args, stdin) => runHere(args, { cwd: place.folder, env: place.env, stdin });
  const json: Site["json"] = (args, stdin) => jsonOf(args, (all) => here(all, stdin));
  return {
    ...place,
    dialect,
    data,
    here,
    json,
    sql,
    serve: async (options) => {
      const server = await startServer(place, options);
      servers.push(server);
      return server;
    },
    key: async (...args) => {
      const unless = (flag: string, all: string) => (args.includes(flag) ? [] : [all]);
      const all = [...unless("--project", "--all-projects"), ...unless("--env", "--all-environments")];
      return (await json(["key", "create", ...args, ...all])) as Key;
    },
    audit: () => sql("select * from audit_entries where actor_type = 'key' order by lane, seq"),
    remove: async () => {
      for (const server of servers) await server.stop("SIGKILL");
      await database?.drop();
      removeFolder();
    },
  };
}

/**
 * The site of a suite: made before its first test, removed after its last one, and empty before that.
 *
 * @param variables - those of acme/web, by environment; without them the site has neither organization nor project
 */
export function siteOf(dialect: Dialect, variables?: Parameters<typeof furnish>[1]): Site {
  const site = {} as Site;
  beforeAll(async () => {
    Object.assign(site, await makeSite(dialect, undefined, {}, variables && migratedDatabase));
    if (variables) await furnish(site, variables);
  });
  afterAll(() => site.remove?.(), 60_000);
  return site;
}

/** A server of a suite, started before its first test. */
export function serverOf(site: Site, options?: ServeOptions): Server {
  const server = {} as Server;
  beforeAll(async () => void Object.assign(server, await site.serve(options)), 60_000);
  return server;
}

/** A key of a suite, made before its first test. */
export function keyOf(site: Site, ...args: readonly string[]): Key {
  const key = {} as Key;
  beforeAll(async () => void Object.assign(key, await site.key(...args)), 60_000);
  return key;
}

/** Creates acme/web with these variables in each environment, as ann@host. Returns the site. */
export async function furnish(site: Site, variables: Furniture = {}): Promise<Site> {
  await fill(site.env, variables);
  return site;
}

/** Makes this many keys of acme for these resources. */
export async function makeKeys(site: Site, count: number, resources: string): Promise<readonly [Key, ...Key[]]> {
  const keys: Key[] = [];
  while (keys.length < count) keys.push(await site.key("--org", "acme", "--resource", resources));
  return keys as [Key, ...Key[]];
}

/** Keeps everyone else from writing audit entries, until called. */
export async function lockAudit(site: Site): Promise<() => Promise<void>> {
  if (site.dialect === "sqlite") {
    const file = new SqliteFile(join(site.data, "keyhole.db"));
    file.run("PRAGMA busy_timeout = 5000");
    file.run("BEGIN IMMEDIATE");
    return async () => {
      file.run("ROLLBACK");
      file.close();
    };
  }
  const client = postgres(site.env["DATABASE_URL"] ?? "", { max: 1, fetch_types: false, onnotice: () => {} });
  await client`select 1`; // the driver never gives out a connection that was opened for this and asked for no types
  const session = await client.reserve();
  await session`begin`;
  await session`lock table audit_segments in access exclusive mode`;
  return async () => {
    await session`rollback`;
    session.release();
    await client.end({ timeout: 5 });
  };
}

/** A running server. */
export type Server = Running & {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** The origin of health and metrics; empty if KEYHOLE_OPS_PORT is not set. */
  readonly ops: () => string;
  /** One request below the API's root, read to its end. */
  readonly get: (path: string, key: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** A connection that stays open. */
  readonly connect: () => Promise<Connection>;
  /** Resident memory in bytes, now and at its peak. */
  readonly memory: () => { readonly now: number; readonly peak: number };
};

async function startServer(place: Pick<Place, "folder" | "env">, options: ServeOptions = {}): Promise<Server> {
  const { args = [], env = {}, as = [], program = binary } = options;
  // With port 0 the parent chooses a port and gives it back, so another program may have it before the workers do.
  const port = args.includes("--workers") ? freePort() : 0;
  const command = [...as, program, "serve", "--port", String(port), ...args];
  const running = startProgram(command, { cwd: place.folder, env: { ...place.env, ...env } });
  await running.says("Keyhole listens on ");
  const shown = (pattern: RegExp) => pattern.exec(running.said().stderr)?.[1] ?? "";
  const origin = shown(/Keyhole listens on (http:\/\/\S+?)\/api\/v1\n/);
  const get = async (path: string, key: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await ask(`${origin}/api/v1${path}`, { Authorization: `Bearer ${key}`, ...headers });
    expectDescribed(path, answer.status, answer.headers, () => answer.body.toString("utf8"));
    return answer;
  };
  const memory = () => memoryOf(running.pid);
  return { ...running, origin, ops: () => shown(/metrics are on (\S+)/), get, connect: () => connect(origin), memory };
}

/** How many requests wait for a change, in all workers. */
export async function waitsOf(server: Server): Promise<number> {
  const text = await (await fetch(`${server.ops()}/metrics`)).text();
  return Number(/^keyhole_waits (\d+)$/m.exec(text)?.[1]);
}

/** Linux only. */
export function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  return { now: kibibytes("VmRSS"), peak: kibibytes("VmHWM") };
}

/**
 * Expects that 60 concurrent value requests with a new key, sent to these servers in turn, share one bucket: 30 pass,
 * and one more for every two seconds; with a rate, that many times as many. Repeated if the machine was too slow for the deadline of shared buckets, so that a
 * server counted alone.
 */
export async function expectOneBucket(
  newKey: () => Promise<Key>,
  path: string,
  servers: readonly [Server, ...Server[]],
  rate = 1,
): Promise<void> {
  const said = () => servers.map((server) => server.said().stdout).join("");
  const news = () => said().match(/"event":"limiter","shared":\w+/g) ?? [];
  const away = () => news().filter((one) => one.endsWith("false")).length * 2 - news().length;
  for (;;) {
    const { key } = await newKey();
    await eventually(() => away() === 0);
    const before = news().length;
    const ids = Array.from({ length: 60 * rate }, () => crypto.randomUUID());
    const beganAt = performance.now();
    const answers = await Promise.all(
      ids.map((id, at) => (servers[at % servers.length] ?? servers[0]).get(path, key, { "x-request-id": id })),
    );
    const refills = Math.ceil(((performance.now() - beganAt) * rate) / 2000);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    // The log is written a little later. That a server counts alone stands there before the request that found out.
    await eventually(() => ids.every((id) => said().includes(id)));
    if (news().length !== before) continue;
    expect(statuses.filter((status) => status === 200).length).toBeWithin(30 * rate, 30 * rate + 1 + refills);
    return;
  }
}
