import { isUtf8 } from "node:buffer";
import { exits, Problem } from "../core/problem.ts";
import { jsonLine, visibleLines } from "../core/visible.ts";
import type { CommandContext } from "./command.ts";
import { block, columnsThatFit, hasColour, screenWidth, table, write, writeSecret } from "./terminal.ts";

/** Ends a command that did something: with `--json` by `document`, else by `out` on stdout and a message on stderr. */
export async function answer(context: CommandContext, document: unknown, message: string, out = ""): Promise<void> {
  if (context.json) return write(context.terminal.stdout, jsonLine(document));
  // The work is done even if nobody reads stdout, so the message is printed in any case.
  await write(context.terminal.stdout, out).finally(() => {
    if (message !== "") context.say(message);
  });
}

/** Ends a command that shows a secret: its exact bytes on a pipe; a line and a warning on a terminal. */
export async function answerSecret(
  context: CommandContext,
  document: unknown,
  secret: string | Uint8Array,
  what: string,
): Promise<void> {
  const { stdout } = context.terminal;
  if (context.json) return writeSecret(stdout, jsonLine(document));
  if (!stdout.isTTY) return writeSecret(stdout, secret);
  const bytes = Buffer.from(secret);
  if (!isUtf8(bytes)) {
    throw new Problem(
      exits.failed,
      "not_shown",
      `${what} is not text, and not shown on a terminal: use --out or a pipe.`,
    );
  }
  await writeSecret(stdout, `${visibleLines(bytes.toString().replace(/\n$/, ""))}\n`);
  context.say(`${what} is on this screen now, and in what the terminal keeps: clear both when you are done.`);
}

/** The columns of a table: each header with the cell that an item has under it. */
export type Columns<T> = Readonly<Record<string, (item: T) => string | number>>;

/**
 * Ends a command that lists something: with `--json` by an array, else by a table. Columns that do not fit the terminal
 * (or 80 columns) are left out from the right, unless the table is `wide`. If a wide table does not fit the terminal,
 * each item is a block of lines instead.
 * @param columns - the most important ones first: the last may not fit the screen
 * @param none - the message if there are no items
 */
export async function answerList<T>(
  context: CommandContext,
  items: readonly T[],
  columns: Columns<T>,
  none: string,
  wide = false,
): Promise<void> {
  const { stdout } = context.terminal;
  if (context.json) return write(stdout, jsonLine(items));
  if (items.length === 0) return context.say(none);
  const headers = Object.keys(columns);
  const rows = [headers, ...items.map((item) => cellsOf(columns, item))];
  const screen = screenWidth(stdout);
  const count = wide ? headers.length : columnsThatFit(rows, screen);
  const shown = rows.map((row) => row.slice(0, count));
  const lines = wide && stdout.isTTY ? table(rows).split("\n") : [];
  if (lines.some((line) => Bun.stringWidth(line) > screen)) {
    return write(stdout, items.map((item) => blockOf(context, stdout, item, columns)).join("\n"));
  }
  await write(stdout, table(shown, stdout.isTTY && !wide ? screen : undefined, hasColour(stdout, context.env)));
  if (count < headers.length) context.say(`--wide shows ${counted(headers.length - count, "more column")}.`);
}

/** Ends a command that shows one thing: its document with `--json`, else a line for each column. */
export async function answerOne<T>(
  context: CommandContext,
  document: unknown,
  item: T,
  columns: Columns<T>,
): Promise<void> {
  await answer(context, document, "", blockOf(context, context.terminal.stdout, item, columns));
}

/** One thing as a stream shows it: a line for each column that has a text. */
export function blockOf<T>(context: CommandContext, stream: NodeJS.WriteStream, item: T, columns: Columns<T>): string {
  const rows = Object.entries(columns).map(([label, cell]) => [label, String(cell(item))] as const);
  const shown = rows.filter(([, text]) => text !== "");
  return block(shown, screenWidth(stream), hasColour(stream, context.env));
}

export function cellsOf<T>(columns: Columns<T>, item: T): string[] {
  return Object.values(columns).map((cell) => String(cell(item)));
}

/** @returns such as `a`, `a and b`, or `a, b and c` */
export function joined(parts: readonly string[]): string {
  return new Intl.ListFormat("en-GB").format(parts);
}

/** @returns such as `1 variable` or `2 variables` */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}
