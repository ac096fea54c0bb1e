import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { type Config, ConfigProblem } from "../config.ts";
import { type Keyring, newKey, type SystemKeyPurpose } from "../seal/keyring.ts";
import { makeAuditMonths } from "../store/audit-months.ts";
import { type Database, databaseErrorCode, openPostgres, openSqlite, type Use, warm } from "../store/database.ts";
import { type JournalStore, postgresJournal, sqliteJournal } from "../store/journal.ts";
import { migratePostgres, migrateSqlite } from "../store/migrate.ts";
import { Refused } from "./refused.ts";
import { openKeyring, rootKeyName } from "./root-keys.ts";

/** A database whose tables are current and the keys that go with it: what both the server and every command start from. */
export type Installation = {
  readonly keyring: Keyring;
  readonly systemKeys: Readonly<Record<SystemKeyPurpose, Uint8Array>>;
  readonly open: (use: Use) => Database;
  readonly openJournal: () => JournalStore;
};

/**
 * Opens the database that the settings name, migrates it, and opens or makes its keys.
 *
 * @param say - takes a line for a person; used where a root key is made
 * @throws ConfigProblem where the root key is missing, malformed or another database's, or the database a newer program's
 * @throws Refused `unavailable` where the database cannot be reached
 */
export async function openInstallation(config: Config, say: (line: string) => void): Promise<Installation> {
  const { databaseUrl } = config;
  const path = join(config.dataFolder, "keyhole.db");
  if (databaseUrl === undefined) {
    prepareFolder(config.dataFolder);
    await migrateSqlite(path);
  }
  const open = (use: Use) => (databaseUrl === undefined ? openSqlite(path, use) : openPostgres(databaseUrl, use));
  const database = open("admin");
  try {
    if (databaseUrl !== undefined) {
      await reach(database);
      await migratePostgres(databaseUrl, database);
      await makeAuditMonths(database, Date.now());
    }
    const keyring = await openKeyring(config, (await systemKeyRows(database)).size > 0, say);
    return {
      keyring,
      systemKeys: await openSystemKeys(database, keyring, rootKeyName(config)),
      open,
      openJournal: () => (databaseUrl === undefined ? sqliteJournal(path) : postgresJournal(databaseUrl)),
    };
  } finally {
    await database.close();
  }
}

async function reach(database: Database): Promise<void> {
  try {
    await warm(database);
  } catch (error) {
    throw new Refused(
      "unavailable",
      `The database at DATABASE_URL cannot be reached (${error instanceof Error ? error.message : "no reason given"}).`,
    );
  }
}

/** Makes the folder with mode 0700, or closes one that is ours to close. @throws ConfigProblem */
export function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const mode = statSync(folder).mode & 0o777;
    const names = readdirSync(folder);
    const ours = names.length === 0 || names.includes("keyhole.db");
    if (mode & 0o077) {
      if (!ours) {
        throw new ConfigProblem(
          `KEYHOLE_DATA ${folder} holds other things and others may read it: name a folder for Keyhole alone.`,
        );
      }
      chmodSync(folder, 0o700);
    }
    // Whatever the folder lies in, its content never enters a repository.
    const ignore = join(folder, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { mode: 0o600 });
  } catch (error) {
    if (error instanceof ConfigProblem) throw error;
    throw new ConfigProblem(`KEYHOLE_DATA ${folder} cannot be used as a folder (${databaseErrorCode(error)}).`);
  }
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
    // Of several processes that start on an empty database the first one's keys stand, for all of them.
    await database.transaction(async (db) => {
      await db.insert(database.tables.systemKeys).values(made).onConflictDoNothing();
    });
    rows = await systemKeyRows(database);
  }
  const opened = purposes.map((purpose) => {
    const row = rows.get(purpose) as SystemKeyRow;
    return [purpose, unwrapped(keyring, source, purpose, row)] as const;
  });
  return Object.fromEntries(opened) as Record<SystemKeyPurpose, Uint8Array>;
}

function unwrapped(keyring: Keyring, source: string, purpose: SystemKeyPurpose, row: SystemKeyRow): Uint8Array {
  try {
    return keyring.unwrapSystemKey(purpose, row.rootId, row.wrapped);
  } catch (error) {
    throw new ConfigProblem(`${source}: ${error instanceof Error ? error.message : "not the key of this database."}`);
  }
}
