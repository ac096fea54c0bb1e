import { createReadStream } from "node:fs";
import { Command, type CommanderError, type CommandUnknownOpts, Option } from "@commander-js/extra-typings";
import type { Desk } from "../admin/desk.ts";
import { Refused } from "../admin/refused.ts";
import { ConfigProblem, readConfig } from "../config.ts";
import { Fault } from "../fault.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import {
  Interrupted,
  jsonLine,
  OutputFailed,
  PromptFailed,
  readUpTo,
  type Terminal,
  table,
  visible,
  write,
} from "./terminal.ts";

/*
 * What all commands share: help with examples, `--json`, access to the database, how to answer and how to fail. A
 * command's action returns once it has answered and throws what stopped it; `main.ts` makes a message and an exit code
 * of that with `toProblem`.
 */

/** Where a command runs. */
export type Surroundings = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  /** Whether `--json` was given: one document on stdout, and an error as one line of JSON on stderr. */
  readonly json: boolean;
  /** Writes a message for people to stderr. */
  readonly say: (line: string) => void;
};

/** Turns whatever was thrown into a Problem. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const [exitCode, code, message] = classify(error);
  return new Problem(exitCode, code, message, { cause: error });
}

function classify(error: unknown): [exitCode: number, code: string, message: string] {
  if (error instanceof Refused) return [...refusals[error.kind], error.message];
  if (error instanceof ConfigProblem) return [exits.usage, "invalid_configuration", error.message];
  if (error instanceof Interrupted) return [error.exitCode, "interrupted", error.message];
  if (error instanceof PromptFailed) return [exits.usage, "invalid_usage", error.message];
  if (error instanceof OutputFailed) return [exits.failed, "unwritable", error.message];
  const code = systemCode(error);
  const faultCode = error instanceof Fault ? error.code : undefined;
  if (faultCode === "decryption_failed") return [exits.failed, faultCode, decryptionMessage];
  if (faultCode === "unavailable" || unavailableCodes.test(code ?? "")) {
    return [exits.unavailable, "unavailable", unavailableMessage];
  }
  if (damagedCodes.test(code ?? "")) return [exits.failed, "database_damaged", damagedMessage];
  // Messages of databases and parsers quote their input, which may be a secret: only the name and the code are shown.
  const name = error instanceof Error ? error.name : typeof error;
  const shown = code === undefined ? name : `${name}, ${code}`;
  return [exits.failed, "internal_error", `The command failed inside Keyhole (${shown}). Please report it.`];
}

/** Writes the error to stderr: `keyhole: …` for people, `{"error","code","requestId"}` with `--json`. */
export async function complain(here: Surroundings, problem: Problem): Promise<void> {
  const { message, code, requestId, help, notes } = problem;
  if (here.json) {
    const document = { error: message, code, requestId, ...(notes.length > 0 && { notes }) };
    return write(here.terminal.stderr, jsonLine(document));
  }
  if (help !== undefined) return write(here.terminal.stderr, help);
  const lines = message.split("\n").map(visible);
  const request = requestId === null ? "" : ` (request ${visible(requestId)})`;
  return write(here.terminal.stderr, `keyhole: ${lines.join("\n")}${request}\n`);
}

/**
 * A command that groups others, such as `key`.
 * @param description - one sentence
 */
export function noun(name: string, description: string) {
  return new Command(name).description(description).option(...jsonOption);
}

/**
 * A command that does something, such as `create`; the caller adds arguments, options and an action.
 * @param description - one sentence
 * @param examples - lines to copy
 */
export function verb(name: string, description: string, ...examples: [string, ...string[]]) {
  const heading = examples.length === 1 ? "Example:" : "Examples:";
  return new Command(name)
    .description(description)
    .option(...jsonOption)
    .addHelpText("after", ["", heading, ...examples.map((example) => `  ${example}`)].join("\n"));
}

/**
 * Prepares a tree of commands. Help goes to `show`. Where commander would exit it throws: a Problem for wrong usage, a
 * {@link Shown} after help that was asked for.
 */
export function frame(command: CommandUnknownOpts, show: (text: string) => void): void {
  const usage = [
    ...command.registeredArguments.map((argument) =>
      argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
    ),
    ...command.options.filter((option) => option.mandatory).map((option) => option.flags),
    command.commands.length > 0 && command.registeredArguments.length === 0 ? "<command>" : "[options]",
  ].join(" ");
  command
    .usage(usage)
    .configureHelp({ subcommandTerm: (child) => `${child.name()} ${child.usage().replace(/ ?\[options\]$/, "")}` })
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .enablePositionalOptions()
    .configureOutput({ writeOut: show, writeErr: () => {}, outputError: () => {} })
    .exitOverride((error) => {
      throw error.exitCode === 0 ? new Shown() : misuse(command, error);
    });
  for (const option of command.options) {
    if (option.required && !option.variadic && !Array.isArray(option.defaultValue)) refuseTwice(command, option.name());
  }
  for (const child of command.commands) frame(child, show);
}

/** Commander silently keeps the last value of an option that is given twice. */
function refuseTwice(command: CommandUnknownOpts, option: string): void {
  let given = false;
  command.on(`option:${option}`, () => {
    if (given) throw usageProblem(`--${option} is given twice.`);
    given = true;
  });
}

/** Help was asked for and shown. */
export class Shown extends Error {
  override readonly name = "Shown";
}

/** The full name of a command, such as `keyhole key create`. */
export function pathOf(command: CommandUnknownOpts): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Runs `work` with the database and the root key that the environment names. */
export async function atDesk<T>(here: Surroundings, work: (desk: Desk) => Promise<T>): Promise<T> {
  const config = readConfig(here.env);
  const { openDesk } = await import("../admin/desk.ts"); // `version` starts without the database drivers
  // With --json and an error, stderr is one JSON document: messages wait until the outcome is known.
  const notes: string[] = [];
  try {
    const desk = await openDesk(config, here.json ? (line) => notes.push(line) : here.say);
    const result = await work(desk).finally(() => desk.close());
    notes.forEach(here.say);
    return result;
  } catch (error) {
    const problem = toProblem(error);
    problem.notes = notes;
    throw problem;
  }
}

/**
 * Ends a command that did something.
 * @param document - stdout with `--json`
 * @param message - the message on stderr without it
 * @param out - stdout without it
 */
export async function answer(here: Surroundings, document: unknown, message: string, out = ""): Promise<void> {
  if (here.json) return write(here.terminal.stdout, jsonLine(document));
  // The work is done even if nobody reads stdout: the message then still shows the id of a key whose text is lost.
  await write(here.terminal.stdout, out).finally(() => {
    if (message !== "") here.say(message);
  });
}

/** The columns of a table: each header with the cell that an item has under it. */
export type Columns<T> = Readonly<Record<string, (item: T) => string | number>>;

/**
 * Ends a command that lists something: an array with `--json`, a table without it.
 * @param emptyMessage - the message on stderr in place of an empty table
 */
export async function answerList<T>(
  here: Surroundings,
  items: readonly T[],
  columns: Columns<T>,
  emptyMessage: string,
): Promise<void> {
  const { stdout } = here.terminal;
  if (here.json) return write(stdout, jsonLine(items));
  if (items.length === 0) return here.say(emptyMessage);
  const rows = [Object.keys(columns), ...items.map((item) => cellsOf(columns, item))];
  return write(stdout, table(rows, stdout.isTTY ? stdout.columns : undefined));
}

/** The cells of one row. */
export function cellsOf<T>(columns: Columns<T>, item: T): string[] {
  return Object.values(columns).map((cell) => String(cell(item)));
}

/**
 * @param flags - such as `--since <moment>`
 * @param parse - takes the option's name, for its message, and the text
 */
export function parsedOption<const Flags extends string, T>(
  flags: Flags,
  description: string,
  parse: (option: string, text: string) => T,
) {
  return new Option(flags, description).argParser((text): T => parse(nameOf(flags), text));
}

/** An option that takes a comma-separated list and refuses empty and repeated members. */
export function listOption<const Flags extends string>(flags: Flags, description: string) {
  return parsedOption(flags, description, parseList);
}

/** A list option that takes only `allowed` members. */
export function choiceOption<const Flags extends string, const T extends string>(
  flags: Flags,
  description: string,
  allowed: readonly T[],
) {
  return new Option(flags, description).choices(allowed).argParser((text): T[] =>
    parseList(nameOf(flags), text).map((member) => {
      const known = allowed.find((one) => one === member);
      if (known !== undefined) return known;
      throw usageProblem(`${nameOf(flags)} does not know '${member}': it takes ${allowed.join(", ")}.`);
    }),
  );
}

function parseList(option: string, text: string): string[] {
  const members = text.split(",");
  if (members.includes("")) {
    throw usageProblem(`${option} takes a comma-separated list without empty members, such as one,two.`);
  }
  const repeated = members.find((member, at) => members.indexOf(member) !== at);
  if (repeated !== undefined) throw usageProblem(`${option} names '${repeated}' twice.`);
  return members;
}

function nameOf(flags: string): string {
  return flags.split(" ", 1)[0] ?? flags;
}

/** @returns such as `1 variable` or `2 variables` */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}

/** @returns milliseconds of a duration such as `30s`, `15m`, `24h` or `90d` */
export function parseDuration(option: string, text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const durationMs = Number(count) * (unitMs[unit as keyof typeof unitMs] ?? Number.NaN);
  if (durationMs > 0 && durationMs <= durationMsMax) return durationMs;
  throw usageProblem(`${option} takes a duration such as 30s, 15m, 24h or 90d, of at most 36500d.`);
}

/**
 * @param nowMs - epoch milliseconds
 * @returns epoch milliseconds of a duration ago, of a day's start in UTC, or of a time with its offset
 */
export function parseMoment(option: string, text: string, nowMs: number): number {
  if (/^\d+[smhd]$/.test(text)) return nowMs - parseDuration(option, text);
  const [, day, time = "T00:00Z"] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  const moment = Date.parse(`${day}${time}`);
  // Date.parse may read a day that does not exist, such as 2026-02-30, as one of the next month.
  if (day !== undefined && !Number.isNaN(moment) && new Date(`${day}T00:00Z`).toISOString().startsWith(day))
    return moment;
  throw usageProblem(
    `${option} takes a duration ago such as 24h, a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z.`,
  );
}

/** @returns a whole number of at least 1 */
export function parseCount(option: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw usageProblem(`${option} takes a whole number of at least 1.`);
}

/**
 * Reads at most `bytesMax` bytes of a local file, or of stdin for `-`.
 * @throws Problem if the file cannot be read
 */
export async function readLocal(here: Surroundings, path: string, bytesMax: number): Promise<Uint8Array> {
  if (path === "-" && here.terminal.stdin.isTTY) {
    throw usageProblem("Stdin is a terminal, which would show what is typed: use a pipe, or name a file.");
  }
  try {
    return await readUpTo(path === "-" ? here.terminal.stdin : createReadStream(path), bytesMax);
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** @returns a Problem that says why a local file or stdin cannot be read */
export function unreadable(path: string, error: unknown): Problem {
  const code = systemCode(error) ?? "no reason given";
  const reason = readFailures[code] ?? code;
  return new Problem(exits.failed, "unreadable", `${localName(path)} cannot be read: ${reason}.`, { cause: error });
}

/** The name of a local file argument in messages. */
export function localName(path: string): string {
  return path === "-" ? "stdin" : path;
}

const readFailures: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "its mode does not allow it",
};

/** Decodes strict UTF-8 and keeps a byte order mark. @returns undefined for other bytes */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const jsonOption = ["--json", "print one JSON document, and errors as JSON"] as const;

const refusals = {
  invalid: [exits.usage, "invalid"],
  ambiguous: [exits.usage, "ambiguous"],
  not_found: [exits.notFound, "not_found"],
  exists: [exits.failed, "exists"],
  conflict: [exits.failed, "conflict"],
  bound: [exits.refused, "bound"],
  unavailable: [exits.unavailable, "unavailable"],
} as const satisfies Record<Refused["kind"], readonly [exitCode: number, code: string]>;

const unavailableMessage =
  "The database cannot be reached or did not answer in time. Check that it runs and that DATABASE_URL is right.";
const damagedMessage = "The file keyhole.db in the folder KEYHOLE_DATA is damaged or not a Keyhole database.";
const damagedCodes = /^SQLITE_(?:NOTADB|CORRUPT)/;
const decryptionMessage =
  "Something stored cannot be decrypted: this is the wrong root key, or the database was altered.";

/** Failed connections, PostgreSQL's refusals of them (classes 08, 28, 53, 57), SQLite's locks and disk errors. */
const unavailableCodes =
  /^(?:E(?:CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|PIPE|AI_AGAIN)|CONNECT|CONNECTION_\w+|CONNECT_TIMEOUT|ERR_POSTGRES_\w+|08\w{3}|28\w{3}|3D000|53\w{3}|57P\d\d|57014|SQLITE_(?:BUSY|LOCKED|IOERR|FULL|CANTOPEN|READONLY)\w*)$/;

/** The code of a system, driver or database error. Unlike the message, it quotes no input. */
function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { code } = at as { code?: unknown };
    if (typeof code === "string" && /^\w{1,40}$/.test(code)) return code;
  }
  return undefined;
}

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const durationMsMax = 36_500 * unitMs.d;

/**
 * Rewrites commander's message, which quotes the command line: a misplaced word there may be a secret. Only names of
 * options and of commands are repeated.
 */
function misuse(command: CommandUnknownOpts, error: CommanderError): Problem {
  const path = pathOf(command);
  const own = path.replace(/^keyhole ?/, "");
  const see = `See '${path} --help'.`;
  const says = (sentence: string) => usageProblem(`${own === "" ? "" : `${own}: `}${sentence} ${see}`);
  if (error.code === "commander.help") {
    const commands = command.commands.map((child) => child.name()).join(", ");
    const help = command.helpInformation({ error: true });
    return new Problem(exits.usage, "invalid_usage", `${path} needs one of its commands: ${commands}.`, { help });
  }
  if (error.code === "commander.excessArguments") {
    const names = command.registeredArguments.map((argument) => argument.name().toUpperCase());
    return says(names.length === 0 ? "takes no arguments." : `there are more arguments than ${names.join(" ")}.`);
  }
  const [, text = "", hint = ""] = /^error: ([\s\S]*?)(?:\n\(([\s\S]*)\))?$/.exec(error.message) ?? [];
  const [, option, argument, choices] =
    /^(?:option '([^']*)' argument|command-argument value) '[\s\S]*' is invalid(?: for argument '([^']*)')?\. Allowed choices are (.*)\.$/.exec(
      text,
    ) ?? [];
  if (choices !== undefined)
    return says(`${option === undefined ? argument?.toUpperCase() : nameOf(option)} is one of ${choices}.`);
  const sentence = text.replace(/^(unknown option '[^'=]*)=[\s\S]*'$/, "$1'");
  return says(hint === "" ? `${sentence}.` : `${sentence}. ${hint}`);
}
