import { execFileSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { sql } from "drizzle-orm";
import { configProblem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { type Config, databaseUrls } from "../core/settings.ts";
import { generationOf } from "../seal/envelope.ts";
import { type Keyring, newKey, type SystemKeyPurpose, sealFormat } from "../seal/keyring.ts";
import { makeAuditMonths } from "../store/audit-months.ts";
import { type Database, databaseErrorCode, type Use } from "../store/database.ts";
import { type JournalStore, postgresJournal, sqliteJournal } from "../store/journal.ts";
import { isMigrated, migratePostgres, migrateSqlite } from "../store/migrate.ts";
import { openPostgres, Servers } from "../store/postgres.ts";
import { openSqlite } from "../store/sqlite.ts";
import { exclusively } from "../store/sqlite-file.ts";
import { openKeyring, rootKeyName } from "./root-keys.ts";
import { describeUnreachable } from "./unreachable.ts";
import { sealAllOf020 } from "./upgrade.ts";

/** A database whose tables are current, and its keys: what the server and every command start from. */
export type Installation = {
  readonly keyring: Keyring;
  readonly systemKeys: Readonly<Record<SystemKeyPurpose, Uint8Array>>;
  /** How many bytes of earlier versions are kept of each set. */
  readonly historyBytesMax: number;
  readonly open: (use: Use) => Database;
  readonly openJournal: () => JournalStore;
};

/**
 * Opens the database that the settings name, migrates it, and opens its keys.
 *
 * @param say - takes a line for a person, if a root key is made
 * @param begin - whether the folder, the database and the keys are made if there are none; else that is `not_found`
 * @throws Problem if the root key is missing, malformed or another database's, or a newer program migrated the
 *   database
 * @throws Refused `unavailable` if the database cannot be reached, `exists` if a root key lies there without a database,
 *   `not_found` if there is no installation
 */
export function openInstallation(config: Config, say: (line: string) => void, begin = true): Promise<Installation> {
  return config.databaseUrl === undefined
    ? openEmbedded(config, say, begin)
    : openOnPostgres(config, new Servers(databaseUrls(config.databaseUrl)), say, begin);
}

/**
 * Opens the database for reading, without its keys: makes and migrates nothing, and runs no command for the root key.
 * Undefined if there is no installation with current tables, or if the data folder may be somebody else's.
 * @throws Problem if a newer program migrated the database; Fault `unavailable`
 */
export async function openForNames({ databaseUrl, dataFolder }: Config): Promise<Database | undefined> {
  const path = join(dataFolder, "keyhole.db");
  if (databaseUrl === undefined && !(existsSync(path) && isPrivate(dataFolder))) return undefined;
  const database =
    databaseUrl === undefined
      ? openSqlite(path, "serve")
      : openPostgres(new Servers(databaseUrls(databaseUrl)), "serve");
  try {
    if (await isMigrated(database)) return database;
  } catch (error) {
    await database.close();
    throw error;
  }
  await database.close();
  return undefined;
}

/** Whether the folder is this user's alone, as Keyhole makes it and a cloned repository does not. */
function isPrivate(folder: string): boolean {
  const { mode, uid } = statSync(folder);
  return (mode & 0o077) === 0 && uid === process.getuid?.();
}

async function openEmbedded(config: Config, say: (line: string) => void, begin: boolean): Promise<Installation> {
  const { dataFolder } = config;
  const path = join(dataFolder, "keyhole.db");
  refuseLink(path);
  requireReadable(dataFolder);
  if (!begin && !existsSync(path) && !existsSync(join(dataFolder, "root.key"))) throw notBegun(`in ${dataFolder}`);
  prepareFolder(dataFolder);
  let lock: ReturnType<typeof exclusively>;
  try {
    // While one process begins an installation, others would find its root key and no system keys yet.
    lock = exclusively(`${path}.migrating`, 30_000);
    const hadRootKey = existsSync(join(dataFolder, "root.key"));
    if (hadRootKey && !existsSync(path)) throw databaseIsGone(dataFolder);
    await migrateSqlite(path);
    const database = openSqlite(path, "admin");
    try {
      if ((await systemKeyRows(database)).size > 0) lock?.release();
      else if (hadRootKey) throw databaseIsGone(dataFolder);
      else if (!begin) throw notBegun(`in ${dataFolder}`);
      return {
        ...(await openKeys(config, database, say)),
        open: (use) => openSqlite(path, use),
        openJournal: () => sqliteJournal(path),
      };
    } finally {
      await database.close();
    }
  } catch (error) {
    throw folderProblem(dataFolder, error);
  } finally {
    lock?.release();
  }
}

/**
 * SQLite would make or open the file that the link leads to, with its journal beside that one, where nobody looks for
 * it. @throws Problem
 */
function refuseLink(path: string): void {
  if (!isLink(path)) return;
  throw configProblem(
    `${path} is a symbolic link: name the folder that has the database in KEYHOLE_DATA, or remove the link.`,
  );
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
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
      `KEYHOLE_DATA ${folder} ${where}belongs to ${ownerName(uid)}, and this user may not read it: is sudo missing?`,
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

function ownerName(uid: number): string {
  try {
    return execFileSync("id", ["-nu", String(uid)], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return `the user ${uid}`;
  }
}

/** Starting with an empty database would hide that the old one was lost or deleted. */
function databaseIsGone(folder: string): Refused {
  return new Refused(
    "exists",
    `${folder} has a root key and no database that belongs to it: restore a backup with \`keyhole restore FILE\`, or move ${join(folder, "root.key")} away to begin with an empty database.`,
  );
}

/** A mistyped folder must not become an empty installation that answers as if nothing had ever been stored. */
function notBegun(where: string): Refused {
  return new Refused(
    "not_found",
    `There is no Keyhole ${where}: \`keyhole serve\` or \`keyhole org create SLUG\` begins one; KEYHOLE_DATA and DATABASE_URL say where it is.`,
  );
}

async function openOnPostgres(
  config: Config,
  servers: Servers,
  say: (line: string) => void,
  begin: boolean,
): Promise<Installation> {
  await findPrimary(servers);
  const database = openPostgres(servers, "admin");
  try {
    if (!begin && !(await hasBegun(database))) throw notBegun("in the database at DATABASE_URL");
    await migratePostgres(servers, database);
    await makeAuditMonths(database, Date.now());
    return {
      ...(await openKeys(config, database, say)),
      open: (use) => openPostgres(servers, use),
      openJournal: () => postgresJournal(servers),
    };
  } finally {
    await database.close();
  }
}

/** Whether PostgreSQL has Keyhole's tables, with keys in them. */
async function hasBegun(database: Database): Promise<boolean> {
  const [table] = await database.query<{ name: string | null }>(sql`select to_regclass('system_keys')::text as name`)(
    {},
  );
  return table?.name ? (await systemKeyRows(database)).size > 0 : false;
}

/** Asks each server until one is the primary, which is then the current one of `servers`. @throws Refused */
async function findPrimary(servers: Servers): Promise<void> {
  const database = openPostgres(servers, "admin");
  const ask = database.query(sql`select 1 as one`, { retry: false });
  const failures: string[] = [];
  try {
    for (;;) {
      try {
        await ask({});
        return;
      } catch (error) {
        failures.push(describeUnreachable(servers.url, error));
        if (failures.length < servers.count) continue;
        throw new Refused("unavailable", `DATABASE_URL: ${failures.join(" ")}`, { cause: error });
      }
    }
  } finally {
    await database.close();
  }
}

async function openKeys(config: Config, database: Database, say: (line: string) => void) {
  const keyring = await openKeyring(config, (await systemKeyRows(database)).size > 0, say);
  const { historyBytesMax } = config;
  return { keyring, historyBytesMax, systemKeys: await openSystemKeys(database, keyring, rootKeyName(config)) };
}

/** The file that the server of the embedded database, or a restore, keeps locked. */
export function serveLock({ dataFolder }: Pick<Config, "dataFolder">): string {
  return join(dataFolder, "serve.lock");
}

/** Makes the folder with mode 0700, or takes others' rights away from one that is Keyhole's. @throws Problem */
export function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const mode = statSync(folder).mode & 0o777;
    const names = readdirSync(folder);
    const ours = names.length === 0 || names.includes("keyhole.db");
    if (mode & 0o077) {
      if (!ours) {
        throw configProblem(
          `KEYHOLE_DATA ${folder} holds other things and others may read it: name a folder for Keyhole alone.`,
        );
      }
      chmodSync(folder, 0o700);
    }
    // Nothing in the folder is ever committed to a repository around it.
    const ignore = join(folder, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { mode: 0o600 });
  } catch (error) {
    throw folderProblem(folder, error);
  }
}

/** Says what is wrong with the data folder if the error is the system's; every other error stays as it is. */
function folderProblem(folder: string, error: unknown): unknown {
  const code = databaseErrorCode(error);
  if (/^(?:ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)$/.test(code)) {
    return new Refused("unavailable", `The disk of the data folder ${folder} is full: make room, then try again.`);
  }
  if (!/^(?:E[A-Z]+|SQLITE_(?:READONLY|CANTOPEN)\w*)$/.test(code)) return error;
  const { path = folder } = error as NodeJS.ErrnoException;
  const what = path === folder ? "it" : path.replace(`${folder}/`, "");
  const reason = /^(?:EACCES|EPERM|SQLITE_\w+)$/.test(code) ? `this user may not write ${what}` : `${what}: ${code}`;
  return configProblem(`KEYHOLE_DATA ${folder} cannot be used (${reason}): change its owner or name another folder.`);
}

/** The keys that every installation has. */
export const purposes = ["pepper", "grant", "audit", "listing"] as const satisfies readonly SystemKeyPurpose[];
type SystemKeyRow = { readonly purpose: string; readonly rootId: string; readonly wrapped: Buffer };

async function systemKeyRows(database: Database): Promise<Map<string, SystemKeyRow>> {
  const { systemKeys: s } = database.tables;
  const rows = await database.query<SystemKeyRow>(
    sql`select ${s.purpose} as purpose, ${s.rootId} as "rootId", ${s.wrapped} as wrapped from ${s}`,
  )({});
  return new Map(rows.map((row) => [row.purpose, row]));
}

async function openSystemKeys(
  database: Database,
  keyring: Keyring,
  source: string,
): Promise<Readonly<Record<SystemKeyPurpose, Uint8Array>>> {
  let rows = await systemKeyRows(database);
  if (purposes.some((purpose) => !rows.has(purpose))) {
    const made = purposes.map((purpose) => ({
      purpose,
      ...keyring.wrapSystemKey(purpose, newKey()),
      createdAt: Date.now(),
    }));
    // If several processes start on an empty database, all use the keys of the first.
    await database.transaction(async (db) => {
      await db.insert(database.tables.systemKeys).values(made).onConflictDoNothing();
    });
    rows = await systemKeyRows(database);
  }
  const opened = purposes.map((purpose) => {
    const row = rows.get(purpose) as SystemKeyRow;
    return [purpose, unwrapped(keyring, source, purpose, row)] as const;
  });
  const systemKeys = Object.fromEntries(opened) as Record<SystemKeyPurpose, Uint8Array>;
  const formats = new Set(purposes.map((purpose) => generationOf((rows.get(purpose) as SystemKeyRow).wrapped)));
  if (formats.size > 1 || Math.max(...formats) > sealFormat) {
    throw configProblem("The system keys of this database are of different ages: some of their rows were put back.");
  }
  if (!formats.has(sealFormat)) await sealAllOf020(database, keyring, systemKeys);
  return systemKeys;
}

function unwrapped(keyring: Keyring, source: string, purpose: SystemKeyPurpose, row: SystemKeyRow): Uint8Array {
  try {
    return keyring.unwrapSystemKey(purpose, row.rootId, row.wrapped);
  } catch (error) {
    throw configProblem(`${source}: ${error instanceof Error ? error.message : "not the key of this database."}`);
  }
}
