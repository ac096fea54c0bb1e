import { excerpt } from "../visible.ts";
import { listed } from "./text.ts";

/*
 * Which name somebody most likely meant by a mistyped one. The rule is commander's for commands and options: a name
 * that differs in more than three characters, or in most of them, is another word.
 */

/**
 * The end of a sentence that says that a name is not there: ` Did you mean web?`. Empty if no name is near.
 * @param words - what was typed: one or several, of which the first few are looked for
 * @param names - only those that the caller may see
 * @param before - what a name is shown with, such as `acme/`
 */
export function didYouMean(words: string | readonly string[], names: Iterable<string>, before = ""): string {
  const known = [...new Set(names)];
  const typed = [words].flat().slice(0, wordsMax);
  const meant = new Set(typed.flatMap((word) => nearest(word, known)));
  const shown = listed([...meant].map((name) => excerpt(before + name)));
  return meant.size === 0 ? "" : ` Did you mean ${meant.size > 1 ? "one of " : ""}${shown}?`;
}

/** The names that are nearest; none if none is near. Case is ignored. */
function nearest(word: string, names: readonly string[]): readonly string[] {
  let [found, least]: [string[], number] = [[], differencesMax];
  for (const name of names) {
    const length = Math.max(word.length, name.length);
    if (length > lengthMax || Math.abs(word.length - name.length) > least) continue;
    const differences = distance(word.toLowerCase(), name.toLowerCase(), least);
    if (differences > least || differences >= 0.6 * length) continue;
    found = differences < least ? [name] : [...found, name];
    least = differences;
  }
  return found;
}

// A project may have 10,000 names, and somebody may type as many that are not there, while others wait.
const wordsMax = 5;
const differencesMax = 3;
const lengthMax = 100;

/**
 * How many characters must be put in, left out or replaced to make one text of the other; two that changed places count
 * once. Texts that differ in more than `most` characters are not compared to their ends.
 * @see https://en.wikipedia.org/wiki/Damerau%E2%80%93Levenshtein_distance
 */
function distance(a: string, b: string, most: number): number {
  const far = most + 1;
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i++) {
    const next = new Array<number>(b.length + 1).fill(far);
    next[0] = i;
    let least = i;
    for (let j = Math.max(1, i - most); j <= Math.min(b.length, i + most); j++) {
      const replaced = (row[j - 1] ?? far) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isTurned = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const turned = isTurned ? (before[j - 2] ?? far) + 1 : far;
      const fewest = Math.min(replaced, turned, (row[j] ?? far) + 1, (next[j - 1] ?? far) + 1);
      next[j] = fewest;
      least = Math.min(least, fewest);
    }
    if (least > most) return far;
    [before, row] = [row, next];
  }
  return row[b.length] ?? far;
}
