import { describe, expect, test } from "bun:test";
import { renderCsv } from "../../src/core/formats/csv.ts";
import {
  renderDocker,
  renderPowershell,
  renderShell,
  renderTfvars,
  renderToml,
  renderYaml,
} from "../../src/core/formats/lines.ts";
import { entriesOf } from "../support/entries.ts";

/** The Fault that names these variables. */
const naming = (...names: string[]) => expect.objectContaining({ detail: { names } });

describe("docker", () => {
  test("values are written unchanged, ordered by name", () => {
    const values = { B: ' "quoted" # no comment \\ $HOME ', A: "=a=", EMPTY: "", CR: "a\rb" };
    expect(renderDocker(entriesOf(values))).toBe('A==a=\nB= "quoted" # no comment \\ $HOME \nCR=a\rb\nEMPTY=\n');
  });

  describe("all values that a line cannot carry are refused by name", () => {
    const bad: [what: string, value: string][] = [
      ["a line feed", "a\nb"],
      ["a line feed at the end", "a\n"],
      ["a carriage return at the end", "a\r"],
      ["a second assignment", "a\nB=c"],
      ["64 KiB of line", "x".repeat(65_536 - 2)],
    ];
    test.each(bad)("%s", (_, value) => {
      const variables = ["K", "FINE", "L"].map((name) => ({ name, value: name === "FINE" ? "x" : value }));
      expect(() => renderDocker(variables)).toThrow(naming("K", "L"));
    });

    test("but not a line that is one byte shorter", () => {
      expect(renderDocker([{ name: "K", value: "x".repeat(65_536 - 3) }])).toHaveLength(65_536);
    });
  });
});

describe("powershell", () => {
  test("empty values, and names that differ only in case, are refused by name", () => {
    const variables = ["A", "B", "Path", "PATH"].map((name) => ({ name, value: name === "A" ? "" : "x" }));
    expect(() => renderPowershell(variables)).toThrow(naming("A", "Path", "PATH"));
  });

  test("the text is ASCII, so that no code page changes it", () => {
    expect(renderPowershell([{ name: "K", value: "\u00fc\u{1f511}\ufeff\u0085" }])).toMatch(/^[\n -~]*$/);
  });
});

/* Every value, as other programs read it back: property/formats.test.ts. */

test.each([
  ["shell", renderShell, "export N='4'\nexport YES='2'\nexport null='1'\nexport toString='3'\n", ""],
  // Quoted names, because YAML interprets some of them; and an empty mapping, not an empty file.
  ["YAML", renderYaml, '"N": "4"\n"YES": "2"\n"null": "1"\n"toString": "3"\n', "{}\n"],
  ["TOML", renderToml, 'N = "4"\nYES = "2"\nnull = "1"\ntoString = "3"\n', ""],
  ["CSV", renderCsv, 'key,value\r\nN,"4"\r\nYES,"2"\r\nnull,"1"\r\ntoString,"3"\r\n', "key,value\r\n"],
])(
  "%s has variables in the order of their names, whatever these are, and says so if there is none",
  (_, render, text, none) => {
    expect(render(entriesOf({ null: "1", YES: "2", toString: "3", N: "4" }))).toBe(text);
    expect(render([])).toBe(none);
  },
);

describe("tfvars", () => {
  const rows: [value: string, string: string][] = [
    ["", '""'],
    ['say "hi" \\\n', '"say \\"hi\\" \\\\\\n"'],
    // Templates, and what only looks like one.
    [`\${x} %{if}`, `"$\${x} %%{if}"`],
    [`$\${x} %%{if}`, `"$$\${x} %%%{if}"`],
    ["$ { $x % {", '"$ { $x % {"'],
    ["\u2028é", '"\\u2028é"'],
  ];

  test.each(rows)("%j is written as %s", (value, string) => {
    expect(renderTfvars([{ name: "K", value }])).toBe(`K = ${string}\n`);
  });

  test("names that Terraform reserves, and text that it normalizes, are refused by name", () => {
    const values = { A: "e\u0301", B: "é", C: `a${"\u0301".repeat(31)}`.normalize("NFC"), count: "x" };
    expect(() => renderTfvars(entriesOf(values))).toThrow(naming("A", "C", "count"));
  });
});
