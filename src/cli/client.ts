import { arch, platform } from "node:process";
import { version } from "../../package.json";
import type { NamedValue } from "../render/dotenv.ts";
import {
  type Asked,
  type FetchedFile,
  type FileRecord,
  judgeContents,
  judgeFiles,
  judgeVariables,
  type Selection,
  Untrustworthy,
} from "./answers.ts";
import { exits, Problem } from "./command.ts";

/** Where the API is and how patient its client is. */
export type Api = {
  /** Without a slash at its end, as in `https://keyhole.example.com/api/v1`. */
  readonly root: string;
  readonly key: string;
  /** How long one request may take, its answer included. */
  readonly timeoutMs: number;
  /** How long to keep trying one that may succeed later; 0 is not at all. */
  readonly waitMs: number;
  /** Words for people: what is being waited for. */
  readonly say: (line: string) => void;
};

/** Time and chance; tests bring their own. */
export type Clock = {
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly sleep: (durationMs: number) => Promise<void>;
  /** At least 0, less than 1. */
  readonly random: () => number;
};

/** The longest answer that is read: 8 MiB of files in base64 and their records, and room to spare. */
export const answerBytesMax = 16 * 1024 * 1024;

/**
 * The longest query that is sent. Keyhole takes 16 KiB of headers and address together, but proxies before it commonly
 * take a request line of 8 KiB.
 */
export const queryBytesMax = 7000;

/**
 * The API's client. It trusts the server with nothing but the values themselves: what comes back is whole, is what was
 * asked for and is well-formed, or it is a Problem. A request that may succeed later (429, `unavailable`, nobody listens)
 * is repeated as long as `waitMs` says and never before `Retry-After`; anything else is final at once.
 */
export class Client {
  readonly #api: Api;
  readonly #clock: Clock;

  constructor(api: Api, clock: Clock = realClock) {
    this.#api = api;
    this.#clock = clock;
  }

  /** The key, so that it can be kept from children and logs. */
  get key(): string {
    return this.#api.key;
  }

  /** The variables of one environment, by name. @throws Problem */
  variables(asked: Asked, selection: Selection = {}): Promise<NamedValue[]> {
    const query = queryOf({
      environment: asked.environment,
      keys: selection.keys?.join(","),
      prefix: selection.prefix,
    });
    return this.#ask(`/projects/${asked.project}/variables`, query, (answer) =>
      judgeVariables(answer, asked, selection),
    );
  }

  /** What is known of every file of one environment; no content. @throws Problem */
  listFiles(asked: Asked): Promise<FileRecord[]> {
    return this.#ask("/files", filesQuery(asked, { metadataOnly: "true" }), (answer) => judgeFiles(answer, asked));
  }

  /**
   * Files with their content, each of them just as it was listed.
   * @param records - what to fetch, of at most 8 MiB in all
   * @param all - these are all files of the environment, so their paths need not be sent
   * @throws Problem
   */
  fetchFiles(asked: Asked, records: readonly FileRecord[], all: boolean): Promise<FetchedFile[]> {
    const query = all ? filesQuery(asked) : `${filesQuery(asked)}${records.map(pathParameter).join("")}`;
    return this.#ask("/files", query, (answer) => judgeContents(answer, asked, records));
  }

  /** One request, repeated where that may help, and its answer once it has been judged. */
  async #ask<T>(path: string, query: string, judge: (answer: unknown) => T): Promise<T> {
    const firstMs = this.#clock.nowMs();
    for (let tries = 0; ; tries++) {
      const outcome = await this.#askOnce(path, query, judge);
      if ("value" in outcome) return outcome.value;
      const { problem, retry } = outcome;
      if (retry === undefined || this.#api.waitMs === 0) throw problem;
      const leftMs = firstMs + this.#api.waitMs - this.#clock.nowMs();
      const pauseMs = pauseOf(retry, tries, this.#clock.random(), leftMs);
      if (pauseMs > leftMs) throw gaveUp(problem, pauseMs);
      this.#api.say(
        `${problem.message}${requestWords(problem.requestId)} Trying again in ${(pauseMs / 1000).toFixed(1)} s.`,
      );
      await this.#clock.sleep(pauseMs);
    }
  }

  async #askOnce<T>(path: string, query: string, judge: (answer: unknown) => T): Promise<Outcome<T>> {
    const { root, key, timeoutMs } = this.#api;
    let requestId: string | null = null;
    try {
      const response = await fetch(`${root}${path}?${query}`, {
        headers: {
          Authorization: `Bearer ${key}`,
          Accept: "application/json",
          // What is not compressed cannot grow while it is unpacked.
          "Accept-Encoding": "identity",
          "User-Agent": `keyhole/${version} (${platform}; ${arch})`,
        },
        redirect: "manual",
        decompress: false,
        // Of a connection that breaks while it is used again fetch repeats the request, and each is on record.
        keepalive: false,
        // HTTP_PROXY would be sent the key in the clear, even of a request to this machine.
        ...(root.startsWith("http:") && { proxy: false }),
        // Whatever NODE_TLS_REJECT_UNAUTHORIZED says: it is set for other programs, and then forgotten.
        tls: { rejectUnauthorized: true },
        signal: AbortSignal.timeout(timeoutMs),
      });
      const named = response.headers.get("x-request-id");
      requestId = named !== null && /^[A-Za-z0-9._-]{1,128}$/.test(named) ? named : null;
      if (response.status !== 200) return await refusalOf(response, requestId);
      return { value: judge(parseJson(response, await readBody(response, answerBytesMax))) };
    } catch (error) {
      if (error instanceof Untrustworthy) return { problem: untrusted(error.message, requestId) };
      return failureOf(error, root, timeoutMs, requestId);
    }
  }
}

const realClock: Clock = { nowMs: () => performance.now(), sleep: Bun.sleep, random: Math.random };

/** What came of one request: a value, or a Problem and whether asking again may help. */
type Outcome<T> = { readonly value: T } | { readonly problem: Problem; readonly retry?: Retry };
/** `afterS` is the server's `Retry-After`. */
type Retry = { readonly afterS: number | undefined };

/**
 * Never before the server's word; where it gave none, half a second and twice as long each time, 15 s at most, and the
 * last one just before the time is up. Up to a tenth is added, so that a hundred jobs that were refused together do not
 * come back together.
 */
function pauseOf({ afterS }: Retry, tries: number, chance: number, leftMs: number): number {
  const leastMs = afterS === undefined ? Math.min(500 * 2 ** tries, 15_000) : afterS * 1000;
  const pauseMs = Math.ceil(leastMs * (1 + chance / 10));
  return afterS === undefined && leftMs > shortestPauseMs ? Math.min(pauseMs, leftMs) : pauseMs;
}

const shortestPauseMs = 100;

function gaveUp(problem: Problem, pauseMs: number): Problem {
  const words = `${problem.message} The next try would be in ${(pauseMs / 1000).toFixed(1)} s, and --wait does not allow that.`;
  return new Problem(problem.exitCode, problem.code, words, { requestId: problem.requestId, cause: problem });
}

function requestWords(requestId: string | null): string {
  return requestId === null ? "" : ` (request ${requestId})`;
}

/** @param parameters - in the order in which they are sent; those that are undefined are left out */
function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value ?? "")}`)
    .join("&");
}

function filesQuery(asked: Asked, more: Readonly<Record<string, string>> = {}): string {
  return queryOf({ project: asked.project, environment: asked.environment, ...more });
}

/** How a file is asked for, after other parameters. */
export function pathParameter({ path }: Pick<FileRecord, "path">): string {
  return `&path=${encodeURIComponent(path)}`;
}

/**
 * The body's bytes. Reading stops with the first piece that is too much, whatever was announced.
 * @throws Untrustworthy
 */
async function readBody(response: Response, bytesMax: number): Promise<Uint8Array> {
  const tooLong = () => new Untrustworthy(`it is longer than ${Math.floor(bytesMax / 1024)} KiB`);
  if (Number(response.headers.get("content-length") ?? 0) > bytesMax) {
    await response.body?.cancel();
    throw tooLong();
  }
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += piece.length;
    if (length > bytesMax) throw tooLong(); // leaving the loop cancels the rest
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** @throws Untrustworthy */
function parseJson(response: Response, body: Uint8Array): unknown {
  const encoding = response.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity")
    throw new Untrustworthy("it is compressed, which was not asked for");
  if (!/^application\/json(?:;|$)/i.test(response.headers.get("content-type") ?? "")) {
    throw new Untrustworthy("it is not JSON, so something other than Keyhole may have answered");
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    throw new Untrustworthy("it is not whole JSON in UTF-8");
  }
}

/** An answer other than 200, as a Problem: the status decides the exit code, the server's code and sentence the words. */
async function refusalOf(response: Response, requestId: string | null): Promise<Outcome<never>> {
  const { status } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    const words = `The server answered with a redirect (${status}), and the key is not taken elsewhere: is the address right?`;
    return { problem: new Problem(exits.failed, "redirected", words, { requestId }) };
  }
  const said = readRefusal(await readBody(response, refusalBytesMax).catch(() => new Uint8Array()));
  const exitCode = exitCodeOf(status);
  if (said === undefined) {
    const words = `The server answered ${status} and not in Keyhole's words: it may be a proxy that answered.`;
    return { problem: new Problem(exitCode, `http_${status}`, words, { requestId }) };
  }
  const hint = Object.hasOwn(hints, said.code) ? ` ${hints[said.code]}` : "";
  const problem = new Problem(exitCode, said.code, `The server answered ${said.code}: ${said.error}${hint}`, {
    requestId,
  });
  const mayPass = status === 429 || (status === 503 && said.code === "unavailable");
  return mayPass ? { problem, retry: { afterS: retryAfterOf(response) } } : { problem };
}

const refusalBytesMax = 64 * 1024;

function readRefusal(body: Uint8Array): { code: string; error: string } | undefined {
  try {
    const { code, error } = JSON.parse(new TextDecoder().decode(body)) as { code?: unknown; error?: unknown };
    const known = typeof code === "string" && /^[a-z][a-z_]{0,63}$/.test(code) && typeof error === "string";
    return known ? { code, error: error.slice(0, 6000) } : undefined;
  } catch {
    return undefined;
  }
}

/** CONTRACT, command line. What a server could not do, decryption included, is 6; what is wrong with a request is 1. */
function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return exits.unauthorized;
  if (status === 404) return exits.notFound;
  if (status === 422 || status === 429) return exits.refused;
  return status >= 500 ? exits.unavailable : exits.failed;
}

const hints: Readonly<Record<string, string>> = {
  surface_required: "This command needs a key with the surface rest_api.",
  resource_required: "Variables need a key with the resource variables, files one with the resource files.",
};

/** Whole seconds; a date, which Keyhole never sends, counts as no word. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Math.max(Number(text), 1) : undefined;
}

function untrusted(reason: string, requestId: string | null): Problem {
  const words = `The server's answer is not to be trusted: ${reason}.`;
  return new Problem(exits.failed, "invalid_answer", words, { requestId });
}

/** What `fetch` threw, as a Problem; its own messages are not shown. */
function failureOf(error: unknown, root: string, timeoutMs: number, requestId: string | null): Outcome<never> {
  const { name, code } = error as { name?: unknown; code?: unknown };
  const { origin } = new URL(root);
  const problem = (kind: string, words: string) =>
    new Problem(exits.unavailable, kind, words, { requestId, cause: error });
  if (name === "TimeoutError") {
    return { problem: problem("timeout", `${origin} did not answer within ${timeoutMs / 1000} s.`) };
  }
  const reason = typeof code === "string" && /^\w{1,60}$/.test(code) ? code : "no reason given";
  const said = problem("unreachable", `${origin} cannot be reached: ${networkFailures[reason] ?? reason}.`);
  return reason === "ECONNREFUSED" ? { problem: said, retry: { afterS: undefined } } : { problem: said };
}

const untrustedCertificate =
  "its certificate is of no authority that is known here (NODE_EXTRA_CA_CERTS may name a file with yours)";
const networkFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection broke before the answer was whole",
  ENOTFOUND: "there is no such host",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrustedCertificate,
  SELF_SIGNED_CERT_IN_CHAIN: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrustedCertificate,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrustedCertificate,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is another host's",
};
