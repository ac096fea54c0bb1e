import {
  type Argument,
  type CommanderError,
  type CommandUnknownOpts,
  InvalidArgumentError,
  type Option,
} from "@commander-js/extra-typings";
import { isEnvironment } from "../../core/names.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { didYouMean } from "../../core/words/nearest.ts";
import { Unfit } from "../../core/words/parse.ts";
import { listed } from "../../core/words/text.ts";

/** Refuses arguments that are not UTF-8: the runtime puts U+FFFD in place of what it cannot read. */
export function refuseMangled(args: readonly string[]): void {
  if (!args.some((arg) => arg.includes("\uFFFD"))) return;
  throw usageProblem("An argument is not UTF-8, so it would not arrive unchanged. Give a value like this on stdin.");
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
