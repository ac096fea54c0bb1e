import { dayMs, type Environment } from "../../core/names.ts";
import type { KindDescriptor } from "../../serve/sets/kind.ts";
import { dayOf, type ItemReads, isUnread, judgedSince, type KindReads } from "../editing/last-reads.ts";
import type { ItemsAcross } from "./comparison.ts";

/* The parts of a grid that people look at alone. */

/** An item in the environments that a person may see. */
export type Compared = ItemsAcross["items"][number];

/** What expires or is due within this time waits for somebody. */
export const soonMs = 30 * dayMs;

/** The part of a grid that production lacks. */
export const missingPart = "missing-production";

/** What machines have not asked for within this time may not be needed any more. */
const unreadMs = 90 * dayMs;

/** What a row says of the last reads of its item, where the person may know them. */
export function readsOf({ name, environments: found }: Compared, known: KindReads): ItemReads | undefined {
  const there = known.environments.filter((one) => found[one] !== undefined);
  return there.length === 0 ? undefined : known.of(name, there);
}

/** The items that machines did not ask for; undefined if nobody knows. */
function unreadPart(descriptor: Pick<KindDescriptor, "isReadByName">, known: KindReads | undefined, now: number) {
  if (known === undefined) return undefined;
  const begins = judgedSince(descriptor, known);
  const isYoung = begins > now - unreadMs;
  const has = (item: Compared) => {
    const reads = readsOf(item, known);
    if (reads === undefined) return false;
    if (isYoung) return (descriptor.isReadByName ? reads.byNameAt : reads.withAllAt) === null;
    const updatedAt = Math.max(...known.environments.map((one) => item.environments[one]?.updatedAt ?? 0));
    return isUnread(descriptor, reads, updatedAt, now - unreadMs);
  };
  const time = isYoung ? `since ${dayOf(begins)}` : "for 90 days";
  return { only: "unread", words: `Not read${descriptor.isReadByName ? " by name" : ""} ${time}`, has };
}

/**
 * The parts of a grid that have a link of their own. The first is everything.
 * @param known - what is known of the last reads
 * @param compares - whether values were compared without being opened
 */
export function partsOf(
  seen: readonly Environment[],
  now: number,
  descriptor: Pick<KindDescriptor, "isReadByName">,
  known: KindReads | undefined,
  compares: boolean,
): readonly Part[] {
  const isDue = ({ environments: found }: Compared) =>
    Object.values(found).some(({ dueAt = Number.POSITIVE_INFINITY }) => dueAt <= now + soonMs);
  const parts: readonly Part[] = [
    { only: undefined, words: "All", has: () => true },
    {
      only: missingPart,
      words: "Missing in production",
      has: ({ environments: found }) => found.production === undefined,
    },
    ...(compares ? [{ only: "different", words: "Different", has: isDifferent }] : []),
    { only: "due", words: "Due for rotation", has: isDue },
  ];
  const unread = unreadPart(descriptor, known, now);
  const all = unread === undefined ? parts : [...parts, unread];
  return all.filter(({ only }) => only !== missingPart || seen.includes("production"));
}

export type Part = {
  /** Its word in the URL. */
  readonly only: string | undefined;
  readonly words: string;
  readonly has: (item: Compared) => boolean;
};

/** Whether it has values that differ, among those that somebody may compare. */
export function isDifferent({ environments: found }: Compared): boolean {
  return new Set(Object.values(found).flatMap(({ group }) => group ?? [])).size > 1;
}

/** Whether an item has values that somebody may compare. */
export function isCompared({ environments: found }: Compared): boolean {
  return Object.values(found).filter(({ group }) => group !== null).length > 1;
}
