import { isUtf8 } from "node:buffer";
import { usageProblem } from "../core/problem.ts";

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

/**
 * A sentence that names what nobody sees in a value: blanks, line breaks and invisible characters at its ends, and
 * carriage returns anywhere. They are stored as they are, and many are a mistake.
 * @param what - such as `The value of TOKEN`
 */
export function unseenIn(what: string, value: string): string[] {
  const isUnseen = (at: number) => /[\s\p{Cc}\p{Cf}]/u.test(value.charAt(at));
  let [begin, end] = [0, value.length];
  while (begin < end && isUnseen(begin)) begin++;
  while (end > begin && isUnseen(end - 1)) end--;
  const [first, last] = [value.slice(0, begin), value.slice(end)];
  const clauses = [
    first && `${begin === value.length ? "is nothing but" : "begins with"} ${characters(first)}`,
    value.slice(begin, end).includes("\r") && "has carriage returns in it",
    last && `ends in ${characters(last)}`,
  ].filter(Boolean) as string[];
  const one = clauses.length === 1 && new Set(first + last).size === 1;
  return clauses.length === 0 ? [] : [`${what} ${joined(clauses)}, which ${one ? "is" : "are"} part of it.`];
}

/** Names invisible characters, each once. */
function characters(text: string): string {
  const nameOf = (one: string) =>
    invisible[one] ?? `the character U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return joined([...new Set(text)].slice(0, 5).map(nameOf));
}

const invisible: Readonly<Record<string, string>> = {
  " ": "a blank",
  "\t": "a tab",
  "\n": "a newline",
  "\r": "a carriage return",
  "\uFEFF": "a byte order mark",
};

/** @returns ISO 8601 in UTC and whole seconds; `-` for no time */
export function formatTime(at: number | null | undefined): string {
  if (at === null || at === undefined) return "-";
  // The database may hold any number.
  return Number.isNaN(new Date(at).getTime()) ? `no time: ${at}` : `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** Decodes strict UTF-8 and keeps a byte order mark. @throws Problem that names `what` */
export function decodeText(bytes: Uint8Array, what: string): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString();
  throw usageProblem(`${what} is not UTF-8 text.`);
}
