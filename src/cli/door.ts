import { type CommandUnknownOpts, Option } from "@commander-js/extra-typings";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { wordsOf } from "../core/words/shell.ts";
import { input, required } from "../people/desk/inputs.ts";
import { pathOf } from "./terminal/command.ts";
import { type CommandGroup, processCommand, rowOf } from "./terminal/draw.ts";
import type { CommandContext } from "./terminal/verb.ts";

/*
 * The door over SSH. sshd starts `keyhole door --person NAME` in place of whatever the client asks for, and the door
 * runs that command here with the person's rights. No shell reads it.
 */

/** Whether a command comes through the door: what takes a right, or what anybody may do. */
export function isPeoples(command: CommandUnknownOpts): boolean {
  const right = rowOf(command)?.right ?? "operator";
  return right !== "operator";
}

/** Whether a command comes through the door, or one that it groups. */
export function leadsThrough(command: CommandUnknownOpts): boolean {
  return isPeoples(command) || command.commands.some(leadsThrough);
}

/** @param enter - runs a command as a person in place of this one */
export function doorOf(
  enter: (context: CommandContext, words: readonly string[], person: string) => Promise<never>,
): CommandGroup {
  const door = processCommand({
    path: "door",
    about: "Run the command that came over SSH with a person's rights. sshd starts it: see `keyhole person ssh`.",
    examples: ["keyhole door --person ana"],
    inputs: { person: required(input("--person <name>", "who came, by their name in `keyhole person list`")) },
    action: async (context, { person }) => {
      const asked = context.env["SSH_ORIGINAL_COMMAND"];
      if (asked === undefined || asked.trim() === "") {
        const words = `You are ${person}. There is no shell here: name a command, such as ssh … project list.`;
        throw usageProblem(words);
      }
      const words = sentWords(asked);
      await enter(context, words[0] === "keyhole" ? words.slice(1) : words, person);
    },
  });
  return { rows: [door] };
}

/** Checks a command that came through the door, before it runs. @throws Problem if it is not allowed */
export function judgeCommand(command: CommandUnknownOpts): void {
  if (!isPeoples(command)) {
    throw new Problem(
      exits.unauthorized,
      "forbidden",
      `${pathOf(command)} is not for people over SSH: ask an operator.`,
    );
  }
  const local = Object.values(rowOf(command)?.inputs ?? {}).filter(({ isLocal }) => isLocal);
  const names = local.map(({ flags }) => new Option(flags).attributeName());
  const shut = names.find(
    (name) => command.getOptionValueSource(name) === "cli" && command.getOptionValue(name) !== "-",
  );
  if (shut === undefined) return;
  const instead = shut === "out" || shut === "force" ? "what is written comes on stdout" : "ask an operator";
  throw usageProblem(`--${shut} is not for people over SSH: ${instead}.`);
}

const commandBytesMax = 128 * 1024;

/** The words that came over SSH. @throws Problem if the line is too long, not UTF-8, or has an open quote */
export function sentWords(line: string): string[] {
  if (Buffer.byteLength(line) > commandBytesMax) throw usageProblem("The command is longer than 128 KiB.");
  // The runtime puts U+FFFD in place of bytes that are not UTF-8.
  if (line.includes("\0") || line.includes("\ufffd")) throw usageProblem("The command is not UTF-8 text without NUL.");
  const words = wordsOf(line);
  if (words !== undefined) return words;
  throw usageProblem("A quote or a backslash at the end of the command has nothing to close it.");
}
