import { Fault } from "../../core/fault.ts";
import type { EnvironmentMask } from "../../core/names.ts";

/**
 * How many of the items counted by mask are in at least one environment of `reach`, or in any.
 * @throws Fault `decryption_failed` if Keyhole did not write them so
 */
export function countOf(countsByMask: string, reach: EnvironmentMask = ~0): number {
  return numbersOf(countsByMask, 7).reduce((sum, count, index) => ((index + 1) & reach ? sum + count : sum), 0);
}

/** A JSON array of whole numbers. @throws Fault `decryption_failed` if it has another length or form */
export function numbersOf(text: string, length: number): number[] {
  const numbers = /^\[\d{1,15}(?:,\d{1,15})*\]$/.test(text) ? (JSON.parse(text) as number[]) : [];
  if (numbers.length === length) return numbers;
  throw new Fault("decryption_failed", "the counts of a project are not as Keyhole writes them");
}
