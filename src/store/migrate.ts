import { Database as SqliteFile } from "bun:sqlite";
import { chmodSync, closeSync, openSync } from "node:fs";
import { sql } from "drizzle-orm";
import postgres from "postgres";
import postgresTables from "../../drizzle/postgres/0000_tables.sql" with { type: "text" };
import postgresJournal from "../../drizzle/postgres/meta/_journal.json" with { type: "json" };
import sqliteTables from "../../drizzle/sqlite/0000_tables.sql" with { type: "text" };
import sqliteJournal from "../../drizzle/sqlite/meta/_journal.json" with { type: "json" };
import { ConfigProblem } from "../config.ts";
import type { Database } from "./database.ts";
import type { Servers } from "./postgres.ts";
import { openSqlite } from "./sqlite.ts";

/** The migrations in order, as drizzle's migrator takes them. A test compares them with `drizzle/`. */
export const migrations = {
  postgres: listed(postgresJournal.entries, { "0000_tables": postgresTables }),
  sqlite: listed(sqliteJournal.entries, { "0000_tables": sqliteTables }),
};

/**
 * Brings PostgreSQL's tables up to date. Any number of processes may call it at once: one works, the others wait.
 * If nothing is due it only reads, so a role without the right to change tables may start the server.
 * @throws whatever the database throws
 */
export async function migratePostgres(servers: Servers, database: Database): Promise<void> {
  if (await isCurrent(database, migrations.postgres)) return;
  // A connection of its own holds the lock, so that it ends with the process, however that ends.
  const lock = postgres(servers.url, { max: 1, connect_timeout: 2, fetch_types: false, onnotice: () => {} });
  try {
    await lock`select pg_advisory_lock(${advisoryLock})`;
    if (!(await isCurrent(database, migrations.postgres))) await run(database, migrations.postgres);
  } finally {
    await lock.end({ timeout: 1 });
  }
}

/** Whether the tables are those that this program expects. @throws ConfigProblem if a newer program migrated them */
export function isMigrated(database: Database): Promise<boolean> {
  return isCurrent(database, migrations[database.dialect]);
}

/** Brings the embedded database's tables up to date. An absent file is made, with mode 0600. The caller locks others out. */
export async function migrateSqlite(path: string): Promise<void> {
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const database = openSqlite(path, "admin");
  try {
    if (!(await isCurrent(database, migrations.sqlite))) await run(database, migrations.sqlite);
  } finally {
    await database.close();
  }
}

/**
 * A lock between processes: an exclusive transaction on an SQLite file of its own. The operating system releases it when
 * its holder dies, `kill -9` included.
 *
 * @returns undefined if another process still holds it after `waitMs`
 */
export function exclusively(path: string, waitMs: number): { release(): void } | undefined {
  closeSync(openSync(path, "a", 0o600));
  const file = new SqliteFile(path, { create: true, readwrite: true });
  file.run(`PRAGMA busy_timeout = ${waitMs}`);
  try {
    file.run("BEGIN EXCLUSIVE");
  } catch (error) {
    file.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { release: () => file.close() };
}

type Migration = { sql: string[]; bps: boolean; folderMillis: number; hash: string };
/** The bytes of "keyhole" as a number. */
const advisoryLock = "30229394625621093";

function listed(
  entries: { tag: string; when: number; breakpoints: boolean }[],
  files: Record<string, string>,
): Migration[] {
  return entries.map(({ tag, when, breakpoints }) => {
    const text = files[tag];
    if (text === undefined) throw new Error(`migration ${tag} is in the journal but not in the program`);
    return {
      sql: text.split("--> statement-breakpoint"),
      bps: breakpoints,
      folderMillis: when,
      hash: new Bun.CryptoHasher("sha256").update(text).digest("hex"),
    };
  });
}

/**
 * Whether the newest migration is in place.
 * @throws ConfigProblem if the database holds a migration that this program does not know: an older program must not write
 */
async function isCurrent(database: Database, known: readonly Migration[]): Promise<boolean> {
  const table = sql.raw(database.dialect === "postgres" ? 'drizzle."__drizzle_migrations"' : "__drizzle_migrations");
  const present = database.query<{ present: number }>(
    database.dialect === "postgres"
      ? sql`select count(*)::int as present from pg_tables where schemaname = 'drizzle' and tablename = '__drizzle_migrations'`
      : sql`select count(*) as present from sqlite_schema where name = '__drizzle_migrations'`,
  );
  if (!(await present({}))[0]?.present) return false;
  const applied = await database.query<{ at: number }>(sql`select max(created_at) as at from ${table}`)({});
  const newest = applied[0]?.at ?? 0;
  const last = known.at(-1)?.folderMillis ?? 0;
  if (newest > last)
    throw new ConfigProblem("The database was migrated by a newer Keyhole: start that version, or a newer one.");
  return newest === last;
}

// Drizzle's own migrator, given the migrations in memory: its public function reads them from a folder.
async function run(database: Database, list: readonly Migration[]): Promise<void> {
  const { dialect, session } = database.db as unknown as {
    dialect: { migrate(list: readonly Migration[], session: unknown, options: object): Promise<void> | void };
    session: unknown;
  };
  await dialect.migrate(list, session, {});
}
