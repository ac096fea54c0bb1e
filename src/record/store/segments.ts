import { and, asc, eq, getTableColumns, gte, lte, or, type SQL, sql } from "drizzle-orm";
import type { Database } from "../../store/database.ts";
import type { Segment } from "../segment.ts";
import type { StoredSegment } from "../verify.ts";
import { besideLeaves, leafNumber } from "./tree-end.ts";

// Audit segments are read in pages, so that memory is bounded and every statement is short.

/** Which segments; an absent field matches all. */
export type SegmentFilter = {
  readonly having?: readonly Having[];
  /** Epoch milliseconds. */
  readonly sinceAt?: number | undefined;
  readonly beforeAt?: number | undefined;
};

/** A segment matches if it has one of the texts, or all of the traces. */
export type Having = {
  /** Such as ids of keys. One that ends in @ may go on. */
  readonly texts?: readonly string[];
  /** Texts that the names of what was read or changed have in them as JSON, in lower case. */
  readonly traces?: readonly string[];
};

/**
 * Segments in order of lane, sequence and time, each with its leaf.
 * @param from - only this lane, from this entry on and up to the last, and without leaves unless it says so: then no table
 *   of the tree is read
 * @param after - only those behind this one
 */
export async function* segmentsByLane(
  database: Database,
  filter: SegmentFilter,
  from?: { readonly lane: string; readonly seq: number; readonly lastSeq?: number; readonly withLeaf?: boolean },
  after?: Segment,
): AsyncGenerator<StoredSegment> {
  const { auditSegments: s } = database.tables;
  const found = pages(
    database,
    [asc(s.lane), asc(s.firstSeq), asc(s.at)],
    (last = after) => {
      const start = from && and(eq(s.lane, from.lane), gte(s.firstSeq, last?.firstSeq ?? from.seq));
      const end = from?.lastSeq === undefined ? undefined : lte(s.firstSeq, from.lastSeq);
      const rest = last && sql`(${s.lane}, ${s.firstSeq}, ${s.at}) > (${last.lane}, ${last.firstSeq}, ${last.at})`;
      return and(matching(database, filter), start, end, rest);
    },
    from?.withLeaf ?? from === undefined,
  );
  for await (const page of found) yield* page;
}

/**
 * @param where - which segments come behind the last one of a page; all of them for the first page. It bounds the first
 *   column of an index by that one: SQLite uses one bound alone, and would look at the pages before again
 */
export async function* pages(
  { db, tables }: Database,
  order: SQL[],
  where: (last: Segment | undefined) => SQL | undefined,
  withLeaf = false,
): AsyncGenerator<StoredSegment[]> {
  const { auditSegments: s } = tables;
  const leafAt = withLeaf ? leafNumber(tables) : sql<null>`null`;
  let last: Segment | undefined;
  let size = firstPageSize;
  for (;;) {
    const rows = await db
      .select({ ...getTableColumns(s), leafAt: leafAt.as("leaf_at") })
      .from(s)
      .where(where(last))
      .orderBy(...order)
      .limit(size);
    if (rows.length > 0) yield await besideLeaves({ db, tables }, rows);
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

export function matching(database: Database, filter: SegmentFilter): SQL | undefined {
  const { having = [], sinceAt, beforeAt } = filter;
  const { auditSegments: s } = database.tables;
  const quoted = (text: string) => JSON.stringify(text).slice(0, text.endsWith("@") ? -1 : undefined);
  const occursIn = (text: string) => sql`${database.indexOf(s.texts, sql`${quoted(text)}`)} > 0`;
  const isInNames = (trace: string) => {
    // The lists of names stand between these two texts, which no name has in it as JSON (`record/segment.ts`).
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
    // Every segment has all of no traces.
    ...having.map(({ texts = [], traces }) =>
      traces?.length === 0 ? undefined : or(...texts.map(occursIn), traces && and(...traces.map(isInNames))),
    ),
    sinceAt === undefined ? undefined : gte(s.at, sinceAt),
    beforeAt === undefined ? undefined : sql`${s.at} < ${beforeAt}`,
  );
}
