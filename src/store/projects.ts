import { getTableColumns, type SQL, sql } from "drizzle-orm";
import { itemsMax } from "../core/names.ts";
import { type Database, literal } from "./database.ts";
import {
  type Authorized,
  authorized,
  bounded,
  isNoException,
  type Standing,
  selectForKey,
  standingColumns,
} from "./reach.ts";

/** A project with what its row says of all environments (`tables.ts`); nulls if there is none. */
export type ProjectRow = Standing & {
  readonly id: string | null;
  readonly slug: string | null;
  readonly name: string | null;
  /** How many items of a kind the project has, by the name of the column. */
  readonly [counts: `${string}Counts`]: string | null;
  readonly changedAt: string | null;
  readonly createdAt: number;
};

export type ProjectQueries = ReturnType<typeof projectQueries>;

/** Prepares the reads of projects. A key whose projects are all gone still gets one row, with `id` null. */
export function projectQueries(database: Database) {
  const { apiKeys: k, projects: p } = database.tables;
  const counts = sql.join(
    Object.entries(getTableColumns(p))
      .filter(([name]) => name.endsWith("Counts"))
      .map(([name, column]) => sql`${bounded(column, 128)} as ${sql.identifier(name)}`),
    sql`, `,
  );
  const columns = sql`${p.id} as id, ${bounded(p.slug, 64)} as slug, ${bounded(p.name, 1024)} as name,
    ${counts}, ${bounded(p.changedAt, 128)} as "changedAt", ${p.createdAt} as "createdAt"`;
  // A slug that was put back must not show: a row of it is not taken for the project.
  const isFound = isNoException(database, sql`'project:' || ${p.id}`);
  const one = database.query<ProjectRow>(sql`
    with ${authorized(database)}
    select ${standingColumns}, ${columns} from standing
    left join ${p} on ${p.id} = standing.reached and ${isFound}`);
  const several = (projects: SQL, rest: SQL) =>
    database.query<ProjectRow>(sql`
    ${selectForKey(database, columns)} left join ${projects}
    where ${k.id} = ${sql.placeholder("keyId")} ${rest} limit ${literal(itemsMax + 1)}`);
  const every = several(sql`${p} on ${p.organizationId} = ${k.organizationId} and ${isFound}`, sql`order by ${p.slug}`);
  const list = sql.placeholder("projects");
  const pairs = database.dialect === "postgres" ? sql`jsonb_each_text(${list}::text::jsonb)` : sql`json_each(${list})`;
  // `|| ''` keeps the planner off the index of organizations: the ids lead to fewer rows.
  const listed = several(
    sql`(${pairs} as listed join ${p} on ${p.id} = listed.value and ${p.slug} = listed."key")
      on ${p.organizationId} || '' = ${k.organizationId} and ${isFound}`,
    sql``,
  );
  return {
    /** One row, unless the key is gone. */
    one: (at: Authorized) => one({ ...at }),
    /** Every project of the key's organization in order of slug, at most one more than an answer may hold. */
    every: (keyId: string) => every({ keyId }),
    /**
     * Those of a list that are the organization's and have the slug of the list, in no order. At most one more than an
     * answer may hold. @param projects - slug to id as JSON, as a key has it
     */
    listed: (keyId: string, projects: string) => listed({ keyId, projects }),
  };
}
