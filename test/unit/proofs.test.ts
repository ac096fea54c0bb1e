import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { missingProofs, stalePatches } from "../support/proofs.ts";

const report = `<testsuites name="bun test"><testsuite name="a">
<testcase name="refuses &quot;a&quot; and b" classname="a key" time="0.1" file="test/unit/keys.test.ts" line="1" />
</testsuite></testsuites>`;

test.each([
  ['"refuses"', 0],
  ['"a key … and b"', 0],
  ['"refuses c"', 1],
  ['"refuses"; `unit/other`: "refuses"', 1],
])("the page's row %s names tests that did not run: %d", (cell, count) => {
  const page = `| defence | patch | test |\n| one | another | \`unit/keys\`: ${cell} |\n`;
  expect(missingProofs("docs/maintainers/proofs.md", page, report)).toHaveLength(count);
});

const root = join(import.meta.dir, "../..");
const textsOf = (glob: string) =>
  new Map(
    Array.from(
      new Bun.Glob(glob).scanSync({ cwd: root, dot: true }),
      (file) => [file, readFileSync(join(root, file), "utf8")] as const,
    ),
  );

test("each patch of the pages names what is in the files that it names", () => {
  const sources = textsOf("{src,drizzle,docs,.ci,bench,test}/**/*.{ts,tsx,js,css,sql,patch,py,conf,yml,yaml}");
  const others = textsOf("docs/deploy/*file");
  const pages = [...textsOf("docs/maintainers/proofs*.md")];
  const stale = pages.flatMap(([page, text]) => stalePatches(page, text, new Map([...sources, ...others])));
  expect([pages.length > 5, stale]).toEqual([true, []]);
});

test.each([
  ["no `renderHeld` (`core/held.ts`)", 0],
  ["no `renderNothing` (`core/held.ts`)", 1],
  ["no `renderHeld` (`core/fault.ts`)", 1],
  ["no `renderHeld` (`core/nothing.ts`)", 2],
])("the patch %s is stale: %d", (patch, count) => {
  const sources = textsOf("src/core/*.ts");
  expect(stalePatches("a page", `| a defence | ${patch} | a test |`, sources)).toHaveLength(count);
});
