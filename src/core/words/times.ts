import { Unfit } from "./parse.ts";

/* Durations, days and moments as people write them. */

/** @returns milliseconds of a duration such as `30s`, `15m`, `24h` or `90d` */
export function parseDuration(text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const durationMs = Number(count) * (unitMs[unit as keyof typeof unitMs] ?? Number.NaN);
  if (durationMs > 0 && durationMs <= durationMsMax) return durationMs;
  throw new Unfit("takes a duration such as 30s, 15m, 24h or 90d, of at most 36500d.");
}

/** @returns milliseconds of a duration that a timer can wait for */
export function parseInterval(text: string): number {
  const intervalMs = parseDuration(text);
  if (intervalMs <= unitMs.d) return intervalMs;
  throw new Unfit("takes a duration such as 30s or 15m, of at most 24h.");
}

/** @returns epoch milliseconds; takes a duration ago, a day (its start in UTC), or a time with an offset */
export function parseMoment(text: string, nowMs: number): number {
  return isDuration(text) ? nowMs - parseDuration(text) : parseDate(text, "a duration ago such as 24h");
}

/** @returns the end of something that begins at a moment; takes a duration, a day (its start in UTC), or a time */
export function parseEnd(text: string): (startMs: number) => number {
  if (isDuration(text)) {
    const durationMs = parseDuration(text);
    return (startMs) => startMs + durationMs;
  }
  const endMs = parseDate(text, "a duration such as 4h");
  return () => endMs;
}

function isDuration(text: string): boolean {
  return /^\d+[smhd]$/.test(text);
}

/** @param otherwise - what else the input takes */
function parseDate(text: string, otherwise: string): number {
  const [, day, time = "T00:00Z"] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  const moment = Date.parse(`${day}${time}`);
  if (day !== undefined && !Number.isNaN(moment) && isDay(day)) return moment;
  throw new Unfit(`takes ${otherwise}, a day in UTC such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z.`);
}

/** @returns the day, which must not be over in UTC */
export function parseComingDay(text: string, nowMs: number): string {
  if (isDay(text) && Date.parse(text) + unitMs.d > nowMs) return text;
  throw new Unfit("takes a day in UTC that is not past, such as 2030-01-31.");
}

/** Whether a text is a day. Date.parse may take 2026-02-30, which does not exist, for a day in March. */
export function isDay(text: string): boolean {
  const startMs = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00Z`) : Number.NaN;
  return !Number.isNaN(startMs) && new Date(startMs).toISOString().startsWith(text);
}

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const durationMsMax = 36_500 * unitMs.d;
