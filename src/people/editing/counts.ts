import { type Environment, type EnvironmentMask, environmentMask, everyEnvironment } from "../../core/names.ts";
import { orUndefined } from "../../seal/envelope.ts";
import { countOf } from "../../serve/sets/counts.ts";
import { countsColumnOf, type Entry, type KindDescriptor } from "../../serve/sets/kind.ts";

/**
 * How many items of a kind a project's row counts in these environments. Damaged counts are 0 until the next write
 * repairs them.
 */
export function countIn(row: object, descriptor: { readonly item: string }, among = everyEnvironment): number {
  const countsByMask = (row as Readonly<Record<string, unknown>>)[countsColumnOf(descriptor)];
  return orUndefined(() => countOf(String(countsByMask), among)) ?? 0;
}

/** How many items are in exactly the environments of mask 1 to 7. */
export function countsOf({ identityOf }: KindDescriptor, entries: ReadonlyMap<Environment, readonly Entry[]>) {
  const masks = new Map<string, EnvironmentMask>();
  for (const [environment, some] of entries) {
    for (const entry of some) {
      const identity = identityOf(entry);
      masks.set(identity, (masks.get(identity) ?? 0) | environmentMask(environment));
    }
  }
  const counts = [0, 0, 0, 0, 0, 0, 0];
  for (const mask of masks.values()) counts[mask - 1] = (counts[mask - 1] ?? 0) + 1;
  return counts;
}
