import { type SQL, sql } from "drizzle-orm";
import { postgres, sqlite } from "../../drizzle/migrations.ts";
import { sha256Of } from "../core/hash.ts";
import { configProblem } from "../core/problem.ts";
import { HostRefused } from "../core/refused.ts";
import { type Database, type Db, databaseErrorCode, lockTimeout } from "./database.ts";

/** The migrations in order. A test compares them with `drizzle/`. */
export const migrations = { postgres: postgres.map(migrationOf), sqlite: sqlite.map(migrationOf) };

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
export async function tablesVersion(database: Database): Promise<number> {
  return (await findApplied(database.dialect, (text) => database.query<never>(text)({}))).version;
}

/**
 * Makes the tables, or brings them up to date, in one transaction. If several processes do so at once, one works and the
 * others wait.
 * @param also - more to do in that transaction, if the tables have changed or not
 * @throws Refused `unavailable` if others keep a table of PostgreSQL locked, Problem if the tables cannot be made there
 */
export async function migrate(database: Database, also?: (db: Db) => Promise<void>): Promise<Versions> {
  const { dialect } = database;
  const [found, to] = [await tablesVersion(database), newestTables(database)];
  if (found === to && also === undefined) return { from: to, to };
  if (found === 0) await requireRoom(dialect, (text) => database.query<never>(text)({}));
  const bringUp = async (db: Db) => {
    if (dialect === "postgres") await prepare(db);
    const ask: RunSql = (text) => execute(dialect, db, text);
    const { version: from, isShared } = await findApplied(dialect, ask);
    if (from === 0 || isShared) await ask(begin[dialect]);
    if (isShared) await takeOver(dialect, ask, from);
    for (const migration of migrations[dialect].slice(from)) {
      for (const statement of migration.sql) await ask(sql.raw(statement));
      await note(ask, applied[dialect], migration);
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
type RunSql = <Row>(text: SQL) => Promise<Row[]>;

const applied = { postgres: sql`public.keyhole_migrations`, sqlite: sql`keyhole_migrations` };
const begin = {
  postgres: sql`create table public.keyhole_migrations (hash text primary key, created_at bigint not null)`,
  sqlite: sql`create table keyhole_migrations (hash text primary key, created_at integer not null) strict`,
};
/** Drizzle's own journal, which any application may share. Keyhole kept its there before `0010_journal`. */
const shared = { postgres: sql`drizzle."__drizzle_migrations"`, sqlite: sql`__drizzle_migrations` };

const present = {
  // Another application's schema may be closed to this role.
  postgres: sql`select to_regclass('public.keyhole_migrations') is not null as own,
    case when has_schema_privilege(to_regnamespace('drizzle'), 'USAGE')
      then to_regclass('drizzle."__drizzle_migrations"') is not null end as shared`,
  sqlite: sql`select count(*) filter (where name = 'keyhole_migrations') as own,
    count(*) filter (where name = '__drizzle_migrations') as shared from sqlite_schema`,
};

/** @returns how many migrations were applied, and whether the shared journal says so */
async function findApplied(dialect: Dialect, ask: RunSql): Promise<{ version: number; isShared: boolean }> {
  const known = migrations[dialect];
  const [is] = await ask<{ own: unknown; shared: unknown }>(present[dialect]);
  if (is?.own) {
    const [last] = await ask<{ at: number | null }>(sql`select max(created_at) as at from ${applied[dialect]}`);
    const newest = Number(last?.at ?? 0);
    if (newest <= (known.at(-1)?.folderMillis ?? 0)) {
      return { version: known.filter(({ folderMillis }) => folderMillis <= newest).length, isShared: false };
    }
    throw new HostRefused("unavailable", "This database is of a newer Keyhole: use that version, or a newer one.");
  }
  const rows = is?.shared ? await ask<{ hash: string }>(sql`select hash from ${shared[dialect]}`) : [];
  const missing = known.findIndex((one) => !rows.some(({ hash }) => hash === one.hash));
  const version = missing === -1 ? known.length : missing;
  return { version, isShared: version > 0 };
}

function note(ask: RunSql, journal: SQL, { hash, folderMillis }: { hash: string; folderMillis: number }) {
  return ask(sql`insert into ${journal} (hash, created_at) values (${hash}, ${folderMillis})`);
}

/**
 * Moves our rows out of the shared journal, where they keep another application's migrations from being applied. If
 * there is no other application, the newest row stays, so that older programs say that the database is of a newer one.
 */
async function takeOver(dialect: Dialect, ask: RunSql, version: number): Promise<void> {
  const known = migrations[dialect];
  for (const migration of known.slice(0, version)) {
    await note(ask, applied[dialect], migration);
    await ask(sql`delete from ${shared[dialect]} where hash = ${migration.hash}`);
  }
  const others = await ask(sql`select hash from ${shared[dialect]} limit 1`);
  for (const newest of others.length === 0 ? known.slice(-1) : []) await note(ask, shared[dialect], newest);
}

/** @throws Problem if this database has no room for our tables: it is another application's, or is closed to us */
async function requireRoom(dialect: Dialect, ask: RunSql): Promise<void> {
  const made = migrations[dialect].flatMap(({ sql: statements }) => statements).join("\n");
  const names = [...made.matchAll(/^CREATE (?:UNIQUE )?(?:TABLE|INDEX|VIEW) ["`](\w+)/gm)].map(
    ([, name]) => `'${name}'`,
  );
  const isOurs = sql.raw(`in ('keyhole_migrations', ${names})`);
  const [found] = await ask<{ other: string | null; lacks: string | null }>(
    dialect === "sqlite"
      ? sql`select min(name) as other, null as lacks from sqlite_schema where name ${isOurs}`
      : sql`select min(relname::text) as other, case
          when to_regnamespace('public') is null
            then format('has no schema public, where Keyhole makes its tables: create schema public authorization %I;', current_user)
          when not has_schema_privilege(to_regnamespace('public'), 'CREATE')
            then format('lets the role %1$I make no tables in the schema public: alter database %2$I owner to %1$I; or grant create on schema public to %1$I;', current_user, current_database())
          end as lacks from pg_class where relnamespace = to_regnamespace('public') and relname ${isOurs}`,
  );
  if (found?.lacks) throw configProblem(`The database of DATABASE_URL ${found.lacks}`);
  // Another process may have made the tables just now.
  if (!found?.other || (await findApplied(dialect, ask)).version > 0) return;
  const words = `The database has a table or view ${found.other} that is not Keyhole's, so nothing was made: give Keyhole a database of its own.`;
  throw configProblem(words);
}

/** Inside a transaction, where `query` would wait for another connection. */
async function execute<Row>(dialect: Dialect, db: Db, text: SQL): Promise<Row[]> {
  if (dialect === "postgres") return [...(await db.execute(text))] as Row[];
  return (db as unknown as { all(text: SQL): Row[] }).all(text);
}

function migrationOf({ text, at }: { readonly text: string; readonly at: number }) {
  return { sql: text.split("--> statement-breakpoint"), folderMillis: at, hash: sha256Of(text) };
}
