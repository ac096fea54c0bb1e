import {
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from "node:fs";
import { posix, resolve } from "node:path";
import { attempt } from "../core/attempt.ts";
import { sha256Of } from "../core/hash.ts";
import { exits, Problem } from "../core/problem.ts";
import {
  draftIn,
  type Modes,
  obstructed,
  onFile,
  readStart,
  removeDrafts,
  requireFile,
  tryStat,
  writeNew,
} from "../core/whole-file.ts";
import type { FetchedFile, FileRecord } from "./answers.ts";

/*
 * Writes secret files below a folder that other processes may be changing. On Linux every folder is opened from the
 * one above it, symbolic links are refused, and files are named through the open folder (`/proc/self/fd/N/name`):
 * swapping a folder for a link leads nowhere. macOS and Windows have no such names: there every folder on the path is
 * checked right before use, and a swap between check and use goes unnoticed. All temporary files are written, synced
 * and read back before the first rename. After a failure every file is put back. A process that is killed can leave
 * temporary files; the next one removes them.
 */

/** How the file at a path compares with its record. `mode` means that only the mode differs. */
export type Comparison =
  | { readonly state: "same" | "other" | "missing" }
  | { readonly state: "mode"; readonly content: Uint8Array };

export type Walk = "descriptor" | "lstat";

type PlacedFile = Pick<FetchedFile, "path" | "mode" | "content">;

/** The folder below which secret files are written. */
export class Root {
  readonly #walk: Walk;
  readonly #top: Folder;
  /** Open folders by path. They stay open so that they stay the same folders. */
  readonly #folders = new Map<string, Folder>();

  /** @param path - an existing folder; a link is refused, because its owner decides where it leads */
  constructor(path: string, walk: Walk = process.platform === "linux" ? "descriptor" : "lstat") {
    this.#walk = walk;
    this.#top = onFile(path, () => openFolder(resolve(path), path, walk));
    if (tryStat(this.#top.at) !== undefined) return;
    this[Symbol.dispose]();
    throw new Problem(exits.failed, "no_proc", "Files cannot be written safely without /proc: mount it.");
  }

  /** @throws Problem `obstructed` if there is something at the path, and it is not a file below folders */
  compare(record: FileRecord): Comparison {
    return onFile(record.path, () => {
      const folder = this.#folderOf(record.path);
      return folder === undefined ? { state: "missing" } : compareFile(nameIn(folder, record.path), record);
    });
  }

  /**
   * Writes all of these files, whose paths are safe together, or none.
   * @param report - called after each temporary file, while everything can still be undone; may throw to stop
   */
  async place(
    files: readonly PlacedFile[],
    modes: Modes,
    report: (done: number, total: number) => void = () => {},
  ): Promise<void> {
    const made: string[] = [];
    const drafts: TemporaryFile[] = [];
    const replaced: Replaced[] = [];
    try {
      for (const file of files) {
        drafts.push(onFile(file.path, () => this.#writeDraft(file, made)));
        await new Promise(setImmediate); // signals are delivered between turns
        report(drafts.length, files.length);
      }
      // Synchronous from here on: no signal interrupts the renames.
      for (const draft of drafts) {
        if (this.#walk === "lstat") this.#requireFolders(draft.path);
        onFile(draft.path, () => replaced.push(replace(draft)));
      }
      for (const { path } of drafts) this.#requireFolders(path);
      // Not every file system can sync a folder. The files themselves are synced.
      for (const { fd } of new Set(drafts.map(({ folder }) => folder)))
        attempt(() => fd !== undefined && fsyncSync(fd));
    } catch (error) {
      for (const { named, kept } of replaced.reverse()) {
        attempt(() => (kept === undefined ? unlinkSync(named) : renameSync(kept, named)));
      }
      for (const { temporary } of drafts) attempt(() => unlinkSync(temporary));
      for (const folder of made.reverse()) attempt(() => rmdirSync(folder));
      throw error;
    }
    for (const { kept } of replaced) attempt(() => kept !== undefined && unlinkSync(kept));
    modes(drafts);
  }

  /** Removes the temporary files of killed processes from the folders of these paths, and no other file. */
  sweep(paths: readonly string[]): void {
    const folders = new Set(paths.map((path) => onFile(path, () => this.#folderOf(path))));
    for (const folder of folders) if (folder !== undefined) removeDrafts(folder.at, "files");
  }

  /** Closes the folders below the root. The next file opens those that it needs. */
  closeFolders(): void {
    for (const { fd } of this.#folders.values()) if (fd !== undefined) closeSync(fd);
    this.#folders.clear();
  }

  [Symbol.dispose](): void {
    this.closeFolders();
    if (this.#top.fd !== undefined) closeSync(this.#top.fd);
  }

  #writeDraft({ path, mode, content }: PlacedFile, made: string[]): TemporaryFile {
    const folder = this.#folderOf(path, made);
    if (folder === undefined) throw new Error("a folder that was made is missing");
    const named = nameIn(folder, path);
    const found = tryStat(named);
    if (found !== undefined) requireFile(path, found);
    const temporary = draftIn(folder.at, "files");
    const given = writeNew(temporary, content, Number.parseInt(mode, 8));
    return { path, folder, named, temporary, mode: given };
  }

  /** @throws Problem if a folder on the path is no longer where it was opened, so that the path leads elsewhere */
  #requireFolders(path: string): void {
    for (const walked of foldersOf(path)) {
      const { openedAs, stat } = this.#folders.get(walked) ?? this.#top;
      const found = onFile(path, () => tryStat(openedAs));
      if (found?.ino !== stat.ino || found.dev !== stat.dev) throw obstructed(path, "was moved while it was written");
    }
  }

  /** The folder of a path, or undefined if it is missing. With `made`, missing ones are made and added there. */
  #folderOf(path: string, made?: string[]): Folder | undefined {
    let folder = this.#top;
    for (const walked of foldersOf(path)) {
      let next = this.#walk === "descriptor" ? this.#folders.get(walked) : undefined;
      if (next === undefined) {
        const named = nameIn(folder, walked);
        if (made === undefined && tryStat(named) === undefined) return undefined;
        if (made !== undefined && makeFolder(named)) made.push(named);
        next = openFolder(named, walked, this.#walk);
        this.#folders.set(walked, next);
      }
      folder = next;
    }
    return folder;
  }
}

/** An open folder. Its files are named `${at}/name`, even if the folder is moved; `openedAs` is its own name. */
type Folder = { readonly at: string; readonly openedAs: string; readonly stat: Stats; readonly fd?: number };

/** A temporary file that is ready to be renamed to `named`. */
type TemporaryFile = {
  readonly path: string;
  readonly folder: Folder;
  readonly named: string;
  readonly temporary: string;
  readonly mode: number;
};

/** A file that took its place. `kept` is the name that the file before it was given. */
type Replaced = { readonly named: string; readonly kept: string | undefined };

/** Windows lacks these flags. */
const { O_NOFOLLOW = 0, O_DIRECTORY = 0, O_NONBLOCK = 0, O_RDONLY } = constants;

/** The paths of the folders on a path, from the top down. */
function foldersOf(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}

function nameIn(folder: Folder, path: string): string {
  return `${folder.at}/${posix.basename(path)}`;
}

/** @param named - its path, or its name through the open folder above it */
function openFolder(named: string, path: string, walk: Walk): Folder {
  if (walk === "lstat") return { at: named, openedAs: named, stat: requireFolder(path, tryStat(named)) };
  try {
    const fd = openSync(named, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return { at: `/proc/self/fd/${fd}`, openedAs: named, stat: fstatSync(fd), fd };
  } catch (error) {
    // ELOOP and ENOTDIR say less than lstat does.
    if (codeOf(error) !== "EACCES") requireFolder(path, tryStat(named));
    throw error;
  }
}

function requireFolder(path: string, stat: Stats | undefined): Stats {
  if (stat === undefined) throw new Problem(exits.failed, "no_folder", `There is no folder ${path}: make it first.`);
  if (stat.isSymbolicLink()) throw obstructed(path, "is a symbolic link, and Keyhole does not write through links");
  if (!stat.isDirectory()) throw obstructed(path, "is not a folder");
  return stat;
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

function compareFile(named: string, record: FileRecord): Comparison {
  const found = tryStat(named);
  if (found === undefined) return { state: "missing" };
  requireFile(record.path, found);
  let fd: number;
  try {
    fd = openSync(named, O_RDONLY | O_NOFOLLOW | O_NONBLOCK); // does not wait for a writer if it is a pipe by now
  } catch (error) {
    if (codeOf(error) === "EACCES") return { state: "other" }; // an unreadable file can still be replaced
    throw error;
  }
  try {
    const stat = fstatSync(fd);
    requireFile(record.path, stat);
    if (stat.size !== record.size) return { state: "other" };
    const content = readStart(fd, record.size);
    if (sha256Of(content) !== record.sha256) return { state: "other" };
    const modeIsRight = process.platform === "win32" || (stat.mode & 0o7777) === Number.parseInt(record.mode, 8);
    return modeIsRight ? { state: "same" } : { state: "mode", content };
  } finally {
    closeSync(fd);
  }
}

function replace({ path, folder, named, temporary }: TemporaryFile): Replaced {
  const found = tryStat(named);
  if (found !== undefined) requireFile(path, found);
  const kept = found && keep(folder, named);
  try {
    renameSync(temporary, named);
  } catch (error) {
    if (kept !== undefined) attempt(() => unlinkSync(kept));
    throw error;
  }
  return { named, kept };
}

/** Gives the present file a second name, or copies it if the file system has no hard links. */
function keep(folder: Folder, named: string): string {
  const kept = draftIn(folder.at, "files");
  try {
    linkSync(named, kept);
  } catch {
    copyFileSync(named, kept, constants.COPYFILE_EXCL);
  }
  return kept;
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
