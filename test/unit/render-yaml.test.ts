import { expect, test } from "bun:test";
import { renderYaml } from "../../src/render/yaml.ts";

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
