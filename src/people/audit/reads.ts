import { dayMs } from "../../core/names.ts";
import type { AuditRecord } from "./audit.ts";

/* Who did what how often, and how often machines read: counted from the audit. */

const hourMs = 3_600_000;

/** The days for which reads of one thing are counted. */
export const countedDays = 30;

/** The most entries that are counted, and the most names in them: more would keep a page waiting. */
export const countedMax = 10_000;
const namesMax = 300_000;

/** The bars of a chart: how long each stands for, and when the first begins and the last ends. */
export type Span = { readonly unitMs: number; readonly fromAt: number; readonly endAt: number };

/** What a bar may stand for. */
export const units: ReadonlyMap<number, string> = new Map([
  [hourMs, "hour"],
  [dayMs, "day"],
  [7 * dayMs, "7 days"],
  [28 * dayMs, "28 days"],
  [364 * dayMs, "364 days"],
]);
const barsMax = 49;

/**
 * The span of the entries from `sinceAt`, by default a day, until `beforeAt`, by default now. It ends with a whole hour
 * or a whole day in UTC.
 */
export function spanOf(
  now: number,
  { sinceAt, beforeAt = now + 1 }: { readonly sinceAt?: number | undefined; readonly beforeAt?: number | undefined },
): Span {
  const untilAt = Math.min(beforeAt, now + 1);
  const firstAt = Math.min(sinceAt ?? untilAt - dayMs, untilAt - 1);
  const unitMs = [...units.keys()].find((one) => (untilAt - firstAt) / one < barsMax) ?? 364 * dayMs;
  const roundMs = Math.min(unitMs, dayMs);
  const endAt = Math.ceil(untilAt / roundMs) * roundMs;
  return { unitMs, endAt, fromAt: endAt - Math.ceil((endAt - firstAt) / unitMs) * unitMs };
}

/** What somebody did in one environment of a project. */
export type Doings = Pick<AuditRecord, "actor" | "organization" | "project" | "environment"> & {
  /** The names of these entries, those of the most entries first. */
  readonly names: readonly string[];
  readonly count: number;
  /** When they did it last. */
  readonly lastAt: number;
};

/** Counts entries that come newest first. */
export class AuditCounts {
  readonly span: Span;
  readonly #isCounted: (name: string) => boolean;
  readonly #doings = new Map<
    string,
    { entry: AuditRecord; names: Map<string, number>; count: number; lastAt: number }
  >();
  readonly #reads = new Map<number, number>();
  #names = 0;
  entries = 0;
  newestAt: number | undefined;
  oldestAt: number | undefined;
  /** Whether all entries were counted. If not, the older ones are missing. */
  isWhole = true;

  /** @param isCounted - which names are listed; of an entry without any, all */
  constructor(span: Span, isCounted: (name: string) => boolean = () => true) {
    this.span = span;
    this.#isCounted = isCounted;
  }

  /** @returns whether it was counted; if not, no older one may be */
  add(entry: AuditRecord): boolean {
    if (this.entries === countedMax || this.#names > namesMax) {
      this.isWhole = false;
      return false;
    }
    this.entries += 1;
    this.#names += entry.names.length;
    this.newestAt ??= entry.time;
    this.oldestAt = entry.time;
    this.#noteDoing(entry);
    // One that a clock dated ahead is in no bar.
    const { fromAt, endAt, unitMs } = this.span;
    if (entry.action.endsWith(".read") && entry.time >= fromAt && entry.time < endAt) {
      const at = fromAt + Math.floor((entry.time - fromAt) / unitMs) * unitMs;
      this.#reads.set(at, (this.#reads.get(at) ?? 0) + 1);
    }
    return true;
  }

  #noteDoing(entry: AuditRecord): void {
    const { actor, organization, project, environment, time } = entry;
    const key = JSON.stringify([actor, organization, project, environment]);
    const doing = this.#doings.get(key) ?? { entry, names: new Map<string, number>(), count: 0, lastAt: time };
    doing.count += 1;
    const counted = entry.names.filter(this.#isCounted);
    // An entry that was found by who did it has none of them.
    for (const name of counted.length > 0 ? counted : entry.names) {
      doing.names.set(name, (doing.names.get(name) ?? 0) + 1);
    }
    this.#doings.set(key, doing);
  }

  /** Who did what, those who did most first. */
  get doings(): readonly Doings[] {
    const all = [...this.#doings.values()].map(({ entry, names, count, lastAt }) => {
      const sorted = [...names].sort(([, one], [, other]) => other - one).map(([name]) => name);
      return { ...entry, names: sorted, count, lastAt };
    });
    return all.sort((one, other) => other.count - one.count);
  }

  /** How many reads by machines are in the bars. */
  get reads(): number {
    return this.#reads.values().reduce((sum, count) => sum + count, 0);
  }

  /**
   * Reads by machines, a bar for each hour or day of the span, oldest first. An entry is one read, however many names it
   * has. If not all entries were counted, the first bar is that of the oldest one, and it had more.
   */
  get bars(): readonly { readonly at: number; readonly count: number }[] {
    const { fromAt, endAt, unitMs } = this.span;
    const all = Array.from({ length: Math.round((endAt - fromAt) / unitMs) }, (_, index) => {
      const at = fromAt + index * unitMs;
      return { at, count: this.#reads.get(at) ?? 0 };
    });
    return this.isWhole ? all : all.filter(({ at }) => at + unitMs > (this.oldestAt ?? 0));
  }
}
