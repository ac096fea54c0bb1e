import { isDeepStrictEqual } from "node:util";
import { and, eq, sql } from "drizzle-orm";
import type { AuditEntry, ChangeAction, NamesWritten, PersonActor, RevealAction } from "../audit/entry.ts";
import { commandsLane, encodeEntries, segmentMac } from "../audit/segment.ts";
import type { Environment } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import type { Database, Db, Tables } from "../store/database.ts";

type Named = { readonly id: string; readonly slug: string };

/** What a command did, for the audit. */
export type Change = {
  readonly action: ChangeAction;
  /** Null for what concerns the whole installation. */
  readonly organization: Named | null;
  readonly project?: Named;
  readonly environment?: Environment;
  /** What was touched. */
  readonly names: readonly string[];
  readonly write?: NamesWritten;
};

/** What a person sees of a secret is on record before it is shown, like what a machine reads. */
export function revealOf(
  action: RevealAction,
  { organization, id, slug }: Named & { readonly organization: Named },
  environment: Environment,
  names: readonly string[],
): Change {
  return { action, organization, project: { id, slug }, environment, names };
}

const clockStepMsMax = 3_600_000;

/**
 * Puts changes on record, in the transaction that makes them: neither can exist without the other. The lane's head,
 * which stays locked until the transaction ends, orders what several commands do at once. Both rows are read back,
 * because a trigger or a rule may swallow or change them.
 * @throws Refused `unavailable` if the record is not stored as it was written; this undoes the transaction
 */
export async function recordChanges(
  admin: {
    readonly database: Database;
    readonly systemKeys: { readonly audit: Uint8Array };
    readonly actor: PersonActor;
    readonly now: () => number;
  },
  db: Db,
  changes: readonly Change[],
): Promise<void> {
  if (changes.length === 0) return;
  const { auditSegments: s, auditHeads: h } = admin.database.tables;
  const lane = commandsLane;
  const head = await lockCommands(admin.database, db);
  const now = admin.now();
  const segment = {
    lane,
    firstSeq: head.seq + 1,
    lastSeq: head.seq + changes.length,
    // Retention drops the beginning of a lane, so no segment may be older than the one before. A head that is further
    // ahead than a clock steps was changed in SQL, and must not date entries.
    at: head.at - now > clockStepMsMax ? now : Math.max(now, head.at),
    ...encodeEntries(changes.map((change) => entryOf(admin.actor, change))),
  };
  const mac = segmentMac(admin.systemKeys.audit, head.mac, segment);
  const end = { lane, seq: segment.lastSeq, at: segment.at, mac };
  await db.insert(s).values({ ...segment, mac });
  await db.update(h).set(end).where(eq(h.lane, lane));
  // A deferred trigger would run after this check.
  if (admin.database.dialect === "postgres") await db.execute(sql`set constraints all immediate`);
  const stored = await db
    .select()
    .from(s)
    .where(and(eq(s.lane, lane), eq(s.firstSeq, segment.firstSeq), eq(s.at, segment.at)));
  const heads = await db.select().from(h).where(eq(h.lane, lane));
  if (!isDeepStrictEqual([stored, heads], [[{ ...segment, mac }], [end]])) throw keptOut();
}

/** Keeps every other change out until the transaction ends. @returns the end of the lane of commands */
export async function lockCommands(
  { dialect, tables }: Database,
  db: Db,
): Promise<Tables["auditHeads"]["$inferSelect"]> {
  const { auditHeads: h } = tables;
  const lane = commandsLane;
  await db
    .insert(h)
    .values({ lane, seq: 0, at: 0, mac: Buffer.alloc(0) })
    .onConflictDoNothing();
  const query = db.select().from(h).where(eq(h.lane, lane));
  const [head] = await (dialect === "postgres" ? query.for("update") : query);
  if (head === undefined) throw keptOut();
  return head;
}

function keptOut(): Refused {
  const tables = "audit_segments or audit_heads";
  return new Refused(
    "unavailable",
    `The database did not store the audit entry as it was written, so nothing was changed: a trigger or a rule on ${tables} keeps entries out.`,
  );
}

function entryOf(actor: PersonActor, { organization, project, environment, ...change }: Change): AuditEntry {
  return {
    actor,
    organizationId: organization?.id ?? "",
    organization: organization?.slug ?? "",
    projectId: project?.id ?? "",
    project: project?.slug ?? "",
    environment: environment ?? null,
    ...change,
    requestId: "",
    clientAddress: "",
    userAgent: "",
  };
}
