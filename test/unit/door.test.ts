import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isPeoples, judgeCommand, sentWords } from "../../src/cli/door.ts";
import { pathOf } from "../../src/cli/terminal/command.ts";
import { quoted } from "../../src/core/words/shell.ts";
import { buildProgram } from "../../src/main.ts";
import { contextOf } from "../support/context.ts";

const anyWord = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom("'", '"', "\\", " ", "\n", "\t", "$", "`", "a", "-", "*", "~", "#", ";") }),
);
/** Neither can a word of a command line hold: NUL, and half a surrogate pair. */
const anyText = anyWord.filter((word) => !word.includes("\0") && word.isWellFormed() && !word.includes("\ufffd"));

describe("a command line over SSH", () => {
  test("has the words that were sent, whatever they hold", () => {
    fc.assert(
      fc.property(fc.array(anyText), (words) => expect(sentWords(words.map(quoted).join(" "))).toEqual(words)),
      { numRuns: 1000 },
    );
  });

  test("is read as sh reads it", () => {
    const unit = fc.constantFrom("'", '"', "\\", " ", "\n", "a", "b", "-", "é");
    const lines = ["\\\n", "a \\\n\\\n b\\\nc", ...fc.sample(fc.string({ unit, maxLength: 12 }), 400)].filter(
      (line) => wordsOrUndefined(line) !== undefined,
    );
    expect(lines.length).toBeGreaterThan(50);
    // A newline ends a command for sh, so it stands for a blank here unless it is quoted.
    const script = lines.map((line) => `set -- ${unquotedNewlinesAsBlanks(line)}\nprintf '%s\\0' "$#" "$@"\n`).join("");
    const said = Bun.spawnSync(["sh", "-c", script], { stderr: "ignore" }).stdout.toString().split("\0");
    for (const line of lines) expect([line, sentWords(line)]).toEqual([line, said.splice(0, Number(said.shift()))]);
    expect(said).toEqual([""]);
  });

  test.each([
    ["an open quote", "'a"],
    ["an open double quote", '"a'],
    ["a backslash at the end", "a\\"],
    ["another open quote", "'a'\"b"],
    ["NUL", "a\0b"],
    ["bytes that are no text", "a\ufffd"],
    ["more than 128 KiB", "x".repeat(128 * 1024 + 1)],
  ])("is refused with a sentence if it has %s", (_, line) => {
    expect(() => sentWords(line)).toThrow(/^(A quote or a backslash|The command is)/);
  });
});

function wordsOrUndefined(line: string): string[] | undefined {
  try {
    return sentWords(line);
  } catch {
    return undefined;
  }
}

function unquotedNewlinesAsBlanks(line: string): string {
  return line.replace(/'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\n/gs, (part) => (part === "\n" ? " " : part));
}

test("the door has the commands of people, and none of these", async () => {
  const program = await buildProgram(contextOf());
  const leaves = (command: typeof program): (typeof program)[] => {
    const isGroup = command.commands.length > 0 && command.registeredArguments.length === 0;
    return [...(isGroup ? [] : [command]), ...command.commands.flatMap(leaves)];
  };
  const shut = leaves(program)
    .filter((command) => !isPeoples(command))
    .map((command) => pathOf(command).replace("keyhole ", ""));
  expect(shut.toSorted()).toEqual(
    [
      ...["org create", "org plan", "org delete", "var edit", "history purge", "audit prune"],
      ...["audit accept-restore", "audit check", "export"],
      ...["run", "pull", "files pull", "compose up", "compose down", "mcp", "manifest kubernetes"],
      ...["serve", "notary", "witness", "demo", "health", "backup", "backup verify", "restore", "rotate root"],
      "rotate data",
      ...["db upgrade", "db check", "db grants"],
      ...["person add", "person ssh"],
      ...["door", "dashboard", "explain", "openapi", "completion"],
    ].toSorted(),
  );
});

test.each([
  ["audit verify --accept key:1", "--accept is not for people over SSH: ask an operator."],
  ["audit verify --public --key k", "--public is not for people over SSH: ask an operator."],
  ["audit export --out f", "--out is not for people over SSH: what is written comes on stdout."],
])("the door refuses `%s` and says what to do", async (line, sentence) => {
  const program = await buildProgram(contextOf({ person: "ann" }), "audit");
  program.exitOverride().hook("preAction", (_, command) => judgeCommand(command));
  for (const group of program.commands) for (const one of group.commands) one.exitOverride();
  const key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
  const words = line.split(" ").map((word) => (word === "k" ? key : word));
  await expect(program.parseAsync(words, { from: "user" })).rejects.toThrow(sentence);
});
