import { isSameMac, macOf } from "../core/hash.ts";
import { type Acceptance, type Flaw, flawsMax, gapName, type Range, sealGap, sealLostEnd } from "./flaw.ts";
import { isWhole, type LaneEnd } from "./head.ts";
import type { Checkpoint } from "./journal.ts";
import { type Segment, segmentMac } from "./segment.ts";

/** The last entry of a lane that retention dropped, the mac of its segment, and a seal ({@link sealDropped}). */
export type Dropped = { readonly lane: string; readonly seq: number; readonly mac: Buffer; readonly seal: Buffer };

/** What the database holds beside the segments that are verified. */
export type Chain = {
  /** The end of the segment before this one in its lane; undefined if it is the first that is left. */
  readonly before: (segment: Segment) => Promise<Pick<Segment, "lane" | "lastSeq" | "mac"> | undefined>;
  /** Undefined if retention dropped nothing from the lane. */
  readonly dropped: (lane: string) => Promise<Dropped | undefined>;
  /** What is on record of losses that people accepted, and of retention. Only seals prove that it was not made up. */
  readonly known: () => Promise<{ readonly acceptances: readonly Acceptance[]; readonly prunes: readonly string[] }>;
  /** The last entry of the leaf before this one in its lane; 0 if there is none. */
  readonly leafBefore: (leaf: { readonly lane: string; readonly lastSeq: number }) => Promise<number>;
  /** The segment that holds this entry. */
  readonly holding: (entry: { readonly lane: string; readonly seq: number }) => Promise<Segment | undefined>;
  /** The last entry of a lane; 0 if none is left. */
  readonly lastOf: (lane: string) => Promise<number>;
  /** What ends with the same entry as another segment of its lane. */
  readonly doubled: () => Promise<readonly Range[]>;
  /** The end of the lane that has a head. */
  readonly end: () => Promise<LaneEnd>;
};

/** Seals what retention dropped from a lane: HMAC-SHA-256 under the audit key. */
export function sealDropped(auditKey: Uint8Array, dropped: Omit<Dropped, "seal">): Buffer {
  return macOf(auditKey, ["keyhole audit dropped v1", dropped.lane, dropped.seq, dropped.mac.toString("hex")]);
}

export function isProved(auditKey: Uint8Array, dropped: Dropped): boolean {
  return isSameMac(sealDropped(auditKey, dropped), dropped.seal);
}

/** What is wrong besides: segments that somebody added for entries that there are, and the end of people's lane. */
export async function otherFlaws(auditKey: Uint8Array, chain: Pick<Chain, "doubled" | "end">): Promise<Flaw[]> {
  const doubled = (await chain.doubled()).map((range): Flaw => ({ ...range, what: "broken", seals: [] }));
  const end = await chain.end();
  if (isWhole(auditKey, end)) return doubled;
  const { lane, head, newest } = end;
  return [...doubled, { lane, seq: head?.seq ?? 0, lastSeq: newest?.lastSeq ?? 0, what: "head", seals: [] }];
}

/** The end of a segment, which the next one of its lane follows. */
type Link = { readonly lane: string; readonly lastSeq: number; readonly mac: Buffer };

/** Goes through segments in order of lane and sequence, and says which of them do not follow the one before. */
export class ChainWalk {
  readonly #auditKey: Uint8Array;
  readonly #chain: Pick<Chain, "before" | "dropped" | "known">;
  readonly #flaws: (Flaw & { lastSeq: number })[] = [];
  readonly #accepted = new Map<string, Range>();
  #acceptances: Promise<readonly Acceptance[]> | undefined;
  #link: Link | undefined;
  #moreFlaws = 0;

  constructor(auditKey: Uint8Array, chain: Pick<Chain, "before" | "dropped" | "known">) {
    this.#auditKey = auditKey;
    this.#chain = chain;
  }

  /** At most 1000 of what was found so far. */
  get flaws(): readonly Flaw[] {
    return this.#flaws;
  }

  get moreFlaws(): number {
    return this.#moreFlaws;
  }

  /** The losses that were found and are known. */
  get accepted(): readonly Range[] {
    return [...this.#accepted.values()];
  }

  /**
   * Goes on to the next segment, and notes a flaw if that does not follow the one before.
   * @returns whether it does, or follows a loss that was accepted
   */
  async pass(segment: Segment): Promise<boolean> {
    const { lane, firstSeq, mac } = segment;
    const link = await this.#linkTo(segment);
    const follows = firstSeq === link.lastSeq + 1 && segmentMac(this.#auditKey, link.mac, segment).equals(mac);
    const isInOrder = follows || (await this.#isAccepted(link, segment));
    if (!isInOrder) this.#note(link, segment);
    this.#link = { lane, lastSeq: Math.max(segment.lastSeq, link.lastSeq), mac };
    return isInOrder;
  }

  /** What the segment should follow. */
  async #linkTo(segment: Segment): Promise<Link> {
    const { lane, firstSeq } = segment;
    const known = this.#link?.lane === lane ? this.#link : undefined;
    if (known !== undefined && firstSeq <= known.lastSeq + 1) return known;
    const before = (await this.#chain.before(segment)) ?? { lane, lastSeq: 0, mac: Buffer.alloc(0) };
    if (firstSeq <= before.lastSeq + 1) return before;
    // Retention can drop segments during verification too.
    const dropped = await this.#chain.dropped(lane);
    const isBetween = dropped !== undefined && dropped.seq > before.lastSeq && dropped.seq < firstSeq;
    return isBetween && isProved(this.#auditKey, dropped) ? { lane, lastSeq: dropped.seq, mac: dropped.mac } : before;
  }

  /** Notes the break before a segment that does not follow: the entries that are missing, or its own. */
  #note(link: Link, segment: Segment): void {
    const { lane, firstSeq, lastSeq } = segment;
    if (firstSeq > link.lastSeq + 1) {
      const gap = gapBefore(link, segment);
      this.#add({ ...gap, what: "broken", seals: [sealGap(this.#auditKey, gap, segment)] });
      return;
    }
    const before = this.#flaws.at(-1);
    const goesOn = before?.lane === lane && before.lastSeq >= firstSeq - 1;
    if (goesOn && before.seals.length === 0) before.lastSeq = Math.max(lastSeq, before.lastSeq);
    else this.#add({ lane, seq: firstSeq, lastSeq, what: "broken", seals: [] });
  }

  #add(flaw: Flaw): void {
    if (this.#flaws.length < flawsMax) this.#flaws.push(flaw);
    else this.#moreFlaws += 1;
  }

  /** Whether the gap before the segment is known. If so, its acceptance binds the segment. */
  async #isAccepted(link: Link, segment: Segment): Promise<boolean> {
    const gap = gapBefore(link, segment);
    this.#acceptances ??= this.#chain.known().then(({ acceptances }) => acceptances);
    const known = (await this.#acceptances).filter((one) => gapName(one) === gapName(gap));
    if (known.length === 0) return false;
    const seal = sealGap(this.#auditKey, gap, segment);
    if (!known.some(({ seals }) => seals.includes(seal))) return false;
    this.#accepted.set(gapName(gap), gap);
    return true;
  }
}

function gapBefore({ lane, lastSeq }: Link, { firstSeq }: Segment): Range {
  return { lane, seq: lastSeq + 1, lastSeq: firstSeq - 1 };
}

/**
 * Compares the checkpoints of a server's log with the segments: each is of the end of one.
 * @returns the entries of which the log has seen others, and the losses that were found and are known
 */
export async function compareCheckpoints(
  auditKey: Uint8Array,
  chain: Pick<Chain, "holding" | "lastOf" | "dropped" | "known">,
  checkpoints: readonly Checkpoint[],
): Promise<{ readonly flaws: Flaw[]; readonly accepted: Range[] }> {
  const { acceptances } = checkpoints.length === 0 ? { acceptances: [] } : await chain.known();
  const [flaws, accepted]: [Flaw[], Range[]] = [[], []];
  /** The earliest loss that was accepted with this checkpoint. */
  const lossWith = (checkpoint: Checkpoint) =>
    acceptances
      .filter((one) => one.lane === checkpoint.lane && one.seals.includes(sealLostEnd(auditKey, one, checkpoint)))
      .sort((a, b) => a.seq - b.seq)[0];
  for (const [lane, some] of Map.groupBy(checkpoints, (one) => one.lane)) {
    const dropped = await chain.dropped(lane);
    const end = Math.max(await chain.lastOf(lane), dropped && isProved(auditKey, dropped) ? dropped.seq : 0);
    const lost = new Map<Range, Checkpoint[]>();
    let differing: (Range & { lastSeq: number }) | undefined;
    const behind = { lane, seq: end + 1, lastSeq: end };
    for (const one of some.toSorted((a, b) => a.seq - b.seq)) {
      const known = lossWith(one);
      // A checkpoint that is known to be lost from some entry on still shows the entries before that one.
      const needed = known === undefined ? one.seq : known.seq - 1;
      const segment = one.seq > end ? undefined : await chain.holding(one);
      if (needed > end) {
        behind.lastSeq = Math.max(behind.lastSeq, needed);
        lost.set(behind, [...(lost.get(behind) ?? []), one]);
      } else if (segment?.lastSeq === one.seq && segment.mac.toString("hex") === one.mac) differing = undefined;
      else if (known !== undefined) accepted.push({ lane, seq: known.seq, lastSeq: known.lastSeq });
      // Retention may have dropped the segment, or its absence is a flaw already.
      else if (segment !== undefined) {
        differing ??= { lane, seq: segment.firstSeq, lastSeq: segment.lastSeq };
        differing.lastSeq = segment.lastSeq;
        lost.set(differing, [...(lost.get(differing) ?? []), one]);
      }
    }
    for (const [range, shown] of lost) {
      flaws.push({ ...range, what: "lost", seals: shown.map((one) => sealLostEnd(auditKey, range, one)) });
    }
  }
  return { flaws, accepted };
}
