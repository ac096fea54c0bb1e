/* Stored text for the eyes of people: it may hold characters that a screen acts on or hides. */

/** Escapes every character that a screen would act on or hide, such as `\u001b`. One escape is one UTF-16 unit. */
export function visible(text: string): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(unseen, (character) => character.replace(/[\s\S]/g, escapeUnit));
}

/** The same for text of several lines. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/** A line of compact JSON that is safe on a terminal. The escapes are JSON's own, so parsers return the exact text. */
export function jsonLine(document: unknown): string {
  return `${visible(JSON.stringify(document))}\n`;
}

/** The same, in pieces if it is a list. */
export function* jsonPieces(document: unknown): Generator<string> {
  if (!Array.isArray(document) || document.length === 0) return yield jsonLine(document);
  for (const [at, item] of document.entries()) yield `${at === 0 ? "[" : ","}${visible(JSON.stringify(item))}`;
  yield "]\n";
}

/** {@link visible} text in one line, with one blank for each run of blanks. */
export function oneLine(text: string): string {
  return visible(text.replace(blanks, " "));
}

/**
 * Text that strangers chose, such as a reason or a name, for a table or a message. It is one line, so it cannot look
 * like other fields, and of bounded length.
 */
export function excerpt(text: string): string {
  const line = oneLine(text);
  if (line.length <= excerptMax) return line;
  const characters = [...line];
  return characters.length > excerptMax ? `${characters.slice(0, excerptMax).join("")}…` : characters.join("");
}

/** Characters that a screen acts on or hides. */
export const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** What looks like a blank and is not {@link unseen}. */
const blanks = /[\p{Zs}\u2800]+/gu;
const excerptMax = 500;
