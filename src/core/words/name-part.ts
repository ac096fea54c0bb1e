import { Refused } from "../refused.ts";

/* Names that people look for by a part of them: by its words, each of which a name must have. Case is ignored. */

/** @throws Refused `invalid` if a part has no word, or is longer than any name */
export function requirePart(part: string): void {
  if (wordsOf(part).length === 0) throw new Refused("invalid", "Give a part of a name.");
  if (part.length <= lengthMax) return;
  throw new Refused(
    "invalid",
    `No name has more than ${lengthMax.toLocaleString("en")} characters: give a part of one.`,
  );
}

/** The longest names are paths. Each word is looked for in every name, so thousands of words would hold up everybody. */
const lengthMax = 1024;

function wordsOf(part: string): readonly string[] {
  return part.split(/\s+/u).filter((word) => word !== "");
}

/** Whether a name has every word of a part. */
export function hasPart(part: string): (name: string) => boolean {
  return holdsAll(wordsOf(part));
}

/** Whether a JSON text may have a name with every word of a part. If it does not, no text in it has. */
export function mayHavePart(part: string): (json: string) => boolean {
  return holdsAll(wordsOf(part).map((word) => JSON.stringify(word).slice(1, -1)));
}

/**
 * What a JSON text with such a name has in it, as SQL compares texts in lower case: with A to Z alone made small. It has
 * all of these, and may have them without the name.
 */
export function tracesOf(part: string): readonly string[] {
  const runs = wordsOf(part).flatMap((word) => word.match(/[\x20-\x7e]+/g) ?? []);
  return runs.map((run) => JSON.stringify(run.slice(0, traceMax)).slice(1, -1).toLowerCase());
}

/** SQLite refuses a long pattern. */
const traceMax = 255;

/** How well a name fits a part that it has: 0 if it is the whole name, 1 if the name begins with it, else 2. */
export function rankOf(part: string): (name: string) => 0 | 1 | 2 {
  const sought = RegExp.escape(part.trim());
  const [whole, beginning] = [new RegExp(`^${sought}$`, "iu"), new RegExp(`^${sought}`, "iu")];
  return (name) => (whole.test(name) ? 0 : beginning.test(name) ? 1 : 2);
}

/** Patterns ignore case without a copy of each text: a million names take a third of the time. */
function holdsAll(words: readonly string[]): (text: string) => boolean {
  const patterns = words.map((word) => new RegExp(RegExp.escape(word), "iu"));
  return (text) => patterns.every((pattern) => pattern.test(text));
}
