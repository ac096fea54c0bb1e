/*
 * The name of what an answer with values left in the audit: `LANE:SEQ` for one entry, `LANE:FIRST-LAST` for several
 * that follow each other. The npm package contains this file.
 */

/** The header of an answer that has it. */
export const receiptHeader = "Keyhole-Audit";
/** The header of an answer to a job that gets a number of answers with values: that number. */
export const readsHeader = "Keyhole-Reads-Per-Job";

/** Entries of one lane. */
export type Receipt = { readonly lane: string; readonly firstSeq: number; readonly lastSeq: number };

export function receiptName({ lane, firstSeq, lastSeq }: Receipt): string {
  return firstSeq === lastSeq ? `${lane}:${firstSeq}` : `${lane}:${firstSeq}-${lastSeq}`;
}

/** The entries of a name; undefined if it is not as {@link receiptName} spells it. */
export function parseReceipt(name: string): Receipt | undefined {
  const [, lane, first, last] = /^([\w-]{1,64}):([1-9]\d{0,15})(?:-([1-9]\d{0,15}))?$/.exec(name) ?? [];
  if (lane === undefined) return undefined;
  const [firstSeq, lastSeq] = [Number(first), Number(last ?? first)];
  const isInOrder = last === undefined || firstSeq < lastSeq;
  return isInOrder && Number.isSafeInteger(lastSeq) ? { lane, firstSeq, lastSeq } : undefined;
}
