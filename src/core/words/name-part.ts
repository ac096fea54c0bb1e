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
  return partWithin(part)("").isNamed;
}

/**
 * `isNamed`: whether a name has each word that the text around it lacks. `mayName`: whether a JSON text may have such a
 * name, so that others need no parsing.
 */
export type Within = Readonly<Record<"isNamed" | "mayName", (text: string) => boolean>>;

/**
 * Looks for each word of a part in a name, or in the words around it, such as its project. One word at least must be in
 * the name.
 */
export function partWithin(part: string): (around: string) => Within {
  const words = wordsOf(part).map((word) => {
    return { isNamed: patternOf(word), mayName: patternOf(JSON.stringify(word).slice(1, -1)) };
  });
  return (around) => {
    const left = words.filter(({ isNamed }) => !isNamed.test(around));
    const isAllAround = left.length === 0 && words.length > 0;
    const holds = (which: keyof Within) => (text: string) =>
      isAllAround ? words.some((word) => word[which].test(text)) : left.every((word) => word[which].test(text));
    return { isNamed: holds("isNamed"), mayName: holds("mayName") };
  };
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

/** How well a name fits a part: 0 if it is the part, or one of its words; 1 if it begins with one; else 2. */
export function rankOf(part: string): (name: string) => 0 | 1 | 2 {
  const sought = [part.trim(), ...wordsOf(part)].map((text) => RegExp.escape(text)).join("|");
  const [whole, beginning] = [new RegExp(`^(?:${sought})$`, "iu"), new RegExp(`^(?:${sought})`, "iu")];
  return (name) => (whole.test(name) ? 0 : beginning.test(name) ? 1 : 2);
}

/** Patterns ignore case without a copy of each text: a million names take a third of the time. */
function patternOf(word: string): RegExp {
  return new RegExp(RegExp.escape(word), "iu");
}
