import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { block, columnsThatFit, fitted, measure, table, withProgress } from "../../src/cli/terminal/terminal.ts";
import { excerpt, jsonLine, visible } from "../../src/core/visible.ts";
import { formatTime } from "../../src/core/words/text.ts";
import { streamTo } from "../support/context.ts";

/** Whatever a screen acts on or does not show: none of it may be in what is printed. */
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

describe("visible", () => {
  test.each([
    ["plain text, ünïcode and 日本語", "plain text, ünïcode and 日本語"],
    ["\x1b[2J", "\\u001b[2J"],
    ["a\nb\tc\rd", "a\\u000ab\\u0009c\\u000dd"],
    ["\x7f\x9b31m", "\\u007f\\u009b31m"], // U+009B is a control sequence introducer of one character
    ["file\u202egpj.exe", "file\\u202egpj.exe"], // would read "fileexe.jpg"
    ["\u2066\u2069\u200e\u061c", "\\u2066\\u2069\\u200e\\u061c"],
    ["ad\u200bmin\u200d\ufeff\u00ad\u2060", "ad\\u200bmin\\u200d\\ufeff\\u00ad\\u2060"],
    ["a\u2028b\u2029c", "a\\u2028b\\u2029c"],
    ["\u3164\u115f", "\\u3164\\u115f"], // letters that nobody sees
    ["\u{e0041}", "\\udb40\\udc41"], // tags spell invisible ASCII
    ["half \ud800 a pair", "half \\ud800 a pair"],
    ["😀", "😀"],
  ])("shows %j as %j", (text, shown) => expect(visible(text)).toBe(shown));

  test("lets nothing unseen through, and changes nothing else", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const shown = visible(text);
        expect(shown).not.toMatch(unseen);
        if (!unseen.test(text)) expect(shown).toBe(text);
      }),
    );
  });
});

test("jsonLine is one line that any parser reads back exactly and no terminal acts on", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.string({ unit: "binary" })), (document) => {
      const line = jsonLine(document);
      expect(line.endsWith("\n")).toBe(true);
      expect(line.slice(0, -1)).not.toMatch(unseen);
      expect(Object.entries(JSON.parse(line))).toEqual(Object.entries(document));
    }),
  );
});

/** Rows whose cells are set apart by bars. */
const rowsOf = (...lines: readonly string[]) => lines.map((line) => line.split("|"));

const tableOf = (rows: readonly (readonly string[])[], ...more: [screen?: number | undefined, colour?: boolean]) =>
  [...table(rows, measure(rows), ...more)].join("");

describe("table", () => {
  test("aligns columns by what they take on the screen, and leaves no blanks at the end of a line", () => {
    const rows = rowsOf("SLUG|NAME|PLAN", "a|日本|pro", "bcdef|n|free");
    expect(tableOf(rows)).toBe(["SLUG   NAME  PLAN", "a      日本  pro", "bcdef  n     free", ""].join("\n"));
  });
  test("shows a cell that would steer the terminal", () => {
    expect(tableOf([["NAME"], ["a\x1b[31mb\nc"]])).toBe("NAME\na\\u001b[31mb\\u000ac\n");
  });
  test("cuts nothing where there is no terminal", () => {
    expect(tableOf([["NAME"], ["x".repeat(500)]])).toContain("x".repeat(500));
  });
  test("cuts the widest cells to the terminal, but never the first of a row", () => {
    const text = tableOf(rowsOf("ID|NAME|PLAN", `${"i".repeat(30)}|${"n".repeat(90)}|pro`), 60);
    expect(text.split("\n")[1]).toBe(`${"i".repeat(30)}  ${"n".repeat(21)}…  pro`);
  });
  test("never cuts an id, a number or a time", () => {
    const rows = rowsOf("TIME|KEY|NAMES", `${"t".repeat(20)}|${"k".repeat(36)}|${"n".repeat(36)}`);
    expect(tableOf(rows, 80).split("\n")[1]).toBe(`${"t".repeat(20)}  ${"k".repeat(36)}  ${"n".repeat(19)}…`);
    expect(columnsThatFit(measure(rows), 80)).toBe(3);
    expect(columnsThatFit(measure(rows), 69)).toBe(3);
    expect(columnsThatFit(measure(rows), 68)).toBe(2);
    expect(columnsThatFit(measure(rows), 10)).toBe(1);
  });
  test("shows the word revoked in red, if asked, and no other", () => {
    const rows = rowsOf("ID|NAME|STATUS", "1|not revoked|revoked");
    expect(tableOf(rows, undefined, true)).toBe("ID  NAME         STATUS\n1   not revoked  \x1b[31mrevoked\x1b[39m\n");
    expect(tableOf(rows)).not.toContain("\x1b");
  });
  test("never makes a line wider than the terminal as long as twelve columns are left for each text", () => {
    const cell = fc.string({ unit: "grapheme", maxLength: 60 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("a", "bcdefgh"), cell, cell, cell)),
        fc.integer({ min: 7 + 3 * (2 + 12), max: 150 }),
        (cells, columns) => {
          for (const line of tableOf([["A", "NAME", "NAMES", "PROJECTS"], ...cells], columns).split("\n")) {
            expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
          }
        },
      ),
    );
  });
});

test("a message is broken to fit a terminal, but no command in it that somebody copies", () => {
  const command = `  keyhole ${"--option word ".repeat(9)}`;
  const screen = { isTTY: true, columns: 12 } as NodeJS.WriteStream;
  expect(fitted(`Record that now:\n${command}`, screen)).toBe(`Record that\nnow:\n${command}`);
});

describe("what strangers wrote", () => {
  const forged = `for payments${" ".repeat(60)}\u00a0\u2003\u2800\u3000STATUS  approved by security`;
  test("cannot pose as a row: runs of blanks are one blank, and lines that follow are indented", () => {
    const reason = `REASON|${forged} ${"STATUS  approved ".repeat(20)}`;
    const rows = rowsOf("ID|1", "DECIDED BY|-", reason) as [string, string][];
    const lines = block(rows, 40).trimEnd().split("\n");
    expect(lines.slice(0, 3)).toEqual(["ID          1", "DECIDED BY  -", "REASON      for payments STATUS approved"]);
    for (const line of lines.slice(3)) {
      expect(line).toMatch(/^ {12}\S/);
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40);
    }
    expect(tableOf([["NAME"], [forged]])).toBe("NAME\nfor payments STATUS approved by security\n");
  });
  test("is broken inside a word only if the word is wider than the screen", () => {
    expect(block([["REASON", "x".repeat(50)]], 40)).toBe(`REASON  ${"x".repeat(32)}\n        ${"x".repeat(18)}\n`);
  });
  test("is of bounded length and controls no terminal", () => {
    const shown = excerpt(`\x1b[2J\n\u202e${forged}${"😀".repeat(1000)}`);
    expect(shown).toStartWith("\\u001b[2J\\u000a\\u202efor payments STATUS approved by security😀");
    expect([...shown]).toHaveLength(501);
    expect(shown).toEndWith("😀…");
  });
});

test.each([
  [0, "1970-01-01T00:00:00Z"],
  [1_795_181_848_510, "2026-11-20T13:37:28Z"],
  [null, "-"],
  [undefined, "-"],
  [9_000_000_000_000_000, "no time: 9000000000000000"],
])("the time %p is shown as %s", (at, shown) => expect(formatTime(at)).toBe(shown));

test.each([
  ["of many shows on a terminal and is gone", true, 1000, "\rImporting 500 of 1000 variables\x1b[K\r\x1b[K"],
  ["of few things shows nothing, and there is nothing to take away", true, 200, ""],
  ["shows nothing if there is no terminal", false, 1000, ""],
])("progress %s", async (_, isTTY, total, shown) => {
  let text = "";
  const take = (chunk: unknown) => {
    text += String(chunk);
  };
  const stream = Object.assign(streamTo(take), { isTTY });
  const show = withProgress(stream as unknown as NodeJS.WriteStream, "Importing", "variables", async (report) => {
    report(total / 2, total);
  });
  await show;
  expect(text).toBe(shown);
});
