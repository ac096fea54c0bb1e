import { sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { authorizedPlace, type PlaceValues } from "./place.ts";

/** A sealed set with the state of its environment, or the key's standing alone where `bytes` is null. */
export type SetRow = {
  readonly live: number;
  readonly plan: string;
  readonly projectId: string | null;
  readonly state: string | null;
  readonly revision: number | null;
  readonly setRevision: number | null;
  readonly generation: number | null;
  readonly rootId: string | null;
  readonly wrapped: Buffer | null;
  readonly listing: string | null;
  /** Of `sealed`. */
  readonly bytes: number | null;
  /** Null where it has more than `bytesMax` bytes, too. */
  readonly sealed: Buffer | null;
};

export type SetQueries = {
  /** One row, unless the key itself is gone. */
  readonly read: (place: PlaceValues, environment: string, bytesMax: number) => Promise<SetRow | undefined>;
};

/** Prepares the read of an environment's sealed set: four look-ups by primary key, one snapshot. */
export function setQueries(database: Database): SetQueries {
  const { projectEnvironments: e, variableSets: s, dataKeys: d } = database.tables;
  const read = database.query<SetRow>(sql`
    with ${authorizedPlace(database)}
    select place.live as live, place.plan as plan, place.project_id as "projectId", ${e.state} as state,
      ${e.revision} as revision, ${s.revision} as "setRevision", ${s.generation} as generation,
      ${d.rootId} as "rootId", ${d.wrapped} as wrapped, ${s.listing} as listing, length(${s.sealed}) as bytes,
      case when length(${s.sealed}) <= cast(${sql.placeholder("bytesMax")} as bigint) then ${s.sealed} end as sealed
    from place
    left join place_open on place_open.project_id = place.project_id
    left join ${e} on ${e.projectId} = place_open.project_id and ${e.environment} = ${sql.placeholder("environment")}
    left join ${s} on ${s.projectId} = ${e.projectId} and ${s.environment} = ${e.environment}
    left join ${d} on ${d.projectId} = ${s.projectId} and ${d.generation} = ${s.generation}`);
  return { read: async (place, environment, bytesMax) => (await read({ ...place, environment, bytesMax }))[0] };
}
