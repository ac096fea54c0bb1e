import { expect, test } from "bun:test";
import type { Fault } from "../../src/fault.ts";
import { renderPowershell } from "../../src/render/powershell.ts";

const rows: [value: string, expression: string][] = [
  ["plain", "'plain'"],
  ["it's", "'it''s'"],
  ["''", "''''''"],
  ['$env:PATH $(id) `n "x"', "'$env:PATH $(id) `n \"x\"'"],
  ["two\nlines", "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('dHdvCmxpbmVz'))"],
  // PowerShell takes U+2019 as a single quote.
  ["it\u2019s", "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('aXTigJlz'))"],
  ["\t", "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('CQ=='))"],
];

test.each(rows)("%j is written as %s", (value, expression) => {
  expect(renderPowershell([{ name: "K", value }])).toBe(`\${env:K} = ${expression}\n`);
});

test("empty values, and names that differ only in case, are refused by name", () => {
  const variables = ["A", "B", "Path", "PATH"].map((name) => ({ name, value: name === "A" ? "" : "x" }));
  const names = () => {
    try {
      return renderPowershell(variables);
    } catch (error) {
      return (error as Fault).detail.names;
    }
  };
  expect(names()).toEqual(["A", "Path", "PATH"]);
});

test("the text is ASCII, so that no code page changes it", () => {
  expect(renderPowershell([{ name: "K", value: "\u00fc\u{1f511}\ufeff\u0085" }])).toMatch(/^[\n -~]*$/);
});
