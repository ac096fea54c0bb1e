import { timingSafeEqual } from "node:crypto";
import type { Checkpoint } from "./journal.ts";
import { type Segment, segmentMac } from "./segment.ts";

/**
 * Up to where retention dropped a lane: its last dropped entry, and the mac of the segment that ended with it. The seal
 * proves it; see {@link sealDropped}.
 */
export type Dropped = { readonly lane: string; readonly seq: number; readonly mac: Buffer; readonly seal: Buffer };

/** Where a chain is read from. */
export type Chain = {
  /** All segments, or those of one lane from a sequence number on; ordered by lane, sequence and time. */
  readonly segments: (from?: { readonly lane: string; readonly seq: number }) => AsyncIterable<Segment>;
  /** Undefined if retention dropped nothing from the lane. */
  readonly dropped: (lane: string) => Promise<Dropped | undefined>;
};

/** The first flaw found, and where. The entries of a segment have one mac, so a flaw is in one of them or in all. */
export type Flaw = {
  readonly lane: string;
  /** The first entry that may be missing or differ from what was written. */
  readonly seq: number;
  readonly lastSeq: number;
  readonly what: "changed" | "removed" | "reordered" | "added";
};

/** A flaw in a sentence for people. */
export function describeFlaw({ lane, seq, lastSeq, what }: Flaw): string {
  const entries = lastSeq > seq ? `entries ${seq} to ${lastSeq}` : `entry ${seq}`;
  const were = lastSeq > seq ? "were" : "was";
  const sentences = {
    changed: lastSeq > seq ? `at least one of ${entries} was changed` : `${entries} was changed`,
    removed: `${entries} ${were} removed`,
    reordered: `${entries} ${were} reordered: others stand in that place`,
    added: `${entries} ${were} added: Keyhole did not write what stands there`,
  };
  return `Lane ${lane}: ${sentences[what]}.`;
}

/** A chain without flaws. */
export type Verified = {
  readonly entries: number;
  readonly lanes: number;
  /** How many checkpoints were given. */
  readonly checkpoints: number;
};

/**
 * Verifies the chain of every lane. Only checkpoints kept outside the database can show that the end of a lane, or a whole
 * lane, was removed.
 *
 * @param checkpoints - all of them are compared
 * @param progress - called now and then with the number of entries verified so far
 */
export async function verifyChain(
  auditKey: Uint8Array,
  chain: Chain,
  checkpoints: readonly Checkpoint[] = [],
  progress: (entries: number) => void = () => {},
): Promise<Verified | Flaw> {
  /** The checkpoints that the walk did not come to yet, of each lane, the highest first. */
  const due = Map.groupBy(checkpoints, ({ lane }) => lane);
  for (const some of due.values()) some.sort((a, b) => b.seq - a.seq);
  /** The last entry of each lane. */
  const ends = new Map<string, number>();
  let last: Link | undefined;
  let entries = 0;
  let reported = 0;
  for await (const segment of chain.segments()) {
    const { lane, firstSeq, lastSeq, mac } = segment;
    if (last?.lane !== lane) last = { lane, lastSeq: 0, mac: Buffer.alloc(0) };
    if (firstSeq > last.lastSeq + 1) {
      // Retention can drop segments during verification too.
      const dropped = await droppedFrom(auditKey, chain, lane);
      if (dropped?.seq === firstSeq - 1) last = { lane, lastSeq: dropped.seq, mac: dropped.mac };
    }
    if (firstSeq !== last.lastSeq + 1 || !follows(auditKey, last.mac, segment)) {
      return classify(auditKey, chain, last, segment);
    }
    last = segment;
    ends.set(lane, lastSeq);
    entries += lastSeq - firstSeq + 1;
    if (entries - reported >= progressEvery) {
      reported = entries;
      progress(entries);
    }
    const ahead = due.get(lane) ?? [];
    for (let next = ahead.at(-1); next && next.seq <= lastSeq; next = ahead.at(-1)) {
      ahead.pop();
      // Retention may have dropped the segments before. A checkpoint is of the end of a segment.
      if (next.seq < firstSeq || (next.seq === lastSeq && next.mac === mac.toString("hex"))) continue;
      return { lane, seq: firstSeq, lastSeq, what: "changed" };
    }
  }
  progress(entries);
  // Retention may have dropped all entries of a lane, or those up to its checkpoint.
  for (const [lane, [highest]] of due) {
    const end = ends.get(lane) ?? (await droppedFrom(auditKey, chain, lane))?.seq ?? 0;
    if (highest && end < highest.seq) return { lane, seq: end + 1, lastSeq: highest.seq, what: "removed" };
  }
  return { entries, lanes: ends.size, checkpoints: checkpoints.length };
}

/** Whether the segment was written directly after the one with this mac, from entry `seq` of its lane on. */
function follows(auditKey: Uint8Array, previous: Uint8Array, segment: Segment, seq = segment.firstSeq): boolean {
  const lastSeq = seq + segment.lastSeq - segment.firstSeq;
  return isEqual(segmentMac(auditKey, previous, { ...segment, firstSeq: seq, lastSeq }), segment.mac);
}

/** Seals what retention dropped from a lane: HMAC-SHA-256 under the audit key. */
export function sealDropped(auditKey: Uint8Array, dropped: Omit<Dropped, "seal">): Buffer {
  const fields = ["keyhole audit dropped v1", dropped.lane, dropped.seq, dropped.mac.toString("hex")];
  return new Bun.CryptoHasher("sha256", auditKey).update(JSON.stringify(fields)).digest() as Buffer;
}

/** What retention dropped from the lane, if the seal proves it. */
async function droppedFrom(auditKey: Uint8Array, chain: Chain, lane: string): Promise<Dropped | undefined> {
  const dropped = await chain.dropped(lane);
  return dropped && isEqual(sealDropped(auditKey, dropped), dropped.seal) ? dropped : undefined;
}

function isEqual(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

type Link = Pick<Segment, "lane" | "lastSeq" | "mac">;

const progressEvery = 1000;

/**
 * Names the flaw at `segment`, which does not follow `last`. A mac depends on the previous mac and on the sequence
 * numbers, so a segment that was moved can be matched with its original position.
 */
async function classify(auditKey: Uint8Array, chain: Chain, last: Link, segment: Segment): Promise<Flaw> {
  const { lane, firstSeq, lastSeq } = segment;
  const seq = last.lastSeq + 1;
  const size = lastSeq - firstSeq + 1;
  if (firstSeq < seq) return { lane, seq: firstSeq, lastSeq, what: "added" };
  /** The segment that was written at `seq`. */
  let original: Segment | undefined;
  let wasMoved = false;
  let laterOnesMovedUp = false;
  for await (const other of chain.segments({ lane, seq: firstSeq })) {
    if (other.firstSeq === firstSeq && other.at === segment.at) continue;
    if (follows(auditKey, last.mac, other, seq)) original = other;
    // The segment may have followed `other`; edits nearby may have shifted the numbers of both by a segment.
    const next = other.lastSeq + 1;
    wasMoved ||= [next - size, next, next + size].some((at) => follows(auditKey, other.mac, segment, at));
    if (other.firstSeq === lastSeq + 1) {
      laterOnesMovedUp = sizesOf(segment, other).some((by) =>
        follows(auditKey, segment.mac, other, other.firstSeq + by),
      );
    }
    if (original && wasMoved) break;
  }
  if (original && !wasMoved && original.firstSeq <= seq + size && firstSeq === seq) {
    return { lane, seq, lastSeq, what: "added" };
  }
  if (original) return { lane, seq, lastSeq: seq + original.lastSeq - original.firstSeq, what: "reordered" };
  if (firstSeq > seq) return { lane, seq, lastSeq: firstSeq - 1, what: "removed" };
  return { lane, seq, lastSeq, what: laterOnesMovedUp ? "removed" : "changed" };
}

/** By how much a missing segment may have moved later ones up: nobody knows its size, but most are of one size. */
function sizesOf(...segments: readonly Segment[]): number[] {
  return segments.map(({ firstSeq, lastSeq }) => lastSeq - firstSeq + 1);
}
