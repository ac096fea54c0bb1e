/**
 * Whatever an agent sends to /mcp: no answer is a 5xx, holds a value or has a character that a screen would act on. A
 * call is an error or has exactly the members that its tool promises.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { resources } from "../../src/kinds/people.ts";
import { tools } from "../../src/serve/api/tools.ts";
import { answerOf } from "../support/answer.ts";
import { impatient } from "../support/attack.ts";
import { canary } from "../support/canary.ts";
import { mcpClient, mcpRequest } from "../support/mcp.ts";
import { parts, seed } from "../support/seed.ts";
import { describeBoth } from "../support/world.ts";

const odd = fc.oneof(
  fc.constantFrom("web", "production", "staging", "API_TOKEN", "NEW", "\u202eNEW", "__proto__", "../web", ""),
  fc.string({ unit: "binary" }),
  fc.jsonValue(),
);
const likely = {
  project: fc.constantFrom("web", "web", "none"),
  environment: fc.constantFrom("production", "staging"),
  name: fc.constantFrom("API_TOKEN", "NEW", `${canary}_NAME`),
  names: fc.array(fc.constantFrom("API_TOKEN", "NEW"), { minLength: 1 }),
  reason: fc.string({ unit: "binary", maxLength: 600 }),
  id: fc.constantFrom(Bun.randomUUIDv7(), "1"),
};
type Argument = keyof typeof likely;

/** Arguments that have the names that the tool takes, and now and then an odd one. */
const likelyCalls = fc.constantFrom(...Object.entries(tools)).chain(([name, { input }]) => {
  const taken = Object.keys((input as { properties: object }).properties) as Argument[];
  const args = fc.record(
    Object.fromEntries(
      taken.map((one) => [one, fc.oneof({ weight: 9, arbitrary: likely[one] as fc.Arbitrary<unknown> }, odd)]),
    ),
  );
  return fc.tuple(fc.constant(name), args as fc.Arbitrary<unknown>);
});
const oddCalls = fc.tuple(
  fc.oneof(fc.constantFrom(...Object.keys(tools)), odd.map(String)),
  fc.oneof(fc.dictionary(fc.constantFrom(...Object.keys(likely)), odd), odd) as fc.Arbitrary<unknown>,
);
const calls = fc.oneof(likelyCalls, oddCalls);
const bodies = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.string(),
);

const members: Readonly<Record<string, string>> = {
  list_projects: "projects",
  list_variables: "environment,variables",
  list_accounts: "accounts,environment",
  list_files: "environment,files,project",
  check_required: "environment,missing",
  request_variable: "expiresAt,id,status",
  get_request: "id,reason,status",
};

describeBoth("an odd message", (w, dialect) => {
  const runs = dialect === "sqlite" ? 3000 : 300;
  test.each(parts(5))(`gets no value and no 5xx: ${runs} of them, part %i`, async (part) => {
    const { key } = await w.place({
      name: "Web \u202eshop",
      variables: { production: { API_TOKEN: `${canary}-1`, [`${canary}_NAME`]: `${canary}-2` } },
      accounts: [{ name: "a\u2066b", environments: ["production"], values: { user: `${canary}-3` } }],
      files: [{ path: "a.pem", environments: ["production"], content: `${canary}-4` }],
      key: { surfaces: ["mcp_server"], resources: [...resources] },
    });
    const { handle } = mcpClient(w, ({ gate }) => ({ gate: { ...gate, nowUs: impatient() } }));
    let found = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 9, arbitrary: calls }, { weight: 1, arbitrary: bodies }), async (sent) => {
        const isCall = typeof sent !== "string";
        const call = isCall ? ([sent[0].replace(/[^\x21-\x7e]/g, "?") || "?", sent[1] as object] as const) : undefined;
        const request = mcpRequest({ key, ...(call ? { call } : { body: sent as string }) });
        const { status, text } = await answerOf(await handle(request));
        expect(status).toBeLessThan(500);
        expect(text).not.toMatch(new RegExp(`${canary}-\\d`));
        expect(text.replaceAll("\n", "")).not.toMatch(/\p{C}/u);
        const { result } = JSON.parse(text || "{}") as { result?: { isError?: true; structuredContent: object } };
        if (result === undefined || call === undefined) return;
        const names = Object.keys(result.structuredContent).sort().join();
        if (result.isError) expect(names).toBe("code,error");
        else expect(names).toBe(members[call[0]] as string);
        found += result.isError ? 0 : 1;
      }),
      { numRuns: runs / 5, seed: seed + part },
    );
    expect(found).toBeGreaterThan(runs / 100);
  });
});
