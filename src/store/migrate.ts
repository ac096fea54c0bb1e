import { sql } from "drizzle-orm";
import postgres from "postgres";
import postgresTables from "../../drizzle/postgres/0000_tables.sql" with { type: "text" };
import postgresSeal from "../../drizzle/postgres/0001_organization_seal.sql" with { type: "text" };
import postgresPersons from "../../drizzle/postgres/0002_persons.sql" with { type: "text" };
import postgresHeads from "../../drizzle/postgres/0003_heads.sql" with { type: "text" };
import postgresEnvironments from "../../drizzle/postgres/0004_environments.sql" with { type: "text" };
import postgresNotary from "../../drizzle/postgres/0005_notary.sql" with { type: "text" };
import postgresExceptions from "../../drizzle/postgres/0006_exceptions.sql" with { type: "text" };
import postgresCosignatures from "../../drizzle/postgres/0007_cosignatures.sql" with { type: "text" };
import postgresJournal from "../../drizzle/postgres/meta/_journal.json" with { type: "json" };
import sqliteTables from "../../drizzle/sqlite/0000_tables.sql" with { type: "text" };
import sqliteSeal from "../../drizzle/sqlite/0001_organization_seal.sql" with { type: "text" };
import sqlitePersons from "../../drizzle/sqlite/0002_persons.sql" with { type: "text" };
import sqliteHeads from "../../drizzle/sqlite/0003_heads.sql" with { type: "text" };
import sqliteEnvironments from "../../drizzle/sqlite/0004_environments.sql" with { type: "text" };
import sqliteNotary from "../../drizzle/sqlite/0005_notary.sql" with { type: "text" };
import sqliteExceptions from "../../drizzle/sqlite/0006_exceptions.sql" with { type: "text" };
import sqliteCosignatures from "../../drizzle/sqlite/0007_cosignatures.sql" with { type: "text" };
import sqliteJournal from "../../drizzle/sqlite/meta/_journal.json" with { type: "json" };
import { sha256Of } from "../core/hash.ts";
import { configProblem } from "../core/problem.ts";
import { version } from "../core/version.ts";
import type { Database } from "./database.ts";
import type { Servers } from "./postgres.ts";

/** The migrations in order, as drizzle's migrator takes them. A test compares them with `drizzle/`. */
export const migrations = {
  postgres: listed(postgresJournal.entries, {
    "0000_tables": postgresTables,
    "0001_organization_seal": postgresSeal,
    "0002_persons": postgresPersons,
    "0003_heads": postgresHeads,
    "0004_environments": postgresEnvironments,
    "0005_notary": postgresNotary,
    "0006_exceptions": postgresExceptions,
    "0007_cosignatures": postgresCosignatures,
  }),
  sqlite: listed(sqliteJournal.entries, {
    "0000_tables": sqliteTables,
    "0001_organization_seal": sqliteSeal,
    "0002_persons": sqlitePersons,
    "0003_heads": sqliteHeads,
    "0004_environments": sqliteEnvironments,
    "0005_notary": sqliteNotary,
    "0006_exceptions": sqliteExceptions,
    "0007_cosignatures": sqliteCosignatures,
  }),
};

/**
 * Brings PostgreSQL's tables up to date. Of several processes at once, one works and the others wait. If nothing is due
 * it only reads, so the server needs no right to change tables.
 */
export async function migratePostgres(servers: Servers, database: Database, say: (line: string) => void) {
  if (await isMigrated(database)) return;
  // The lock has a connection of its own, so that it ends with the process, however the process ends.
  const lock = postgres({
    ...(servers.current.connect as unknown as postgres.Options<Record<string, never>>),
    max: 1,
    connect_timeout: 2,
    fetch_types: false,
    onnotice: () => {},
  });
  try {
    await lock`select pg_advisory_lock(${advisoryLock})`;
    await migrate(database, say);
  } finally {
    await lock.end({ timeout: 1 });
  }
}

/** Whether the newest migration is in place. @throws Problem if a newer program migrated the tables */
export async function isMigrated(database: Database): Promise<boolean> {
  return (await countApplied(database)) === migrations[database.dialect].length;
}

/** How many migrations are in place. @throws Problem if a newer program migrated the tables */
async function countApplied(database: Database): Promise<number> {
  const [present, table] =
    database.dialect === "postgres"
      ? [sql`select to_regclass('drizzle."__drizzle_migrations"')::text as name`, sql`drizzle."__drizzle_migrations"`]
      : [sql`select name from sqlite_schema where name = '__drizzle_migrations'`, sql`__drizzle_migrations`];
  const [found] = await database.query<{ name: string | null }>(present)({});
  if (!found?.name) return 0;
  const [applied] = await database.query<{ at: number | null }>(sql`select max(created_at) as at from ${table}`)({});
  const newest = applied?.at ?? 0;
  const known = migrations[database.dialect];
  if (newest <= (known.at(-1)?.folderMillis ?? 0))
    return known.filter(({ folderMillis }) => folderMillis <= newest).length;
  throw configProblem("The database was migrated by a newer Keyhole: start that version, or a newer one.");
}

type Migration = { sql: string[]; bps: boolean; folderMillis: number; hash: string };
/** The bytes of "keyhole" as a number. */
const advisoryLock = "30229394625621093";

function listed(entries: { tag: string; when: number; breakpoints: boolean }[], files: Record<string, string>) {
  return entries.map(({ tag, when, breakpoints }) => {
    const text = files[tag];
    if (text === undefined) throw new Error(`migration ${tag} is in the journal but not in the program`);
    return {
      sql: text.split("--> statement-breakpoint"),
      bps: breakpoints,
      folderMillis: when,
      hash: sha256Of(text),
    };
  });
}

/** @param say - takes a line for a person, if tables that were there are changed */
export async function migrate(database: Database, say: (line: string) => void): Promise<void> {
  const [before, after] = [await countApplied(database), migrations[database.dialect].length];
  if (before === after) return;
  await run(database);
  if (before === 0) return;
  say(
    `The tables were brought from version ${before} to version ${after}, for Keyhole ${version}: older programs cannot open this database any more.`,
  );
}

// Drizzle's own migrator, given the migrations in memory: its public function reads them from a folder.
async function run(database: Database): Promise<void> {
  const { dialect, session } = database.db as unknown as {
    dialect: { migrate(list: readonly Migration[], session: unknown, options: object): Promise<void> | void };
    session: unknown;
  };
  await dialect.migrate(migrations[database.dialect], session, {});
}
