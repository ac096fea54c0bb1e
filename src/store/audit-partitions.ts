import { sql } from "drizzle-orm";
import type { Database } from "./database.ts";

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
