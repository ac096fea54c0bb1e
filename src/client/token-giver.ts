import { attempt } from "../core/attempt.ts";
import { guardedFetch } from "../core/guarded-fetch.ts";
import { isLoopback, requestJson, whyNoReply } from "../core/json-request.ts";
import { usageProblem } from "../core/problem.ts";
import { type Credential, type Failure, parseRetryAfter } from "./wire.ts";

/* How a machine asks for the token that it sends in place of an API key, and what is said if it gets none. */

/** What a source of tokens works with. */
export type TokenContext = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whom the tokens are for. */
  readonly audience: string;
  readonly timeoutMs: number;
};

/** Gives a token. @throws NoToken */
export type TokenSource = () => Promise<string>;

/** Who gives a token, or something on the way to one. */
export type Giver = {
  /** Its name, as a message begins with it. */
  readonly name: string;
  /** Refusals that end by themselves, beside 429 and 5xx. */
  readonly passing?: readonly (number | string)[];
  /** What to do about a status, a code or a `timeout`. */
  readonly hints?: Readonly<Record<string | number, string>>;
  /** The code of a refusal, found in its text. Nothing else of an answer is shown: it may hold secrets. */
  readonly code?: RegExp;
};

/** Why there is no token. */
export class NoToken extends Error {
  readonly failure: Failure;

  /** @param passes - whether asking again may help */
  constructor({ name }: Pick<Giver, "name">, why: string, passes: boolean, retryAfter?: number) {
    super(why);
    const message = `${name} gave no token: ${why}`;
    this.failure = { code: "unavailable", message, ...(passes && { isTokenAwaited: true, retryAfter }) };
  }
}

/** A credential that keeps each token for a minute, or for half the time that is left of it, and then asks again. */
export function tokensOf(source: TokenSource): Credential {
  let last: { readonly text: string; readonly untilMs: number } | undefined;
  return async () => {
    if (last !== undefined && performance.now() <= last.untilMs) return last.text;
    try {
      const text = await source();
      last = { text, untilMs: performance.now() + Math.min(tokenUseMs, leftMsOf(text) / 2) };
      return text;
    } catch (error) {
      if (error instanceof NoToken) return { failure: error.failure };
      throw error;
    }
  };
}

const tokenUseMs = 60_000;

/** How long a token goes on to be valid, by this machine's clock. */
function leftMsOf(token: string): number {
  const payload = attempt(() => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()));
  const { exp } = (payload ?? {}) as { readonly exp?: unknown };
  return typeof exp === "number" ? exp * 1000 - Date.now() : Number.POSITIVE_INFINITY;
}

/** Whether a text has the form of a token. Any other may be another secret, so it is never sent. */
export function isToken(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}

/** How a giver is asked. */
type GiverRequest = {
  readonly headers: Readonly<Record<string, string>>;
  /** GET, unless it says otherwise. */
  readonly method?: "POST" | "PUT";
  readonly body?: string;
  readonly timeoutMs: number;
};

/**
 * Asks a giver once. No redirect is followed, and 64 KiB are read at most.
 * @param take - finds in the text of a 200 what was asked for
 * @throws NoToken
 */
export async function askGiver<T>(
  giver: Giver,
  url: string,
  { headers, method, body, timeoutMs }: GiverRequest,
  take: (text: string) => T | undefined,
): Promise<T> {
  const reply = await requestJson(url, {
    headers,
    timeoutMs,
    bytesMax: 64 * 1024,
    parse: (text) => text,
    fetch: (to, init) => guardedFetch(to, { ...init, method: method ?? "GET", ...(body !== undefined && { body }) }),
  });
  const { passing = [], hints = {}, code } = giver;
  const hint = (...of: readonly (string | number)[]) => of.map((one) => hints[one]).find((one) => one !== undefined);
  const sentence = (why: string, hinted: string | undefined) => `${why}.${hinted === undefined ? "" : ` ${hinted}`}`;
  if ("failed" in reply) {
    const passes = reply.reason === undefined || passingReasons.includes(reply.reason);
    throw new NoToken(giver, sentence(`it ${whyNoReply(reply, timeoutMs)}`, hint(reply.failed)), passes);
  }
  const { status, headers: got, body: found } = reply;
  const text = "json" in found ? String(found.json) : "";
  const given = status === 200 ? take(text) : undefined;
  if (given !== undefined) return given;
  if (status === 200) throw new NoToken(giver, "its answer has none.", false);
  const named = code?.exec(text)?.[1] ?? "";
  const passes = status === 429 || status >= 500 || passing.some((one) => one === status || one === named);
  const retryAfter = parseRetryAfter(got.get("retry-after") ?? "", Date.now());
  const why = `it answered ${status}${named === "" ? "" : ` (${named})`}`;
  throw new NoToken(giver, sentence(why, hint(named, status)), passes, retryAfter);
}

/** Failures of the network that end by themselves. A wrong name or certificate stays wrong. */
const passingReasons = ["ECONNREFUSED", "ECONNRESET", "EAI_AGAIN", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"];

/** A text member of a JSON object. */
export function memberOf(text: string, name: string): string | undefined {
  const value = attempt(() => (JSON.parse(text) as Readonly<Record<string, unknown>>)[name]);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * Where a cloud tells a machine about itself: its link-local address, or this machine. Plain http goes nowhere else.
 * @param setting - the cloud's own setting for it
 * @param text - what the setting says, if it is set
 * @throws Problem
 */
export function metadataOrigin(setting: string, text: string | undefined, usual: string): string {
  const url = URL.parse(text || usual);
  if (url !== null && isMetadata(url)) return url.origin;
  throw usageProblem(`${setting} must be http to a link-local address, such as ${usual}.`);
}

/** Whether a URL is plain http to a link-local address of a cloud, or to this machine. */
export function isMetadata({ protocol, hostname, username }: URL): boolean {
  const isLinkLocal = /^169\.254(?:\.\d+){2}$/.test(hostname) || linkLocal6.includes(hostname);
  return protocol === "http:" && username === "" && (isLinkLocal || isLoopback(hostname));
}

/** AWS's for instances and for pods, and Google's. */
const linkLocal6 = ["[fd00:ec2::254]", "[fd00:ec2::23]", "[fd20:ce::254]"];

/** How long a metadata server may take: it is near, or not there. */
export function metadataMs(timeoutMs: number): number {
  return Math.min(timeoutMs, 10_000);
}
