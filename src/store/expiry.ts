import { lte, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { bounded } from "./reach.ts";

/** The next end of a key and of a mark for rotation; null if there is none. */
export type NextExpiry = {
  /** When the next key or trust expires, in epoch milliseconds. */
  readonly key: number | null;
  /** The first day that a variable is marked with, such as `2030-01-31`. */
  readonly variable: string | null;
};

/**
 * Sets with a variable that is marked for rotation. Exactly the condition of the index `sets_marked`, so no other index
 * looks better. Other kinds have no such member, and JSON escapes the quotes in their names.
 */
export function isMarked({ indexOf, tables: { sets: s } }: Database): SQL {
  return sql`${indexOf(s.listing, sql.raw(`'"rotateBy":"'`))} > 0`;
}

/** The first day that a listing marks a variable with; null if it is damaged. */
export function firstMark({ dialect }: Database, listing: SQL | SQLWrapper): SQL<string | null> {
  return dialect === "postgres"
    ? // PostgreSQL 15 cannot ask whether a text is JSON.
      sql`(select min(mark[1]) from
        regexp_matches(${listing}, '"rotateBy":"([0-9]{4}-[0-9]{2}-[0-9]{2})"', 'g') as mark)`
    : sql`(select min(mark.atom) from json_tree(case when json_valid(${listing}) then ${listing} end) as mark
        where mark.key = 'rotateBy' and mark.atom glob '????-??-??')`;
}

/**
 * Prepares the search for what ends next among all keys and variables. By two indexes it reads one key and the listings
 * that hold a mark. It checks no seal, and skips damaged listings.
 * @param listingBytesMax - longer listings are skipped
 */
export function nextExpiry(database: Database, listingBytesMax: number): () => Promise<NextExpiry> {
  const { sets: s, apiKeys: k } = database.tables;
  const first = firstMark(database, bounded(s.listing, listingBytesMax));
  const days = sql`select min(${first}) from ${s} where ${isMarked(database)}`;
  // In a subquery of its own the clock is read once, and bounds the index.
  const key = sql`select ${k.expiresAt} from ${k}
    where ${k.revokedAt} is null and ${k.expiresAt} > (select ${database.nowMs}) order by ${k.expiresAt} limit 1`;
  const find = database.query<NextExpiry>(sql`select (${key}) as key, (${days}) as variable`);
  return async () => (await find({}))[0] ?? { key: null, variable: null };
}

/**
 * Removes the counts of jobs whose tokens have ended, by the database's clock: a server whose clock is ahead would give
 * each job its reads again. The journal writes the counts, with the entries of the reads.
 */
export async function pruneJobReads({ db, tables, nowMs }: Database): Promise<void> {
  await db.delete(tables.jobReads).where(lte(tables.jobReads.endsAt, sql`(select ${nowMs})`));
}
