import { itemsMax } from "../../core/names.ts";
import type { ContentEntry, KindDescriptor } from "../../serve/sets/kind.ts";

/** A secret file in a listing. */
export type FileEntry = ContentEntry & {
  readonly path: string;
  readonly name: string;
  readonly mode: "0600" | "0400";
  readonly contentType: string;
};

/** A set of files has no values: each content is a row of its own. */
export const files: KindDescriptor<FileEntry> = {
  kind: "files",
  command: "file",
  item: "file",
  counted: "Secret files",
  isCountedInLists: false,
  resource: { name: "files", bit: 8 },
  actions: ["file.read", "files.write", "files.reveal", "files.rollback"],
  isReadAlone: false,
  isReadByName: true,
  projectItemsMax: itemsMax,
  hasValues: false,
  nameOf: ({ path }) => path,
  identityOf: ({ id }) => id,
  warningsOf: () => [],
};
