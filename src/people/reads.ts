import type { AdminContext } from "../desk/context.ts";
import { auditActions } from "../kinds/kind.ts";
import { type AuditFilter, auditPages } from "./audit.ts";

/* How often machines read, counted from the audit. */

const hourMs = 3_600_000;
/** The most entries that are counted. */
const readsMax = 10_000;

/** Reads by the hour, oldest first. Every hour up to the present one is there, those without reads too. */
export type ReadsByHour = {
  readonly hours: readonly {
    /** When the hour begins, in epoch milliseconds. */
    readonly at: number;
    readonly count: number;
  }[];
  /** Whether all reads were counted. If not, the first hour is that of the oldest one counted, and it had more. */
  readonly isWhole: boolean;
};

/**
 * Counts the newest reads that a filter finds, at most 10,000. An entry is one read, however many names it has. An
 * entry that is dated after this hour is not counted.
 *
 * @param filter - of its `actions`, those that are reads; its `sinceAt` says nothing here
 * @param sinceAt - from this moment on, in epoch milliseconds; the first hour is the one that it is in
 * @throws Refused `not_found` if the filter names something that neither exists nor has an entry
 */
export async function readsByHour(admin: AdminContext, filter: AuditFilter, sinceAt: number): Promise<ReadsByHour> {
  const actions = readActions.filter((action) => filter.actions?.includes(action) ?? true);
  const endAt = Math.min(filter.beforeAt ?? Number.POSITIVE_INFINITY, hourOf(admin.now()) + hourMs);
  const { times, isWhole } = await newestTimes(admin, { ...filter, actions, sinceAt, beforeAt: endAt });
  const counts = new Map<number, number>();
  for (const time of times) counts.set(hourOf(time), (counts.get(hourOf(time)) ?? 0) + 1);
  const firstAt = hourOf(isWhole ? sinceAt : (times.at(-1) as number));
  const length = Math.max(0, Math.ceil((endAt - firstAt) / hourMs));
  const hours = Array.from({ length }, (_, index) => {
    const at = firstAt + index * hourMs;
    return { at, count: counts.get(at) ?? 0 };
  });
  return { hours, isWhole };
}

const readActions = auditActions.filter((action) => action.endsWith(".read"));

/** When the newest entries were recorded, newest first, and whether they are all. */
async function newestTimes(admin: AdminContext, filter: AuditFilter) {
  const times: number[] = [];
  // A list without actions would read the whole journal and find nothing.
  if (filter.actions?.length === 0) return { times, isWhole: true };
  for await (const page of auditPages(admin, filter, "newest first")) {
    for (const { time } of page) {
      if (times.length === readsMax) return { times, isWhole: false };
      times.push(time);
    }
  }
  return { times, isWhole: true };
}

function hourOf(at: number): number {
  return Math.floor(at / hourMs) * hourMs;
}
