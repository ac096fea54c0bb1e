import { isUtf8 } from "node:buffer";
import { usageProblem } from "../problem.ts";

/* Words for people that several rooms say alike. */

/** @returns such as `1 variable` or `2 variables` */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}

/** @returns such as `a`, `a and b`, or `a, b and c` */
export function joined(parts: readonly string[]): string {
  return new Intl.ListFormat("en-GB").format(parts);
}

/** The first few, and how many more. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, 10).join(", ");
  return items.length > 10 ? `${shown} and ${items.length - 10} more` : shown;
}

/** The first lines of many, how many more, and the last one. */
export function firstLines(lines: readonly string[]): readonly string[] {
  const more = lines.length - linesMax;
  return more <= 0 ? lines : [...lines.slice(0, linesMax - 1), `… and ${more} more.`, ...lines.slice(-1)];
}

const linesMax = 21;

/** @returns ISO 8601 in UTC and whole seconds; `-` for no time */
export function formatTime(at: number | null | undefined): string {
  if (at === null || at === undefined) return "-";
  // The database may hold any number.
  return Number.isNaN(new Date(at).getTime()) ? `no time: ${at}` : `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** Decodes strict UTF-8, without the byte order mark of editors on Windows. @throws Problem that names `what` */
export function decodeText(bytes: Uint8Array, what: string): string {
  if (isUtf8(bytes))
    return Buffer.from(bytes)
      .toString()
      .replace(/^\uFEFF/, "");
  throw usageProblem(`${what} is not UTF-8 text.`);
}
