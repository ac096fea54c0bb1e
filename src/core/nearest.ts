import { listed } from "./text.ts";
import { excerpt } from "./visible.ts";

/*
 * Which name somebody most likely meant by a mistyped one. The rule is commander's for commands and options: a name
 * that differs in more than three characters, or in most of them, is another word.
 */

/**
 * The end of a sentence that says that a name is not there: ` Did you mean web?`. Empty if no name is near.
 * @param words - what was typed: one or several
 * @param names - only those that the caller may see
 * @param before - what a name is shown with, such as `acme/`
 */
export function didYouMean(words: string | readonly string[], names: Iterable<string>, before = ""): string {
  const known = [...names];
  const meant = [...new Set([words].flat().flatMap((word) => nearest(word, known)))];
  const shown = listed(meant.map((name) => excerpt(before + name)));
  return meant.length === 0 ? "" : ` Did you mean ${meant.length > 1 ? "one of " : ""}${shown}?`;
}

/** The names that are nearest; none if none is near. Case is ignored. */
function nearest(word: string, names: readonly string[]): readonly string[] {
  let [found, least]: [string[], number] = [[], differencesMax];
  for (const name of new Set(names)) {
    const length = Math.max(word.length, name.length);
    // Long ones take long to compare.
    if (length > lengthMax || Math.abs(word.length - name.length) > least) continue;
    const differences = distance(word.toLowerCase(), name.toLowerCase());
    if (differences > least || differences >= 0.6 * length) continue;
    found = differences < least ? [name] : [...found, name];
    least = differences;
  }
  return found;
}

const differencesMax = 3;
const lengthMax = 100;

/**
 * How many characters must be put in, left out or replaced to make one text of the other; two that changed places count
 * once.
 * @see https://en.wikipedia.org/wiki/Damerau%E2%80%93Levenshtein_distance
 */
function distance(a: string, b: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isTurned = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const turned = isTurned ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, turned, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}
