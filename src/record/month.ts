import { leafHash, type TreeHead } from "./tree.ts";

/*
 * A month (UTC) that is over is sealed: once a look at all that no month has yet found nothing wrong, the tree gets a leaf
 * for it. Its text has five lines that each end with a newline:
 *
 *   keyhole audit month v1
 *   MONTH              such as 2026-10
 *   SIZE               the month has the leaves before this number, from the SIZE of the month before on
 *   SEGMENTS ENTRIES   how many these leaves have
 *   ROOT               base64, of the tree of that size
 *
 * A month is made of leaves and not of dates, which are the word of a server's clock: an entry that comes later, whatever
 * its date, is in a leaf behind, and the next month has it.
 */

/** A month as its leaf says. */
export type SealedMonth = TreeHead & { readonly month: string; readonly segments: number; readonly entries: number };

export function encodeMonth({ month, size, segments, entries, root }: SealedMonth): string {
  return `${monthFormat}\n${month}\n${size}\n${segments} ${entries}\n${root.toString("base64")}\n`;
}

/** The month that a stored leaf seals: beside its hash it has its text. Undefined if it seals none. */
export function monthOfLeaf({ leaf, lane: text, hashes }: LeafWithText): SealedMonth | undefined {
  const [, month = "", size, segments, entries, root = ""] = monthPattern.exec(text) ?? [];
  if (size === undefined || Number(size) > leaf || !leafHash(text).equals(hashes.subarray(0, 32))) return undefined;
  const counts = { size: Number(size), segments: Number(segments), entries: Number(entries) };
  return { month, ...counts, root: Buffer.from(root, "base64") };
}

type LeafWithText = { readonly leaf: number; readonly lane: string; readonly hashes: Buffer };

/** Counts the months (UTC); not a number if there is no such moment. @param at - epoch milliseconds */
export function monthOf(at: number): number {
  const date = new Date(at);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** A month by that count, as people write it. */
export function monthName(month: number): string {
  return `${Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, "0")}`;
}

export const monthFormat = "keyhole audit month v1";
const monthPattern = new RegExp(
  `^${monthFormat}\\n(\\d{4}-\\d\\d)\\n([1-9]\\d{0,15})\\n(\\d{1,16}) (\\d{1,16})\\n(\\S{43}=)\\n$`,
);
