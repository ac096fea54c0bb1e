import { type SQL, sql } from "drizzle-orm";
import { environments } from "../core/names.ts";
import type { Database } from "./database.ts";

// What a key reaches, as fragments of SQL. A trust is a row of `api_keys`, and a key here. The lookup that judges the
// key and every statement that fetches something for it are built from these, so authority and data are always one
// snapshot, and what is out of reach is not found.

/** A column, or null if it is larger than Keyhole ever writes: nobody can fill the server's memory through a row. */
export function bounded(column: SQL | { readonly getSQL: () => SQL }, bytesMax: number): SQL {
  return sql`case when octet_length(${column}) <= ${sql.raw(String(bytesMax))} then ${column} end`;
}

/** 1 if the key is neither revoked nor expired by the database's clock, else 0. */
export function liveness({ tables: { apiKeys: k }, nowMs }: Database): SQL {
  return sql`case when ${k.revokedAt} is null and (${k.expiresAt} is null or ${k.expiresAt} > ${nowMs})
    then 1 else 0 end`;
}

/** The longest project list that is read: over some 2,000 projects. */
export const projectsBytesMax = 256 * 1024;

/** A key's project list; an empty text, which no grant seal fits, if it is too large: over some 2,000 projects. */
export function projectList({ tables: { apiKeys: k } }: Database): SQL {
  return sql`case when ${k.projects} is not null then coalesce(${bounded(k.projects, projectsBytesMax)}, '') end`;
}

export const termsBytesMax = 16 * 1024;

/** The terms of a trust, null for a key; an empty text, which no grant seal fits, if they are too large. */
export function trustTerms({ tables: { apiKeys: k } }: Database): SQL {
  return sql`case when ${k.trust} is not null then coalesce(${bounded(k.trust, termsBytesMax)}, '') end`;
}

/**
 * Which project a key reaches under a slug. Outside a listed key's scope the slug becomes one that no project has, so
 * absent and out of scope touch the same rows.
 */
export function projectInReach(database: Database, slug: SQL): SQL {
  const { apiKeys: k, projects: p } = database.tables;
  const list = projectList(database);
  // The id is looked for in the list's text, in the one spelling that Keyhole writes. Parsed as JSON, a list that was
  // damaged in SQL would be an error for every request of the statement. The grant seal judges the list afterwards.
  const entry = sql`'"' || ${slug} || '":"'`;
  const at = database.dialect === "postgres" ? sql`strpos(${list}, ${entry})` : sql`instr(${list}, ${entry})`;
  const listedId = sql`substr(${list}, nullif(${at}, 0) + length(${slug}) + 4, 36)`;
  return sql`${p.organizationId} = ${k.organizationId}
    and ${p.slug} = case when ${k.projects} is null or (${listedId}) is not null then ${slug} else '' end
    and ${p.id} = coalesce(${listedId}, ${p.id})`;
}

/** Which sets of a project a key reaches: those of the wanted kind and environments that are in its scope. */
export function setsInReach(
  { tables: { sets: s } }: Database,
  at: { readonly projectId: SQL; readonly kind: SQL; readonly wanted: SQL; readonly scope: SQL },
): SQL {
  return sql`${s.projectId} = ${at.projectId} and ${s.kind} = ${at.kind}
    and (${environmentBit(sql`${s.environment}`)} & ${at.wanted} & ${at.scope}) <> 0`;
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
 * they must be; what a statement fetches is joined to that. The project is the one that the lookup found for a list
 * whose seal was checked.
 *
 * SQLite prepares a statement again when a parameter that its plan might depend on gets another value. That costs 50 µs.
 * It does not if the parameters are columns of a subquery.
 */
export function authorized(database: Database): SQL {
  const text = (name: string) => sql`cast(${sql.placeholder(name)} as text)`;
  const ask = sql`(select ${text("keyId")} as key_id, ${text("slug")} as slug, ${text("projectId")} as project_id) as ask`;
  return authorizedFor(database, ask);
}

/** {@link authorized} for a table named `ask` with the columns `key_id`, `slug` and `project_id`, and `more` of its columns. */
export function authorizedFor(database: Database, ask: SQL, more: SQL = sql``): SQL {
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

/** A row of `standing`. */
export type Standing = { readonly live: number; readonly plan: string; readonly projectId: string | null };
export const standingColumns: SQL = sql`standing.live as live, standing.plan as plan,
  standing.project_id as "projectId"`;
