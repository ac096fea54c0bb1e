import { arch, platform } from "node:process";
import { version } from "../../package.json";
import { exits, Problem } from "../core/problem.ts";
import type { NamedValue } from "../formats/dotenv.ts";
import {
  type Asked,
  type FetchedFile,
  type FileRecord,
  type Selection,
  Untrustworthy,
  validateContents,
  validateFiles,
  validateVariables,
} from "./answers.ts";
import { type McpAnswer, type McpCall, mcpCall, validateMcpAnswer } from "./mcp.ts";

/** Where the API is, such as `https://keyhole.example.com/api/v1`, and how patient its client is. */
export type Api = {
  readonly root: string;
  /** Gives the API key, or a token of a trusted issuer, for each request. */
  readonly credential: () => Promise<string>;
  /** How long one request may take, including its answer. */
  readonly timeoutMs: number;
  /** How long to repeat a request that may succeed later; 0 means never. */
  readonly waitMs: number;
  /** Tells people what the client is waiting for. */
  readonly say: (line: string) => void;
};

/** Monotonic time, and randomness of at least 0 and less than 1; tests bring their own. */
export type Clock = {
  readonly nowMs: () => number;
  readonly sleep: (durationMs: number) => Promise<void>;
  readonly random: () => number;
};

/** The longest answer that is read: 8 MiB of files in base64, their records, and some room. */
export const answerBytesMax = 16 * 1024 * 1024;

/** The longest query that is sent: proxies in front of Keyhole commonly take a request line of 8 KiB. */
export const queryBytesMax = 7000;

/**
 * The API's client. An answer is whole, well-formed and about what was asked, or it is a Problem. Only a request that
 * may succeed later (429, `unavailable`, connection refused) is repeated, for `waitMs` and never before `Retry-After`.
 */
export class Client {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #tags: Map<string, string> | undefined;
  #presented = "";

  /** @param tags - see {@link conditional} */
  constructor(api: Api, clock: Clock = realClock, tags?: Map<string, string>) {
    this.#api = api;
    this.#clock = clock;
    this.#tags = tags;
  }

  /**
   * The same client for questions that are asked again and again: the variables and the records of files.
   * @param tags - of the answers so far, by question. The client adds to them. If it would get the answer of a tag
   *   again, it throws {@link Unchanged}
   */
  conditional(tags: Map<string, string>): Client {
    return new Client(this.#api, this.#clock, tags);
  }

  /** The API key or token that was last sent, for keeping it from child processes and logs. */
  get key(): string {
    return this.#presented;
  }

  /** The variables of one environment. @throws Problem */
  variables(asked: Asked, selection: Selection = {}): Promise<NamedValue[]> {
    const { keys, prefix } = selection;
    const query = queryOf({ environment: asked.environment, keys: keys?.join(","), prefix });
    const question = { path: `/projects/${asked.project}/variables?${query}`, tags: this.#tags };
    return this.#ask(question, (answer) => validateVariables(answer, asked, selection));
  }

  /** The records of all files of one environment, without content. @throws Problem */
  listFiles(asked: Asked): Promise<FileRecord[]> {
    const query = queryOf({ ...asked, metadataOnly: "true" });
    return this.#ask({ path: `/files?${query}`, tags: this.#tags }, (answer) => validateFiles(answer, asked));
  }

  /** Files with content, each exactly as listed. With `all` of the environment no paths are sent. @throws Problem */
  fetchFiles(asked: Asked, records: readonly FileRecord[], all: boolean): Promise<FetchedFile[]> {
    const query = queryOf(asked) + (all ? "" : records.map(pathParameter).join(""));
    return this.#ask({ path: `/files?${query}` }, (answer) => validateContents(answer, asked, records));
  }

  /**
   * Calls a method of the Model Context Protocol at the server's `/mcp`.
   * @returns the JSON-RPC answer: a result or an error
   * @throws Problem
   */
  callMcp(method: string, params: Readonly<Record<string, unknown>>): Promise<McpAnswer> {
    return this.#ask({ path: "/mcp", call: mcpCall(method, params) }, validateMcpAnswer);
  }

  async #ask<T>(question: Question, validate: (answer: unknown) => T): Promise<T> {
    const firstMs = this.#clock.nowMs();
    for (let tries = 0; ; tries++) {
      const outcome = await this.#askOnce(question, validate);
      if ("value" in outcome) return outcome.value;
      const { problem, afterS } = outcome;
      const { message, requestId } = problem;
      const leftMs = firstMs + this.#api.waitMs - this.#clock.nowMs();
      const pauseMs = pauseOf(afterS, tries, this.#clock.random(), leftMs);
      const pause = `${(pauseMs / 1000).toFixed(1)} s`;
      if (pauseMs > leftMs) {
        const hint =
          this.#api.waitMs === 0
            ? `To try again until it answers, add --wait ${Math.max(60, Math.ceil((afterS ?? 0) * 1.1))}s.`
            : `The next try would be in ${pause}, which --wait does not allow.`;
        const words = `${message} ${hint}`;
        throw new Problem(problem.exitCode, problem.code, words, { requestId, cause: problem });
      }
      const request = requestId === null ? "" : ` (request ${requestId})`;
      this.#api.say(`${message}${request} Trying again in ${pause}.`);
      await this.#clock.sleep(pauseMs);
    }
  }

  /** @throws Problem if it is pointless to ask again, or Unchanged */
  async #askOnce<T>(
    { path, tags, call }: Question,
    validate: (answer: unknown) => T,
  ): Promise<{ value: T } | Transient> {
    const { root, credential, timeoutMs } = this.#api;
    this.#presented = await credential();
    const tag = tags?.get(path);
    let requestId: string | null = null;
    try {
      // The protocol's path is outside the API's root.
      const url = call === undefined ? `${root}${path}` : root.replace(/\/api\/v1$/, path);
      const response = await fetch(url, {
        ...(call && { method: "POST", body: call.body }),
        headers: {
          ...call?.headers,
          ...(tag !== undefined && { "If-None-Match": tag }),
          Authorization: `Bearer ${this.#presented}`,
          Accept: "application/json",
          // An answer that is not compressed cannot grow while it is unpacked.
          "Accept-Encoding": "identity",
          "User-Agent": `keyhole/${version} (${platform}; ${arch})`,
        },
        redirect: "manual",
        decompress: false,
        // On a reused connection that breaks, fetch repeats the request by itself, and each one is audited.
        keepalive: false,
        // HTTP_PROXY would get the key in the clear, even for a request to this machine.
        ...(root.startsWith("http:") && { proxy: false }),
        // NODE_TLS_REJECT_UNAUTHORIZED is ignored: people set it for other programs and forget it.
        tls: { rejectUnauthorized: true },
        signal: AbortSignal.timeout(timeoutMs),
      });
      const header = response.headers.get("x-request-id");
      requestId = /^[A-Za-z0-9._-]{1,128}$/.test(header ?? "") && this.#masked(header ?? "") === header ? header : null;
      if (response.status === 304 && tag !== undefined) throw new Unchanged();
      if (response.status !== 200) return await refusalOf(response, requestId, (text) => this.#masked(text));
      const value = validate(await readJson(response, answerBytesMax));
      const etag = response.headers.get("etag") ?? "";
      if (/^"[0-9A-Za-z_-]{43}"$/.test(etag)) tags?.set(path, etag);
      return { value };
    } catch (error) {
      if (error instanceof Problem || error instanceof Unchanged) throw error;
      if (!(error instanceof Untrustworthy)) return failureOf(error, root, timeoutMs, requestId);
      const words = `The server's answer cannot be trusted: ${this.#masked(error.message)}.`;
      throw new Problem(exits.failed, "invalid_answer", words, { requestId });
    }
  }

  /** Text of an answer, in case a proxy quotes the key. A key that was cut short still tells nearly all of it. */
  #masked(text: string): string {
    return text.replaceAll(this.#presented, "[the key]").replace(/kh_[0-9A-Za-z]{8,}/g, "[a key]");
  }
}

/** What is asked of the server. */
type Question = {
  /** Below the API's root, with its query. */
  readonly path: string;
  /** The tags of earlier answers, if the answer may be that it is unchanged. */
  readonly tags?: Map<string, string> | undefined;
  readonly call?: McpCall;
};

/** Thrown in place of an answer that a {@link Client.conditional} client has had before. */
export class Unchanged extends Error {
  override readonly name = "Unchanged";
}

/** How a file is asked for, after other parameters. */
export function pathParameter({ path }: Pick<FileRecord, "path">): string {
  return `&path=${encodeURIComponent(path)}`;
}

/** The clock of every client that is given no other. */
export const realClock: Clock = { nowMs: () => performance.now(), sleep: Bun.sleep, random: Math.random };

/** A failure that may pass. `afterS` is the server's `Retry-After`. */
type Transient = { readonly problem: Problem; readonly afterS: number | undefined };

/**
 * How long to wait: at least `Retry-After`. Without one, the backoff doubles from half a second to 15 s, and the last try
 * comes just before the time is up. A random time is added, so that many that were refused together do not return
 * together: up to 1 s at first, twice as much after each try, at most 15 s, and no more than is left.
 */
function pauseOf(afterS: number | undefined, tries: number, chance: number, leftMs: number): number {
  const leastMs = afterS === undefined ? Math.min(500 * 2 ** tries, 15_000) : afterS * 1000;
  const pauseMs = Math.ceil(leastMs + chance * Math.min(1000 * 2 ** tries, 15_000));
  if (afterS !== undefined) return Math.max(leastMs, Math.min(pauseMs, leftMs));
  return leftMs > 100 ? Math.min(pauseMs, leftMs) : pauseMs;
}

/** @param parameters - in sending order; undefined ones are left out */
function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value ?? "")}`)
    .join("&");
}

/** The JSON of an answer. Reading stops at the first chunk that exceeds the bound. @throws Untrustworthy */
export async function readJson(response: Response, bytesMax: number): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    // Leaving the loop cancels the rest.
    if (length > bytesMax) throw new Untrustworthy(`it is longer than ${bytesMax / 1024} KiB`);
    chunks.push(chunk);
  }
  if (!/^application\/json(?:;|$)/i.test(response.headers.get("content-type") ?? "")) {
    throw new Untrustworthy("it is not JSON, so something other than Keyhole may have answered");
  }
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks)));
  } catch {
    throw new Untrustworthy("it is not complete JSON in UTF-8");
  }
}

/** An answer other than 200: its status decides the exit code. @throws Problem if it is final */
async function refusalOf(
  response: Response,
  requestId: string | null,
  masked: (text: string) => string,
): Promise<Transient> {
  const { status } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    const words = `The server answered with a redirect (${status}). The key is not sent elsewhere: check the address.`;
    throw new Problem(exits.failed, "redirected", words, { requestId });
  }
  const refusal = await readRefusal(response);
  const exitCode = exitCodeOf(status);
  if (refusal === undefined || masked(refusal.code) !== refusal.code) {
    const words = `The server answered ${status}, but not in Keyhole's format: a proxy may have answered.`;
    throw new Problem(exitCode, `http_${status}`, words, { requestId });
  }
  const { code, error } = refusal;
  const hint = Object.hasOwn(hints, code) ? ` ${hints[code]}` : "";
  // The server's own words are about a header, which nobody sees here.
  const words = status === 429 ? "too many requests for now." : masked(error).slice(0, 6000);
  const problem = new Problem(exitCode, code, `The server answered ${code}: ${words}${hint}`, { requestId });
  if (status === 429 || (status === 503 && code === "unavailable")) return { problem, afterS: retryAfterOf(response) };
  throw problem;
}

async function readRefusal(response: Response): Promise<{ code: string; error: string } | undefined> {
  const body = await readJson(response, 64 * 1024).catch(() => undefined);
  const { code, error } = (body ?? {}) as { code?: unknown; error?: unknown };
  const known = typeof code === "string" && /^[a-z][a-z_]{0,63}$/.test(code) && typeof error === "string";
  return known ? { code, error } : undefined;
}

/** 6 is what the server could not do, decryption included; 1 is a wrong request. */
function exitCodeOf(status: number): number {
  if (status === 401 || status === 403) return exits.unauthorized;
  if (status === 404) return exits.notFound;
  if (status === 422 || status === 429) return exits.refused;
  return status >= 500 ? exits.unavailable : exits.failed;
}

const hints: Readonly<Record<string, string>> = {
  surface_required:
    "Commands and the CI action need a key with the surface rest_api, the default; `keyhole mcp` needs mcp_server, and ci_action is for /secrets alone.",
  resource_required: "Variables need a key with the resource variables, files one with the resource files.",
};

/** Whole seconds. Keyhole never sends a date, so a date is ignored. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Math.max(Number(text), 1) : undefined;
}

/** An error that `fetch` threw; its message is not shown. @throws Problem if it is final */
function failureOf(error: unknown, root: string, timeoutMs: number, requestId: string | null): Transient {
  const { name, code } = error as { name?: unknown; code?: unknown };
  const { origin } = new URL(root);
  const more = { requestId, cause: error };
  if (name === "TimeoutError") {
    throw new Problem(exits.unavailable, "timeout", `${origin} did not answer within ${timeoutMs / 1000} s.`, more);
  }
  const reason = typeof code === "string" && /^\w{1,60}$/.test(code) ? code : "no reason given";
  const words = `${origin} cannot be reached: ${networkFailures[reason] ?? reason}.`;
  const problem = new Problem(exits.unavailable, "unreachable", words, more);
  if (reason === "ECONNREFUSED") return { problem, afterS: undefined };
  throw problem;
}

const untrustedCertificate =
  "its certificate comes from an unknown authority (NODE_EXTRA_CA_CERTS may name a file with yours)";
const networkFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection broke before the answer was complete",
  ENOTFOUND: "there is no such host",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrustedCertificate,
  SELF_SIGNED_CERT_IN_CHAIN: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT: untrustedCertificate,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrustedCertificate,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrustedCertificate,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate belongs to another host",
};
