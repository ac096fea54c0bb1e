import { macOf } from "../core/hash.ts";
import { excerpt } from "../core/visible.ts";
import type { LaneCheckpoint } from "./journal.ts";
import type { Segment } from "./segment.ts";

/** Consecutive entries of a lane. */
export type Range = { readonly lane: string; readonly seq: number; readonly lastSeq: number };

/**
 * What is wrong with a lane. `seq` is the first entry that may be missing or differ. The entries of a segment share one
 * mac, so any of its entries may be the changed one.
 */
export type Flaw = Range & {
  /**
   * `broken`: somebody changed, removed, moved or added entries there. `lost`: the log's checkpoint shows other entries.
   * `gone`: the tree has entries that are not there. `head`: the lane has a head that names `seq` as the last entry, and
   * `lastSeq` is the last; one of them was changed.
   */
  readonly what: "broken" | "lost" | "gone" | "head";
  /** What an {@link Acceptance} of this loss holds; empty if the flaw is not a loss that can be accepted. */
  readonly seals: readonly string[];
};

/** A loss that people know of. A seal proves that somebody with the audit key accepted exactly this loss. */
export type Acceptance = Range & { readonly seals: readonly string[] };

export function describeFlaw({ lane, seq, lastSeq, what }: Flaw): string {
  const entries = lastSeq > seq ? `entries ${seq} to ${lastSeq}` : `entry ${seq}`;
  const difference = seq === lastSeq ? "it was changed" : `it names entry ${seq}, and the last one is ${lastSeq}`;
  const sentences = {
    broken: `the chain breaks at ${entries}`,
    lost: `${entries} ${lastSeq > seq ? "differ" : "differs"} from the log's checkpoint`,
    gone: `${entries} ${lastSeq > seq ? "are" : "is"} in the signed tree and not in the audit any more`,
    head: `its row in audit_heads does not fit its end: ${difference}`,
  };
  // SQL can give a lane any name.
  return `Lane ${excerpt(lane)}: ${sentences[what]}.`;
}

/** The name of a range, as people type it: `LANE:FIRST-LAST`. */
export function gapName({ lane, seq, lastSeq }: Range): string {
  return `${lane}:${seq}-${lastSeq}`;
}

/** The range of a name; undefined if it is not as {@link gapName} spells it. */
export function parseGap(name: string): Range | undefined {
  const [, lane, seq, lastSeq] = /^([\w-]{1,64}):(\d{1,16})-(\d{1,16})$/.exec(name) ?? [];
  return lane === undefined ? undefined : { lane, seq: Number(seq), lastSeq: Number(lastSeq) };
}

/** Seals a gap with the segment after it. Nothing else binds that segment, because the mac that it follows is lost. */
export function sealGap(auditKey: Uint8Array, gap: Range, next: Segment): string {
  const { firstSeq, lastSeq, at, mac, texts, entries } = next;
  return seal(auditKey, "gap", gap, [firstSeq, lastSeq, at, mac.toString("hex"), texts, entries]);
}

/** Seals the loss of a lane's end that a checkpoint shows. */
export function sealLostEnd(auditKey: Uint8Array, gap: Range, { seq, mac }: LaneCheckpoint): string {
  return seal(auditKey, "end", gap, [seq, mac]);
}

function seal(auditKey: Uint8Array, kind: string, { lane, seq, lastSeq }: Range, fields: readonly unknown[]): string {
  return macOf(auditKey, [`keyhole audit accepted ${kind} v1`, lane, seq, lastSeq, ...fields]).toString("hex");
}

/** How many flaws are named. The others are counted. */
export const flawsMax = 1000;
