import type { Environment } from "../core/names.ts";
import type { ItemsAcross } from "../people/comparison.ts";

/* The parts of a grid that people look at alone. */

/** An item in the environments that a person may see. */
export type Compared = ItemsAcross["items"][number];

/** What expires or is due within this time waits for somebody. */
export const soonMs = 30 * 86_400_000;

/** The part of a grid that production lacks. */
export const missingPart = "missing-production";

/** The parts of a grid that have a link of their own. The first is everything. */
export function partsOf(seen: readonly Environment[], now: number): readonly Part[] {
  const isDue = ({ environments: found }: Compared) =>
    Object.values(found).some(({ dueAt = Number.POSITIVE_INFINITY }) => dueAt <= now + soonMs);
  const parts: readonly Part[] = [
    { only: undefined, words: "All", has: () => true },
    {
      only: missingPart,
      words: "Missing in production",
      has: ({ environments: found }) => found.production === undefined,
    },
    { only: "different", words: "Different", has: ({ environments: found }) => groupsIn(found).size > 1 },
    { only: "due", words: "Due for rotation", has: isDue },
  ];
  return parts.filter(({ only }) => only !== missingPart || seen.includes("production"));
}

export type Part = {
  /** Its word in the URL. */
  readonly only: string | undefined;
  readonly words: string;
  readonly has: (item: Compared) => boolean;
};

/** Which values there are, among those that somebody may compare. */
function groupsIn(found: Compared["environments"]): ReadonlySet<number> {
  return new Set(Object.values(found).flatMap(({ group }) => group ?? []));
}

/** Whether an item has values that somebody may compare. */
export function isCompared({ environments: found }: Compared): boolean {
  return Object.values(found).filter(({ group }) => group !== null).length > 1;
}
