import { createInterface, type Key } from "node:readline";
import { Writable } from "node:stream";

/*
 * What people see and type. A name in the database may hold characters that control a terminal (move the cursor, change
 * the window's title, reverse a line). So stored text reaches a screen only through `visible`.
 */

/** The process's three streams; `isTTY` says whether a stream is a terminal. */
export type Terminal = {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
};

/** Ctrl-C or a signal stopped the command before it wrote anything. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly exitCode: number;

  /** @param signal - the number of the signal; Ctrl-C is SIGINT, 2 */
  constructor(signal: number) {
    super("Interrupted: nothing was written.");
    this.exitCode = 128 + signal;
  }
}

/**
 * Escapes every character that a screen would act on or not show (control, bidirectional, zero-width, line separators,
 * unassigned) as `\u001b`, one escape for each UTF-16 unit.
 */
export function visible(text: string): string {
  return text.replace(unseen, escapeUnits);
}

/**
 * One line of compact JSON that is safe on a terminal: `JSON.stringify` leaves U+007F to U+009F, U+2028 and
 * bidirectional characters as they are. The escapes are JSON's own, so every parser returns the exact text.
 */
export function jsonLine(document: unknown): string {
  return `${visible(JSON.stringify(document))}\n`;
}

/**
 * Aligned columns. Cells are made {@link visible} here.
 * @param rows - the header first, if there is one
 * @param columns - the terminal's width, to which cells are cut, except the first of each row, which people copy;
 *   undefined cuts nothing
 */
export function table(rows: readonly (readonly string[])[], columns?: number): string {
  const lines = rows.map((row) => row.map(visible));
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...lines.map((line) => Bun.stringWidth(line[at] ?? ""))));
  if (columns !== undefined) shrink(widths, columns - gap.length * (widths.length - 1));
  const padded = lines.map((line) => line.map((cell, at) => fit(cell, widths[at] ?? 0)).join(gap));
  return padded.map((line) => `${line.trimEnd()}\n`).join("");
}

/** @returns ISO 8601 in UTC and whole seconds; `-` for no time */
export function formatTime(at: number | null | undefined): string {
  return at === null || at === undefined ? "-" : `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** The reader of the output has closed it. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";
}

/** The output could not be written, for example because the disk is full. */
export class OutputFailed extends Error {
  override readonly name = "OutputFailed";
}

/**
 * Resolves once the text is written, so that the process may exit.
 * @throws OutputClosed, OutputFailed
 */
export function write(stream: NodeJS.WriteStream, text: string): Promise<void> {
  if (text === "") return Promise.resolve();
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (!error) return resolve();
      const { code } = error as NodeJS.ErrnoException;
      reject(code === "EPIPE" ? new OutputClosed() : new OutputFailed(`The output could not be written (${code}).`));
    });
  });
}

/** Reads at most `bytesMax` bytes. To find out that the input is too long, ask for one byte more than is allowed. */
export async function readUpTo(source: AsyncIterable<Uint8Array | string>, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    const chunk = typeof piece === "string" ? Buffer.from(piece) : piece;
    chunks.push(chunk);
    length += chunk.length;
    if (length >= bytesMax) break;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax);
}

/**
 * Asks a person for a value and shows nothing of what is typed. A paste of several lines is taken whole if the terminal
 * marks pastes, as nearly all do.
 *
 * @param question - such as "Value of DATABASE_URL"
 * @returns the bytes typed, without the Enter that ended them; none if the input ended (Ctrl-D, hang-up)
 * @throws Interrupted after Ctrl-C or a signal, PromptFailed; the terminal is restored in every case
 */
export async function readHidden(terminal: Terminal, question: string): Promise<Uint8Array> {
  const { stdin, stderr } = terminal;
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: stdin, output: silent, terminal: true, historySize: 0, crlfDelay: 1000 });
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const lines: string[] = [];
  let pasting = false;
  let settling: ReturnType<typeof setTimeout> | undefined;

  const onKey = (_text: string | undefined, { name, sequence = "" }: Key) => {
    if (name === "paste-start") pasting = true;
    else if (name === "paste-end") pasting = false;
    // readline would take these as commands, and as line ends, and change the value.
    else if (pasting && /[^\P{Cc}\t\r\n]|[\u2028\u2029]/u.test(sequence)) reject(new PromptFailed(controls));
  };
  const onLine = (line: string) => {
    if (settling !== undefined) return reject(new PromptFailed(severalLines));
    lines.push(line);
    if (pasting) return;
    // Lines that follow at once are an unmarked paste. Its first line is not the value, and a shell would run the rest.
    settling = setTimeout(() => {
      const text = lines.join("\n");
      if (reader.line !== "") reject(new PromptFailed(severalLines));
      else if (text.includes("\ufffd")) reject(new PromptFailed(notText));
      else resolve(Buffer.from(text));
    }, 50);
  };
  const signals = Object.entries({ SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }).map(
    ([name, signal]) => [name, () => reject(new Interrupted(signal))] as const,
  );

  for (const [name, listener] of signals) process.on(name, listener);
  stdin.on("keypress", onKey);
  reader
    .on("line", onLine)
    .on("SIGINT", () => reject(new Interrupted(2)))
    .on("SIGTSTP", () => {}) // readline would turn echo on even if nothing can suspend this process
    .on("close", () => resolve(new Uint8Array()));
  stderr.write(`${visible(question)} (hidden, Enter ends it): ${bracketedPaste.on}`);
  try {
    return await promise;
  } finally {
    clearTimeout(settling);
    for (const [name, listener] of signals) process.off(name, listener);
    stdin.off("keypress", onKey);
    reader.close();
    stderr.write(`${bracketedPaste.off}\n`);
  }
}

/** What was typed cannot be taken as a value. */
export class PromptFailed extends Error {
  override readonly name = "PromptFailed";
}

const useStdin = "give the value on stdin, as in `keyhole … < value.txt`.";
const severalLines = `This terminal cannot take a paste of several lines: ${useStdin}`;
const controls = `The prompt cannot take a paste with control characters: ${useStdin}`;
const notText = "What was typed is not UTF-8 text.";

/** A progress line on a terminal; nothing on other streams. */
export type Progress = {
  report(done: number, total: number): void;
  /** Erases the line. */
  clear(): void;
};

/**
 * Shown if there are more than 300 things to do or after half a second, and updated at most twenty times a second.
 * @param verb - such as "Importing"
 * @param things - such as "variables"
 */
export function progressOn(stream: NodeJS.WriteStream, verb: string, things: string): Progress {
  const startedMs = performance.now();
  let shownMs = Number.NEGATIVE_INFINITY;
  return {
    report(done, total) {
      const nowMs = performance.now();
      if (!stream.isTTY || nowMs - shownMs < 50 || (total <= 300 && nowMs - startedMs < 500)) return;
      shownMs = nowMs;
      stream.write(`\r${verb} ${done} of ${total} ${things}${eraseToEnd}`);
    },
    clear() {
      if (shownMs > 0) stream.write(`\r${eraseToEnd}`);
    },
  };
}

const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

function escapeUnits(character: string): string {
  let escaped = "";
  for (let at = 0; at < character.length; at++) {
    escaped += `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }
  return escaped;
}

const gap = "  ";
const cellWidthMin = 8;

/** Narrows the widest columns, never the first, until all fit or the widest has the least useful width. */
function shrink(widths: number[], room: number): void {
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    const widest = Math.max(...widths.slice(1));
    if (widest <= cellWidthMin) return;
    widths[widths.lastIndexOf(widest)] = widest - 1;
  }
}

function fit(cell: string, width: number): string {
  const missing = width - Bun.stringWidth(cell);
  if (missing >= 0) return cell + " ".repeat(missing);
  // Not Bun.sliceAnsi (1.4.5): if a wide character crosses the limit, its result is one column too wide.
  let kept = "";
  for (const { segment } of graphemes.segment(cell)) {
    if (Bun.stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept}…${" ".repeat(width - 1 - Bun.stringWidth(kept))}`;
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const eraseToEnd = "\x1b[K";
/** Makes the terminal mark what is pasted, so that a line end in it is not taken for Enter. */
const bracketedPaste = { on: "\x1b[?2004h", off: "\x1b[?2004l" };
