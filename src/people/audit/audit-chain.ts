import { and, eq, gt, gte, lt, lte, min } from "drizzle-orm";
import { type Environment, environmentMask } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { counted } from "../../core/words/text.ts";
import { brokenBy, type Flaw, gapName, parseGap, type Range } from "../../record/flaw.ts";
import type { LaneCheckpoint } from "../../record/journal.ts";
import { sealLeaves, unionOf } from "../../record/leaf-set.ts";
import type { SealedMonth } from "../../record/month.ts";
import { unsignedMaxMs, unsignedWords } from "../../record/notary/newest-checkpoint.ts";
import { findVerifiers } from "../../record/notary/signers.ts";
import { StateWatch } from "../../record/notary/state-watch.ts";
import type { HeadComparison } from "../../record/notary/witnessed-heads.ts";
import { stateFlaw } from "../../record/record.ts";
import { dropAuditMonths, makeAuditMonths, monthOf } from "../../record/store/audit-months.ts";
import { chainOf } from "../../record/store/chain.ts";
import { endException, readExceptions } from "../../record/store/exceptions.ts";
import { segmentsByLane } from "../../record/store/segments.ts";
import { sealedMonths } from "../../record/store/tree.ts";
import { treeEnd } from "../../record/store/tree-end.ts";
import { isBehind, leavesDue, segmentsOfLeaves } from "../../record/store/tree-search.ts";
import type { TreeHead } from "../../record/tree.ts";
import { openTreeHead } from "../../record/tree-note.ts";
import {
  AuditWalk,
  type Dropped,
  headFlaws,
  knownLeaves,
  type StoredSegment,
  sealDropped,
} from "../../record/verify.ts";
import { saltKeyOf } from "../../seal/keyring.ts";
import { type Holding, hasSomewhere } from "../../serve/access/rights.ts";
import { type Database, databaseErrorCode } from "../../store/database.ts";
import { type Change, recordChanges } from "../desk/changes.ts";
import { type AdminContext, within, writing } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import { verifyPublic } from "./audit-public.ts";
import { compareCheckpoints, loggedChainOf } from "./log-checkpoints.ts";

/** What was found in the audit. */
export type Verified = {
  readonly entries: number;
  readonly lanes: number;
  /**
   * Of lanes, at most some 1000; where the signed tree breaks, as many, or a row of its keys; and what the tables hold
   * against the record. Empty: every entry is unchanged, except in what was accepted.
   */
  readonly flaws: readonly Flaw[];
  /** How many flaws there are beyond these. */
  readonly moreFlaws: number;
  /** The losses that were found and are known. */
  readonly accepted: readonly Range[];
  /** The sealed month that was verified; undefined if all was. */
  readonly sealed?: Omit<SealedMonth, "root"> | undefined;
};

/**
 * Verifies the audit in bounded memory: each segment against the one before and against its leaf of the signed tree, and
 * the tree itself. It shows nothing that an entry holds. For an operator it also compares what the tables hold with the
 * record.
 * @param checkpoints - from the log of a server
 * @param progress - called now and then with the number of entries verified so far
 * @param month - only this month, such as `2026-10`, if it is sealed, and the tree
 * @throws Refused `not_found` if it is not
 */
export async function verifyAudit(
  admin: Pick<AdminContext, "database" | "keyring" | "systemKeys" | "rights">,
  checkpoints: readonly LaneCheckpoint[] = [],
  progress: (entries: number) => void = () => {},
  month?: string,
): Promise<Verified> {
  const { database, rights } = admin;
  requireAuditor(admin);
  const tree = await openTree(admin);
  if (month !== undefined) {
    const { sealed, from } = await findMonth(database, tree.signed, month);
    const segments = segmentsOfLeaves(database, from, sealed.size);
    const leaves = { from, to: sealed.size };
    const { root: _, ...shown } = sealed;
    return { ...(await verifySegments(admin, tree, segments, { leaves, progress })), sealed: shown };
  }
  const leaves = { from: 0, to: tree.signed?.size ?? 0 };
  const whole = { leaves, progress, checkpoints };
  const found = await verifySegments(admin, tree, segmentsByLane(database, {}), whole);
  const watch = new StateWatch(admin.systemKeys.audit);
  const differences = rights === "operator" ? await watch.compare(database, tree.signed) : [];
  return { ...found, flaws: [...found.flaws, ...differences.map(stateFlaw)] };
}

/** The month as it is sealed, or the next that is: a notary that was away seals several as one. */
async function findMonth(database: Database, tree: TreeHead | undefined, month: string) {
  const months = tree === undefined ? [] : await sealedMonths(database, tree);
  const at = months.findIndex((one) => one.month >= month);
  const sealed = months[at];
  if (sealed !== undefined) return { sealed, from: months[at - 1]?.size ?? 0 };
  const when = "The notary seals a month within two hours after its end, unless there is a flaw";
  throw new Refused("not_found", `${month} is not sealed. ${when}. \`audit verify\` without --month verifies all.`);
}

type SignedTree = Awaited<ReturnType<typeof openTree>>;

/** The keys that sign the tree, what is wrong with their rows, and the newest head if one of them signed it. */
async function openTree({ database, keyring, systemKeys }: Pick<AdminContext, "database" | "keyring" | "systemKeys">) {
  const found = await findVerifiers(database, keyring, systemKeys.audit).catch(() => undefined);
  const { signers: log, flaws } = found ?? {
    signers: [],
    flaws: [brokenBy("The table audit_signers cannot be read.")],
  };
  // A head that is signed has the size of a tree that there was. A row of SQL may have any.
  return { log, flaws, signed: openTreeHead((await treeEnd(database)).head?.note ?? "", log) };
}

/**
 * @param whole - the leaves that must have their segments, and the checkpoints of all lanes, unless the segments are of a
 *   month; undefined for segments that are due to be dropped
 */
async function verifySegments(
  { database, systemKeys }: Pick<AdminContext, "database" | "systemKeys">,
  { log, flaws: broken }: SignedTree,
  segments: AsyncIterable<StoredSegment>,
  whole?: {
    readonly leaves: { readonly from: number; readonly to: number };
    readonly progress: (entries: number) => void;
    readonly checkpoints?: readonly LaneCheckpoint[];
  },
): Promise<Verified> {
  const auditKey = systemKeys.audit;
  const chain = chainOf(database);
  const leaves = whole?.leaves ?? { from: 0, to: 0 };
  const walk = new AuditWalk(auditKey, chain, { ...leaves, saltKey: saltKeyOf(auditKey) });
  let reported = 0;
  for await (const segment of segments) {
    await walk.pass(segment);
    if (walk.entries - reported < progressEvery) continue;
    reported = walk.entries;
    whole?.progress(reported);
  }
  whole?.progress(walk.entries);
  await (whole ? walk.end() : walk.close());
  const tree = await verifyPublic(database, log);
  const compared = await compareCheckpoints(auditKey, loggedChainOf(database), whole?.checkpoints ?? []);
  const accepted = [...walk.accepted, ...compared.accepted];
  return {
    entries: walk.entries,
    lanes: walk.lanes,
    flaws: [
      ...merged([...walk.flaws, ...compared.flaws]),
      ...(whole?.checkpoints ? await headFlaws(auditKey, chain) : []),
      ...broken,
      ...tree.flaws,
    ],
    moreFlaws: walk.moreFlaws + tree.moreFlaws,
    accepted: [...new Map(accepted.map((one) => [gapName(one), one])).values()],
  };
}

/** One flaw for each range, however it was found. To accept it is to accept all that was found there. */
function merged(flaws: readonly Flaw[]): Iterable<Flaw> {
  const found = new Map<string, Flaw>();
  for (const flaw of flaws) {
    const before = found.get(flaw.name) ?? { seals: [] };
    found.set(flaw.name, { ...flaw, seals: before.seals && flaw.seals && [...before.seals, ...flaw.seals] });
  }
  return found.values();
}

const progressEvery = 1000;

/** What the notary found the tables to hold against the record; only for operators, since it is of all organizations. */
export async function listExceptions({ database, rights }: Pick<AdminContext, "database" | "rights">) {
  return rights === "operator" ? (await readExceptions(database)).map(stateFlaw) : [];
}

/** That no notary signs, as a sentence for operators. The minute is for a clock that is ahead. */
export async function findUnsigned({ database, rights, now }: Pick<AdminContext, "database" | "rights" | "now">) {
  if (rights !== "operator") return undefined;
  const { head } = await treeEnd(database);
  const isUnsigned = await isBehind(database, now() - unsignedMaxMs, (head?.at ?? 0) - minuteMs);
  return isUnsigned ? unsignedWords(head?.at) : undefined;
}

const minuteMs = 60_000;

/**
 * Checks the right to read the audit, before anything is read.
 * @param organizationId - of the entries that they ask for; undefined for any organization
 * @param environment - of these entries; undefined for any
 * @throws Refused `forbidden` if they may read no such entry
 */
export function requireAuditor(
  { rights }: Pick<AdminContext, "rights">,
  organizationId?: string,
  environment?: Environment,
): void {
  const isThere = (holding: Holding) =>
    (organizationId === undefined || holding.organizationId === organizationId) &&
    (environment === undefined || (holding.environments & environmentMask(environment)) !== 0);
  if (hasSomewhere(rights === "operator" ? rights : rights.filter(isThere), "audit")) return;
  const where = organizationId === undefined && environment === undefined ? "anywhere" : "there";
  throw new Refused("forbidden", `You do not have the right \`audit\` ${where}: \`keyhole whoami\` shows your rights.`);
}

/**
 * Records that these flaws are known. If a gap grows later, it is reported again; a row is from then on as the record
 * says.
 * @returns what was found, with these accepted
 * @throws Refused `conflict` if entries were changed, not only lost: then none is accepted
 */
export async function acceptFlaws(admin: AdminContext, found: Verified, names: readonly string[]): Promise<Verified> {
  const known = new Set(found.accepted.map(gapName));
  const asked = new Set(names.filter((name) => !known.has(name)));
  const flaws = found.flaws.filter(({ name }) => asked.has(name));
  for (const name of asked) {
    const named = flaws.filter((flaw) => flaw.name === name);
    if (named.length === 0) throw new Refused("not_found", `No flaw that was found is called ${name}.`);
    if (named.every(({ seals }) => seals !== undefined)) continue;
    throw new Refused("conflict", `Entries were not only lost at ${name}: what somebody changed cannot be accepted.`);
  }
  const changes = flaws.map(({ name, seals = [] }): Change => {
    return { action: "audit.accept", organization: null, names: [name, ...seals] };
  });
  await writing(admin, Permit.operator(admin), async ({ database }) => {
    for (const { what, name } of flaws) if (what === "state") await endException(database, database.db, name);
    return [undefined, changes];
  });
  return {
    ...found,
    flaws: found.flaws.filter((flaw) => !flaws.includes(flaw)),
    accepted: [
      ...found.accepted,
      ...flaws.flatMap(({ what, name }) => (what === "state" ? [] : (parseGap(name) ?? []))),
    ],
  };
}

/**
 * Deletes the segments of whole months (UTC) that ended more than `keepMs` ago. A sealed checkpoint of each lane marks
 * the cut, so that the rest can be verified. These segments, and the tree, are verified first: pruning must not remove
 * traces of tampering.
 *
 * @returns how many are deleted, and `apply`, which deletes them; or the flaws if there are any
 * @param unverified - whether to delete even what does not verify
 * @throws Refused `unavailable` if others use the table for too long, or the notary is behind
 */
export async function planPruning(admin: AdminContext, keepMs: number, unverified = false) {
  Permit.operator(admin);
  const { database, systemKeys } = admin;
  await makeAuditMonths(database, admin.now());
  const before = monthOf(admin.now() - keepMs).fromAt;
  const keptFromAt = unverified ? before : await inOrderBefore(database, before);
  const marks: Mark[] = [];
  const due = marking(segmentsByLane(database, { beforeAt: keptFromAt }), marks);
  const tree = await openTree(admin);
  const found = await verifySegments(admin, tree, due);
  if (!unverified && found.flaws.length > 0) return found;
  // A notary that is under way would put segments into the tree that are deleted in the same moment.
  if (!unverified && tree.signed && (await isBehind(database, keptFromAt))) throw new Refused("unavailable", notTaken);
  const lanes = new Map(marks.map((mark) => [mark.lane, mark]));
  const apply = async () => {
    const { accepted, pruned } = await knownLeaves(systemKeys.audit, chainOf(database));
    const known = [pruned, ...accepted.map((one) => one.leaves), await leavesDue(database, keptFromAt)];
    const leaves = sealLeaves(systemKeys.audit, unionOf(known));
    const pruning = { keptFromAt, leaves };
    if (database.dialect === "postgres") return dropMonths(admin, [...lanes.values()], pruning);
    for (const [index, mark] of marks.entries()) await deleteUpTo(admin, mark, pruning, index === 0);
  };
  return { pruned: { keptFromAt, entries: found.entries, lanes: found.lanes }, apply };
}

const notTaken =
  "The notary has not taken all of these entries into the tree yet: run this again once it has, which takes a minute.";

/** `keptFromAt`: the first moment that is kept, the start of a month, in epoch milliseconds. */
type Pruning = { readonly keptFromAt: number; readonly leaves: string };

/**
 * The latest start of a month, up to `keptFromAt`, at which every lane can be cut. An entry that a wrong clock dated
 * too early stays, with its month, until the entries before it may go.
 */
async function inOrderBefore(database: Database, keptFromAt: number): Promise<number> {
  const { auditSegments: s } = database.tables;
  const kept = database.db
    .select({ lane: s.lane, firstSeq: min(s.firstSeq).as("kept_seq") })
    .from(s)
    .where(gte(s.at, keptFromAt))
    .groupBy(s.lane)
    .as("kept");
  const [late] = await database.db
    .select({ at: min(s.at) })
    .from(s)
    .innerJoin(kept, and(eq(kept.lane, s.lane), gt(s.firstSeq, kept.firstSeq)))
    .where(lt(s.at, keptFromAt));
  const at = late?.at ?? null;
  return at === null ? keptFromAt : inOrderBefore(database, monthOf(Number(at)).fromAt);
}

type Mark = Omit<Dropped, "seal">;

/** On the embedded database, one transaction deletes this many entries. The pause lets the server's journal write. */
const entriesPerChunk = 5000;
const pauseMs = 10;

/** Yields the segments, and adds the ends of chunks and of lanes to `marks`. */
async function* marking(segments: AsyncIterable<StoredSegment>, marks: Mark[]): AsyncGenerator<StoredSegment> {
  let last: Mark | undefined;
  let since = 0;
  for await (const segment of segments) {
    const { lane, firstSeq, lastSeq, mac } = segment;
    if (last && (last.lane !== lane || since >= entriesPerChunk)) {
      marks.push(last);
      since = 0;
    }
    last = { lane, seq: lastSeq, mac };
    since += lastSeq - firstSeq + 1;
    yield segment;
  }
  if (last) marks.push(last);
}

/** Drops the months in one transaction with a short lock timeout. */
async function dropMonths(admin: AdminContext, lanes: readonly Mark[], pruning: Pruning): Promise<void> {
  try {
    await dropAuditMonths(admin.database, pruning.keptFromAt, async (db) => {
      const inside = { ...admin, database: { ...admin.database, db } };
      if (lanes.length > 0) await recordPruning(inside, pruning);
      for (const mark of lanes) await keep(inside, mark);
    });
  } catch (error) {
    if (databaseErrorCode(error) !== "55P03") throw error;
    throw new Refused("unavailable", "The audit entries are in use by a long query: try again later.");
  }
}

/** Deletes a part of a lane and writes its checkpoint; the rest of the chain verifies after each part. */
async function deleteUpTo(admin: AdminContext, mark: Mark, pruning: Pruning, isFirst: boolean): Promise<void> {
  const { auditSegments: s } = admin.database.tables;
  await within(admin, async (admin) => {
    if (isFirst) await recordPruning(admin, pruning);
    await keep(admin, mark);
    const isDue = and(eq(s.lane, mark.lane), lte(s.lastSeq, mark.seq), lt(s.at, pruning.keptFromAt));
    await admin.database.db.delete(s).where(isDue);
  });
  await Bun.sleep(pauseMs);
}

/** Records the pruning; `names` has the first day that is kept, and the leaves whose segments are gone from then on. */
async function recordPruning(admin: AdminContext, { keptFromAt, leaves }: Pruning): Promise<void> {
  const day = new Date(keptFromAt).toISOString().slice(0, 10);
  return recordChanges(admin, [{ action: "audit.prune", organization: null, names: [day, leaves] }]);
}

async function keep(admin: AdminContext, mark: Mark): Promise<void> {
  const { auditCheckpoints: c } = admin.database.tables;
  const { seq, mac } = mark;
  const seal = sealDropped(admin.systemKeys.audit, mark);
  await admin.database.db
    .insert(c)
    .values({ ...mark, seal })
    .onConflictDoUpdate({ target: c.lane, set: { seq, mac, seal } });
}

/** A sentence about it. */
export function describeComparison({ with: other, size = 0, reason }: HeadComparison): string {
  if (reason !== undefined) return `Not compared with ${other}: ${reason}.`;
  return size === 0
    ? `Asked ${other}: it shows no head.`
    : `Compared with ${other}: ${counted(size, "leaf", "leaves")}.`;
}
