// The three kinds of item. Sets, writers, the verifier and rotation are written once, for a kind's descriptor.

/** An entry of a listing, by kind: what a metadata read shows of an item in one environment. Field order is JSON's. */
export type Entries = {
  readonly variables: { readonly key: string; readonly updatedAt: number };
  readonly accounts: { readonly name: string; readonly updatedAt: number };
  readonly files: FileEntry;
};
export type FileEntry = {
  /** Of the content. The API does not show it. */
  readonly id: string;
  readonly path: string;
  readonly name: string;
  readonly mode: "0600" | "0400";
  /** Bytes of plaintext. */
  readonly size: number;
  /** Of the plaintext, in lower-case hex. */
  readonly sha256: string;
  readonly contentType: string;
  readonly updatedAt: number;
};
export type Kind = keyof Entries;

export type KindDescriptor<K extends Kind> = {
  readonly kind: K;
  /** What its items are sorted and found by. */
  readonly nameOf: (entry: Entries[K]) => string;
  /** What makes entries of several environments one item. */
  readonly identityOf: (entry: Entries[K]) => string;
  /** Whether a set holds the values; if not, each item has a content of its own. */
  readonly hasValues: boolean;
  readonly countsColumn: "variableCounts" | "accountCounts" | "fileCounts";
};

/** The values of variables are the objects of the answer; those of accounts are the objects of their fields. */
export const variables: KindDescriptor<"variables"> = {
  kind: "variables",
  nameOf: ({ key }) => key,
  identityOf: ({ key }) => key,
  hasValues: true,
  countsColumn: "variableCounts",
};
export const accounts: KindDescriptor<"accounts"> = {
  kind: "accounts",
  nameOf: ({ name }) => name,
  identityOf: ({ name }) => name,
  hasValues: true,
  countsColumn: "accountCounts",
};
export const files: KindDescriptor<"files"> = {
  kind: "files",
  nameOf: ({ path }) => path,
  identityOf: ({ id }) => id,
  hasValues: false,
  countsColumn: "fileCounts",
};

export const everyKind = [variables, accounts, files] as const;

/** The most items, and the most bytes of values or of the listing, in one set. */
export const setItemsMax = 10_000;
export const setBytesMax = 8 * 1024 * 1024;
