import { describe, expect, test } from "bun:test";
import { Client } from "../../src/client/client.ts";
import { runnerTokens } from "../../src/client/runner-token.ts";
import { tokensOf } from "../../src/client/token-giver.ts";
import { honestly, liarStarter, type Reply, type Truth } from "../support/liar.ts";

const truth: Truth = { project: "web", environment: "production", variables: { A: "one" }, files: [] };
const startLiar = liarStarter();
const bearer = "bearer-of-the-runner";
const given: Reply = { body: { value: "a.b.c", count: 1 } };
const reset: Reply = { raw: "" };

/** Reads the variables with the job's token, from a runner that gives these answers, the last one again and again. */
async function read(answers: readonly Reply[], waitMs: number) {
  const runner = await startLiar(({ count }) => answers[Math.min(count, answers.length - 1)] ?? given);
  const server = await startLiar((question) => honestly(truth, question));
  const env = { ACTIONS_ID_TOKEN_REQUEST_URL: runner.origin, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer };
  const credential = tokensOf(runnerTokens({ env, audience: "https://keyhole.example.com", timeoutMs: 10_000 }));
  const said: string[] = [];
  const pauses: number[] = [];
  let nowMs = 0;
  const sleep = async (ms: number) => {
    pauses.push(ms);
    nowMs += ms;
  };
  const clock = { nowMs: () => nowMs, dateMs: () => 0, sleep, random: () => 0 };
  const api = { root: `${server.origin}/api/v1`, credential, timeoutMs: 10_000, waitMs };
  const client = new Client({ ...api, say: (line) => said.push(line) }, clock);
  const outcome = await client.variables({ project: "web", environment: "production" }).catch((error: Error) => error);
  return { outcome, said, pauses, asked: runner.questions.length, read: server.questions.length };
}

describe("a runner that gives no token yet", () => {
  test.each<[what: string, answers: Reply[], pauses: number[]]>([
    ["503 twice", [{ status: 503 }, { status: 503 }, given], [500, 1000]],
    ["429 with Retry-After", [{ status: 429, headers: { "Retry-After": "2" } }, given], [2000]],
    ["502 with a web page", [{ status: 502, body: "<html>", headers: { "Content-Type": "text/html" } }, given], [500]],
    ["a reset", [reset, given], [500]],
  ])("is asked again within --wait: %s", async (_, answers, pauses) => {
    const found = await read(answers, 20_000);
    expect(found).toMatchObject({ outcome: [{ name: "A", value: "one" }], pauses, asked: answers.length, read: 1 });
    expect(found.said[0]).toStartWith("The runner of GitHub Actions gave no token: it ");
    expect(found.said[0]).toContain("Trying again in ");
    expect(found.said.join("")).not.toContain(bearer);
  });

  test("is asked once without --wait, which the message names", async () => {
    const { outcome, asked } = await read([{ status: 503 }], 0);
    expect(asked).toBe(1);
    expect(outcome).toMatchObject({ exitCode: 6, code: "unavailable" });
    expect((outcome as Error).message).toBe(
      "The runner of GitHub Actions gave no token: it answered 503. To try again until it answers, add --wait 60s.",
    );
  });

  test("is not waited for longer than --wait, the server included", async () => {
    const { outcome, pauses, read: reads } = await read([{ status: 503 }], 20_000);
    expect(outcome).toMatchObject({ exitCode: 6, code: "unavailable" });
    expect([pauses.reduce((sum, ms) => sum + ms, 0), reads]).toEqual([20_000, 0]);
  });

  test("is not asked before Retry-After is over", async () => {
    const { outcome, asked } = await read([{ status: 429, headers: { "Retry-After": "30" } }, given], 20_000);
    expect([asked, (outcome as Error).message]).toEqual([
      1,
      expect.stringContaining("The next try would be in 30.0 s"),
    ]);
  });
});

test.each<[what: string, answer: Reply]>([
  ["401", { status: 401 }],
  ["403 with Retry-After", { status: 403, headers: { "Retry-After": "1" } }],
  ["404", { status: 404 }],
  ["a redirect", { status: 302, headers: { Location: "https://elsewhere.example" } }],
  ["no token", { body: { count: 0 } }],
  ["no JSON", { body: "a.b.c", headers: { "Content-Type": "text/plain" } }],
])("what a runner says for good is final: %s", async (_, answer) => {
  const { outcome, pauses, asked } = await read([answer, given], 20_000);
  expect([asked, pauses]).toEqual([1, []]);
  expect(outcome).toMatchObject({ exitCode: 6, code: "unavailable" });
  expect((outcome as Error).message).toMatch(/gave no token: it[^:]*\.$/);
});
