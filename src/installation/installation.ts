import { existsSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { configProblem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { warnOfReaders } from "../core/secret-file.ts";
import type { Config } from "../core/settings.ts";
import type { Keyring, SystemKeyPurpose } from "../seal/keyring.ts";
import { makeAuditMonths } from "../store/audit-months.ts";
import type { Database, Use } from "../store/database.ts";
import { type JournalStore, postgresJournal, sqliteJournal } from "../store/journal.ts";
import { migratePostgres } from "../store/migrate.ts";
import { openPostgres, Servers } from "../store/postgres.ts";
import { migrateSqlite, openSqlite, turns } from "../store/sqlite.ts";
import { exclusively } from "../store/sqlite-file.ts";
import { folderProblem, isPrivate, prepareFolder, refuseLink, requireReadable } from "./data-folder.ts";
import { findPrimary } from "./find-primary.ts";
import { NewestCheckpoint } from "./newest-checkpoint.ts";
import { openKeyring, rootKeyName } from "./root-keys.ts";
import { findVerifiers } from "./signers.ts";
import { openSystemKeys, systemKeyRows } from "./system-keys.ts";

/** A database whose tables are current, and its keys: what the server and every command start from. */
export type Installation = {
  readonly keyring: Keyring;
  readonly systemKeys: Readonly<Record<SystemKeyPurpose, Uint8Array>>;
  /** How many bytes of earlier versions are kept of each set. */
  readonly historyBytesMax: number;
  /** The newest checkpoint of the audit's tree that is known on this host. */
  readonly checkpoint: NewestCheckpoint;
  readonly open: (use: Use) => Database;
  readonly openJournal: () => JournalStore;
  /** The file of the embedded database; undefined with PostgreSQL. */
  readonly file: string | undefined;
};

/**
 * Opens the database that the settings name, migrates it, and opens its keys.
 *
 * @param say - takes a line for a person, if a root key is made
 * @param begin - whether the folder, the database and the keys are made if there are none; else that is `not_found`
 * @throws Problem if the root key is missing, malformed or another database's, or a newer program migrated the
 *   database
 * @throws Refused `unavailable` if the database cannot be reached, `not_found` if there is no installation, `exists` if
 *   a root key lies there without a database
 */
export function openInstallation(config: Config, say: (line: string) => void, begin = true): Promise<Installation> {
  const { postgres } = config;
  if (postgres === undefined) return openEmbedded(config, say, begin);
  for (const path of postgres.secretFiles) warnOfReaders("The secret file", path, say);
  return openOnPostgres(config, new Servers(postgres.servers), say, begin);
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
    // Others wait: while one process begins an installation, it has a root key and no system keys yet.
    lock = exclusively(`${path}.migrating`, 30_000);
    const hadRootKey = existsSync(join(dataFolder, "root.key"));
    if (hadRootKey && !existsSync(path)) throw databaseIsGone(dataFolder);
    await migrateSqlite(path, say);
    const database = openSqlite(path, "admin");
    try {
      if ((await systemKeyRows(database)).size > 0) lock?.release();
      else if (hadRootKey) throw databaseIsGone(dataFolder);
      else if (!begin) throw notBegun(`in ${dataFolder}`);
      const inTurn = turns();
      return {
        ...(await openKeys(config, database, say)),
        open: (use) => openSqlite(path, use, inTurn),
        openJournal: () => sqliteJournal(path),
        file: path,
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

async function openOnPostgres(
  config: Config,
  servers: Servers,
  say: (line: string) => void,
  begin: boolean,
): Promise<Installation> {
  await findPrimary(servers);
  const database = openPostgres(servers, "admin");
  try {
    await requireUtf8(database);
    if (!begin && !(await hasBegun(database))) throw notBegun("in the database at DATABASE_URL");
    await migratePostgres(servers, database, say);
    await makeAuditMonths(database, Date.now());
    return {
      ...(await openKeys(config, database, say)),
      open: (use) => openPostgres(servers, use),
      openJournal: () => postgresJournal(servers),
      file: undefined,
    };
  } finally {
    await database.close();
  }
}

/** Whether it has no organization yet. */
export async function isEmpty({ open }: Installation): Promise<boolean> {
  // Not for serving: a pooler refuses the settings of such a session, and `openKeyhole` says so.
  const database = open("admin");
  const { organizations: o } = database.tables;
  const rows = await database
    .query(sql`select ${o.id} from ${o} limit 1`)({})
    .finally(() => database.close());
  return rows.length === 0;
}

/** Names and paths may have any character of Unicode, which no other encoding can hold. */
async function requireUtf8(database: Database): Promise<void> {
  const [row] = await database.query<{ encoding: string }>(sql`select getdatabaseencoding() as encoding`)({});
  if (row?.encoding === "UTF8") return;
  const words = `The database of DATABASE_URL has the encoding ${row?.encoding}, and Keyhole needs UTF8: create database NAME encoding 'UTF8' locale 'C' template template0.`;
  throw configProblem(words);
}

/** Whether PostgreSQL has Keyhole's tables, with keys in them. */
async function hasBegun(database: Database): Promise<boolean> {
  const find = database.query<{ name: string | null }>(sql`select to_regclass('system_keys')::text as name`);
  return (await find({}))[0]?.name ? (await systemKeyRows(database)).size > 0 : false;
}

async function openKeys(config: Config, database: Database, say: (line: string) => void) {
  const keyring = await openKeyring(config, (await systemKeyRows(database)).size > 0, say);
  const systemKeys = await openSystemKeys(database, keyring, rootKeyName(config));
  const { historyBytesMax, checkpointFile: file, witnesses } = config;
  const signers = (of: Database) => findVerifiers(of, keyring, systemKeys.audit);
  return { keyring, historyBytesMax, systemKeys, checkpoint: new NewestCheckpoint({ signers, file, witnesses }) };
}

/** Starting with an empty database would hide that the old one was lost or deleted. */
function databaseIsGone(folder: string): Refused {
  const words = `${folder} has a root key and no database that belongs to it: restore a backup with \`keyhole restore FILE\`, or move ${join(folder, "root.key")} away to begin with an empty database.`;
  return new Refused("exists", words);
}

/** A mistyped folder must not become an empty installation that answers as if nothing had ever been stored. */
function notBegun(where: string): Refused {
  const words = `There is no Keyhole ${where}: \`keyhole serve\` or \`keyhole org create SLUG\` begins one; KEYHOLE_DATA and DATABASE_URL say where it is.`;
  return new Refused("not_found", words);
}

/**
 * Opens the database for reading, without its keys: makes and migrates nothing, and runs no command for the root key.
 * Undefined if there is none, or if the data folder may be somebody else's.
 */
export function openWithoutKeys({ postgres, dataFolder }: Config): Database | undefined {
  if (postgres !== undefined) return openPostgres(new Servers(postgres.servers), "serve");
  const path = join(dataFolder, "keyhole.db");
  return existsSync(path) && isPrivate(dataFolder) ? openSqlite(path, "serve") : undefined;
}
