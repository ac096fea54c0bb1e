import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { attempt } from "../core/attempt.ts";
import { Fault } from "../core/fault.ts";
import { listNames, renderDotenv } from "../core/formats/dotenv.ts";
import { jsonType, textType } from "../core/formats/json.ts";
import { contentBytesMax, environments, itemsMax, type Selection } from "../core/names.ts";
import { receiptHeader, receiptName } from "../core/receipt.ts";
import { parseAccounts } from "../kinds/accounts/query.ts";
import { parseFiles } from "../kinds/files/query.ts";
import { parseSecrets, parseVariables } from "../kinds/variables/query.ts";
import { problemOf } from "../serve/api/problem.ts";
import { beginExchange, type Exchange, headersOf, judgeTransport } from "../serve/gates/exchange.ts";
import { isMetadataRead, noParameters, parseQuery } from "../serve/gates/query.ts";
import { type BucketName, policies, rateLimitHeaders, retryAfterS, take } from "../serve/limit/bucket.ts";
import type { Environment } from "./npm/answers.ts";
import type { ApiErrorCode } from "./npm/error.ts";

/*
 * The package `keyhole/testing`: a server that stands in for Keyhole in the tests of programs. It is bundled into one
 * file for Node 20+, Bun and Deno. Headers, queries, limits, errors and dotenv text are the server's code. A table of
 * requests holds the rest to the server's answers, and random histories to those of the small Keyhole. It keeps values
 * in the clear and judges one key.
 */

/** What each environment of each project has, by project, environment and name. */
export type Everywhere<T> = Readonly<
  Record<string, Partial<Readonly<Record<Environment, Readonly<Record<string, T>>>>>>
>;

export type FakeOptions = {
  /** The fields of shared accounts. */
  readonly accounts?: Everywhere<Readonly<Record<string, string>>>;
  /** The contents of secret files, by their path. */
  readonly files?: Everywhere<string | Uint8Array>;
  /** Monotonic milliseconds, by which the limits count. Default: the real time. */
  readonly nowMs?: () => number;
};

/**
 * A stand-in for a server, with one key that reaches everything.
 *
 * @example
 * const fake = fakeKeyhole({ web: { production: { API_TOKEN: "made-up" } } });
 * const keyhole = createClient(fake);
 */
export type FakeKeyhole = {
  /** No server is there: only `fetch` answers. */
  readonly url: string;
  readonly apiKey: string;
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>;
  /** Sets a variable, or deletes it if there is no value. */
  readonly set: (project: string, environment: Environment, name: string, value?: string) => void;
  /** Refuses every request from now on with this code; none at all if it is left out. */
  readonly fail: (code?: ApiErrorCode, retryAfter?: number) => void;
  /** Ends the key: from now on it is refused. */
  readonly revoke: () => void;
  /** Listens on a port of this machine, for programs that take an address. @returns the address, and what ends it */
  readonly listen: (port?: number) => Promise<{ readonly url: string; readonly close: () => Promise<void> }>;
};

export function fakeKeyhole(variables: Everywhere<string>, options: FakeOptions = {}): FakeKeyhole {
  const server = new Server(variables, options);
  return Object.freeze({
    url: "https://keyhole.test",
    apiKey,
    fetch: async (url: string, init?: RequestInit) => {
      const request = new Request(url, init);
      const answer = await server.answer(request, request.signal);
      request.signal.throwIfAborted();
      return answer;
    },
    set: (project: string, environment: Environment, name: string, value?: string) =>
      server.put(project, "variables", environment, name, value),
    fail: (code?: ApiErrorCode, retryAfterS = code === "rate_limited" ? 1 : undefined) => {
      server.failure = code && new Fault(code, "as the test asks", retryAfterS === undefined ? {} : { retryAfterS });
      server.wakeAll();
    },
    revoke: () => {
      server.isRevoked = true;
      server.wakeAll();
    },
    listen: (port = 0) => listen(server, port),
  });
}

/** As `key create` prints them, but its checksum is wrong: no scanner takes it for a leaked key. */
const apiKey = `kh_${"Fake".repeat(12)}0`;
const id = "01890000-0000-7000-8000-000000000000";
const begunAt = 1_700_000_000_000;

type FakeValue = string | Uint8Array | Readonly<Record<string, string>>;
type FakeItem = { readonly value: FakeValue; readonly updatedAt: number };
/** The items of a project, by kind, environment and name. */
type FakeProject = { readonly [K in FakeKind]: ReadonlyMap<Environment, Map<string, FakeItem>> } & {
  changedAt: number;
};
type FakeKind = "variables" | "accounts" | "files";
/** What is asked for, as the parsers of the kinds give it. */
type FakeQuery = {
  readonly environment: Environment | null;
  readonly metadataOnly: boolean;
  readonly selection: Selection;
  readonly format: string;
  readonly paths: readonly string[] | undefined;
};
/** What is answered, and how many entries of the audit that takes if it has values. */
type FakeBody = {
  readonly text: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly entries: number;
};
/** What was found: an answer differs if `shown` does, and is made once it is sure that the client gets it. */
type FakeFound = { readonly shown: unknown; readonly open: () => FakeBody };
type FakeEndpoint = {
  readonly path: RegExp;
  /** For a read with values. Without it, there are none. */
  readonly bucket?: BucketName;
  readonly flag?: "metadata_only" | "metadataOnly";
  /** By default, there are no parameters. */
  readonly parse?: (raw: string, slug: string) => { readonly project?: string; readonly metadataOnly?: boolean };
  readonly answer: (
    slug: string,
    project: FakeProject,
    asked: FakeQuery,
    all: ReadonlyMap<string, FakeProject>,
  ) => FakeFound;
};

class Server {
  isRevoked = false;
  failure: Fault | undefined;
  readonly projects: Map<string, FakeProject> = new Map();
  readonly #nowMs: () => number;
  readonly #fullAtUs: Map<string, number> = new Map();
  readonly #waits: Set<() => void> = new Set();
  #writes = 0;
  #entries = 0;

  constructor(variables: Everywhere<string>, { accounts = {}, files = {}, nowMs }: FakeOptions) {
    this.#nowMs = nowMs ?? (() => performance.now());
    for (const [kind, all] of Object.entries({ variables, accounts, files }) as [FakeKind, Everywhere<FakeValue>][]) {
      for (const [slug, places] of Object.entries(all)) {
        for (const environment of environments) {
          this.put(slug, kind, environment);
          for (const [name, value] of Object.entries(places[environment] ?? {}))
            this.put(slug, kind, environment, name, value);
        }
      }
    }
  }

  put(slug: string, kind: FakeKind, environment: Environment, name?: string, value?: FakeValue): void {
    const empty = () => new Map(environments.map((one) => [one, new Map<string, FakeItem>()]));
    const project = this.projects.get(slug) ?? {
      variables: empty(),
      accounts: empty(),
      files: empty(),
      changedAt: begunAt,
    };
    this.projects.set(slug, project);
    if (name === undefined) return;
    this.#writes += 1;
    project.changedAt = begunAt + this.#writes;
    if (value === undefined) project[kind].get(environment)?.delete(name);
    else project[kind].get(environment)?.set(name, { value, updatedAt: project.changedAt });
    this.wakeAll();
  }

  wakeAll(): void {
    for (const wake of this.#waits) wake();
  }

  /** Answers at once, or as the request prefers: once its answer changes, or after its seconds. */
  async answer(request: Pick<Request, "url" | "method" | "headers">, signal: AbortSignal): Promise<Response> {
    const exchange = beginExchange(request as Request, () => "", false, { stages: false, traceparent: false });
    const endsAtMs = performance.now() + (exchange.waitS ?? 0) * 1000;
    for (let isFirst = true; ; isFirst = false) {
      const response = this.#answer(request, exchange, isFirst);
      const leftMs = endsAtMs - performance.now();
      if (response.status !== 304 || leftMs <= 0 || signal.aborted) return response;
      await this.#untilChanged(leftMs, signal);
    }
  }

  #untilChanged(leftMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waits.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, leftMs);
      this.#waits.add(wake);
      signal.addEventListener("abort", wake);
    });
  }

  #answer(request: Pick<Request, "url" | "method" | "headers">, exchange: Exchange, isFirst: boolean): Response {
    try {
      judgeTransport(request, exchange, knownPath);
      const { body, etag, receipt } = this.#judge(exchange, request.headers, isFirst);
      const sent = headersOf(exchange, body && (body.type ?? jsonType), etag);
      const headers = { ...sent, ...body?.headers, ...(receipt && { [receiptHeader]: receipt }) };
      return new Response(body?.text ?? null, { status: body ? 200 : 304, headers });
    } catch (error) {
      const { status, body, headers } = problemOf(error instanceof Fault ? error : new Fault("internal_error", ""));
      return new Response(body, { status, headers: { ...headersOf(exchange, jsonType), ...headers } });
    }
  }

  /** The gates, in the real server's order. Without a body, the client has this answer already. */
  #judge(exchange: Exchange, headers: Headers, isFirst: boolean): { body?: FakeBody; etag?: string; receipt?: string } {
    const { path, rawQuery, ifNoneMatch: tags } = exchange;
    const endpoint = endpoints.find((one) => one.path.test(path));
    if (endpoint === undefined) throw new Fault("not_found", "");
    if (this.failure !== undefined) throw this.failure;
    this.#requireKey(exchange, headers.get("authorization"));
    const { bucket = "metadata", flag, parse = parseNothing } = endpoint;
    if (isFirst) this.#take("", tags !== undefined || isMetadataRead(rawQuery, flag) ? "metadata" : bucket, exchange);
    const inPath = endpoint.path.exec(path)?.[1];
    // As in the real server, a slug that does not decode is no project's.
    const named = inPath && (attempt(() => decodeURIComponent(inPath)) ?? "");
    const query = parse(rawQuery, named ?? "");
    const slug = query.project ?? named;
    const project = slug === undefined ? undefined : this.projects.get(slug);
    if (project === undefined && slug !== undefined) throw new Fault("project_not_found", "");
    const { shown, open } = endpoint.answer(slug ?? "", project as FakeProject, query as FakeQuery, this.projects);
    if (endpoint.bucket === undefined) return { body: open() };
    const etag = `"${createHash("sha256")
      .update(JSON.stringify([endpoint.path.source, slug, query, shown]))
      .digest("base64url")}"`;
    if (tags?.some((one) => one === "*" || one === etag)) return { etag };
    if (!query.metadataOnly && tags !== undefined) this.#take("", bucket, exchange);
    const body = open();
    if (query.metadataOnly) return { body, etag };
    if (body.entries === 0) return { body, etag };
    const firstSeq = this.#entries + 1;
    this.#entries += body.entries;
    return { body, etag, receipt: receiptName({ lane: "fake", firstSeq, lastSeq: this.#entries }) };
  }

  #requireKey({ presented }: Exchange, header: string | null): void {
    if (presented.kind === "nothing") throw new Fault("unauthorized", "");
    const text = presented.kind === "malformed" ? presented.text : (header ?? "").slice("Bearer ".length);
    if (presented.kind === "token" && text === apiKey && !this.isRevoked) return;
    this.#take(text, "unrecognized");
    throw new Fault("unauthorized", "");
  }

  #take(who: string, bucket: BucketName | "unrecognized", exchange?: Exchange): void {
    const nowUs = Math.floor(this.#nowMs() * 1000);
    const decision = take(this.#fullAtUs.get(bucket + who), policies[bucket], nowUs);
    if (exchange) exchange.rateLimit = rateLimitHeaders(policies[bucket], decision, nowUs);
    if (!decision.allowed) throw new Fault("rate_limited", "", { retryAfterS: retryAfterS(decision.retryAfterUs) });
    this.#fullAtUs.set(bucket + who, decision.fullAtUs);
  }
}

const json = (body: object, shown: unknown = body, entries = 1): FakeFound => ({
  shown,
  open: () => ({ text: JSON.stringify(body), entries }),
});
const parseNothing: NonNullable<FakeEndpoint["parse"]> = (raw) => parseQuery(noParameters, raw);

const endpoints: readonly FakeEndpoint[] = [
  {
    path: /^\/api\/v1\/organization$/,
    answer: () => json({ id, name: "Fake", slug: "fake", plan: "pro" }),
  },
  {
    path: /^\/api\/v1\/projects$/,
    answer: (_, __, ___, projects) => {
      const all = [...projects].sort(([a], [b]) => (a < b ? -1 : 1));
      return json({ projects: bounded(all).map(([slug, project]) => summaryOf(slug, project)) });
    },
  },
  {
    path: /^\/api\/v1\/projects\/([^/]+)$/,
    answer: (slug, project) => {
      const fileCount = new Set(environments.flatMap((one) => latest(project.files, one).map(identityOf))).size;
      const updatedAt = project.changedAt;
      return json({ ...summaryOf(slug, project), environments, fileCount, createdAt: begunAt, updatedAt });
    },
  },
  {
    path: /^\/api\/v1\/projects\/([^/]+)\/variables$/,
    bucket: "value",
    flag: "metadata_only",
    parse: parseVariables,
    answer: answerVariables,
  },
  {
    path: /^\/api\/v1\/projects\/([^/]+)\/accounts$/,
    bucket: "value",
    flag: "metadata_only",
    parse: parseAccounts,
    answer: answerAccounts,
  },
  { path: /^\/api\/v1\/files$/, bucket: "content", flag: "metadataOnly", parse: parseFiles, answer: answerFiles },
  { path: /^\/api\/v1\/secrets$/, bucket: "value", parse: parseSecrets, answer: answerSecrets },
];

function answerVariables(
  _: string,
  project: FakeProject,
  { environment, selection, metadataOnly, format }: FakeQuery,
): FakeFound {
  const isAsked = (name: string) =>
    selection.by === "all" ||
    (selection.by === "names" ? selection.names.includes(name) : name.startsWith(selection.prefix));
  const found = bounded(latest(project.variables, environment).filter(([name]) => isAsked(name)));
  if (format === "env") return dotenv(found);
  const variables = found.map(([key, { value, updatedAt }]) => ({ key, ...(!metadataOnly && { value }), updatedAt }));
  return json({ environment, variables });
}

function answerSecrets(slug: string, project: FakeProject, { environment, format }: FakeQuery): FakeFound {
  const found = bounded(latest(project.variables, environment));
  if (format === "env") return dotenv(found);
  const secrets = Object.fromEntries(found.map(([name, { value }]) => [name, value]));
  return json({ project: { slug }, environment, secrets }, found);
}

function dotenv(found: readonly (readonly [string, FakeItem])[]): FakeFound {
  const open = () => {
    const { text, nonportable } = renderDotenv(found.map(([name, { value }]) => ({ name, value: value as string })));
    const headers: Record<string, string> =
      nonportable.length > 0 ? { "Keyhole-Env-Nonportable": listNames(nonportable) } : {};
    return { text, type: textType, headers, entries: 1 };
  };
  return { shown: found, open };
}

function answerAccounts(_: string, { accounts }: FakeProject, { environment, metadataOnly }: FakeQuery): FakeFound {
  const found = bounded(latest(accounts, environment)).map(([name, { value, updatedAt }]) => {
    const holders = environments.filter((one) => accounts.get(one)?.has(name));
    return { name, environments: holders, updatedAt, ...(!metadataOnly && { values: value }) };
  });
  return json({ environment, accounts: found });
}

function answerFiles(slug: string, { files }: FakeProject, { environment, metadataOnly, paths }: FakeQuery): FakeFound {
  const all = bounded(latest(files, environment));
  const found = all.filter(([path]) => paths?.includes(path) ?? true);
  const records = found.map((item) => {
    const [path, { value, updatedAt }] = item;
    const bytes = Buffer.from(value as string);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const holders = environments.filter((one) =>
      latest(files, one).some((other) => identityOf(other) === identityOf(item)),
    );
    const fixed = { mode: "0600", size: bytes.length, sha256, contentType: "application/octet-stream" };
    const content = { content: bytes.toString("base64") };
    return {
      name: path.split("/").at(-1),
      path,
      ...fixed,
      environments: holders,
      updatedAt,
      ...(!metadataOnly && content),
    };
  });
  const bytes = records.reduce((sum, { size }) => sum + size, 0);
  const whole = json({ project: { slug }, environment, files: records }, records, records.length);
  const open = () => {
    if (!metadataOnly && bytes > contentBytesMax) throw new Fault("content_too_large", "");
    return whole.open();
  };
  return { ...whole, open };
}

function summaryOf(slug: string, { variables, accounts }: FakeProject) {
  const [variableCount, accountCount] = [latest(variables, null).length, latest(accounts, null).length];
  return { id, name: slug, slug, variableCount, accountCount };
}

/** The items of an environment, or those of any as they changed last, in byte order of name. */
function latest(kind: FakeProject[FakeKind], environment: Environment | null): [string, FakeItem][] {
  const found = new Map<string, FakeItem>();
  for (const [where, items] of kind) {
    if (environment !== null && environment !== where) continue;
    for (const [name, item] of items) if (item.updatedAt > (found.get(name)?.updatedAt ?? 0)) found.set(name, item);
  }
  return [...found].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** Environments that have the same content at a path hold one file. */
function identityOf([path, { value }]: readonly [string, FakeItem]): string {
  return `${path}\n${Buffer.from(value as string).toString("base64")}`;
}

function bounded<T>(items: readonly T[]): readonly T[] {
  if (items.length > itemsMax) throw new Fault("too_many_items", "");
  return items;
}

const knownPath = new RegExp(endpoints.map(({ path }) => path.source).join("|"));

async function listen(server: Server, port: number) {
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const { url: target = "", method = "", rawHeaders } = request;
    const headers = new Headers();
    for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
    // As in the real server, an address or a Host that cannot be read is no path of the API.
    const isHost = /^[\w.~%!$&'()*+,;=:[\]-]+$/.test(request.headers.host ?? "");
    const address = target.startsWith("/") ? `http://fake${target}` : target;
    const url = (isHost && attempt(() => new URL(address).href)) || "";
    const over = new AbortController();
    response.on("close", () => over.abort());
    void server.answer({ url, method, headers }, over.signal).then(async (answer) => {
      const body = await answer.arrayBuffer();
      const length = answer.body && { "Content-Length": body.byteLength };
      response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), ...length });
      response.end(Buffer.from(body));
    });
  };
  const listening = createServer(serve).on("checkExpectation", serve);
  await new Promise<void>((resolve) => listening.listen(port, "127.0.0.1", resolve));
  const address = listening.address() as { readonly port: number };
  const close = () => {
    listening.closeAllConnections();
    return new Promise<void>((resolve) => listening.close(() => resolve()));
  };
  return { url: `http://127.0.0.1:${address.port}`, close };
}
