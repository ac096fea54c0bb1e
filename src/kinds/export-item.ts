import type { TextFormat } from "../core/formats/format.ts";
import type { Item } from "../people/editing/open.ts";
import type { ContentEntry } from "../serve/sets/kind.ts";

/** How the items of a set leave Keyhole: as a file below the folder of their environment. */
export type ExportItem =
  | { readonly path: string; readonly text: string }
  | { readonly path: string; readonly mode: ExportMode; readonly item: Item<ContentEntry> };

export type ExportMode = "0600" | "0400";

/** What an export is asked for. */
export type ExportAsk = {
  /** What variables are written as, besides JSON. */
  readonly formats: readonly TextFormat[];
  readonly warn: (line: string) => void;
};
