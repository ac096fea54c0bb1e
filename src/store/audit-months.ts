import { sql } from "drizzle-orm";
import { type Database, type Db, databaseErrorCode } from "./database.ts";

/*
 * PostgreSQL keeps audit entries in a partition for each month (UTC). They are made ahead by whoever may; where nobody
 * did, entries go to the DEFAULT partition and nothing stops. The embedded database has one table.
 */

/** How many months beyond this one are made ahead. */
export const monthsAhead = 6;

/** A month of audit entries: its partition and the moments it holds, in epoch milliseconds. */
export type AuditMonth = { readonly name: string; readonly fromAt: number; readonly toAt: number };

/** The month that holds a moment, or one so many months later. */
export function monthOf(at: number, later = 0): AuditMonth {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + later];
  const fromAt = Date.UTC(year, month);
  const name = `audit_entries_${new Date(fromAt).toISOString().slice(0, 7).replace("-", "_")}`;
  return { name, fromAt, toAt: Date.UTC(year, month + 1) };
}

/**
 * Makes the partitions of this month and the next ones where they are missing and this role may. A month of which
 * entries lie in DEFAULT already stays there: moving them would keep the server's journal waiting.
 *
 * Never throws for what the database refuses: a missing month is no reason to stop.
 * @returns the names of those made
 */
export async function makeAuditMonths(database: Database, nowMs: number): Promise<string[]> {
  if (database.dialect !== "postgres") return [];
  const { may, names } = await present(database);
  const made: string[] = [];
  for (let later = 0; may && later <= monthsAhead; later++) {
    const month = monthOf(nowMs, later);
    if (names.includes(month.name)) continue;
    try {
      if (await database.transaction((db) => make(db, month))) made.push(month.name);
    } catch (error) {
      // A lock that is held, another process that was first, an entry that came just now, a disk that is full.
      if (databaseErrorCode(error) === "no code") throw error;
    }
  }
  return made;
}

/**
 * Drops the partitions that end by `cutoffAt`, and what DEFAULT holds of that time, in one transaction.
 * @param first - done in that transaction, before
 * @throws what the database throws; 55P03 where others use the table for longer than half a second
 */
export async function dropAuditMonths(
  database: Database,
  cutoffAt: number,
  first: (db: Db) => Promise<void>,
): Promise<void> {
  const { names } = await present(database);
  const due = names.filter((name) => {
    const [, year, month] = /^audit_entries_(\d{4})_(\d{2})$/.exec(name) ?? [];
    return year !== undefined && Date.UTC(Number(year), Number(month)) <= cutoffAt;
  });
  await database.transaction(async (db) => {
    await first(db);
    await db.execute(lockTimeout);
    for (const name of due) await db.execute(sql`drop table ${sql.identifier(name)}`);
    await db.execute(sql`delete from audit_entries_default where at < ${cutoffAt}`);
  });
}

// Both need the table to themselves for a moment; the journal waits behind whoever waits, for at most 1.8 s.
const lockTimeout = sql`set local lock_timeout = 500`;

async function make(db: Db, { name, fromAt, toAt }: AuditMonth): Promise<boolean> {
  const [held] = await db.execute(
    sql`select 1 as held from audit_entries_default where at >= ${fromAt} and at < ${toAt} limit 1`,
  );
  if (held) return false;
  await db.execute(lockTimeout);
  const bounds = sql.raw(`from (${fromAt}) to (${toAt})`);
  await db.execute(sql`create table ${sql.identifier(name)} partition of audit_entries for values ${bounds}`);
  return true;
}

async function present(database: Database): Promise<{ may: boolean; names: string[] }> {
  const [row] = await database.query<{ may: boolean; names: string }>(sql`
    select pg_has_role(parent.relowner, 'USAGE') and has_schema_privilege(parent.relnamespace, 'CREATE') as may,
      coalesce((select json_agg(part.relname) from pg_inherits join pg_class as part on part.oid = inhrelid
        where inhparent = parent.oid), '[]')::text as names
    from pg_class as parent where parent.oid = 'audit_entries'::regclass`)({});
  return { may: row?.may ?? false, names: JSON.parse(row?.names ?? "[]") as string[] };
}
