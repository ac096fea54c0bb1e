import { spawn } from "node:child_process";
import { once } from "node:events";
import { close, constants, createReadStream, fstatSync, openSync } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { exits, Problem } from "../../core/problem.ts";
import { excerpt } from "../../core/visible.ts";
import { counted } from "../../core/words/text.ts";

/* Texts to search: files, folders, tar, gzip, and all objects of a git repository, each as a stream of bytes. */

/** A text, or why there is none: `its mode does not allow it`. */
export type Text = { readonly name: string } & ({ readonly chunks: Chunks } | { readonly unread: string });
type Chunks = AsyncIterable<Uint8Array>;

/**
 * Every file below a path. Links in folders are not followed, and what is no file is not opened.
 * @param objects - the folder of git that {@link textsInGit} reads
 */
export async function* textsAt(path: string, objects?: string): AsyncGenerator<Text> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) yield { name: path, unread: whyNot(found, path) };
  else if (!found.isDirectory()) yield* textsOf(path, () => fileChunks(path, 0));
  else yield* textsBelow(path, objects);
}

async function* textsBelow(folder: string, objects: string | undefined): AsyncGenerator<Text> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => error);
  if (entries instanceof Error) return yield { name: folder, unread: whyNot(entries, folder) };
  const isOfGit = ["HEAD", "objects", "refs"].every((name) => entries.some((entry) => entry.name === name));
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (isOfGit && entry.name === "objects") {
      if ((await realpath(path)) !== objects) yield { name: path, unread: "git packs them: --git reads them" };
    } else if (entry.isDirectory()) yield* textsBelow(path, objects);
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

/**
 * A text and, if it is an archive, those in it: gzip, tar, and each of them in the other, once.
 * @param unpacks - whether gzip is unpacked: a small text may have no end
 */
export async function* textsOf(name: string, open: () => Chunks, unpacks = true, inside = ""): AsyncGenerator<Text> {
  let reader: StreamReader | undefined;
  try {
    reader = new StreamReader(open());
    await reader.fill(512);
    yield* textsIn(name, reader, unpacks, inside);
  } catch (error) {
    if (error instanceof Problem) throw error; // before anything was read
    yield { name, unread: whyNot(error as NodeJS.ErrnoException, name) };
  } finally {
    await reader?.close();
  }
}

async function* textsIn(name: string, reader: StreamReader, unpacks: boolean, inside: string): AsyncGenerator<Text> {
  const kind = kindOf(reader.start);
  const isOpened = kind !== undefined && inside.includes(kind);
  if (kind === "gzip" && !isOpened && unpacks)
    yield* textsOf(name, () => unpacked(reader.piece()), unpacks, `${inside} gzip`);
  else if (kind === "tar" && !isOpened) yield* textsInTar(name, reader, unpacks, `${inside} tar`);
  // Nothing is packed in a tar.
  else if (kind === undefined || kind === "tar") yield { name, chunks: reader.piece() };
  else if (kind === "gzip")
    yield { name, unread: isOpened ? `it is gzip in${inside}` : "gzip is not unpacked over SSH" };
  else yield { name, unread: `${kind} is not unpacked` };
}

/** What packs a text, by its first bytes. */
function kindOf(start: Buffer): string | undefined {
  if (start.subarray(257, 262).toString("latin1") === "ustar" || isOldTar(start)) return "tar";
  const first = start.toString("latin1", 0, 16);
  return Object.keys(packed).find((kind) => packed[kind]?.some((magic) => first.startsWith(magic)));
}

/** Before POSIX, only the checksum of a header told what it is. */
function isOldTar(start: Buffer): boolean {
  const header = start.subarray(0, 512);
  const told = header.subarray(148, 156);
  if (header.length < 512 || !/^ *[0-7]+[ \0]+$/.test(told.toString("latin1"))) return false;
  const sum = header.reduce((total, byte) => total + byte, 0) - told.reduce((total, byte) => total + byte, 0);
  return sum + 8 * 0x20 === Number.parseInt(told.toString("latin1"), 8);
}

/** The first bytes of each kind, as Latin-1. */
const packed: Readonly<Record<string, readonly string[]>> = {
  gzip: ["\x1f\x8b\x08"],
  zip: ["PK\x03\x04", "PK\x07\x08"], // the second: an archive in parts
  xz: ["\xfd7zXZ"],
  zstd: ["\x28\xb5\x2f\xfd", ...Array.from({ length: 16 }, (_, at) => `${String.fromCharCode(0x50 + at)}*M\x18`)], // the others: skippable frames
  bzip2: ["BZh"],
  "7z": ["7z\xbc\xaf\x27\x1c"],
  lzma: ["\x5d\0\0"],
  lzip: ["LZIP"],
  lzop: ["\x89LZO\0\r\n\x1a\n"],
  lz4: ["\x04\x22M\x18", "\x02\x21L\x18"], // the second: before 1.0
  "compress (.Z)": ["\x1f\x9d"],
  "pack (.z)": ["\x1f\x1e"],
  snappy: ["\xff\x06\0\0sNaPpY"],
  rar: ["Rar!\x1a\x07"],
  cab: ["MSCF\0\0\0\0"],
  squashfs: ["hsqs"],
  rpm: ["\xed\xab\xee\xdb"],
  "a pack of git": ["PACK\0\0\0"],
  "a bundle of git": ["# v2 git bundle\n", "# v3 git bundle\n"],
  zlib: ["\x78\x01", "\x78\x9c", "\x78\xda"],
};

/** @throws Error if bytes follow that are neither gzip nor the zeros with which a tape or a disk is filled up */
async function* unpacked(chunks: Chunks): Chunks {
  let [length, end] = [0, 0];
  async function* counted() {
    for await (const chunk of chunks) {
      let last = chunk.length;
      while (last > 0 && chunk[last - 1] === 0) last -= 1;
      if (last > 0) end = length + last;
      length += chunk.length;
      yield chunk;
    }
  }
  const source = Readable.from(counted());
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  yield* source.pipe(gunzip);
  source.unpipe(gunzip);
  for await (const _ of source); // counts what is left
  if (end > gunzip.bytesWritten) throw Object.assign(new Error("more follows"), { code: "GZIP_REST" });
}

/** The members of a tar, and what follows them. @throws Error if it is damaged */
async function* textsInTar(name: string, reader: StreamReader, unpacks: boolean, inside: string): AsyncGenerator<Text> {
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
      yield* textsOf(`${name}:${longer ?? (prefix === "" ? own : `${prefix}/${own}`)}`, () => member, unpacks, inside);
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

/**
 * Every object of a repository: files of all versions, unreachable ones too, and messages. Without a part of the
 * history that its branches name, it is not read as a whole.
 */
export async function* textsInGit(folder: string): AsyncGenerator<Text> {
  const name = `${folder} (git)`;
  const git = run(folder, "cat-file", "--batch-all-objects", "--batch", "--unordered");
  const reader = new StreamReader(git.chunks);
  let lost = 0;
  try {
    for (let line = await reader.line(); line !== ""; line = await reader.line()) {
      const [id = "", type, size] = line.split(" ");
      if (type === "missing") {
        lost += 1; // damaged: no content follows
        continue;
      }
      const object = reader.piece(Number(size));
      yield* textsOf(`${name}:${id.slice(0, 12)}`, () => object);
      for await (const _ of object); // what was not read of it
      await reader.take(1);
    }
  } catch {
    return yield { name, unread: "git ended too early" };
  }
  if ((await answerOf(folder, "--is-shallow-repository")) === "true") yield { name, unread: cutOff };
  const walk = run(folder, "rev-list", "--objects", "--all", "--missing=print", "--no-object-names");
  // It writes one question mark before the name of an object that is not there.
  for await (const chunk of walk.chunks) for (const byte of chunk) if (byte === 63) lost += 1;
  if (lost > 0)
    yield { name, unread: `${lost} of its objects are missing or damaged: a clone without --filter has all` };
  const failure = (await git.failure) ?? (await walk.failure);
  if (failure !== undefined) yield { name, unread: failure };
}

const cutOff =
  "this clone has a part of the history: git fetch --unshallow, or fetch-depth: 0 in actions/checkout, gets the rest";

/** The folder with the objects of a repository, as {@link textsAt} takes it. */
export async function gitObjectsOf(folder: string): Promise<string | undefined> {
  const git = run(folder, "rev-parse", "--git-path", "objects");
  const path = Buffer.concat(await Array.fromAsync(git.chunks))
    .toString()
    .replace(/\n$/, "");
  return path === "" ? undefined : realpath(resolve(folder, path)).catch(() => undefined);
}

async function answerOf(folder: string, ...words: string[]): Promise<string> {
  const chunks = await Array.fromAsync(run(folder, "rev-parse", ...words).chunks);
  return Buffer.concat(chunks).toString().replace(/\n$/, "");
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
  const git = spawn("git", ["-C", folder, ...words], { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  git.stderr.on("data", (chunk: Buffer) => {
    if (said.length < 4096) said += chunk;
  });
  const failure = once(git, "close").then(
    ([code]) => (code === 0 ? undefined : whyNotGit(said)),
    () => "there is no program git",
  );
  return { chunks: git.stdout as Chunks, failure };
}

/** @param said - what git wrote on stderr */
function whyNotGit(said: string): string {
  if (said.includes("not a git repository")) return "there is no git repository";
  const [, reason] = /^(?:fatal|error): (.+)$/m.exec(said) ?? [];
  const [way] = /git config --global --add safe\.directory .+$/m.exec(said) ?? [];
  return `git cannot read it${reason ? `: ${reason}` : ""}${way ? `. If you trust it: ${way}` : ""}`;
}

/** Reads a stream in parts. */
class StreamReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** What was read and not taken. */
  start: Buffer = Buffer.alloc(0);
  #failure: unknown;

  constructor(chunks: Chunks) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Reads on until so many bytes are there, or all. @throws Error of the stream, once what came before it was taken */
  async fill(length: number): Promise<void> {
    while (this.start.length < length) {
      if (this.#failure !== undefined && this.start.length > 0) return;
      if (this.#failure !== undefined) throw this.#failure;
      const { value, done } = await this.#chunks.next().catch((error: unknown) => {
        this.#failure = error;
        return { value: new Uint8Array(), done: false as const };
      });
      if (done) return;
      this.start =
        this.start.length === 0
          ? Buffer.from(value.buffer, value.byteOffset, value.length)
          : Buffer.concat([this.start, value]);
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async take(length: number): Promise<Buffer> {
    await this.fill(length);
    const taken = this.start.subarray(0, length);
    this.start = this.start.subarray(length);
    return taken;
  }

  /** Up to the next line feed, which is not part of it. */
  async line(): Promise<string> {
    for (let length = 128; ; length *= 2) {
      await this.fill(length);
      const at = this.start.indexOf(10);
      if (at >= 0) return (await this.take(at + 1)).subarray(0, at).toString();
      if (this.start.length < length) return "";
    }
  }

  /** The next bytes, or all. A second walk gives what the first one left. @throws Error if there are fewer */
  piece(length: number = Number.POSITIVE_INFINITY): Chunks {
    let left = length;
    const next = async () => {
      await this.fill(Math.min(left, 1));
      const value = await this.take(Math.min(left, this.start.length));
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

export type Unread = { readonly name: string; readonly why: string };

/** Names the texts that were not read. */
export function unreadWords(unread: readonly Unread[]): string[] {
  return unread.map(({ name, why }) => `Not read: ${excerpt(name)}: ${why}.`);
}

/** How a search ends that did not read everything. @param more - what it says beside that */
export function unreadProblem(count: number, more = ""): Problem {
  const told = `${counted(count, "text was", "texts were")} not read. ${more}`.trimEnd();
  return new Problem(exits.unavailable, "unread", told);
}

/** Why a text cannot be read. */
export function whyNot(error: NodeJS.ErrnoException, name: string): string {
  if (error instanceof Problem) return error.message.replace(/\.$/, "");
  const { code = "no reason given" } = error;
  // The runtime puts U+FFFD in place of bytes that are not UTF-8.
  if (code === "ENOENT" && name.includes("\ufffd")) return "its name is not UTF-8";
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
  GZIP_REST: "what follows its gzip, behind zeros, is not unpacked",
};
