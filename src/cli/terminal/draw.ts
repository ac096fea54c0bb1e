import { Argument, type Command, Option } from "@commander-js/extra-typings";
import { parseCount } from "../../core/words/parse.ts";
import type { Given, Input, Inputs, ReadWords } from "../../people/desk/inputs.ts";
import type { Operation, Words } from "../../people/desk/operation.ts";
import { type Ask, askAt } from "./ask.ts";
import { localName, readChunks, readSource } from "./input.ts";
import { type CommandContext, noun, verb } from "./verb.ts";

/* Draws the command line from rows: `operation` in `people/desk/operation.ts`, and `processCommand` below. */

/** A command that does more with the process than to run an operation, or that has no installation. */
export type ProcessCommand<I extends Inputs = Inputs> = Omit<Words<I>, "right"> & {
  /** Undefined: it runs where it is typed, whatever KEYHOLE_SSH says, and never through the door. */
  readonly right?: Words["right"];
  action(context: CommandContext, given: Given<I>, ask: Ask): Promise<void>;
};

/** A row of the table. It is a function so that the types of its inputs are inferred. */
export function processCommand<const I extends Inputs>(row: ProcessCommand<I>): ProcessCommand<I> {
  return row;
}

export type Row = Operation | ProcessCommand;

/** The rows that begin with the same word, and the sentence of that word unless it is a command itself. */
export type CommandGroup = { readonly about?: string; readonly rows: readonly Row[] };

/** The command for the first word of rows, with those below it. */
export function commandFor({ about = "", rows }: CommandGroup, context: CommandContext): Command {
  const [first] = rows as readonly [Row, ...Row[]];
  const name = first.path.split(" ")[0] as string;
  const own = rows.find(({ path }) => path === name);
  const command = own === undefined ? noun(name, about) : commandOf(own, context);
  for (const row of rows) if (row !== own) command.addCommand(commandOf(row, context));
  return command as unknown as Command;
}

/** The row of a command; undefined for a word that only groups others. */
export function rowOf(command: object): Row | undefined {
  return rowsOf.get(command);
}

const rowsOf = new WeakMap<object, Row>();

function commandOf(row: Row, context: CommandContext): Command {
  const command = verb(row.path.split(" ").at(-1) as string, row.about, ...row.examples) as unknown as Command;
  rowsOf.set(command, row);
  const inputs = Object.entries(row.inputs).filter(([, { flags }]) => flags !== "");
  const args = inputs.filter(([, { flags }]) => !flags.startsWith("-"));
  for (const [, input] of args) command.addArgument(parsed(new Argument(input.flags, input.help), input));
  const options = inputs
    .filter(([, { flags }]) => flags.startsWith("-"))
    .map(([name, input]) => {
      const option = parsed(new Option(input.flags, input.help), input);
      if (input.isRequired) option.makeOptionMandatory();
      command.addOption(option);
      return [name, option.attributeName()] as const;
    });
  if (row.asks !== undefined) command.option("--yes", "do it without asking");
  if ("plan" in row) command.option("--dry-run", "say what it would do, and change nothing");
  const isList = !("plan" in row) && ("wide" in row.inputs || row.path.endsWith(" list"));
  if (isList && !("limit" in row.inputs)) {
    command.addOption(new Option("--limit <count>", "show at most so many").argParser(parseCount));
  }
  return command.action(async () => {
    const values: Readonly<Record<string, unknown>> = command.opts();
    const given = Object.fromEntries([
      ...args.map(([name], at) => [name, unlessEmpty(command.processedArgs[at])] as const),
      ...options.map(([name, attribute]) => [name, values[attribute]] as const),
    ]);
    const sources = Object.entries(row.inputs).flatMap(([name, { source }]) =>
      source === undefined ? [] : [[name, sourceOf(context, source, given, given[name] as string | undefined)]],
    );
    const all = { ...given, ...Object.fromEntries(sources) };
    const yes = values["yes"] === true;
    if ("action" in row) return row.action(context, all, askAt(context, row, yes));
    // With the database, which a command of machines does not load.
    const { perform } = await import("./perform.ts");
    const limit = isList && !("limit" in row.inputs) ? (values["limit"] as number | undefined) : undefined;
    await perform(context, row, all, { yes, dryRun: values["dryRun"] === true, limit });
  });
}

/** Commander has an empty list for words that are not given. */
function unlessEmpty(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? undefined : value;
}

/** Commander parses with `parse`, and checks the choices of what is not a list. */
function parsed<T extends Argument | Option>(drawn: T, { choices, parse }: Input): T {
  if (choices !== undefined) drawn.choices(choices);
  if (parse === undefined) return drawn;
  return drawn.argParser(parse) as T;
}

function sourceOf(
  context: CommandContext,
  source: ReadWords,
  given: Readonly<Record<string, unknown>>,
  word: string | undefined,
) {
  if (word === undefined && !source.isTyped) return undefined;
  if (source.isText && word !== undefined) {
    return { name: "the option", read: async () => Buffer.from(word), chunks: () => readChunks(context, "-") };
  }
  const path = word ?? "-";
  let whole: Promise<Uint8Array> | undefined;
  // A plan reads it once to be shown, and again in the transaction: stdin comes once.
  const read = (more = {}) => {
    whole ??= readSource(context, source, { ...given, ...more }, path);
    return whole;
  };
  return { name: localName(path), read, chunks: () => readChunks(context, path) };
}
