import { guardedFetch } from "../core/guarded-fetch.ts";
import { requestJson } from "../core/json-request.ts";
import { exits, Problem } from "../core/problem.ts";

/** Where a job of GitHub Actions gets tokens from: the runner's variables ACTIONS_ID_TOKEN_REQUEST_URL and …_TOKEN. */
export type Runner = { readonly url: string; readonly bearer: string };

/** Asks the runner for a token of its job. @param audience - the server that the token is for @throws Problem */
export async function fetchRunnerToken(runner: Runner, audience: string, timeoutMs: number): Promise<string> {
  const url = new URL(runner.url);
  url.searchParams.set("audience", audience);
  const headers = { Authorization: `Bearer ${runner.bearer}`, Accept: "application/json" };
  const reply = await requestJson(url.href, { headers, timeoutMs, bytesMax: 64 * 1024, fetch: guardedFetch });
  if ("status" in reply && reply.status === 200 && "json" in reply.body) {
    const { value } = (reply.body.json ?? {}) as { readonly value?: unknown };
    if (typeof value === "string") return value;
  }
  // What the runner says may hold its own secrets.
  throw new Problem(exits.unavailable, "unavailable", "The runner of GitHub Actions gave no token: try again.");
}
