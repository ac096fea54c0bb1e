import { spawn } from "node:child_process";
import { once } from "node:events";
import { close, constants, createReadStream, fstatSync, openSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";

/* Texts to search: files, folders, tar, gzip, and all objects of a git repository, each as a stream of bytes. */

/** A text, or why there is none: `its mode does not allow it`. */
export type Text = { readonly name: string } & ({ readonly chunks: Chunks } | { readonly unread: string });
type Chunks = AsyncIterable<Uint8Array>;

/** Every file below a path. Links in folders are not followed, and what is no file is not opened. */
export async function* textsAt(path: string): AsyncGenerator<Text> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) yield { name: path, unread: whyNot(found) };
  else if (!found.isDirectory()) yield* textsOf(path, () => fileChunks(path, 0));
  else yield* textsBelow(path);
}

async function* textsBelow(folder: string): AsyncGenerator<Text> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => error);
  if (entries instanceof Error) return yield { name: folder, unread: whyNot(entries) };
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* textsBelow(path);
    else if (entry.isFile()) yield* textsOf(path, () => fileChunks(path, constants.O_NOFOLLOW));
  }
}

/** @throws Error with the system's code. A pipe that took the file's place must not keep us. */
function fileChunks(path: string, flags: number): Chunks {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  if (fstatSync(file).isFile()) return createReadStream(path, { fd: file, highWaterMark: 256 * 1024 });
  close(file);
  throw Object.assign(new Error("no file"), { code: "ENXIO" });
}

/** A text and, if it is an archive, those in it: gzip, tar, and each of them in the other, once. */
export async function* textsOf(name: string, open: () => Chunks, inside = ""): AsyncGenerator<Text> {
  let reader: Reader | undefined;
  try {
    reader = new Reader(open());
    await reader.fill(512);
    yield* textsIn(name, reader, inside);
  } catch (error) {
    yield { name, unread: whyNot(error as NodeJS.ErrnoException) };
  } finally {
    await reader?.close();
  }
}

async function* textsIn(name: string, reader: Reader, inside: string): AsyncGenerator<Text> {
  const { start } = reader;
  const [kind] = archives.find(([, magic, at = 0]) => start.subarray(at, at + magic.length).equals(magic)) ?? [];
  const isOpened = kind !== undefined && inside.includes(kind);
  if (kind === "gzip" && !isOpened) yield* textsOf(name, () => unpacked(reader.piece()), `${inside} gzip`);
  else if (kind === "tar" && !isOpened) yield* textsInTar(name, reader, `${inside} tar`);
  // Nothing is packed in a tar.
  else if (kind === undefined || kind === "tar") yield { name, chunks: reader.piece() };
  else yield { name, unread: isOpened ? `it is ${kind} in${inside}` : `${kind} is not unpacked` };
}

const archives: readonly (readonly [kind: string, magic: Buffer, at?: number])[] = [
  ["gzip", Buffer.from("1f8b08", "hex")],
  ["tar", Buffer.from("ustar"), 257],
  ["zip", Buffer.from("504b0304", "hex")],
  ["xz", Buffer.from("fd377a585a", "hex")],
  ["zstd", Buffer.from("28b52ffd", "hex")],
  ["bzip2", Buffer.from("BZh")],
  ["7z", Buffer.from("377abcaf271c", "hex")],
];

function unpacked(chunks: Chunks): Chunks {
  const packed = Readable.from(chunks);
  const gunzip = createGunzip();
  packed.on("error", (error) => gunzip.destroy(error));
  return packed.pipe(gunzip);
}

/** The members of a tar, and what follows them. @throws Error if it is damaged */
async function* textsInTar(name: string, reader: Reader, inside: string): AsyncGenerator<Text> {
  for (let longer: string | undefined; ; ) {
    const header = await reader.take(512);
    if (header.every((byte) => byte === 0)) return yield { name, chunks: reader.piece() };
    const size = sizeIn(header);
    if (header.length < 512 || size === undefined) throw cut();
    const type = String.fromCharCode(header[156] as number);
    const [own = "", prefix = ""] = [header.subarray(0, 100), header.subarray(345, 500)].map(textBefore0);
    const member = reader.piece(size);
    if ((type === "L" || type === "x") && size <= longNameMax) {
      const long = Buffer.concat(await Array.fromAsync(member)).toString();
      longer = type === "L" ? textBefore0(Buffer.from(long)) : /^\d+ path=(.*)$/m.exec(long)?.[1];
    } else {
      yield* textsOf(`${name}:${longer ?? (prefix === "" ? own : `${prefix}/${own}`)}`, () => member, inside);
      longer = undefined;
    }
    for await (const _ of member); // what was not read of it
    await reader.take((512 - (size % 512)) % 512);
  }
}

const longNameMax = 64 * 1024;

function textBefore0(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString().split("\0", 1)[0] as string;
}

/** Octal digits or, from 8 GiB on, bytes after one with its first bit set. */
function sizeIn(header: Buffer): number | undefined {
  const field = header.subarray(124, 136);
  const size =
    (field[0] as number) >= 128
      ? Number(field.readBigUInt64BE(4))
      : Number.parseInt(`0${textBefore0(field).trim()}`, 8);
  return Number.isSafeInteger(size) ? size : undefined;
}

/** Every object of a repository: files of all versions, unreachable ones too, and messages. */
export async function* textsInGit(folder: string): AsyncGenerator<Text> {
  const name = `${folder} (git)`;
  const git = run(folder, "cat-file", "--batch-all-objects", "--batch", "--unordered");
  const reader = new Reader(git.chunks);
  try {
    for (let line = await reader.line(); line !== ""; line = await reader.line()) {
      const [id = "", , size] = line.split(" ");
      const object = reader.piece(Number(size));
      yield* textsOf(`${name}:${id.slice(0, 12)}`, () => object);
      for await (const _ of object); // what was not read of it
      await reader.take(1);
    }
    if ((await git.ended) === 0) return;
  } catch {
    // It ended too early.
  }
  yield { name, unread: "git cannot read it" };
}

/** A repository may be a stranger's: nothing in its settings runs a program here. */
function run(folder: string, ...words: string[]) {
  const env = {
    PATH: process.env["PATH"],
    HOME: process.env["HOME"],
    GIT_NO_LAZY_FETCH: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    LC_ALL: "C",
  };
  const git = spawn("git", ["-C", folder, ...words], { env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(git, "close").then(
    ([code]) => code as number | null,
    () => null,
  );
  return { chunks: git.stdout as Chunks, ended };
}

/** Reads a stream in parts. */
class Reader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #start: Buffer = Buffer.alloc(0);

  constructor(chunks: Chunks) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** What was read and not taken. */
  get start(): Buffer {
    return this.#start;
  }

  /** Reads on until so many bytes are there, or all. */
  async fill(length: number): Promise<void> {
    while (this.#start.length < length) {
      const { value, done } = await this.#chunks.next();
      if (done) return;
      this.#start =
        this.#start.length === 0
          ? Buffer.from(value.buffer, value.byteOffset, value.length)
          : Buffer.concat([this.#start, value]);
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async take(length: number): Promise<Buffer> {
    await this.fill(length);
    const taken = this.#start.subarray(0, length);
    this.#start = this.#start.subarray(length);
    return taken;
  }

  /** Up to the next line feed, which is not part of it. */
  async line(): Promise<string> {
    for (let length = 128; ; length *= 2) {
      await this.fill(length);
      const at = this.#start.indexOf(10);
      if (at >= 0) return (await this.take(at + 1)).subarray(0, at).toString();
      if (this.#start.length < length) return "";
    }
  }

  /** The next bytes, or all. A second walk gives what the first one left. @throws Error if there are fewer */
  piece(length: number = Number.POSITIVE_INFINITY): Chunks {
    let left = length;
    const next = async () => {
      await this.fill(Math.min(left, 1));
      const value = await this.take(Math.min(left, this.#start.length));
      left -= value.length;
      if (value.length > 0) return { value, done: false as const };
      if (left > 0 && left < Number.POSITIVE_INFINITY) throw cut();
      return { value: undefined, done: true as const };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }
}

function cut(): Error {
  return Object.assign(new Error("it ends too early"), { code: "EIO" });
}

/** Why a text cannot be read. */
export function whyNot({ code = "no reason given" }: NodeJS.ErrnoException): string {
  return readFailures[code] ?? code;
}

const readFailures: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "its mode does not allow it",
  EPERM: "the system does not allow it",
  ENXIO: "it is no file",
  ELOOP: "a link took its place",
  EIO: "it is damaged, or ends too early",
  Z_DATA_ERROR: "it is damaged, or ends too early",
  Z_BUF_ERROR: "it is damaged, or ends too early",
};
