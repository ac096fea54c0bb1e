import type { Problem } from "../../core/problem.ts";
import { excerpt } from "../../core/visible.ts";
import { formatTime } from "../../core/words/text.ts";
import type { AdminContext } from "./context.ts";

/** What an operation has done or found. Each way in shows of it what it can: a terminal, a script, a page. */
export type Outcome = {
  /** What `--json` prints. */
  readonly document: unknown;
  /** What a person is told: on stderr, or above the next page. */
  readonly sentence?: string;
  /** What a person is warned of, before the sentence. */
  readonly warnings?: readonly string[];
  /** What a command prints on stdout without `--json`. */
  readonly shows?: { readonly text: string } | Facts | List | SecretOutput;
  /** How a command ends after it has shown what it found; left out if it ends well. */
  readonly ends?: Problem;
};

/** One thing: a line for each label that has a text. */
export type Facts = { readonly facts: Readonly<Record<string, string>> };

/** A table, the most important columns first, or a sentence if it has no rows. */
export type List = {
  readonly headers: readonly string[];
  /** Made again each time that somebody goes through them, since there may be many. */
  readonly rows: Iterable<readonly string[]>;
  readonly count: number;
  readonly none: string;
  /** How many of the columns are not for `--wide` alone. Default: as many as fit. */
  readonly shown?: number | undefined;
};

/** Bytes that are printed as they are, or written to the file that `--out` names. */
export type SecretOutput = {
  readonly secret: string | Uint8Array;
  /** Its name in messages, such as `The value of TOKEN`. */
  readonly what: string;
  /** How the document has them, unless they go to a file. */
  readonly field: object;
  /** What a person is told of where they are now: in the file `path`, or on stdout. */
  readonly whereItWent?: (path: string | undefined) => string;
  /** Undoes the operation if nobody gets them. @returns a sentence about that */
  readonly ifLost?: (admin: AdminContext) => Promise<string>;
};

/** The columns of a table: each header with the cell that an item has under it. A terminal and a page draw them. */
export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;

/** Text; or a moment, a name that somebody chose, or words of a list, which a page draws in ways of its own. */
export type Cell =
  | string
  | number
  | { readonly at: number | null | undefined }
  /** Null: none. */
  | { readonly name: string | null }
  /** Null: all. */
  | { readonly words: readonly string[] | null };

/** Some of the columns, in this order. */
export function pick<T>(columns: Columns<T>, ...headings: readonly string[]): Columns<T> {
  return Object.fromEntries(headings.map((heading) => [heading, columns[heading] as (item: T) => Cell]));
}

/** A cell as a terminal shows it. */
export function textOf(cell: Cell): string {
  if (typeof cell !== "object") return String(cell);
  if ("at" in cell) return formatTime(cell.at);
  if ("name" in cell) return excerpt(cell.name ?? "-");
  return cell.words?.join(",") ?? "all";
}

/** The cells of a row, as a terminal shows them. */
export function cellsOf<T>(columns: Columns<T>, item: T): string[] {
  return Object.values(columns).map((cell) => textOf(cell(item)));
}

/** Something was done. @param warnings - the document has them, too */
export function done(document: object, sentence: string, warnings?: readonly string[]): Outcome {
  return {
    document: warnings === undefined ? document : { ...document, warnings },
    sentence,
    warnings: warnings ?? [],
  };
}

/** Items were found. @param none - the sentence if there are none @param shown - see {@link List} */
export function list<T>(items: readonly T[], columns: Columns<T>, none: string, shown?: number): Outcome {
  const rows = {
    *[Symbol.iterator]() {
      for (const item of items) yield cellsOf(columns, item);
    },
  };
  return { document: items, shows: { headers: Object.keys(columns), rows, count: items.length, none, shown } };
}

/**
 * The sentence of a list without items: of all there are, or of those that somebody may see.
 * @param what - such as `keys of acme` @param how - what an operator may run
 */
export function noneYet({ rights }: Pick<AdminContext, "rights">, what: string, how: string): string {
  return rights === "operator" ? `There are no ${what} yet: ${how}` : `There are no ${what} that you may see.`;
}

/** One item was found. @param more - what its document has beside it */
export function one<T extends object>(item: T, columns: Columns<T>, more: object = {}): Outcome {
  return { document: { ...item, ...more }, shows: factsOf(item, columns) };
}

export function factsOf<T>(item: T, columns: Columns<T>): Facts {
  return { facts: Object.fromEntries(Object.entries(columns).map(([label, cell]) => [label, textOf(cell(item))])) };
}
