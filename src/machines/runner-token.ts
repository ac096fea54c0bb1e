import { guardedFetch } from "../core/guarded-fetch.ts";
import { mayAsk, requestJson, whyNoReply } from "../core/json-request.ts";
import { exits, Problem, usageProblem } from "../core/problem.ts";

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
): () => Promise<string> {
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
    const why = "failed" in reply ? `: it ${whyNoReply(reply, timeoutMs)}` : ": try again";
    const answer = "status" in reply && reply.status === 200 && "json" in reply.body ? reply.body.json : null;
    const { value: text } = (answer ?? {}) as { readonly value?: unknown };
    // What the runner says may hold its own secrets.
    if (typeof text !== "string") {
      throw new Problem(exits.unavailable, "unavailable", `The runner of GitHub Actions gave no token${why}.`);
    }
    last = { text, atMs: performance.now() };
    return text;
  };
}

const tokenUseMs = 60_000;
