import { and, asc, eq, isNotNull, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Database, Db } from "../../store/database.ts";
import type { Exception } from "../record.ts";
import { commandsLane } from "../segment.ts";

// What the tables hold, for a comparison with the record, and what was found to differ.

/**
 * What the tables hold now, and the last entry of people by then, in one statement. All rows are read each time: one
 * that was put back has an old version and old moments, so no index finds it. Reading and comparing 50,000 took 40 ms of
 * processor time. To hide an entry, one must change the head and remove segments; that is refused as a partial restore.
 */
export async function readState({ db, tables }: Database) {
  const { apiKeys: k, organizations: o, sets: s, projects: p, auditHeads: h, auditSegments: a } = tables;
  const row = (subject: SQL, is: SQLWrapper) => ({ subject: sql<string>`${subject}`, is: sql<string>`${is}` });
  const last = (seq: SQLWrapper) => row(sql`'last'`, sql`cast(coalesce(max(${seq}), 0) as text)`);
  const set = sql`'set:' || ${s.projectId} || '/' || ${s.kind} || '/' || ${s.environment}`;
  const rows = await db
    .select(row(sql`'key:' || ${k.id}`, sql`case when ${k.revokedAt} is null then 'live' else 'revoked' end`))
    .from(k)
    .unionAll(db.select(row(sql`'project:' || ${p.id}`, p.slug)).from(p))
    .unionAll(db.select(row(sql`'plan:' || ${o.id}`, o.plan)).from(o))
    .unionAll(db.select(row(set, sql`'version ' || ${s.version}`)).from(s))
    .unionAll(
      db
        .select(row(sql`'roster'`, h.roster))
        .from(h)
        .where(and(eq(h.lane, commandsLane), isNotNull(h.roster))),
    )
    .unionAll(db.select(last(h.seq)).from(h).where(eq(h.lane, commandsLane)))
    .unionAll(db.select(last(a.firstSeq)).from(a).where(eq(a.lane, commandsLane)));
  const state = new Map<string, string>();
  let lastSeq = 0;
  for (const { subject, is } of rows) {
    if (subject === "last") lastSeq = Math.max(lastSeq, Number(is));
    else state.set(subject, is);
  }
  return { state, lastSeq };
}

/** What was found and not accepted yet. */
export function readExceptions({ db, tables }: Database): Promise<Exception[]> {
  const { auditExceptions: e } = tables;
  return db.select().from(e).orderBy(asc(e.subject));
}

/** Adds what was found. What is there already stays. */
export async function addExceptions(database: Database, exceptions: readonly Exception[]): Promise<void> {
  if (exceptions.length === 0) return;
  const { auditExceptions: e } = database.tables;
  await database.transaction(async (db) => {
    await db
      .insert(e)
      .values([...exceptions])
      .onConflictDoNothing();
  });
}

/** Ends an exception, in the transaction that puts this on record. */
export async function endException({ tables }: Database, db: Db, subject: string): Promise<void> {
  const { auditExceptions: e } = tables;
  await db.delete(e).where(eq(e.subject, subject));
}
