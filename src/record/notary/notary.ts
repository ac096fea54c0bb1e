import type { Log } from "../../core/log.ts";
import { conflictOf } from "../../core/refused.ts";
import type { Config } from "../../core/settings/settings.ts";
import { saltKeyOf } from "../../seal/keyring.ts";
import type { Database } from "../../store/database.ts";
import { whyFailed } from "../../store/failures.ts";
import { brokenBy, type Flaw, flawsMax } from "../flaw.ts";
import { LastReads } from "../last-reads.ts";
import { Leaf } from "../leaf.ts";
import { countLeaves, drawLeaves, leavesOutside } from "../leaf-set.ts";
import { encodeMonth, monthName, monthOf } from "../month.ts";
import type { Signer } from "../note.ts";
import { stateFlaw } from "../record.ts";
import { commandsLane, decodeEntries } from "../segment.ts";
import { chainOf } from "../store/chain.ts";
import { areReadsStored, noteAllStored, storeLastReads } from "../store/last-reads.ts";
import { segmentsByLane } from "../store/segments.ts";
import {
  appendLeaves,
  lanesInTree,
  leavesAt,
  leavesInOrder,
  readTree,
  sealedMonths,
  segmentsBehind,
} from "../store/tree.ts";
import { leafHash, type Tree, type TreeHead } from "../tree.ts";
import { signTreeHead } from "../tree-note.ts";
import { TreeWalk } from "../tree-walk.ts";
import { AuditWalk, headFlaws, isCovered, knownLeaves, type StoredSegment } from "../verify.ts";
import type { NewestCheckpoint } from "./newest-checkpoint.ts";
import { StateWatch } from "./state-watch.ts";
import type { Away } from "./witnessed-heads.ts";
import { Witnesses } from "./witnesses.ts";

/** What a notary works with. */
export type NotaryOptions = {
  readonly database: Database;
  readonly auditKey: Uint8Array;
  /** The keys that may have signed, the one that signs first. */
  readonly signers: readonly [Signer, ...Signer[]];
  /** What is wrong with their rows. */
  readonly damaged?: () => Promise<readonly Flaw[]>;
  /** The kind that each action of machines reads. */
  readonly kindsByRead: Readonly<Record<string, string>>;
  /** What is known of the tree. The notary adds to no other one. */
  readonly checkpoint: NewestCheckpoint;
  /** Adds to a tree that was put back: an operator accepts that. */
  readonly accepts?: boolean;
  readonly log: Log;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Who signs the heads, too. */
  readonly witnesses?: Config["witnesses"];
  /** Called between two segments or leaves, with the share of a processor that this work may take. */
  readonly rest?: (share: number) => Promise<void>;
  /** Called after each round of {@link Notary.run}. */
  readonly told?: () => void;
};

/**
 * Puts the segments of all lanes into the tree, in an order of its own, and signs the tree's heads. What does not follow
 * stays outside and is a flaw. Nothing waits for the notary: it reads what is durable. It may end at any moment, since
 * leaves and the head over them are one transaction.
 */
export class Notary {
  readonly #options: NotaryOptions;
  readonly #saltKey: Buffer;
  /** What all heads from now on keep. */
  #acceptedAt = 0;
  /** The last entry of people's lane in the tree. */
  #commands = 0;
  #unwritten: string | undefined;
  readonly #state: StateWatch;
  readonly #witnesses: Witnesses;
  /** What machines read in the leaves that are to be appended. */
  readonly #reads: LastReads;
  /**
   * Known flaws by name: of the tree's end, over which nothing is signed then; of the last pass over the tree, and of this
   * one; of what was new since that began; of sealed months; of the end of people's lane; of the signers' rows; and of
   * what the tables hold against the record.
   */
  readonly #flaws: Record<FlawPlace, ReadonlyMap<string, Flaw>> = {
    ...{ end: new Map(), pass: new Map(), new: new Map(), sealed: new Map() },
    ...{ people: new Map(), signers: new Map(), state: new Map() },
  };
  /** When the last complete round ended, or when this notary was made: epoch milliseconds. */
  completeAt: number;
  /** Why the last round was not complete, as a sentence; undefined if it was, or if a flaw says why. */
  failure: string | undefined;
  /** Lanes of which the tree has other segments. They get no more leaves. */
  #flawedLanes: ReadonlySet<string> = new Set();
  /** Entries that are in order now and were not once, by lane: the first of each. */
  readonly #late = new Map<string, number>();
  #passedAt: number | undefined;
  /** Since when each segment that no month has was looked at again, or since when that is tried: epoch milliseconds. */
  lookedAt: number;
  /** How many segments the last pass saw. */
  #segments = Number.POSITIVE_INFINITY;
  #pass: Pass | undefined;
  /** What the last round looked at of sealed months. */
  samples: Samples = { of: 0, looked: 0 };
  /** What was wrong with leaves of sealed months. These are looked at in each round. */
  readonly #flawedLeaves = new Map<number, readonly Flaw[]>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #working: Promise<void> | undefined;
  #stopping = false;

  /** @throws Problem if a key is not that of a witness */
  constructor(options: NotaryOptions) {
    this.#options = options;
    this.completeAt = options.now();
    this.lookedAt = this.completeAt;
    this.#witnesses = new Witnesses(options.database, options.witnesses, options.log);
    this.#saltKey = saltKeyOf(options.auditKey);
    this.#state = new StateWatch(options.auditKey);
    this.#reads = new LastReads(options.kindsByRead);
  }

  /** How many flaws are known. */
  get flaws(): number {
    return new Set(Object.values(this.#flaws).flatMap((found) => [...found.keys()])).size;
  }

  /** Which witnesses have not signed the newest head. */
  get away(): Away {
    return this.#witnesses.away;
  }

  /** Makes a round now and every 60 s. Each of its waits has an end, so a round that hangs fails. */
  run(): void {
    const startedAtMs = performance.now();
    this.#working = this.#roundAndWitnesses()
      .catch((error: unknown) => this.#fail(whyFailed(error)))
      .then(() => {
        this.#options.told?.();
        const leftMs = roundEveryMs - (performance.now() - startedAtMs);
        if (!this.#stopping) this.#timer = setTimeout(() => this.run(), Math.max(leftMs, 0));
      });
  }

  #fail(reason: string): void {
    this.failure = reason;
    this.#options.log({ event: "notary_failed", reason });
  }

  async #roundAndWitnesses(): Promise<void> {
    this.failure = undefined;
    await this.round();
    this.#options.told?.();
    if (this.#flaws.end.size === 0 && !this.#stopping) await this.#witnesses.ask();
  }

  /** Ends the round that is under way between two segments, and closes the database. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#witnesses.stop();
    clearTimeout(this.#timer);
    await this.#working;
    await this.#options.database.close();
  }

  /**
   * Takes in what is new and signs it; then compares the tables with the record, whatever is wrong with the tree; then
   * looks again at old segments, until the next round is due: some of sealed months, then a part of all others. If one of these fails, the others are done all
   * the same.
   * @throws the first failure, in the end; the log has the others
   */
  async round(): Promise<void> {
    const startedAt = this.#options.now();
    const failures: unknown[] = [];
    const part = async (work: () => Promise<void>) => {
      await work().catch((error: unknown) => failures.push(error));
    };
    let head: TreeHead | undefined;
    let isDone = false;
    await part(async () => {
      const found = await this.#readTree();
      head = found;
      if (found === undefined) return;
      [head, isDone] = await this.#takeIn(found, startedAt);
      if (isDone && !(await areReadsStored(this.#options.database)))
        await noteAllStored(this.#options.database, this.#options.now());
    });
    if (!this.#options.accepts) await part(() => this.#compareState(head));
    await part(() => this.#lookAtSigners());
    const signed = head;
    if (signed !== undefined) {
      await part(() => this.#lookAtMonths(signed, startedAt));
      await part(() => this.#goOn(signed, startedAt));
    }
    if (isDone && failures.length === 0) this.completeAt = this.#options.now();
    const reasons = new Set(failures.map(whyFailed));
    for (const reason of [...reasons].slice(1)) this.#fail(reason);
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Takes in what the tree does not have yet, lane after lane: one leaf of each, unless that is much. The last leaf of
   * the lane is held against its segments first.
   * @returns the head of the tree as it is stored then, and whether all was looked at
   */
  async #takeIn(tree: Tree, startedAt: number): Promise<[TreeHead, boolean]> {
    const { database, auditKey, rest, now } = this.#options;
    const walk = new AuditWalk(auditKey, chainOf(database), { from: 0, to: 0, saltKey: this.#saltKey });
    let head: TreeHead = { size: tree.size, root: tree.root };
    let batch: Leaf[] = [];
    let leaf: Leaf | undefined;
    let segments = 0;
    let isFirst = true;
    let isCut = false;
    const close = () => {
      if (leaf !== undefined) batch.push(leaf);
      leaf = undefined;
    };
    const append = async () => {
      close();
      if (batch.length > 0) isFirst = await this.#append(tree, batch);
      if (isFirst) head = { size: tree.size, root: tree.root };
      [batch, segments] = [[], 0];
    };
    for (const [lane, seq] of await this.#lanes()) {
      if (isCut || this.#stopping || !isFirst) break;
      for await (const segment of segmentsByLane(database, {}, { lane, seq, withLeaf: true })) {
        await rest?.(shareForNew);
        isCut = now() - startedAt > roundEveryMs;
        if (this.#stopping || isCut || !isFirst) break;
        const entries = decodeEntries(segment);
        const isInOrder = await walk.pass(segment, entries);
        if (isCovered(segment)) continue;
        // The reads of a segment with a flaw are stored all the same: the list of entries has them, too.
        this.#reads.note(entries ?? [], segment.at);
        const isFlawed = walk.flawedLanes.has(lane) || this.#flawedLanes.has(lane);
        if (!isInOrder || isFlawed || entries === undefined) {
          close();
          continue;
        }
        if (!leaf?.takes(segment)) close();
        leaf ??= new Leaf(this.#saltKey, segment);
        leaf.add(segment, entries);
        segments += 1;
        if (segments >= segmentsPerHead) await append();
      }
      close();
    }
    if (isFirst) await append();
    await walk.close();
    const isDone = isFirst && !this.#stopping && !isCut;
    this.#found("new", [...this.#flaws.new.values(), ...walk.flaws]);
    if (isDone) this.#late.clear();
    if (isCut) this.#fail("There are more new entries than a round takes in within a minute: the next one goes on.");
    return [head, isDone];
  }

  /** The lanes with something new, and the entry from which on each is looked at. */
  async #lanes(): Promise<ReadonlyMap<string, number>> {
    const behind = (await lanesInTree(this.#options.database)).filter(({ isBehind }) => isBehind);
    const lanes = new Map(behind.map(({ lane, seq }) => [lane, seq]));
    for (const [lane, seq] of this.#late) lanes.set(lane, Math.min(seq, lanes.get(lane) ?? seq));
    return lanes;
  }

  async #lookAtSigners(): Promise<void> {
    this.#found("signers", (await this.#options.damaged?.()) ?? []);
  }

  /**
   * Looks at leaves of sealed months that are drawn at random, of those that retention kept, and at those that had a flaw.
   */
  async #lookAtMonths(head: TreeHead, startedAt: number): Promise<void> {
    const { database, auditKey, rest, now } = this.#options;
    const size = (await sealedMonths(database, head)).at(-1)?.size ?? 0;
    const found = chainOf(database);
    const known = size === 0 ? { acceptances: [], prunes: [] } : await found.known();
    const chain = { ...found, known: async () => known };
    const kept = leavesOutside((await knownLeaves(auditKey, chain)).pruned, size);
    const picked = new Set([...this.#flawedLeaves.keys(), ...drawLeaves(kept, samplesPerRound)]);
    const stored = new Map((await Array.fromAsync(leavesAt(database, [...picked]))).map((one) => [one.leaf, one]));
    let looked = 0;
    // A leaf that is missing is a flaw of the tree.
    for (const leaf of picked) {
      await rest?.(shareForOld);
      if (this.#stopping || now() - startedAt >= samplesWithinMs) break;
      looked += 1;
      const { lane, firstSeq: seq, lastSeq } = stored.get(leaf) ?? { lane: "", firstSeq: 0, lastSeq: 0 };
      const walk = new AuditWalk(auditKey, chain, { from: leaf, to: leaf + 1, saltKey: this.#saltKey });
      const segments = segmentsByLane(database, {}, { lane, seq, lastSeq, withLeaf: true });
      for await (const segment of segments) await walk.pass(segment);
      await walk.end();
      if (walk.flaws.length === 0 || leaf >= size) this.#flawedLeaves.delete(leaf);
      else if (this.#flawedLeaves.size < flawsMax) this.#flawedLeaves.set(leaf, walk.flaws);
    }
    this.samples = { of: countLeaves(kept), looked };
    this.#found("sealed", [...this.#flawedLeaves.values()].flat());
  }

  /**
   * Goes on with the pass: first over the leaves, whose nodes it computes again, then over all segments that no sealed
   * month has. A pass takes an hour, or as long as it takes with what is left of each minute.
   */
  async #goOn(head: TreeHead, startedAt: number): Promise<void> {
    const { database, auditKey, signers, rest, now } = this.#options;
    const { size } = head;
    const chain = chainOf(database);
    const begin = async (): Promise<Pass> => {
      const from = (await sealedMonths(database, head)).at(-1)?.size ?? 0;
      return {
        startedAt: this.#passedAt ?? startedAt,
        acceptedAt: this.#acceptedAt,
        known: new Set(this.#flaws.new.keys()),
        head,
        from,
        tree: new TreeWalk(signers),
        leaves: 0,
        isTree: false,
        walk: new AuditWalk(auditKey, chain, { from, to: size, saltKey: this.#saltKey }),
        segments: 0,
        last: undefined,
        month: { isOver: false, segments: 0, entries: 0 },
      };
    };
    // A tree that was put back, and accepted, is another one.
    const pass = this.#pass?.acceptedAt === this.#acceptedAt ? this.#pass : await begin();
    // A pass whose round fails begins again.
    this.#pass = undefined;
    let isCut = false;
    const goesOn = async () => {
      await rest?.(shareForOld);
      isCut ||= now() - startedAt >= roundEveryMs;
      return !isCut && !this.#stopping;
    };
    if (!pass.isTree) {
      for await (const leaves of leavesInOrder(database, pass.leaves, size)) {
        for (const leaf of leaves) pass.tree.pass(leaf);
        pass.leaves = Math.max(pass.leaves, (leaves.at(-1)?.leaf ?? -1) + 1);
        if (!(await goesOn())) break;
      }
      pass.isTree = !isCut;
    }
    // The first pass of a process takes all the time that there is. Later ones know how many segments there are.
    const part = (this.#segments * (startedAt + roundEveryMs - pass.startedAt)) / passWithinMs;
    const to = Math.max(pass.segments + segmentsPerRound, part);
    let isDone: boolean = pass.isTree;
    for await (const segment of segmentsBehind(database, pass.from, (leaf) => pass.walk.expect(leaf), pass.last)) {
      const isInOrder = await pass.walk.pass(segment);
      if (isInOrder && segment.leaf != null && !isCovered(segment) && !this.#late.has(segment.lane))
        this.#late.set(segment.lane, segment.firstSeq);
      if (isCovered(segment)) countIn(pass, segment);
      pass.last = segment;
      pass.segments += 1;
      if (pass.segments < to && (await goesOn())) continue;
      isDone = false;
      break;
    }
    if (this.#stopping) return;
    if (isDone) {
      await pass.walk.end();
      this.#passedAt = startedAt;
      this.lookedAt = pass.startedAt;
      this.#segments = pass.segments;
    } else this.#pass = pass;
    const found = [...pass.walk.flaws, ...pass.tree.flaws];
    this.#found("pass", isDone ? found : [...this.#flaws.pass.values(), ...found]);
    this.#flawedLanes = isDone ? pass.walk.flawedLanes : this.#flawedLanes.union(pass.walk.flawedLanes);
    if (!isDone) return;
    // What was new when the pass began is one of its own flaws by now, or none any more.
    const stillNew = [...this.#flaws.new.values()].filter(({ name }) => !pass.known.has(name));
    this.#found("new", stillNew);
    this.#found("people", await headFlaws(auditKey, chain));
    if (pass.walk.flaws.length + pass.tree.flaws.length + this.#late.size === 0) await this.#seal(pass, head);
  }

  /** Seals the month before a pass that found nothing wrong, if something of an earlier month was not sealed yet. */
  async #seal(pass: Pass, tree: TreeHead): Promise<void> {
    const { database, accepts } = this.#options;
    const { isOver, segments, entries } = pass.month;
    if (!isOver || accepts) return;
    const month = monthName(monthOf(pass.startedAt) - 1);
    const newest = (await sealedMonths(database, tree)).at(-1);
    if (newest !== undefined && newest.month >= month) return;
    const text = encodeMonth({ ...pass.head, month, segments, entries });
    await this.#append(await readTree(database, tree.size), [{ lane: text, firstSeq: 0, lastSeq: 0, text }]);
  }

  /** @returns whether they are in the tree now; else another notary was faster, or a row of SQL is in their way */
  async #append(tree: Tree, leaves: readonly Pick<Leaf, "lane" | "firstSeq" | "lastSeq" | "text">[]): Promise<boolean> {
    const { database, signers, checkpoint, log, now } = this.#options;
    const before = { size: tree.size, root: tree.root };
    const rows = leaves.map(({ lane, firstSeq, lastSeq, text }) => {
      return { lane, firstSeq, lastSeq, hashes: tree.append(leafHash(text)) };
    });
    const people = leaves.filter(({ lane }) => lane === commandsLane).map(({ lastSeq }) => lastSeq);
    this.#commands = Math.max(this.#commands, ...people);
    const noted = { size: tree.size, root: tree.root, acceptedAt: this.#acceptedAt, commands: this.#commands };
    const note = signTreeHead(noted, signers[0]);
    const head = { size: noted.size, root: noted.root, at: now(), note };
    const reads = this.#reads.take();
    try {
      if (!(await appendLeaves(database, before, rows, head, (inside) => storeLastReads(inside, reads)))) return false;
    } catch (error) {
      this.#found("end", [brokenBy(conflictOf(error))]);
      return false;
    }
    checkpoint.take(noted, note);
    this.#noteFile();
    log({ event: "signed_checkpoint", size: noted.size, note });
    return true;
  }

  /** The tree as it is stored; undefined if it is not one that was signed here, or does not go on from what is known. */
  async #readTree(): Promise<Tree | undefined> {
    const { database, checkpoint, accepts, now } = this.#options;
    const { size, head, signed, acceptedAt, isPart } = await checkpoint.compare(database);
    this.#noteFile();
    let [tree, flaw]: [Tree | undefined, string | undefined] = [undefined, undefined];
    try {
      tree = await readTree(database, size);
      const isSigned = head === undefined ? size === 0 : signed?.size === size && signed.root.equals(tree.root);
      if (!isSigned) flaw = "The leaves of the tree do not match the newest signed head.";
      else flaw = accepts && !isPart ? undefined : checkpoint.putBack;
      this.#acceptedAt = accepts ? Math.max(now(), acceptedAt + 1) : (signed?.acceptedAt ?? 0);
      // An older head does not say it: then the next entry of people does.
      this.#commands = signed?.commands ?? 0;
    } catch (error) {
      flaw = conflictOf(error);
    }
    this.#found("end", flaw === undefined ? [] : [brokenBy(flaw)]);
    return flaw === undefined ? tree : undefined;
  }

  async #compareState(head: TreeHead | undefined): Promise<void> {
    const { database, now, rest } = this.#options;
    const found = await this.#state.note(database, now(), head, rest && (() => rest(shareForNew)));
    this.#found("state", found.map(stateFlaw));
  }

  #noteFile(): void {
    const { unwritten } = this.#options.checkpoint;
    if (unwritten !== undefined && unwritten !== this.#unwritten) {
      this.#options.log({ event: "checkpoint_unwritten", reason: unwritten });
    }
    this.#unwritten = unwritten;
  }

  /** Takes this for all that is wrong there, and logs what was not known. */
  #found(where: FlawPlace, found: readonly Flaw[]): void {
    const known = new Set(Object.values(this.#flaws).flatMap((some) => [...some.keys()]));
    this.#flaws[where] = new Map(found.map((one) => [one.name, one]));
    for (const [name, { sentence }] of this.#flaws[where]) {
      if (!known.has(name)) this.#options.log({ event: "audit_flaw", flaw: sentence });
    }
  }
}

type FlawPlace = "end" | "pass" | "new" | "sealed" | "people" | "signers" | "state";

/** How many leaves of sealed months there are, and how many of them the last round looked at. */
export type Samples = { readonly of: number; readonly looked: number };

/** How far the leaves of the tree, and the segments that no sealed month has, were looked at. */
type Pass = {
  readonly startedAt: number;
  readonly acceptedAt: number;
  /** The tree when it began, and how many of its leaves months had. */
  readonly head: TreeHead;
  readonly from: number;
  /** The flaws of what was new when it began. */
  readonly known: ReadonlySet<string>;
  readonly tree: TreeWalk;
  /** How many leaves passed, and whether those are all. */
  leaves: number;
  isTree: boolean;
  readonly walk: AuditWalk;
  /** How many segments passed, and the last of them. */
  segments: number;
  last: StoredSegment | undefined;
  /** Whether a segment is of an earlier month than the pass, and how many there are in the leaves that may be sealed. */
  readonly month: { isOver: boolean; segments: number; entries: number };
};

/** Counts a segment that is in the tree. */
function countIn({ from, head, startedAt, month }: Pass, { leaf, at, firstSeq, lastSeq }: StoredSegment): void {
  if (leaf == null || leaf.leaf < from || leaf.leaf >= head.size) return;
  month.isOver ||= monthOf(at) < monthOf(startedAt);
  month.segments += 1;
  month.entries += lastSeq - firstSeq + 1;
}

const roundEveryMs = 60_000;
const segmentsPerHead = 20_000;
/** Some minutes less than an hour. */
const passWithinMs = 3_300_000;
/** At least. */
const segmentsPerRound = 1000;
/** Of leaves of sealed months, at most: what else is old has at least the rest of the minute. */
const samplesPerRound = 1000;
const samplesWithinMs = 20_000;
/** New entries and rows that were put back come first, but requests wait for the same processor. */
const shareForNew = 0.5;
/** What looks again at old segments takes no more than a tenth of a processor. */
const shareForOld = 0.1;

/**
 * Lets long work take a share of a processor at most: what comes back is called between two steps with that share, and
 * after each 10 ms of work it waits for the others' part.
 * @param workedMs - milliseconds of processor time, which a busy machine does not make longer
 */
export function shared(workedMs: () => number, wait: (ms: number) => Promise<unknown>) {
  let restedAtMs = workedMs();
  return async (share: number): Promise<void> => {
    const ms = workedMs() - restedAtMs;
    if (ms < workMs) return;
    await wait(ms / share - ms);
    restedAtMs = workedMs();
  };
}

/** Work of this length is followed by a rest. */
const workMs = 10;
