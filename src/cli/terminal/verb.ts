import { delimiter } from "node:path";
import { Command } from "@commander-js/extra-typings";
import type { Descriptor } from "../../core/settings/children.ts";
import { shellWord } from "../../core/words/shell.ts";
import type { Terminal } from "./terminal.ts";

/* What declares a command. */

/** The process and the terminal that a command runs in. */
export type CommandContext = {
  /** Who came over SSH, by their name in the roster; undefined for an operator at this machine. */
  readonly person?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  /** Whether `--json` was given: one document on stdout, and an error as one line of JSON on stderr. */
  readonly json: boolean;
  /** Writes a message for people to stderr. */
  readonly say: (line: string) => void;
  /** Resolves once all messages are written. */
  readonly flush: () => Promise<void>;
  /** The descriptors that this process was started with. */
  readonly inherited: readonly Descriptor[];
};

/**
 * How another terminal in this folder starts this program: by the name or path of the built one, or from a checkout.
 * npx keeps the Bun that it fetched in a folder of its own, where no terminal finds it.
 */
export function startedAs(
  { argv0, execPath, env }: Pick<NodeJS.Process, "argv0" | "execPath" | "env"> = process,
  built = import.meta.url.startsWith("file:///$bunfs/"),
): string {
  if (built) return shellWord(argv0.includes("/") ? execPath : argv0);
  if (execPath.includes("/_npx/")) return `npx --yes --allow-scripts=bun bun@${Bun.version} run keyhole`;
  // `bun run` adds folders to PATH that no other terminal has.
  const isAdded = (folder: string) => /\/node_modules\/\.bin$|\/bun-node-/.test(folder);
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => !isAdded(folder));
  const found = Bun.which("bun", { PATH: folders.join(delimiter) });
  return `${found === null ? shellWord(execPath) : "bun"} run keyhole`;
}

/** A command that groups others, such as `key`. The description is one sentence. */
export function noun(name: string, description: string) {
  const group = new Command(name).description(description).enablePositionalOptions();
  return group.option("--json", "print one JSON document, and errors as JSON");
}

/** A command that does something, such as `create`. The caller adds arguments, options and an action. */
export function verb(name: string, description: string, ...examples: [string, ...string[]]) {
  const heading = examples.length === 1 ? "Example:" : "Examples:";
  return noun(name, description).addHelpText("after", `\n${heading}\n${examples.map(exampleLines).join("\n")}`);
}

/** Breaks an example into lines of at most 80 columns, with the backslashes that a shell needs. */
function exampleLines(example: string): string {
  const lines = [""];
  // An option stays with its value.
  for (const word of example.match(/(?:--[a-z-]+ (?!-))?(?:"[^"]*"|\S)+/g) ?? []) {
    const line = `${lines.at(-1)} ${word}`;
    if (line.length <= 80 - "   \\".length || lines.at(-1) === "") lines[lines.length - 1] = line;
    else lines.push(`   ${word}`);
  }
  return lines.map((line) => ` ${line}`).join(" \\\n");
}
