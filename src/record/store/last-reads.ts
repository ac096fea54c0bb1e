import { and, eq, inArray, min, ne, sql } from "drizzle-orm";
import type { Database } from "../../store/database.ts";
import type { LastRead } from "../last-reads.ts";

// When machines last read what. The notary writes it, and may write the same reads again: the latest time stays.

/**
 * Stores reads within a transaction, unless later ones are stored. Those of projects that were deleted are left out.
 * @param reads - a few thousand at most: on the embedded database, the journal waits for the transaction
 */
export async function storeLastReads({ db, tables }: Inside, reads: readonly LastRead[]): Promise<void> {
  const { lastReads: l, sets: s } = tables;
  for (let from = 0; from < reads.length; from += lastReadsPerWrite) {
    const some = reads.slice(from, from + lastReadsPerWrite);
    const ids = [...new Set(some.map(({ projectId }) => projectId))];
    const found = await db.selectDistinct({ id: s.projectId }).from(s).where(inArray(s.projectId, ids));
    const there = new Set(found.map(({ id }) => id));
    const rows = some.filter(({ projectId }) => there.has(projectId));
    if (rows.length === 0) continue;
    await db
      .insert(l)
      .values(rows)
      .onConflictDoUpdate({
        target: [l.projectId, l.kind, l.environment, l.name],
        set: { at: sql`excluded.at` },
        setWhere: sql`excluded.at > ${l.at}`,
      });
  }
}

/** Whether the reads of all leaves are stored: all but the first time, those of new leaves are stored with them. */
export async function areReadsStored({ db, tables: { lastReadsKnown: k } }: Database): Promise<boolean> {
  return (await db.select().from(k).where(ne(k.size, unknownSize))).length > 0;
}

/**
 * Marks the last reads as complete.
 * @param now - epoch milliseconds
 */
export async function noteAllStored(database: Database, now: number): Promise<void> {
  const { lastReadsKnown: k, auditSegments: s } = database.tables;
  await database.transaction(async (db) => {
    const [oldest] = await db.select({ at: min(s.at) }).from(s);
    const [known] = await db.select().from(k);
    const sinceAt = Math.max(known?.sinceAt ?? 0, Math.min(now, Number(oldest?.at ?? now)));
    const byNameSinceAt = Math.max(sinceAt, known?.byNameSinceAt ?? now);
    await db
      .insert(k)
      .values({ id: 1, size: 0, sinceAt, byNameSinceAt })
      .onConflictDoUpdate({ target: k.id, set: { size: 0, sinceAt, byNameSinceAt } });
  });
}

/**
 * Within the transaction that puts a loss on record: the record begins again, because reads of before may be lost with
 * what was written since the database's state.
 * @param now - epoch milliseconds
 */
export async function beginAgain({ db, tables }: Inside, now: number): Promise<void> {
  const { lastReadsKnown: k } = tables;
  const begins = { sinceAt: now, byNameSinceAt: now };
  await db
    .insert(k)
    .values({ id: 1, size: unknownSize, ...begins })
    .onConflictDoUpdate({ target: k.id, set: begins });
}

/**
 * The last reads of a kind of a project, by one statement.
 * @returns undefined if no notary has looked at all segments yet. Else times are epoch milliseconds, and `behindSinceAt` is
 *   when the notary was last up to date, if it is behind by more than ten minutes
 */
export async function findLastReads({ db, tables, nowMs }: Database, projectId: string, kind: string) {
  const { lastReads: l, lastReadsKnown: k, auditCheckpointsSigned: c, auditSegments: s } = tables;
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
    .where(ne(k.size, unknownSize));
  const [first] = rows;
  if (first === undefined) return undefined;
  const { sinceAt, byNameSinceAt, isBehind } = first;
  const behindSinceAt = isBehind ? Number(first.signedAt) : undefined;
  const reads = rows.flatMap(({ environment, name, at }) =>
    environment === null || name === null || at === null ? [] : [{ environment, name, at }],
  );
  return { sinceAt, byNameSinceAt, behindSinceAt, reads };
}

type Inside = Pick<Database, "db" | "tables">;

export const lastReadsPerWrite = 1000;
/** All segments are to be read. */
const unknownSize = -1;
const lagMs = 600_000;
