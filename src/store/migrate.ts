import { type SQL, sql } from "drizzle-orm";
import postgresTables from "../../drizzle/postgres/0000_tables.sql" with { type: "text" };
import postgresSeal from "../../drizzle/postgres/0001_organization_seal.sql" with { type: "text" };
import postgresPersons from "../../drizzle/postgres/0002_persons.sql" with { type: "text" };
import postgresHeads from "../../drizzle/postgres/0003_heads.sql" with { type: "text" };
import postgresEnvironments from "../../drizzle/postgres/0004_environments.sql" with { type: "text" };
import postgresNotary from "../../drizzle/postgres/0005_notary.sql" with { type: "text" };
import postgresExceptions from "../../drizzle/postgres/0006_exceptions.sql" with { type: "text" };
import postgresCosignatures from "../../drizzle/postgres/0007_cosignatures.sql" with { type: "text" };
import postgresLastReads from "../../drizzle/postgres/0008_last_reads.sql" with { type: "text" };
import postgresJobReads from "../../drizzle/postgres/0009_job_reads.sql" with { type: "text" };
import postgresJournal from "../../drizzle/postgres/meta/_journal.json" with { type: "json" };
import sqliteTables from "../../drizzle/sqlite/0000_tables.sql" with { type: "text" };
import sqliteSeal from "../../drizzle/sqlite/0001_organization_seal.sql" with { type: "text" };
import sqlitePersons from "../../drizzle/sqlite/0002_persons.sql" with { type: "text" };
import sqliteHeads from "../../drizzle/sqlite/0003_heads.sql" with { type: "text" };
import sqliteEnvironments from "../../drizzle/sqlite/0004_environments.sql" with { type: "text" };
import sqliteNotary from "../../drizzle/sqlite/0005_notary.sql" with { type: "text" };
import sqliteExceptions from "../../drizzle/sqlite/0006_exceptions.sql" with { type: "text" };
import sqliteCosignatures from "../../drizzle/sqlite/0007_cosignatures.sql" with { type: "text" };
import sqliteLastReads from "../../drizzle/sqlite/0008_last_reads.sql" with { type: "text" };
import sqliteJobReads from "../../drizzle/sqlite/0009_job_reads.sql" with { type: "text" };
import sqliteJournal from "../../drizzle/sqlite/meta/_journal.json" with { type: "json" };
import { sha256Of } from "../core/hash.ts";
import { HostRefused } from "../core/refused.ts";
import { lockTimeout } from "./audit-months.ts";
import { type Database, type Db, databaseErrorCode } from "./database.ts";

/** The migrations in order. A test compares them with `drizzle/`. */
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
    "0008_last_reads": postgresLastReads,
    "0009_job_reads": postgresJobReads,
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
    "0008_last_reads": sqliteLastReads,
    "0009_job_reads": sqliteJobReads,
  }),
};

/** The version of a database's tables: how many migrations made them. */
export type Versions = { readonly from: number; readonly to: number };

/** The version that this program needs. */
export function newestTables({ dialect }: Pick<Database, "dialect">): number {
  return migrations[dialect].length;
}

/** Whether the newest migration is in place. @throws Refused if the tables are of a newer program */
export async function isMigrated(database: Database): Promise<boolean> {
  return (await tablesVersion(database)) === newestTables(database);
}

/** The version of the tables; 0 if there are none. @throws Refused `unavailable` if they are of a newer program */
export function tablesVersion(database: Database): Promise<number> {
  return countApplied(database.dialect, <Row>(text: SQL) => database.query<Row>(text)({}));
}

/**
 * Makes the tables, or brings them up to date, in one transaction. If several processes do so at once, one works and the
 * others wait.
 * @param also - more to do in that transaction, if the tables have changed or not
 * @throws Refused `unavailable` if others keep a table of PostgreSQL locked
 */
export async function migrate(database: Database, also?: (db: Db) => Promise<void>): Promise<Versions> {
  const { dialect } = database;
  const [found, to] = [await tablesVersion(database), newestTables(database)];
  if (found === to && also === undefined) return { from: to, to };
  const bringUp = async (db: Db) => {
    if (dialect === "postgres") await prepare(db);
    const from = await countApplied(dialect, (text) => execute(dialect, db, text));
    if (from === 0) for (const text of begin[dialect]) await execute(dialect, db, text);
    for (const { sql: statements, hash, folderMillis } of migrations[dialect].slice(from)) {
      for (const statement of statements) await execute(dialect, db, sql.raw(statement));
      const values = sql`(hash, created_at) values (${hash}, ${folderMillis})`;
      await execute(dialect, db, sql`insert into ${applied[dialect]} ${values}`);
    }
    await also?.(db);
    return { from, to };
  };
  return database.transaction(bringUp, found).catch((error: unknown) => {
    if (databaseErrorCode(error) !== isLocked) throw error;
    throw new HostRefused("unavailable", lockedMessage, { cause: error });
  });
}

const isLocked = "55P03";
const lockedMessage =
  "Nothing was changed, because somebody keeps a table locked, perhaps a backup: try again when that has ended.";

/** Others that upgrade wait here. What is made belongs to the owner of the rest, also if a superuser makes it. */
async function prepare(db: Db): Promise<void> {
  await db.execute(upgradeLock);
  await db.execute(lockTimeout);
  // If this process is killed, what it runs ends, and so do its locks.
  await db.execute(
    sql`select set_config('client_connection_check_interval', '1000', true) where version() like '%linux%'`,
  );
  await db.execute(sql`
    select set_config('role', pg_get_userbyid(relowner)::text, true) from pg_class
    where oid = to_regclass('public.system_keys') and pg_get_userbyid(relowner) <> current_user`);
}

/** Waits until nobody else upgrades this database, and locks it until the transaction ends. PostgreSQL only. */
export const upgradeLock = sql`select pg_advisory_xact_lock(30229394625621093)`; // the bytes of "keyhole"

type Dialect = Database["dialect"];
type Ask = <Row>(text: SQL) => Promise<Row[]>;

// The names and columns are those of drizzle's own migrator.
const applied = { postgres: sql`drizzle."__drizzle_migrations"`, sqlite: sql`__drizzle_migrations` };
const begin: Readonly<Record<Dialect, readonly SQL[]>> = {
  postgres: [
    sql`create schema if not exists drizzle`,
    sql`create table if not exists drizzle."__drizzle_migrations" (id serial primary key, hash text not null, created_at bigint)`,
  ],
  sqlite: [
    sql`create table if not exists __drizzle_migrations (id serial primary key, hash text not null, created_at numeric)`,
  ],
};

async function countApplied(dialect: Dialect, ask: Ask): Promise<number> {
  const present =
    dialect === "postgres"
      ? sql`select to_regclass('drizzle."__drizzle_migrations"')::text as name`
      : sql`select name from sqlite_schema where name = '__drizzle_migrations'`;
  const [found] = await ask<{ name: string | null }>(present);
  if (!found?.name) return 0;
  const [last] = await ask<{ at: number | null }>(sql`select max(created_at) as at from ${applied[dialect]}`);
  const newest = Number(last?.at ?? 0);
  const known = migrations[dialect];
  if (newest <= (known.at(-1)?.folderMillis ?? 0))
    return known.filter(({ folderMillis }) => folderMillis <= newest).length;
  throw new HostRefused("unavailable", "This database is of a newer Keyhole: use that version, or a newer one.");
}

/** Inside a transaction, where `query` would wait for another connection. */
async function execute<Row>(dialect: Dialect, db: Db, text: SQL): Promise<Row[]> {
  if (dialect === "postgres") return [...(await db.execute(text))] as Row[];
  return (db as unknown as { all(text: SQL): Row[] }).all(text);
}

function listed(entries: { tag: string; when: number }[], files: Record<string, string>) {
  return entries.map(({ tag, when }) => {
    const text = files[tag];
    if (text === undefined) throw new Error(`migration ${tag} is in the journal but not in the program`);
    return { sql: text.split("--> statement-breakpoint"), folderMillis: when, hash: sha256Of(text) };
  });
}
