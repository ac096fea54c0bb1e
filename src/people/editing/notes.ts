import { Refused } from "../../core/refused.ts";
import type { Entry } from "../../serve/sets/kind.ts";
import { input } from "../desk/inputs.ts";

/* Notes of items: what an item is, who rotates it, where it is made. A note is in the listing, and is no secret. */

/** For what writes an item. */
export const noteInput = input(
  "--note <text>",
  `what it is, who rotates it, where it is made: not secret, and never served (default: the note that it has; "" removes it)`,
);

/** A note as it is stored: one line, empty for none. @throws Refused `invalid` */
export function requireNote(what: string, text: string): string {
  const note = text.replace(/\s+/gu, " ").trim();
  if (/^[^\p{Cc}\p{Cs}]{0,500}$/u.test(note)) return note;
  throw new Refused("invalid", `The note of ${what} must have at most 500 characters, and no control characters.`);
}

/** The note of an item that is written. @param given - as {@link requireNote} returns it; undefined keeps the old one */
export function noted(given: string | undefined, old: Pick<Entry, "note"> | undefined): Pick<Entry, "note"> {
  return { note: (given ?? old?.note) || undefined };
}
