import { expect, test } from "bun:test";
import { renderShell } from "../../src/render/shell.ts";

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
