import { isUtf8 } from "node:buffer";

/*
 * Finds values in a stream, exactly. Of every form of every value, one window of 8 bytes near its end is hashed: the one
 * that fewest others share. A gear hash of the last 8 bytes rolls over the text: each step shifts 4 bits out, so no byte
 * has to be taken out. Where it meets the hash of a window, the form is made again and compared byte for byte. So memory
 * is the values, some numbers for each form, and one buffer.
 */

/** Where a value stands: lines and columns count from 1, columns in bytes. */
export type Spot = { readonly value: number; readonly form: string; readonly line: number; readonly column: number };

const window = 8;
/** How far before its end the window of a form may begin. */
const reach = 64;
const pieceBytes = 1024 * 1024;
const none: readonly Pattern[] = [];
/** Of longer values, such as large files, only their bytes and base64 are looked for. */
const textBytesMax = 64 * 1024;
/** More places of one value in a text say no more. */
const placesMax = 1000;

/** What escapes for URLs leave as it is, beside letters and digits; what a space becomes; and which digits follow `%`. */
const urlEscapes: readonly (readonly [kept: string, space: "%20" | "+", digits: Digits])[] = [
  ["-._~", "%20", "upper"], // RFC 3986: curl, .NET, jq
  ["-._~", "%20", "lower"],
  ["-._~", "+", "upper"], // Python and Go for queries, Ruby
  ["-._~", "+", "lower"],
  ["-._~/", "%20", "upper"], // Python for paths
  ["-._~$&+=:@", "%20", "upper"], // Go for paths
  ["-._~!'()*", "%20", "upper"], // JavaScript
  ["-._~!'()*", "%20", "lower"],
  ["-._~!'()*/", "%20", "upper"],
  ["-._~!'()*;,/?:@&=+$#", "%20", "upper"], // JavaScript for whole URLs
  ["-._*", "+", "upper"], // forms of browsers, Java
  ["-._!()*", "+", "upper"], // .NET's WebUtility
  ["-._!()*", "+", "lower"], // .NET's HttpUtility
  ["-._", "+", "upper"], // PHP
];
type Digits = "lower" | "upper";

/** Which UTF-16 units JSON writes as `\u` and four digits, beside those that it must, and with which digits. */
const jsonEscapes: readonly (readonly [units: RegExp, digits: Digits])[] = [
  [/[<>&\u2028\u2029]/, "lower"], // Go, Rails
  [/[<>&='\u2028\u2029]/, "lower"], // Gson
  [/[<>&'"]/, "lower"], // Newtonsoft for HTML
  [/[^\0-\x7f]/, "lower"], // Python, PHP
  [/[^\0-\x7f]/, "upper"], // Jackson
  [/[^\0-\x7e]|["&'+<>`]/, "upper"], // .NET
];

/** The forms of a text besides its own bytes and base64. */
const textForms: readonly (readonly [form: string, write: (text: string) => string | Buffer])[] = [
  ...urlEscapes.map((escapes) => {
    const table = urlTable(...escapes);
    return ["url", (text: string) => percentEncoded(text, table)] as const;
  }),
  ["json", jsonOf],
  ...jsonEscapes.map(([units, digits]) => ["json", (text: string) => jsonOf(text, units, digits)] as const),
  ["json", (text) => jsonOf(text).replaceAll("/", "\\/")],
  ["json", (text) => jsonOf(text, /[^\0-\x7f]/).replaceAll("/", "\\/")], // PHP
  ["shell", (text) => text.replaceAll("'", "'\\''")],
  ["shell", (text) => text.replaceAll("'", `'"'"'`)], // Python
  ["shell", (text) => text.replaceAll(/'+/g, `'"$&"'`)], // dash
  ["shell", (text) => text.replace(/["\\$`]/g, "\\$&")],
  ["shell", (text) => text.replace(/[ !"$&'()*,;<>?[\\\]^`{|}]|^[#~]|(?<=[:=])~/g, "\\$&")], // bash's `printf %q`
  ["shell", (text) => ansiC(text)], // the same, with control characters
  ["shell", (text) => ansiC(text).replaceAll(/[^\0-\x7f]+/g, octal)],
  ["shell", (text) => text.replace(/[^\w\-.,:+/@\n]/gu, "\\$&").replaceAll("\n", "'\n'")], // Ruby
  ["utf-16", (text) => Buffer.from(text, "utf16le")],
];

/** What stands for each byte. */
function urlTable(kept: string, space: string, digits: Digits): string[] {
  return Array.from({ length: 256 }, (_, byte) => {
    const one = String.fromCharCode(byte);
    if (byte === 0x20) return space;
    return /[A-Za-z0-9]/.test(one) || kept.includes(one) ? one : `%${hex(byte, 2, digits)}`;
  });
}

function percentEncoded(text: string, table: readonly string[]): string {
  return text.replaceAll(/[^A-Za-z0-9]+/gu, (part) => Array.from(Buffer.from(part), (byte) => table[byte]).join(""));
}

function hex(code: number, length: number, digits: Digits): string {
  const written = code.toString(16).padStart(length, "0");
  return digits === "upper" ? written.toUpperCase() : written;
}

/** Between `$'` and `'`. */
function ansiC(text: string): string {
  return text.replaceAll(/[\\'\p{Cc}]/gu, (one) => shortEscapes[one] ?? octal(one));
}

const shortEscapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "'": "\\'",
  "\x07": "\\a",
  "\b": "\\b",
  "\x1b": "\\E",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

function octal(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/** @param units - to be escaped, too */
function jsonOf(text: string, units?: RegExp, digits: Digits = "lower"): string {
  const written = JSON.stringify(text).slice(1, -1);
  if (units === undefined || text.search(units) < 0) return written;
  return written.replaceAll(new RegExp(`\\\\.|${units.source}`, "g"), (one) => {
    const unit = one === '\\"' ? '"' : one;
    return units.test(unit) ? `\\u${hex(unit.charCodeAt(0), 4, digits)}` : one;
  });
}

const [ownForm, base64Form, textForm] = [0, 1, 7];
const lineForm: number = textForm + textForms.length;
/** UTF-16, the last of the forms of text. */
const plainForm: number = lineForm - 1;

/** The names of the forms by number: own bytes, base64 at three offsets in two alphabets, forms of text, lines of PEM. */
function nameOf(form: number): string {
  if (form === ownForm) return "as it is";
  if (form < textForm) return "base64";
  return textForms[form - textForm]?.[0] ?? "a line";
}

/** A form of a value, by its number. */
function write(value: Buffer, form: number): Buffer {
  if (form === ownForm) return value;
  if (form < textForm) return base64Of(value, (form - base64Form) % 3, form < base64Form + 3 ? "base64" : "base64url");
  if (form < lineForm) return Buffer.from(textForms[form - textForm]?.[1](value.toString()) ?? "");
  return Buffer.from(linesOf(value)[form - lineForm] ?? "");
}

/** The characters that depend on no other byte, if so many bytes stand before the value in their group of three. */
function base64Of(value: Buffer, offset: number, alphabet: "base64" | "base64url"): Buffer {
  const text = Buffer.concat([Buffer.alloc(offset), value]).toString(alphabet);
  return Buffer.from(text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + value.length) * 8) / 6)));
}

/** The lines of PEM that hold something. */
function linesOf(value: Buffer): string[] {
  if (!value.includes("-----BEGIN ")) return [];
  const lines = value.toString("latin1").split(/[\r\n]+/);
  return lines.filter((line) => /^[A-Za-z0-9+/=]{24,}$/.test(line));
}

/** A form of a value: how long it is, how much of it follows its window, and the hash of its first bytes. */
type Pattern = {
  readonly value: number;
  readonly form: number;
  readonly length: number;
  readonly tail: number;
  readonly head: number;
};

export class Matcher {
  readonly #values: readonly Buffer[];
  readonly #gear: Int32Array = new Int32Array(256);
  /** By the hashes of their windows. */
  readonly #patterns: Map<number, Pattern[]> = new Map();
  /** A bit for each hash of a window, by its first bits. */
  readonly #filter: Uint8Array;
  readonly #shift: number;
  /** The part of a text that is searched: in front of what is new, all that a form may begin with. */
  readonly #bytes: Buffer;
  #longest = 0;

  /** @param values - each once, and of at least 8 bytes */
  constructor(values: readonly Buffer[]) {
    this.#values = values;
    // Any odd mixing does: what it finds is compared.
    for (let byte = 0, x = 1; byte < 256; byte++) {
      x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
      this.#gear[byte] = x ^ (x >>> 13);
    }
    const taken = new Uint8Array(2 ** 22);
    for (const bytes of values) this.#rarest(bytes, taken, true);
    for (const [value, bytes] of values.entries()) {
      const seen = new Set<string>();
      const forms = bytes.length <= textBytesMax && isUtf8(bytes) ? lineForm + linesOf(bytes).length : textForm;
      const isPlain = /^[A-Za-z0-9]*$/.test(bytes.toString("latin1"));
      for (let form = 0; form < forms; form++) {
        if (isPlain && form >= textForm && form < plainForm) continue; // nothing to escape
        const written = write(bytes, form);
        if (written.length < window || seen.size === seen.add(written.toString("latin1")).size) continue;
        const { hash, end } = this.#rarest(written, taken);
        const { length } = written;
        const pattern = { value, form, length, tail: length - end, head: this.#hash(written, 0) };
        this.#patterns.set(hash, [...(this.#patterns.get(hash) ?? []), pattern]);
        this.#longest = Math.max(this.#longest, length);
      }
    }
    const bits = Math.min(Math.max(Math.ceil(Math.log2(this.#patterns.size * 64 + 1)), 16), 27);
    this.#shift = 32 - bits;
    this.#filter = new Uint8Array(2 ** (bits - 3));
    for (const hash of this.#patterns.keys()) {
      const slot = hash >>> this.#shift;
      this.#filter[slot >>> 3] = (this.#filter[slot >>> 3] as number) | (1 << (slot & 7));
    }
    this.#bytes = Buffer.alloc(this.#longest + 1 + reach + 1 + pieceBytes);
  }

  /**
   * The hash of the window that fewest others share, of those near the end, and where it ends.
   * @param taken - how often each hash was seen, by its first bits @param counts - count all of them
   */
  #rarest(bytes: Buffer, taken: Uint8Array, counts = false): { readonly hash: number; readonly end: number } {
    const from = Math.max(0, bytes.length - reach);
    let best = { hash: 0, end: 0, count: 256 };
    let hash = 0;
    for (let at = from; at < bytes.length; at++) {
      hash = ((hash << 4) + (this.#gear[bytes[at] as number] as number)) | 0;
      if (at < from + window - 1) continue;
      const count = taken[hash >>> 10] as number;
      if (counts) taken[hash >>> 10] = Math.min(count + 1, 255);
      if (count <= best.count) best = { hash, end: at + 1, count };
    }
    taken[best.hash >>> 10] = Math.min(best.count + 1, 255);
    return best;
  }

  #hash(bytes: Buffer, from: number): number {
    let hash = 0;
    for (let at = from; at < from + window; at++)
      hash = ((hash << 4) + (this.#gear[bytes[at] as number] as number)) | 0;
    return hash;
  }

  /**
   * Calls back for each place where a value stands, in the order of their ends. One text is searched at a time.
   * @returns the bytes that were read
   */
  async scan(chunks: AsyncIterable<Uint8Array>, found: (spot: Spot) => void): Promise<number> {
    // What lies before may belong to a form, and for base64 one character more.
    const before = this.#longest + 1;
    const text = {
      bytes: this.#bytes,
      length: 0,
      at: 0,
      base: 0,
      hash: 0,
      lines: 0,
      lineAt: 0,
      places: new Map<number, number>(),
    };
    for await (const chunk of chunks) {
      for (let from = 0; from < chunk.length; ) {
        const piece = chunk.subarray(from, from + text.bytes.length - text.length);
        text.bytes.set(piece, text.length);
        text.length += piece.length;
        from += piece.length;
        // A window is looked at once all that follows it in its form is there.
        this.#search(text, text.length - reach - 1, found);
        if (text.length === text.bytes.length) drop(text, text.at - before);
      }
    }
    this.#search(text, text.length, found);
    return text.base + text.length;
  }

  #search(text: SearchedText, to: number, found: (spot: Spot) => void): void {
    while (text.at < to) {
      this.#roll(text, to);
      for (const pattern of this.#patterns.get(text.hash) ?? none) this.#judge(text, pattern, found);
    }
  }

  /** Goes on to just behind the next byte whose window may be of a form, or to the end. */
  #roll(text: SearchedText, to: number): void {
    const { bytes } = text;
    const gear = this.#gear;
    const filter = this.#filter;
    const shift = this.#shift;
    let { at, hash, lines } = text;
    while (at < to) {
      const byte = bytes[at++] as number;
      hash = ((hash << 4) + (gear[byte] as number)) | 0;
      if (byte === 10) lines++;
      const slot = hash >>> shift;
      if (((filter[slot >>> 3] as number) & (1 << (slot & 7))) !== 0) break;
    }
    text.at = at;
    text.hash = hash;
    text.lines = lines;
  }

  #judge(text: SearchedText, { value, form, length, tail, head }: Pattern, found: (spot: Spot) => void): void {
    const end = text.at + tail;
    const start = end - length;
    const { bytes } = text;
    if (start < 0 || end > text.length || this.#hash(bytes, start) !== head) return;
    const places = (text.places.get(value) ?? 0) + 1;
    if (places > placesMax) return;
    if (!bytes.subarray(start, end).equals(write(this.#values[value] as Buffer, form))) return;
    if (form >= base64Form && form < textForm && !isWhole(text, start, end, this.#values[value] as Buffer, form))
      return;
    text.places.set(value, places);
    const lineAt = start === 0 ? -1 : bytes.lastIndexOf(10, start - 1);
    const column = (lineAt < 0 ? text.base + start - text.lineAt : start - lineAt - 1) + 1;
    let line = text.lines + 1;
    for (let at = start; at < text.at; at++) if (bytes[at] === 10) line--;
    found({ value, form: nameOf(form), line, column });
  }
}

/** A part of the text: where it begins, how far it was searched, and where its first line began. */
type SearchedText = {
  readonly bytes: Buffer;
  length: number;
  at: number;
  base: number;
  hash: number;
  lines: number;
  lineAt: number;
  /** How many places of each value were found. */
  readonly places: Map<number, number>;
};

/** Drops the beginning, up to a place that nothing needs any more. */
function drop(text: SearchedText, before: number): void {
  const lineAt = before > 0 ? text.bytes.lastIndexOf(10, before - 1) : -1;
  if (lineAt >= 0) text.lineAt = text.base + lineAt + 1;
  text.bytes.copyWithin(0, before, text.length);
  text.length -= before;
  text.at -= before;
  text.base += before;
}

/** Whether the characters around also say the bits of the value that a character shares with a neighbour. */
function isWhole({ bytes, length }: SearchedText, start: number, end: number, value: Buffer, form: number): boolean {
  const offset = (form - base64Form) % 3;
  const shared = offset > 0 ? 1 : 0;
  if (start < shared) return false;
  const around = bytes.toString("latin1", start - shared, Math.min(end + 1, length));
  const whole = Buffer.from("A".repeat(Math.max(Math.ceil((offset * 8) / 6) - 1, 0)) + around, "base64");
  return whole.subarray(offset, offset + value.length).equals(value);
}
