import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../src/core/fault.ts";
import { listNames, renderDotenv } from "../../src/core/formats/dotenv.ts";
import { entriesOf } from "../support/entries.ts";
import { nastyValue, nastyValues } from "../support/readers/nasty.ts";

describe("one value", () => {
  test.each([
    ["", "K="],
    ["dGhpcyBpcw+/==", "K=dGhpcyBpcw+/=="],
    ["=ls", "K='=ls'"], // zsh would insert the path of `ls`
    ["two words", "K='two words'"],
    ["don't panic", 'K="don\'t panic"'],
    ["$(pwd)", "K='$(pwd)'"],
    ["C:\\Temp\\", "K=C:\\Temp\\\n"],
    ["a:=\\", 'K="a:=\\\\"'],
    ['{\n "a": "b"\n}', 'K=\'{\n "a": "b"\n}\''],
    ["one\r\ntwo", 'K="one\\r\\ntwo"'],
    ['a"b\rc', "K='a\"b\rc'"], // no form works for most readers; this one works for shells
    ['{"msg":"it\'s #1"}', 'K="{\\"msg\\":\\"it\'s #1\\"}"'], // some readers begin a comment there
    ['{"msg":"it\'s\u2028\'"}', 'K="{\\"msg\\":\\"it\'s\u2028\'\\"}"'], // dotenv strips quotes after U+2028
    ["it's $5 `x` \\", 'K="it\'s \\$5 \\`x\\` \\\\"'],
    ["I'm at $(pwd)", 'K="I\'m at \\$"\'(\'"pwd)"'],
    ["it's\u2028$(a) #b", 'K="it\'s\u2028\\$"\'(\'"a) #b"'], // the comment does not end in the value
    ['a\'b\n"c"', 'K="a\'b\\n\\"c\\""'],
  ])("%j", (value, line) => expect(renderDotenv([{ name: "K", value }]).text).toBe(`${line}\n`));

  test("is written as the documented rules say, which are regular expressions", () => {
    for (const value of nastyValues) expect(write(value)).toBe(writeByExpression(value));
    const tricky = fc.string({ unit: fc.constantFrom(..."a=:'\"\\{") });
    const anything = fc.oneof(nastyValue, fc.string({ unit: "binary" }), tricky);
    fc.assert(
      fc.property(anything, (value) => expect(write(value)).toBe(writeByExpression(value))),
      { numRuns: 5000 },
    );
  });

  test("of 64 KiB is written in milliseconds, whatever it contains", () => {
    const inside = [..."x=\\\"'$`\n\r# ", "$(", "''", '""', 'x"\\', "x=", "x:=", '\\"', "{}"];
    for (const before of ["", "x", "x'", "x\"'", '"']) {
      for (const part of inside) {
        for (const after of ["", "'", '"', "\\", "!'", "$(", "'$("]) {
          const value = (before + part.repeat(65536)).slice(0, 65536 - after.length) + after;
          write(value); // 3 ms when measured; in quadratic time, none of these would leave enough for the others
        }
      }
    }
  });
});

describe("a file", () => {
  test("without variables is empty", () => expect(renderDotenv([])).toEqual({ text: "", nonportable: [] }));

  test("is ordered by the bytes of the names", () => {
    const variables = ["b", "A", "a", "_", "B", "A_", "A1"].map((name) => ({ name: `${name}x`, value: "1" }));
    expect(renderDotenv(variables).text).toBe("A1x=1\nA_x=1\nAx=1\nBx=1\n_x=1\nax=1\nbx=1\n");
  });

  test("ends with the values that end in a backslash, separated so that no reader joins the next line", () => {
    const values = { A: "a b\\", B: "B\\", C: "it's $(x)\\", D: "d", E: "E:\\", F: "it's\\", G: "" };
    expect(renderDotenv(entriesOf(values)).text).toBe(
      [
        ...["D=d", "G=", "B=B\\", "", "E=E:\\", "", 'A="a b\\\\"', '# "', 'C="it\'s \\$"\'(\'"x)\\\\"', '# "'],
        ...['F="it\'s\\\\"', ""],
      ].join("\n"),
    );
  });

  test("does not change the caller's list", () => {
    expect(renderDotenv(Object.freeze(entriesOf({ B: "", A: "" }))).text).toBe("A=\nB=\n");
  });
});

describe("a value that no harmless text can carry", () => {
  test.each([
    ["a command, an apostrophe and a line break", "it's $(pwd)\n"],
    ["a command, a line break and a backslash at the end", "$(pwd)\r\\"],
    ["a command, an apostrophe, and U+2028 after a #", "'$(pwd) #\u2028B=c"],
    ["a # before the command, and U+2029 after it", "a#b $(pwd) '\u2029B=c"],
    ["a NUL", "a\0b"],
    ["a lone surrogate", "a\ud800"],
  ])("stops the whole file: %s", (_, value) => expect(() => renderDotenv([{ name: "A", value }])).toThrow(Fault));

  test("is named together with all others like it, and never shown", () => {
    const variables = ["it's $(pwd)\nsecret", "fine", "secret\0"].map((value, at) => ({ name: `NAME_${at}`, value }));
    const fault = { code: "env_unrepresentable", detail: { names: ["NAME_0", "NAME_2"] } };
    expect(() => renderDotenv(variables)).toThrow(expect.objectContaining(fault));
    expect(() => renderDotenv(variables)).toThrow(/^(?!.*secret).*NAME_0, NAME_2/s);
  });

  const names = ["", "A B", "A=$(touch x)\nB", "a.b", "1A", "é", "_", "__proto__"];
  test.each(names)("cannot be written under the name %j either", (name) => {
    expect(() => renderDotenv([{ name, value: "1" }])).toThrow(Fault);
  });
});

describe("portable", () => {
  test.each([
    ...["", "plain", "two words", "it's", 'say "x"', "a\nb", "a\\b", "$", "a $ b", "$.x", "$-", "100%", "`x`"],
    ...["\u2028"],
  ])("yes: %j", (value) => expect(renderDotenv([{ name: "A", value }]).nonportable).toEqual([]));

  test.each([
    ...["a\r", "a\\", "a\\\\b", "a\\$", "$A", "$a", "$_", "$1", "a${", "$(", 'it\'s "x"', "it's \\", "it's $"],
    ...["it's `x`"],
  ])("no: %j", (value) => expect(renderDotenv([{ name: "A", value }]).nonportable).toEqual(["A"]));

  test("names are in the order of the file", () => {
    const variables = ["C", "A", "B"].map((name) => ({ name, value: name === "B" ? "" : "$x" }));
    expect(renderDotenv(variables).nonportable).toEqual(["A", "C"]);
  });
});

describe("the header that lists nonportable names", () => {
  test("lists the names", () => expect(listNames(["A", "B"])).toBe("A, B"));

  test("is complete up to 4096 bytes, and is cut between names beyond that", () => {
    const names = Array.from({ length: 512 }, (_, at) => `N${String(at).padStart(5, "0")}`); // 8 bytes each, with ", "
    expect(listNames([...names.slice(0, 511), "N0000511"])).toHaveLength(4096);
    const cut = listNames([...names, "B"]);
    expect(cut.length).toBeLessThanOrEqual(4096);
    expect(cut).toEndWith("N00510, ...");
  });
});

function write(value: string): string | undefined {
  try {
    return renderDotenv([{ name: "K", value }]).text;
  } catch {
    return undefined;
  }
}

/** The documented rules, as regular expressions that would need too much time or memory for long values. */
function writeByExpression(value: string): string | undefined {
  const special = /["\\$`]/.test(value);
  const escaped = value.replace(/["\\$`]/g, "\\$&");
  if (value.includes("\0") || !value.isWellFormed()) return undefined;
  if (/^(?:[A-Za-z0-9_./@%+,:-]|(?<=[^:])=)*$/.test(value)) return `K=${value}\n`;
  if (/^(?:[A-Za-z0-9_./@%+,:\\-]|(?<=[^:])=)*\\$/.test(value)) return `K=${value}\n\n`;
  if (!special && /\r/.test(value)) return `K="${value.replace(/\r/g, "\\r").replace(/\n/g, "\\n")}"\n`;
  if (!special && /['\n]/.test(value)) return `K="${value}"\n`;
  if (!/'|\\$/.test(value)) return `K='${value}'\n`;
  const bare = /^[A-Za-z0-9_./@%+,:{}[\]-](?:[A-Za-z0-9_./@%+,:{}[\]-]|(?<=[^:'"])=|'[^']*'|"(?:[^"\\]|\\[\s\S])*")*$/;
  if (!/[#$`\n\r\u2028\u2029]/.test(value) && bare.test(value)) return `K=${value}\n`;
  if (/\$\(/.test(value)) {
    // Without the second of these, dotenv finds a variable after the comment.
    return /[\r\n]|#[\s\S]*[\u2028\u2029]/.test(value)
      ? undefined
      : `K="${escaped.split("\\$(").join("\\$\"'('\"")}"\n`;
  }
  if (/"/.test(value)) return `K="${escaped.replace(/\r/g, "\\r").replace(/\n/g, "\\n")}"\n`;
  return `K="${escaped}"\n`;
}
