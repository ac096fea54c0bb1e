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

/** All that the notary's role may do: read the audit, and append to the tree over it. It cannot read a secret. */
export const notarysRights: readonly (readonly [privileges: string, tables: readonly string[]])[] = [
  ["SELECT", [tables.systemKeys, tables.auditSegments, tables.auditCheckpoints, tables.auditHeads].map(getTableName)],
  [
    "SELECT, INSERT",
    [tables.auditLeaves, tables.auditCheckpointsSigned, tables.auditCosignatures, tables.auditSigners].map(
      getTableName,
    ),
  ],
  // What it compares with the record.
  ["SELECT (id, organization_id, revoked_at)", [getTableName(tables.apiKeys)]],
  ["SELECT (id, plan)", [getTableName(tables.organizations)]],
  ["SELECT (id, slug)", [getTableName(tables.projects)]],
  ["SELECT (project_id, kind, environment, version)", [getTableName(tables.sets)]],
  ["SELECT, INSERT", [getTableName(tables.auditExceptions)]],
  // When what was read last.
  ["SELECT, INSERT, UPDATE", [tables.lastReads, tables.lastReadsKnown].map(getTableName)],
];

/**
 * All that the role of the door over SSH and of a team's dashboard may do, where people come who are not operators. It
 * cannot make tables, change persons, or change or delete what is on record.
 */
export const peoplesRights: readonly (readonly [privileges: string, tables: readonly string[]])[] = [
  ["SELECT", Object.values(tables).map(getTableName)],
  ["INSERT, UPDATE, DELETE", [tables.projects, tables.setVersions].map(getTableName)],
  ["INSERT, UPDATE", [tables.sets, tables.apiKeys, tables.auditHeads].map(getTableName)],
  ["INSERT, DELETE", [getTableName(tables.fileContents)]],
  ["INSERT", [tables.dataKeys, tables.auditSegments].map(getTableName)],
  ["UPDATE", [getTableName(tables.variableRequests)]],
  // A new project locks a row against a rotation of the root key, and that takes the right to change one column.
  ["UPDATE (created_at)", [getTableName(tables.systemKeys)]],
];

/** A right to insert that tells who uses a role. The first that it has counts. */
const marks = [
  [getTableName(tables.projects), "people"],
  [getTableName(tables.auditCheckpointsSigned), "notary"],
  [getTableName(tables.auditSegments), "serve"],
] as const satisfies readonly (readonly [table: string, use: RoleUse])[];

/** The roles that `keyhole db grants` gave rights, and what uses them. */
export async function rolesInUse(database: Database): Promise<{ readonly role: string; readonly use: RoleUse }[]> {
  type Row = { readonly role: string; readonly tables: string };
  const rows = await database.query<Row>(sql`
    select rolname::text as role, json_agg(relname)::text as tables
    from pg_class, aclexplode(relacl) as acl join pg_roles on pg_roles.oid = acl.grantee
    where relnamespace = (select relnamespace from pg_class where oid = 'audit_segments'::regclass)
      and privilege_type = 'INSERT' and not pg_has_role(pg_roles.oid, relowner, 'MEMBER')
    group by rolname order by rolname`)({});
  return rows.flatMap(({ role, tables }) => {
    const written = JSON.parse(tables) as string[];
    const [, use] = marks.find(([table]) => written.includes(table)) ?? [];
    return use === undefined ? [] : [{ role, use }];
  });
}

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
