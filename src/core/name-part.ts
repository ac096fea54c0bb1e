/* Names that people look for by a part of them: by its words, each of which a name must have. Case is ignored. */

/** The words of a part. It may have none. */
export function wordsOf(part: string): readonly string[] {
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
  const sought = folded(part.trim());
  return (name) => {
    const text = folded(name);
    return text === sought ? 0 : text.startsWith(sought) ? 1 : 2;
  };
}

function holdsAll(words: readonly string[]): (text: string) => boolean {
  const sought = words.map(folded);
  return (text) => {
    const searched = folded(text);
    return sought.every((word) => searched.includes(word));
  };
}

/** In lower case, with one sigma: which of two it is in lower case depends on the letters beside it. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}
