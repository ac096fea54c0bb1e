import { sql } from "drizzle-orm";
import { type EnvironmentMask, itemsMax } from "../names.ts";
import type { Database, Query } from "./database.ts";
import { authorizedPlace, dataKeyPart, type PartRow, type PlaceValues, standingPart } from "./place.ts";

export type AccountQueries = {
  /** Standing, data keys, and at most one account more than a response may hold, of those in any of `reach`. */
  readonly values: (place: PlaceValues, reach: EnvironmentMask) => Promise<PartRow[]>;
  /** The same without data keys and with nothing sealed. */
  readonly names: (place: PlaceValues, reach: EnvironmentMask) => Promise<PartRow[]>;
};

/** Prepares the reads of accounts. There are seven sets of environments, and an index for each (see `postgres.ts`). */
export function accountQueries(database: Database): AccountQueries {
  const { accounts: a } = database.tables;
  const place = authorizedPlace(database);
  const per = (withValues: boolean): Query<PartRow>[] =>
    [1, 2, 3, 4, 5, 6, 7].map((reach) =>
      database.query<PartRow>(sql`
    with ${place} ${standingPart} ${withValues ? sql`union all ${dataKeyPart(database)}` : sql``} union all
    select * from (
      select 2, ${a.id}, ${a.name}, ${a.version}, ${a.environments},
        ${withValues ? sql`${a.sealed}` : sql`cast(null as bytea)`}, ${a.updatedAt}
      from place_open join ${a} on ${a.projectId} = place_open.project_id
      where ${reach === 7 ? sql`true` : sql`(${a.environments} & ${sql.raw(String(reach))}) <> 0`}
      order by ${a.name} limit ${sql.raw(String(itemsMax + 1))}
    ) as items`),
    );
  const values = per(true);
  const names = per(false);
  return {
    values: (at, reach) => (values[reach - 1] as Query<PartRow>)(at),
    names: (at, reach) => (names[reach - 1] as Query<PartRow>)(at),
  };
}
