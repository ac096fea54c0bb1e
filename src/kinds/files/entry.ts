import type { Entry, KindDescriptor } from "../../sets/kind.ts";

/** A secret file in a listing. */
export type FileEntry = Entry & {
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
};

/** A set of files has no values: each content is a row of its own. */
export const files: KindDescriptor<FileEntry> = {
  kind: "files",
  command: "file",
  nameOf: ({ path }) => path,
  identityOf: ({ id }) => id,
  hasValues: false,
  countsColumn: "fileCounts",
  datedValue: (value) => value,
};
