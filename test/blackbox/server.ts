import { Database as SqliteFile } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { createDatabase } from "../postgres.ts";
import { ranMs, stoodStillMs } from "./clock.ts";
import { binary, makePlace, type Place } from "./keyhole.ts";

export type Dialect = "sqlite" | "postgres";
export type Row = Readonly<Record<string, unknown>>;

/** The server that `test/run.ts` found, or undefined. */
export const postgresUrl: string | undefined = process.env["KEYHOLE_TEST_DATABASE_URL"];

/** KEYHOLE_TEST_LONG=1 runs the numbers that the issue names, where they would make the everyday run too slow. */
export const long: boolean = process.env["KEYHOLE_TEST_LONG"] === "1";

/** Runs one suite on both databases; where there is no PostgreSQL its half is skipped, by a name that says so. */
export function onBoth(name: string, suite: (dialect: Dialect) => void): void {
  describe(`${name}, on SQLite`, () => suite("sqlite"));
  onPostgres(name, () => suite("postgres"));
}

/** The same for a suite that only PostgreSQL has. */
export function onPostgres(name: string, suite: () => void): void {
  if (postgresUrl !== undefined) describe(`${name}, on PostgreSQL`, suite);
  else describe.skip(`${name}, on PostgreSQL, SKIPPED for want of KEYHOLE_TEST_DATABASE_URL`, suite);
}

/** A place with a database of its own, and nothing in it. */
export type Site = Omit<Place, "remove"> & {
  readonly dialect: Dialect;
  /** The data folder on SQLite; on PostgreSQL nobody uses it. */
  readonly data: string;
  /** SQL past the program; `?` stands for a value on both databases. */
  readonly sql: (text: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** Starts a server, and waits until it listens. It ends with the site at the latest. */
  readonly serve: (options?: ServeOptions) => Promise<Server>;
  /** Makes an API key. */
  readonly key: (...args: readonly string[]) => Promise<Key>;
  /** Every audit entry there is, in order of lane and sequence. */
  readonly audit: () => Promise<Row[]>;
  /** Ends its servers and takes everything away. */
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
  /** A copy of the binary; it itself where left out. */
  readonly program?: string;
};

/**
 * @param url - the database; a new one on {@link postgresUrl} where left out, and then dropped with the site
 */
export async function makeSite(dialect: Dialect, url?: string): Promise<Site> {
  const database = dialect === "postgres" && url === undefined ? await createDatabase(postgresUrl ?? "") : undefined;
  const databaseUrl = url ?? database?.url ?? "";
  const { remove: removeFolder, ...place } = makePlace(
    dialect === "sqlite" ? {} : { DATABASE_URL: databaseUrl, KEYHOLE_ROOT_KEY: randomBytes(32).toString("base64") },
  );
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
  return {
    ...place,
    dialect,
    data,
    sql,
    serve: async (options) => {
      const server = await startServer(place, options);
      servers.push(server);
      return server;
    },
    key: async (...args) => (await place.json(["key", "create", ...args])) as Key,
    audit: () => sql("select * from audit_entries order by lane, seq"),
    remove: async () => {
      for (const server of servers) await server.kill();
      await database?.drop();
      removeFolder();
    },
  };
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
  await session`lock table audit_entries in access exclusive mode`;
  return async () => {
    await session`rollback`;
    session.release();
    await client.end({ timeout: 5 });
  };
}

/** A server that runs. */
export type Server = {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  readonly pid: number;
  /** One request below the API's root, read to its end. */
  readonly get: (path: string, key: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** A connection that stays open. */
  readonly connect: () => Promise<Connection>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves when it ends: its exit code, or null where a signal ended it. */
  readonly ended: Promise<number | null>;
  /** SIGTERM, and the end. */
  readonly stop: () => Promise<number | null>;
  /** SIGKILL, and the end; does nothing to one that has ended. */
  readonly kill: () => Promise<void>;
  /** What it wrote so far. */
  readonly said: () => { readonly stdout: string; readonly stderr: string };
  /** Resolves once stderr holds this text. */
  readonly says: (text: string) => Promise<void>;
  /** Bytes of memory that it holds now, and the most that it ever held. */
  readonly memory: () => { readonly now: number; readonly peak: number };
};

async function startServer(place: Pick<Place, "folder" | "env">, options: ServeOptions = {}): Promise<Server> {
  const { args = [], env = {}, as = [], program = binary } = options;
  const child = Bun.spawn([...as, program, "serve", "--port", "0", ...args], {
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
    await drained;
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
  const get = (path: string, key: string, headers: Readonly<Record<string, string>> = {}) =>
    ask(`${origin}/api/v1${path}`, { Authorization: `Bearer ${key}`, ...headers });
  return {
    origin,
    pid: child.pid,
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
      await ended;
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

/** Linux alone says this of another process without a program's help. */
function memoryOf(pid: number): { now: number; peak: number } {
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
  /** The body parsed; throws where it is not JSON. */
  readonly json: <T = unknown>() => T;
};

/** One request on a connection of its own. @throws Cut */
export async function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const { origin, pathname, search } = new URL(url);
  const connection = await connect(origin);
  try {
    return await connection.get(`${pathname}${search}`, { Connection: "close", ...headers });
  } finally {
    connection.close();
  }
}

/** The connection ended before an answer was whole. */
export class Cut extends Error {
  override readonly name = "Cut";
  /** What had come of the answer. */
  readonly received: Buffer;

  constructor(reason: string, received: Buffer) {
    super(`${reason} after ${received.length} bytes of an answer`);
    this.received = received;
  }
}

/**
 * A connection that does as it is told and nothing besides: `fetch` would ask a second time on its own when a
 * connection breaks, and hide from these tests what they look for.
 */
export type Connection = {
  /** Asks, one request at a time. @throws Cut where the answer did not come whole */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** Asks and never reads. */
  readonly ignore: (path: string, headers?: Readonly<Record<string, string>>) => void;
  /** Asks, reads until so many bytes have come, and then no more. */
  readonly taste: (path: string, bytes: number, headers?: Readonly<Record<string, string>>) => Promise<void>;
  /** Whether the server has closed it. */
  readonly closed: () => boolean;
  readonly close: () => void;
};

/** @throws Error with `code` where nobody listens */
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
  const send = (path: string, headers: Readonly<Record<string, string>>) => {
    const lines = Object.entries({ Host: `${hostname}:${port}`, ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  };
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
 * Asks, reads a little and then stands still. (A node:net socket of Bun 1.4.5 that was paused never reads on.)
 *
 * @returns reads on until the connection ends: all that came of the answer
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
  const lines = Object.entries({ Host: `${hostname}:${port}`, ...headers }).map(([name, value]) => `${name}: ${value}`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  await began;
  return async () => {
    socket.resume();
    await ended;
    return Buffer.concat(chunks);
  };
}

/** Reads an answer out of what has come so far; undefined until it is whole. */
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
  /** For how many milliseconds this process stood still meanwhile. */
  readonly stoodStillMs: number;
};

/** Clients that ask and ask again. */
export type Readers = {
  readonly outcomes: readonly Outcome[];
  /** Resolves once so many more outcomes were of this kind than now. */
  readonly more: (count: number, kind?: (outcome: Outcome) => boolean) => Promise<void>;
  /** Lets every request come to its end. */
  readonly stop: () => Promise<readonly Outcome[]>;
};

/**
 * Starts clients, each with a connection of its own, which it keeps for as long as the server does.
 *
 * @param origin - asked anew for each connection: a server that is started again listens elsewhere
 * @param next - what the client of this number asks for, below the API's root
 * @param pauseMs - between an answer and the next request of the same client, so that a load is a rate
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
 * How many of 60 value requests at once with a new key pass, at these servers in turn. Asked again where the machine was
 * too slow for the deadline of shared buckets, so that one of them counted for itself.
 */
export async function passedOf60(
  newKey: () => Promise<Key>,
  path: string,
  servers: readonly [Server, ...Server[]],
): Promise<number> {
  const news = () => servers.flatMap((server) => server.said().stdout.match(/"event":"limiter","shared":\w+/g) ?? []);
  const away = () => news().filter((one) => one.endsWith("false")).length * 2 - news().length;
  for (let attempt = 0; attempt < 5; attempt++) {
    const { key } = await newKey();
    const before = news().length;
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) => (servers[at % servers.length] ?? servers[0]).get(path, key)),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    await Bun.sleep(100); // for the log, which is written a little later
    if (news().length === before) return statuses.filter((status) => status === 200).length;
    await eventually(() => (away() === 0 ? true : undefined));
  }
  throw new Error("the shared buckets never answered all of 60 requests in time");
}

/** Looks again and again, for what gives no sign of its own. @throws Error after the deadline */
export async function eventually<T>(
  look: () => Promise<T | undefined> | T | undefined,
  deadlineMs = 10_000,
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > giveUpAt) throw new Error(`it did not happen within ${deadlineMs} ms`);
    await Bun.sleep(10);
  }
}
