import { constants, copyFileSync, existsSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { attempt } from "../../core/attempt.ts";
import { configProblem } from "../../core/problem.ts";
import { Refused } from "../../core/refused.ts";
import { scratchFolder } from "../../core/scratch.ts";
import type { Config, RootKeySource } from "../../core/settings/settings.ts";
import { makeIfAbsent, moveIntoPlace } from "../../core/whole-file.ts";
import {
  databaseFiles,
  prepareFolder,
  removeRestoreDrafts,
  requireReadable,
  serveLock,
} from "../../installation/data-folder.ts";
import { openInstallation } from "../../installation/installation.ts";
import { openKeyring, rootKeyName } from "../../installation/root-keys.ts";
import { openSystemKeys } from "../../installation/system-keys.ts";
import { upgrade, upgradedMessage } from "../../installation/upgrade.ts";
import { beginAgain } from "../../record/store/last-reads.ts";
import type { Keyring, SystemKeyPurpose } from "../../seal/keyring.ts";
import { copyOnline, type Found, inspect, systemKeysIn, takeOutOfUse } from "../../store/backup.ts";
import { databaseErrorCode } from "../../store/database.ts";
import { openSqlite } from "../../store/sqlite.ts";
import { exclusively } from "../../store/sqlite-file.ts";
import { recordChanges } from "../desk/changes.ts";
import { adminContextOf, operator } from "../desk/context.ts";
import { type Opened, openEverything } from "./verify.ts";

/**
 * Copies one consistent moment of the embedded database to `draft`, an empty file, beside a server that runs.
 * Everything secret in it is sealed; the root key that opens it is not in it.
 * @throws Refused `invalid` with PostgreSQL, `not_found` if there is no database yet, `unavailable` on a full disk
 */
export function backUp(config: Config, draft: string): { readonly bytes: number } {
  const path = databaseFile(config);
  requireReadable(config.dataFolder);
  if (!existsSync(path)) throw new Refused("not_found", `There is no database in ${config.dataFolder} to back up.`);
  try {
    copyOnline(path, draft);
  } catch (error) {
    const code = databaseErrorCode(error);
    if (!/^SQLITE_(?:FULL|IOERR|CANTOPEN)/.test(code)) throw error;
    throw new Refused("unavailable", `The backup could not be written (${code}): is there room for it?`);
  }
  return { bytes: statSync(draft).size };
}

/**
 * @param file - where a backup is to be written
 * @throws Refused `invalid` if the installation lives on that file, which a backup must never replace
 */
export function refuseOwnFile(config: Config, file: string): void {
  const path = databaseFile(config);
  requireReadable(config.dataFolder);
  const rootKeys = config.rootKey.from === "file" ? [config.rootKey.path] : rootKeysIn(config);
  if (![...databaseFiles(path), ...rootKeys].some((own) => realPath(own) === realPath(file))) return;
  throw new Refused("invalid", `${file} is a file of this Keyhole itself: name another file for the backup.`);
}

/** The generated root key and the retired ones, which earlier backups need. */
function rootKeysIn({ dataFolder }: Config): string[] {
  if (!existsSync(dataFolder)) return [];
  return readdirSync(dataFolder).flatMap((name) => (name.startsWith("root.key") ? [join(dataFolder, name)] : []));
}

/** The path without links, of a file that need not exist. */
function realPath(file: string): string {
  if (existsSync(file)) return realpathSync(file);
  const folder = dirname(file);
  return join(existsSync(folder) ? realpathSync(folder) : folder, basename(file));
}

/**
 * Puts a backup in the place of the embedded database: the old one or the new one is there at every moment, whatever
 * fails. The backup is opened first and checked with the root key, if there is one.
 *
 * @param options - `force` replaces a database that holds something
 * @returns whether the root key is in its place
 * @throws Refused `invalid` for what is no backup or opens with another root key, `exists` without `force`,
 *   `unavailable` while a server or a command uses the database
 */
export async function restore(
  config: Config,
  backup: string,
  options: {
    readonly force?: boolean | undefined;
    readonly actor: string;
    readonly say: (line: string) => void;
    /** Asked last, when nothing else can refuse the restore. @param replaces - whether there is a database */
    readonly agree?: (replaces: boolean) => Promise<void>;
  },
): Promise<{ readonly bytes: number; readonly hasRootKey: boolean }> {
  const path = databaseFile(config);
  if (resolve(backup) === path) throw new Refused("invalid", "The backup is the database itself.");
  const isNew = !existsSync(config.dataFolder);
  prepareFolder(config.dataFolder);
  const serving = exclusively(serveLock(config), 0);
  if (!serving) {
    throw new Refused("unavailable", `A Keyhole serves ${config.dataFolder}: stop it, and restore again.`);
  }
  let done = false;
  try {
    removeRestoreDrafts(config);
    const { whole, hasRootKey } = await prepareDraft(config, path, backup, options);
    if (existsSync(path) && !options.force) requireEmpty(config, path);
    await options.agree?.(existsSync(path));
    replaceDatabase(config, path, whole, options.force === true);
    done = true;
    return { bytes: statSync(path).size, hasRootKey };
  } finally {
    removeRestoreDrafts(config);
    serving.release();
    if (isNew && !done) removeNewFolder(config);
  }
}

/** A checked copy of the backup beside the database, with the restore on record if there is a root key. */
async function prepareDraft(
  config: Config,
  path: string,
  backup: string,
  { say, actor }: { readonly say: (line: string) => void; readonly actor: string },
): Promise<{ readonly whole: string; readonly hasRootKey: boolean }> {
  const draft = `${path}.restoring`;
  makeIfAbsent(draft); // with the owner that it keeps
  copyFileSync(backup, draft);
  await chmod(draft, 0o600);
  requireDatabase(backup, inspect(draft));
  const keyring = await openRootKey(config, draft, say);
  if (keyring === undefined) return { whole: draft, hasRootKey: false };
  await recordRestore(draft, keyring, config, actor, say);
  // A copy, since the file that was written stays open until its last statement is collected.
  const whole = `${path}.restored`;
  makeIfAbsent(whole);
  copyOnline(draft, whole);
  return { whole, hasRootKey: true };
}

/** Puts the draft in the database's place. @throws Refused `unavailable` if a command uses the database, `exists` */
function replaceDatabase(config: Config, path: string, whole: string, force: boolean): void {
  // Commands that begin now wait for this lock before they open the database.
  using opening = exclusively(`${path}.migrating`, 5000);
  if (!opening) throw inUse(config);
  if (existsSync(path)) {
    if (!force) requireEmpty(config, path);
    if (!takeOutOfUse(path)) throw inUse(config);
  }
  // These files belong to a database that is gone, but SQLite would take them for the new one's.
  for (const file of databaseFiles(path).slice(1)) rmSync(file, { force: true });
  moveIntoPlace(whole, path, true);
}

/** Removes a data folder that a failed restore made, unless somebody else has begun to use it. */
function removeNewFolder({ dataFolder }: Config): void {
  attempt(() => {
    if (readdirSync(dataFolder).some((name) => name !== ".gitignore" && name !== "serve.lock")) return;
    rmSync(dataFolder, { recursive: true });
  });
}

/**
 * Restores a backup into a folder of its own, brings its tables up to date and opens every item with the root key.
 * @param progress - told how many of how many items have been opened
 * @throws Problem that names the first item that does not open, or says that the root key is missing or another one;
 *   Refused `invalid` for what is no backup
 */
export async function verifyBackup(
  config: Config,
  backup: string,
  say: (line: string) => void,
  progress: (done: number, total: number) => void = () => {},
): Promise<Opened> {
  const own = join(config.dataFolder, "root.key");
  const rootKey: RootKeySource =
    config.rootKey.from === "folder" ? { from: "folder", folder: config.dataFolder } : config.rootKey;
  if (config.rootKey.from === "folder") requireReadable(config.dataFolder);
  if (config.rootKey.from === "folder" && !existsSync(own)) {
    throw configProblem(`The root key of the backup is needed: there is none at ${own}, nor in KEYHOLE_ROOT_KEY.`);
  }
  const scratch = scratchFolder("keyhole-verify-");
  try {
    const path = join(scratch, "keyhole.db");
    // A copy, since opening a database may write to it; where the file system can, it shares the bytes.
    copyFileSync(backup, path, constants.COPYFILE_FICLONE);
    await chmod(path, 0o600);
    requireDatabase(backup, inspect(path));
    const copy = { ...config, postgres: undefined, dataFolder: scratch, rootKey };
    const installation = await openInstallation(copy, say, { upgrade: true });
    const admin = adminContextOf(installation, operator(""));
    return await openEverything(admin, progress).finally(() => admin.close());
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The embedded database's file. @throws Refused `invalid` with PostgreSQL, which has tools of its own for this */
function databaseFile(config: Config): string {
  if (config.postgres !== undefined) {
    const words =
      "This command is for the embedded database, and DATABASE_URL is set: use pg_dump and pg_restore, as docs/backup.md says.";
    throw new Refused("invalid", words);
  }
  return join(config.dataFolder, "keyhole.db");
}

function requireDatabase(backup: string, found: Found): void {
  if (found.is === "database") return;
  const whys = {
    damaged: "is damaged.",
    other: "is not a backup of Keyhole.",
    newer: "was made by a newer Keyhole: use that version, or a newer one.",
  };
  throw new Refused("invalid", `${backup} ${whys[found.is]}`);
}

/** @returns undefined if there is no root key yet. @throws Refused if it is the root key of another database */
async function openRootKey(config: Config, path: string, say: (line: string) => void): Promise<Keyring | undefined> {
  if (config.rootKey.from === "folder" && !existsSync(join(config.dataFolder, "root.key"))) return undefined;
  const keyring = await openKeyring(config, true, say);
  for (const { purpose, rootId, wrapped } of systemKeysIn(path)) {
    try {
      keyring.unwrapSystemKey(purpose as SystemKeyPurpose, rootId, wrapped).fill(0);
    } catch {
      throw new Refused("invalid", `The backup was made under the root key ${rootId}: put that one in place first.`);
    }
  }
  return keyring;
}

/** Upgrades the database that is about to be restored, and puts the restore on record in it. */
async function recordRestore(
  draft: string,
  keyring: Keyring,
  config: Config,
  name: string,
  say: (line: string) => void,
): Promise<void> {
  await using database = openSqlite(draft, "admin");
  const { systemKeys } = await openSystemKeys(database, keyring, rootKeyName(config));
  const upgraded = await upgrade(database, keyring, systemKeys);
  if (upgraded.from < upgraded.to) say(upgradedMessage(upgraded));
  const admin = { database, systemKeys, ...operator(name), now: Date.now };
  const change = { action: "restore", organization: null, names: [] } as const;
  await database.transaction(async (db) => {
    const inside = { ...database, db };
    await beginAgain(inside, admin.now());
    await recordChanges({ ...admin, database: inside }, [change]);
  });
}

function requireEmpty(config: Config, path: string): void {
  const found = inspect(path);
  if (found.is === "database" && found.rows === 0) return;
  throw new Refused("exists", `${config.dataFolder} holds a database that is not empty: --force replaces it.`);
}

function inUse(config: Config): Refused {
  return new Refused("unavailable", `A command uses the database in ${config.dataFolder}: try again when it is done.`);
}
