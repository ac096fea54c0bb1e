import { randomBytes } from "node:crypto";
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
import { resolve } from "node:path";
import { exits, Problem } from "../problem.ts";
import { obstructed, onFile, readStart, requireFile, tryStat, writeNew } from "../whole-file.ts";
import { type FetchedFile, type FileRecord, sha256Of } from "./answers.ts";

/*
 * Writes secret files below a folder that others may be changing meanwhile. On Linux every folder is opened from the
 * one above it, symbolic links are refused, and files are named through the open folder (`/proc/self/fd/N/name`):
 * swapping a folder for a link leads nowhere. macOS and Windows have no such names. There every folder on the path is
 * checked right before use, and a swap between check and use goes unnoticed.
 *
 * All temporary files are written, synced and read back before the first one is renamed. If anything fails after that,
 * every file is put back: either all files are new or the folder is unchanged.
 */

/** How the file at a path compares with its record. `mode` means that only the mode differs. */
export type Comparison =
  | { readonly state: "same" | "other" | "missing" }
  | { readonly state: "mode"; readonly content: Uint8Array };

/** How folders are walked, see above. */
export type Walk = "descriptor" | "lstat";

/** The folder below which secret files are written. It stays open until {@link Root.close}. */
export class Root {
  readonly #walk: Walk;
  readonly #top: Folder;
  /** Open folders by path. They stay open so that they stay the same folders. */
  readonly #folders = new Map<string, Folder>();

  /**
   * @param path - an existing folder; a link is refused, because whoever made it decides where it leads
   * @throws Problem
   */
  constructor(path: string, walk: Walk = process.platform === "linux" ? "descriptor" : "lstat") {
    this.#walk = walk;
    this.#top = onFile(path, () => openFolder(resolve(path), path, walk));
    if (walk === "descriptor" && tryStat(this.#top.at) === undefined) {
      this.#top.close();
      throw new Problem(exits.failed, "no_proc", "Files cannot be written safely without /proc: mount it.");
    }
  }

  /**
   * Compares the file at a path with its record.
   * @throws Problem `obstructed` if something other than a file is there, or something other than a folder on its path
   */
  compare(record: FileRecord): Comparison {
    return onFile(record.path, () => {
      const { folder, name } = this.#find(record.path);
      return folder === undefined ? { state: "missing" } : compareIn(folder, name, record);
    });
  }

  /**
   * Writes all of these files or none.
   * @param files - their paths together without a `pathSetProblem`
   * @param report - called after each temporary file, while everything can still be undone; may throw to stop
   * @throws Problem, or what `report` threw; the folder is then unchanged
   */
  async place(files: readonly FetchedFile[], report: (done: number, total: number) => void = () => {}): Promise<void> {
    const made: Folder[] = [];
    const drafts: Draft[] = [];
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
      for (const folder of new Set(drafts.map((draft) => draft.folder))) attempt(folder.sync);
    } catch (error) {
      for (const one of replaced.reverse()) attempt(() => putBack(one));
      for (const one of drafts) attempt(() => unlinkSync(`${one.folder.at}/${one.temporary}`));
      for (const folder of made.reverse()) attempt(() => rmdirSync(folder.openedAs));
      throw error;
    }
    for (const { draft, kept } of replaced) {
      if (kept !== undefined) attempt(() => unlinkSync(`${draft.folder.at}/${kept}`));
    }
  }

  close(): void {
    for (const folder of this.#folders.values()) folder.close();
    this.#folders.clear();
    this.#top.close();
  }

  #writeDraft({ path, mode, content }: FetchedFile, made: Folder[]): Draft {
    const { folder, name } = this.#find(path, made);
    if (folder === undefined) throw new Error("a folder that was made is missing");
    const found = tryStat(`${folder.at}/${name}`);
    if (found !== undefined) requireFile(path, found);
    const temporary = temporaryName("tmp");
    writeNew(`${folder.at}/${temporary}`, content, Number.parseInt(mode, 8));
    return { path, folder, name, temporary };
  }

  /** @throws Problem if a folder on the path is no longer where it was opened, so that the path leads elsewhere */
  #requireFolders(path: string): void {
    for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
      const { openedAs, stat } = this.#folders.get(path.slice(0, end)) ?? this.#top;
      const found = onFile(path, () => tryStat(openedAs));
      if (found?.ino !== stat.ino || found.dev !== stat.dev) throw obstructed(path, "was moved while it was written");
    }
  }

  /**
   * The folder of a path, and the file's name in it.
   * @param made - makes missing folders and adds them here; without it, a missing folder gives undefined
   */
  #find(path: string, made?: Folder[]): { folder: Folder | undefined; name: string } {
    const parts = path.split("/");
    const name = parts.pop() ?? "";
    let folder = this.#top;
    for (const [at, part] of parts.entries()) {
      const walked = parts.slice(0, at + 1).join("/");
      let next = this.#walk === "descriptor" ? this.#folders.get(walked) : undefined;
      if (next === undefined) {
        const named = `${folder.at}/${part}`;
        const isNew = made !== undefined && makeFolder(named);
        if (!made && tryStat(named) === undefined) return { folder: undefined, name };
        try {
          next = openFolder(named, walked, this.#walk);
        } catch (error) {
          if (isNew) attempt(() => rmdirSync(named));
          throw error;
        }
        if (isNew) made.push(next);
        this.#folders.set(walked, next);
      }
      folder = next;
    }
    return { folder, name };
  }
}

/** An open folder. Its files are named `${at}/name`, even if the folder is moved. */
type Folder = {
  readonly at: string;
  /** The name by which it was opened. */
  readonly openedAs: string;
  readonly stat: Stats;
  readonly sync: () => void;
  readonly close: () => void;
};

/** A temporary file that is ready to be renamed. */
type Draft = {
  readonly path: string;
  readonly folder: Folder;
  readonly name: string;
  readonly temporary: string;
};

/** A draft that took its place. `kept` is the name that the file before it was given. */
type Replaced = { readonly draft: Draft; readonly kept: string | undefined };

/** Windows lacks these flags. */
const { O_NOFOLLOW = 0, O_DIRECTORY = 0, O_NONBLOCK = 0, O_RDONLY } = constants;

/**
 * @param named - its path, or its name through the open folder above it
 * @param path - for messages
 */
function openFolder(named: string, path: string, walk: Walk): Folder {
  if (walk === "lstat") {
    return { at: named, openedAs: named, stat: requireFolder(path, tryStat(named)), sync: () => {}, close: () => {} };
  }
  try {
    const fd = openSync(named, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const [sync, close] = [() => fsyncSync(fd), () => closeSync(fd)];
    return { at: `/proc/self/fd/${fd}`, openedAs: named, stat: fstatSync(fd), sync, close };
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

function compareIn(folder: Folder, name: string, record: FileRecord): Comparison {
  const named = `${folder.at}/${name}`;
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

function replace(draft: Draft): Replaced {
  const { folder, name, path, temporary } = draft;
  const named = `${folder.at}/${name}`;
  const found = tryStat(named);
  if (found !== undefined) requireFile(path, found);
  const kept = found === undefined ? undefined : keep(folder, named);
  try {
    renameSync(`${folder.at}/${temporary}`, named);
  } catch (error) {
    if (kept !== undefined) attempt(() => unlinkSync(`${folder.at}/${kept}`));
    throw error;
  }
  return { draft, kept };
}

/** Gives the present file a second name, or copies it if the file system has no hard links. */
function keep(folder: Folder, named: string): string {
  const kept = temporaryName("old");
  try {
    linkSync(named, `${folder.at}/${kept}`);
  } catch {
    copyFileSync(named, `${folder.at}/${kept}`, constants.COPYFILE_EXCL);
  }
  return kept;
}

function putBack({ draft: { folder, name }, kept }: Replaced): void {
  const named = `${folder.at}/${name}`;
  if (kept === undefined) unlinkSync(named);
  else renameSync(`${folder.at}/${kept}`, named);
}

/** Random: nobody can have created that file before. */
function temporaryName(ending: "tmp" | "old"): string {
  return `.keyhole-${randomBytes(12).toString("hex")}.${ending}`;
}

/** A clean-up step. The failure that led to the clean-up is the one to report. */
function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // see above
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
