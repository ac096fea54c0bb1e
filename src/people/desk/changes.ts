import { eq } from "drizzle-orm";
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { AuditEntry, ChangeAction, NamesWritten, PersonActor } from "../../record/entry.ts";
import { isNext, isWhole, type PeopleHead, rosterAction, sealHead } from "../../record/head.ts";
import { commandsLane, encodeEntries, segmentMac } from "../../record/segment.ts";
import { laneEnd } from "../../record/store/lane-end.ts";
import { segmentsByLane } from "../../record/store/segments.ts";
import type { Database } from "../../store/database.ts";

type ChangedItem = { readonly id: string; readonly slug: string };

/** What a command did, for the audit. */
export type Change = {
  readonly action: ChangeAction;
  /** Null for what concerns the whole installation. */
  readonly organization: ChangedItem | null;
  readonly project?: ChangedItem;
  readonly environment?: Environment;
  /** What was touched. */
  readonly names: readonly string[];
  readonly write?: NamesWritten;
  /** The version that the write made. */
  readonly version?: number;
  /** Those of the names that are canaries, if any are. */
  readonly canaries?: readonly string[];
};

const clockStepMsMax = 3_600_000;

/**
 * Puts changes on record, in the transaction that makes them: neither can exist without the other. The lane's head,
 * which stays locked until the transaction ends, orders what several commands do at once. {@link Database.transaction}
 * sees to it that nothing in the database swallows or changes them.
 */
export async function recordChanges(
  admin: Locking & { readonly actor: PersonActor; readonly now: () => number },
  changes: readonly Change[],
): Promise<void> {
  if (changes.length === 0) return;
  const { auditSegments: s, auditHeads: h } = admin.database.tables;
  const lane = commandsLane;
  const head = await lockCommands(admin);
  const segment = {
    lane,
    firstSeq: head.seq + 1,
    lastSeq: head.seq + changes.length,
    // Retention drops the beginning of a lane, so no segment may be older than the one before.
    at: notBefore(head, admin.now()),
    ...encodeEntries(changes.map((change) => entryOf(admin.actor, change))),
  };
  const mac = segmentMac(admin.systemKeys.audit, head.mac, segment);
  const named = changes.findLast(({ action }) => action === rosterAction)?.names[0];
  const roster = named ?? head.roster;
  const next = { lane, seq: segment.lastSeq, at: segment.at, mac, roster: roster ?? null };
  const end = { ...next, seal: roster === undefined ? null : sealHead(admin.systemKeys.audit, next) };
  await admin.database.db.insert(s).values({ ...segment, mac });
  await admin.database.db.update(h).set(end).where(eq(h.lane, lane));
}

/**
 * A moment that is not before the last entry, if a clock was set back a little. A head that is further ahead was dated by
 * a wrong clock, and counts for nothing.
 */
export function notBefore({ at }: Pick<PeopleHead, "at">, now: number): number {
  return at - now > clockStepMsMax ? now : Math.max(now, at);
}

type Locking = { readonly database: Database; readonly systemKeys: { readonly audit: Uint8Array } };
/** Where the lane of commands ends. The roster is undefined if the head was not as Keyhole wrote it. */
type PeopleEnd = Omit<PeopleHead, "roster"> & { readonly roster: string | null | undefined };

/** Keeps every other change out until the transaction ends. @returns the end of the lane of commands */
export async function lockCommands({ database, systemKeys }: Locking): Promise<PeopleEnd> {
  const { auditHeads: h } = database.tables;
  const lane = commandsLane;
  const fresh = { lane, seq: 0, at: 0, mac: Buffer.alloc(0), roster: null };
  await database.db
    .insert(h)
    .values({ ...fresh, seal: sealHead(systemKeys.audit, fresh) })
    // Changes nothing, and locks the row until the transaction ends.
    .onConflictDoUpdate({ target: h.lane, set: { lane } });
  const end = await laneEnd(database, lane);
  if (end.head === null) throw new Refused("unavailable", "The database lost the end of the audit. Nothing was done.");
  if (isWhole(systemKeys.audit, end)) return end.head;
  let last: PeopleEnd = { ...end.head, roster: undefined };
  // A head that was put back must not lead to a second entry of the same number.
  for await (const one of segmentsByLane(database, {}, { lane, seq: last.seq + 1 })) {
    if (!isNext(systemKeys.audit, last, one)) break;
    last = { ...last, seq: one.lastSeq, at: one.at, mac: one.mac };
  }
  return last;
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
