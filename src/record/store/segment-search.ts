import { and, asc, desc, eq, gte, lte, max, min, sql } from "drizzle-orm";
import { type Database, literal } from "../../store/database.ts";
import type { Segment } from "../segment.ts";
import type { StoredSegment } from "../verify.ts";
import { matching, pages, type SegmentFilter } from "./segments.ts";

/* Segments by time, and those that people look for. */

/** Segments in order of time, or from the newest back. */
export async function* segmentsByTime(
  database: Database,
  filter: SegmentFilter,
  order: "oldest first" | "newest first",
): AsyncGenerator<StoredSegment[]> {
  const { auditSegments: s } = database.tables;
  const isOldestFirst = order === "oldest first";
  const [sorted, beyond] = isOldestFirst ? [asc, sql`>`] : [desc, sql`<`];
  // Without a bound on the time, SQLite would sort all segments for the first page.
  const bounded = { ...filter, sinceAt: filter.sinceAt ?? Number.MIN_SAFE_INTEGER };
  yield* pages(database, [sorted(s.at), sorted(s.lane), sorted(s.firstSeq)], (last) => {
    if (last === undefined) return matching(database, bounded);
    const from = isOldestFirst ? { sinceAt: last.at } : { beforeAt: last.at + 1 };
    const rest = sql`(${s.at}, ${s.lane}, ${s.firstSeq}) ${beyond} (${last.at}, ${last.lane}, ${last.firstSeq})`;
    return and(matching(database, { ...bounded, ...from }), rest);
  });
}

/** When the newest segment was written, in epoch milliseconds; 0 if there is none. */
export async function newestMoment({ db, tables }: Database): Promise<number> {
  const [found] = await db.select({ at: max(tables.auditSegments.at) }).from(tables.auditSegments);
  return Number(found?.at ?? 0);
}

/** When the oldest segment was written that a pruning left, in epoch milliseconds; 0 if nothing was ever pruned. */
export async function prunedUntil({ db, tables }: Database): Promise<number> {
  const [pruned] = await db.select({ lane: tables.auditCheckpoints.lane }).from(tables.auditCheckpoints).limit(1);
  if (pruned === undefined) return 0;
  const [found] = await db.select({ at: min(tables.auditSegments.at) }).from(tables.auditSegments);
  return Number(found?.at ?? 0);
}

/** The segment of a lane that holds an entry; undefined if there is none. */
export async function segmentHolding(
  { db, tables }: Database,
  { lane, seq }: { readonly lane: string; readonly seq: number },
): Promise<Segment | undefined> {
  const { auditSegments: s } = tables;
  const [found] = await db
    .select()
    .from(s)
    .where(and(eq(s.lane, lane), lte(s.firstSeq, seq)))
    .orderBy(desc(s.firstSeq), desc(s.at))
    .limit(1);
  return found !== undefined && found.lastSeq >= seq ? found : undefined;
}

/**
 * At most two of the segments that hold the entry with this number; first those of the lane with exactly this name.
 * @param start - the lane, or at least 8 characters of its beginning
 */
export function segmentsHolding({ db, tables }: Database, start: string, seq: number): Promise<Segment[]> {
  const { auditSegments: s } = tables;
  const begins = sql`substr(${s.lane}, 1, ${literal(start.length)}) = ${start}`;
  return db
    .select()
    .from(s)
    .where(and(start.length < 8 ? eq(s.lane, start) : begins, lte(s.firstSeq, seq), gte(s.lastSeq, seq)))
    .orderBy(desc(eq(s.lane, start)), asc(s.firstSeq))
    .limit(2);
}

/** The last entry of a lane; 0 if none is left. */
export async function lastEntryOf({ db, tables }: Database, lane: string): Promise<number> {
  const { auditSegments: s } = tables;
  const [last] = await db
    .select({ seq: max(s.lastSeq) })
    .from(s)
    .where(eq(s.lane, lane));
  return Number(last?.seq ?? 0);
}
