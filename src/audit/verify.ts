import { timingSafeEqual } from "node:crypto";
import { type ChainedRow, type Checkpoint, chainMac } from "./journal.ts";

/** The last entry that retention dropped from a lane. The seal proves it; see {@link sealDropped}. */
export type Dropped = { readonly lane: string; readonly seq: number; readonly mac: Buffer; readonly seal: Buffer };

/** Where a chain is read from. */
export type Chain = {
  /** All entries, or those of one lane from a sequence number on; ordered by lane, sequence and time. */
  readonly rows: (from?: { readonly lane: string; readonly seq: number }) => AsyncIterable<ChainedRow>;
  /** Undefined if retention dropped nothing from the lane. */
  readonly dropped: (lane: string) => Promise<Dropped | undefined>;
};

/** The first flaw found, and where. */
export type Flaw = {
  readonly lane: string;
  /** The first entry that is missing or differs from what was written. */
  readonly seq: number;
  readonly what: "changed" | "removed" | "reordered" | "added";
  /** The last entry of a gap. */
  readonly lastSeq?: number;
};

/** A chain without flaws. */
export type Verified = {
  readonly entries: number;
  readonly lanes: number;
  /** How many lanes were compared with a checkpoint. */
  readonly checkpoints: number;
};

/**
 * Verifies the chain of every lane. Only checkpoints kept outside the database can show that the end of a lane, or a whole
 * lane, was removed.
 *
 * @param checkpoints - the highest of each lane
 * @param progress - called now and then with the number of entries verified so far
 */
export async function verifyChain(
  auditKey: Uint8Array,
  chain: Chain,
  checkpoints: ReadonlyMap<string, Checkpoint> = new Map(),
  progress: (entries: number) => void = () => {},
): Promise<Verified | Flaw> {
  /** The last entry of each lane. */
  const ends = new Map<string, number>();
  let last: Link | undefined;
  let entries = 0;
  for await (const row of chain.rows()) {
    if (last?.lane !== row.lane) last = { lane: row.lane, seq: 0, mac: Buffer.alloc(0) };
    if (row.seq > last.seq + 1) {
      // Retention can drop entries during verification too.
      const dropped = await droppedFrom(auditKey, chain, row.lane);
      if (dropped?.seq === row.seq - 1) last = dropped;
    }
    if (row.seq !== last.seq + 1 || !follows(auditKey, last.mac, row)) return classify(auditKey, chain, last, row);
    last = row;
    ends.set(row.lane, row.seq);
    entries += 1;
    if (entries % progressEvery === 0) progress(entries);
    const checkpoint = checkpoints.get(row.lane);
    if (checkpoint?.seq === row.seq && checkpoint.mac !== row.mac.toString("hex")) {
      return { lane: row.lane, seq: row.seq, what: "changed" };
    }
  }
  progress(entries);
  // Retention may have dropped all entries of a lane, or those up to its checkpoint.
  for (const { lane, seq } of checkpoints.values()) {
    const end = ends.get(lane) ?? (await droppedFrom(auditKey, chain, lane))?.seq ?? 0;
    if (end < seq) return { lane, seq: end + 1, lastSeq: seq, what: "removed" };
  }
  return { entries, lanes: ends.size, checkpoints: checkpoints.size };
}

/** Whether the row was written directly after the row with this mac, as number `seq` of its lane. */
function follows(auditKey: Uint8Array, previous: Uint8Array, row: ChainedRow, seq: number = row.seq): boolean {
  return isEqual(chainMac(auditKey, previous, { ...row, seq }), row.mac);
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

type Link = { readonly lane: string; readonly seq: number; readonly mac: Buffer };

const progressEvery = 1000;

/**
 * Names the flaw at `row`, which does not follow `last`. A mac depends on the previous mac and on the sequence number, so a
 * row that was moved can be matched with its original position.
 */
async function classify(auditKey: Uint8Array, chain: Chain, last: Link, row: ChainedRow): Promise<Flaw> {
  const { lane } = row;
  const seq = last.seq + 1;
  if (row.seq < seq) return { lane, seq: row.seq, what: "added" };
  /** The row that was written at `seq`. */
  let original: ChainedRow | undefined;
  let rowWasMoved = false;
  let laterRowsMovedUp = false;
  for await (const other of chain.rows({ lane, seq: row.seq })) {
    if (other.seq === row.seq && other.at === row.at) continue;
    if (follows(auditKey, last.mac, other, seq)) original = other;
    // The row may have followed `other`; edits nearby may have shifted the numbers of both by one.
    rowWasMoved ||= [other.seq, other.seq + 1, other.seq + 2].some((at) => follows(auditKey, other.mac, row, at));
    if (other.seq === row.seq + 1) laterRowsMovedUp = follows(auditKey, row.mac, other, other.seq + 1);
    if (original && rowWasMoved) break;
  }
  if (original && !rowWasMoved && original.seq <= seq + 1 && row.seq === seq) return { lane, seq, what: "added" };
  if (original) return { lane, seq, what: "reordered" };
  if (row.seq > seq) return { lane, seq, lastSeq: row.seq - 1, what: "removed" };
  return laterRowsMovedUp ? { lane, seq, lastSeq: seq, what: "removed" } : { lane, seq, what: "changed" };
}
