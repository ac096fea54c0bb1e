import { getTableName, type SQL, sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { postgresTables as tables } from "./tables.ts";

/** Who uses a role: the server, people who are no operators, or the notary. */
export type RoleUse = "serve" | "people" | "notary";

/** All that the server's role may do in PostgreSQL: `keyhole db grants` grants it, and `serve` looks for more. */
export const servingRights = {
  read: [
    tables.organizations,
    tables.projects,
    tables.systemKeys,
    tables.dataKeys,
    tables.sets,
    tables.fileContents,
    tables.apiKeys,
    tables.keyUses,
    tables.auditHeads,
    tables.variableRequests,
    // The tree shows that the database was put back. Its hashes are salted, and tell nothing of an entry.
    ...[tables.auditLeaves, tables.auditCheckpointsSigned, tables.auditSigners],
    // The keys and sets that the notary found to be put back.
    tables.auditExceptions,
  ].map(getTableName),
  /** Rows are added and never changed. */
  append: [tables.auditSegments, tables.variableRequests].map(getTableName),
  /** Rows are made, and this column of theirs is changed. */
  note: { table: getTableName(tables.keyUses), column: "last_used_at" },
  /** Counts, which nobody else relies on. */
  count: [getTableName(tables.jobReads)],
  /** What only commands touch, and a view for people. */
  none: [
    ...[tables.setVersions, tables.rosters, tables.auditCheckpoints, tables.auditCosignatures].map(getTableName),
    ...[tables.lastReads, tables.lastReadsKnown].map(getTableName),
    "audit_entries",
  ],
} as const;

/**
 * What this connection's role may do beyond {@link servingRights} that could change a secret, a key or the audit, such
 * as `may change api_keys`. @throws Fault `unavailable`
 */
export async function rightsBeyondServing(database: Database): Promise<{ role: string; beyond: string[] }> {
  const { read, append, note, none } = servingRights;
  const guarded = [...read.filter((name) => name !== note.table), ...append, ...none];
  const isOneOf = (name: SQL, names: readonly string[]) => database.isMember(name, sql`${JSON.stringify(names)}`);
  const name = sql`coalesce(parent.relname, table_.relname)::text`;
  type Row = { role: string; superuser: boolean; makesRoles: boolean; owner: boolean; changes: string };
  const [row] = await database.query<Row>(sql`
    with ours as (
      select table_.oid, table_.relowner, ${name} as name
      from pg_class as table_
      left join pg_inherits on inhrelid = table_.oid
      left join pg_class as parent on parent.oid = inhparent
      where table_.relkind in ('r', 'p')
        and table_.relnamespace = (select relnamespace from pg_class where oid = 'audit_segments'::regclass)
        and ${isOneOf(name, guarded)}
    )
    select rolname::text as role, rolsuper as superuser, rolcreaterole as "makesRoles",
      exists (select 1 from ours where pg_has_role(relowner, 'MEMBER')) as owner,
      coalesce((select json_agg(distinct name) from ours where
        has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER') or has_any_column_privilege(oid, 'UPDATE')
        or (not ${isOneOf(sql`name`, append)}
          and (has_table_privilege(oid, 'INSERT') or has_any_column_privilege(oid, 'INSERT')))), '[]')::text as changes
    from pg_roles where rolname = current_user`)({});
  if (!row) return { role: "", beyond: [] };
  const changes = JSON.parse(row.changes) as string[];
  if (row.superuser) return { role: row.role, beyond: ["is a superuser"] };
  const beyond = row.makesRoles ? ["may make roles"] : [];
  if (row.owner) beyond.push("owns the tables");
  else if (changes.length > 0) beyond.push(`may change ${changes.join(", ")}`);
  return { role: row.role, beyond };
}
