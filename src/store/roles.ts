import { getTableName, sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { type RoleUse, servingRights } from "./rights.ts";
import { postgresTables as tables } from "./tables.ts";

/* The rights of the roles. */

type TableRights = readonly (readonly [privileges: string, tables: readonly string[]])[];

const { read, append, note, count } = servingRights;
const serversRights: TableRights = [
  ["SELECT", read],
  ["INSERT", append],
  [`INSERT, UPDATE (${note.column})`, [note.table]],
  ["SELECT, INSERT, UPDATE, DELETE", count],
];

/** All that the notary's role may do: read the audit, and append to the tree over it. It cannot read a secret. */
const notarysRights: TableRights = [
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
 * cannot make tables, or change or delete what is on record or an earlier list of persons.
 */
const peoplesRights: TableRights = [
  ["SELECT", Object.values(tables).map(getTableName)],
  ["INSERT, UPDATE, DELETE", [tables.projects, tables.setVersions].map(getTableName)],
  ["INSERT, UPDATE", [tables.sets, tables.apiKeys, tables.auditHeads].map(getTableName)],
  ["INSERT, DELETE", [getTableName(tables.fileContents)]],
  ["INSERT", [tables.dataKeys, tables.auditSegments, tables.rosters].map(getTableName)],
  ["UPDATE", [getTableName(tables.variableRequests)]],
  // A new project locks a row against a rotation of the root key, and that takes the right to change one column.
  ["UPDATE (created_at)", [getTableName(tables.systemKeys)]],
];

/** Which migrations ran: whoever opens a database asks. */
const everyones: TableRights = [["SELECT", ["keyhole_migrations"]]];

/** What `keyhole db grants` grants a role, by its use. docs/least-privilege.md sums it up. */
export const rightsOfRoles: Readonly<Record<RoleUse, TableRights>> = {
  serve: [...everyones, ...serversRights],
  people: [...everyones, ...peoplesRights],
  notary: [...everyones, ...notarysRights],
};

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
