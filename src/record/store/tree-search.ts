import { and, asc, eq, gt, gte, inArray, isNotNull, lt, lte, max, min, or, sql } from "drizzle-orm";
import type { Database } from "../../store/database.ts";
import { type LeafSet, unionOf } from "../leaf-set.ts";
import { isCosigned } from "../note.ts";
import type { StoredSegment } from "../verify.ts";
import { segmentsByLane } from "./segments.ts";
import { rowsPerPage, signaturesMax } from "./tree.ts";
import { leafFrom, leafNumber, type SignedHead } from "./tree-end.ts";

/* What people look for in the stored tree of the audit. No notary loads this. */

/** The first signed head that is of this size or a larger one; undefined if there is none. */
export async function headFrom({ db, tables }: Database, size: number): Promise<SignedHead | undefined> {
  const { auditCheckpointsSigned: c } = tables;
  const [head] = await db.select().from(c).where(gte(c.size, size)).orderBy(asc(c.size)).limit(1);
  return head;
}

/** The last entry of a lane that the tree has, as its columns say; 0 if it has none. */
export async function lastTaken({ db, tables }: Pick<Database, "db" | "tables">, lane: string): Promise<number> {
  const { auditLeaves: l } = tables;
  const [row] = await db
    .select({ seq: max(l.lastSeq) })
    .from(l)
    .where(eq(l.lane, lane));
  return Number(row?.seq ?? 0);
}

/** The note of a head with those signatures of these witnesses that verify. @param keys - their verifier keys */
export async function cosignedNote({ db, tables }: Database, { size, note }: SignedHead, keys: readonly string[]) {
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

/** The leaves whose segments are from before a moment, in epoch milliseconds. There may be a million. */
export async function leavesDue({ db, tables }: Database, beforeAt: number): Promise<LeafSet> {
  const { auditSegments: s } = tables;
  // Leaves that follow each other have the same distance to their rank.
  const some = db
    .selectDistinct({ leaf: leafNumber(tables).as("leaf") })
    .from(s)
    .where(lt(s.at, beforeAt))
    .as("some");
  const run = sql<number>`${some.leaf} - row_number() over (order by ${some.leaf})`.as("run");
  const due = db.select({ leaf: some.leaf, run }).from(some).where(isNotNull(some.leaf)).as("due");
  const runs = await db
    .select({ first: min(due.leaf), last: max(due.leaf) })
    .from(due)
    .groupBy(due.run);
  return unionOf([runs.map(({ first, last }) => [Number(first), Number(last)] as const)]);
}

/** The segments of consecutive leaves, as their columns say, and those between them, in order of lane and sequence. */
export async function* segmentsOfLeaves(database: Database, from: number, to: number): AsyncGenerator<StoredSegment> {
  const { auditLeaves: l } = database.tables;
  const lanes = await database.db
    .select({ lane: l.lane, seq: min(l.firstSeq), lastSeq: max(l.lastSeq) })
    .from(l)
    .where(and(gte(l.leaf, from), lt(l.leaf, to)))
    .groupBy(l.lane)
    .orderBy(asc(l.lane));
  for (const { lane, seq, lastSeq } of lanes)
    yield* segmentsByLane(database, {}, { lane, seq: Number(seq), lastSeq: Number(lastSeq), withLeaf: true });
}

/** Whether the tree lacks a segment from before a moment, in epoch milliseconds. @param sinceAt - only from then on */
export async function isBehind({ db, tables }: Database, beforeAt: number, sinceAt = 0): Promise<boolean> {
  const { auditLeaves: l, auditSegments: s } = tables;
  const isOutside = sql`coalesce(${leafFrom(tables, l.firstSeq)} > ${s.firstSeq}, true)`;
  const [found] = await db
    .select({ one: sql`1` })
    .from(s)
    .where(and(gte(s.at, sinceAt), lt(s.at, beforeAt), isOutside))
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
