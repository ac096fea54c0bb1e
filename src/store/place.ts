import { type SQL, sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { liveness } from "./keys.ts";

/** Values of the placeholders that {@link authorizedPlace} takes. */
export type PlaceValues = { readonly keyId: string; readonly slug: string; readonly projectId: string | null };

/**
 * The common table expression `place`: one row with the key's standing at this very moment and, through the key's
 * scope, the project or null. Every statement that reads a project's items hangs on it, so authority and data are one
 * snapshot: items join only `place_open`, which is empty once the key, the plan or the project is gone.
 */
export function authorizedPlace(database: Database): SQL {
  const { apiKeys: k, organizations: o, projects: p } = database.tables;
  return sql`place as (
      select ${liveness(database)} as live, ${o.plan} as plan, ${p.id} as project_id
      from ${k} join ${o} on ${o.id} = ${k.organizationId}
      left join ${p} on ${p.organizationId} = ${k.organizationId} and ${p.slug} = ${sql.placeholder("slug")}
        and ${p.id} = coalesce(${sql.placeholder("projectId")}, ${p.id})
      where ${k.id} = ${sql.placeholder("keyId")}
    ), place_open as (
      select project_id from place where live = 1 and plan = 'pro' and project_id is not null
    )`;
}

/** Rows of one statement come in parts: 0 the standing, 1 the project's data keys, 2 the items, 3 their sets. */
export type PartRow = {
  readonly part: 0 | 1 | 2 | 3;
  /** Project id; root id; item id; the listing of the variables' set, or the environment of an accounts' set. */
  readonly id: string | null;
  /** Plan; nothing; the item's name; nothing. */
  readonly name: string;
  /** Liveness; generation; version; the revision of the variables' set. */
  readonly number: number;
  /** Nothing; nothing; the item's environments, where it has several; the generation of the variables' set. */
  readonly environments: number;
  /** Nothing; the wrapped key; the sealed item; the sealed set, or the seal over it. Null where it is too much (`sized.ts`). */
  readonly sealed: Buffer | null;
  readonly updatedAt: number;
};

/** Part 0: always one row, unless the key itself is gone. */
export const standingPart: SQL = sql`
    select 0 as part, project_id as id, plan as name, live as number, 0 as environments,
      cast(null as bytea) as sealed, 0 as "updatedAt" from place`;

/** Part 1: the project's data keys, of which there are as many as it has had rotations. */
export function dataKeyPart({ tables: { dataKeys: d } }: Database): SQL {
  return sql`
    select 1, ${d.rootId}, '', ${d.generation}, 0, ${d.wrapped}, 0
    from place_open join ${d} on ${d.projectId} = place_open.project_id`;
}
