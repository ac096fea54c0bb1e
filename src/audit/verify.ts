import { timingSafeEqual } from "node:crypto";
import { type ChainedRow, type Checkpoint, chainMac } from "./journal.ts";

/** The last entry of a lane that retention has dropped, with the seal that says so; see {@link sealDropped}. */
export type Dropped = { readonly lane: string; readonly seq: number; readonly mac: Buffer; readonly seal: Buffer };

/** Where a chain is read from. */
export type Chain = {
  /** Every entry, or those of one lane from a sequence number on, in order of lane, sequence and time. */
  readonly rows: (from?: { readonly lane: string; readonly seq: number }) => AsyncIterable<ChainedRow>;
  /** What retention says of a lane's beginning. */
  readonly dropped: (lane: string) => Promise<Dropped | undefined>;
};

/** The first thing that is wrong, and where. */
export type Flaw = {
  readonly lane: string;
  /** Of the first entry that is not as it was written, or not there. */
  readonly seq: number;
  readonly what: "changed" | "removed" | "reordered" | "added";
  /** For what was removed, the last entry of the gap. */
  readonly lastSeq?: number;
};

/** What was found in order. */
export type Verified = {
  readonly entries: number;
  readonly lanes: number;
  /** How many lanes were held against a checkpoint. */
  readonly checkpoints: number;
};

/**
 * Walks the chain of every lane.
 *
 * A chain shows everything but that its end is missing, or all of it: that takes checkpoints, which were kept where
 * whoever writes to the database does not write.
 *
 * @param checkpoints - the highest of each lane
 * @param progress - told how many entries have been walked, now and then
 */
export async function verifyChain(
  auditKey: Uint8Array,
  chain: Chain,
  checkpoints: ReadonlyMap<string, Checkpoint> = new Map(),
  progress: (entries: number) => void = () => {},
): Promise<Verified | Flaw> {
  const seen = new Set<string>();
  let last: Link | undefined;
  let entries = 0;
  let lanes = 0;
  for await (const row of chain.rows()) {
    if (last?.lane !== row.lane) {
      const cut = last && cutOff(last, checkpoints);
      if (cut) return cut;
      last = { lane: row.lane, seq: 0, mac: Buffer.alloc(0) };
      lanes += 1;
    }
    if (row.seq !== last.seq + 1) last = (await whereDropped(auditKey, chain, last, row.seq)) ?? last;
    if (row.seq !== last.seq + 1 || !follows(auditKey, last.mac, row)) {
      return classified(auditKey, chain, last, row);
    }
    last = { lane: row.lane, seq: row.seq, mac: row.mac };
    entries += 1;
    if (entries % progressEvery === 0) progress(entries);
    const checkpoint = checkpoints.get(row.lane);
    if (checkpoint?.seq === row.seq) {
      seen.add(row.lane);
      if (checkpoint.mac !== row.mac.toString("hex")) return { lane: row.lane, seq: row.seq, what: "changed" };
    }
  }
  const cut = last && cutOff(last, checkpoints);
  if (cut) return cut;
  progress(entries);
  // A lane that ended before what is kept begins has no entries, and its checkpoint lies within what was dropped.
  for (const { lane, seq } of checkpoints.values()) {
    if (seen.has(lane)) continue;
    const dropped = await chain.dropped(lane);
    const kept = dropped && isSealed(auditKey, dropped) ? dropped.seq : 0;
    if (kept < seq) return { lane, seq: kept + 1, lastSeq: seq, what: "removed" };
  }
  return { entries, lanes, checkpoints: checkpoints.size };
}

/** Whether a row is the one that was written after the row with this mac, at this place in its lane. */
export function follows(auditKey: Uint8Array, previous: Uint8Array, row: ChainedRow, seq: number = row.seq): boolean {
  const mac = chainMac(auditKey, previous, { ...row, seq });
  return mac.length === row.mac.length && timingSafeEqual(mac, row.mac);
}

/** The seal of what retention dropped of a lane: HMAC-SHA-256 under the audit key. */
export function sealDropped(auditKey: Uint8Array, dropped: Omit<Dropped, "seal">): Buffer {
  const fields = ["keyhole audit dropped v1", dropped.lane, dropped.seq, dropped.mac.toString("hex")];
  return new Bun.CryptoHasher("sha256", auditKey).update(JSON.stringify(fields)).digest() as Buffer;
}

/** Whether that seal is the one. */
export function isSealed(auditKey: Uint8Array, dropped: Dropped): boolean {
  const seal = sealDropped(auditKey, dropped);
  return seal.length === dropped.seal.length && timingSafeEqual(seal, dropped.seal);
}

type Link = { readonly lane: string; readonly seq: number; readonly mac: Buffer };

const progressEvery = 1000;

function cutOff(last: Link, checkpoints: ReadonlyMap<string, Checkpoint>): Flaw | undefined {
  const checkpoint = checkpoints.get(last.lane);
  if (!checkpoint || checkpoint.seq <= last.seq) return undefined;
  return { lane: last.lane, seq: last.seq + 1, lastSeq: checkpoint.seq, what: "removed" };
}

/** The link before `seq` where retention dropped it, which it may also do while the chain is being walked. */
async function whereDropped(auditKey: Uint8Array, chain: Chain, last: Link, seq: number): Promise<Link | undefined> {
  if (seq <= last.seq) return undefined;
  const dropped = await chain.dropped(last.lane);
  return dropped?.seq === seq - 1 && isSealed(auditKey, dropped) ? dropped : undefined;
}

/**
 * What happened where the chain breaks at `row`, which should follow `last`. The entry that belongs there tells, if it is
 * still in the lane; the mac knows its place and the one before it, so both can be tried.
 */
async function classified(auditKey: Uint8Array, chain: Chain, last: Link, row: ChainedRow): Promise<Flaw> {
  const { lane } = row;
  const seq = last.seq + 1;
  if (row.seq < seq) return { lane, seq: row.seq, what: "added" };
  let elsewhere = false;
  let home: ChainedRow | undefined;
  let tailMovedUp = false;
  for await (const other of chain.rows({ lane, seq: row.seq })) {
    if (isSame(other, row)) continue;
    if (follows(auditKey, last.mac, other, seq)) home = other;
    // Of the entry before its own this row remembers the mac, of its own place no more than what lies near by.
    elsewhere ||= [other.seq, other.seq + 1, other.seq + 2].some((at) => follows(auditKey, other.mac, row, at));
    if (other.seq === row.seq + 1) tailMovedUp = follows(auditKey, row.mac, other, other.seq + 1);
    if (home && elsewhere) break;
  }
  if (home && !elsewhere && home.seq <= seq + 1 && row.seq === seq) return { lane, seq, what: "added" };
  if (home) return { lane, seq, what: "reordered" };
  if (row.seq > seq) return { lane, seq, lastSeq: row.seq - 1, what: "removed" };
  return tailMovedUp ? { lane, seq, lastSeq: seq, what: "removed" } : { lane, seq, what: "changed" };
}

function isSame(a: ChainedRow, b: ChainedRow): boolean {
  return a.seq === b.seq && a.at === b.at;
}
