import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { ranMs, stoodStillMs } from "./clock.ts";
import { expectDescribed } from "./described.ts";
import { eventually } from "./eventually.ts";
import { type Furniture, fill } from "./furnish.ts";
import { runHere } from "./here.ts";
import { binary, jsonOf, makePlace, type Place } from "./keyhole.ts";
import { migratedDatabase } from "./migrated.ts";
import { freePort } from "./port.ts";
import { createDatabase, postgresUrl, type TestDatabase, withPostgres } from "./postgres.ts";

export { eventually };

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

export type ServeOptions = {
  /** Arguments beside `serve --port 0`. */
  readonly args?: readonly string[];
  /** Settings beside the site's. */
  readonly env?: Readonly<Record<string, string>>;
  /** The command in front of the program, such as one that changes the user. */
  readonly as?: readonly string[];
  /** A copy of the binary; by default the binary itself. */
  readonly program?: string;
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
      const all = [
        ...(args.includes("--project") ? [] : ["--all-projects"]),
        ...(args.includes("--env") ? [] : ["--all-environments"]),
      ];
      return (await json(["key", "create", ...args, ...all])) as Key;
    },
    audit: () => sql("select * from audit_entries where actor_type = 'key' order by lane, seq"),
    remove: async () => {
      for (const server of servers) await server.kill();
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
  }, 60_000);
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
export type Server = {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  readonly pid: number;
  /** The origin of health and metrics; empty if KEYHOLE_OPS_PORT is not set. */
  readonly ops: () => string;
  /** One request below the API's root, read to its end. */
  readonly get: (path: string, key: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** A connection that stays open. */
  readonly connect: () => Promise<Connection>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves when it ends, with its exit code, or null if a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM and waits for the end. */
  readonly stop: () => Promise<number | null>;
  /** Sends SIGKILL, unless it has ended, and waits for the end. */
  readonly kill: () => Promise<void>;
  /** Its output so far. */
  readonly said: () => { readonly stdout: string; readonly stderr: string };
  /** Resolves once stderr holds this text. */
  readonly says: (text: string) => Promise<void>;
  /** Resident memory in bytes, now and at its peak. */
  readonly memory: () => { readonly now: number; readonly peak: number };
};

async function startServer(place: Pick<Place, "folder" | "env">, options: ServeOptions = {}): Promise<Server> {
  const { args = [], env = {}, as = [], program = binary } = options;
  // With port 0 the parent chooses a port and gives it back, so another program may have it before the workers do.
  const port = args.includes("--workers") ? freePort() : 0;
  const child = Bun.spawn([...as, program, "serve", "--port", String(port), ...args], {
    cwd: place.folder,
    env: { ...place.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let stdout = "";
  let stderr = "";
  const waiting = new Set<() => void>();
  const drained = Promise.all([
    drain(child.stdout, (text) => {
      stdout += text;
    }),
    drain(child.stderr, (text) => {
      stderr += text;
      for (const look of waiting) look();
    }),
  ]);
  const ended = child.exited.then(async () => {
    // Bun does not always notice the end of what a process wrote, above all of one that was killed.
    await Promise.race([drained, Bun.sleep(2000)]);
    return child.signalCode === null ? child.exitCode : null;
  });
  const says = (text: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (!stderr.includes(text)) return;
      waiting.delete(look);
      resolve();
    };
    waiting.add(look);
    look();
    ended.then((code) => reject(new Error(`serve ended with ${code} and never said ${text}: ${stderr}`)));
    return promise;
  };
  await says("Keyhole listens on ");
  const origin = /Keyhole listens on (http:\/\/\S+?)\/api\/v1\n/.exec(stderr)?.[1] ?? "";
  const get = async (path: string, key: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await ask(`${origin}/api/v1${path}`, { Authorization: `Bearer ${key}`, ...headers });
    expectDescribed(path, answer.status, answer.headers, () => answer.body.toString("utf8"));
    return answer;
  };
  return {
    origin,
    pid: child.pid,
    ops: () => /metrics are on (\S+)/.exec(stderr)?.[1] ?? "",
    get,
    connect: () => connect(origin),
    signal: (signal) => child.kill(signal),
    ended,
    stop: () => {
      child.kill("SIGTERM");
      return ended;
    },
    kill: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await child.exited;
    },
    said: () => ({ stdout, stderr }),
    says,
    memory: () => memoryOf(child.pid),
  };
}

async function drain(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) take(decoder.decode(bytes, { stream: true }));
}

/** Linux only. */
export function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  return { now: kibibytes("VmRSS"), peak: kibibytes("VmHWM") };
}

/** An answer, read to its end. */
export type Answer = {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** The parsed body. @throws if it is not JSON */
  readonly json: <T = unknown>() => T;
};

/** Sends one request on a new connection. @throws Cut */
export async function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const { origin, pathname, search } = new URL(url);
  const connection = await connect(origin);
  try {
    return await connection.get(`${pathname}${search}`, { Connection: "close", ...headers });
  } finally {
    connection.close();
  }
}

/** The connection ended before an answer was complete. */
export class Cut extends Error {
  override readonly name = "Cut";
  /** The part of the answer that arrived. */
  readonly received: Buffer;

  constructor(reason: string, received: Buffer) {
    super(`${reason} after ${received.length} bytes of an answer`);
    this.received = received;
  }
}

/**
 * A plain connection. `fetch` would silently retry if a connection breaks, and these tests must see that.
 */
export type Connection = {
  /** Sends one request at a time. @throws Cut if the answer is incomplete */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** Sends a request and never reads. */
  readonly ignore: (path: string, headers?: Readonly<Record<string, string>>) => void;
  /** Sends a request and stops reading after this many bytes. */
  readonly taste: (path: string, bytes: number, headers?: Readonly<Record<string, string>>) => Promise<void>;
  /** Whether the server has closed it. */
  readonly closed: () => boolean;
  readonly close: () => void;
};

/** @throws Error with `code` if nobody listens */
export async function connect(origin: string): Promise<Connection> {
  const { hostname, port } = new URL(origin);
  const socket = connectSocket({ host: hostname, port: Number(port) });
  await new Promise<void>((resolve, reject) => socket.once("error", reject).once("connect", resolve));
  socket.setNoDelay(true);
  let chunks: Buffer[] = [];
  let bytes = 0;
  let over: string | undefined;
  let look = () => {};
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    look();
  });
  const end = (reason: string) => {
    over ??= reason;
    look();
  };
  socket.on("end", () => end("the connection was closed"));
  socket.on("close", () => end("the connection was closed"));
  socket.on("error", (error: NodeJS.ErrnoException) => end(`the connection failed (${error.code})`));
  const send = (path: string, headers: Readonly<Record<string, string>>) =>
    socket.write(requestOf(origin, path, headers));
  const until = <T>(found: () => T | undefined): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    look = () => {
      const result = found();
      if (result !== undefined) resolve(result);
      else if (over !== undefined) reject(new Cut(over, Buffer.concat(chunks)));
    };
    look();
    return promise.finally(() => {
      look = () => {};
    });
  };
  return {
    get: (path, headers = {}) => {
      chunks = [];
      bytes = 0;
      const parse = answerParser();
      send(path, headers);
      return until(() => parse(chunks, bytes));
    },
    ignore: (path, headers = {}) => {
      socket.pause();
      send(path, headers);
    },
    taste: async (path, count, headers = {}) => {
      chunks = [];
      bytes = 0;
      send(path, headers);
      await until(() => (bytes >= count ? true : undefined));
      socket.pause();
    },
    closed: () => over !== undefined,
    close: () => socket.destroy(),
  };
}

/**
 * Sends a request, reads a little and stops. (A node:net socket of Bun 1.4.5 that was paused never resumes.)
 *
 * @returns reads on until the connection ends, and returns everything received
 */
export async function standStill(
  origin: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<() => Promise<Buffer>> {
  const { hostname, port } = new URL(origin);
  const chunks: Buffer[] = [];
  const { promise: began, resolve: begin } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let still = false;
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(self, chunk) {
        chunks.push(Buffer.from(chunk));
        if (!still) self.pause();
        still = true;
        begin();
      },
      close: () => end(),
      error: () => end(),
    },
  });
  socket.write(requestOf(origin, path, headers));
  await began;
  return async () => {
    socket.resume();
    await ended;
    return Buffer.concat(chunks);
  };
}

function requestOf(origin: string, path: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ Host: new URL(origin).host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  return `GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** Parses an answer from what has arrived; undefined until it is complete. */
function answerParser(): (chunks: readonly Buffer[], bytes: number) => Answer | undefined {
  let head: { status: number; headers: Map<string, string>; bodyAt: number } | undefined;
  return (chunks, bytes) => {
    if (head === undefined) {
      const text = Buffer.concat(chunks).toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return undefined;
      const [first = "", ...lines] = text.slice(0, end).split("\r\n");
      const headers = new Map(
        lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
      );
      head = { status: Number(first.split(" ")[1]), headers, bodyAt: end + 4 };
    }
    const { status, headers, bodyAt } = head;
    const length = headers.get("content-length");
    if (length !== undefined) {
      if (bytes < bodyAt + Number(length)) return undefined;
      return answerOf(status, headers, Buffer.concat(chunks).subarray(bodyAt, bodyAt + Number(length)));
    }
    if (headers.get("transfer-encoding") !== "chunked") throw new Error("an answer of unknown length");
    // Whole only with its last, empty chunk; looked for at the end alone, so that large answers are joined once.
    if (!Buffer.concat(chunks.slice(-2)).toString("latin1").endsWith("0\r\n\r\n")) return undefined;
    const body = unchunked(Buffer.concat(chunks).subarray(bodyAt));
    return body && answerOf(status, headers, body);
  };
}

function answerOf(status: number, headers: Map<string, string>, body: Buffer): Answer {
  return { status, headers, body, json: () => JSON.parse(body.toString("utf8")) };
}

function unchunked(raw: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = raw.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(raw.toString("latin1", at, lineEnd), 16);
    if (size === 0) return Buffer.concat(parts);
    if (lineEnd + 2 + size > raw.length) return undefined;
    parts.push(raw.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

/** How one request of {@link startReaders} ended. Moments are {@link ranMs}. */
export type Outcome = {
  readonly requestId: string;
  readonly path: string;
  readonly beganAt: number;
  readonly endedAt: number;
  /** `refused`: nobody listened. `cut`: the connection ended before the answer was whole. */
  readonly status: number | "refused" | "cut";
  readonly answer: Answer | undefined;
  /** Of an answer that was cut. */
  readonly received: string;
  /** For how many milliseconds this process did not run meanwhile. */
  readonly stoodStillMs: number;
};

/** Clients that send one request after another. */
export type Readers = {
  readonly outcomes: readonly Outcome[];
  /** Resolves after this many more outcomes of this kind. */
  readonly more: (count: number, kind?: (outcome: Outcome) => boolean) => Promise<void>;
  /** Waits for the requests under way. */
  readonly stop: () => Promise<readonly Outcome[]>;
};

/**
 * Starts clients. Each keeps its own connection for as long as the server does.
 *
 * @param origin - called for each connection, because a restarted server has another port
 * @param next - what the client of this number asks for, below the API's root
 * @param pauseMs - between an answer and the client's next request, which limits the rate
 */
export function startReaders(
  count: number,
  origin: () => string,
  next: (client: number, request: number) => { readonly path: string; readonly key: string },
  pauseMs = 0,
): Readers {
  const outcomes: Outcome[] = [];
  const waiting = new Set<(outcome: Outcome) => void>();
  let stopping = false;
  const run = async (client: number): Promise<void> => {
    let connection: Connection | undefined;
    for (let request = 0; !stopping; request++) {
      const { path, key } = next(client, request);
      const requestId = crypto.randomUUID();
      const beganAt = ranMs();
      const stoodStill = stoodStillMs();
      let status: Outcome["status"] = "refused";
      let answer: Answer | undefined;
      let received = "";
      try {
        connection ??= await connect(origin());
        status = "cut";
        answer = await connection.get(`/api/v1${path}`, { Authorization: `Bearer ${key}`, "x-request-id": requestId });
        status = answer.status;
      } catch (error) {
        if (error instanceof Cut) received = error.received.toString("latin1");
        else if (status === "cut") throw error;
      }
      const endedAt = ranMs();
      const stood = stoodStillMs() - stoodStill;
      const outcome = { requestId, path, beganAt, endedAt, status, answer, received, stoodStillMs: stood };
      outcomes.push(outcome);
      for (const look of waiting) look(outcome);
      if (answer === undefined || answer.headers.get("connection") === "close") {
        connection?.close();
        connection = undefined;
      }
      if (pauseMs > 0 || answer === undefined) await Bun.sleep(Math.max(pauseMs, 2));
    }
    connection?.close();
  };
  const running = Promise.all(Array.from({ length: count }, (_, client) => run(client)));
  return {
    outcomes,
    more: (wanted, kind = () => true) => {
      let left = wanted;
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = (outcome: Outcome) => {
        if (!kind(outcome) || --left > 0) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      return Promise.race([promise, running.then(() => {})]);
    },
    stop: async () => {
      stopping = true;
      await running;
      return outcomes;
    },
  };
}

/**
 * Expects that 60 concurrent value requests with a new key, sent to these servers in turn, share one bucket: 30 pass,
 * and one more for every two seconds. Repeated if the machine was too slow for the deadline of shared buckets, so that a
 * server counted alone.
 */
export async function expectOneBucket(
  newKey: () => Promise<Key>,
  path: string,
  servers: readonly [Server, ...Server[]],
): Promise<void> {
  const said = () => servers.map((server) => server.said().stdout).join("");
  const news = () => said().match(/"event":"limiter","shared":\w+/g) ?? [];
  const away = () => news().filter((one) => one.endsWith("false")).length * 2 - news().length;
  for (;;) {
    const { key } = await newKey();
    await eventually(() => away() === 0);
    const before = news().length;
    const ids = Array.from({ length: 60 }, () => crypto.randomUUID());
    const beganAt = performance.now();
    const answers = await Promise.all(
      ids.map((id, at) => (servers[at % servers.length] ?? servers[0]).get(path, key, { "x-request-id": id })),
    );
    const refills = Math.ceil((performance.now() - beganAt) / 2000);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    // The log is written a little later. That a server counts alone stands there before the request that found out.
    await eventually(() => ids.every((id) => said().includes(id)));
    if (news().length !== before) continue;
    expect(statuses.filter((status) => status === 200).length).toBeWithin(30, 31 + refills);
    return;
  }
}
