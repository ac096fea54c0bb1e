import { delimiter } from "node:path";
import {
  type Argument,
  Command,
  type CommanderError,
  type CommandUnknownOpts,
  InvalidArgumentError,
  type Option,
} from "@commander-js/extra-typings";
import { isEnvironment } from "../core/names.ts";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import type { Descriptor } from "../settings/inherited.ts";
import { didYouMean } from "../words/nearest.ts";
import { Unfit } from "../words/parse.ts";
import { shellWord } from "../words/shell.ts";
import { listed } from "../words/text.ts";
import type { Terminal } from "./terminal.ts";

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

/** Refuses arguments that are not UTF-8: the runtime puts U+FFFD in place of what it cannot read. */
export function refuseMangled(args: readonly string[]): void {
  if (!args.some((arg) => arg.includes("\uFFFD"))) return;
  throw usageProblem("An argument is not UTF-8, so it would not arrive unchanged. Give a value like this on stdin.");
}

/** A command that groups others, such as `key`. The description is one sentence. */
export function noun(name: string, description: string, ...commands: CommandUnknownOpts[]) {
  const group = new Command(name).description(description).enablePositionalOptions();
  for (const command of commands) group.addCommand(command);
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

/**
 * Makes a tree of commands throw a Problem for wrong usage. If help is asked for, `show` gets its text, and what is
 * thrown is a CommanderError.
 * @param isShown - whether help and messages name a command
 */
export function frame(
  command: CommandUnknownOpts,
  show: (text: string) => void,
  isShown: (command: CommandUnknownOpts) => boolean = () => true,
): void {
  const shown = command.commands.filter(isShown);
  command
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .configureHelp({
      visibleCommands: () => [...shown],
      minWidthToWrap: 30, // by default it does not wrap in less than 40 columns, which long options leave
      // The help of a command shows its arguments; the help of the program does not.
      ...(command.parent === null && { subcommandTerm: (child: CommandUnknownOpts) => child.name() }),
    })
    .configureOutput({ writeOut: show, writeErr: () => {}, outputError: () => {} })
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : misuse(command, shown, error);
    });
  for (const target of [...command.options, ...command.registeredArguments]) sayWhatIsUnfit(command, target);
  const given: GivenOption[] = [];
  givenTo.set(command, given);
  for (const option of command.options) {
    const name = option.name();
    const takesOne = (option.required || option.optional) && !option.variadic;
    command.on(`option:${name}`, (value: string | null | undefined) => {
      // Commander silently keeps the last value of an option that is given twice.
      if (takesOne && given.some((one) => one.name === name)) throw usageProblem(`--${name} is given twice.`);
      given.push({ name, value: value ?? undefined });
    });
  }
  for (const child of command.commands) frame(child, show, isShown);
}

/** Makes an option or an argument that refuses a text throw a Problem, which shows no text that may be a secret. */
function sayWhatIsUnfit(command: CommandUnknownOpts, target: Option | Argument): void {
  const { parseArg: parse, argChoices: choices = [] } = target;
  if (parse === undefined) return;
  target.parseArg = (text, before) => {
    try {
      return parse(text, before);
    } catch (error) {
      if (!(error instanceof Unfit || error instanceof InvalidArgumentError)) throw error;
      const { message, member } = error instanceof Unfit ? error : new Unfit(`is one of ${listed(choices)}.`);
      const [name, word] = ["long" in target ? `${target.long}` : target.name().toUpperCase(), member ?? text];
      const hint = didYouMean(word, choices);
      const isShown = name !== "ENV" && (name.startsWith("--") || member !== undefined);
      const subject = isShown || hint !== "" ? wrong(name, word) : misplaced(command, word, name);
      throw misuseOf(command, `${subject} ${message}${hint}`);
    }
  };
}

/** An option as it was typed; a flag has no value. */
type GivenOption = { readonly name: string; readonly value: string | undefined };

const givenTo = new WeakMap<CommandUnknownOpts, readonly GivenOption[]>();

/** The options that a command was given, in their order. One that takes several values is there for each of them. */
export function optionsGiven(command: CommandUnknownOpts): readonly GivenOption[] {
  return givenTo.get(command) ?? [];
}

/** The full name of a command, such as `keyhole key create`. */
export function pathOf(command: CommandUnknownOpts): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Rewrites commander's message, which quotes the command line: a misplaced word may be a secret. */
function misuse(command: CommandUnknownOpts, shown: readonly CommandUnknownOpts[], error: CommanderError): Problem {
  if (error.code === "commander.help") {
    const path = pathOf(command);
    const commands = shown.map((child) => child.name()).join(", ");
    const help = command.helpInformation({ error: true });
    return new Problem(exits.usage, "invalid_usage", `${path} needs one of its commands: ${commands}.`, { help });
  }
  const sentence = error.message
    .replace(/^error: /, "")
    .replace(/^too many arguments.*/s, "there are too many arguments")
    .replace(/^(unknown option '[^=]*)=.*'/s, "$1'")
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument missing/, "$1 needs a value")
    .replace(/([^.])(?:\n\((.*)\))?$/, (_, end, hint) => (hint === undefined ? `${end}.` : `${end}. ${hint}`));
  return misuseOf(command, sentence);
}

function misuseOf(command: CommandUnknownOpts, sentence: string): Problem {
  const path = pathOf(command);
  const own = path === "keyhole" ? "" : `${path.replace("keyhole ", "")}: `;
  return usageProblem(`${own}${sentence} See '${path} --help'.`);
}

/**
 * Begins a sentence about a word that stands where another belongs. It quotes the word only if it cannot be a secret by
 * its looks.
 * @param argument - its name, such as `ENV`
 */
function misplaced({ args }: CommandUnknownOpts, word: string, argument: string): string {
  const isName = /^[A-Z][A-Z0-9_]{0,63}$/.test(word);
  const isWord = /^[a-z][a-z/-]{0,30}$/.test(word) && args.some(isEnvironment);
  if (argument !== "ENV" || !(isName || isWord)) return argument;
  return `${word} is not an environment: ENV`;
}

/** Begins a sentence about a wrong value. It quotes only short words, which are too short for most secrets. */
export function wrong(setting: string, value: string): string {
  return /^[\w.,-]{1,30}$/.test(value) ? `${setting} cannot be '${value}': it` : setting;
}
