import { and, eq, exists, inArray, lt, min, sql } from "drizzle-orm";
import type { LastRead } from "../audit/last-reads.ts";
import type { Database } from "./database.ts";
import { isOutsideTree } from "./tree.ts";

// When machines last read what. The notary writes it, and may write the same reads again: the latest time stays.

/** Stores reads, unless later ones are stored. Those of projects that were deleted are left out. */
export async function storeLastReads(database: Database, reads: readonly LastRead[]): Promise<void> {
  const { lastReads: l, sets: s } = database.tables;
  // Each transaction is short: on the embedded database, the journal waits for it.
  for (let from = 0; from < reads.length; from += rowsPerWrite) {
    const some = reads.slice(from, from + rowsPerWrite);
    await database.transaction(async (db) => {
      const ids = [...new Set(some.map(({ projectId }) => projectId))];
      const found = await db.selectDistinct({ id: s.projectId }).from(s).where(inArray(s.projectId, ids));
      const there = new Set(found.map(({ id }) => id));
      const rows = some.filter(({ projectId }) => there.has(projectId));
      if (rows.length === 0) return;
      await db
        .insert(l)
        .values(rows)
        .onConflictDoUpdate({
          target: [l.projectId, l.kind, l.environment, l.name],
          set: { at: sql`excluded.at` },
          setWhere: sql`excluded.at > ${l.at}`,
        });
    });
  }
}

/** Of how many leaves the reads are stored; undefined before the first time. */
export async function lastReadsSize({ db, tables }: Database): Promise<number | undefined> {
  const [row] = await db.select({ size: tables.lastReadsKnown.size }).from(tables.lastReadsKnown);
  return row?.size;
}

/**
 * Notes that the reads of all segments that there are were stored.
 * @param size - of the tree
 * @param now - epoch milliseconds
 */
export async function noteAllStored(database: Database, size: number, now: number): Promise<void> {
  const { lastReadsKnown: k, auditSegments: s } = database.tables;
  await database.transaction(async (db) => {
    const [oldest] = await db.select({ at: min(s.at) }).from(s);
    const [known] = await db.select().from(k);
    const sinceAt = Math.max(known?.sinceAt ?? 0, Math.min(now, Number(oldest?.at ?? now)));
    const byNameSinceAt = Math.max(sinceAt, known?.byNameSinceAt ?? now);
    await db
      .insert(k)
      .values({ id: 1, size, sinceAt, byNameSinceAt })
      .onConflictDoUpdate({ target: k.id, set: { size, sinceAt, byNameSinceAt } });
  });
}

/**
 * Within the transaction that puts a loss on record: the record begins again, because reads of before may be lost with
 * what was written since the database's state.
 * @param now - epoch milliseconds
 */
export async function beginAgain({ db, tables }: Pick<Database, "db" | "tables">, now: number): Promise<void> {
  const { lastReadsKnown: k } = tables;
  const begins = { sinceAt: now, byNameSinceAt: now };
  await db
    .insert(k)
    .values({ id: 1, size: unknownSize, ...begins })
    .onConflictDoUpdate({ target: k.id, set: begins });
}

/** Within the transaction that deletes segments: all others are read again, if the notary has not had these. */
export async function forgetUnlessStored(inside: Pick<Database, "db" | "tables">, beforeAt: number): Promise<void> {
  const { auditSegments: s, lastReadsKnown: k } = inside.tables;
  const lost = inside.db
    .select({ one: sql`1` })
    .from(s)
    .where(and(lt(s.at, beforeAt), isOutsideTree(inside)));
  await inside.db.update(k).set({ size: unknownSize }).where(exists(lost));
}

/** What is stored of one kind of a project. */
export type StoredReads = {
  /** Epoch milliseconds, as in `last_reads_known`. */
  readonly sinceAt: number;
  readonly byNameSinceAt: number;
  /** When the notary was last up to date, if it is behind by more than ten minutes. */
  readonly behindSinceAt: number | undefined;
  readonly reads: readonly Pick<LastRead, "environment" | "name" | "at">[];
};

/** The last reads of a kind of a project; undefined if no notary has looked at all segments yet. One statement. */
export async function findLastReads(
  { db, tables, nowMs }: Database,
  projectId: string,
  kind: string,
): Promise<StoredReads | undefined> {
  const { lastReads: l, lastReadsKnown: k, auditLeaves, auditCheckpointsSigned: c, auditSegments: s } = tables;
  const signedAt = sql`coalesce((select ${c.at} from ${c} order by ${c.size} desc limit 1), 0)`;
  const rows = await db
    .select({
      sinceAt: k.sinceAt,
      byNameSinceAt: k.byNameSinceAt,
      signedAt: sql<number>`${signedAt}`,
      isBehind: sql<unknown>`exists (select 1 from ${s} where ${s.at} > ${signedAt} and ${s.at} < ${nowMs} - ${lagMs})`,
      environment: l.environment,
      name: l.name,
      at: l.at,
    })
    .from(k)
    .leftJoin(l, and(eq(l.projectId, projectId), eq(l.kind, kind)))
    .where(sql`${k.size} = coalesce((select max(${auditLeaves.leaf}) + 1 from ${auditLeaves}), 0)`);
  const [first] = rows;
  if (first === undefined) return undefined;
  const { sinceAt, byNameSinceAt, isBehind } = first;
  const behindSinceAt = isBehind ? Number(first.signedAt) : undefined;
  const reads = rows.flatMap(({ environment, name, at }) =>
    environment === null || name === null || at === null ? [] : [{ environment, name, at }],
  );
  return { sinceAt, byNameSinceAt, behindSinceAt, reads };
}

const rowsPerWrite = 1000;
/** Of no tree. */
const unknownSize = -1;
const lagMs = 600_000;
