import { and, asc, eq, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import type { ChainedRow, Checkpoint } from "../audit/journal.ts";
import { type Dropped, type Flaw, sealDropped, type Verified, verifyChain } from "../audit/verify.ts";
import { dropAuditMonths, makeAuditMonths, monthOf } from "../store/audit-months.ts";
import { type Database, type Db, databaseErrorCode } from "../store/database.ts";
import { type AdminContext, writing } from "./context.ts";
import { Refused } from "./refused.ts";

/**
 * Verifies the chain of every lane in bounded memory; see {@link verifyChain}.
 * @param checkpoints - the highest of each lane, from the log
 */
export function verifyAudit(
  admin: Pick<AdminContext, "database" | "systemKeys">,
  checkpoints: ReadonlyMap<string, Checkpoint> = new Map(),
  progress: (entries: number) => void = () => {},
): Promise<Verified | Flaw> {
  const { database, systemKeys } = admin;
  const chain = {
    rows: (from?: Start) => rowsOf(database, undefined, from),
    dropped: (lane: string) => droppedOf(database, lane),
  };
  return verifyChain(systemKeys.audit, chain, checkpoints, progress);
}

/** The result of pruning. */
export type Pruned = {
  /** Epoch milliseconds of the first moment that is kept, the start of a month. */
  readonly keptFromAt: number;
  readonly entries: number;
  readonly lanes: number;
};

/**
 * Deletes the entries of whole months (UTC) that ended more than `keepMs` ago. The last one of each lane is kept as a
 * sealed checkpoint, so that the rest can be verified. The entries are verified first, so that pruning does not remove
 * the traces of tampering.
 *
 * @param options - `unverified` deletes without verifying
 * @returns the flaw if there is one: then nothing was deleted
 * @throws Refused `unavailable` if others use the table for too long
 */
export async function pruneAudit(
  admin: AdminContext,
  keepMs: number,
  options: { readonly unverified?: boolean | undefined } = {},
): Promise<Pruned | Flaw> {
  const { database, systemKeys } = admin;
  await makeAuditMonths(database, admin.now());
  const { fromAt: keptFromAt } = monthOf(admin.now() - keepMs);
  const due = lt(database.tables.auditEntries.at, keptFromAt);
  const marks: Mark[] = [];
  let entries = 0;
  if (options.unverified) {
    for await (const _ of marking(rowsOf(database, due), marks)) entries += 1;
  } else {
    const found = await verifyChain(systemKeys.audit, {
      rows: (from) => (from ? rowsOf(database, due, from) : marking(rowsOf(database, due), marks)),
      dropped: (lane) => droppedOf(database, lane),
    });
    if ("what" in found) return found;
    entries = found.entries;
  }
  const lanes = new Map(marks.map((mark) => [mark.lane, mark]));
  if (database.dialect === "postgres") {
    await dropMonths(admin, [...lanes.values()], keptFromAt);
  } else {
    for (const mark of marks) await deleteUpTo(admin, mark, due);
  }
  return { keptFromAt, entries, lanes: lanes.size };
}

type Start = { readonly lane: string; readonly seq: number };
type Mark = Omit<Dropped, "seal">;

// An entry may name 1000 variables: a page of such entries still fits into memory.
const rowsPerPage = 256;
/** Rows of the embedded database that one transaction deletes, and the pause after it, for the server's journal. */
const rowsPerChunk = 5000;
const pauseMs = 10;

/** Entries in order of lane, sequence and time. @param from - only this lane, from this sequence number on */
async function* rowsOf(database: Database, where?: SQL, from?: Start): AsyncGenerator<ChainedRow> {
  const { auditEntries: e } = database.tables;
  const start = from && and(eq(e.lane, from.lane), gte(e.seq, from.seq));
  let after: ChainedRow | undefined;
  for (;;) {
    const beyond = after && sql`(${e.lane}, ${e.seq}, ${e.at}) > (${after.lane}, ${after.seq}, ${after.at})`;
    const rows = (await database.db
      .select()
      .from(e)
      .where(and(where, start, beyond))
      .orderBy(asc(e.lane), asc(e.seq), asc(e.at))
      .limit(rowsPerPage)) as ChainedRow[];
    yield* rows;
    after = rows.at(-1);
    if (rows.length < rowsPerPage) return;
  }
}

async function droppedOf(database: Database, lane: string): Promise<Dropped | undefined> {
  const { auditCheckpoints: c } = database.tables;
  const [row] = await database.db.select().from(c).where(eq(c.lane, lane));
  return row;
}

/** Passes the rows on, and adds to `marks` every {@link rowsPerChunk}th row and the last one of each lane. */
async function* marking(rows: AsyncIterable<ChainedRow>, marks: Mark[]): AsyncGenerator<ChainedRow> {
  let last: Mark | undefined;
  let since = 0;
  for await (const row of rows) {
    if (last && (last.lane !== row.lane || since === rowsPerChunk)) {
      marks.push(last);
      since = 0;
    }
    last = { lane: row.lane, seq: row.seq, mac: row.mac };
    since += 1;
    yield row;
  }
  if (last) marks.push(last);
}

/** Drops the months in one transaction with a short lock timeout. */
async function dropMonths(admin: AdminContext, lanes: readonly Mark[], keptFromAt: number): Promise<void> {
  try {
    await dropAuditMonths(admin.database, keptFromAt, async (db) => {
      for (const mark of lanes) await keep(admin, db, mark);
    });
  } catch (error) {
    if (databaseErrorCode(error) !== "55P03") throw error;
    throw new Refused("unavailable", "The audit entries are in use by a long query: try again later.");
  }
}

/** Deletes a part of a lane and writes its checkpoint; the rest of the chain verifies after each part. */
async function deleteUpTo(admin: AdminContext, mark: Mark, due: SQL): Promise<void> {
  const { auditEntries: e } = admin.database.tables;
  await writing(admin, async (db) => {
    await keep(admin, db, mark);
    await db.delete(e).where(and(eq(e.lane, mark.lane), lte(e.seq, mark.seq), due));
  });
  await Bun.sleep(pauseMs);
}

async function keep(admin: AdminContext, db: Db, mark: Mark): Promise<void> {
  const { auditCheckpoints: c } = admin.database.tables;
  const { seq, mac } = mark;
  const seal = sealDropped(admin.systemKeys.audit, mark);
  await db
    .insert(c)
    .values({ ...mark, seal })
    .onConflictDoUpdate({ target: c.lane, set: { seq, mac, seal } });
}
