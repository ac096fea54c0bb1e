/*
 * What people see and type. Names in the database may have been chosen to steer a terminal (move the cursor, retitle
 * the window, reverse a line), so stored text reaches a screen only through `visible`, by way of the functions below.
 */

/** The process's three streams; `isTTY` of each says whether a person is on the other side of it. */
export type Terminal = {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
};

/** A person or a signal stopped the command before it had written anything. */
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
 * The text with every character that a screen would act on or not show (control, bidirectional, zero-width, line
 * separators, unassigned) written as `\u001b`, one escape for each UTF-16 unit. All else stays as it is.
 */
export function visible(text: string): string {
  return text.replace(unseen, escapeUnits);
}

/**
 * One line of compact JSON that is safe on a terminal: `JSON.stringify` leaves U+007F to U+009F, U+2028 and bidirectional
 * characters raw. The escapes are JSON's own, so every parser gives the exact text back.
 */
export function jsonLine(document: unknown): string {
  return `${visible(JSON.stringify(document))}\n`;
}

/**
 * Aligned columns under a header, each line ended by LF. Cells are made {@link visible} here.
 * @param columns - the terminal's width, to which cells are cut, but for the first of each row, which people copy;
 *   undefined where no terminal is: nothing is cut
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[], columns?: number): string {
  const lines = [header, ...rows].map((row) => row.map(visible));
  const widths = header.map((_, at) => Math.max(...lines.map((line) => Bun.stringWidth(line[at] ?? ""))));
  if (columns !== undefined) shrink(widths, columns - gap.length * (widths.length - 1));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, at) => fit(cell, widths[at] ?? 0))
          .join(gap)
          .trimEnd()}\n`,
    )
    .join("");
}

/** A moment as people read it: ISO 8601, UTC, whole seconds; `-` for none. */
export function formatTime(at: number | null | undefined): string {
  return at === null || at === undefined ? "-" : `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** Nobody reads the output any more. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";
}

/** The output goes to something that does not take it, such as a full disk. */
export class OutputFailed extends Error {
  override readonly name = "OutputFailed";
}

/**
 * Resolves once the stream has taken the text, so that the process may end.
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

/** The stream's bytes, but no more than `bytesMax`: whoever must refuse what is longer asks for one more than allowed. */
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
 * Asks a person for a value that the screen never shows, not even its length. A paste of several lines is taken whole.
 *
 * @param question - such as "Value of DATABASE_URL"
 * @returns the bytes typed, without the Enter that ended them; none where the person ended the input (Ctrl-D, hang-up)
 * @throws Interrupted upon Ctrl-C or a signal, with the terminal as it was
 */
export async function readHidden(terminal: Terminal, question: string): Promise<Uint8Array> {
  const { stdin, stderr } = terminal;
  const line = new HiddenLine();
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  let settling: ReturnType<typeof setTimeout> | undefined;

  const onData = (chunk: Uint8Array) => {
    // A terminal without bracketed paste sends the lines of a paste as if they were typed: the first one alone would be
    // a wrong value, and the others would be run by the shell that comes next. No person types on within 50 ms.
    const state = settling === undefined ? line.take(chunk) : "overrun";
    if (state === "bell") stderr.write("\x07");
    else if (state === "interrupted") reject(new Interrupted(2));
    else if (state === "overrun") reject(new SeveralLines());
    else if (state === "done") settling = setTimeout(() => resolve(line.bytes()), 50);
  };
  const onEnd = () => resolve(new Uint8Array());
  const signals = {
    SIGINT: () => reject(new Interrupted(2)),
    SIGTERM: () => reject(new Interrupted(15)),
    SIGHUP: () => reject(new Interrupted(1)),
  };

  stdin.setRawMode(true);
  stdin.on("data", onData).on("end", onEnd);
  for (const [signal, listener] of Object.entries(signals)) process.on(signal, listener);
  stderr.write(`${visible(question)} (hidden, Enter ends it): ${bracketedPaste.on}`);
  try {
    return await promise;
  } finally {
    clearTimeout(settling);
    for (const [signal, listener] of Object.entries(signals)) process.off(signal, listener);
    stdin.off("data", onData).off("end", onEnd);
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write(`${bracketedPaste.off}\n`);
  }
}

/** A paste of several lines came through a terminal that does not mark pastes, so its end cannot be known. */
export class SeveralLines extends Error {
  override readonly name = "SeveralLines";

  constructor() {
    super(
      "This terminal cannot take a paste of several lines: give the value on stdin, as in `keyhole … < value.txt`.",
    );
  }
}

/** What became of a chunk: more to come, a key that means nothing here, or how the line ended. */
export type HiddenState = "more" | "bell" | "done" | "overrun" | "interrupted";

/**
 * The line under construction while a terminal is raw. Text and tabs are kept byte for byte; backspace takes back one
 * character, Ctrl-U all; between the marks of a bracketed paste everything is text, its carriage returns line ends.
 */
export class HiddenLine {
  readonly #bytes: number[] = [];
  #mode: "text" | "escape" | "sequence" | "single" | "paste" = "text";
  #parameters = "";

  bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  take(chunk: Uint8Array): HiddenState {
    let state: HiddenState = "more";
    for (const [at, byte] of chunk.entries()) {
      const next = this.#key(byte);
      if (next === "done") {
        const rest = chunk.subarray(at + 1);
        return rest.length === 0 || (byte === 0x0d && rest.length === 1 && rest[0] === 0x0a) ? "done" : "overrun";
      }
      if (next === "interrupted") return next;
      if (next === "bell") state = next;
    }
    return state;
  }

  #key(byte: number): HiddenState {
    if (this.#mode === "paste") return this.#pasted(byte);
    if (this.#mode === "sequence") return this.#sequence(byte);
    const escaped = this.#mode === "escape";
    if (this.#mode === "single") {
      this.#mode = "text";
      return "bell";
    }
    this.#mode = "text";
    if (escaped && byte === 0x5b) {
      this.#mode = "sequence";
      this.#parameters = "";
      return "more";
    }
    if (escaped && byte === 0x4f) {
      this.#mode = "single";
      return "more";
    }
    switch (byte) {
      case 0x0d:
      case 0x0a:
        return "done";
      case 0x03:
      case 0x1c:
        return "interrupted";
      case 0x04:
        return this.#bytes.length === 0 ? "done" : "bell";
      case 0x08:
      case 0x7f:
        return this.#takeBack();
      case 0x15:
        this.#bytes.length = 0;
        return "more";
      case 0x1b:
        this.#mode = "escape";
        return "more";
    }
    if (byte < 0x20 && byte !== 0x09) return "bell";
    this.#bytes.push(byte);
    return escaped ? "bell" : "more";
  }

  #sequence(byte: number): HiddenState {
    if (byte < 0x40 || byte > 0x7e) {
      this.#parameters += String.fromCharCode(byte);
      return "more";
    }
    const pastes = byte === 0x7e && this.#parameters === "200";
    this.#mode = pastes ? "paste" : "text";
    return pastes ? "more" : "bell";
  }

  #pasted(byte: number): HiddenState {
    this.#bytes.push(byte === 0x0d ? 0x0a : byte);
    const tail = this.#bytes.slice(-pasteEnd.length);
    if (tail.length === pasteEnd.length && tail.every((one, at) => one === pasteEnd[at])) {
      this.#bytes.length -= pasteEnd.length;
      this.#mode = "text";
    }
    return "more";
  }

  #takeBack(): HiddenState {
    if (this.#bytes.length === 0) return "bell";
    while (((this.#bytes.pop() ?? 0) & 0xc0) === 0x80); // continuation bytes of UTF-8, then the byte that leads them
    return "more";
  }
}

/** A line on a terminal that says how far something has come; nothing anywhere else. */
export type Progress = {
  report(done: number, total: number): void;
  /** Takes the line away. */
  clear(): void;
};

/**
 * Shows itself once there are more than 300 things to do or half a second has passed, at most twenty times a second.
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

/** Narrows the widest column but the first until all of them fit, but none below what still tells something. */
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
  // Not Bun.sliceAnsi: where a wide character stands across the end it takes one column more than it may (1.4.5).
  let kept = "";
  for (const { segment } of graphemes.segment(cell)) {
    if (Bun.stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept}…${" ".repeat(width - 1 - Bun.stringWidth(kept))}`;
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const eraseToEnd = "\x1b[K";
/** The terminal marks what is pasted, so that its line ends are not taken for Enter. */
const bracketedPaste = { on: "\x1b[?2004h", off: "\x1b[?2004l" };
const pasteEnd = Buffer.from("\x1b[201~");
