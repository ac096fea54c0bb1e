// The three kinds of item. Sets, writers, the verifier and rotation are written once, for a kind's descriptor.

/** An entry of a listing, by kind: what a metadata read shows of an item in one environment. Field order is JSON's. */
export type Entries = {
  readonly variables: VariableEntry;
  readonly accounts: { readonly name: string } & Written;
  readonly files: FileEntry;
};
export type VariableEntry = { readonly key: string } & Written & {
    /** The last day, in UTC, on which it should be rotated, such as `2030-01-31`. The API does not show it. */
    readonly rotateBy?: string;
  };
type Written = {
  readonly updatedAt: number;
  /**
   * The version of the set that wrote the value, because two writes may be in one millisecond. So a name, a time and a
   * version identify a value without opening it; for files the checksum does. The API does not show it.
   */
  readonly version: number;
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
  /** A value as it is stored if it was written at `updatedAt`, in epoch milliseconds. */
  readonly datedValue: (value: Buffer, updatedAt: number) => Buffer;
};

/** The values of variables are the objects of the answer; those of accounts are the objects of their fields. */
export const variables: KindDescriptor<"variables"> = {
  kind: "variables",
  nameOf: ({ key }) => key,
  identityOf: ({ key }) => key,
  hasValues: true,
  countsColumn: "variableCounts",
  datedValue: (value, updatedAt) => Buffer.from(JSON.stringify({ ...JSON.parse(value.toString("utf8")), updatedAt })),
};
export const accounts: KindDescriptor<"accounts"> = {
  kind: "accounts",
  nameOf: ({ name }) => name,
  identityOf: ({ name }) => name,
  hasValues: true,
  countsColumn: "accountCounts",
  datedValue: (value) => value,
};
export const files: KindDescriptor<"files"> = {
  kind: "files",
  nameOf: ({ path }) => path,
  identityOf: ({ id }) => id,
  hasValues: false,
  countsColumn: "fileCounts",
  datedValue: (value) => value,
};

export const everyKind = [variables, accounts, files] as const;

/** When a variable that is marked with this day is overdue: at the day's end in UTC, in epoch milliseconds. */
export function dueAtOf(rotateBy: string): number {
  return Date.parse(rotateBy) + 86_400_000;
}

/** The descriptor of a kind that is known at run time only. */
export function descriptorOf(kind: Kind): KindDescriptor<Kind> {
  return everyKind.find((descriptor) => descriptor.kind === kind) as KindDescriptor<Kind>;
}

/** The most items, and the most bytes of values or of the listing, in one set. */
export const setItemsMax = 10_000;
export const setBytesMax = 8 * 1024 * 1024;
