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
 * Verifies the chain of every lane, and goes on after a flaw. Only checkpoints from outside the database show that the
 * end of a lane, or all of it, was removed, if its head was put back as well or it has none.
 * @param progress - called now and then with the number of entries verified so far
 */
export async function verifyChain(
  auditKey: Uint8Array,
  chain: Chain,
  checkpoints: readonly Checkpoint[] = [],
  progress: (entries: number) => void = () => {},
): Promise<Verified> {
  const walk = new Walk(auditKey, chain, checkpoints);
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

const progressEvery = 1000;
const flawsMax = 1000;
/** How many segments are read again to tell what was moved. Beyond that, flaws are named by their numbers alone. */
const readAgainMax = 1_000_000;
const straysMax = 4;

/** Where the walk is in a lane. */
type Link = {
  readonly lane: string;
  readonly lastSeq: number;
  /** What the next segment follows. */
  readonly mac: Buffer;
  /** How much was added to the numbers of the segments from here on. */
  readonly shift: number;
  /** There was a flaw just before: the next segment may follow a stray, or have another number. */
  readonly isDoubtful: boolean;
  /** The macs of the newest segments that were found in a wrong place, or belong in one. */
  readonly strays: readonly Buffer[];
};

type FoundFlaw = Omit<Flaw, "lastSeq"> & {
  lastSeq: number;
  /** The checkpoints that show it. */
  readonly lost: Checkpoint[];
};

/** Goes through the segments of all lanes. */
class Walk {
  readonly #auditKey: Uint8Array;
  readonly #chain: Chain;
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
  #readAgain = 0;

  constructor(auditKey: Uint8Array, chain: Chain, checkpoints: readonly Checkpoint[]) {
    this.#auditKey = auditKey;
    this.#chain = chain;
    this.#due = Map.groupBy(checkpoints, ({ lane }) => lane);
    for (const some of this.#due.values()) some.sort((a, b) => b.seq - a.seq);
  }

  /** Goes on to the next segment, and notes a flaw if that does not follow the last one. */
  async pass(segment: Segment): Promise<void> {
    const link = await this.#linkTo(segment);
    const shift = this.#shiftOf(link, segment);
    const { lane, lastSeq, mac } = segment;
    if (shift !== undefined) this.#link = { ...link, lastSeq, mac, shift, isDoubtful: shift !== link.shift };
    else if (this.#isAccepted(link, segment)) this.#link = { ...linkAt(lane), lastSeq, mac };
    else {
      const strays = await this.#note(link, segment);
      this.#link = { ...link, lastSeq: Math.max(lastSeq, link.lastSeq), isDoubtful: true, strays };
    }
    this.#ends.set(lane, this.#link.lastSeq - this.#link.shift);
    this.#compare(segment, shift);
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
      if (lost.length > 0) this.#add({ lane, seq: end + 1, lastSeq, what: "removed" }, [], lost);
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
    const link = this.#link?.lane === lane ? this.#link : linkAt(lane);
    if (firstSeq <= link.lastSeq + 1) return link;
    // Retention can drop segments during verification too.
    const dropped = await this.#droppedFrom(lane);
    if (dropped === undefined || dropped.seq <= link.lastSeq || dropped.seq >= firstSeq) return link;
    return { ...linkAt(lane), lastSeq: dropped.seq, mac: dropped.mac };
  }

  /** By how much the segment was renumbered if it follows, 0 if it was not; undefined if it does not follow. */
  #shiftOf({ lastSeq, mac, shift, isDoubtful, strays }: Link, segment: Segment): number | undefined {
    const { firstSeq } = segment;
    if (isDoubtful ? firstSeq > lastSeq + 1 : firstSeq !== lastSeq + 1) return undefined;
    // The size of what is missing or was added is not known, but most segments have the same size.
    const size = sizeOf(segment);
    const shifts = isDoubtful ? [...new Set([shift, 0, shift - size, shift + size])] : [shift];
    const macs = isDoubtful ? [mac, ...strays] : [mac];
    return shifts.find((by) => macs.some((one) => follows(this.#auditKey, one, segment, firstSeq - by)));
  }

  /** Notes the flaw at a segment that does not follow. @returns the strays from now on */
  async #note(link: Link, segment: Segment): Promise<Buffer[]> {
    const { firstSeq, mac } = segment;
    // Of several flaws in a row, only the first is worth reading the rest of the lane for.
    const original =
      link.isDoubtful || this.#readAgain >= readAgainMax
        ? this.#addSimply(link, segment)
        : await this.#classify(link, segment);
    // If its mac alone was changed, the next segment follows what the mac should be.
    const expected = firstSeq === link.lastSeq + 1 ? [segmentMac(this.#auditKey, link.mac, segment)] : [];
    const found = [mac, ...expected, ...(original ? [original.mac] : [])];
    return [...found, ...link.strays].slice(0, straysMax);
  }

  /** Names the flaw at a segment by its numbers alone. */
  #addSimply(link: Link, segment: Segment): undefined {
    const { lane, firstSeq, lastSeq } = segment;
    const seq = link.lastSeq + 1;
    if (firstSeq > seq) return void this.#addGap(link, segment);
    const before = this.#flaws.at(-1);
    const what = firstSeq < seq ? "added" : "changed";
    const isNext = before?.lane === lane && before.lastSeq === firstSeq - 1 && before.lost.length === 0;
    if (what === "changed" && isNext && before.what === "changed") before.lastSeq = lastSeq;
    else this.#add({ lane, seq: firstSeq, lastSeq, what });
  }

  #addGap(link: Link, next: Segment): void {
    const gap = gapBefore(link, next);
    this.#add({ ...gap, what: "removed" }, [sealGap(this.#auditKey, gap, next)]);
  }

  /**
   * Names the flaw at `segment`. Its mac depends on the one before and on the sequence numbers, so it shows where a
   * segment was before it was moved.
   * @returns the segment that was written in this place, if it is elsewhere
   */
  async #classify(link: Link, segment: Segment): Promise<Segment | undefined> {
    const { lane, firstSeq, lastSeq } = segment;
    const seq = link.lastSeq + 1;
    const size = sizeOf(segment);
    if (firstSeq < seq) {
      this.#add({ lane, seq: firstSeq, lastSeq, what: "added" });
      return undefined;
    }
    const { original, wasMoved, laterOnesMovedUp } = await this.#look(link, segment);
    if (original && !wasMoved && original.firstSeq <= seq + size && firstSeq === seq) {
      this.#add({ lane, seq, lastSeq, what: "added" });
    } else if (original) this.#add({ lane, seq, lastSeq: seq + sizeOf(original) - 1, what: "reordered" });
    else if (firstSeq > seq) this.#addGap(link, segment);
    else this.#add({ lane, seq, lastSeq, what: laterOnesMovedUp ? "removed" : "changed" });
    return original;
  }

  /** Looks in the rest of the lane for what explains a segment that does not follow. */
  async #look(link: Link, segment: Segment) {
    const { lane, firstSeq, lastSeq } = segment;
    const seq = link.lastSeq + 1;
    const size = sizeOf(segment);
    const follow = (previous: Buffer, one: Segment, at: number) => follows(this.#auditKey, previous, one, at);
    let original: Segment | undefined;
    let wasMoved = false;
    let laterOnesMovedUp = false;
    for await (const other of this.#chain.segments({ lane, seq: firstSeq })) {
      this.#readAgain += 1;
      if (other.firstSeq === firstSeq && other.at === segment.at) continue;
      if (follow(link.mac, other, seq - link.shift)) original = other;
      // The segment may have followed `other`; edits nearby may have shifted the numbers of both by a segment.
      const next = other.lastSeq + 1;
      wasMoved ||= [next - size, next, next + size].some((at) => follow(other.mac, segment, at));
      if (other.firstSeq === lastSeq + 1) {
        laterOnesMovedUp = [size, sizeOf(other)].some((by) => follow(segment.mac, other, other.firstSeq + by));
      }
      if ((original && wasMoved) || this.#readAgain >= readAgainMax) break;
    }
    return { original, wasMoved, laterOnesMovedUp };
  }

  /** Compares the segment's checkpoints. @param shift - undefined if it does not follow, which is a flaw already */
  #compare({ lane, firstSeq, lastSeq, mac }: Segment, shift: number | undefined): void {
    const ahead = this.#due.get(lane) ?? [];
    const by = shift ?? 0;
    for (let next = ahead.at(-1); next && next.seq <= lastSeq - by; next = ahead.at(-1)) {
      ahead.pop();
      // Retention may have dropped the segments before, or their absence is a flaw already.
      if (shift === undefined || next.seq < firstSeq - by) continue;
      // A checkpoint is of the end of a segment.
      if (next.seq === lastSeq - by && next.mac === mac.toString("hex")) this.#lost = undefined;
      else this.#addLost({ lane, seq: firstSeq, lastSeq }, next);
    }
  }

  #addLost(where: Range, checkpoint: Checkpoint): void {
    const known = this.#lostFrom(checkpoint);
    if (known) {
      this.#accept(known);
      return;
    }
    if (this.#lost?.lane !== where.lane) this.#lost = this.#add({ ...where, what: "changed" });
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
    return dropped && isSameMac(sealDropped(this.#auditKey, dropped), dropped.seal) ? dropped : undefined;
  }
}

function linkAt(lane: string): Link {
  return { lane, lastSeq: 0, mac: Buffer.alloc(0), shift: 0, isDoubtful: false, strays: [] };
}

function gapBefore({ lane, lastSeq }: Link, { firstSeq }: Segment): Range {
  return { lane, seq: lastSeq + 1, lastSeq: firstSeq - 1 };
}

function sizeOf({ firstSeq, lastSeq }: Segment): number {
  return lastSeq - firstSeq + 1;
}

/** Whether the segment was written directly after the one with this mac, from entry `seq` of its lane on. */
function follows(auditKey: Uint8Array, previous: Uint8Array, segment: Segment, seq: number): boolean {
  const lastSeq = seq + segment.lastSeq - segment.firstSeq;
  return isSameMac(segmentMac(auditKey, previous, { ...segment, firstSeq: seq, lastSeq }), segment.mac);
}
