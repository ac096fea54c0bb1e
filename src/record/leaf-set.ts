import { randomInt } from "node:crypto";
import { isSameMac, macOf } from "../core/hash.ts";

/*
 * Leaves of the tree whose segments are gone on purpose: retention dropped them, or a person accepted their loss. A set
 * is a text that an entry of the audit has among its names:
 *
 *   leaves FIRST-LAST,FIRST-LAST… MAC
 *
 * in ascending order, with HMAC-SHA-256 under the audit key in hexadecimal. The number of a leaf is bound by the tree
 * itself. The columns beside its hash are not, so no set names a lane.
 */

/** Numbers of leaves as ranges in ascending order, which do not touch each other. */
export type LeafSet = readonly (readonly [first: number, last: number])[];

export function sealLeaves(auditKey: Uint8Array, leaves: LeafSet): string {
  const ranges = leaves.map(([first, last]) => `${first}-${last}`).join(",");
  return `leaves ${ranges} ${macOfRanges(auditKey, ranges).toString("hex")}`;
}

/** Seals the loss of some entries of a leaf. @param left - the root over those that are left */
export function sealLeft(auditKey: Uint8Array, leaf: number, left: Uint8Array): string {
  return macOf(auditKey, ["keyhole audit left v1", leaf, Buffer.from(left).toString("hex")]).toString("hex");
}

/** The leaves of a text of {@link sealLeaves}; undefined if it is none, or its mac is another one. */
export function openLeaves(auditKey: Uint8Array, text: string): LeafSet | undefined {
  const [, ranges, mac = ""] = /^leaves ([\d,-]*) ([0-9a-f]{64})$/.exec(text) ?? [];
  if (ranges === undefined || !isSameMac(macOfRanges(auditKey, ranges), Buffer.from(mac, "hex"))) return undefined;
  if (ranges === "") return [];
  return ranges.split(",").map((range) => range.split("-").map(Number) as [number, number]);
}

/** All leaves of these sets. */
export function unionOf(sets: readonly LeafSet[]): LeafSet {
  const union: [number, number][] = [];
  for (const [first, last] of sets.flat().sort(([a], [b]) => a - b)) {
    const before = union.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else union.push([first, last]);
  }
  return union;
}

export function hasLeaf(set: LeafSet, leaf: number): boolean {
  return set.some(([first, last]) => first <= leaf && leaf <= last);
}

/** The leaves before this number that a set has not. @param set - in ascending order */
export function leavesOutside(set: LeafSet, size: number): LeafSet {
  const ends = [...set.filter(([first]) => first < size), [size, size] as const];
  const ranges = ends.map(([first], at) => [(ends[at - 1]?.[1] ?? -1) + 1, first - 1] as const);
  return ranges.filter(([first, last]) => first <= last);
}

/** Draws as many different leaves of a set, or all if there are no more. Each is as likely as any other. */
export function drawLeaves(set: LeafSet, count: number): number[] {
  const all = countLeaves(set);
  const drawn = new Set<number>();
  while (drawn.size < Math.min(count, all)) {
    let rank = randomInt(all);
    for (const [first, last] of set) {
      if (rank >= 0 && rank <= last - first) drawn.add(first + rank);
      rank -= last - first + 1;
    }
  }
  return [...drawn];
}

export function countLeaves(set: LeafSet): number {
  return set.reduce((count, [first, last]) => count + last - first + 1, 0);
}

function macOfRanges(auditKey: Uint8Array, ranges: string): Buffer {
  return macOf(auditKey, ["keyhole audit leaves v2", ranges]);
}
