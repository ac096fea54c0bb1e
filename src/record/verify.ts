import { isSameMac, macOf } from "../core/hash.ts";
import { type Acceptance, flawsMax, gapName, type LaneFlaw, laneFlaw, type Range, sealGap } from "./flaw.ts";
import { isWhole, type LaneEnd } from "./head.ts";
import { Leaf } from "./leaf.ts";
import { hasLeaf, openLeaves, sealLeaves, sealLeft, unionOf } from "./leaf-set.ts";
import { monthOfLeaf } from "./month.ts";
import { decodeEntries, type Segment, segmentMac } from "./segment.ts";
import { leafHash } from "./tree.ts";

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
  /** These leaves as they are stored. Those that are not there are left out. */
  readonly leavesAt: (leaves: readonly number[]) => AsyncIterable<LeafOfSegments>;
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

/** What is wrong with the end of people's lane. */
export async function headFlaws(auditKey: Uint8Array, chain: Pick<Chain, "end">): Promise<LaneFlaw[]> {
  const end = await chain.end();
  if (isWhole(auditKey, end)) return [];
  const { lane, head, newest } = end;
  return [laneFlaw({ lane, seq: head?.seq ?? 0, lastSeq: newest?.lastSeq ?? 0 }, "head")];
}

/** The leaves that need no segment any more: people accepted their loss, or retention dropped it. A seal proves each. */
export async function knownLeaves(auditKey: Uint8Array, chain: Pick<Chain, "known">) {
  const { acceptances, prunes } = await chain.known();
  const leavesOf = (texts: readonly string[]) =>
    unionOf(texts.map((text) => openLeaves(auditKey, text)).filter((set) => set !== undefined));
  const accepted = acceptances.map((range) => ({ range, leaves: leavesOf(range.seals) }));
  return { accepted, pruned: leavesOf(prunes) };
}

/** The end of a segment, which the next one of its lane follows. */
type Link = { readonly lane: string; readonly lastSeq: number; readonly mac: Buffer };

/** A leaf as it is stored: the entries that it is of, as its columns say. */
export type LeafOfSegments = {
  readonly leaf: number;
  readonly lane: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly hashes: Buffer;
};

/** A segment as it is stored, and the leaf that has it or comes next in the lane; null if there is none. */
export type StoredSegment = Segment & { readonly leaf?: LeafOfSegments | null };

/** Whether a segment is in the tree, as the columns say. */
export function isCovered({ leaf, firstSeq }: StoredSegment): boolean {
  return leaf != null && leaf.firstSeq <= firstSeq;
}

/** The segments of one leaf so far, and what is missing between them. */
type Group = { readonly of: LeafOfSegments; readonly built: Leaf; isOther: boolean; readonly gaps: Range[] };
/** Consecutive entries that the tree has and the audit has not: whole leaves, and seals of what is left of others. */
type Gone = {
  readonly range: Range & { lastSeq: number };
  readonly leaves: [number, number][];
  readonly seals: string[];
};

/**
 * Goes through segments in order of lane and sequence. Each must follow the one before, and all of a leaf must hash to it.
 * In the end each leaf must have had its segment, unless retention dropped that or a person accepted its loss. Nothing is
 * believed because of the columns beside a hash: a leaf that leads to no fitting segment is a flaw.
 */
export class AuditWalk {
  readonly #auditKey: Uint8Array;
  readonly #saltKey: Uint8Array | undefined;
  readonly #from: number;
  readonly #chain: WalkedChain;
  /** At most 1000 of what was found so far. */
  readonly flaws: LaneFlaw[] = [];
  readonly #accepted = new Map<string, Range>();
  /** The lanes of which the tree has other segments. */
  readonly flawedLanes = new Set<string>();
  /** 1 for each leaf from there on that has a segment. */
  readonly #found: Uint8Array;
  /** Others that must have one. */
  readonly #expected = new Set<number>();
  /** What the audit has not of leaves that it has otherwise, with a seal of what is left of each. */
  readonly #partial = new Map<number, { readonly gaps: readonly Range[]; readonly seal?: string }>();
  #group: Group | undefined;
  #acceptances: Promise<readonly Acceptance[]> | undefined;
  #link: Link | undefined;
  moreFlaws = 0;
  /** How many entries and lanes were passed. */
  entries = 0;
  lanes = 0;

  /** @param tree - the leaves that must have a segment in the end, and the key of their salts; without it, none is looked at */
  constructor(
    auditKey: Uint8Array,
    chain: WalkedChain,
    tree?: { readonly from: number; readonly to: number; readonly saltKey: Uint8Array },
  ) {
    this.#auditKey = auditKey;
    this.#chain = chain;
    this.#saltKey = tree?.saltKey;
    this.#from = tree?.from ?? 0;
    this.#found = new Uint8Array((tree?.to ?? 0) - this.#from);
  }

  /** The losses that were found and are known. */
  get accepted(): readonly Range[] {
    return [...this.#accepted.values()];
  }

  /**
   * Goes on to the next segment, and notes what is wrong with it, or missing before it.
   * @param entries - undefined if they are not as Keyhole writes them. Those of a leaf are looked at with that
   * @returns whether it can be read, and follows the one before or a loss that was accepted
   */
  async pass(segment: StoredSegment, entries = isCovered(segment) ? [] : decodeEntries(segment)): Promise<boolean> {
    const { lane, firstSeq, lastSeq, mac } = segment;
    if (this.#link?.lane !== lane) this.lanes += 1;
    this.entries += lastSeq - firstSeq + 1;
    const link = await this.#linkTo(segment);
    const follows = firstSeq === link.lastSeq + 1 && segmentMac(this.#auditKey, link.mac, segment).equals(mac);
    const isInOrder = follows || (await this.#isAccepted(link, segment));
    const isReadable = entries !== undefined;
    const gap = gapBefore(link, segment);
    const isBehindGap = gap.seq <= gap.lastSeq;
    if (isBehindGap && !isInOrder) this.#add(laneFlaw(gap, "broken", [sealGap(this.#auditKey, gap, segment)]));
    await this.#join(segment);
    if (isInOrder ? !isReadable : !isBehindGap) this.#noteChanged(segment);
    this.#link = { lane, lastSeq: Math.max(lastSeq, link.lastSeq), mac };
    return isInOrder && isReadable;
  }

  /** This leaf must have a segment in the end, too. */
  expect(leaf: number): void {
    this.#expected.add(leaf);
  }

  /** Adds a segment to its leaf, and judges the leaf before if that is another one. */
  async #join(segment: StoredSegment): Promise<void> {
    const of = isCovered(segment) ? segment.leaf : undefined;
    if (this.#group?.of.leaf !== of?.leaf) await this.close();
    if (of == null || this.#saltKey === undefined) return;
    const { lane, firstSeq } = segment;
    this.#group ??= { of, built: new Leaf(this.#saltKey, { lane, firstSeq: of.firstSeq }), isOther: false, gaps: [] };
    const { built, gaps } = this.#group;
    if (firstSeq > built.lastSeq + 1) gaps.push({ lane, seq: built.lastSeq + 1, lastSeq: firstSeq - 1 });
    if (firstSeq <= built.lastSeq || !built.add(segment)) this.#group.isOther = true;
  }

  /** Judges the last leaf: no segment of it follows. */
  async close(): Promise<void> {
    if (this.#group === undefined) return;
    const { of, built, isOther, gaps } = this.#group;
    this.#group = undefined;
    const { leaf, lane, firstSeq, lastSeq } = of;
    this.#found[leaf - this.#from] = 1;
    this.#expected.delete(leaf);
    // SQL can give a leaf another last entry, and hide by it that the lane goes on.
    const isTrue = leafHash(built.text).equals(of.hashes.subarray(0, 32)) && !isOther;
    if (isTrue && built.lastSeq === lastSeq) return;
    if (built.lastSeq < lastSeq && !isTrue) gaps.push({ lane, seq: built.lastSeq + 1, lastSeq });
    const seal = sealLeft(this.#auditKey, leaf, built.root);
    const known = (await this.#known()).filter(({ seals }) => seals.includes(seal));
    if (!isOther && gaps.length > 0 && known.length > 0) {
      for (const range of known) this.#accept(range);
      return;
    }
    this.flawedLanes.add(lane);
    if (isOther || gaps.length === 0) {
      const isNamed = this.flaws.some((one) => one.lane === lane && one.lastSeq >= firstSeq && one.seq <= lastSeq);
      if (!isNamed) this.#add(laneFlaw({ lane, seq: firstSeq, lastSeq }, "broken"));
    } else if (this.#partial.size < flawsMax) this.#partial.set(leaf, { gaps, seal });
  }

  /** Notes the leaves whose segments did not pass. What retention dropped, or a person accepted, until now is known. */
  async end(): Promise<void> {
    await this.close();
    const lost = [...this.#partial.keys()];
    if (lost.length === 0 && this.#missing().next().done) return;
    const { accepted, pruned } = await knownLeaves(this.#auditKey, this.#chain);
    for (const leaf of this.#missing()) {
      if (hasLeaf(pruned, leaf)) continue;
      const known = accepted.find(({ leaves }) => hasLeaf(leaves, leaf))?.range;
      if (known === undefined) lost.push(leaf);
      else this.#accept(known);
    }
    const gone: Gone[] = [];
    const ofLane = new Map<string, Gone>();
    for await (const stored of this.#chain.leavesAt(lost.sort((a, b) => a - b))) {
      if (monthOfLeaf(stored)) continue;
      const { leaf, lane, firstSeq: seq, lastSeq } = stored;
      const { gaps, seal } = this.#partial.get(leaf) ?? { gaps: [{ lane, seq, lastSeq }] };
      for (const gap of gaps) {
        let one = ofLane.get(gap.lane);
        if (one?.range.lastSeq !== gap.seq - 1) {
          one = { range: { ...gap }, leaves: [], seals: [] };
          ofLane.set(gap.lane, one);
          if (this.flaws.length + gone.length < flawsMax) gone.push(one);
          else this.moreFlaws += 1;
        }
        one.range.lastSeq = gap.lastSeq;
        if (seal === undefined) one.leaves.push([leaf, leaf]);
        else one.seals.push(seal);
      }
    }
    for (const { range, leaves, seals } of gone) {
      this.flawedLanes.add(range.lane);
      if (leaves.length > 0) seals.unshift(sealLeaves(this.#auditKey, unionOf([leaves])));
      this.#add(laneFlaw(range, "gone", seals));
    }
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

  /** Not as a list: retention may have dropped millions. */
  *#missing(): Generator<number> {
    yield* this.#expected;
    for (let at = this.#found.indexOf(0); at >= 0; at = this.#found.indexOf(0, at + 1)) yield this.#from + at;
  }

  #noteChanged({ lane, firstSeq, lastSeq }: Segment): void {
    const before = this.flaws.at(-1);
    const goesOn = before?.lane === lane && before.lastSeq >= firstSeq - 1 && before.seals === undefined;
    if (goesOn) {
      const both = { lane, seq: before.seq, lastSeq: Math.max(lastSeq, before.lastSeq) };
      this.flaws.splice(-1, 1, laneFlaw(both, "broken"));
    } else this.#add(laneFlaw({ lane, seq: firstSeq, lastSeq }, "broken"));
  }

  #add(flaw: LaneFlaw): void {
    if (this.flaws.length < flawsMax) this.flaws.push(flaw);
    else this.moreFlaws += 1;
  }

  /** Whether the gap before the segment is known. If so, its acceptance binds the segment. */
  async #isAccepted(link: Link, segment: Segment): Promise<boolean> {
    const gap = gapBefore(link, segment);
    const known = (await this.#known()).filter((one) => gapName(one) === gapName(gap));
    if (known.length === 0) return false;
    const seal = sealGap(this.#auditKey, gap, segment);
    if (!known.some(({ seals }) => seals.includes(seal))) return false;
    this.#accept(gap);
    return true;
  }

  #known(): Promise<readonly Acceptance[]> {
    this.#acceptances ??= this.#chain.known().then(({ acceptances }) => acceptances);
    return this.#acceptances;
  }

  #accept({ lane, seq, lastSeq }: Range): void {
    this.#accepted.set(gapName({ lane, seq, lastSeq }), { lane, seq, lastSeq });
  }
}

type WalkedChain = Pick<Chain, "before" | "dropped" | "known" | "leavesAt">;

function gapBefore({ lane, lastSeq }: Link, { firstSeq }: Segment): Range {
  return { lane, seq: lastSeq + 1, lastSeq: firstSeq - 1 };
}
