import { and, asc, desc, eq, gt, gte, inArray, lt, lte, min, type SQLWrapper, sql } from "drizzle-orm";
import { Refused } from "../../core/refused.ts";
import { type Database, databaseErrorCode } from "../../store/database.ts";
import { monthFormat, monthOfLeaf, type SealedMonth } from "../month.ts";
import { isCosigned } from "../note.ts";
import type { Segment } from "../segment.ts";
import { peaksOf, Tree, type TreeHead } from "../tree.ts";
import type { StoredSegment } from "../verify.ts";
import { segmentsByLane } from "./segments.ts";
import { leadsToRoot, readNodes, type SignedHead, treeEnd } from "./tree-end.ts";

// The tree over the audit's segments, as it is stored. Rows are added and never changed.

/** A leaf to append: the entries that it is of, and the hashes that are stored with it. */
export type LeafRow = Pick<Segment, "lane" | "firstSeq" | "lastSeq"> & { readonly hashes: readonly Buffer[] };

/** The tree of that many leaves. @throws Refused `conflict` if a node is missing or was cut */
export async function readTree(database: Database, size: number): Promise<Tree> {
  return new Tree(size, await readNodes(database, peaksOf(size)));
}

/**
 * Appends leaves and the head that was signed over them, in one transaction.
 * @param before - the tree that they are appended to
 * @param more - done in the same transaction
 * @returns false if the tree is another one by now, because another notary has appended or the database was put back:
 *   then nothing was stored
 * @throws Refused `conflict` if it is the same, and a row of its tables has the number or the segment of a new leaf
 */
export async function appendLeaves(
  database: Database,
  before: TreeHead,
  leaves: readonly LeafRow[],
  head: SignedHead,
  more: (inside: Database) => Promise<void>,
): Promise<boolean> {
  const { auditLeaves: l, auditCheckpointsSigned: c } = database.tables;
  const rows = leaves.map(({ hashes, ...range }, at) => {
    return { leaf: before.size + at, ...range, hashes: Buffer.concat(hashes) };
  });
  try {
    return await database.transaction(async (db) => {
      const inside = { ...database, db };
      const end = await treeEnd(inside);
      if (end.size !== before.size || (end.head && !end.head.root.equals(before.root))) return false;
      await db.insert(l).values(rows);
      await db.insert(c).values(head);
      await more(inside);
      return true;
    });
  } catch (error) {
    if (!/^(23505|SQLITE_CONSTRAINT)/.test(databaseErrorCode(error))) throw error;
    if ((await treeEnd(database)).size !== before.size) return false;
    throw new Refused("conflict", "A row of the tree that no notary wrote is in the way of the next leaf.");
  }
}

/** Stores a witness's signature of a head, unless another notary has. */
export async function addCosignature(
  { db, tables }: Database,
  signature: Database["tables"]["auditCosignatures"]["$inferInsert"],
): Promise<void> {
  await db.insert(tables.auditCosignatures).values(signature).onConflictDoNothing();
}

/**
 * The size of the newest head that each witness has signed, of those up to a size, by its verifier key. A row counts if
 * its signature verifies; of a witness with many rows that do not, no older ones are looked for.
 */
export async function newestCosigned({ db, tables }: Database, sizeMax: number): Promise<ReadonlyMap<string, number>> {
  const { auditCosignatures: c, auditCheckpointsSigned: h } = tables;
  const found = new Map<string, number>();
  // From witness to witness by the index: there may be a signature for each minute of years.
  for (let last = ""; ; ) {
    const [next] = await db
      .select({ witness: min(c.witness) })
      .from(c)
      .where(gt(c.witness, last));
    if (next?.witness == null) return found;
    last = next.witness;
    const rows = await db
      .select({ size: c.size, witness: c.witness, line: c.line, note: h.note })
      .from(c)
      .innerJoin(h, eq(h.size, c.size))
      .where(and(eq(c.witness, last), lte(c.size, sizeMax)))
      .orderBy(desc(c.size))
      .limit(signaturesMax);
    const newest = rows.find(isCosigned);
    if (newest !== undefined) found.set(last, Number(newest.size));
  }
}

/** The segment before an entry of a lane; undefined if it is the first that is left. */
export async function segmentBefore(
  { db, tables }: Database,
  { lane, seq }: { readonly lane: string; readonly seq: number },
): Promise<Pick<Segment, "lane" | "lastSeq" | "mac"> | undefined> {
  const { auditSegments: s } = tables;
  const [before] = await db
    .select({ lane: s.lane, lastSeq: s.lastSeq, mac: s.mac })
    .from(s)
    .where(and(eq(s.lane, lane), lt(s.firstSeq, seq)))
    .orderBy(desc(s.firstSeq), desc(s.at))
    .limit(1);
  return before;
}

/** The leaf that has an entry of a lane, as its columns say; undefined if none has. */
export async function leafHolding({ db, tables }: Database, lane: string, seq: number) {
  const { auditLeaves: l } = tables;
  const [row] = await db
    .select()
    .from(l)
    .where(and(eq(l.lane, lane), gte(l.lastSeq, seq)))
    .orderBy(asc(l.lastSeq))
    .limit(1);
  return row !== undefined && row.firstSeq <= seq ? row : undefined;
}

/**
 * All lanes in their order, as the columns say, each with the number and the first entry of the last leaf that the tree has
 * of it (null and 1 if there is none), and whether the lane goes on behind it. Each is found by an index, and so are both
 * of its ends: nothing here grows with the entries.
 * @param size - of the tree; undefined for all that there is of it
 * @param from - the first lane
 */
export async function lanesInTree(database: Database, size?: number, from = "") {
  const { auditLeaves: l, auditSegments: s } = database.tables;
  const isIn = size === undefined ? sql`` : sql`and ${l.leaf} >= 0 and ${l.leaf} < ${size}`;
  const last = (column: SQLWrapper) =>
    sql`(select ${column} from ${l} where ${l.lane} = lanes.lane ${isIn} order by ${l.lastSeq} desc limit 1)`;
  const rows = await database.query<Record<"leaf" | "seq" | "last" | "end", string | number | null> & { lane: string }>(
    sql`with recursive lanes(lane) as (
      select min(${s.lane}) from ${s} where ${s.lane} >= ${sql.placeholder("from")}
      union all
      select (select min(${s.lane}) from ${s} where ${s.lane} > lanes.lane) from lanes where lanes.lane is not null
    )
    select lane, ${last(l.leaf)} as leaf, ${last(l.firstSeq)} as seq, ${last(l.lastSeq)} as last,
      (select max(${s.firstSeq}) from ${s} where ${s.lane} = lanes.lane) as "end"
    from lanes where lane is not null order by lane`,
  )({ from });
  return rows.map(({ lane, leaf, seq, last, end }) => ({
    ...{ lane, leaf: leaf === null ? null : Number(leaf), seq: Number(seq ?? 1) },
    isBehind: Number(end) > Number(last),
  }));
}

/**
 * The segments of which a tree of this size has none, in order of lane and sequence, and before them those of its last leaf
 * of each lane.
 * @param begins - called with that leaf, whose columns are true if its segments are what follows
 */
export async function* segmentsBehind(
  database: Database,
  size: number,
  begins: (leaf: number) => void,
  after?: Segment,
): AsyncGenerator<StoredSegment> {
  for (const { lane, leaf, seq } of await lanesInTree(database, size, after?.lane)) {
    const isBegun = after?.lane === lane;
    if (leaf !== null && !isBegun) begins(leaf);
    yield* segmentsByLane(database, {}, { lane, seq, withLeaf: true }, isBegun ? after : undefined);
  }
}

/** The months that leaves before this number say they seal, the oldest first. */
export async function monthsInOrder({ db, tables }: Database, size: number) {
  const { auditLeaves: l } = tables;
  const isMonth = and(gte(l.lane, monthFormat), lt(l.lane, `${monthFormat}~`), lt(l.leaf, size));
  const rows = await db.select().from(l).where(isMonth).orderBy(asc(l.leaf));
  return rows.flatMap(({ leaf, lane: text, hashes }) => {
    const month = monthOfLeaf({ leaf, lane: text, hashes });
    return month === undefined ? [] : [{ ...month, leaf, text }];
  });
}

/** The months that are sealed in this tree, the oldest first. @param tree - a head that was signed */
export async function sealedMonths(database: Database, tree: TreeHead): Promise<SealedMonth[]> {
  const months: SealedMonth[] = [];
  for (const { leaf, text, ...month } of await monthsInOrder(database, tree.size))
    if (await leadsToRoot(database, tree, leaf, text)) months.push(month);
  return months;
}

/** Leaves up to a number, which is left out, in their order. @param from - 0 begins with one before the first, if any */
export async function* leavesInOrder({ db, tables }: Pick<Database, "db" | "tables">, from: number, to: number) {
  const { auditLeaves: l } = tables;
  const columns = { leaf: l.leaf, hashes: l.hashes };
  if (from === 0) yield await db.select(columns).from(l).where(lt(l.leaf, 0)).orderBy(asc(l.leaf)).limit(1);
  for (let next = from; next < to; ) {
    const rows = await db
      .select(columns)
      .from(l)
      .where(and(gte(l.leaf, next), lt(l.leaf, to)))
      .orderBy(asc(l.leaf))
      .limit(rowsPerPage);
    yield rows;
    if (rows.length < rowsPerPage) return;
    next = (rows.at(-1)?.leaf ?? to) + 1;
  }
}

/** These leaves in their order. Those that are not there are left out. */
export async function* leavesAt({ db, tables }: Database, leaves: readonly number[]) {
  const { auditLeaves: l } = tables;
  for (let from = 0; from < leaves.length; from += leavesPerPage) {
    yield* await db
      .select()
      .from(l)
      .where(inArray(l.leaf, leaves.slice(from, from + leavesPerPage)))
      .orderBy(asc(l.leaf));
  }
}

export const rowsPerPage = 10_000;
/** Each is a parameter of a statement. */
const leavesPerPage = 1000;
/** As many as others read, with the log's own. */
export const signaturesMax = 15;
