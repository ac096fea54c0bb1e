import { type SQL, sql } from "drizzle-orm";
import type { Lookup, StoredSet } from "../core/set-rows.ts";
import { type Database, integerValue, textValue } from "./database.ts";
import {
  type Authorized,
  authorized,
  bounded,
  dataKeyColumns,
  environmentBit,
  isNoException,
  rowVersionOf,
  type Standing,
  setsInReach,
  standingColumns,
  withDataKey,
} from "./reach.ts";

/** The columns of a set, or nulls if there is none. */
export type SetColumns = { readonly [Name in keyof StoredSet]: StoredSet[Name] | null };

export type SetQueries = ReturnType<typeof setQueries>;

/** Prepares the read of sets: lookups by primary key in one snapshot. */
export function setQueries(database: Database) {
  const { sets: s } = database.tables;
  const subject = sql`'set:' || ${s.projectId} || '/' || ${s.kind} || '/' || ${s.environment}`;
  const project = sql`'project:' || ${s.projectId}`;
  // A set that was put back is not found, and one that is not found is never taken for an empty one.
  const isFound = isNoException(database, subject, project);
  const inReach = setsInReach(database, {
    projectId: sql`standing.reached`,
    kind: textValue("kind"),
    wanted: integerValue("environments"),
    scope: sql`standing.environments`,
  });
  const find = database.query<Standing & SetColumns>(sql`
    with ${authorized(database)}
    select ${standingColumns}, ${setColumns(database, integerValue("values"), integerValue("bytesMax"))}
    from standing left join ${s} on ${inReach} and ${isFound} ${withDataKey(database, s)}`);
  return {
    /**
     * The sets that the key reaches, one row each; one row without a set if there is none; no row if the key is gone.
     * What has more than `bytesMax` bytes, listing and wanted values together, comes without both.
     */
    fetch: (at: Authorized, query: Omit<Lookup, "slug"> & { readonly bytesMax: number }) => find({ ...at, ...query }),
  };
}

/**
 * The row version of a set. A standby that was promoted without the newest write gives the next one the same numbers.
 * So the listing's mac is part of it: with the same mac the values are the same, whichever data key seals them.
 */
export function rowVersion(database: Database): SQL {
  const { sets: s } = database.tables;
  return rowVersionOf(database, s, sql`${s.version}`, sql`encode(${bounded(s.listingMac, 32)}, 'hex')`);
}

/** The columns of a set and its data key, with the values of the environments in the mask `values`. */
export function setColumns(database: Database, values: SQL, bytesMax: SQL): SQL {
  const { sets: s } = database.tables;
  const wanted = sql`(${environmentBit(sql`${s.environment}`)} & ${values}) <> 0`;
  const valueBytes = sql`case when ${wanted} then coalesce(octet_length(${s.sealed}), 0) else 0 end`;
  const fits = sql`octet_length(${s.listing}) + ${valueBytes} <= ${bytesMax}`;
  return sql`${s.environment} as environment, ${rowVersion(database)} as "rowVersion", ${s.version} as version,
    ${s.generation} as generation, ${bounded(s.listingMac, 32)} as "listingMac",
    case when ${fits} then ${s.listing} end as listing, octet_length(${s.listing}) as "listingBytes",
    case when ${fits} and ${wanted} then ${s.sealed} end as sealed, octet_length(${s.sealed}) as "sealedBytes",
    ${dataKeyColumns(database)}`;
}
