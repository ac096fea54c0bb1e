import { describe, expect, test } from "bun:test";
import { renderCsv } from "../../src/formats/csv.ts";
import {
  renderDocker,
  renderPowershell,
  renderShell,
  renderTfvars,
  renderToml,
  renderYaml,
} from "../../src/formats/lines.ts";

/** The Fault that names these variables. */
const naming = (...names: string[]) => expect.objectContaining({ detail: { names } });

describe("docker", () => {
  test("values are written unchanged, ordered by name", () => {
    const text = renderDocker([
      { name: "B", value: ' "quoted" # no comment \\ $HOME ' },
      { name: "A", value: "=a=" },
      { name: "EMPTY", value: "" },
      { name: "CR", value: "a\rb" },
    ]);
    expect(text).toBe('A==a=\nB= "quoted" # no comment \\ $HOME \nCR=a\rb\nEMPTY=\n');
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
    expect(() => renderPowershell(variables)).toThrow(naming("A", "Path", "PATH"));
  });

  test("the text is ASCII, so that no code page changes it", () => {
    expect(renderPowershell([{ name: "K", value: "\u00fc\u{1f511}\ufeff\u0085" }])).toMatch(/^[\n -~]*$/);
  });
});

describe("shell", () => {
  const rows: [value: string, line: string][] = [
    ["", "export K=''\n"],
    ["plain", "export K='plain'\n"],
    ["two\nlines\n", "export K='two\nlines\n'\n"],
    ["it's", "export K='it'\\''s'\n"],
    ["'", "export K=''\\'''\n"],
    ["''", "export K=''\\'''\\'''\n"],
    ["$(id) `id` $HOME \\", "export K='$(id) `id` $HOME \\'\n"],
    ["$'x'", "export K='$'\\''x'\\'''\n"],
    ["a\r\nb", "export K='a\r\nb'\n"],
  ];

  test.each(rows)("%j is written as %j", (value, line) => {
    expect(renderShell([{ name: "K", value }])).toBe(line);
  });

  test("commands are ordered by name", () => {
    const text = renderShell([
      { name: "B", value: "2" },
      { name: "a", value: "3" },
      { name: "A", value: "1" },
    ]);
    expect(text).toBe("export A='1'\nexport B='2'\nexport a='3'\n");
    expect(renderShell([])).toBe("");
  });
});

describe("yaml", () => {
  const rows: [value: string, scalar: string][] = [
    ["", '""'],
    ["no", '"no"'],
    ["12:30:45", '"12:30:45"'],
    ["0o17", '"0o17"'],
    ['say "hi" \\', '"say \\"hi\\" \\\\"'],
    ["two\nlines\n", '"two\\nlines\\n"'],
    ["\t\r\u0007\u007f", '"\\t\\r\\u0007\\u007f"'],
    // Some readers take these for line ends and fold them into a space.
    ["\u0085\u2028\u2029", '"\\u0085\\u2028\\u2029"'],
    ["für 🔑", '"für 🔑"'],
    ["\ufeff\uffff\u{1fffe}", '"\\ufeff\\uffff\\U0001fffe"'],
  ];

  test.each(rows)("%j is written as %s", (value, scalar) => {
    expect(renderYaml([{ name: "K", value }])).toBe(`"K": ${scalar}\n`);
  });

  test("names are quoted too, because YAML interprets some of them, and ordered", () => {
    const variables = ["null", "YES", "N"].map((name) => ({ name, value: "x" }));
    expect(renderYaml(variables)).toBe('"N": "x"\n"YES": "x"\n"null": "x"\n');
  });

  test("no variables are an empty mapping, not an empty file", () => {
    expect(renderYaml([])).toBe("{}\n");
  });
});

describe("toml", () => {
  const rows: [value: string, string: string][] = [
    ["", '""'],
    ["12", '"12"'],
    ['say "hi" \\', '"say \\"hi\\" \\\\"'],
    ["two\nlines\t\r", '"two\\nlines\\t\\r"'],
    ["\b\u007f\u2028", '"\\u0008\\u007f\\u2028"'],
    [`für 🔑 \${x}`, `"für 🔑 \${x}"`],
  ];

  test.each(rows)("%j is written as %s", (value, string) => {
    expect(renderToml([{ name: "K", value }])).toBe(`K = ${string}\n`);
  });

  test("keys of JavaScript's objects are carried too, ordered by name", () => {
    const variables = ["toString", "constructor"].map((name) => ({ name, value: "x" }));
    expect(renderToml(variables)).toBe('constructor = "x"\ntoString = "x"\n');
    expect(renderToml([])).toBe("");
  });
});

describe("csv", () => {
  const rows: [value: string, cell: string][] = [
    ["", '""'],
    [" a,b ", '" a,b "'],
    ['say "hi"', '"say ""hi"""'],
    ["two\r\nlines\n", '"two\r\nlines\n"'],
    // A spreadsheet would evaluate these. Programs need them unchanged.
    ["=1+1", '"=1+1"'],
    ["-----BEGIN KEY-----", '"-----BEGIN KEY-----"'],
    ['"'.repeat(65_536), `"${'""'.repeat(65_536)}"`],
  ];

  test.each(rows)("a value is one quoted cell (row %#)", (value, cell) => {
    expect(renderCsv([{ name: "K", value }])).toBe(`key,value\r\nK,${cell}\r\n`);
  });

  test("no variables are the header alone", () => {
    expect(renderCsv([])).toBe("key,value\r\n");
  });
});

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
    const variables = [
      { name: "A", value: "e\u0301" },
      { name: "B", value: "é" },
      { name: "C", value: `a${"\u0301".repeat(31)}`.normalize("NFC") },
      { name: "count", value: "x" },
    ];
    expect(() => renderTfvars(variables)).toThrow(naming("A", "C", "count"));
  });
});
