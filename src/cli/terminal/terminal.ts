import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { exits, interrupted, onInterrupt, Problem, usageProblem } from "../../core/problem.ts";
import { oneLine, visible } from "../../core/visible.ts";

/* What people see and type. Stored text may hold characters that control a terminal, so all of it is made visible. */

/** The process's three streams. */
export type Terminal = {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
};

/**
 * The lines of aligned columns of cells, each in {@link oneLine}, under a row of headers.
 * @param columns - those that are shown, from the left
 * @param screen - cells of text are cut to fit this width, except the first of each row; ids and times stay whole
 * @param colour - whether to show the word `revoked` in red
 */
export function* table(rows: Iterable<readonly string[]>, columns: readonly Column[], screen?: number, colour = false) {
  const widths = columns.map(({ width }) => width);
  if (screen !== undefined) shrink(widths, columns, screen - gap.length * (widths.length - 1));
  for (const row of rows) {
    const cells = widths.map((width, at) => fit(oneLine(row[at] ?? ""), width));
    const line = cells.join(gap).trimEnd();
    yield `${colour ? line.replace(/(?<= {2})revoked(?= {2}|$)/g, red) : line}\n`;
  }
}

/**
 * A line for each label with its text. Longer text continues in its own column, so no part of it can look like a
 * label.
 */
export function block(rows: readonly (readonly [label: string, text: string])[], screen: number, colour = false) {
  const indent = Math.max(...rows.map(([label]) => Bun.stringWidth(label))) + gap.length;
  return rows
    .map(([label, text]) => {
      const room = Math.max(screen - indent, textWidthMin);
      const line = oneLine(text).trim();
      const isList = /^[^\s,]+(?:,[^\s,]+)+$/.test(line) && Bun.stringWidth(line) > room;
      const lines = wrapped(isList ? line.replaceAll(",", ", ") : line, room, true);
      const shown = colour && text === "revoked" ? red(text) : lines.replaceAll("\n", `\n${" ".repeat(indent)}`);
      return `${`${label}${" ".repeat(indent - Bun.stringWidth(label))}${shown}`.trimEnd()}\n`;
    })
    .join("");
}

/** Breaks lines between words. @param hard - whether to break words that are wider than the screen, too */
export function wrapped(text: string, screen: number, hard = false): string {
  return Bun.wrapAnsi(text, screen, { hard, wordWrap: true, trim: true });
}

/**
 * Text for people, broken between words if the stream is a terminal. A line that begins with two blanks is a command to
 * copy: a break would make two commands of it.
 */
export function fitted(text: string, stream: NodeJS.WriteStream): string {
  if (!stream.isTTY) return text;
  const fit = (line: string) => (line.startsWith("  ") ? line : wrapped(line, screenWidth(stream)));
  return text.split("\n").map(fit).join("\n");
}

/** The columns of a terminal; 80 for anything else. */
export function screenWidth(stream: NodeJS.WriteStream): number {
  return (stream.isTTY && stream.columns) || 80;
}

/** How many columns, from the left, a screen has room for if cells of text are cut; at least one. */
export function columnsThatFit(columns: readonly Column[], screen: number): number {
  let room = screen + gap.length;
  const tooMuch = columns.findIndex(({ least }) => {
    room -= least + gap.length;
    return room < 0;
  });
  return tooMuch === -1 ? columns.length : Math.max(tooMuch, 1);
}

export function red(text: string): string {
  return `\x1b[31m${text}\x1b[39m`;
}

/** Whether to show colours: on a terminal that has them, unless NO_COLOR is set. @see https://no-color.org */
export function hasColour(stream: NodeJS.WriteStream, env: Readonly<Record<string, string | undefined>>): boolean {
  const { NO_COLOR: none, TERM: terminal } = env;
  return stream.isTTY && !none && terminal !== undefined && terminal !== "dumb";
}

/** For output that a command does not need: a closed reader is not a failure, but any other error is. */
export function unlessClosed(error: unknown): void {
  if (!(error instanceof Problem && error.code === "output_closed")) throw error;
}

/**
 * Resolves once the text is written.
 * @throws Problem, for example because the disk is full; with exit code 0 if the reader has closed the output, as in
 *   `keyhole key list | head -1`
 */
export async function write(stream: NodeJS.WriteStream, text: string | Uint8Array): Promise<void> {
  if (text.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    stream.write(text, (error) => {
      if (!error) return resolve();
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") reject(new Problem(0, "output_closed", "Nobody reads the output."));
      else reject(new Problem(exits.failed, "unwritable", `The output could not be written (${code}).`));
    });
  });
}

/** Writes a long text piece by piece, so that it is never in memory as a whole. @throws Problem as {@link write} */
export async function writeEach(stream: NodeJS.WriteStream, pieces: Iterable<string>): Promise<void> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < pieceLength) continue;
    await write(stream, text);
    text = "";
  }
  await write(stream, text);
}

const pieceLength = 64 * 1024;

/** The same for a secret: if the reader has closed the output, nobody may have it, and that is a failure. */
export async function writeSecret(stream: NodeJS.WriteStream, text: string | Uint8Array): Promise<void> {
  await write(stream, text).catch((error: unknown) => {
    unlessClosed(error);
    throw new Problem(exits.failed, "output_closed", "The reader of the output closed it before it was whole.");
  });
}

/** Asks for a value without showing it. @returns what was typed before Enter; nothing if the input ended */
export async function readHidden(terminal: Terminal, question: string): Promise<Uint8Array> {
  const { stdin, stderr } = terminal;
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: stdin, output: silent, terminal: true, historySize: 0, crlfDelay: 1000 });
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  let settling: ReturnType<typeof setTimeout> | undefined;
  const onLine = (line: string) => {
    if (settling !== undefined) return reject(usageProblem(severalLines));
    // Lines that follow at once are a paste. If only the first were taken, a shell would run the others.
    settling = setTimeout(() => {
      if (reader.line !== "") reject(usageProblem(severalLines));
      else if (line.includes("\ufffd")) reject(usageProblem("What was typed is not UTF-8 text."));
      else resolve(Buffer.from(line));
    }, 50);
  };
  using _ = onInterrupt(reject);
  reader
    .on("line", onLine)
    .on("SIGINT", () => reject(interrupted(2)))
    .on("SIGTSTP", () => {}) // without a listener, readline would turn echo on
    .on("close", () => resolve(new Uint8Array()));
  stderr.write(`${visible(question)} (hidden, Enter ends it): `);
  try {
    return await promise;
  } finally {
    clearTimeout(settling);
    reader.close();
    stderr.write("\n");
  }
}

const severalLines = "The prompt takes one line: give the value on stdin, as in `keyhole … < value.txt`.";

/** What was typed before Enter; empty if the input ended. @throws Problem after Ctrl-C or a signal */
export async function readLine(terminal: Terminal, question: string): Promise<string> {
  const reader = createInterface({ input: terminal.stdin, output: terminal.stderr, terminal: true, historySize: 0 });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let ended = false;
  using _ = onInterrupt(reject);
  reader
    .on("SIGINT", () => reject(interrupted(2)))
    .on("SIGTSTP", () => {})
    .on("close", () => resolve(""));
  // The reader redraws one line only.
  const lines = fitted(visible(question), terminal.stderr).split("\n");
  const last = lines.pop() ?? "";
  if (lines.length > 0) terminal.stderr.write(`${lines.join("\n")}\n`);
  reader.question(question.endsWith(" ") ? `${last.trimEnd()} ` : last, (line) => {
    ended = true;
    resolve(line);
  });
  try {
    return await promise;
  } finally {
    reader.close();
    if (!ended) terminal.stderr.write("\n");
  }
}

/** Reports progress; the total may be unknown. */
export type Report = (done: number, total?: number) => void;

/** Shows progress on a terminal, for more than 300 things or half a second, and erases the line at the end. */
export async function withProgress<T>(
  stream: NodeJS.WriteStream,
  verb: string,
  things: string,
  work: (report: Report) => Promise<T>,
): Promise<T> {
  const startedMs = performance.now();
  let shownMs = Number.NEGATIVE_INFINITY;
  const report: Report = (done, total = 0) => {
    const nowMs = performance.now();
    if (!stream.isTTY || nowMs - shownMs < 50 || (total <= 300 && nowMs - startedMs < 500)) return;
    shownMs = nowMs;
    stream.write(`\r${verb} ${done}${total > 0 ? ` of ${total}` : ""} ${things}${eraseToEnd}`);
  };
  try {
    return await work(report);
  } finally {
    if (shownMs > 0) stream.write(`\r${eraseToEnd}`);
  }
}

const gap = "  ";
const textWidthMin = 10;
const textHeaders = [
  "ACTOR",
  "NAME",
  "PROJECTS",
  "ENVIRONMENTS",
  "RESOURCES",
  "SURFACES",
  "USER AGENT",
  "REASON",
  "CHANGES",
];
/** The columns that may be cut, and how narrow they may be. Ids, numbers and times must stay whole. */
const leastWidths: Readonly<Record<string, number>> = {
  ...Object.fromEntries(textHeaders.map((header) => [header, textWidthMin])),
  WHERE: 13, // such as shop/production, where the end matters
  NAMES: 9, // what 80 columns leave beside a time, an actor, the longest action and a place
};

/** How wide a column is, and the least width that it may be cut to. */
export type Column = { readonly width: number; readonly least: number };

/** The columns of rows, of which the first has the headers. It goes through the rows once, and keeps none. */
export function measure(rows: Iterable<readonly string[]>): Column[] {
  let headers: readonly string[] | undefined;
  const widths: number[] = [];
  for (const row of rows) {
    headers ??= row;
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, Bun.stringWidth(oneLine(cell)));
  }
  return widths.map((width, at) => {
    return { width, least: at === 0 ? width : Math.min(width, leastWidths[headers?.[at] ?? ""] ?? width) };
  });
}

/** Narrows the widest columns until all fit or each has its least width. */
function shrink(widths: number[], columns: readonly Column[], room: number): void {
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    const spare = widths.map((width, at) => (width > (columns[at]?.least ?? 0) ? width : 0));
    const widest = Math.max(...spare);
    if (widest === 0) return;
    widths[spare.lastIndexOf(widest)] = widest - 1;
  }
}

function fit(cell: string, width: number): string {
  const missing = width - Bun.stringWidth(cell);
  if (missing >= 0) return cell + " ".repeat(missing);
  // Bun.sliceAnsi (1.4.5) returns one column too many if a wide character crosses the limit.
  let kept = "";
  for (const { segment } of graphemes.segment(cell)) {
    if (Bun.stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept}…${" ".repeat(width - 1 - Bun.stringWidth(kept))}`;
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const eraseToEnd = "\x1b[K";
