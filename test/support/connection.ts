import { connect as connectSocket } from "node:net";
import { ranMs, stoodStillMs } from "./clock.ts";

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

/** A plain connection. `fetch` would silently retry if a connection breaks, and these tests must see that. */
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
    const length = status === 304 ? "0" : headers.get("content-length");
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
