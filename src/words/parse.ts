import { listed } from "./text.ts";

/* Parsers of what an option or an argument says. Their messages continue after its name, and never quote the text. */

/** Says why a text is no value of an input. */
export class Unfit extends Error {
  /** The member that is wrong, if the text is a list. */
  readonly member: string | undefined;

  constructor(message: string, member?: string) {
    super(message);
    this.member = member;
  }
}

/** A comma-separated list without empty and repeated members. */
export function parseList(text: string): string[] {
  const members = text.split(",");
  const repeated = members.find((member, at) => members.indexOf(member) < at);
  if (!members.includes("") && repeated === undefined) return members;
  throw new Unfit("takes a comma-separated list without empty or repeated members.", repeated || undefined);
}
/** Parses a list of `allowed` members. */
export function parseChoices<const T extends string>(allowed: readonly T[]) {
  const isAllowed = (member: string): member is T => allowed.some((one) => one === member);
  return (text: string): T[] => {
    const members = parseList(text);
    if (members.every(isAllowed)) return members;
    const wrong = members.find((member) => !isAllowed(member));
    throw new Unfit(`takes a list of ${listed(allowed)}.`, wrong);
  };
}
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

/** @returns a whole number of at least 1 */
export function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Unfit("takes a whole number of at least 1.");
}

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const durationMsMax = 36_500 * unitMs.d;

/** How long a SPIFFE ID may be. */
export const spiffeIdBytesMax = 2048;

/**
 * The SPIFFE ID of a workload, in its one spelling. One without a path names a whole trust domain, which has no token.
 * @see https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md
 */
export function parseSpiffeId(text: string): string {
  const [, path] = /^spiffe:\/\/[a-z0-9._-]{1,255}((?:\/[a-zA-Z0-9._-]+)*)$/.exec(text) ?? [];
  const hasDots = path?.split("/").some((segment) => segment === "." || segment === "..");
  if (path === undefined || hasDots || text.length > spiffeIdBytesMax) {
    throw new Unfit("takes a SPIFFE ID such as spiffe://example.org/web, without %, *, . and .. as parts.");
  }
  if (path === "") throw new Unfit("names a trust domain: add the path of the workload.");
  return text;
}
