/**
 * A fake Keyhole server for tests of the client. It writes HTTP by hand, so that it can send what a real server never
 * would. Everything that a test does not alter is answered as Keyhole answers it.
 */
import { afterEach } from "bun:test";
import { createServer, type Socket } from "node:net";
import type { Environment } from "../../src/core/names.ts";

/** The data of correct answers. */
export type Truth = {
  readonly project: string;
  readonly environment: Environment;
  readonly variables: Readonly<Record<string, string>>;
  readonly files: readonly TrueFile[];
};
export type TrueFile = { readonly path: string; readonly content: Uint8Array; readonly mode?: string };

/** A request. */
export type Question = {
  /** How many requests came before it. */
  readonly count: number;
  /** Without the API's root, such as `/files`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
};

/** The answer. A body that is neither text nor bytes is sent as JSON. */
export type Reply = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The whole answer, including the head, instead of all else. The connection is closed after it. */
  readonly raw?: string | Uint8Array;
  /** Sent again and again until the client closes the connection. */
  readonly endless?: Uint8Array;
  /** Sent a piece at a time, again and again, until the client closes the connection. There is no other head. */
  readonly drip?: string;
  /** Nothing is sent, and the connection stays open. */
  readonly silent?: true;
};

export type Liar = {
  readonly origin: string;
  readonly questions: readonly Question[];
  /** Bytes sent by all endless replies. */
  readonly endlessBytes: () => number;
  readonly stop: () => Promise<void>;
};

/** Returns what starts the servers of a file, each of which ends with its test. */
export function liarStarter(): typeof startLiar {
  const liars: Liar[] = [];
  afterEach(async () => {
    for (const liar of liars.splice(0)) await liar.stop();
  });
  return async (reply) => {
    const liar = await startLiar(reply);
    liars.push(liar);
    return liar;
  };
}

/** Starts the server on a free port. */
export async function startLiar(reply: (question: Question) => Reply | Promise<Reply>): Promise<Liar> {
  const questions: Question[] = [];
  const sockets = new Set<Socket>();
  let endlessBytes = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    let head = "";
    socket.on("data", async (bytes) => {
      head += bytes.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      const question = parseQuestion(head, questions.length);
      head = "";
      questions.push(question);
      const answer = await reply(question);
      if (answer.silent) return;
      if (answer.drip !== undefined) {
        const dripping = setInterval(() => socket.write(answer.drip ?? ""), 50);
        return void socket.on("close", () => clearInterval(dripping));
      }
      if (answer.endless === undefined) return void socket.end(bytesOf(answer));
      socket.write(headOf(200, { Connection: "close", "Content-Type": "application/json", ...answer.headers }));
      const more = () => {
        while (!socket.destroyed) {
          endlessBytes += answer.endless?.length ?? 0;
          if (!socket.write(answer.endless ?? "")) return;
        }
      };
      socket.on("drain", more);
      more();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fake server has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    questions,
    endlessBytes: () => endlessBytes,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Answers the two paths that the client uses as Keyhole does, without keys, limits and audit. */
export function honestly(truth: Truth, { path, query }: Question): Reply {
  const project = path === "/files" ? query.get("project") : /^\/projects\/([^/]+)\/variables$/.exec(path)?.[1];
  if (project !== truth.project) return refusal(404, "project_not_found", "No such project.");
  return { body: path === "/files" ? filesBody(truth, query) : variablesBody(truth, query) };
}

type Headers = Readonly<Record<string, string>>;
export function refusal(status: number, code: string, error: string, headers: Headers = {}): Reply {
  return { status, body: { error, code }, headers };
}

export type VariablesBody = { environment: unknown; variables: Record<string, unknown>[] };
export type FilesBody = { project: unknown; environment: unknown; files: Record<string, unknown>[] };

function variablesBody(truth: Truth, query: URLSearchParams): VariablesBody {
  const keys = query.get("keys")?.split(",");
  const variables = Object.entries(truth.variables)
    .filter(([key]) => (keys?.includes(key) ?? true) && key.startsWith(query.get("prefix") ?? ""))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => ({ key, value, updatedAt: 1 }));
  return { environment: query.get("environment"), variables };
}

function filesBody(truth: Truth, query: URLSearchParams): FilesBody {
  const paths = query.getAll("path");
  const files = truth.files
    .filter(({ path }) => paths.length === 0 || paths.includes(path))
    .map(({ path, content, mode = "0600" }) => ({
      name: path,
      path,
      mode,
      size: content.length,
      sha256: new Bun.CryptoHasher("sha256").update(content).digest("hex"),
      contentType: "application/octet-stream",
      environments: [truth.environment],
      updatedAt: 1,
      ...(query.get("metadataOnly") === null && { content: Buffer.from(content).toString("base64") }),
    }));
  return { project: { slug: query.get("project") }, environment: query.get("environment"), files };
}

function parseQuestion(head: string, count: number): Question {
  const [first = "", ...lines] = head.split("\r\n");
  const url = new URL(first.split(" ")[1] ?? "", "http://liar");
  const headers = new Map(
    lines
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  return { count, path: url.pathname.replace(/^\/api\/v1/, ""), query: url.searchParams, headers };
}

function bytesOf({ status = 200, headers = {}, body = "", raw }: Reply): Uint8Array {
  if (raw !== undefined) return Buffer.from(raw);
  const bytes =
    typeof body === "string" || body instanceof Uint8Array
      ? Buffer.from(body)
      : Buffer.from(JSON.stringify(body) ?? "");
  const head = headOf(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": String(bytes.length),
    "x-request-id": "liar-1",
    Connection: "close",
    ...headers,
  });
  return Buffer.concat([Buffer.from(head), bytes]);
}

function headOf(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`;
}
