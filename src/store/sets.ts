import { type SQL, sql } from "drizzle-orm";
import type { Lookup, StoredSet } from "../access/authenticate.ts";
import type { Database } from "./database.ts";
import {
  type Authorized,
  authorized,
  bounded,
  environmentBit,
  type Standing,
  setsInReach,
  standingColumns,
} from "./reach.ts";

/** The columns of a set, or nulls if there is none. */
type SetColumns = { readonly [Name in keyof StoredSet]: StoredSet[Name] | null };

export type SetQueries = ReturnType<typeof setQueries>;

/** Prepares the read of sets: lookups by primary key in one snapshot. */
export function setQueries(database: Database) {
  const { sets: s, dataKeys: d } = database.tables;
  const integer = (name: string) => sql`cast(${sql.placeholder(name)} as integer)`;
  const fetch = database.query<Standing & SetColumns>(sql`
    with ${authorized(database)}
    select ${standingColumns}, ${setColumns(database, integer("values"), integer("bytesMax"))}
    from standing
    left join ${s} on ${setsInReach(database, {
      projectId: sql`standing.reached`,
      kind: sql`cast(${sql.placeholder("kind")} as text)`,
      wanted: integer("environments"),
      scope: sql`standing.environments`,
    })}
    left join ${d} on ${d.projectId} = ${s.projectId} and ${d.generation} = ${s.generation}`);
  return {
    /**
     * The sets that the key reaches, one row each; one row without a set if there is none; no row if the key is gone.
     * What has more than `bytesMax` bytes, listing and wanted values together, comes without both.
     */
    fetch: (at: Authorized, query: Omit<Lookup, "slug"> & { readonly bytesMax: number }) => fetch({ ...at, ...query }),
  };
}

/**
 * The row versions of a set and its data key: PostgreSQL changes them with every write, SQLite has none. A standby that
 * was promoted without the newest write gives its next one the same numbers, so the mac of the listing, which says when
 * each value was written, is one of them. With the same mac, the values are the same under whichever data key.
 */
export function rowVersion({ dialect, tables: { sets: s, dataKeys: d } }: Database): SQL {
  const listingMac = sql`encode(${bounded(s.listingMac, 32)}, 'hex')`;
  return dialect === "postgres"
    ? sql`concat_ws(' ', ${s.version}, ${listingMac}, ${s}.xmin, ${s}.ctid, ${d}.xmin, ${d}.ctid)`
    : sql`''`;
}

/** What is selected of a set and its data key, with the values of the environments in the mask `values`. */
export function setColumns(database: Database, values: SQL, bytesMax: SQL): SQL {
  const { sets: s, dataKeys: d } = database.tables;
  const wanted = sql`(${environmentBit(sql`${s.environment}`)} & ${values}) <> 0`;
  const valueBytes = sql`case when ${wanted} then coalesce(octet_length(${s.sealed}), 0) else 0 end`;
  const fits = sql`octet_length(${s.listing}) + ${valueBytes} <= ${bytesMax}`;
  return sql`${s.environment} as environment, ${rowVersion(database)} as "rowVersion", ${s.version} as version,
    ${s.generation} as generation, ${bounded(s.listingMac, 32)} as "listingMac",
    case when ${fits} then ${s.listing} end as listing, octet_length(${s.listing}) as "listingBytes",
    case when ${fits} and ${wanted} then ${s.sealed} end as sealed, octet_length(${s.sealed}) as "sealedBytes",
    ${bounded(d.rootId, 64)} as "rootId", ${bounded(d.wrapped, 128)} as wrapped`;
}
