import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { wordsOf } from "../core/words.ts";
import { type CommandContext, pathOf, verb } from "../terminal/command.ts";

/*
 * The door over SSH. sshd starts `keyhole door --person NAME` in place of whatever the client asks for, and the door
 * runs that command here with the person's rights. No shell reads it.
 */

/** The commands that come through the door; all others are for operators and machines. */
const commands: ReadonlySet<string> = new Set(
  [
    ...["org list", "project create", "project list", "project environments", "project rename", "project delete"],
    ...["var set", "var get", "var list", "var diff", "var delete", "var copy", "var import", "var export"],
    ...[
      "account set",
      "account get",
      "account list",
      "account delete",
      "file put",
      "file get",
      "file list",
      "file delete",
    ],
    ...["key create", "key list", "key show", "key revoke", "key rotate"],
    ...["trust add", "trust list", "trust show", "trust revoke", "trust test"],
    ...["request list", "request show", "request approve", "request reject"],
    ...["history", "rollback", "access", "expiring", "whoami", "version"],
    ...["audit list", "audit show", "audit export", "audit verify"],
  ].map((path) => `keyhole ${path}`),
);

/** Options that write a file of this machine, or that only an operator may use. Others that read one take `-`. */
const shutOptions = ["out", "force", "accept"];

/** Whether a command comes through the door. @param path - such as `keyhole var set` */
export function isPeoples(path: string): boolean {
  return commands.has(path);
}

/** Whether a command comes through the door, or one that it groups. @param path - such as `keyhole var` */
export function leadsThrough(path: string): boolean {
  return [...commands].some((one) => one === path || one.startsWith(`${path} `));
}

/** `keyhole door`. @param enter - runs a command as a person, and ends the process */
export function doorCommand(
  context: CommandContext,
  enter: (words: readonly string[], person: string) => Promise<void>,
) {
  return verb(
    "door",
    "Run the command that came over SSH with a person's rights. sshd starts it: see `keyhole person ssh`.",
    "keyhole door --person ana",
  )
    .requiredOption("--person <name>", "required: who came, by their name in `keyhole person list`")
    .action(async ({ person }) => {
      const asked = context.env["SSH_ORIGINAL_COMMAND"];
      if (asked === undefined || asked.trim() === "") throw usageProblem(welcome(person));
      const words = sentWords(asked);
      await enter(words[0] === "keyhole" ? words.slice(1) : words, person);
    });
}

function welcome(person: string): string {
  return `You are ${person}. There is no shell here: name a command, such as ssh … project list.`;
}

/** Checks a command that came through the door, before it runs. @throws Problem if it is not allowed */
export function judgeCommand(command: CommandUnknownOpts): void {
  const path = pathOf(command);
  if (!isPeoples(path)) {
    throw new Problem(exits.unauthorized, "forbidden", `${path} is not for people over SSH: ask an operator.`);
  }
  const shut = shutOptions.find((option) => command.getOptionValueSource(option) === "cli");
  if (shut !== undefined) throw usageProblem(`--${shut} is not for people over SSH: what is written comes on stdout.`);
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
