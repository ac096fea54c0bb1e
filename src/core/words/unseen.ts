import { joined } from "./text.ts";

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
