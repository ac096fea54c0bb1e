import { expect, test } from "bun:test";
import { missingProofs } from "../support/proofs.ts";

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
