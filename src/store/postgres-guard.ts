import { getTableName } from "drizzle-orm";
import type { Use } from "./database.ts";
import { servingRights } from "./rights.ts";
import { postgresTables } from "./tables.ts";

const names = Object.values(postgresTables).map(getTableName);

const { read, append, count } = servingRights;
/** A lock on another table must not stop a server: the text of an expression takes the lock of its table. */
const ofServer = [...read, ...append, ...count];
const namesFor = (use: Use) => (use === "admin" || use === "notary" ? names : ofServer);

/** The path on which PostgreSQL finds our tables: no schema or temporary table before them, no function over its own. */
export const searchPath = "public, pg_temp";

/**
 * Finds at most three additions in PostgreSQL to our tables that somebody uses, the partitions of the audit included.
 * Code that is not PostgreSQL's own, in an expression of theirs, is one as well. So is a function or operator that takes
 * precedence over PostgreSQL's, unless an extension brought it.
 */
export const postgresAdditions = (use: Use) => `
with base as materialized (
  select array(select oid from pg_class where relnamespace = 'public'::regnamespace and relname = any('{${namesFor(use)}}')) as ids,
    array(select oid from pg_class where relnamespace = 'public'::regnamespace and relname = any('{${names}}')) as every,
    to_regclass('public.audit_segments')::oid as segments
), ours as materialized (
  select ids || array(select inhrelid from pg_inherits where inhparent = segments) as ids from base
), expressions as materialized (
  select array(select oid from pg_constraint where conrelid = any((select ids from ours)::oid[])) as constraints,
    array(select oid from pg_attrdef where adrelid = any((select ids from ours)::oid[])) as defaults,
    array(select indexrelid from pg_index where indrelid = any((select ids from ours)::oid[])) as indexes
), uses as materialized (
  select classid, objid, objsubid from pg_depend
  where refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass, 'pg_opclass'::regclass)
    and (classid, objid) in (
      select 'pg_class'::regclass, unnest(ids || indexes) from ours, expressions
      union all select 'pg_constraint'::regclass, unnest(constraints) from expressions
      union all select 'pg_attrdef'::regclass, unnest(defaults) from expressions)
)
select distinct pg_describe_object(class, object, part) || note as what from (
  select 'pg_class'::regclass, oid, 0, case when relrowsecurity or relforcerowsecurity then ' with row security'
      when relpersistence <> 'p' then ' that is not durable' else '' end from pg_class
    where oid = any((select ids from ours)::oid[]) and (relrowsecurity or relforcerowsecurity or relpersistence <> 'p'
      or relkind <> (case oid when (select segments from base) then 'p' else 'r' end)::"char")
  union all select 'pg_policy'::regclass, oid, 0, '' from pg_policy where polrelid = any((select ids from ours)::oid[])
  union all select 'pg_rewrite'::regclass, oid, 0, '' from pg_rewrite where ev_class = any((select ids from ours)::oid[])
  union all select case when tgisinternal then 'pg_constraint' else 'pg_trigger' end::regclass,
      case when tgisinternal then tgconstraint else oid end, 0, '' from pg_trigger
    where tgparentid = 0 and tgrelid = any((select ids from ours)::oid[]) and not (tgisinternal and tgconstraint in (
      select oid from pg_constraint where contype = 'f'
        and conrelid = any((select every from base)::oid[]) and confrelid = any((select every from base)::oid[])))
  union all select 'pg_class'::regclass, inhrelid, 0, ' that inherits' from pg_inherits
    where inhrelid = any((select ids from base)::oid[])
      or inhparent = any((select ids from ours)::oid[]) and inhparent <> (select segments from base)
  union all select 'pg_constraint'::regclass, oid, 0, ' that calls a function' from pg_constraint
    where oid = any((select constraints from expressions)::oid[]) and contype = 'c'
      and pg_get_constraintdef(oid) ~ '\\w\\('
  union all select 'pg_attrdef'::regclass, oid, 0, ' that calls a function' from pg_attrdef
    where oid = any((select defaults from expressions)::oid[]) and pg_get_expr(adbin, adrelid) ~ '\\w\\('
  union all select classid, objid, objsubid, ' that is not of PostgreSQL alone' from uses
  union all select classid, objid, 0, ' in the schema public' from pg_depend as f
    where refclassid = 'pg_namespace'::regclass and refobjid = 'public'::regnamespace
      and (classid = 'pg_operator'::regclass or classid = 'pg_proc'::regclass and exists (
        select from pg_proc as own, pg_proc as theirs where theirs.oid = f.objid and own.proname = theirs.proname
          and own.pronamespace = 'pg_catalog'::regnamespace))
      and not exists (
        select from pg_depend as e where e.classid = f.classid and e.objid = f.objid and e.deptype = 'e')
) as found(class, object, part, note) order by what limit 3`;

// Conditions on a row `month` of pg_class, for the statement that inserts into that table.

const ordinary = "relkind = 'r' and relpersistence = 'p' and not relrowsecurity and not relforcerowsecurity";

/** Nothing can swallow the row, by flags alone. That of a trigger or rule stays until the next VACUUM. */
export const neverExtended = `${ordinary} and not relhastriggers and not relhasrules`;

/** Nothing can swallow the row, by the catalogue. Costs a fifth of the whole statement more. */
export const notExtended = `${ordinary}
  and not exists (select from pg_trigger where tgrelid = month.oid)
  and not exists (select from pg_rewrite where ev_class = month.oid)`;
