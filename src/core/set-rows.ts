import type { Environment, EnvironmentMask } from "./names.ts";

/** What a request looks up with its key: a project, and sets in it. Empty texts and masks of zero look up nothing. */
export type Lookup = {
  readonly slug: string;
  readonly kind: string;
  /** The environments whose sets are needed. */
  readonly environments: EnvironmentMask;
  /** Those of them whose values are needed. */
  readonly values: EnvironmentMask;
};

/** The digest of a key's text or of a trust's id, and what is looked up with it. */
export type KeyLookup = Lookup & { readonly digest: Uint8Array };

/**
 * A statement that has a row if the database still answers a lookup in the same way. The journal stores a segment on this
 * condition, in one statement: its own parameters come first.
 */
export type AppendCondition = { readonly text: string; readonly parameters: readonly unknown[] };

/** The number of a condition's first parameter. */
export const conditionFrom = 9;

/** The requested project with the sets that the request needs, from the snapshot in which the key was judged. */
export type Target = {
  readonly projectId: string;
  /** How many items of the kind that was asked for it has, as they are stored; null unless the kind has a bound. */
  readonly counts: string | null;
  readonly sets: readonly FoundSet[];
};

/** Which version of a set is current. */
export type FoundSet = {
  readonly environment: Environment;
  /** Changes when the row or its data key is written. Empty on SQLite, where `row` is there in its place. */
  readonly rowVersion: string;
  readonly row: StoredSet | null;
};

/** A set's row. */
export type StoredSet = {
  readonly environment: Environment;
  readonly rowVersion: string;
  readonly version: number;
  readonly generation: number;
  readonly listingMac: Buffer | null;
  /** Null if it was too large to be fetched. */
  readonly listing: string | null;
  readonly listingBytes: number;
  /** Null if it was not fetched, or for files. */
  readonly sealed: Buffer | null;
  /** Null for files. */
  readonly sealedBytes: number | null;
  /** The data key; null if there is none of that generation. */
  readonly rootId: string | null;
  readonly wrapped: Buffer | null;
};
