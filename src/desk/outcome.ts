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
};

/** One thing: a line for each label that has a text. */
export type Facts = { readonly facts: Readonly<Record<string, string>> };

/** A table, the most important columns first, or a sentence if it has no rows. */
export type List = {
  readonly headers: readonly string[];
  readonly rows: readonly (readonly string[])[];
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
  readonly advice?: (path: string | undefined) => string;
  /** Undoes the operation if nobody gets them. @returns a sentence about that */
  readonly ifLost?: (admin: AdminContext) => Promise<string>;
};

/** The columns of a table: each header with the cell that an item has under it. */
export type Columns<T> = Readonly<Record<string, (item: T) => string | number>>;

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
  return { document: items, shows: { ...tableOf(items, columns), none, shown } };
}

/** One item was found. @param more - what its document has beside it */
export function one<T extends object>(item: T, columns: Columns<T>, more: object = {}): Outcome {
  return { document: { ...item, ...more }, shows: factsOf(item, columns) };
}

export function factsOf<T>(item: T, columns: Columns<T>): Facts {
  const { headers, rows } = tableOf([item], columns);
  return { facts: Object.fromEntries(headers.map((header, at) => [header, rows[0]?.[at] ?? ""])) };
}

function tableOf<T>(items: readonly T[], columns: Columns<T>): Pick<List, "headers" | "rows"> {
  const rows = items.map((item) => Object.values(columns).map((cell) => String(cell(item))));
  return { headers: Object.keys(columns), rows };
}
