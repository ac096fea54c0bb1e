import type { Kind } from "../store/tables.ts";

/** What a kind of item is to its sets: one set, one writer, one verifier and one rotation work with every kind. */
export type KindDescriptor<E extends Entry> = {
  readonly kind: Kind;
  /** The command of the people who write it. */
  readonly command: string;
  /** What its items are sorted and found by. */
  nameOf(entry: E): string;
  /** What makes entries of several environments one item. */
  identityOf(entry: E): string;
  /** Whether a set holds the values; if not, each item has a content of its own. */
  readonly hasValues: boolean;
  /** The column of `projects` that holds its counts. */
  readonly countsColumn: "variableCounts" | "accountCounts" | "fileCounts";
  /** A value as it is stored if it was written at `updatedAt`, in epoch milliseconds. */
  readonly datedValue: (value: Buffer, updatedAt: number) => Buffer;
};

/** An entry of a listing: what a metadata read shows of an item in one environment. Field order is JSON's. */
export type Entry = {
  readonly updatedAt: number;
  /**
   * The version of the set that wrote the value, because two writes may be in one millisecond. So a name, a time and a
   * version identify a value without opening it; for files the checksum does. The API does not show it.
   */
  readonly version?: number;
};

/** The most items, and the most bytes of values or of the listing, in one set. */
export const setItemsMax = 10_000;
export const setBytesMax = 8 * 1024 * 1024;
