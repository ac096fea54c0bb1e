import { writeFile } from "node:fs/promises";
import { Argument, type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { exits, Problem } from "../core/problem.ts";
import { tryStat, writeWhole } from "../core/whole-file.ts";
import { type Given, type Input, type Inputs, type ReadWords, Unfit } from "../desk/inputs.ts";
import type { Interaction, Operation, Words } from "../desk/operation.ts";
import type { Facts, Outcome, SecretOutput } from "../desk/outcome.ts";
import { confirm, withAdmin } from "./admin.ts";
import { answer, answerFacts, answerRows, blockOf, handOver } from "./answer.ts";
import { type CommandContext, noun, verb } from "./command.ts";
import { toProblem } from "./failure.ts";
import { localName, readLines, readSource } from "./input.ts";
import { unlessClosed, withProgress, write } from "./terminal.ts";

/* Draws the command line from rows: `operation` in `desk/operation.ts`, and `act` below. */

/** A command that does more with the process than to run an operation, or that has no installation. */
export type Act<I extends Inputs = Inputs> = Omit<Words<I>, "right"> & {
  /** Undefined: it runs where it is typed, whatever KEYHOLE_SSH says, and never through the door. */
  readonly right?: Words["right"];
  act(context: CommandContext, given: Given<I>, person: Interaction): Promise<void>;
};

/** A row of the table. It is a function so that the types of its inputs are inferred. */
export function act<const I extends Inputs>(row: Act<I>): Act<I> {
  return row;
}

export type Row = Operation | Act;

/** The rows that begin with the same word, and the sentence of that word unless it is a command itself. */
export type Noun = { readonly about?: string; readonly rows: readonly Row[] };

/** The command for the first word of rows, with those below it. */
export function commandFor({ about = "", rows }: Noun, context: CommandContext): Command {
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
  return command.action(() => {
    const values: Readonly<Record<string, unknown>> = command.opts();
    const given = Object.fromEntries([
      ...args.map(([name], at) => [name, command.processedArgs[at]] as const),
      ...options.map(([name, attribute]) => [name, values[attribute]] as const),
    ]);
    const sources = Object.entries(row.inputs).flatMap(([name, { source }]) =>
      source === undefined ? [] : [[name, sourceOf(context, source, given, given[name] as string | undefined)]],
    );
    const all = { ...given, ...Object.fromEntries(sources) };
    const yes = values["yes"] === true;
    if (!("act" in row)) return perform(context, row, all, yes);
    return row.act(
      context,
      all,
      personAt(context, row, yes, () => {}),
    );
  });
}

/** Commander parses with `parse`, and checks the choices of what is not a list. */
function parsed<T extends Argument | Option>(drawn: T, { choices, parse }: Input): T {
  if (choices !== undefined) drawn.choices(choices);
  if (parse === undefined) return drawn;
  return drawn.argParser((text: string, before: unknown) => {
    try {
      return parse(text, before);
    } catch (error) {
      throw error instanceof Unfit ? new InvalidArgumentError(error.message) : error;
    }
  }) as T;
}

function sourceOf(
  context: CommandContext,
  source: ReadWords,
  given: Readonly<Record<string, unknown>>,
  word: string | undefined,
) {
  if (word === undefined && !source.isTyped) return undefined;
  if (source.isText && word !== undefined) {
    return { name: "the option", read: async () => Buffer.from(word), lines: () => readLines(context, "-") };
  }
  const path = word ?? "-";
  const read = (more = {}) => readSource(context, source, { ...given, ...more }, path);
  return { name: localName(path), read, lines: () => readLines(context, path) };
}

/** Runs an operation, and shows what came of it. @param given - by the names of its inputs */
export async function perform(
  context: CommandContext,
  row: Operation,
  given: Readonly<Record<string, unknown>>,
  yes = false,
): Promise<void> {
  row.check?.(given);
  const run = () => {
    const work = (report: Interaction["report"]) =>
      withAdmin(context, (admin) => row.run(admin, given, personAt(context, row, yes, report)), row.begins);
    return row.progress === undefined
      ? work(() => {})
      : withProgress(context.terminal.stderr, ...row.progress, (report) => work(report));
  };
  const { out, force, wide } = given as { out?: string; force?: true; wide?: true };
  if (out !== undefined && !("force" in row.inputs)) requireFree(out);
  const outcome = out === undefined ? await run() : await runInto(context, out, force === true, run);
  const { document, sentence = "", warnings = [], shows } = outcome;
  for (const warning of warnings) context.say(warning);
  if (shows === undefined) return answer(context, document, sentence);
  if ("text" in shows) return answer(context, document, sentence, shows.text);
  if ("facts" in shows) return answerFacts(context, document, shows, sentence);
  if ("rows" in shows) return answerRows(context, document as readonly unknown[], shows, wide === true, sentence);
  if (out === undefined) return revokedIfLost(context, shows, handOver(context, document as object, shows, sentence));
  const where = shows.advice?.(out) ?? `Wrote ${shows.what.replace(/^The /, "the ")} to ${out}.`;
  await answer(context, { ...(document as object), out }, [sentence, where].filter(Boolean).join("\n"));
}

/** @throws Problem if the file exists */
function requireFree(path: string): void {
  if (tryStat(path) === undefined) return;
  throw new Problem(exits.failed, "exists", `${path} is there already, and --out replaces no file: name another.`);
}

/** Runs an operation whose secret goes to a file. It does not run if the file cannot be written. */
async function runInto(
  context: CommandContext,
  path: string,
  force: boolean,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  let outcome: Outcome | undefined;
  const write = writeWhole("export", path, force, async (draft) => {
    outcome = await run();
    await writeFile(draft, (outcome.shows as SecretOutput).secret);
  });
  await write.catch((error: unknown) => {
    if (outcome === undefined) throw error;
    return revokedIfLost(context, outcome.shows as SecretOutput, Promise.reject(error));
  });
  return outcome as Outcome;
}

/** Undoes an operation whose secret nobody got. */
async function revokedIfLost(
  context: CommandContext,
  { ifLost }: SecretOutput,
  delivery: Promise<void>,
): Promise<void> {
  await delivery.catch(async (error: unknown) => {
    if (ifLost === undefined) throw error;
    const words = `${toProblem(error, context.person).message} ${await withAdmin(context, ifLost)}`;
    throw new Problem(exits.failed, "unwritable", words, { cause: error });
  });
}

function personAt(context: CommandContext, row: Row, yes: boolean, report: Interaction["report"]): Interaction {
  return {
    env: context.env,
    agree: (deed) => confirm(context, yes, deed, row.asks),
    show: async (facts: Facts, warnings) => {
      // With --json, stderr must be one document if the rest fails.
      if (context.json) return;
      const { stderr } = context.terminal;
      await write(stderr, blockOf(context, stderr, facts)).catch(unlessClosed);
      for (const warning of warnings) context.say(warning);
    },
    report,
  };
}
