import { macOf } from "../core/hash.ts";
import { excerpt } from "../core/visible.ts";
import type { LaneCheckpoint } from "./journal.ts";
import type { Segment } from "./segment.ts";

/** Consecutive entries of a lane. */
export type Range = { readonly lane: string; readonly seq: number; readonly lastSeq: number };

/** What is wrong with the record. */
export type Flaw = {
  /**
   * `broken`: somebody changed, removed, moved or added entries, or a part of the tree. `lost`: the log's checkpoint shows
   * other entries. `gone`: the tree has entries that are not there. `head`: the lane has a head that names `seq` as the
   * last entry, and `lastSeq` is the last; one of them was changed. `state`: a row is not as the record says.
   */
  readonly what: "broken" | "lost" | "gone" | "head" | "state";
  /** What an operator accepts it by: {@link gapName} of its entries, or the subject of the row. Else its sentence. */
  readonly name: string;
  readonly sentence: string;
  /** What its acceptance has on record, beside the name; undefined if it cannot be accepted. */
  readonly seals?: readonly string[] | undefined;
};

/**
 * A flaw of a lane. `seq` is the first entry that may be missing or differ. The entries of a segment share one mac, so
 * any of its entries may be the changed one.
 */
export type LaneFlaw = Flaw & Range;

/** A loss that people know of. A seal proves that somebody with the audit key accepted exactly this loss. */
export type Acceptance = Range & { readonly seals: readonly string[] };

/** A flaw that has no name but its sentence, and that nobody can accept. */
export function brokenBy(sentence: string): Flaw {
  return { what: "broken", name: sentence, sentence };
}

/** @param seals - of a loss, which can be accepted */
export function laneFlaw(
  { lane, seq, lastSeq }: Range,
  what: Exclude<Flaw["what"], "state">,
  seals?: readonly string[],
): LaneFlaw {
  const entries = lastSeq > seq ? `entries ${seq} to ${lastSeq}` : `entry ${seq}`;
  const difference = seq === lastSeq ? "it was changed" : `it names entry ${seq}, and the last one is ${lastSeq}`;
  const sentences = {
    broken: `the chain breaks at ${entries}`,
    lost: `${entries} ${lastSeq > seq ? "differ" : "differs"} from the log's checkpoint`,
    gone: `${entries} ${lastSeq > seq ? "are" : "is"} in the signed tree and not in the audit any more`,
    head: `its row in audit_heads does not fit its end: ${difference}`,
  };
  // SQL can give a lane any name.
  const sentence = `Lane ${excerpt(lane)}: ${sentences[what]}.`;
  return { what, name: gapName({ lane, seq, lastSeq }), sentence, lane, seq, lastSeq, seals };
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
