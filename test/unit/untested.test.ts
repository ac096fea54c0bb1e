/** What is added without a test of its own fails here, in the quick run. The tests themselves may take longer. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { isPeoples } from "../../src/cli/door.ts";
import { pathOf } from "../../src/cli/terminal/command.ts";
import { formats } from "../../src/core/formats/format.ts";
import { buildProgram } from "../../src/main.ts";
import { contextOf } from "../support/context.ts";

const read = (file: string) => readFileSync(join(import.meta.dir, "..", file), "utf8");

/** Every file of a folder of tests, as one text. */
function textOf(folder: string): string {
  const entries = readdirSync(join(import.meta.dir, "..", folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
    .join("\n");
}

/** The commands that do something. */
function leaves(command: CommandUnknownOpts): CommandUnknownOpts[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

test("each command that comes through the door has a line in commands-rights, and each other one is run by the built program", async () => {
  const lines = read("integration/commands-rights.test.ts");
  const blackbox = textOf("blackbox");
  const isTried = (command: CommandUnknownOpts) => {
    const words = pathOf(command).replace("keyhole ", "").split(" ");
    if (isPeoples(command)) return new RegExp(`words:\\s*"${words.join(" ")}[ "]`).test(lines);
    const typed = new RegExp(`\\bkeyhole ${words.map((word) => `(-\\S+ )*${word}`).join(" ")}\\b`);
    return typed.test(blackbox) || blackbox.includes(words.map((word) => `"${word}"`).join(", "));
  };
  const untried = leaves(await buildProgram(contextOf())).filter((command) => !isTried(command));
  expect(untried.map(pathOf)).toEqual(["keyhole version"]);
});

describe("each format of variables", () => {
  test("is read back by another program, from what its own writer wrote", () => {
    const readers = read("property/formats.test.ts");
    const packages = [...readers.matchAll(/^import \{ parse as (\w+) \} from "[\w-]+";$/gm)].map(([, name]) => name);
    const reads = new RegExp(`\\b(?:pythonReads|Bun\\.spawn|Bun\\.spawnSync|${packages.join("|")})\\(`);
    const writers = new Map(
      [...read("../src/core/formats/format.ts").matchAll(/^ {2}(\w+): \["[^"]*", (?:lines\.)?(\w+)\],$/gm)].map(
        ([, format = "", writer = ""]) => [format, writer],
      ),
    );
    const unread = formats.filter((format) => {
      const [suite = ""] = new RegExp(`^describe\\("${format}", [\\s\\S]*?^\\}\\);$`, "m").exec(readers) ?? [];
      return !reads.test(suite) || !suite.includes(writers.get(format) ?? "no writer");
    });
    // `env` has a file of its own. No runner of GitHub's can be had: its rules stand in the test.
    expect(unread).toEqual(["env", "github"]);
    expect(readers).toContain("readAsRunner(text, windows)");
    expect(read("property/dotenv-readers.test.ts")).toContain("renderDotenv");
  });

  test("has a row in docs/fetch.md, which says what it is for", () => {
    const [, table = ""] = read("../docs/fetch.md").split("| format | for |");
    const cells = [...(table.split("\n\n")[0] ?? "").matchAll(/^\| (`.*?) \| \S/gm)].map(([, cell = ""]) => cell);
    const named = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
    expect(named.toSorted()).toEqual(formats.toSorted());
  });
});
