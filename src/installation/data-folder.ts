import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { attempt } from "../core/attempt.ts";
import { configProblem } from "../core/problem.ts";
import { HostRefused } from "../core/refused.ts";
import type { Config } from "../core/settings/settings.ts";
import { makeIfAbsent } from "../core/whole-file.ts";
import { databaseErrorCode } from "../store/database.ts";

/* The folder of the embedded database: who may use it, and what is wrong with it. */

/** Makes the folder with mode 0700, or takes others' rights away from one that is Keyhole's. */
export function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const mode = statSync(folder).mode & 0o777;
    const names = readdirSync(folder);
    const ours = names.length === 0 || names.includes("keyhole.db");
    if (mode & 0o077) {
      if (!ours) {
        const words = `KEYHOLE_DATA ${folder} holds other things and others may read it: name a folder for Keyhole alone.`;
        throw configProblem(words);
      }
      chmodSync(folder, 0o700);
    }
    // Nothing in the folder is ever committed to a repository around it.
    makeIfAbsent(join(folder, ".gitignore"), Buffer.from("*\n"));
  } catch (error) {
    throw folderProblem(folder, error);
  }
}

/** Turns an error of the file system into what is wrong with the data folder; returns every other error as it is. */
export function folderProblem(folder: string, error: unknown): unknown {
  const code = databaseErrorCode(error);
  if (/^(?:ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)$/.test(code)) {
    return new HostRefused("unavailable", `The disk of the data folder ${folder} is full: make room, then try again.`);
  }
  if (code.startsWith("SQLITE_IOERR_SHM")) {
    const words = `The data folder ${folder} is on a file system without shared memory, such as NFS or SMB: use a folder on a local disk, or PostgreSQL (DATABASE_URL).`;
    return new HostRefused("unavailable", words);
  }
  if (!/^(?:E[A-Z]+|SQLITE_(?:READONLY|CANTOPEN)\w*)$/.test(code)) return error;
  const { path = folder } = error as NodeJS.ErrnoException;
  const what = path === folder ? "it" : path.replace(`${folder}/`, "");
  const reason = /^(?:EACCES|EPERM|SQLITE_\w+)$/.test(code) ? `this user may not write ${what}` : `${what}: ${code}`;
  return configProblem(`KEYHOLE_DATA ${folder} cannot be used (${reason}): change its owner or name another folder.`);
}

/** A folder that this user may not enter looks like one without a Keyhole. @throws Problem that names its owner */
export function requireReadable(folder: string): void {
  try {
    accessSync(`${folder}/.`, constants.R_OK | constants.X_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") return;
    const { path, uid } = closedFolder(folder);
    const where = path === resolve(folder) ? "" : `lies in ${path}, which `;
    throw configProblem(
      `KEYHOLE_DATA ${folder} ${where}belongs to ${accountName(uid) ?? `the user ${uid}`}, and this user may not read it: is sudo missing?`,
    );
  }
}

/** The folder that this user may not enter: this one, or the nearest one above it that can be looked at. */
function closedFolder(folder: string): { readonly path: string; readonly uid: number } {
  const path = resolve(folder);
  try {
    return { path, uid: statSync(path).uid };
  } catch (error) {
    if (path === dirname(path)) throw error;
    return closedFolder(dirname(path));
  }
}

/** SQLite would open the file that the link leads to, with its journal there, where nobody looks. */
export function refuseLink(path: string): void {
  if (!attempt(() => lstatSync(path).isSymbolicLink())) return;
  const words = `${path} is a symbolic link: name the folder that has the database in KEYHOLE_DATA, or remove the link.`;
  throw configProblem(words);
}

/** Whether the folder is this user's alone, as Keyhole makes it and a cloned repository does not. */
export function isPrivate(folder: string): boolean {
  const { mode, uid } = statSync(folder);
  return (mode & 0o077) === 0 && uid === process.getuid?.();
}

/** The files of an embedded database: the first is its own. */
export function databaseFiles(path: string): string[] {
  return ["", "-journal", "-wal", "-shm"].map((side) => `${path}${side}`);
}

/** Removes the files that a killed restore left. The caller holds the lock of {@link serveLock}. */
export function removeRestoreDrafts({ dataFolder }: Pick<Config, "dataFolder">): void {
  for (const draft of ["restoring", "restored"]) {
    for (const file of databaseFiles(join(dataFolder, `keyhole.db.${draft}`))) rmSync(file, { force: true });
  }
}

/** The file that the server of the embedded database, or a restore, keeps locked. */
export function serveLock({ dataFolder }: Pick<Config, "dataFolder">): string {
  return join(dataFolder, "serve.lock");
}

/** The name of an account on this machine. */
export function accountName(uid: number): string | undefined {
  const accounts = attempt(() => readFileSync("/etc/passwd", "utf8").split("\n")) ?? [];
  return accounts.map((line) => line.split(":")).find((fields) => fields[2] === String(uid))?.[0];
}
