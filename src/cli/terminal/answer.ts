import { isUtf8 } from "node:buffer";
import { fstatSync, statSync } from "node:fs";
import { devNull } from "node:os";
import { attempt } from "../../core/attempt.ts";
import { exits, Problem } from "../../core/problem.ts";
import { jsonLine, jsonPieces, visibleLines } from "../../core/visible.ts";
import { counted } from "../../core/words/text.ts";
import type { Words } from "../../people/desk/operation.ts";
import type { Facts, List, SecretOutput } from "../../people/desk/outcome.ts";
import {
  block,
  columnsThatFit,
  hasColour,
  measure,
  screenWidth,
  table,
  write,
  writeEach,
  writeSecret,
} from "./terminal.ts";
import type { CommandContext } from "./verb.ts";

/** Ends a command that did something: with `--json` by `document`, else by `out` on stdout and a message on stderr. */
export async function answer(context: CommandContext, document: unknown, message: string, out = ""): Promise<void> {
  if (context.json) return write(context.terminal.stdout, jsonLine(document));
  // The work is done even if nobody reads stdout, so the message is printed in any case.
  await write(context.terminal.stdout, out).finally(() => {
    if (message !== "") context.say(message);
  });
}

/**
 * Ends a command that prints a secret: its exact bytes on a pipe. On a terminal, a line and a warning, unless the
 * operation itself says where it is now.
 */
export async function handOver(
  context: CommandContext,
  document: object,
  { secret, what, field, whereItWent }: SecretOutput,
  sentence: string,
): Promise<void> {
  const { stdout } = context.terminal;
  // What says where it went and reaches nobody is undone, and that is said in place of this failure.
  const put = whereItWent === undefined ? writeSecret : write;
  if (context.json) return put(stdout, jsonLine({ ...document, ...field }));
  const isShown = whereItWent === undefined && stdout.isTTY;
  await put(stdout, isShown ? onScreen(secret, what) : secret);
  const shown = `${what} is on this screen now, and in what the terminal keeps: clear both when you are done.`;
  const words = [sentence, whereItWent?.(undefined), isShown && shown].filter(Boolean).join("\n");
  if (words !== "") context.say(words);
}

/**
 * Before a key is made that nobody would have. The runtime opens the null device in place of a standard output that was
 * closed. @throws Problem if the row makes a key, and would print it there
 */
export function requireReader(stdout: NodeJS.WriteStream, { right, inputs }: Pick<Words, "inputs"> & Partial<Words>) {
  const isNull = attempt(() => fstatSync((stdout as typeof process.stdout).fd).rdev === statSync(devNull).rdev);
  if (!isNull || right !== "keys" || !("out" in inputs)) return;
  throw new Problem(exits.failed, "unwritable", `The output is closed, or ${devNull}: nobody would have the key.`);
}

function onScreen(secret: string | Uint8Array, what: string): string {
  const bytes = Buffer.from(secret);
  if (isUtf8(bytes)) return `${visibleLines(bytes.toString().replace(/\n$/, ""))}\n`;
  throw new Problem(
    exits.failed,
    "not_shown",
    `${what} is not text, and not shown on a terminal: use --out or a pipe.`,
  );
}

/**
 * Ends a command that lists something: with `--json` by a document, else by a table. Columns that do not fit the terminal
 * (or 80 columns) are left out from the right, unless the table is `wide`. If a wide table does not fit the terminal,
 * each row is a block of lines instead.
 */
export async function answerRows(
  context: CommandContext,
  document: unknown,
  { headers, rows, count: rowCount, none, shown: shownMax = headers.length }: List,
  wide = false,
  sentence = "",
): Promise<void> {
  const { stdout } = context.terminal;
  if (context.json) return writeEach(stdout, jsonPieces(document));
  if (rowCount === 0) return context.say([none, sentence].filter(Boolean).join("\n"));
  const all = {
    *[Symbol.iterator]() {
      yield headers;
      yield* rows;
    },
  };
  const screen = screenWidth(stdout);
  const columns = measure(all);
  const count = wide ? headers.length : Math.min(columnsThatFit(columns, screen), shownMax);
  if (wide && stdout.isTTY && table(all, columns).some((line) => Bun.stringWidth(line) > screen)) {
    const blocks = Iterator.from(rows).map((row, at) => {
      const facts = Object.fromEntries(headers.map((header, at) => [header, row[at] ?? ""]));
      return `${at === 0 ? "" : "\n"}${blockOf(context, stdout, { facts })}`;
    });
    await writeEach(stdout, blocks);
  } else {
    const cut = stdout.isTTY && !wide ? screen : undefined;
    await writeEach(stdout, table(all, columns.slice(0, count), cut, hasColour(stdout, context.env)));
    if (count < headers.length) context.say(`--wide shows ${counted(headers.length - count, "more column")}.`);
  }
  if (sentence !== "") context.say(sentence);
}

/** One thing as a stream shows it: a line for each label that has a text. */
export function blockOf(context: CommandContext, stream: NodeJS.WriteStream, { facts }: Facts): string {
  const shown = Object.entries(facts).filter(([, text]) => text !== "");
  return block(shown, screenWidth(stream), hasColour(stream, context.env));
}
