import { and, asc, desc, eq, getTableColumns, gte, isNotNull, isNull, lte, max, or, type SQL, sql } from "drizzle-orm";
import type { LaneEnd } from "../audit/head.ts";
import type { Checkpoint } from "../audit/journal.ts";
import type { Segment } from "../audit/segment.ts";
import type { StoredSegment } from "../audit/verify.ts";
import { type Database, literal } from "./database.ts";
import { leafBeside } from "./tree.ts";

// Audit segments are read in pages, so that memory is bounded and every statement is short.

/** Which segments; an absent field matches all. */
export type SegmentFilter = {
  /** Lists of texts, such as ids of keys. A segment matches if it has at least one text of each list. */
  readonly texts?: readonly (readonly string[])[];
  /** Texts that the names of what was read or changed have in them as JSON, in lower case. A segment matches all. */
  readonly traces?: readonly string[] | undefined;
  /** Epoch milliseconds. */
  readonly sinceAt?: number | undefined;
  readonly beforeAt?: number | undefined;
  /** Whether the tree has a leaf of it, as the columns of the leaves say. */
  readonly isInTree?: boolean;
};

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

/**
 * Segments in order of lane, sequence and time, each with its leaf.
 * @param from - only this lane, from this sequence number on
 * @param after - only those behind this one
 */
export async function* segmentsByLane(
  database: Database,
  filter: SegmentFilter,
  from?: { readonly lane: string; readonly seq: number },
  after?: Segment,
): AsyncGenerator<StoredSegment> {
  const { auditSegments: s } = database.tables;
  const found = pages(database, [asc(s.lane), asc(s.firstSeq), asc(s.at)], (last = after) => {
    const start = from && and(eq(s.lane, from.lane), gte(s.firstSeq, last?.firstSeq ?? from.seq));
    const rest = last && sql`(${s.lane}, ${s.firstSeq}, ${s.at}) > (${last.lane}, ${last.firstSeq}, ${last.at})`;
    return and(matching(database, filter), start, rest);
  });
  for await (const page of found) yield* page;
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

/** The head of a lane and the newest segment of it, both of one moment. */
export async function laneEnd({ db, tables }: Pick<Database, "db" | "tables">, lane: string): Promise<LaneEnd> {
  const { auditHeads: h, auditSegments: s } = tables;
  const head = db.select().from(h).where(eq(h.lane, lane)).as("head");
  const newest = db
    .select({ lane: s.lane, firstSeq: s.firstSeq, lastSeq: s.lastSeq, mac: s.mac })
    .from(s)
    .where(eq(s.lane, lane))
    .orderBy(desc(s.firstSeq), desc(s.at))
    .limit(1)
    .as("newest");
  const [end] = await db.select().from(head).fullJoin(newest, eq(newest.lane, head.lane));
  return { lane, head: null, newest: null, ...end };
}

/** Reads the end of a lane that several processes write; undefined if there is none, or its mac has not 32 bytes. */
export function laneHead(database: Database, lane: string): () => Promise<Checkpoint | undefined> {
  const { auditHeads: h } = database.tables;
  const find = database.query<{ seq: number; mac: Buffer }>(
    sql`select ${h.seq} as seq, ${h.mac} as mac from ${h}
      where ${h.lane} = ${sql.placeholder("lane")} and length(${h.mac}) = 32`,
    { retry: false },
  );
  return async () => {
    const [head] = await find({ lane });
    return head && { lane, seq: head.seq, mac: head.mac.toString("hex") };
  };
}

/**
 * @param where - which segments come behind the last one of a page; all of them for the first page. It bounds the first
 *   column of an index by that one: SQLite uses one bound alone, and would look at the pages before again
 */
async function* pages(
  { db, tables }: Database,
  order: SQL[],
  where: (last: Segment | undefined) => SQL | undefined,
): AsyncGenerator<StoredSegment[]> {
  const { auditSegments: s } = tables;
  const { leaves, isOf, read } = leafBeside(tables);
  let last: Segment | undefined;
  let size = firstPageSize;
  for (;;) {
    const rows = await db
      .select({ ...getTableColumns(s), ...read })
      .from(s)
      .leftJoin(leaves, isOf)
      .where(where(last))
      .orderBy(...order)
      .limit(size);
    if (rows.length > 0) yield rows;
    if (rows.length < size) return;
    last = rows.at(-1);
    const length = rows.reduce((sum, { texts, entries }) => sum + texts.length + entries.length, 0);
    size = Math.ceil(Math.min(pageSizeMax, (size * pageLength) / length));
  }
}

// A segment has from 1 KB to some MB. The next page has as many as fit if they are as large as those of the last one.
const firstPageSize = 16;
const pageSizeMax = 256;
const pageLength = 256 * 1024;

function matching(database: Database, filter: SegmentFilter): SQL | undefined {
  const { texts = [], traces = [], sinceAt, beforeAt, isInTree } = filter;
  const { auditSegments: s } = database.tables;
  const { leaf } = leafBeside(database.tables).read;
  const occursIn = (text: string) => sql`${database.indexOf(s.texts, sql`${JSON.stringify(text)}`)} > 0`;
  const isInNames = (trace: string) => {
    // The lists of names stand between these two texts, which no name has in it as JSON (`audit/segment.ts`).
    const [before, after] = [sql`'{"names":['`, sql`'],"entries":['`];
    if (database.dialect === "postgres") {
      const lists = sql`split_part(split_part(${s.entries}, ${after}, 1), ${before}, 2)`;
      return sql`strpos(lower(${lists}), ${trace}) > 0`;
    }
    // SQLite ignores the case of A to Z here, three times as fast as in lower case.
    const escaped = trace.replace(/[\\%_]/g, "\\$&");
    return sql`${s.entries} like ${before} || '%' || ${escaped} || '%' || ${after} || '%' escape '\\'`;
  };
  return and(
    ...texts.map((some) => or(...some.map(occursIn))),
    ...traces.map(isInNames),
    sinceAt === undefined ? undefined : gte(s.at, sinceAt),
    beforeAt === undefined ? undefined : sql`${s.at} < ${beforeAt}`,
    isInTree === undefined ? undefined : isInTree ? isNotNull(leaf) : isNull(leaf),
  );
}
