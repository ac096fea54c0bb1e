import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmdirSync,
  type Stats,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { sha256Of } from "./answers.ts";
import { exits, Problem } from "./command.ts";

/*
 * Secret files onto a disk that others may be changing meanwhile. On Linux each folder is opened from the one above it
 * and refused where it is a symbolic link, and everything in it is named through that open folder
 * (`/proc/self/fd/N/name`): what is swapped afterwards leads nowhere else. macOS and Windows have no such names, so
 * there every folder on the way is looked at right before use, and a swap in between is not seen.
 *
 * All temporary files are written, synced and read back before the first one takes its place. What fails after that puts
 * everything back: either all files are new or the folder is as it was.
 */

/** What is to stand at a path. */
export type Wanted = {
  /** Below the root, without a `pathProblem`; all of them together without a `pathSetProblem`. */
  readonly path: string;
  readonly mode: "0600" | "0400";
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
};

/** What stands there: the file itself, another one, one whose mode alone differs (and its content), or nothing. */
export type Standing =
  | { readonly state: "same" | "other" | "missing" }
  | { readonly state: "mode"; readonly content: Uint8Array };

/** How folders are walked; see above. */
export type Walk = "descriptor" | "lstat";

/** What a caller of {@link Root.place} hears and may say meanwhile. */
export type Placing = {
  /** Called as each temporary file is done. */
  readonly report?: (done: number, total: number) => void;
  /** Throws where the command has been interrupted; called only as long as everything can still be taken back. */
  readonly check?: () => void;
};

/** The folder that secret files are put below. It is opened once; {@link Root.close} lets it go. */
export class Root {
  readonly #walk: Walk;
  readonly #top: Folder;
  /** Folders in use, by their path; kept open so that they stay what they are. */
  readonly #folders = new Map<string, Folder>();

  /**
   * @param path - a folder that exists; a link to one is refused, since whoever made it decides where it leads
   * @throws Problem
   */
  constructor(path: string, walk: Walk = process.platform === "linux" ? "descriptor" : "lstat") {
    this.#walk = walk;
    this.#top = told(path, () => openFolder(resolve(path), path, walk));
    if (walk === "descriptor" && tryStat(this.#top.at) === undefined) {
      this.#top.close();
      throw new Problem(exits.failed, "no_proc", "Files cannot be put in place safely without /proc: mount it.");
    }
  }

  /**
   * Compares what stands at a path with what should.
   * @throws Problem `obstructed` where anything but a file is there, or something else than a folder on the way
   */
  compare(wanted: Wanted): Standing {
    return told(wanted.path, () => {
      const { folder, name } = this.#find(wanted.path, "look");
      return folder === undefined ? { state: "missing" } : compareIn(folder, name, wanted);
    });
  }

  /**
   * Puts files in place: all of them or none.
   * @param files - each with content of the size and checksum that it says
   * @throws Problem, or what `check` threw; the folder is then as it was
   */
  async place(files: readonly (Wanted & { readonly content: Uint8Array })[], placing: Placing = {}): Promise<void> {
    const made: Folder[] = [];
    const written: Written[] = [];
    const replaced: Replaced[] = [];
    try {
      for (const file of files) {
        written.push(told(file.path, () => this.#write(file, made)));
        placing.report?.(written.length, files.length);
        if (placing.check) {
          await new Promise(setImmediate); // signals are delivered between turns
          placing.check();
        }
      }
      // From here on without a pause: no signal comes in between.
      for (const file of written) {
        if (this.#walk === "lstat") told(file.path, () => this.#walkTo(file.path).close());
        told(file.path, () => replaced.push(replace(file)));
      }
      for (const file of written) told(file.path, () => this.#confirm(file));
      // Not every file system can sync a folder; the files themselves are synced.
      for (const folder of new Set(written.map((file) => file.folder))) attempt(folder.sync);
    } catch (error) {
      for (const one of replaced.reverse()) attempt(() => putBack(one));
      for (const one of written) attempt(() => unlinkSync(`${one.folder.at}/${one.temporary}`));
      for (const folder of made.reverse()) attempt(() => rmdirSync(folder.named));
      throw error;
    }
    for (const { file, kept } of replaced) {
      if (kept !== undefined) attempt(() => unlinkSync(`${file.folder.at}/${kept}`));
    }
  }

  close(): void {
    for (const folder of this.#folders.values()) folder.close();
    this.#folders.clear();
    this.#top.close();
  }

  #write(wanted: Wanted & { readonly content: Uint8Array }, made: Folder[]): Written {
    const { folder, name } = this.#find(wanted.path, "make", made);
    if (folder === undefined) throw new Error("a folder was made and is not there");
    const standing = tryStat(`${folder.at}/${name}`);
    if (standing !== undefined) judgeTarget(wanted.path, standing);
    const temporary = temporaryName("tmp");
    const mode = Number.parseInt(wanted.mode, 8);
    return {
      path: wanted.path,
      folder,
      name,
      temporary,
      stat: writeTemporary(`${folder.at}/${temporary}`, wanted, mode),
    };
  }

  /** The file is reached by its path from the root, walked anew: nothing was swapped on the way. */
  #confirm({ path, name, stat }: Written): void {
    const folder = this.#walkTo(path);
    try {
      const found = tryStat(`${folder.at}/${name}`);
      if (found?.ino === stat.ino && found.dev === stat.dev) return;
      throw obstructed(path, "was moved away while it was put in place");
    } finally {
      folder.close();
    }
  }

  /** The folder that a path leads to now; to be closed by the caller. */
  #walkTo(path: string): Folder {
    let folder: Folder = { ...this.#top, close: () => {} };
    for (const [at, part] of path.split("/").slice(0, -1).entries()) {
      try {
        const next = openFolder(`${folder.at}/${part}`, path.split("/", at + 1).join("/"), this.#walk);
        folder.close();
        folder = next;
      } catch (error) {
        folder.close();
        throw error;
      }
    }
    return folder;
  }

  /** The folder of a path and the last part of it; no folder where one is missing that was not to be made. */
  #find(path: string, how: "look" | "make", made: Folder[] = []): { folder: Folder | undefined; name: string } {
    const parts = path.split("/");
    const name = parts.pop() ?? "";
    let folder = this.#top;
    for (const [at, part] of parts.entries()) {
      const walked = parts.slice(0, at + 1).join("/");
      let next = this.#walk === "descriptor" ? this.#folders.get(walked) : undefined;
      if (next === undefined) {
        const named = `${folder.at}/${part}`;
        const fresh = how === "make" && makeFolder(named);
        if (how === "look" && tryStat(named) === undefined) return { folder: undefined, name };
        try {
          next = openFolder(named, walked, this.#walk);
        } catch (error) {
          if (fresh) attempt(() => rmdirSync(named));
          throw error;
        }
        if (fresh) made.push(next);
        this.#folders.get(walked)?.close();
        this.#folders.set(walked, next);
      }
      folder = next;
    }
    return { folder, name };
  }
}

/**
 * Writes one file of mode 0600 at a path of the user's own choosing: whole, by way of a temporary file beside it.
 * @throws Problem where it cannot be written, or something other than a file stands there
 */
export function writeWhole(path: string, content: Uint8Array): void {
  told(path, () => {
    const standing = tryStat(path);
    if (standing !== undefined) judgeTarget(path, standing);
    const temporary = join(dirname(path), temporaryName("tmp"));
    writeTemporary(temporary, { size: content.length, sha256: sha256Of(content), content }, 0o600);
    try {
      renameSync(temporary, path);
    } catch (error) {
      attempt(() => unlinkSync(temporary));
      throw error;
    }
  });
}

/** A file that text can be appended to. */
export type Appending = {
  /** All of the text or nothing, on lines of its own. @throws Problem */
  readonly append: (text: string) => void;
  readonly close: () => void;
};

/**
 * Opens a file that others append to as well, or makes it.
 * @throws Problem where that cannot be done, so that it is known before anything else happens
 */
export function openAppending(path: string): Appending {
  const fd = told(path, () => openSync(path, O_RDWR | constants.O_APPEND | O_CREAT | O_NONBLOCK, 0o600));
  const close = () => closeSync(fd);
  const append = (text: string) => {
    told(path, () => {
      const { size } = fstatSync(fd);
      const last = Buffer.alloc(1);
      const midLine = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
      try {
        writeAll(fd, Buffer.from(midLine ? `\n${text}` : text));
      } catch (error) {
        attempt(() => ftruncateSync(fd, size));
        throw error;
      }
    });
  };
  return { append, close };
}

/** An open folder: what is in it is named `${at}/name`, whatever becomes of the path that led here. */
type Folder = {
  readonly at: string;
  /** Where it was when it was opened, for taking it away again. */
  readonly named: string;
  readonly sync: () => void;
  readonly close: () => void;
};

/** A temporary file that waits to take its place. */
type Written = {
  readonly path: string;
  readonly folder: Folder;
  readonly name: string;
  readonly temporary: string;
  readonly stat: Stats;
};

/** A file that took its place; `kept` is what stood there, under a name of its own. */
type Replaced = { readonly file: Written; readonly kept: string | undefined };

/** What Windows has not is 0 there. */
const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_DIRECTORY = 0, O_NONBLOCK = 0, O_RDONLY, O_RDWR } = constants;

/**
 * @param named - where it is: through an open folder, or for the lstat walk by its path
 * @param path - for messages
 */
function openFolder(named: string, path: string, walk: Walk): Folder {
  if (walk === "lstat") {
    judgeFolder(path, tryStat(named));
    return { at: named, named, sync: () => {}, close: () => {} };
  }
  try {
    const fd = openSync(named, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return { at: `/proc/self/fd/${fd}`, named, sync: () => fsyncSync(fd), close: () => closeSync(fd) };
  } catch (error) {
    // ELOOP or ENOTDIR, which say less than a look does.
    if (codeOf(error) !== "EACCES") judgeFolder(path, tryStat(named));
    throw error;
  }
}

function judgeFolder(path: string, stat: Stats | undefined): void {
  if (stat === undefined) throw new Problem(exits.failed, "no_folder", `There is no folder ${path}: make it first.`);
  if (stat.isSymbolicLink()) throw obstructed(path, "is a symbolic link, and nothing is written through one");
  if (!stat.isDirectory()) throw obstructed(path, "is not a folder");
}

function judgeTarget(path: string, stat: Stats): void {
  if (stat.isSymbolicLink()) throw obstructed(path, "is a symbolic link, and nothing is written through one");
  if (!stat.isFile()) throw obstructed(path, "is there already and is no file");
}

/** @returns whether it was missing */
function makeFolder(named: string): boolean {
  try {
    mkdirSync(named, { mode: 0o700 });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function compareIn(folder: Folder, name: string, wanted: Wanted): Standing {
  const named = `${folder.at}/${name}`;
  const standing = tryStat(named);
  if (standing === undefined) return { state: "missing" };
  judgeTarget(wanted.path, standing);
  let fd: number;
  try {
    fd = openSync(named, O_RDONLY | O_NOFOLLOW | O_NONBLOCK); // without waiting for whoever writes, should it be a pipe by now
  } catch (error) {
    if (codeOf(error) === "EACCES") return { state: "other" }; // what cannot be read can still be replaced
    throw error;
  }
  try {
    const stat = fstatSync(fd);
    judgeTarget(wanted.path, stat);
    if (stat.size !== wanted.size) return { state: "other" };
    const content = readAll(fd, wanted.size);
    if (sha256Of(content) !== wanted.sha256) return { state: "other" };
    const modeIsRight = process.platform === "win32" || (stat.mode & 0o7777) === Number.parseInt(wanted.mode, 8);
    return modeIsRight ? { state: "same" } : { state: "mode", content };
  } finally {
    closeSync(fd);
  }
}

/** A new file that nobody else can open, synced and read back; its mode is exact from the first moment. */
function writeTemporary(
  named: string,
  wanted: { readonly content: Uint8Array; readonly size: number; readonly sha256: string },
  mode: number,
): Stats {
  const fd = openSync(named, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeAll(fd, wanted.content);
    if (sha256Of(readAll(fd, wanted.size + 1)) !== wanted.sha256) throw new Error("a file read back as another");
    if (process.platform !== "win32") fchmodSync(fd, mode);
    fsyncSync(fd);
    return fstatSync(fd);
  } catch (error) {
    attempt(() => unlinkSync(named));
    throw error;
  } finally {
    closeSync(fd);
  }
}

function replace(file: Written): Replaced {
  const { folder, name, path, temporary } = file;
  const named = `${folder.at}/${name}`;
  const standing = tryStat(named);
  if (standing !== undefined) judgeTarget(path, standing);
  const kept = standing === undefined ? undefined : keep(folder, named);
  try {
    renameSync(`${folder.at}/${temporary}`, named);
  } catch (error) {
    if (kept !== undefined) attempt(() => unlinkSync(`${folder.at}/${kept}`));
    throw error;
  }
  return { file, kept };
}

/** A second name for what stands there, or a copy where the file system knows no second names. */
function keep(folder: Folder, named: string): string {
  const kept = temporaryName("old");
  try {
    linkSync(named, `${folder.at}/${kept}`);
  } catch {
    copyFileSync(named, `${folder.at}/${kept}`, constants.COPYFILE_EXCL);
  }
  return kept;
}

function putBack({ file, kept }: Replaced): void {
  const named = `${file.folder.at}/${file.name}`;
  if (kept === undefined) unlinkSync(named);
  else renameSync(`${file.folder.at}/${kept}`, named);
}

/** Random, so that nobody can have put something there before. */
function temporaryName(ending: "tmp" | "old"): string {
  return `.keyhole-${randomBytes(12).toString("hex")}.${ending}`;
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at);
}

/** From the file's beginning; no more than `bytesMax`. */
function readAll(fd: number, bytesMax: number): Uint8Array {
  const bytes = Buffer.alloc(bytesMax);
  let length = 0;
  while (length < bytesMax) {
    const read = readSync(fd, bytes, length, bytesMax - length, length);
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
}

function tryStat(named: string): Stats | undefined {
  try {
    return lstatSync(named);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Cleaning up after a failure goes on, whatever else fails. */
function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // The failure that led here is the one to report.
  }
}

function obstructed(path: string, what: string): Problem {
  return new Problem(exits.failed, "obstructed", `'${path}' ${what}.`);
}

/** Runs a step for a file and says of a failing system which file it was. */
function told<T>(path: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof Problem) throw error;
    const code = codeOf(error) ?? "no reason given";
    const reason = systemFailures[code] ?? code;
    throw new Problem(exits.failed, "unwritable", `'${path}' cannot be put in place: ${reason}.`, { cause: error });
  }
}

const systemFailures: Readonly<Record<string, string>> = {
  EACCES: "the folder's mode does not allow it",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many folders at once",
  ENOENT: "its folder is not there",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
};

function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}
