import { sql } from "drizzle-orm";
import { type Database, type Db, databaseErrorCode, lockTimeout } from "../../store/database.ts";

// PostgreSQL keeps audit segments in a partition for each month (UTC). Processes make partitions ahead, if their role
// may. Segments of a month without a partition go to DEFAULT, so nothing stops. The embedded database has one table.

/** Takes the segments of months that have no partition. */
export const defaultPartition = "audit_segments_default";

/** How many months are made ahead, beside the current one. */
export const monthsAhead = 6;

/** The partition of the month of a moment, or of `later` months after it, and its bounds in epoch milliseconds. */
export function monthOf(at: number, later = 0) {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + later];
  const fromAt = Date.UTC(year, month);
  const name = `audit_segments_${new Date(fromAt).toISOString().slice(0, 7).replace("-", "_")}`;
  return { name, fromAt, toAt: Date.UTC(year, month + 1) };
}

/**
 * Makes the missing partitions of this month and the next ones, if this role may. A month that has segments in DEFAULT
 * stays there, because moving them would block the server's journal. A partition that the database refuses is skipped.
 * @returns the names of the partitions it made
 */
export async function makeAuditMonths(database: Database, nowMs: number): Promise<string[]> {
  if (database.dialect !== "postgres") return [];
  const { may, parts } = await auditPartitions(database);
  const made: string[] = [];
  for (let later = 0; may && later <= monthsAhead; later++) {
    const month = monthOf(nowMs, later);
    if (parts.some(({ name }) => name === month.name)) continue;
    try {
      if (await database.transaction((db) => make(db, month))) made.push(month.name);
    } catch (error) {
      // A lock is held, another process was first, DEFAULT got a segment, or the disk is full.
      if (databaseErrorCode(error) === "no code") throw error;
    }
  }
  return made;
}

/**
 * Runs `first`, drops the partitions that end by `cutoffAt`, and deletes older segments in DEFAULT, in one transaction.
 * @throws what the database throws; 55P03 if others use the table for longer than half a second
 */
export async function dropAuditMonths(database: Database, cutoffAt: number, first: (db: Db) => Promise<void>) {
  const { parts } = await auditPartitions(database);
  const due = parts.filter(({ name }) => {
    const [, year, month] = /^audit_segments_(\d{4})_(\d{2})$/.exec(name) ?? [];
    return year !== undefined && Date.UTC(Number(year), Number(month)) <= cutoffAt;
  });
  await database.transaction(async (db) => {
    await first(db);
    await db.execute(lockTimeout);
    for (const { name } of due) await db.execute(sql`drop table ${sql.identifier(name)}`);
    await db.execute(sql`delete from ${sql.identifier(defaultPartition)} where at < ${cutoffAt}`);
  });
}

async function make(db: Db, { name, fromAt, toAt }: ReturnType<typeof monthOf>): Promise<boolean> {
  const [held] = await db.execute(
    sql`select 1 as held from ${sql.identifier(defaultPartition)} where at >= ${fromAt} and at < ${toAt} limit 1`,
  );
  if (held) return false;
  await db.execute(lockTimeout);
  const bounds = sql.raw(`from (${fromAt}) to (${toAt})`);
  await db.execute(sql`create table ${sql.identifier(name)} partition of audit_segments for values ${bounds}`);
  // Servers insert into the partition itself.
  const [found] = await db.execute(sql`
    select string_agg(case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end, ', ') as roles
    from pg_class, aclexplode(relacl) where oid = 'audit_segments'::regclass and privilege_type = 'INSERT'`);
  const roles = found?.["roles"] as string | null | undefined;
  if (roles) await db.execute(sql`grant insert on ${sql.identifier(name)} to ${sql.raw(roles)}`);
  return true;
}

/**
 * The partitions in order of name, and whether this role may insert into each.
 * @returns `may`: whether the role may make partitions
 */
export async function auditPartitions(database: Database) {
  type Part = { readonly name: string; readonly open: boolean };
  const [row] = await database.query<{ role: string; may: boolean; parts: string }>(sql`
    select current_user::text as role,
      pg_has_role(parent.relowner, 'USAGE') and has_schema_privilege(parent.relnamespace, 'CREATE') as may,
      coalesce((select json_agg(json_build_object('name', part.relname, 'open', has_table_privilege(part.oid, 'INSERT'))
        order by part.relname) from pg_inherits join pg_class as part on part.oid = inhrelid
        where inhparent = parent.oid), '[]')::text as parts
    from pg_class as parent where parent.oid = 'audit_segments'::regclass`)({});
  return { role: row?.role ?? "", may: row?.may ?? false, parts: JSON.parse(row?.parts ?? "[]") as Part[] };
}
