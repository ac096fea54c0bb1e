import { type Remarks, remarkNames } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { input } from "../desk/inputs.ts";
import type { Columns } from "../desk/outcome.ts";

/* What people say of items, such as a note. It is in the listing, and is no secret. A new remark has its words here. */

/** What says each remark, for what writes an item. */
export const remarkInputs = {
  note: input(
    "--note <text>",
    `what it is, who rotates it, where it is made: not secret, and never served (default: the note that it has; "" removes it)`,
  ),
};

/** The words of each remark for a form. */
export const remarkHelp: Readonly<Record<keyof Remarks, string>> = {
  note: "What it is, who rotates it, where it is made. It is not secret: everybody who sees the name sees it.",
};

/** The remarks among the members of something. */
export function remarksIn(of: Remarks): { readonly [name in keyof Remarks]?: string } {
  const said = remarkNames.flatMap((name) => (of[name] === undefined ? [] : [[name, of[name]]]));
  return Object.fromEntries(said);
}

/** Remarks as they are stored: one line each, empty for none. @throws Refused `invalid` */
export function requireRemarks(what: string, given: Remarks): Remarks {
  const lines = Object.entries(remarksIn(given)).map(([name, text]) => [name, requireLine(name, what, text)]);
  return Object.fromEntries(lines);
}

function requireLine(name: string, what: string, text: string): string {
  const line = text.replace(/\s+/gu, " ").trim();
  if (/^[^\p{Cc}\p{Cs}]{0,500}$/u.test(line)) return line;
  throw new Refused("invalid", `The ${name} of ${what} must have at most 500 characters, and no control characters.`);
}

/** The remarks of an item that is written. @param given - as {@link requireRemarks} returns them; the others stay */
export function remarked(given: Remarks, old: Remarks = {}): Remarks {
  return Object.fromEntries(remarkNames.map((name) => [name, (given[name] ?? old[name]) || undefined]));
}

/** Whether one of these is another than an item has. @param old - undefined if that may not be told */
export function isRemarked(given: Remarks, old: Remarks | undefined): boolean {
  return Object.entries(remarksIn(given)).some(
    ([name, text]) => old === undefined || text !== (old[name as keyof Remarks] ?? ""),
  );
}

/** What is said of an item in all of these environments; undefined if they differ. */
export function saidInAll(entries: Iterable<Remarks>, remark: keyof Remarks): string | undefined {
  const [text = "", ...others] = new Set(Array.from(entries, (entry) => entry[remark] ?? ""));
  return others.length === 0 ? text : undefined;
}

/** A column for each of these remarks that one of the items has. */
export function remarkColumns<T extends Remarks>(
  items: readonly T[],
  among: readonly (keyof Remarks)[] = remarkNames,
): Columns<T> {
  const said = among.filter((name) => items.some((item) => item[name]));
  return Object.fromEntries(said.map((name) => [name.toUpperCase(), (item: T) => ({ name: item[name] ?? null })]));
}
