import { type Flaw, flawsMax, gapName, type Range } from "./flaw.ts";
import { segmentTree } from "./leaf.ts";
import { hasLeaf, type LeafSet, openLeaves, sealLeaves, unionOf } from "./leaf-set.ts";
import { type Segment, segmentMac } from "./segment.ts";
import { leafHash } from "./tree.ts";
import type { StoredLeaf } from "./tree-walk.ts";
import { type Chain, isProved } from "./verify.ts";

/** A leaf, and where the columns beside its hash say that its segment is. */
export type IndexedLeaf = StoredLeaf & { readonly lane: string; readonly lastSeq: number };
export type JoinKeys = { readonly auditKey: Uint8Array; readonly saltKey: Uint8Array };

/**
 * Holds the leaves of the tree against the segments that are stored: each leaf has a segment that hashes to it, unless
 * retention dropped it or a person accepted its loss. Nothing is believed because of the columns of a leaf: one that
 * leads to no fitting segment is a flaw.
 */
export class LeafJoin {
  readonly #keys: JoinKeys;
  readonly #chain: Pick<Chain, "known" | "dropped" | "leafBefore" | "before">;
  #known: ReturnType<typeof openKnown> | undefined;
  readonly #flaws: Flaw[] = [];
  readonly #gone: (Range & { readonly leaf: number })[] = [];
  readonly #accepted = new Map<string, Range>();
  #moreFlaws = 0;
  #last: Pick<Segment, "lane" | "lastSeq" | "mac"> = { lane: "", lastSeq: 0, mac: Buffer.alloc(0) };

  constructor(keys: JoinKeys, chain: Pick<Chain, "known" | "dropped" | "leafBefore" | "before">) {
    this.#keys = keys;
    this.#chain = chain;
  }

  /** Compares the next leaf. @param segments - all that its columns lead to */
  async pass(leaf: IndexedLeaf, segments: readonly Segment[]): Promise<void> {
    const [first] = segments;
    const segment = segments.find((one) => this.#fits(leaf, one));
    if (segment !== undefined && (await this.#follows(segment))) return;
    if (first === undefined && (await this.#isKnown(leaf))) return;
    const { lane, lastSeq } = leaf;
    if (this.#flaws.length + this.#gone.length >= flawsMax) this.#moreFlaws += 1;
    else if (first !== undefined) {
      this.#flaws.push({ lane, seq: first.firstSeq, lastSeq, what: "broken", seals: [] });
    } else {
      const seq = (await this.#chain.leafBefore(leaf)) + 1;
      this.#gone.push({ lane, seq, lastSeq, leaf: leaf.leaf });
    }
  }

  /** Returns what was found. What retention dropped, or a person accepted, while this went on is not. */
  async end(): Promise<{ readonly flaws: Flaw[]; readonly moreFlaws: number; readonly accepted: Range[] }> {
    this.#known = undefined;
    const gone: { range: { lane: string; seq: number; lastSeq: number }; leaves: LeafSet }[] = [];
    for (const { leaf, ...range } of this.#gone) {
      if (await this.#isKnown({ ...range, leaf })) continue;
      const before = gone.findLast((one) => one.range.lane === range.lane);
      const goesOn = before !== undefined && before.range.lastSeq === range.seq - 1;
      const found = goesOn ? before : { range, leaves: [] };
      found.leaves = unionOf([found.leaves, [[leaf, leaf]]]);
      found.range.lastSeq = range.lastSeq;
      if (!goesOn) gone.push(found);
    }
    const flaws = gone.map(({ range, leaves }): Flaw => {
      return { ...range, what: "gone", seals: [sealLeaves(this.#keys.auditKey, leaves)] };
    });
    return {
      flaws: [...this.#flaws, ...flaws],
      moreFlaws: this.#moreFlaws,
      accepted: [...this.#accepted.values()],
    };
  }

  #fits({ hashes }: StoredLeaf, segment: Segment): boolean {
    const tree = segmentTree(this.#keys.saltKey, segment);
    return tree !== undefined && leafHash(tree.leaf).equals(hashes.subarray(0, 32));
  }

  /** Whether its mac is right, if the segment before is there: a leaf does not tell how its entries are spelt. */
  async #follows(segment: Segment): Promise<boolean> {
    const { lane, firstSeq, mac } = segment;
    const isNext = this.#last.lane === lane && this.#last.lastSeq === firstSeq - 1;
    const first = { lane, lastSeq: 0, mac: Buffer.alloc(0) };
    const before = isNext ? this.#last : firstSeq === 1 ? first : await this.#chain.before(segment);
    this.#last = segment;
    return before?.lastSeq !== firstSeq - 1 || segmentMac(this.#keys.auditKey, before.mac, segment).equals(mac);
  }

  async #isKnown({ leaf, lane, lastSeq }: Omit<IndexedLeaf, "hashes">): Promise<boolean> {
    this.#known ??= openKnown(this.#keys.auditKey, await this.#chain.known());
    const accepted = this.#known.accepted.find(({ leaves }) => hasLeaf(leaves, leaf));
    if (accepted !== undefined) this.#accepted.set(gapName(accepted.range), accepted.range);
    if (accepted !== undefined || hasLeaf(this.#known.pruned ?? [], leaf)) return true;
    if (this.#known.pruned !== undefined) return false;
    // Before 0.3.0, retention named only the last entry that it dropped of each lane.
    const dropped = await this.#chain.dropped(lane);
    return dropped !== undefined && dropped.seq >= lastSeq && isProved(this.#keys.auditKey, dropped);
  }
}

/** The leaves that need no segment any more, as far as a seal proves it. */
export function openKnown(auditKey: Uint8Array, { acceptances, prunes }: Awaited<ReturnType<Chain["known"]>>) {
  const opened = (texts: readonly string[]) =>
    texts.map((text) => openLeaves(auditKey, text)).filter((set) => set !== undefined);
  const accepted = acceptances.map(({ lane, seq, lastSeq, seals }) => {
    return { range: { lane, seq, lastSeq }, leaves: unionOf(opened(seals)) };
  });
  const pruned = opened(prunes);
  return { accepted, pruned: pruned.length === 0 ? undefined : unionOf(pruned) };
}
