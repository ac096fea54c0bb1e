import { existsSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { configProblem } from "../core/problem.ts";
import { HostRefused } from "../core/refused.ts";
import { warnOfReaders } from "../core/settings/secret-file.ts";
import type { Config } from "../core/settings/settings.ts";
import { NewestCheckpoint } from "../record/notary/newest-checkpoint.ts";
import { findVerifiers } from "../record/notary/signers.ts";
import { makeAuditMonths } from "../record/store/audit-months.ts";
import { type JournalStore, postgresJournal, sqliteJournal } from "../record/store/journal.ts";
import { type Keyring, sealFormat } from "../seal/keyring.ts";
import type { Database, Use } from "../store/database.ts";
import { isMigrated, migrate, newestTables, tablesVersion, type Versions } from "../store/migrate.ts";
import { openPostgres, Servers } from "../store/postgres.ts";
import { makeFile, openSqlite, turns } from "../store/sqlite.ts";
import { exclusively } from "../store/sqlite-file.ts";
import {
  folderProblem,
  isPrivate,
  prepareFolder,
  refuseLink,
  removeRestoreDrafts,
  requireReadable,
  serveLock,
} from "./data-folder.ts";
import { findPrimary } from "./find-primary.ts";
import { openKeyring, removeKeyDrafts, rootKeyName, rotateLock } from "./root-keys.ts";
import { openServing, type ServingDatabases } from "./serving.ts";
import { openSystemKeys, type SystemKeys, systemKeyRows } from "./system-keys.ts";
import { upgrade } from "./upgrade.ts";

/** A database whose tables are current, and its keys: what the server and every command start from. */
export type Installation = {
  readonly keyring: Keyring;
  readonly systemKeys: SystemKeys;
  /** How many bytes of earlier versions are kept of each set. */
  readonly historyBytesMax: number;
  /** The newest checkpoint of the audit's tree that is known on this host. */
  readonly checkpoint: NewestCheckpoint;
  readonly open: (use: Use) => Database;
  /** Opens the connections of a server. */
  readonly openServing: () => Promise<ServingDatabases>;
  readonly openJournal: () => JournalStore;
  /** Whether a database has the tables of this program. */
  readonly isMigrated: (database: Database) => Promise<boolean>;
  /** The file of the embedded database; undefined with PostgreSQL. */
  readonly file: string | undefined;
  /** The servers of PostgreSQL; undefined with the embedded database. */
  readonly servers: Servers | undefined;
  /** The version of its tables before and after it was opened. They differ after an upgrade. */
  readonly tables: Versions;
};

/** What opening an installation may change. */
export type Consent = {
  /** Whether the folder, the database and the keys are made if there are none; else that is `not_found`. */
  readonly begin?: boolean | undefined;
  /** Whether the database of an older program is upgraded; else that is `unavailable`. */
  readonly upgrade?: boolean;
};

/**
 * Opens the database that the settings name, and its keys.
 *
 * @param say - takes a line for a person, if a root key is made
 * @throws Problem if the root key is missing, malformed or another database's
 * @throws Refused `unavailable` if the database cannot be reached, or is of an older or a newer program, `not_found` if
 *   there is no installation, `exists` if a root key lies there without a database
 */
export function openInstallation(config: Config, say: (line: string) => void, consent: Consent = { begin: true }) {
  const { postgres } = config;
  if (postgres === undefined) return openEmbedded(config, say, consent);
  for (const path of postgres.secretFiles) warnOfReaders("The secret file", path, say);
  for (const { doubt } of postgres.servers) if (doubt !== undefined) say(doubt);
  return openOnPostgres(config, new Servers(postgres.servers), say, consent);
}

async function openEmbedded(config: Config, say: (line: string) => void, consent: Consent): Promise<Installation> {
  const { dataFolder } = config;
  const path = join(dataFolder, "keyhole.db");
  refuseLink(path);
  requireReadable(dataFolder);
  const hadRootKey = existsSync(join(dataFolder, "root.key"));
  if (!consent.begin && !existsSync(path) && !hadRootKey) throw notBegun(`in ${dataFolder}`);
  prepareFolder(dataFolder);
  try {
    // Others wait: while one process begins an installation, it has a root key and no system keys yet.
    using lock = exclusively(`${path}.migrating`, 30_000);
    if (lock === undefined) throw new HostRefused("unavailable", `Another Keyhole begins or upgrades ${dataFolder}.`);
    const hasRootKey = existsSync(join(dataFolder, "root.key"));
    if (hasRootKey && !existsSync(path)) throw databaseIsGone(dataFolder);
    makeFile(path);
    await using database = openSqlite(path, "admin");
    const version = await begunVersion(database);
    if (version === newestTables(database) && !consent.upgrade) lock.release();
    else if (version === 0 && hasRootKey) throw databaseIsGone(dataFolder);
    else if (version === 0 && !consent.begin) throw notBegun(`in ${dataFolder}`);
    const inTurn = turns();
    const open = (use: Use) => openSqlite(path, use, inTurn);
    return {
      ...(await openKeys(config, database, version, say, consent)),
      open,
      openServing: () => openServing(open),
      openJournal: () => sqliteJournal(path),
      file: path,
      servers: undefined,
    };
  } catch (error) {
    throw folderProblem(dataFolder, error);
  }
}

async function openOnPostgres(config: Config, servers: Servers, say: (line: string) => void, consent: Consent) {
  servers.say = say;
  await findPrimary(servers);
  await using database = openPostgres(servers, "admin");
  await requireUtf8(database);
  const version = await begunVersion(database);
  if (version === 0 && !consent.begin) throw notBegun("in the database at DATABASE_URL");
  const keys = await openKeys(config, database, version, say, consent);
  await makeAuditMonths(database, Date.now());
  const open = (use: Use) => openPostgres(servers, use);
  return {
    ...keys,
    open,
    openServing: () => openServing(open),
    openJournal: () => postgresJournal(servers),
    file: undefined,
    servers,
  };
}

/** Whether it has no organization yet. */
export async function isEmpty({ open }: Installation): Promise<boolean> {
  // Not for serving: a pooler refuses the settings of such a session, and `openKeyhole` says so.
  await using database = open("admin");
  const { organizations: o } = database.tables;
  return (await database.query(sql`select ${o.id} from ${o} limit 1`)({})).length === 0;
}

/** Names and paths may have any character of Unicode, which no other encoding can hold. */
async function requireUtf8(database: Database): Promise<void> {
  const [row] = await database.query<{ encoding: string }>(sql`select getdatabaseencoding() as encoding`)({});
  if (row?.encoding === "UTF8") return;
  const words = `The database of DATABASE_URL has the encoding ${row?.encoding}, and Keyhole needs UTF8: create database NAME encoding 'UTF8' locale 'C' template template0.`;
  throw configProblem(words);
}

/** The version of the tables; 0 if there are none, or no keys in them. @throws Refused if a newer program made them */
async function begunVersion(database: Database): Promise<number> {
  const version = await tablesVersion(database);
  return version > 0 && (await systemKeyRows(database)).size > 0 ? version : 0;
}

/** Opens the keys, after the tables were made or, with consent, upgraded. @param version - see {@link begunVersion} */
async function openKeys(
  config: Config,
  database: Database,
  version: number,
  say: (line: string) => void,
  consent: Consent,
) {
  const newest = newestTables(database);
  const isOlder = version > 0 && version < newest;
  if (isOlder && !consent.upgrade) throw older(database);
  const keyring = await openKeyring(config, version > 0, say);
  if (version === 0) await migrate(database);
  const { systemKeys, format } = await openSystemKeys(database, keyring, rootKeyName(config));
  const isDue = isOlder || format < sealFormat;
  if (isDue && !consent.upgrade) throw older(database);
  const tables = isDue
    ? await whileNobodyServes(config, () => upgrade(database, keyring, systemKeys))
    : { from: newest, to: newest };
  const { historyBytesMax, checkpointFile: file, witnesses } = config;
  const signers = async (of: Database) => (await findVerifiers(of, keyring, systemKeys.audit)).signers;
  const checkpoint = new NewestCheckpoint({ auditKey: systemKeys.audit, signers, file, witnesses });
  return { keyring, historyBytesMax, systemKeys, checkpoint, tables, isMigrated };
}

/** Starting with an empty database would hide that the old one was lost or deleted. */
function databaseIsGone(folder: string): HostRefused {
  const words = `${folder} has a root key and no database that belongs to it: restore a backup with \`keyhole restore FILE\`, or move ${join(folder, "root.key")} away to begin with an empty database.`;
  return new HostRefused("exists", words);
}

/** A mistyped folder must not become an empty installation that answers as if nothing had ever been stored. */
export function notBegun(where: string): HostRefused {
  const words = `There is no Keyhole ${where}: \`keyhole serve\` or \`keyhole org create SLUG\` begins one; KEYHOLE_DATA and DATABASE_URL say where it is.`;
  return new HostRefused("not_found", words);
}

/** An older server of the embedded database would go on with tables that it does not know. */
async function whileNobodyServes<T>(config: Config, work: () => Promise<T>): Promise<T> {
  if (config.postgres !== undefined) return work();
  using lock = exclusively(serveLock(config), 0);
  if (lock) return await work();
  const words = `An older Keyhole serves ${config.dataFolder}: stop it, and upgrade again.`;
  throw new HostRefused("unavailable", words);
}

/** The tables are of an older program. */
export class OlderTables extends HostRefused {}

/** A program that was replaced must not change a database that nobody has a backup of. */
function older({ dialect }: Database): OlderTables {
  const [how, who] =
    dialect === "postgres" ? ["", ", as the owner of its tables"] : [" with `keyhole backup FILE`", ""];
  const words = `This database is of an older Keyhole: make a backup${how}, then run \`keyhole db upgrade\`${who}.`;
  return new OlderTables("unavailable", words);
}

/**
 * Opens the database for reading, without its keys: makes and upgrades nothing, and runs no command for the root key.
 * Undefined if there is none, or if the data folder may be somebody else's.
 * @param use - `serve` for what must be quick, `notary` for what reads much
 */
export function openWithoutKeys({ postgres, dataFolder }: Config, use: "serve" | "notary" = "serve") {
  if (postgres !== undefined) return openPostgres(new Servers(postgres.servers), use);
  const path = join(dataFolder, "keyhole.db");
  return existsSync(path) && isPrivate(dataFolder) ? openSqlite(path, use) : undefined;
}

/**
 * Removes the files that killed commands left in the data folder: drafts of the root key, which hold live root keys,
 * and of a restored database. A draft that a command writes now stays. Call it before the server takes its lock.
 */
export function removeLeftovers(config: Config): void {
  if (config.postgres !== undefined) return;
  if (config.rootKey.from === "folder") whileLocked(rotateLock(config), () => removeKeyDrafts(config));
  whileLocked(serveLock(config), () => removeRestoreDrafts(config));
}

function whileLocked(path: string, work: () => void): void {
  using lock = exclusively(path, 0);
  if (lock) work();
}
