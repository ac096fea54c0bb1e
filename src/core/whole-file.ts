import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { attempt } from "./attempt.ts";
import { dayMs } from "./names.ts";
import { exits, Problem } from "./problem.ts";

/*
 * How Keyhole writes a file of its own: root keys, key files, backups, exports, pulled variables, receipts. A draft with
 * a random name and mode 0600 is written beside the file, synced, and renamed or linked in one step. A crash leaves the
 * old file or the new one, and at worst a draft, which writers of that kind remove once it is a day old.
 * `client/safe-files.ts` writes secret files below folders that others may change, with the steps exported here.
 */

/** What is written: its name is part of a draft's name. */
export type WholeFile =
  | "root-key"
  | "api-key"
  | "backup"
  | "export"
  | "folder"
  | "pull"
  | "files"
  | "receipt"
  | "checkpoint"
  | "witness";

/** Is told which modes new files got: not every file system keeps one. See `core/modes.ts`. */
export type Modes = (files: readonly { readonly path: string; readonly mode: number }[]) => void;

/**
 * Writes a file that appears whole or not at all, with mode 0600. It is on the disk when this resolves.
 * @param fill - writes the draft, an empty file whose path it gets
 * @throws Problem `exists` without `force`, `obstructed` or `unwritable`; and what `fill` throws
 */
export async function writeWhole(
  kind: WholeFile,
  path: string,
  force: boolean,
  fill: (draft: string) => Promise<void>,
  modes: Modes,
): Promise<void> {
  try {
    using draft = newDraft(kind, path, force);
    await fill(draft.path);
    moveIntoPlace(draft.path, path, force);
    modes([{ path, mode: draft.mode }]);
  } catch (error) {
    throw problemOf(path, error);
  }
}

/**
 * Writes a folder that appears whole or not at all, with mode 0700. It takes the place of an empty folder.
 * @param fill - fills the draft, an empty folder whose path it gets
 * @throws Problem `exists`, `obstructed` or `unwritable`; and what `fill` throws
 */
export async function writeWholeFolder(path: string, fill: (draft: string) => Promise<void>): Promise<void> {
  const named = resolve(path);
  const above = dirname(named);
  try {
    requireEmpty(path, named);
    removeDrafts(above, "folder");
    const draft = draftIn(above, "folder");
    mkdirSync(draft, { mode: 0o700 });
    try {
      await fill(draft);
      syncFolder(draft);
      renameSync(draft, named); // fails if somebody has put something there
      syncFolder(above);
    } finally {
      rmSync(draft, { force: true, recursive: true });
    }
  } catch (error) {
    throw problemOf(path, error);
  }
}

/** The same for content in memory that is no secret, or whose readers are warned of whenever it is read. */
export function writeWholeSync(kind: WholeFile, path: string, force: boolean, content: Uint8Array): void {
  onFile(path, () => {
    using draft = newDraft(kind, path, force, content);
    moveIntoPlace(draft.path, path, force);
  });
}

/**
 * Removes drafts of a kind that killed processes left in a folder: those older than a day. What cannot be removed stays.
 * @param beforeMs - drafts from before this moment; infinity if nobody writes this kind of file there now
 */
export function removeDrafts(folder: string, kind: WholeFile, beforeMs = Date.now() - dayMs): void {
  for (const name of attempt(() => readdirSync(folder)) ?? []) {
    const [draft, itsKind = kind, at = ""] = draftName.exec(name) ?? []; // drafts of 0.2.0 name no kind and no moment
    if (draft === undefined || itsKind !== kind || Number.parseInt(at, 16) >= beforeMs) continue;
    attempt(() => rmSync(join(folder, draft), { force: true, recursive: kind === "folder" }));
  }
}

/**
 * Moves a draft to its path, durably. With `force` it replaces a file; without, the draft stays as a second name.
 * @throws the system's error, EEXIST if a file is there and `force` is not given
 */
export function moveIntoPlace(draft: string, path: string, force: boolean): void {
  sync(draft, "r+");
  if (force) renameSync(draft, path);
  else linkSync(draft, path);
  syncFolder(dirname(path)); // makes the new name durable
}

/** A path for a draft, with the moment and a random part in its name: nobody can have created that file before. */
export function draftIn(folder: string, kind: WholeFile): string {
  const at = Date.now().toString(16).padStart(12, "0");
  return join(folder, `.keyhole-${kind}-${at}${randomBytes(6).toString("hex")}.part`);
}

/**
 * Writes a file that did not exist: synced, read back, and with its exact mode whatever the umask; or leaves none.
 * @param owner - a file or a folder: if root writes, the new file gets its owner
 * @returns the mode that it has: not every file system keeps one
 */
export function writeNew(path: string, content: Uint8Array, mode: number, owner?: string): number {
  const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    if (owner !== undefined) giveToOwnerOf(owner, fd);
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at, content.length - at);
    if (!readStart(fd, content.length + 1).equals(content)) {
      throw new Problem(exits.failed, "unwritable", "The disk returned other bytes than were written.");
    }
    if (process.platform !== "win32") fchmodSync(fd, mode);
    fsyncSync(fd);
    return fstatSync(fd).mode;
  } catch (error) {
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * Makes a file with mode 0600 that belongs to the owner of its folder, if there is none. One that is there is not opened:
 * as it closes, POSIX drops all locks that this process has on it, and those of SQLite are among them.
 */
export function makeIfAbsent(path: string, content = new Uint8Array()): void {
  try {
    if (!existsSync(path)) writeNew(path, content, 0o600, dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * If this is root, gives an open file the owner of another file or folder. The account that serves a folder must be
 * able to open what root made in it.
 */
function giveToOwnerOf(path: string, fd: number): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(path);
  fchownSync(fd, uid, gid);
}

/** The first bytes of an open file, at most `bytesMax`. */
export function readStart(fd: number, bytesMax: number): Buffer {
  const bytes = Buffer.alloc(bytesMax);
  let length = 0;
  while (length < bytesMax) {
    const read = readSync(fd, bytes, length, bytesMax - length, length);
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
}

/** For what replaces no file, in any way. @throws Problem if the file exists */
export function requireFree(path: string): void {
  if (tryStat(path) === undefined) return;
  throw new Problem(exits.failed, "exists", `${path} is there already, and --out replaces no file: name another.`);
}

/** Does not follow links. @returns undefined if nothing is there */
export function tryStat(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** @throws Problem `obstructed` unless this is a regular file */
export function requireFile(path: string, stat: Stats): void {
  if (stat.isSymbolicLink()) throw obstructed(path, "is a symbolic link, and Keyhole does not write through links");
  if (!stat.isFile()) throw obstructed(path, "exists and is not a file");
}

export function obstructed(path: string, what: string): Problem {
  return new Problem(exits.failed, "obstructed", `'${path}' ${what}.`);
}

/** Runs a step of writing a file. @throws Problem that tells a person why the file could not be written */
export function onFile<T>(path: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw problemOf(path, error);
  }
}

/** Makes a Problem of the system's error; every other error stays as it is. */
function problemOf(path: string, error: unknown): unknown {
  const { syscall, code = "no reason given" } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  if (code === "EEXIST") return exists(path);
  if (code === "ENOTEMPTY") return obstructed(path, notEmpty);
  const words = `'${path}' cannot be written: ${reasons[code] ?? code}.`;
  return new Problem(exits.failed, "unwritable", words, { cause: error });
}

function exists(path: string): Problem {
  return new Problem(exits.failed, "exists", `${path} is there already: name another file, or add --force.`);
}

/** A draft, or a file of SQLite's beside it: its kind, and its moment in hex. */
const draftName = /^\.keyhole-(?:([a-z-]+)-)?([0-9a-f]{12})[0-9a-f]{12}\.part(?:-journal|-wal|-shm)?$/;

/** Starts a draft. What cannot be replaced fails here, before the work, and not only when the draft is moved. */
function newDraft(kind: WholeFile, path: string, force: boolean, content: Uint8Array = new Uint8Array()) {
  removeDrafts(dirname(path), kind);
  const stat = tryStat(path);
  if (stat !== undefined && !force) throw exists(path);
  if (stat !== undefined) requireFile(path, stat);
  const draft = draftIn(dirname(path), kind);
  // The server's account may be another than that of the command, such as root.
  const owner = kind === "root-key" ? (stat === undefined ? dirname(path) : path) : undefined;
  const mode = writeNew(draft, content, 0o600, owner);
  return { path: draft, mode, [Symbol.dispose]: () => rmSync(draft, { force: true }) };
}

/** Errors of Windows, of file systems that cannot sync a folder, and of folders that may be written but not read. */
const cannotSync = ["EISDIR", "EPERM", "EINVAL", "ENOTSUP", "EACCES"];

function syncFolder(path: string): void {
  try {
    sync(path, "r");
  } catch (error) {
    if (!cannotSync.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/** @throws Problem `obstructed` unless a folder can take this place */
function requireEmpty(path: string, named: string): void {
  const stat = tryStat(named);
  if (stat === undefined) return;
  if (stat.isSymbolicLink()) throw obstructed(path, "is a symbolic link, and Keyhole does not write through links");
  if (!stat.isDirectory()) throw obstructed(path, "is not a folder");
  if (readdirSync(named).length > 0) throw obstructed(path, notEmpty);
  if (named === process.cwd()) throw obstructed(path, "is the folder that you are in: name one that is not there yet");
}

const notEmpty = "is not empty: name a folder that is not there yet";

function sync(path: string, flags: "r" | "r+"): void {
  const fd = openSync(path, flags);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Windows has no O_NOFOLLOW. */
const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_RDWR } = constants;

const reasons: Readonly<Record<string, string>> = {
  EACCES: "the folder's mode does not allow it",
  EBUSY: "it is a mount point, which cannot be replaced: mount its folder, not the file",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many folders are open",
  ENOENT: "its folder does not exist",
  ENOSPC: "the disk is full",
  EPERM: "it or its folder may be immutable (see lsattr), or belong to another user in a folder such as /tmp",
  EROFS: "the file system is read-only",
  ETXTBSY: "it is a program that is running",
  EXDEV: "it is on another file system than its folder: mount the folder, not the file",
};
