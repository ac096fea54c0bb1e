import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { equivalents } from "../proofs/equivalents.ts";
import { mutate } from "../support/mutate.ts";

/** The faults of a line, and the line as each makes it: what it does is compared, not how it is written. */
test.each<[source: string, given: number[], before: unknown, faults: Record<string, unknown>]>([
  ["return a < b;", [1, 1], false, { "a < b moved by one": true, "a < b true": true, "a < b false": false }],
  [
    "return a >= 1;",
    [1],
    true,
    {
      "a >= 1 moved by one": false,
      "a >= 1 true": true,
      "a >= 1 false": false,
      "function f(a, b) { return a >= 1; } plus one": false,
    },
  ],
  ["if (!a) return b; return a;", [0, 5], 5, { "!a always": 5, "!a never": 0 }],
  ["return a === 1 && b === 2;", [1, 3], false, { "a === 1 left out": false, "b === 2 left out": true }],
  ["return a === 1 || b === 2;", [1, 3], true, { "a === 1 left out": false, "b === 2 left out": true }],
  ["a += 1; return a;", [1], 2, { "a += 1; left out": 1 }],
  ["return [a, b];", [1, 2], [1, 2], { "a left out": [2], "b left out": [1] }],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a source
  ["return `${a}-${b}`;", [1, 2], "1-2", { "a left out": "-2", "b left out": "1-" }],
  ["return a ? b : 0;", [1, 2], 2, { "a always": 2, "a never": 0 }],
])("%s", (source, given, before, faults) => {
  const { text, mutants } = mutate(`function f(a, b) { ${source} }`, 1);
  const call = (wanted: number) => new Function("$m", `${text}; return f;`)((one: number) => one === wanted)(...given);
  const told = mutants.map(({ text, fault }, index) => [`${text} ${fault}`, call(index + 1)] as const);
  expect(call(0)).toEqual(before);
  expect(Object.fromEntries(told)).toMatchObject(faults);
});

test("an await is left out, an error's words are not changed, and lines stay where they are", async () => {
  const source = `async function f(a: number): Promise<void> {
  await g(a);
  if (a) throw new Error(\`\${a} is \${1 + a}\`);
}`;
  const { text, mutants } = mutate(source, 1);
  expect(mutants.map(({ line, text, fault }) => `${line}: ${text} ${fault}`).sort()).toEqual([
    "2: await g(a) not awaited",
    "2: await g(a); left out",
    "3: a always",
    "3: a never",
  ]);
  expect(text.split("\n").map((line) => /await|throw/.exec(line)?.[0])).toEqual([
    undefined,
    "await",
    "throw",
    undefined,
  ]);
});

test("a statement of SQL has its conditions exchanged", () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a source
  const { text, mutants } = mutate("const f = (a) => sql`${a} <= 1 and b is null`;", 7);
  expect(mutants.map(({ fault }) => fault)).toEqual(["<=: <", "and: or", "is null: is not null"]);
  const sql = (parts: string[]) => parts.join("?");
  const call = (wanted: number) =>
    new Function("$m", "sql", `${text}; return f;`)((one: number) => one === wanted, sql)(0);
  expect([0, 7, 8, 9].map(call)).toEqual([
    "? <= 1 and b is null",
    "? < 1 and b is null",
    "? <= 1 or b is null",
    "? <= 1 and b is not null",
  ]);
});

test("each fault that is accepted can be put into its file", () => {
  const gone = equivalents.filter(([file, text, fault]) => {
    const { mutants } = mutate(readFileSync(join(import.meta.dir, "../..", file), "utf8"), 1);
    return !mutants.some((one) => one.text === text && one.fault === fault);
  });
  expect(gone).toEqual([]);
});
