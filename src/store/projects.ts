import { sql } from "drizzle-orm";
import { itemsMax } from "../names.ts";
import type { Database } from "./database.ts";
import { liveness } from "./keys.ts";
import type { PlaceValues } from "./place.ts";

/** A project, or a key's standing where the project is null; counts are JSON arrays by mask 1 to 7. */
export type ProjectRow = {
  readonly live: number;
  readonly plan: string;
  readonly id: string | null;
  readonly slug: string;
  readonly name: string;
  readonly variableCounts: string;
  readonly accountCounts: string;
  readonly fileCounts: string;
  readonly createdAt: number;
};
/** One environment of a project; null where the project is. */
export type ProjectEnvironmentRow = ProjectRow & {
  readonly environment: string | null;
  readonly updatedAt: number | null;
};

export type ProjectQueries = {
  /** One row for each environment of the project, or one that says why there is none. */
  readonly one: (place: PlaceValues) => Promise<ProjectEnvironmentRow[]>;
  /** Every project of the key's organization in order of slug, at most one more than a response may hold. */
  readonly every: (keyId: string) => Promise<ProjectRow[]>;
  /** Those of the list, in no order. */
  readonly listed: (keyId: string, projectIds: readonly string[]) => Promise<ProjectRow[]>;
};

/** Prepares the reads of projects. A key whose projects are all gone still gets one row, with `id` null. */
export function projectQueries(database: Database): ProjectQueries {
  const { apiKeys: k, organizations: o, projects: p, projectEnvironments: e } = database.tables;
  const columns = sql`${liveness(database)} as live, ${o.plan} as plan, ${p.id} as id, ${p.slug} as slug,
    ${p.name} as name, ${p.variableCounts} as "variableCounts", ${p.accountCounts} as "accountCounts",
    ${p.fileCounts} as "fileCounts", ${p.createdAt} as "createdAt"`;
  const key = sql`${k} join ${o} on ${o.id} = ${k.organizationId}`;
  const one = database.query<ProjectEnvironmentRow>(sql`
    select ${columns}, ${e.environment} as environment, ${e.updatedAt} as "updatedAt"
    from ${key}
    left join ${p} on ${p.organizationId} = ${k.organizationId} and ${p.slug} = ${sql.placeholder("slug")}
      and ${p.id} = coalesce(${sql.placeholder("projectId")}, ${p.id})
    left join ${e} on ${e.projectId} = ${p.id}
    where ${k.id} = ${sql.placeholder("keyId")}`);
  const every = database.query<ProjectRow>(sql`
    select ${columns} from ${key} left join ${p} on ${p.organizationId} = ${k.organizationId}
    where ${k.id} = ${sql.placeholder("keyId")}
    order by ${p.slug} limit ${sql.raw(String(itemsMax + 1))}`);
  // Spelled so that no index of organizations can be taken for it: the ids lead to fewer rows.
  const listed = database.query<ProjectRow>(sql`
    select ${columns} from ${key} left join ${p}
      on ${database.isMember(p.id, sql.placeholder("projectIds"))}
      and ${p.organizationId} || '' = ${k.organizationId}
    where ${k.id} = ${sql.placeholder("keyId")} limit ${sql.raw(String(itemsMax + 1))}`);
  return {
    one: (place) => one(place),
    every: (keyId) => every({ keyId }),
    listed: (keyId, projectIds) => listed({ keyId, projectIds: JSON.stringify(projectIds) }),
  };
}
