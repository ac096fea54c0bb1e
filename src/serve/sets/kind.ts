import type { Remarks } from "../../core/names.ts";
import type { KindAction } from "../../record/entry.ts";
import type { Resource, Surface } from "../access/grant.ts";

/**
 * What a kind of item is to everything that treats all of them: one set, one writer, one verifier, one history and one
 * rotation work with every kind.
 */
export type KindDescriptor<E extends Entry = Entry> = {
  /** Its name in the database, in paths, in the audit and in commands: `variables`. */
  readonly kind: string;
  /** The command of the people who write it: `var`. */
  readonly command: string;
  /** One of its items, as counts, metrics and messages call it: `variable`. */
  readonly item: string;
  /** What is counted of a project, as the description of the API says it. */
  readonly counted: string;
  /** Whether lists of projects show the count, and not only a project itself. */
  readonly isCountedInLists: boolean;
  /** What a grant must include to read it. */
  readonly resource: Resource;
  /** A surface that reads its values without the resource. */
  readonly surfaceAlone?: Surface;
  /** What the audit records of it. */
  readonly actions: readonly KindAction[];
  /** Whether the answer for one environment depends on the set of that environment alone. */
  readonly isReadAlone: boolean;
  /** Whether a machine can ask for some of its items by name. */
  readonly isReadByName: boolean;
  /** The most items in one project, over its environments; left out for a kind without such a bound. */
  readonly projectItemsMax?: number;
  /** Whether a set holds the values; if not, each item has a content of its own. */
  readonly hasValues: boolean;
  /** What its items are sorted and found by. */
  nameOf(entry: E): string;
  /** What makes entries of several environments one item. */
  identityOf(entry: E): string;
  /** When a value is overdue for rotation, in epoch milliseconds; left out for a kind whose values are not marked. */
  dueAtOf?(entry: E): number | undefined;
  /** A value as it is stored if it was written at `updatedAt`, in epoch milliseconds; left out if it has no time. */
  datedValue?(value: Buffer, updatedAt: number): Buffer;
  /** The secret texts of an opened value, by field; left out if a value is a content. */
  textsOf?(value: never): Readonly<Record<string, string>>;
  /** Whether an opened value belongs to the entry; left out if it says nothing of it. */
  isValueOf?(value: unknown, entry: E): boolean;
  /** What a person must be warned of after a write. */
  warningsOf(where: string, environment: string, write: Written<E>): string[];
};

/** What a write left in an environment, and the entries that it replaced, each with its successor. */
export type Written<E extends Entry = Entry> = {
  readonly total: number;
  readonly replaced: readonly (readonly [old: E, now: Omit<E, "version">])[];
};

/** The column of `projects` that holds a kind's counts. */
export function countsColumnOf({ item }: { readonly item: string }): `${string}Counts` {
  return `${item}Counts`;
}

/** An entry of a listing: what a metadata read shows of an item in one environment. Field order is JSON's. */
export type Entry = Remarks & {
  readonly updatedAt: number;
  /**
   * The version of the set that wrote the value, because two writes may be in one millisecond. So a name, a time and a
   * version identify a value without opening it; for contents the checksum does. The API does not show it.
   */
  readonly version?: number;
  /** Tells the holder of the listing key which marks it has (`seal/canary.ts`). The API does not show it. */
  readonly coin?: string;
};

/** An entry whose content is a row of its own. */
export type ContentEntry = Entry & {
  /** The id of the content. The API does not show it. */
  readonly id: string;
  /** Bytes of plaintext. */
  readonly size: number;
  /** The checksum of the plaintext, in lower-case hex. */
  readonly sha256: string;
};

/** The most items, and the most bytes of values or of the listing, in one set. */
export const setItemsMax = 10_000;
export const setBytesMax = 8 * 1024 * 1024;
