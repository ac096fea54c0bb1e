import { getTableColumns, type SQL, sql } from "drizzle-orm";
import { itemsMax } from "../core/names.ts";
import { type Database, literal } from "./database.ts";
import { type Authorized, authorized, bounded, type Standing, selectForKey, standingColumns } from "./reach.ts";

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
  const one = database.query<ProjectRow>(sql`
    with ${authorized(database)}
    select ${standingColumns}, ${columns} from standing
    left join ${p} on ${p.id} = standing.reached`);
  const several = (projects: SQL, rest: SQL) =>
    database.query<ProjectRow>(sql`
    ${selectForKey(database, columns)} left join ${p} on ${projects}
    where ${k.id} = ${sql.placeholder("keyId")} ${rest} limit ${literal(itemsMax + 1)}`);
  const every = several(sql`${p.organizationId} = ${k.organizationId}`, sql`order by ${p.slug}`);
  // `|| ''` keeps the planner off the index of organizations: the ids lead to fewer rows.
  const listed = several(
    sql`${database.isMember(p.id, sql.placeholder("projectIds"))} and ${p.organizationId} || '' = ${k.organizationId}`,
    sql``,
  );
  return {
    /** One row, unless the key is gone. */
    one: (at: Authorized) => one({ ...at }),
    /** Every project of the key's organization in order of slug, at most one more than an answer may hold. */
    every: (keyId: string) => every({ keyId }),
    /** Those of these ids that are the organization's, in no order. */
    listed: (keyId: string, ids: readonly string[]) => listed({ keyId, projectIds: JSON.stringify(ids) }),
  };
}
