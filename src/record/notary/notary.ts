import type { Log } from "../../core/log.ts";
import { conflictOf } from "../../core/refused.ts";
import type { Config } from "../../core/settings/settings.ts";
import { saltKeyOf } from "../../seal/keyring.ts";
import type { Database } from "../../store/database.ts";
import { whyFailed } from "../../store/failures.ts";
import { brokenBy, type Flaw } from "../flaw.ts";
import { LastReads } from "../last-reads.ts";
import { Leaf } from "../leaf.ts";
import type { Signer } from "../note.ts";
import { stateFlaw } from "../record.ts";
import { commandsLane, decodeEntries } from "../segment.ts";
import { chainOf } from "../store/chain.ts";
import { areReadsStored, noteAllStored, storeLastReads } from "../store/last-reads.ts";
import { segmentsByLane } from "../store/segments.ts";
import { appendLeaves, lanesBehind, leavesInOrder, readTree } from "../store/tree.ts";
import { leafHash, type Tree, type TreeHead } from "../tree.ts";
import { signTreeHead } from "../tree-note.ts";
import { TreeWalk } from "../tree-walk.ts";
import { AuditWalk, headFlaws, isCovered, type StoredSegment } from "../verify.ts";
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
   * one; of what was new since that began; of the end of people's lane; of the signers' rows; and of what the tables hold
   * against the record.
   */
  readonly #flaws: Record<FlawPlace, ReadonlyMap<string, Flaw>> = {
    ...{ end: new Map(), pass: new Map(), new: new Map(), people: new Map(), signers: new Map(), state: new Map() },
  };
  /** When the last complete round ended; at first, when this notary was made. */
  #endedAt: number;
  #failure: string | undefined;
  /** Lanes of which the tree has other segments. They get no more leaves. */
  #flawedLanes: ReadonlySet<string> = new Set();
  /** Entries that are in order now and were not once, by lane: the first of each. */
  readonly #late = new Map<string, number>();
  #passedAt: number | undefined;
  /** When the last pass began that is over; at first, when this notary was made. */
  #lookedAt: number;
  /** How many segments the last pass saw. */
  #segments = Number.POSITIVE_INFINITY;
  #pass: Pass | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #working: Promise<void> | undefined;
  #stopping = false;

  /** @throws Problem if a key is not that of a witness */
  constructor(options: NotaryOptions) {
    this.#options = options;
    this.#endedAt = options.now();
    this.#lookedAt = this.#endedAt;
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

  /** When the last complete round ended, or when this notary was made: epoch milliseconds. */
  get completeAt(): number {
    return this.#endedAt;
  }

  /** Since when each segment of the tree was looked at again, or since when that is tried: epoch milliseconds. */
  get lookedAt(): number {
    return this.#lookedAt;
  }

  /** Why the last round was not complete, as a sentence; undefined if it was, or if a flaw says why. */
  get failure(): string | undefined {
    return this.#failure;
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
    this.#failure = reason;
    this.#options.log({ event: "notary_failed", reason });
  }

  async #roundAndWitnesses(): Promise<void> {
    this.#failure = undefined;
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
   * looks again at a part of all segments, until the next round is due. If one of these fails, the others are done all
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
    if (head !== undefined) await part(() => this.#goOn(head as TreeHead, startedAt));
    if (isDone && failures.length === 0) this.#endedAt = this.#options.now();
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
    const walk = new AuditWalk(auditKey, chainOf(database), { size: tree.size, saltKey: this.#saltKey });
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
    const lanes = await lanesBehind(this.#options.database);
    for (const [lane, seq] of this.#late) lanes.set(lane, Math.min(seq, lanes.get(lane) ?? seq));
    return lanes;
  }

  async #lookAtSigners(): Promise<void> {
    this.#found("signers", (await this.#options.damaged?.()) ?? []);
  }

  /**
   * Goes on with the pass: first over the leaves, which it holds against the signed head, then over all segments. A pass
   * takes an hour, or as long as it takes with what is left of each minute.
   */
  async #goOn({ size, root }: TreeHead, startedAt: number): Promise<void> {
    const { database, auditKey, signers, rest, now } = this.#options;
    const chain = chainOf(database);
    const begin = (): Pass => ({
      startedAt: this.#passedAt ?? startedAt,
      acceptedAt: this.#acceptedAt,
      known: new Set(this.#flaws.new.keys()),
      tree: new TreeWalk(signers),
      leaves: 0,
      isTree: false,
      walk: new AuditWalk(auditKey, chain, { size, saltKey: this.#saltKey }),
      segments: 0,
      last: undefined,
    });
    // A tree that was put back, and accepted, is another one.
    const pass = this.#pass?.acceptedAt === this.#acceptedAt ? this.#pass : begin();
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
      if (pass.isTree) pass.tree.compareRoot({ size, root });
    }
    // The first pass of a process takes all the time that there is. Later ones know how many segments there are.
    const part = (this.#segments * (startedAt + roundEveryMs - pass.startedAt)) / passWithinMs;
    const to = Math.max(pass.segments + segmentsPerRound, part);
    let isDone: boolean = pass.isTree;
    for await (const segment of segmentsByLane(database, {}, undefined, pass.last)) {
      const isInOrder = await pass.walk.pass(segment);
      if (isInOrder && segment.leaf != null && !isCovered(segment) && !this.#late.has(segment.lane))
        this.#late.set(segment.lane, segment.firstSeq);
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
      this.#lookedAt = pass.startedAt;
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
  }

  /** @returns whether they are in the tree now; else another notary was faster, or a row of SQL is in their way */
  async #append(tree: Tree, leaves: readonly Leaf[]): Promise<boolean> {
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
      if (!isSigned) flaw = "The leaves of the tree are not those that the newest signed head is of.";
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

type FlawPlace = "end" | "pass" | "new" | "people" | "signers" | "state";

/** How far the leaves of the tree, and all segments, were looked at. */
type Pass = {
  readonly startedAt: number;
  readonly acceptedAt: number;
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
};

const roundEveryMs = 60_000;
const segmentsPerHead = 20_000;
/** Some minutes less than an hour. */
const passWithinMs = 3_300_000;
/** At least. */
const segmentsPerRound = 1000;
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
