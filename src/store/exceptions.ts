import { asc, eq } from "drizzle-orm";
import type { Exception, State } from "../audit/record.ts";
import { commandsLane } from "../audit/segment.ts";
import type { Database, Db } from "./database.ts";

// What the tables hold, for a comparison with the record, and what was found to differ.

/** What the tables hold now. */
export async function readState({ db, tables }: Database): Promise<State> {
  const { apiKeys: k, organizations: o, sets: s, projects: p, auditHeads: h } = tables;
  const keys = await db.select({ id: k.id, organizationId: k.organizationId, revokedAt: k.revokedAt }).from(k);
  const plans = await db.select({ id: o.id, plan: o.plan }).from(o);
  const { projectId, kind, environment, version } = s;
  const sets = await db.select({ projectId, kind, environment, version }).from(s);
  const projects = await db.select({ id: p.id, slug: p.slug }).from(p);
  const [head] = await db.select({ roster: h.roster }).from(h).where(eq(h.lane, commandsLane));
  return {
    keys: keys.map(({ revokedAt, ...key }) => ({ ...key, isRevoked: revokedAt !== null })),
    plans,
    sets,
    projects,
    roster: head?.roster ?? null,
  };
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
