import { Database as SqliteFile } from "bun:sqlite";
import { chmodSync, closeSync, openSync } from "node:fs";
import { sql } from "drizzle-orm";
import postgres from "postgres";
import postgresTables from "../../drizzle/postgres/0000_tables.sql" with { type: "text" };
import postgresJournal from "../../drizzle/postgres/meta/_journal.json" with { type: "json" };
import sqliteTables from "../../drizzle/sqlite/0000_tables.sql" with { type: "text" };
import sqliteJournal from "../../drizzle/sqlite/meta/_journal.json" with { type: "json" };
import { ConfigProblem } from "../config.ts";
import { type Database, openSqlite } from "./database.ts";

/** The migrations, in order, as drizzle's migrator takes them; a test holds them against `drizzle/`. */
export const migrations = {
  postgres: listed(postgresJournal.entries, { "0000_tables": postgresTables }),
  sqlite: listed(sqliteJournal.entries, { "0000_tables": sqliteTables }),
};

/**
 * Brings PostgreSQL's tables up to date. Any number of processes may call it at once: one works, the others wait.
 * Where nothing is due it only reads, so that a role without the right to change tables may start the server.
 * @throws whatever the database throws
 */
export async function migratePostgres(url: string, database: Database): Promise<void> {
  if (await isCurrent(database, migrations.postgres)) return;
  // The lock sits on a connection of its own: it ends with the process, however that ends.
  const lock = postgres(url, { max: 1, connect_timeout: 2, fetch_types: false, onnotice: () => {} });
  try {
    await lock`select pg_advisory_lock(${advisoryLock})`;
    if (!(await isCurrent(database, migrations.postgres))) await run(database, migrations.postgres);
  } finally {
    await lock.end({ timeout: 1 });
  }
}

/** Whether the tables are as this program has them. @throws ConfigProblem where a newer program's migrations are there */
export function isMigrated(database: Database): Promise<boolean> {
  return isCurrent(database, migrations[database.dialect]);
}

/** The same as {@link migratePostgres} for the embedded database at `path`; the file is made with mode 0600 where absent. */
export async function migrateSqlite(path: string): Promise<void> {
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const lock = exclusively(`${path}.migrating`, 30_000);
  try {
    const database = openSqlite(path, "admin");
    if (!(await isCurrent(database, migrations.sqlite))) await run(database, migrations.sqlite);
    await database.close();
  } finally {
    lock?.release();
  }
}

/**
 * A lock between processes that the operating system takes back when its holder dies, `kill -9` included: an exclusive
 * transaction on an SQLite file of its own.
 *
 * @returns undefined where another process still holds it after `waitMs`
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
 * @throws ConfigProblem where the database holds a migration that this program does not know: an older program must not write
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

// drizzle's own migrator, fed from memory: a public entry exists only for a folder on disk.
async function run(database: Database, list: readonly Migration[]): Promise<void> {
  const { dialect, session } = database.db as unknown as {
    dialect: { migrate(list: readonly Migration[], session: unknown, options: object): Promise<void> | void };
    session: unknown;
  };
  await dialect.migrate(list, session, {});
}
