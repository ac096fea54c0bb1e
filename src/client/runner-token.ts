import { guardedFetch } from "../core/guarded-fetch.ts";
import { type JsonReply, mayAsk, type NoReply, requestJson, whyNoReply } from "../core/json-request.ts";
import { usageProblem } from "../core/problem.ts";
import { type Credential, type Failure, parseRetryAfter } from "./wire.ts";

/**
 * Gives tokens of a job of GitHub Actions. They are valid for some minutes, and each is used for one.
 * @param env - has the runner's variables
 * @param audience - the server that the tokens are for
 */
export function runnerTokens(
  {
    ACTIONS_ID_TOKEN_REQUEST_URL: runner,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer,
  }: Readonly<Record<string, string | undefined>>,
  audience: string,
  timeoutMs: number,
): Credential {
  if (!runner || !bearer) {
    const need = "it needs permissions: id-token: write";
    throw usageProblem(`KEYHOLE_OIDC is github, but the runner gives no tokens to this job: ${need}.`);
  }
  if (!mayAsk(runner)) throw usageProblem("ACTIONS_ID_TOKEN_REQUEST_URL is not an https URL.");
  const url = new URL(runner);
  url.searchParams.set("audience", audience);
  const headers = { Authorization: `Bearer ${bearer}`, Accept: "application/json" };
  let last: { readonly text: string; readonly atMs: number } | undefined;
  return async () => {
    if (last !== undefined && performance.now() - last.atMs <= tokenUseMs) return last.text;
    const reply = await requestJson(url.href, { headers, timeoutMs, bytesMax: 64 * 1024, fetch: guardedFetch });
    const answer = "status" in reply && reply.status === 200 && "json" in reply.body ? reply.body.json : null;
    const { value: text } = (answer ?? {}) as { readonly value?: unknown };
    if (typeof text !== "string") return { failure: failureOf(reply, timeoutMs) };
    last = { text, atMs: performance.now() };
    return text;
  };
}

const tokenUseMs = 60_000;

/**
 * Asking again costs nothing, so all that is no refusal may pass. What the runner says is not shown: it may hold its own
 * secrets.
 */
function failureOf(reply: JsonReply | NoReply, timeoutMs: number): Failure {
  const none = { code: "unavailable", message: "The runner of GitHub Actions gave no token: " };
  if ("failed" in reply) {
    const isFinal = reply.reason !== undefined && !passing.includes(reply.reason);
    const message = `${none.message}it ${whyNoReply(reply, timeoutMs)}.`;
    return isFinal ? { ...none, message } : { ...none, message, isTokenAwaited: true };
  }
  const { status, headers } = reply;
  const message = `${none.message}${status === 200 ? "its answer has none" : `it answered ${status}`}.`;
  if (status !== 429 && status < 500) return { ...none, message };
  const retryAfter = parseRetryAfter(headers.get("retry-after") ?? "", Date.now());
  return { ...none, message, retryAfter, isTokenAwaited: true };
}

/** Failures of the network that end by themselves. A wrong name or certificate stays wrong. */
const passing = ["ECONNREFUSED", "ECONNRESET", "EAI_AGAIN", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"];
