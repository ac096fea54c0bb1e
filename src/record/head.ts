import { isSameMac, macOf } from "../core/hash.ts";
import { type Segment, segmentMac } from "./segment.ts";

/** The action of a change of the roster. Its first name is the id of the new version. */
export const rosterAction = "people.write";

/** Where a lane ends that several processes write, and which roster is in force there. */
export type PeopleHead = Pick<Segment, "lane" | "at" | "mac"> & {
  /** The last entry. */
  readonly seq: number;
  /** The id of its version; null if there never was a roster. */
  readonly roster: string | null;
};

/** The head of a lane as it is stored, and the newest segment of that lane; null if there is none. */
export type LaneEnd = {
  readonly lane: string;
  readonly head: (PeopleHead & { readonly seal: Buffer | null }) | null;
  readonly newest: Pick<Segment, "firstSeq" | "lastSeq" | "mac"> | null;
};

/** Seals a head: HMAC-SHA-256 under the audit key. */
export function sealHead(auditKey: Uint8Array, { lane, seq, at, mac, roster }: PeopleHead): Buffer {
  return macOf(auditKey, ["keyhole audit head v1", lane, seq, at, mac.toString("hex"), roster]);
}

/** Whether Keyhole wrote a head, wherever its lane ends. */
export function isSealedHead(auditKey: Uint8Array, head: LaneEnd["head"]): boolean {
  return head !== null && isSameMac(head.seal, sealHead(auditKey, head));
}

/** Whether a lane ends with the segment that its head was sealed with. A lane without entries needs no head. */
export function isWhole(auditKey: Uint8Array, { head, newest }: Omit<LaneEnd, "lane">): boolean {
  if (head === null) return newest === null;
  // A mac can be copied to a row that is added behind the last one.
  if (newest !== null && newest.firstSeq > head.seq) return false;
  return isSameMac(head.mac, newest?.mac ?? Buffer.alloc(0)) && isSealedHead(auditKey, head);
}

/** Whether Keyhole wrote a segment directly after this end of its lane. */
export function isNext(auditKey: Uint8Array, { seq, mac }: Pick<PeopleHead, "seq" | "mac">, segment: Segment): boolean {
  return segment.firstSeq === seq + 1 && isSameMac(segmentMac(auditKey, mac, segment), segment.mac);
}
