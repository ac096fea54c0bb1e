import { type SQL, sql } from "drizzle-orm";
import { environments } from "../core/names.ts";
import { type Database, literal, textValue } from "./database.ts";

// What a key reaches, as fragments of SQL. A trust is a row of `api_keys`, and a key here. The lookup that judges the
// key is built from these, and so is every statement that fetches something for it. So authority and data are always
// one snapshot, and what is out of reach is not found.

/** A column, or null if it is larger than Keyhole ever writes: nobody can fill the server's memory through a row. */
export function bounded(column: SQL | { readonly getSQL: () => SQL }, bytesMax: number): SQL {
  return sql`case when octet_length(${column}) <= ${literal(bytesMax)} then ${column} end`;
}

/** 1 if the key is neither revoked nor expired by the database's clock, else 0. */
export function liveness({ tables: { apiKeys: k }, nowMs }: Database): SQL {
  return sql`case when ${k.revokedAt} is null and (${k.expiresAt} is null or ${k.expiresAt} > ${nowMs})
    then 1 else 0 end`;
}

/** The longest project list that is read: over some 2,000 projects. */
export const projectsBytesMax = 256 * 1024;
/** The longest terms of a trust that are read. */
export const termsBytesMax = 16 * 1024;
/** The longest list of ranges that is read: 64 of IPv6. */
export const fromBytesMax = 4 * 1024;

/** A key's grant and its seal. A list or terms that are too large come as an empty text, which no seal fits. */
export function grantColumns(database: Database): SQL {
  const { apiKeys: k } = database.tables;
  return sql`${k.id} as "keyId", ${k.organizationId} as "organizationId", ${k.surfaces} as surfaces,
    ${k.resources} as resources, ${k.environments} as environments, ${projectList(database)} as projects,
    ${k.expiresAt} as "expiresAt", ${boundedText(k.trust, termsBytesMax)} as trust, ${k.rate} as rate,
    ${boundedText(k.from, fromBytesMax)} as "from", ${k.digest} as digest, ${bounded(k.grantSeal, 32)} as "grantSeal"`;
}

/**
 * Which project a key reaches under a slug. Outside a listed key's scope the slug becomes one that no project has, so
 * absent and out of scope touch the same rows.
 */
export function projectInReach(database: Database, slug: SQL): SQL {
  const { apiKeys: k, projects: p } = database.tables;
  const list = projectList(database);
  // It is looked for in the list's text, in the one spelling that Keyhole writes. Parsed as JSON, a list that was damaged
  // in SQL would be an error for every request of the statement. The grant seal judges the list afterwards.
  const isListed = (id: SQL) =>
    sql`(${k.projects} is null or ${database.indexOf(list, sql`'"' || ${slug} || '":"' || ${id}`)} > 0)`;
  return sql`${p.organizationId} = ${k.organizationId}
    and ${p.slug} = case when ${isListed(sql`''`)} then ${slug} else '' end and ${isListed(sql`${p.id} || '"'`)}`;
}

/** Which sets of a project a key reaches: those of the wanted kind and environments that are in its scope. */
export function setsInReach(
  { tables: { sets: s } }: Database,
  at: { readonly projectId: SQL; readonly kind: SQL; readonly wanted: SQL; readonly scope: SQL },
): SQL {
  return sql`${s.projectId} = ${at.projectId} and ${s.kind} = ${at.kind}
    and (${environmentBit(sql`${s.environment}`)} & ${at.wanted} & ${at.scope}) <> 0`;
}

/** That the notary has found none of these to be against the record (`auditExceptions` in `tables.ts`). */
export function isNoException({ tables: { auditExceptions: e } }: Database, ...subjects: readonly SQL[]): SQL {
  return sql`not exists (select 1 from ${e} where ${e.subject} in (${sql.join([...subjects], sql`, `)}))`;
}

/** The bit of an environment, as in `core/names.ts`. */
export function environmentBit(environment: SQL): SQL {
  const cases = environments.map((name, index) => `when '${name}' then ${1 << index}`).join(" ");
  return sql`case ${environment} ${sql.raw(cases)} else 0 end`;
}

/** Values of the placeholders of {@link authorized}. */
export type Authorized = { readonly keyId: string; readonly slug: string; readonly projectId: string };

/**
 * The common table expression of every statement after the lookup. `standing` has one row with the key's liveness, the
 * plan and the project, or none if the key is gone. Its `reached` is the project's id, or null unless all three are as
 * they must be. What a statement fetches is joined to `reached`. The project is the one that the lookup found: for a
 * listed key, that lookup's list was checked against its seal.
 *
 * The parameters are columns of a subquery. If its plan might depend on a parameter, SQLite would prepare the statement
 * again for each new value, which costs 50 µs.
 * @param ask - a table named `ask` with the columns `key_id`, `slug` and `project_id`
 * @param more - columns of `ask` that `standing` has too, each with a comma after it
 */
export function authorized(database: Database, ask: SQL = askedFor, more: SQL = sql``): SQL {
  const { apiKeys: k, organizations: o, projects: p } = database.tables;
  return sql`standing as (
      select ${more} ${liveness(database)} as live, ${bounded(o.plan, 16)} as plan, ${p.id} as project_id,
        case when ${liveness(database)} = 1 and ${o.plan} = 'pro' then ${p.id} end as reached,
        ${k.environments} as environments
      from ${ask}
      join ${k} on ${k.id} = ask.key_id
      join ${o} on ${o.id} = ${k.organizationId}
      left join ${p} on ${projectInReach(database, sql`ask.slug`)} and ${p.id} = ask.project_id
    )`;
}

const askedFor = sql`(select ${textValue("keyId")} as key_id, ${textValue("slug")} as slug,
  ${textValue("projectId")} as project_id) as ask`;

/** A row of `standing`. */
export type Standing = { readonly live: number; readonly plan: string; readonly projectId: string | null };
export const standingColumns: SQL = sql`standing.live as live, standing.plan as plan,
  standing.project_id as "projectId"`;

/** The beginning of a statement about no single project: a {@link Standing} with `more` columns, from the key on. */
export function selectForKey(database: Database, more: SQL): SQL {
  const { apiKeys: k, organizations: o } = database.tables;
  return sql`select ${liveness(database)} as live, ${bounded(o.plan, 16)} as plan, 'any' as "projectId", ${more}
    from ${k} join ${o} on ${o.id} = ${k.organizationId}`;
}

/** The join of the data key that sealed a row's values. */
export function withDataKey(
  { tables: { dataKeys: d } }: Database,
  sealed: Database["tables"]["sets" | "fileContents"],
): SQL {
  return sql`left join ${d} on ${d.projectId} = ${sealed.projectId} and ${d.generation} = ${sealed.generation}`;
}

/** The data key of {@link withDataKey}, as it is stored. */
export function dataKeyColumns({ tables: { dataKeys: d } }: Database): SQL {
  return sql`${bounded(d.rootId, 64)} as "rootId", ${bounded(d.wrapped, 128)} as wrapped`;
}

/**
 * What changes whenever a row or its data key is written: PostgreSQL's row versions. SQLite has none, and it is empty.
 * @param more - columns with which it begins
 */
export function rowVersionOf(
  { dialect, tables: { dataKeys: d } }: Database,
  row: Database["tables"]["sets" | "fileContents"],
  ...more: readonly SQL[]
): SQL {
  if (dialect === "sqlite") return sql`''`;
  return sql`concat_ws(' ', ${sql.join([...more, sql`${row}.xmin, ${row}.ctid, ${d}.xmin, ${d}.ctid`], sql`, `)})`;
}

/** A key's project list: null for every project, and an empty text if it is too large. */
export function projectList({ tables: { apiKeys: k } }: Database): SQL {
  return boundedText(k.projects, projectsBytesMax);
}

/** Null as it is stored; an empty text if it is too large. */
function boundedText(column: Database["tables"]["apiKeys"]["projects" | "trust" | "from"], bytesMax: number): SQL {
  return sql`case when ${column} is not null then coalesce(${bounded(column, bytesMax)}, '') end`;
}
