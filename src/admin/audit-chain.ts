import { and, asc, eq, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import type { ChainedRow, Checkpoint } from "../audit/journal.ts";
import { type Dropped, type Flaw, sealDropped, type Verified, verifyChain } from "../audit/verify.ts";
import { dropAuditMonths, makeAuditMonths, monthOf } from "../store/audit-months.ts";
import { type Database, type Db, databaseErrorCode } from "../store/database.ts";
import { type Desk, writing } from "./desk.ts";
import { Refused } from "./refused.ts";

/**
 * Walks the chain of every lane, in memory that does not grow with it; see {@link verifyChain}.
 * @param checkpoints - the highest of each lane, from the log
 */
export function verifyAudit(
  desk: Pick<Desk, "database" | "systemKeys">,
  checkpoints: ReadonlyMap<string, Checkpoint> = new Map(),
  progress: (entries: number) => void = () => {},
): Promise<Verified | Flaw> {
  const { database, systemKeys } = desk;
  const chain = {
    rows: (from?: Start) => rowsOf(database, undefined, from),
    dropped: (lane: string) => droppedOf(database, lane),
  };
  return verifyChain(systemKeys.audit, chain, checkpoints, progress);
}

/** What retention did. */
export type Pruned = {
  /** The first moment that is kept, in epoch milliseconds: the first of a month. */
  readonly keptFromAt: number;
  readonly entries: number;
  readonly lanes: number;
};

/**
 * Drops the entries of whole months (UTC) that ended more than `keepMs` ago, and keeps the last one of each lane as a
 * sealed checkpoint, so that what is left can be verified. What is dropped is verified first: retention must not take
 * the traces of a tampering along.
 *
 * @param options - `unverified` drops it all the same
 * @returns the flaw where there is one: then nothing was dropped
 * @throws Refused `unavailable` where others use the table for too long
 */
export async function pruneAudit(
  desk: Desk,
  keepMs: number,
  options: { readonly unverified?: boolean | undefined } = {},
): Promise<Pruned | Flaw> {
  const { database, systemKeys } = desk;
  await makeAuditMonths(database, desk.now());
  const { fromAt: keptFromAt } = monthOf(desk.now() - keepMs);
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
    await dropMonths(desk, [...lanes.values()], keptFromAt);
  } else {
    for (const mark of marks) await deleteUpTo(desk, mark, due);
  }
  return { keptFromAt, entries, lanes: lanes.size };
}

type Start = { readonly lane: string; readonly seq: number };
type Mark = Omit<Dropped, "seal">;

// An entry may name 1000 variables: pages are small enough that this too fits.
const rowsPerPage = 256;
/** How many rows of the embedded database one transaction deletes, and how long the server's journal then has. */
const rowsPerChunk = 5000;
const pauseMs = 10;

/** Entries in order of lane, sequence and time; those of one lane from a sequence number on where `from` says so. */
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

/** Hands the rows on, and notes the last one of each lane and every so many before it. */
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

/** All of it in one transaction, which waits for nobody for long. */
async function dropMonths(desk: Desk, lanes: readonly Mark[], keptFromAt: number): Promise<void> {
  try {
    await dropAuditMonths(desk.database, keptFromAt, async (db) => {
      for (const mark of lanes) await keep(desk, db, mark);
    });
  } catch (error) {
    if (databaseErrorCode(error) !== "55P03") throw error;
    throw new Refused("unavailable", "The audit entries are in use by a long query: try again later.");
  }
}

/** A piece of a lane with its checkpoint; every piece leaves a chain that verifies. */
async function deleteUpTo(desk: Desk, mark: Mark, due: SQL): Promise<void> {
  const { auditEntries: e } = desk.database.tables;
  await writing(desk, async (db) => {
    await keep(desk, db, mark);
    await db.delete(e).where(and(eq(e.lane, mark.lane), lte(e.seq, mark.seq), due));
  });
  await Bun.sleep(pauseMs);
}

async function keep(desk: Desk, db: Db, mark: Mark): Promise<void> {
  const { auditCheckpoints: c } = desk.database.tables;
  const { seq, mac } = mark;
  const seal = sealDropped(desk.systemKeys.audit, mark);
  await db
    .insert(c)
    .values({ ...mark, seal })
    .onConflictDoUpdate({ target: c.lane, set: { seq, mac, seal } });
}
