import { mayAsk } from "../core/json-request.ts";
import { usageProblem } from "../core/problem.ts";
import { askGiver, memberOf, type TokenContext, type TokenSource } from "./token-giver.ts";

/** Tokens of a job of GitHub Actions. They are valid for some minutes. @throws Problem if the job may have none */
export function runnerTokens({ env, audience, timeoutMs }: TokenContext): TokenSource {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: runner, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer } = env;
  if (!runner || !bearer) {
    const need = "it needs permissions: id-token: write";
    throw usageProblem(`KEYHOLE_OIDC is github, but the runner gives no tokens to this job: ${need}.`);
  }
  if (!mayAsk(runner)) throw usageProblem("ACTIONS_ID_TOKEN_REQUEST_URL is not an https URL.");
  const url = new URL(runner);
  url.searchParams.set("audience", audience);
  const headers = { Authorization: `Bearer ${bearer}`, Accept: "application/json" };
  return () => askGiver(giver, url.href, { headers, timeoutMs }, (text) => memberOf(text, "value"));
}

const giver = { name: "The runner of GitHub Actions" };
