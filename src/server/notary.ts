import type { AuditEntry } from "../audit/entry.ts";
import { describeFlaw, type Flaw, gapName } from "../audit/flaw.ts";
import { LastReads } from "../audit/last-reads.ts";
import { segmentTree } from "../audit/leaf.ts";
import type { Signer } from "../audit/note.ts";
import { describeDifference, type StateDifference } from "../audit/record.ts";
import { commandsLane, decodeEntries } from "../audit/segment.ts";
import { leafHash, type Tree } from "../audit/tree.ts";
import { signTreeHead } from "../audit/tree-note.ts";
import { ChainWalk, treeEnds } from "../audit/verify.ts";
import { Refused } from "../core/refused.ts";
import type { NewestCheckpoint } from "../installation/newest-checkpoint.ts";
import { StateWatch } from "../installation/state-watch.ts";
import { kindReadBy } from "../kinds/kind.ts";
import { saltKeyOf } from "../seal/keyring.ts";
import { chainOf } from "../store/chain.ts";
import { type Database, databaseErrorCode } from "../store/database.ts";
import { lastReadsSize, noteAllStored, storeLastReads } from "../store/last-reads.ts";
import { segmentHolding, segmentsByLane } from "../store/segments.ts";
import {
  appendLeaves,
  cutLanes,
  type LeafRow,
  lanesBehind,
  leavesOf,
  newestLeaf,
  readTree,
  segmentBefore,
} from "../store/tree.ts";
import type { Log } from "./log.ts";
import type { Witnesses } from "./witnesses.ts";

/** What a notary works with. */
export type NotaryOptions = {
  readonly database: Database;
  readonly auditKey: Uint8Array;
  /** The keys that may have signed, the one that signs first. */
  readonly signers: readonly [Signer, ...Signer[]];
  /** What is known of the tree. The notary adds to no other one. */
  readonly checkpoint: NewestCheckpoint;
  /** Adds to a tree that was put back: an operator accepts that. */
  readonly accepts?: boolean;
  readonly log: Log;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Who signs the heads, too. */
  readonly witnesses?: Witnesses;
  /** Called after each round of {@link Notary.run}. */
  readonly told?: () => void;
};

/**
 * Puts the segments of all lanes into the tree, in an order of its own, and signs the tree's heads. What is not in order
 * stays outside and is a flaw. Nothing waits for the notary: it reads what is durable. It may end at any moment, since
 * leaves and the head over them are one transaction.
 */
export class Notary {
  readonly #options: NotaryOptions;
  readonly #saltKey: Buffer;
  /** What all heads from now on keep. */
  #acceptedAt = 0;
  #unwritten: string | undefined;
  readonly #state: StateWatch;
  /** What machines read in the leaves that are to be appended. */
  readonly #reads = new LastReads(kindReadBy);
  /** By subject: what the tables hold against the record. */
  #differences = new Map<string, StateDifference>();
  #flaws = new Map<string, Flaw>();
  /** What is wrong with the tree itself. Then nothing is signed. */
  #misfit: string | undefined;
  #wholeAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #working: Promise<void> | undefined;
  #stopping = false;

  constructor(options: NotaryOptions) {
    this.#options = options;
    this.#saltKey = saltKeyOf(options.auditKey);
    this.#state = new StateWatch(options.auditKey);
  }

  /** How many flaws are known. */
  get flaws(): number {
    return this.#flaws.size + this.#differences.size + (this.#misfit === undefined ? 0 : 1);
  }

  /** Makes a round now and every 60 s. */
  run(): void {
    this.#working = this.#roundAndWitnesses()
      .catch((error: unknown) => {
        const reason = error instanceof Refused ? error.message : databaseErrorCode(error);
        this.#options.log({ event: "notary_failed", reason });
      })
      .then(() => {
        this.#options.told?.();
        if (!this.#stopping) this.#timer = setTimeout(() => this.run(), roundEveryMs);
      });
  }

  async #roundAndWitnesses(): Promise<void> {
    await this.round();
    this.#options.told?.();
    if (this.#misfit === undefined && !this.#stopping) await this.#options.witnesses?.ask();
  }

  /** Ends the round that is under way between two segments. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#options.witnesses?.stop();
    clearTimeout(this.#timer);
    await this.#working;
  }

  /**
   * Takes in what is new. The first round of each hour looks at all segments: a flaw that was accepted is none any more,
   * and a segment that a wrong clock dated too early is found.
   */
  async round(): Promise<void> {
    const { database, auditKey, now } = this.#options;
    const tree = await this.#readTree();
    if (!this.#options.accepts) await this.#compareState();
    if (tree === undefined) return;
    if ((await lastReadsSize(database)) !== tree.size && !(await this.#storeAllReads(tree))) return;
    const startedAt = now();
    const isWhole = startedAt - this.#wholeAt >= wholeEveryMs;
    const walk = new ChainWalk(auditKey, await chainOf(database));
    const unreadable: Flaw[] = [];
    const lanes = await lanesBehind(database, isWhole ? undefined : startedAt - lateMsMax);
    let batch: Leaf[] = [];
    let isFirst = true;
    const replaced = await this.#replaced([commandsLane, ...lanes.map(({ lane }) => lane)]);
    for (const lane of lanes) {
      if (replaced.some((one) => one.lane === lane.lane)) continue;
      for await (const { leaf, entries, at } of this.#leavesOf(lane, walk, unreadable)) {
        batch.push(leaf);
        this.#reads.note(entries, at);
        if (batch.length < leavesPerHead) continue;
        isFirst = await this.#append(tree, batch);
        batch = [];
        if (!isFirst || this.#stopping) break;
      }
      if (!isFirst || this.#stopping) break;
    }
    if (isFirst && batch.length > 0) isFirst = await this.#append(tree, batch);
    const isDone = isFirst && !this.#stopping;
    const cut = isWhole ? await this.#cutEnds() : [];
    this.#note([...walk.flaws, ...unreadable, ...replaced, ...cut], isWhole && isDone);
    if (isWhole && isDone) this.#wholeAt = startedAt;
  }

  /**
   * Those of the lanes whose newest segment in the tree is another one by now: somebody cut the end off, and the lane
   * went on with the same numbers. Such a lane gets no more leaves.
   */
  async #replaced(lanes: readonly string[]): Promise<Flaw[]> {
    const { database } = this.#options;
    const flaws: Flaw[] = [];
    for (const lane of new Set(lanes)) {
      const newest = await newestLeaf(database, lane);
      const segment = newest && (await segmentHolding(database, { lane, seq: newest.lastSeq }));
      if (newest === undefined || segment === undefined) continue;
      const found = segment.lastSeq === newest.lastSeq ? segmentTree(this.#saltKey, segment) : undefined;
      if (found !== undefined && leafHash(found.leaf).equals(newest.hash)) continue;
      flaws.push({ lane, seq: segment.firstSeq, lastSeq: newest.lastSeq, what: "gone", seals: [] });
    }
    return flaws;
  }

  /** The ends of lanes that are in the tree and gone, unless their loss was accepted. */
  async #cutEnds(): Promise<readonly Flaw[]> {
    const { database, auditKey } = this.#options;
    const cut = await cutLanes(database);
    const walk = new ChainWalk(auditKey, await chainOf(database), treeEnds(auditKey, cut));
    for (const { lane, end } of cut) if (end > 0) walk.begin({ lane, lastSeq: end, mac: Buffer.alloc(0) });
    return (await walk.end()).flaws.filter(({ what }) => what === "gone");
  }

  /** The segments of a lane that are in order and not in the tree yet. */
  async *#leavesOf(from: { lane: string; seq: number }, walk: ChainWalk, unreadable: Flaw[]): AsyncGenerator<Found> {
    const { database } = this.#options;
    const before = await segmentBefore(database, from);
    if (before) walk.begin(before);
    const present = await leavesOf(database, from);
    for await (const segment of segmentsByLane(database, {}, from)) {
      if (this.#stopping) return;
      const { lane, firstSeq, lastSeq } = segment;
      const isInOrder = await walk.pass(segment);
      if (present.has(lastSeq)) continue;
      if (!isInOrder) {
        // Its reads are stored all the same: the list of entries has them, too.
        this.#reads.note(decodeEntries(segment) ?? [], segment.at);
        continue;
      }
      const found = segmentTree(this.#saltKey, segment);
      if (found === undefined) unreadable.push({ lane, seq: firstSeq, lastSeq, what: "broken", seals: [] });
      else {
        const entries = found.salted.map(({ entry }) => entry);
        yield { leaf: { lane, lastSeq, hash: leafHash(found.leaf) }, entries, at: segment.at };
      }
    }
  }

  /**
   * Stores the last reads of all segments that there are: of a database that was brought up to date, put back, or
   * appended to by an older program. @returns whether all were looked at
   */
  async #storeAllReads({ size }: Tree): Promise<boolean> {
    const { database, now } = this.#options;
    const reads = new LastReads(kindReadBy);
    for await (const segment of segmentsByLane(database, {})) {
      if (this.#stopping) return false;
      reads.note(decodeEntries(segment) ?? [], segment.at);
    }
    await storeLastReads(database, reads.take());
    await noteAllStored(database, size, now());
    return true;
  }

  /** @returns whether they are in the tree now; else another notary was faster */
  async #append(tree: Tree, leaves: readonly Leaf[]): Promise<boolean> {
    const { database, signers, checkpoint, log, now } = this.#options;
    const before = { size: tree.size, root: tree.root };
    const rows = leaves.map(({ lane, lastSeq, hash }) => ({ lane, lastSeq, hashes: tree.append(hash) }));
    const noted = { size: tree.size, root: tree.root, acceptedAt: this.#acceptedAt };
    await storeLastReads(database, this.#reads.take());
    const note = signTreeHead(noted, signers[0]);
    if (!(await appendLeaves(database, before, rows, { size: noted.size, root: noted.root, at: now(), note }))) {
      return false;
    }
    checkpoint.take(noted, note);
    this.#noteFile();
    log({ event: "signed_checkpoint", size: noted.size, note });
    return true;
  }

  /** The tree as it is stored; undefined if it is not one that was signed here, or does not go on from what is known. */
  async #readTree(): Promise<Tree | undefined> {
    const { database, checkpoint, accepts, log, now } = this.#options;
    const before = this.#misfit;
    const { size, head, signed, acceptedAt, commands } = await checkpoint.compare(database);
    this.#noteFile();
    try {
      const tree = await readTree(database, size);
      const isSigned = head === undefined ? size === 0 : signed?.size === size && signed.root.equals(tree.root);
      if (!isSigned) this.#misfit = "The leaves of the tree are not those that the newest signed head is of.";
      else this.#misfit = accepts && commands.inTree < commands.last ? undefined : checkpoint.refusal;
      this.#acceptedAt = accepts ? Math.max(now(), acceptedAt + 1) : (signed?.acceptedAt ?? 0);
      if (this.#misfit === undefined) return tree;
    } catch (error) {
      if (!(error instanceof Refused) || error.kind !== "conflict") throw error;
      this.#misfit = error.message;
    }
    if (this.#misfit !== before) log({ event: "audit_flaw", flaw: this.#misfit });
    return undefined;
  }

  async #compareState(): Promise<void> {
    const { database, log, now } = this.#options;
    const found = await this.#state.note(database, now());
    for (const one of found) {
      if (!this.#differences.has(one.subject)) log({ event: "audit_flaw", flaw: describeDifference(one) });
    }
    this.#differences = new Map(found.map((one) => [one.subject, one]));
  }

  #noteFile(): void {
    const { unwritten } = this.#options.checkpoint;
    if (unwritten !== undefined && unwritten !== this.#unwritten) {
      this.#options.log({ event: "checkpoint_unwritten", reason: unwritten });
    }
    this.#unwritten = unwritten;
  }

  /** @param isAll - whether these are all that there are */
  #note(flaws: readonly Flaw[], isAll: boolean): void {
    const known = this.#flaws;
    const found = new Map(flaws.map((flaw) => [gapName(flaw), flaw]));
    for (const [name, flaw] of found) {
      if (!known.has(name)) this.#options.log({ event: "audit_flaw", flaw: describeFlaw(flaw) });
    }
    this.#flaws = isAll ? found : new Map([...known, ...found]);
  }
}

type Leaf = Omit<LeafRow, "hashes"> & { readonly hash: Buffer };
/** A leaf, and what its segment records. */
type Found = { readonly leaf: Leaf; readonly entries: readonly AuditEntry[]; readonly at: number };

const roundEveryMs = 60_000;
const leavesPerHead = 1000;
const wholeEveryMs = 3_600_000;
/** How far behind a server's clock may be: a segment that seems older is found in the next whole round. */
const lateMsMax = 600_000;
