import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, lt, lte, min, sql } from "drizzle-orm";
import { Refused } from "../../core/refused.ts";
import { type Database, databaseErrorCode } from "../../store/database.ts";
import { isCosigned } from "../note.ts";
import type { Segment } from "../segment.ts";
import { peaksOf, Tree, type TreeHead } from "../tree.ts";
import type { StoredLeaf } from "../tree-walk.ts";
import type { StoredSegment } from "../verify.ts";
import { leafBeside, readNodes, type SignedHead, treeEnd } from "./tree-end.ts";

// The tree over the audit's segments, as it is stored. Rows are added and never changed.

/** A leaf to append: the segment that it is of, and the hashes that are stored with it. */
export type LeafRow = Pick<Segment, "lane" | "lastSeq"> & { readonly hashes: readonly Buffer[] };
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
  const rows = leaves.map(({ lane, lastSeq, hashes }, at) => {
    return { leaf: before.size + at, lane, lastSeq, hashes: Buffer.concat(hashes) };
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

/** A witness's signature of a head. */
export type Cosignature = {
  readonly size: number;
  /** Its verifier key. */
  readonly witness: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** As a note has it. */
  readonly line: string;
};

/** Stores a signature, unless another notary has. */
export async function addCosignature({ db, tables }: Database, signature: Cosignature): Promise<void> {
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

/**
 * The segment before an entry of a lane; undefined if it is the first that is left.
 * @param withLeaf - whether with its leaf: else no table of the tree is read
 */
export async function segmentBefore(
  { db, tables }: Database,
  { lane, seq }: { readonly lane: string; readonly seq: number },
  withLeaf = false,
): Promise<StoredSegment | undefined> {
  const { auditSegments: s } = tables;
  const [before] = await db
    .select({ ...getTableColumns(s), ...(withLeaf && leafBeside(tables)) })
    .from(s)
    .where(and(eq(s.lane, lane), lt(s.firstSeq, seq)))
    .orderBy(desc(s.firstSeq), desc(s.at))
    .limit(1);
  return before;
}

/** The leaf of the segment of a lane that ends with this entry; undefined if it is not in the tree. */
export async function leafOf(
  { db, tables }: Database,
  { lane, lastSeq }: Pick<Segment, "lane" | "lastSeq">,
): Promise<number | undefined> {
  const { auditLeaves: l } = tables;
  const [row] = await db
    .select({ leaf: l.leaf })
    .from(l)
    .where(and(eq(l.lane, lane), eq(l.lastSeq, lastSeq)));
  return row?.leaf;
}

/** Leaves up to a number, which is left out, in their order. @param from - 0 begins with one before the first, if any */
export async function* leavesInOrder(
  { db, tables }: Pick<Database, "db" | "tables">,
  from: number,
  to: number,
): AsyncGenerator<StoredLeaf[]> {
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

/** The entries of these leaves, as their columns say. Those that are not there are left out. */
export async function* leavesAt({ db, tables }: Database, leaves: readonly number[]) {
  const { auditLeaves: l } = tables;
  const before = sql<number>`(select max(b.last_seq) from ${l} b
    where b.lane = audit_leaves.lane and b.last_seq < audit_leaves.last_seq)`;
  for (let from = 0; from < leaves.length; from += leavesPerPage) {
    const rows = await db
      .select({ leaf: l.leaf, lane: l.lane, lastSeq: l.lastSeq, before })
      .from(l)
      .where(inArray(l.leaf, leaves.slice(from, from + leavesPerPage)))
      .orderBy(asc(l.leaf));
    for (const { before, ...range } of rows) yield { ...range, seq: Number(before ?? 0) + 1 };
  }
}

export const rowsPerPage = 10_000;
/** Each is a parameter of a statement. */
const leavesPerPage = 1000;
/** As many as others read, with the log's own. */
export const signaturesMax = 15;
