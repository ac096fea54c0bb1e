import { isSameMac, macOf } from "../core/hash.ts";
import { type Acceptance, type Flaw, gapName, type Range, sealGap, sealLostEnd } from "./flaw.ts";
import { isWhole, type LaneEnd } from "./head.ts";
import type { Checkpoint } from "./journal.ts";
import { type Segment, segmentMac } from "./segment.ts";

/** The last entry of a lane that retention dropped, the mac of its segment, and a seal ({@link sealDropped}). */
export type Dropped = { readonly lane: string; readonly seq: number; readonly mac: Buffer; readonly seal: Buffer };

/** Where a chain is read from. */
export type Chain = {
  /** All segments, or those of one lane from a sequence number on; ordered by lane, sequence and time. */
  readonly segments: (from?: { readonly lane: string; readonly seq: number }) => AsyncIterable<Segment>;
  /** Undefined if retention dropped nothing from the lane. */
  readonly dropped: (lane: string) => Promise<Dropped | undefined>;
  /** The end of the lane that has a head. */
  readonly end: () => Promise<LaneEnd>;
  /** Only their seals prove that they were not made up. */
  readonly acceptances: readonly Acceptance[];
};

/** What was found in a chain, in order of lane and sequence; the ends of lanes come last. */
export type Verified = {
  readonly entries: number;
  readonly lanes: number;
  /** How many checkpoints were given. */
  readonly checkpoints: number;
  /** At most 1000. Empty: every entry is unchanged, except in what was accepted. */
  readonly flaws: readonly Flaw[];
  /** How many flaws there are beyond these. */
  readonly moreFlaws: number;
  /** The losses that were found and are known. */
  readonly accepted: readonly Range[];
};

/**
 * Verifies the chain of every lane, says where it breaks, and goes on behind that. Only checkpoints from outside the
 * database show that the end of a lane, or all of it, was removed, if its head was put back as well or it has none.
 * @param progress - called now and then with the number of entries verified so far
 */
export async function verifyChain(
  auditKey: Uint8Array,
  chain: Chain,
  checkpoints: readonly Checkpoint[] = [],
  progress: (entries: number) => void = () => {},
): Promise<Verified> {
  const walk = new ChainWalk(auditKey, chain, checkpoints);
  let entries = 0;
  let reported = 0;
  for await (const segment of chain.segments()) {
    await walk.pass(segment);
    entries += sizeOf(segment);
    if (entries - reported < progressEvery) continue;
    reported = entries;
    progress(entries);
  }
  progress(entries);
  return { entries, checkpoints: checkpoints.length, ...(await walk.end()) };
}

/** Seals what retention dropped from a lane: HMAC-SHA-256 under the audit key. */
export function sealDropped(auditKey: Uint8Array, dropped: Omit<Dropped, "seal">): Buffer {
  return macOf(auditKey, ["keyhole audit dropped v1", dropped.lane, dropped.seq, dropped.mac.toString("hex")]);
}

/** A lane that ends before the last entry that the tree has of it. */
export type CutLane = {
  readonly lane: string;
  /** That entry, and the last one that is left; 0 if none is. */
  readonly seq: number;
  readonly end: number;
  readonly dropped: Dropped | null;
};

/** The ends of lanes as the tree has them, unless retention dropped all up to there. They have no mac. */
export function treeEnds(auditKey: Uint8Array, cut: readonly CutLane[]): Checkpoint[] {
  const isKept = ({ seq, dropped }: CutLane) => !dropped || dropped.seq < seq || !isProved(auditKey, dropped);
  return cut.filter(isKept).map(({ lane, seq }) => ({ lane, seq, mac: noMac }));
}

function isProved(auditKey: Uint8Array, dropped: Dropped): boolean {
  return isSameMac(sealDropped(auditKey, dropped), dropped.seal);
}

const noMac = "";
const progressEvery = 1000;
const flawsMax = 1000;
/** How many macs the next segment may follow after a break. */
const macsMax = 4;

/** Where the walk is in a lane. */
type Link = {
  readonly lane: string;
  readonly lastSeq: number;
  /** The next segment follows one of these: after a break it is open whether a segment or its mac was changed. */
  readonly macs: readonly Buffer[];
};

type FoundFlaw = Omit<Flaw, "lastSeq"> & {
  lastSeq: number;
  /** The checkpoints that show it. */
  readonly lost: Checkpoint[];
};

/** Goes through the segments of lanes, one lane after the other. */
export class ChainWalk {
  readonly #auditKey: Uint8Array;
  readonly #chain: Omit<Chain, "segments">;
  /** Each lane's checkpoints that the walk has not reached, the highest first. */
  readonly #due: Map<string, Checkpoint[]>;
  readonly #flaws: FoundFlaw[] = [];
  readonly #accepted = new Map<string, Range>();
  /** The last entry of each lane. */
  readonly #ends = new Map<string, number>();
  #link: Link | undefined;
  /** Grows while checkpoint after checkpoint of a lane does not fit. */
  #lost: FoundFlaw | undefined;
  #moreFlaws = 0;

  constructor(auditKey: Uint8Array, chain: Omit<Chain, "segments">, checkpoints: readonly Checkpoint[] = []) {
    this.#auditKey = auditKey;
    this.#chain = chain;
    this.#due = Map.groupBy(checkpoints, ({ lane }) => lane);
    for (const some of this.#due.values()) some.sort((a, b) => b.seq - a.seq);
  }

  /** At most 1000 of what was found so far. */
  get flaws(): readonly Flaw[] {
    return this.#flaws;
  }

  /** Goes on behind a segment that was verified earlier. */
  begin({ lane, lastSeq, mac }: Pick<Segment, "lane" | "lastSeq" | "mac">): void {
    this.#link = { lane, lastSeq, macs: [mac] };
    this.#ends.set(lane, lastSeq);
  }

  /**
   * Goes on to the next segment, and notes a flaw if that does not follow the last one.
   * @returns whether it does, or follows a loss that was accepted
   */
  async pass(segment: Segment): Promise<boolean> {
    const { lane, firstSeq, mac } = segment;
    const link = await this.#linkTo(segment);
    const lastSeq = Math.max(segment.lastSeq, link.lastSeq);
    const isNext = firstSeq === link.lastSeq + 1;
    const follows = isNext && link.macs.some((one) => segmentMac(this.#auditKey, one, segment).equals(mac));
    const isInOrder = follows || this.#isAccepted(link, segment);
    if (isInOrder) this.#link = { lane, lastSeq, macs: [mac] };
    else {
      this.#note(link, segment);
      const expected = segmentMac(this.#auditKey, link.macs[0] ?? mac, segment);
      this.#link = { lane, lastSeq, macs: [mac, expected, ...link.macs].slice(0, macsMax) };
    }
    this.#ends.set(lane, lastSeq);
    this.#compare(segment, follows);
    return isInOrder;
  }

  /** Compares the ends of lanes, and returns all that was found. */
  async end(): Promise<Omit<Verified, "entries" | "checkpoints">> {
    for (const [lane, ahead] of this.#due) {
      // Retention may have dropped all entries of a lane, or those up to its checkpoint.
      const end = this.#ends.get(lane) ?? (await this.#droppedFrom(lane))?.seq ?? 0;
      // A checkpoint that is known to be lost from some entry on still shows the entries before that one.
      const known = new Map(ahead.map((one) => [one, this.#lostFrom(one)] as const));
      const neededOf = (one: Checkpoint) => (known.get(one)?.seq ?? one.seq + 1) - 1;
      const lost = ahead.filter((one) => neededOf(one) > end);
      const lastSeq = Math.max(...lost.map(neededOf));
      const what = lost.some(({ mac }) => mac !== noMac) ? "lost" : "gone";
      if (lost.length > 0) this.#add({ lane, seq: end + 1, lastSeq, what }, [], lost);
      for (const one of ahead) if (one.seq > end && !lost.includes(one)) this.#accept(known.get(one));
    }
    const end = await this.#chain.end();
    if (!isWhole(this.#auditKey, end)) {
      this.#add({ lane: end.lane, seq: end.head?.seq ?? 0, lastSeq: end.newest?.lastSeq ?? 0, what: "head" });
    }
    const flaws = this.#flaws.map(({ lost, ...flaw }) => {
      return { ...flaw, seals: [...flaw.seals, ...lost.map((one) => sealLostEnd(this.#auditKey, flaw, one))] };
    });
    return { lanes: this.#ends.size, flaws, moreFlaws: this.#moreFlaws, accepted: [...this.#accepted.values()] };
  }

  /** What the segment should follow. */
  async #linkTo({ lane, firstSeq }: Segment): Promise<Link> {
    const link = this.#link?.lane === lane ? this.#link : { lane, lastSeq: 0, macs: [Buffer.alloc(0)] };
    if (firstSeq <= link.lastSeq + 1) return link;
    // Retention can drop segments during verification too.
    const dropped = await this.#droppedFrom(lane);
    if (dropped === undefined || dropped.seq <= link.lastSeq || dropped.seq >= firstSeq) return link;
    return { lane, lastSeq: dropped.seq, macs: [dropped.mac] };
  }

  /** Notes the break before a segment that does not follow: the entries that are missing, or its own. */
  #note(link: Link, segment: Segment): void {
    const { lane, firstSeq, lastSeq } = segment;
    if (firstSeq > link.lastSeq + 1) {
      const gap = gapBefore(link, segment);
      this.#add({ ...gap, what: "broken" }, [sealGap(this.#auditKey, gap, segment)]);
      return;
    }
    const before = this.#flaws.at(-1);
    const goesOn = before?.lane === lane && before.what === "broken" && before.lastSeq >= firstSeq - 1;
    if (goesOn && before.seals.length === 0) before.lastSeq = Math.max(lastSeq, before.lastSeq);
    else this.#add({ lane, seq: firstSeq, lastSeq, what: "broken" });
  }

  /** Compares the segment's checkpoints. @param follows - if it does not follow, that is a flaw already */
  #compare({ lane, firstSeq, lastSeq, mac }: Segment, follows: boolean): void {
    const ahead = this.#due.get(lane) ?? [];
    for (let next = ahead.at(-1); next && next.seq <= lastSeq; next = ahead.at(-1)) {
      ahead.pop();
      // Retention may have dropped the segments before, or their absence is a flaw already.
      if (!follows || next.seq < firstSeq) continue;
      // A checkpoint is of the end of a segment.
      if (next.seq === lastSeq && next.mac === mac.toString("hex")) this.#lost = undefined;
      else this.#addLost({ lane, seq: firstSeq, lastSeq }, next);
    }
  }

  #addLost(where: Range, checkpoint: Checkpoint): void {
    const known = this.#lostFrom(checkpoint);
    if (known) {
      this.#accept(known);
      return;
    }
    if (this.#lost?.lane !== where.lane) this.#lost = this.#add({ ...where, what: "lost" });
    this.#lost.lastSeq = where.lastSeq;
    this.#lost.lost.push(checkpoint);
  }

  #add(flaw: Range & Pick<Flaw, "what">, seals: readonly string[] = [], lost: Checkpoint[] = []): FoundFlaw {
    const found = { ...flaw, seals, lost };
    if (this.#flaws.length < flawsMax) this.#flaws.push(found);
    else this.#moreFlaws += 1;
    return found;
  }

  /** Whether the gap before the segment is known. If so, its acceptance binds the segment. */
  #isAccepted(link: Link, segment: Segment): boolean {
    const gap = gapBefore(link, segment);
    const known = this.#acceptancesOf(gap.lane).filter((one) => gapName(one) === gapName(gap));
    if (known.length === 0) return false;
    const seal = sealGap(this.#auditKey, gap, segment);
    if (!known.some(({ seals }) => seals.includes(seal))) return false;
    this.#accept(gap);
    return true;
  }

  /** The earliest loss that was accepted with this checkpoint. */
  #lostFrom(checkpoint: Checkpoint): Range | undefined {
    return this.#acceptancesOf(checkpoint.lane)
      .filter((one) => one.seals.includes(sealLostEnd(this.#auditKey, one, checkpoint)))
      .sort((a, b) => a.seq - b.seq)[0];
  }

  #acceptancesOf(lane: string): Acceptance[] {
    return this.#chain.acceptances.filter((one) => one.lane === lane);
  }

  #accept(range: Range | undefined): void {
    if (range === undefined) return;
    const { lane, seq, lastSeq } = range;
    this.#accepted.set(gapName(range), { lane, seq, lastSeq });
  }

  /** What retention dropped from the lane, if the seal proves it. */
  async #droppedFrom(lane: string): Promise<Dropped | undefined> {
    const dropped = await this.#chain.dropped(lane);
    return dropped && isProved(this.#auditKey, dropped) ? dropped : undefined;
  }
}

function gapBefore({ lane, lastSeq }: Link, { firstSeq }: Segment): Range {
  return { lane, seq: lastSeq + 1, lastSeq: firstSeq - 1 };
}

function sizeOf({ firstSeq, lastSeq }: Segment): number {
  return lastSeq - firstSeq + 1;
}
