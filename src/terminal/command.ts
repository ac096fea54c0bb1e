import { Command, type CommanderError, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { Fault } from "../core/fault.ts";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { ConfigProblem, readConfig } from "../core/settings.ts";
import type { AdminContext } from "../desk/context.ts";
import {
  block,
  columnsThatFit,
  fitted,
  hasColour,
  jsonLine,
  OutputClosed,
  readLine,
  red,
  screenWidth,
  type Terminal,
  table,
  visibleLines,
  write,
} from "./terminal.ts";

/* What all commands share. An action returns once it has answered, or throws; `main.ts` reports it by `toProblem`. */

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
  // Its own sentence says more than the code of its cause.
  if (error instanceof Refused) return [refusals[error.kind], error.kind, error.message];
  const code = systemCode(error);
  const failure = databaseFailures.find(([codes]) => codes.test(code ?? ""));
  if (failure !== undefined) return [failure[1], failure[2], failure[3]];
  if (error instanceof ConfigProblem) return [exits.usage, "invalid_configuration", error.message];
  const faultCode = error instanceof Fault ? error.code : undefined;
  if (faultCode === "decryption_failed") return [exits.failed, faultCode, decryptionMessage];
  if (faultCode === "unavailable") return [exits.unavailable, faultCode, unavailableMessage];
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
  const request = requestId === null ? "" : ` (request ${requestId})`;
  const name = hasColour(here.terminal.stderr, here.env) ? red("keyhole:") : "keyhole:";
  return write(here.terminal.stderr, `${fitted(`${name} ${visibleLines(message + request)}`, here.terminal.stderr)}\n`);
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

/** An example as a shell takes it, in lines of at most 80 columns if its words allow it. */
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

/** Makes a tree of commands throw a Problem for wrong usage, and a {@link Shown} once `show` has its help text. */
export function frame(command: CommandUnknownOpts, show: (text: string) => void): void {
  command
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .configureHelp({
      minWidthToWrap: 30, // long options leave less than the 40 columns below which it does not wrap
      // What a command takes is in its own help.
      ...(command.parent === null && { subcommandTerm: (child: CommandUnknownOpts) => child.name() }),
    })
    .configureOutput({ writeOut: show, writeErr: () => {}, outputError: () => {} })
    .exitOverride((error) => {
      throw error.exitCode === 0 ? new Shown() : misuse(command, error);
    });
  // Commander silently keeps the last value of an option that is given twice.
  for (const option of command.options) {
    if ((!option.required && !option.optional) || option.variadic) continue;
    let given = false;
    command.on(`option:${option.name()}`, () => {
      if (given) throw usageProblem(`--${option.name()} is given twice.`);
      given = true;
    });
  }
  for (const child of command.commands) frame(child, show);
}

/** Help was asked for and shown. */
export class Shown extends Error {
  override readonly name = "Shown";
}

/** The full name of a command, such as `keyhole key create`. */
export function pathOf(command: CommandUnknownOpts): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/**
 * Runs `work` with the database and the root key that the environment names.
 * @param begin - whether they are made if there are none
 */
export async function withAdmin<T>(
  here: Surroundings,
  work: (admin: AdminContext) => Promise<T>,
  begin = false,
): Promise<T> {
  const config = readConfig(here.env);
  // `version` starts without the database drivers.
  const [{ openAdminContext }, { actorOf }] = await Promise.all([
    import("../desk/context.ts"),
    import("../desk/changes.ts"),
  ]);
  return holdNotes(here, async (say) => {
    const admin = await openAdminContext(config, actorOf(here.env), say, begin);
    return work(admin).finally(() => admin.close());
  });
}

/** With --json and an error, stderr is one JSON document: what `work` says waits until the outcome is known. */
export async function holdNotes<T>(here: Surroundings, work: (say: Surroundings["say"]) => Promise<T>): Promise<T> {
  const notes: string[] = [];
  try {
    const result = await work(here.json ? (line) => notes.push(line) : here.say);
    notes.forEach(here.say);
    return result;
  } catch (error) {
    if (error instanceof OutputClosed) throw error;
    const problem = toProblem(error);
    problem.notes = notes;
    throw problem;
  }
}

/**
 * Says on a terminal what a command that cannot be undone will do, and asks. Elsewhere, and with `--json`, the command
 * needs `--yes`. Call it once nothing is left that would refuse the command.
 *
 * @param yes - whether `--yes` was given
 * @param deed - what it will do, such as `delete project acme/web`
 * @param elsewhere - what happens if nobody can be asked
 * @throws Problem unless the answer is yes
 */
export async function confirm(
  here: Surroundings,
  yes: boolean | undefined,
  deed: string,
  elsewhere: "needs --yes" | "goes on" = "needs --yes",
): Promise<void> {
  if (yes) return;
  const { stdin, stderr } = here.terminal;
  if (here.json || !stdin.isTTY || !stderr.isTTY) {
    if (elsewhere === "goes on") return;
    throw usageProblem(`This would ${deed}. Nobody can be asked here, so it needs --yes.`);
  }
  const typed = await readLine(here.terminal, `This will ${deed}. Go on? [y/N] `);
  if (!/^y(?:es)?$/i.test(typed.trim())) throw new Problem(exits.failed, "not_confirmed", "Nothing was changed.");
}

/**
 * Makes a change after {@link confirm}. The change is rehearsed first: if it would be refused, nobody is asked.
 * @param deed - says what the change will do, from what it would return
 */
export async function confirmChange<T>(
  here: Surroundings,
  admin: AdminContext,
  yes: boolean | undefined,
  change: (admin: AdminContext) => Promise<T>,
  deed: (outcome: T) => string,
): Promise<T> {
  if (!yes) {
    const { rehearse } = await import("../desk/context.ts");
    await confirm(here, yes, deed(await rehearse(admin, change)));
  }
  return change(admin);
}

/** The option of each command that calls {@link confirm}. */
export const yesOption = ["--yes", "do it without asking"] as const;

/** Ends a command that did something: with `--json` by `document`, else by `out` on stdout and a message on stderr. */
export async function answer(here: Surroundings, document: unknown, message: string, out = ""): Promise<void> {
  if (here.json) return write(here.terminal.stdout, jsonLine(document));
  // The work is done even if nobody reads stdout, and the message still says so.
  await write(here.terminal.stdout, out).finally(() => {
    if (message !== "") here.say(message);
  });
}

/** Ends a command that shows a secret: its exact bytes on a pipe, on a line of its own with a warning on a terminal. */
export async function answerSecret(here: Surroundings, document: unknown, secret: string, what: string): Promise<void> {
  const { stdout } = here.terminal;
  if (here.json) return write(stdout, jsonLine(document));
  if (!stdout.isTTY) return write(stdout, secret);
  await write(stdout, `${visibleLines(secret.replace(/\n$/, ""))}\n`);
  here.say(`${what} is on this screen now, and in what the terminal keeps: clear both when you are done.`);
}

/** The columns of a table: each header with the cell that an item has under it. */
export type Columns<T> = Readonly<Record<string, (item: T) => string | number>>;

/** The option of a command that ends with {@link answerList}. */
export const wideOption = ["--wide", "show everything; on a narrow terminal, as a block for each entry"] as const;

/**
 * Ends a command that lists something: an array with `--json`, a table or the message for none without it. Unless the
 * table is `wide`, the last columns are left out if they do not fit, on 80 columns where there is no terminal. A wide
 * table that a terminal would break is a block for each item instead.
 */
export async function answerList<T>(
  here: Surroundings,
  items: readonly T[],
  noneMessage: string,
  columns: Columns<T>,
  wide = false,
): Promise<void> {
  const { stdout } = here.terminal;
  if (here.json) return write(stdout, jsonLine(items));
  if (items.length === 0) return here.say(noneMessage);
  const headers = Object.keys(columns);
  const rows = [headers, ...items.map((item) => cellsOf(columns, item))];
  const screen = screenWidth(stdout);
  const count = wide ? headers.length : columnsThatFit(rows, screen);
  const shown = rows.map((row) => row.slice(0, count));
  if (
    wide &&
    stdout.isTTY &&
    table(shown)
      .split("\n")
      .some((line) => Bun.stringWidth(line) > screen)
  ) {
    return write(stdout, items.map((item) => blockOf(here, stdout, item, columns)).join("\n"));
  }
  await write(stdout, table(shown, stdout.isTTY && !wide ? screen : undefined, hasColour(stdout, here.env)));
  if (count < headers.length) here.say(`--wide shows ${counted(headers.length - count, "more column")}.`);
}

/** Ends a command that shows one thing: its document with `--json`, else a line for each column. */
export async function answerOne<T>(here: Surroundings, document: unknown, item: T, columns: Columns<T>): Promise<void> {
  await answer(here, document, "", blockOf(here, here.terminal.stdout, item, columns));
}

/** One thing as a stream shows it: a line for each column that has a text. */
export function blockOf<T>(here: Surroundings, stream: NodeJS.WriteStream, item: T, columns: Columns<T>): string {
  const rows = Object.entries(columns).map(([label, cell]) => [label, String(cell(item))] as const);
  const shown = rows.filter(([, text]) => text !== "");
  return block(shown, screenWidth(stream), hasColour(stream, here.env));
}

/** The cells of one row. */
export function cellsOf<T>(columns: Columns<T>, item: T): string[] {
  return Object.values(columns).map((cell) => String(cell(item)));
}

/** @returns such as `1 variable` or `2 variables` */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}

const refusals = {
  invalid: exits.usage,
  ambiguous: exits.usage,
  not_found: exits.notFound,
  exists: exits.failed,
  conflict: exits.failed,
  bound: exits.refused,
  unavailable: exits.unavailable,
} as const satisfies Record<Refused["kind"], number>;

const unavailableMessage = "The database did not answer in time, or not as it should: try again.";
const decryptionMessage =
  "Something stored cannot be decrypted: this is the wrong root key, or the database was altered.";

/** What a person can do about a failure of the database, by the code of the system, PostgreSQL or SQLite. */
const databaseFailures: readonly (readonly [codes: RegExp, exitCode: number, code: string, message: string])[] = [
  [
    /^3D000$/,
    exits.unavailable,
    "unavailable",
    "The server of DATABASE_URL has no database of that name: create it, or correct the name in DATABASE_URL.",
  ],
  [
    /^28\w{3}$/,
    exits.unavailable,
    "unavailable",
    "The server of DATABASE_URL refuses the user: correct the user or the password in DATABASE_URL.",
  ],
  [
    /^42501$/,
    exits.unauthorized,
    "unauthorized",
    "The user of DATABASE_URL lacks a right in the database: use the one that owns its tables.",
  ],
  [
    /^(?:E(?:CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|PIPE|AI_AGAIN)|CONNECT|CONNECTION_\w+|CONNECT_TIMEOUT|ERR_POSTGRES_\w+|08\w{3}|53\w{3}|57P\d\d|57014)$/,
    exits.unavailable,
    "unavailable",
    "The database cannot be reached or did not answer in time. Check that it runs and that DATABASE_URL is right.",
  ],
  [
    /^SQLITE_(?:FULL|IOERR_SHMSIZE)$/,
    exits.unavailable,
    "unavailable",
    "The disk of the data folder (KEYHOLE_DATA) is full, and nothing was changed: make room, then try again.",
  ],
  [
    /^SQLITE_(?:BUSY|LOCKED)\w*$/,
    exits.unavailable,
    "unavailable",
    "Another process keeps the embedded database locked: try again.",
  ],
  [
    /^SQLITE_(?:IOERR|CANTOPEN|READONLY)\w*$/,
    exits.unavailable,
    "unavailable",
    "The data folder (KEYHOLE_DATA) cannot be read or written: check its owner and mode, and that its disk works and has room.",
  ],
  [
    /^SQLITE_(?:NOTADB|CORRUPT)/,
    exits.failed,
    "database_damaged",
    "The file keyhole.db in the folder KEYHOLE_DATA is damaged or not a Keyhole database.",
  ],
];

/** The code of a system, driver or database error. Unlike the message, it quotes no input. */
function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { code } = at as { code?: unknown };
    if (at instanceof Fault) continue; // its code is for clients
    if (typeof code === "string" && /^\w{1,40}$/.test(code)) return code;
  }
  return undefined;
}

/** Rewrites commander's message without its quotes of the command line, where a misplaced word may be a secret. */
function misuse(command: CommandUnknownOpts, error: CommanderError): Problem {
  const path = pathOf(command);
  const commands = command.commands.map((child) => child.name()).join(", ");
  if (error.code === "commander.help") {
    const help = command.helpInformation({ error: true });
    return new Problem(exits.usage, "invalid_usage", `${path} needs one of its commands: ${commands}.`, { help });
  }
  const sentence = error.message
    .replace(/^error: /, "")
    .replace(/^too many arguments.*/s, "there are too many arguments")
    // Without commander's suggestion: `get` resembles `set`, and a command that writes is never proposed for a reader.
    .replace(/^(unknown command '.*')(?:\n\(.*\))?$/s, (_, words) => `${words}: the commands are ${commands}`)
    .replace(/^(unknown option '[^=]*)=.*'/s, "$1'")
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument missing/, "$1 needs a value")
    .replace(/^option '(?:-\w, )?(--[\w-]+)[^']*' argument '(.*)' is invalid\./s, (_, name, value) =>
      wrong(name, value),
    )
    .replace(/^command-argument value '.*' is invalid for argument '([^']*)'\./s, (_, name) => name.toUpperCase())
    .replace(" Allowed choices are ", " is one of ")
    .replace(/([^.])(?:\n\((.*)\))?$/, (_, end, hint) => (hint === undefined ? `${end}.` : `${end}. ${hint}`));
  const own = path === "keyhole" ? "" : `${path.replace("keyhole ", "")}: `;
  return usageProblem(`${own}${sentence} See '${path} --help'.`);
}

/** Begins a sentence about a setting's value. It repeats the value if that is a short word, too short for most secrets. */
export function wrong(setting: string, value: string): string {
  return /^[\w,-]{1,30}$/.test(value) ? `${setting} cannot be '${value}': it` : setting;
}
