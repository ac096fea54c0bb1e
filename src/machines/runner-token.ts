import { version } from "../../package.json";
import { exits, Problem } from "../core/problem.ts";
import { readJson } from "./client.ts";

/** Where a job of GitHub Actions gets tokens from: the runner's variables ACTIONS_ID_TOKEN_REQUEST_URL and …_TOKEN. */
export type Runner = { readonly url: string; readonly bearer: string };

const bytesMax = 64 * 1024;

/** Asks the runner for a token of its job. @param audience - whom the token is for @throws Problem */
export async function fetchRunnerToken(runner: Runner, audience: string, timeoutMs: number): Promise<string> {
  const url = new URL(runner.url);
  url.searchParams.set("audience", audience);
  try {
    const response = await fetch(url, {
      headers: {
        Authorization: `Bearer ${runner.bearer}`,
        Accept: "application/json",
        "User-Agent": `keyhole/${version}`,
      },
      redirect: "manual",
      ...(url.protocol === "http:" && { proxy: false }),
      tls: { rejectUnauthorized: true },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer = (await readJson(response, bytesMax)) as { readonly value?: unknown } | null;
    if (response.status === 200 && typeof answer?.value === "string") return answer.value;
  } catch {} // what the runner says may hold its own secrets
  throw new Problem(exits.unavailable, "unavailable", "The runner of GitHub Actions gave no token: try again.");
}
