import { and, asc, desc, eq, gt, gte, inArray, lt, lte, max, min, notExists, or, sql } from "drizzle-orm";
import { type LeafSet, unionOf } from "../audit/leaf-set.ts";
import { isCosigned } from "../audit/note.ts";
import type { Segment } from "../audit/segment.ts";
import { peaksOf, Tree, type TreeHead } from "../audit/tree.ts";
import type { StoredLeaf } from "../audit/tree-walk.ts";
import { Refused } from "../core/refused.ts";
import { type Database, databaseErrorCode } from "./database.ts";
import { isLeafOf, readNodes, type SignedHead, treeEnd } from "./tree-end.ts";

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

/** The first signed head that is of this size or a larger one; undefined if there is none. */
export async function headFrom({ db, tables }: Database, size: number): Promise<SignedHead | undefined> {
  const { auditCheckpointsSigned: c } = tables;
  const [head] = await db.select().from(c).where(gte(c.size, size)).orderBy(asc(c.size)).limit(1);
  return head;
}

/** The note of a head with those signatures of these witnesses that verify. @param keys - their verifier keys */
export async function cosignedNote(
  { db, tables }: Database,
  { size, note }: SignedHead,
  keys: readonly string[],
): Promise<string> {
  const { auditCosignatures: c } = tables;
  const rows = await db
    .select({ witness: c.witness, line: c.line })
    .from(c)
    .where(and(inArray(c.witness, [...keys]), eq(c.size, size)))
    .orderBy(asc(c.witness))
    .limit(signaturesMax);
  const signed = rows.filter((row) => isCosigned({ ...row, note }));
  return note + signed.map(({ line }) => line).join("");
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

/** The leaves whose segments are from before a moment, in epoch milliseconds. There may be a million. */
export async function leavesDue({ db, tables }: Database, beforeAt: number): Promise<LeafSet> {
  const { auditLeaves: l, auditSegments: s } = tables;
  // Leaves that follow each other have the same distance to their rank.
  const run = sql<number>`${l.leaf} - row_number() over (order by ${l.leaf})`.as("run");
  const due = db
    .select({ leaf: l.leaf, run })
    .from(s)
    .innerJoin(l, isLeafOf(tables))
    .where(lt(s.at, beforeAt))
    .as("due");
  const runs = await db
    .select({ first: min(due.leaf), last: max(due.leaf) })
    .from(due)
    .groupBy(due.run);
  return unionOf([runs.map(({ first, last }) => [Number(first), Number(last)] as const)]);
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

/** Whether the tree lacks a segment from before a moment, in epoch milliseconds. */
export async function isBehind({ db, tables }: Database, beforeAt: number): Promise<boolean> {
  const { auditLeaves: l, auditSegments: s } = tables;
  const one = { one: sql`1` };
  const isOutside = notExists(db.select(one).from(l).where(isLeafOf(tables)));
  const [found] = await db
    .select(one)
    .from(s)
    .where(and(lt(s.at, beforeAt), isOutside))
    .limit(1);
  return found !== undefined;
}

/** The signed heads in order of size, up to the one of this size. */
export async function* headsInOrder({ db, tables }: Database, newest: number): AsyncGenerator<SignedHead> {
  const { auditCheckpointsSigned: c } = tables;
  for (let above = -1; ; ) {
    const rows = await db
      .select()
      .from(c)
      .where(and(gt(c.size, above), lte(c.size, newest)))
      .orderBy(asc(c.size))
      .limit(rowsPerPage);
    yield* rows;
    if (rows.length < rowsPerPage) return;
    above = rows.at(-1)?.size ?? above;
  }
}

/** The signatures of witnesses in order of size, up to a size, each with the note that it is of; null if it is gone. */
export async function* cosignaturesInOrder({ db, tables }: Database, sizeMax: number) {
  const { auditCosignatures: c, auditCheckpointsSigned: h } = tables;
  for (let after = { size: -1, witness: "" }; ; ) {
    const rows = await db
      .select({ size: c.size, witness: c.witness, line: c.line, note: h.note })
      .from(c)
      .leftJoin(h, eq(h.size, c.size))
      .where(
        and(
          or(gt(c.size, after.size), and(eq(c.size, after.size), gt(c.witness, after.witness))),
          lte(c.size, sizeMax),
        ),
      )
      .orderBy(asc(c.size), asc(c.witness))
      .limit(rowsPerPage);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsPerPage) return;
    after = last;
  }
}

/** The largest size of which there is a signature of a witness; 0 if there is none. */
export async function lastCosigned({ db, tables }: Database): Promise<number> {
  const [last] = await db.select({ size: max(tables.auditCosignatures.size) }).from(tables.auditCosignatures);
  return Number(last?.size ?? 0);
}

const rowsPerPage = 10_000;
/** Each is a parameter of a statement. */
const leavesPerPage = 1000;
/** As many as others read, with the log's own. */
const signaturesMax = 15;
