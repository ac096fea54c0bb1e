import { sql } from "drizzle-orm";
import { type EnvironmentMask, environmentsOf, itemsMax } from "../names.ts";
import type { Database, Query } from "./database.ts";
import { authorizedPlace, dataKeyPart, type PartRow, type PlaceValues, standingPart } from "./place.ts";
import { sizedItems, sizedItemsPart } from "./sized.ts";

export type AccountQueries = {
  /**
   * Standing, data keys, the seals over the sets of `reach`, and at most one account more than a response may hold, of
   * those in any of `reach`; none with its sealed bytes where these are more than `bytesMax` (see `sized.ts`).
   */
  readonly values: (place: PlaceValues, reach: EnvironmentMask, bytesMax: number) => Promise<PartRow[]>;
  /** The same without data keys and seals, and with nothing sealed. */
  readonly names: (place: PlaceValues, reach: EnvironmentMask) => Promise<PartRow[]>;
};

/** Prepares the reads of accounts. There are seven sets of environments, and an index for each (see `postgres.ts`). */
export function accountQueries(database: Database): AccountQueries {
  const { accounts: a, itemSets: s } = database.tables;
  const place = authorizedPlace(database);
  const sets = (reach: EnvironmentMask) => sql`
    select 3, ${s.environment}, '', 0, 0, ${s.sealed}, 0
    from place_open join ${s} on ${s.projectId} = place_open.project_id and ${s.kind} = 'accounts'
      and ${s.environment} in (${sql.raw(
        environmentsOf(reach)
          .map((environment) => `'${environment}'`)
          .join(", "),
      )})`;
  const per = (withValues: boolean): Query<PartRow>[] =>
    [1, 2, 3, 4, 5, 6, 7].map((reach) => {
      const found = sql`
      from place_open join ${a} on ${a.projectId} = place_open.project_id
      where ${reach === 7 ? sql`true` : sql`(${a.environments} & ${sql.raw(String(reach))}) <> 0`}
      order by ${a.name} limit ${sql.raw(String(itemsMax + 1))}`;
      if (!withValues) {
        return database.query<PartRow>(sql`
    with ${place} ${standingPart} union all select * from (
      select 2, ${a.id}, ${a.name}, ${a.version}, ${a.environments}, cast(null as bytea), ${a.updatedAt} ${found}
    ) as items`);
      }
      const columns = sql`${a.id} as id, ${a.name} as name, ${a.version} as version, ${a.environments} as environments,
        ${a.updatedAt} as updated_at`;
      const items = sizedItems(database, columns, sql`${a.sealed}`, found);
      return database.query<PartRow>(sql`
    with ${place}, ${items} ${standingPart} union all ${dataKeyPart(database)} union all ${sets(reach)}
    union all ${sizedItemsPart}`);
    });
  const values = per(true);
  const names = per(false);
  return {
    values: (at, reach, bytesMax) => (values[reach - 1] as Query<PartRow>)({ ...at, bytesMax }),
    names: (at, reach) => (names[reach - 1] as Query<PartRow>)(at),
  };
}
