import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Proof } from "../proofs/proof.ts";
import { tables } from "../proofs/tables.ts";
import { newFolder } from "../support/folder.ts";
import { missingProofs } from "../support/proof-pages.ts";
import { holds, staleParts, tryProof } from "../support/proofs.ts";

const root = join(import.meta.dir, "../..");
const proofs = Object.values(tables).flat();

test("each edit of a proof applies to its file as it is, and each test of one has its title", () => {
  expect(proofs.flatMap((proof) => staleParts(proof, root))).toEqual([]);
});

test("no two proofs make the same promise, or are the same", () => {
  const [promises, edits] = [proofs.map(({ promise }) => promise), proofs.map((one) => JSON.stringify(one.edits))];
  expect(promises.filter((one, at) => promises.indexOf(one) !== at)).toEqual([]);
  expect(edits.filter((one, at) => edits.indexOf(one) !== at)).toEqual([]);
});

test("the page says how many proofs there are of each", () => {
  const page = readFileSync(join(root, "docs/maintainers/proofs.md"), "utf8");
  const lines = Object.entries(tables).map(([about, { length }]) => `| ${about} | ${length} |`);
  expect(page.split("\n").filter((line) => /^\|[^|]*\| \d+ \|$/.test(line))).toEqual(lines);
});

const planted: Proof = {
  promise: "only 1 is taken",
  edits: [["src/takes.ts", "value === 1", "true"]],
  fails: ["unit/takes", "takes 1 … and not 2"],
};

test.each<[what: string, change: Partial<Proof>, verdict: string, isHeld: boolean]>([
  ["a proof that holds", {}, "failed", true],
  ["a defence that no test needs", { edits: [["src/takes.ts", "value > 0 && ", ""]] }, "survived", false],
  ["an edit that does not apply", { edits: [["src/takes.ts", "value === 3", "true"]] }, "does not apply", false],
  ["an edit of a text that stands there twice", { edits: [["src/takes.ts", "value", "1"]] }, "does not apply", false],
  ["an edit that does not compile", { edits: [["src/takes.ts", "=>", "=> )"]] }, "did not run", false],
  ["a test that is not there", { fails: ["unit/takes", "takes 3"] }, "did not run", false],
  ["a hang", { edits: [["src/takes.ts", "value === 1", "(() => { for (;;); })()"]] }, "hung", false],
  [
    "a hang that counts",
    { edits: [["src/takes.ts", "value > 0", "(() => { for (;;); })()"]], hangs: true },
    "hung",
    true,
  ],
])("%s is told", async (_, change, verdict, isHeld) => {
  const folder = newFolder();
  for (const name of ["src", "test/unit"]) mkdirSync(join(folder, name), { recursive: true });
  const source = "export const takes = (value: number) => value > 0 && value === 1;\n";
  writeFileSync(join(folder, "src/takes.ts"), source);
  writeFileSync(
    join(folder, "test/unit/takes.test.ts"),
    `import { expect, test } from "bun:test";
import { takes } from "../../src/takes.ts";
test("takes 1, on SQLite, and not 2", () => expect([takes(1), takes(2)]).toEqual([true, false]));`,
  );
  const proof = { ...planted, ...change };
  const told = await tryProof(proof, { folder, limitMs: verdict === "hung" ? 1000 : 60_000 });
  expect([told, holds(proof, told)]).toEqual([verdict as typeof told, isHeld]);
  expect(readFileSync(join(folder, "src/takes.ts"), "utf8")).toBe(source);
});

const report = `<testsuites name="bun test"><testsuite name="a">
<testcase name="refuses &quot;a&quot; and b" classname="a key" time="0.1" file="test/unit/keys.test.ts" line="1" />
</testsuite></testsuites>`;

test.each([
  ['"refuses"', 0],
  ['"a key … and b"', 0],
  ['"refuses c"', 1],
  ['"refuses"; `unit/other`: "refuses"', 1],
])("the page's row %s names tests that did not run: %d", (cell, count) => {
  const page = `| advisory | where | what | test |\n| one | a | b | \`unit/keys\`: ${cell} |\n`;
  expect(missingProofs("docs/maintainers/proofs-advisories.md", page, report)).toHaveLength(count);
});
