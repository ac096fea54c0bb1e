import { type Fetch, isLoopback, type JsonReply, type NoReply, requestJson, whyNoReply } from "../core/json-request.ts";
import { parseReceipt, readsHeader, receiptHeader } from "../core/receipt.ts";
import { visible } from "../core/visible.ts";

/*
 * The HTTP client of `keyhole run`, `pull`, `files pull` and `mcp`, and of the npm package, which contains this file.
 * An answer is whole, as described and about what was asked, or it is a Failure.
 */

/** How requests are sent. */
export type Wire = {
  /**
   * Gives the API key, or another bearer token, for each request, or why there is none: then the request fails so, and
   * is repeated if that may pass. What it throws is passed on.
   */
  readonly credential: Credential;
  /** How long one request may take, including its answer. */
  readonly timeoutMs: number;
  /** How long to repeat a request that may succeed later; 0 means never. */
  readonly waitMs: number;
  readonly mayPass: (failure: Failure) => boolean;
  /** Called before each pause. */
  readonly onPause?: (failure: Failure, pauseMs: number) => void;
  readonly fetch: Fetch;
  /** What the server is called in messages; by default, its origin. */
  readonly server?: string;
  readonly clock: Clock;
};

export type Credential = () => Promise<string | { readonly failure: Failure }>;

/** Monotonic time, the time of day, and randomness of at least 0 and less than 1; tests bring their own. */
export type Clock = {
  readonly nowMs: () => number;
  readonly dateMs: () => number;
  /** @param signal - ends the wait for good: the promise stays pending */
  readonly sleep: (durationMs: number, signal?: AbortSignal) => Promise<void>;
  readonly random: () => number;
};

/** What is asked. */
export type Question<T> = {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of a POST. */
  readonly post?: string;
  /** The tag of an earlier answer, if the answer may be that nothing changed. */
  readonly ifNoneMatch?: string | undefined;
  /** With a tag: how many seconds the answer may wait for a change. The request may take that much longer. */
  readonly waitS?: number | undefined;
  /** Ends the request. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the answer has the members that the API describes. */
  readonly is: (answer: unknown) => answer is T;
  /** Why the answer cannot be trusted, as a clause. */
  readonly whyNot?: (answer: T) => string | undefined;
};

/** Why there is no answer. No member contains the credential. */
export type Failure = {
  /** A code of the API, or `invalid_answer`, `redirected`, `timeout`, `unreachable`, or `http_` and a status. */
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly requestId?: string | undefined;
  /** The server's `Retry-After`, in whole seconds. */
  readonly retryAfter?: number | undefined;
  /** The network's code. */
  readonly reason?: string | undefined;
  /** No request was sent, as there was no credential for it yet. */
  readonly isTokenAwaited?: true;
  /** There is no new answer: nothing changed since the one whose tag the question has. */
  readonly isUnchanged?: true;
};

export type Reply<T> = (WireAnswer<T> | { readonly failure: Failure }) & {
  /** The server waited for a change, or would have. */
  readonly waited?: boolean;
};
type WireAnswer<T> = {
  readonly answer: T;
  readonly etag: string | undefined;
  /** The audit entries of the answer; undefined if it has no value, or the server does not say. */
  readonly receipt: string | undefined;
  /** How many answers with values the trust gives the job; undefined if it gives as many as it is asked for. */
  readonly readsPerJob?: number | undefined;
  readonly requestId?: string | undefined;
};

export const realClock: Clock = {
  nowMs: () => performance.now(),
  dateMs: () => Date.now(),
  sleep: (durationMs, signal) =>
    new Promise((resolve) => {
      const end = () => clearTimeout(timer);
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", end); // a signal may outlive many pauses
        resolve();
      }, durationMs);
      signal?.addEventListener("abort", end);
    }),
  random: Math.random,
};

/** Asks, and asks again for `waitMs` if that may help, but never before `Retry-After`. */
export async function ask<T>(wire: Wire, question: Question<T>): Promise<Reply<T>> {
  const { waitMs, mayPass, onPause, clock } = wire;
  const endMs = clock.nowMs() + waitMs;
  for (let tries = 0; ; tries++) {
    const outcome = await askNow(wire, question);
    if (!("failure" in outcome) || !mayPass(outcome.failure)) return outcome;
    const leftMs = endMs - clock.nowMs();
    const pauseMs = pauseOf(outcome.failure.retryAfter, tries, clock.random(), leftMs);
    if (pauseMs > leftMs) return outcome;
    onPause?.(outcome.failure, pauseMs);
    await clock.sleep(pauseMs);
  }
}

/** Asks, and if the wait for a change made the request fail, asks again without one. */
async function askNow<T>(wire: Wire, question: Question<T>): Promise<Reply<T>> {
  const outcome = await askOnce(wire, question);
  const { ifNoneMatch, waitS, signal } = question;
  const mayWait = ifNoneMatch !== undefined && waitS !== undefined && signal?.aborted !== true;
  if (!mayWait || !("failure" in outcome) || !mayBeOfWait(outcome.failure)) return outcome;
  return askOnce(wire, { ...question, waitS: undefined });
}

/** A proxy may cut what takes long, and a token may end while the answer waits. */
function mayBeOfWait({ status, code }: Failure): boolean {
  return status === 401 || /^(?:timeout|unreachable|http_5\d\d)$/.test(code);
}

/**
 * How long to wait: at least `Retry-After`. Without one, the backoff doubles from half a second to 15 s, and the last
 * try comes just before the time is up. A random time is added, so that clients that were refused together do not
 * return together: up to 1 s at first, twice as much after each try, at most 15 s, and no more than is left.
 */
function pauseOf(retryAfter: number | undefined, tries: number, chance: number, leftMs: number): number {
  const leastMs = retryAfter === undefined ? Math.min(500 * 2 ** tries, 15_000) : retryAfter * 1000;
  const pauseMs = Math.ceil(leastMs + chance * Math.min(1000 * 2 ** tries, 15_000));
  if (retryAfter !== undefined) return Math.max(leastMs, Math.min(pauseMs, leftMs));
  return leftMs > 100 ? Math.min(pauseMs, leftMs) : pauseMs;
}

/** The longest answer that is read: 8 MiB of files in base64, their records, and some room. */
const answerBytesMax = 16 * 1024 * 1024;

async function askOnce<T>(
  { credential, timeoutMs: answerMs, fetch, server, clock }: Wire,
  question: Question<T>,
): Promise<Reply<T>> {
  const { url, post, ifNoneMatch, signal } = question;
  const waitS = ifNoneMatch === undefined ? undefined : question.waitS;
  const timeoutMs = answerMs + (waitS ?? 0) * 1000;
  const sent = await credential();
  if (typeof sent !== "string") return sent;
  const headers = {
    "User-Agent": "keyhole-client",
    ...question.headers,
    ...(ifNoneMatch !== undefined && { "If-None-Match": ifNoneMatch }),
    ...(waitS !== undefined && { Prefer: `wait=${waitS}` }),
    Authorization: `Bearer ${sent}`,
    Accept: "application/json",
  };
  const reply = await requestJson(url, { headers, post, timeoutMs, signal, bytesMax: answerBytesMax, fetch });
  const judged =
    "failed" in reply
      ? unanswered(reply, server ?? new URL(url).origin, timeoutMs)
      : judge(reply, question, clock.dateMs());
  const header = reply.headers?.get("x-request-id") ?? "";
  const requestId = /^[A-Za-z0-9._-]{1,128}$/.exec(masked(header, sent))?.[0];
  const waited = /^wait=/i.test(reply.headers?.get("preference-applied") ?? "");
  if ("answer" in judged) return { ...judged, requestId, waited };
  const { code, message, status } = judged;
  const isSafe = masked(code, sent) === code;
  const failure = isSafe ? { ...judged, message: masked(message, sent).slice(0, 6000) } : foreign(status);
  return { failure: { ...failure, requestId }, waited };
}

/** Masks the credential, which a proxy may have quoted. A key that was cut short still tells nearly all of it. */
function masked(text: string, sent: string): string {
  return text.replaceAll(sent, "[the key]").replace(/kh_[0-9A-Za-z]{8,}/g, "[a key]");
}

function judge<T>(reply: JsonReply, { is, whyNot, ifNoneMatch }: Question<T>, dateMs: number): WireAnswer<T> | Failure {
  const { status, headers, body } = reply;
  if (status === 304) {
    if (ifNoneMatch === undefined) return untrusted("it says that nothing changed since an answer that was not named");
    return { code: "http_304", message: "Nothing changed.", status, isUnchanged: true };
  }
  if (status !== 200) return refused(reply, dateMs);
  if (!/^application\/json(?:;|$)/i.test(headers.get("content-type") ?? "")) {
    return untrusted("it is not JSON, so something other than Keyhole may have answered");
  }
  if ("wrong" in body) return untrusted(`it is ${body.wrong}`);
  if (!is(body.json)) return untrusted("it does not have the members that the API describes");
  const clause = whyNot?.(body.json);
  if (clause !== undefined) return untrusted(clause);
  const receipt = headers.get(receiptHeader) ?? "";
  const isReceipt = parseReceipt(receipt) !== undefined;
  const reads = headers.get(readsHeader);
  return {
    answer: body.json,
    etag: headers.get("etag") ?? undefined,
    receipt: isReceipt ? receipt : undefined,
    readsPerJob: reads !== null && /^[1-9]\d{0,4}$/.test(reads) ? Number(reads) : undefined,
  };
}

function untrusted(clause: string): Failure {
  return { code: "invalid_answer", message: `The server's answer cannot be trusted: ${clause}.` };
}

/** An answer with another status than 200. */
function refused({ status, headers, body }: JsonReply, dateMs: number): Failure {
  if (status >= 300 && status < 400) {
    const message = `The server answered with a redirect (${status}). The key is not sent elsewhere: check the address.`;
    return { code: "redirected", message, status };
  }
  const retryAfter = parseRetryAfter(headers.get("retry-after") ?? "", dateMs);
  const { code, error } = (("json" in body ? body.json : null) ?? {}) as { code?: unknown; error?: unknown };
  const isKeyholes = typeof code === "string" && /^[a-z][a-z_]{0,63}$/.test(code) && typeof error === "string";
  if (!isKeyholes) return { ...foreign(status), retryAfter };
  // A line of its own could be a command to a CI runner.
  return { code, message: `The server answered ${code}: ${visible(error)}`, status, retryAfter };
}

/**
 * Reads `Retry-After`, which a proxy may write as a date.
 * @param dateMs - the time of day, from which a date counts
 * @returns whole seconds, from 1 to 1,000,000,000; undefined for other text
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function parseRetryAfter(header: string, dateMs: number): number | undefined {
  if (/^\d{1,18}$/.test(header)) return boundedS(Number(header));
  if (!httpDate.test(header)) return undefined;
  const atMs = Date.parse(header.endsWith("GMT") ? header : `${header} GMT`);
  return Number.isNaN(atMs) ? undefined : boundedS((atMs - dateMs) / 1000);
}

function boundedS(seconds: number): number {
  return Math.min(Math.max(Math.ceil(seconds), 1), 1e9);
}

/** The three forms of RFC 9110, section 5.6.7. `Date.parse` takes nearly any text. */
const httpDate =
  /^(?:\w{3}, \d\d \w{3} \d{4}|\w{6,9}, \d\d-\w{3}-\d\d) \d\d:\d\d:\d\d GMT$|^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

function foreign(status = 0): Failure {
  const message = `The server answered ${status}, but not in Keyhole's format: a proxy may have answered.`;
  return { code: `http_${status}`, message, status };
}

function unanswered(reply: NoReply, server: string, timeoutMs: number): Failure {
  const message = `${server} ${whyNoReply(reply, timeoutMs)}.`;
  return { code: reply.failed, message, ...(reply.failed === "unreachable" && { reason: reply.reason }) };
}

/**
 * The API root, such as `https://keyhole.example.com/api/v1`, from it or the server's origin.
 * @param setting - what the text is called in the sentence that says what is wrong with it
 * @param way - what to do in place of sending the key in the clear
 */
export function parseApiRoot(
  setting: string,
  text: string,
  mayBePlain: (hostname: string) => boolean,
  way: string,
): { readonly root: string } | { readonly wrong: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const example = "such as https://keyhole.example.com";
  if (url === undefined || !/^https?:$/.test(url.protocol)) return { wrong: `${setting} must be a URL ${example}.` };
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    return { wrong: `${setting} must be a URL without a user, a query and a fragment, ${example}.` };
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname) && !mayBePlain(url.hostname)) {
    const risk = "where others on the network could read the key";
    return { wrong: `${setting} is plain http to another machine, ${risk}: ${way}.` };
  }
  if (url.pathname === "/") return { root: `${url.origin}/api/v1` };
  if (/\/api\/v1\/?$/.test(url.pathname)) return { root: `${url.origin}${url.pathname.replace(/\/$/, "")}` };
  return { wrong: `${setting} must be the server's origin or its API root, which ends in /api/v1.` };
}

/** Whether a text is an API key. Any other may be another secret that was put there by mistake: it is never sent. */
export function isApiKey(text: string): boolean {
  return /^kh_[0-9A-Za-z]{49}$/.test(text);
}
