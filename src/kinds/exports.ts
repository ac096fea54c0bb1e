import { visibleLines } from "../core/visible.ts";
import type { Item, OpenSet } from "../editing/open.ts";
import type { ExportAsk, ExportItem } from "./export-item.ts";
import { exportFiles } from "./files/export.ts";
import { exportVariables } from "./variables/export.ts";

/** Kinds whose items leave as more than one JSON object of their values, by name. */
const own: Readonly<Record<string, (items: readonly Item<never>[], ask: ExportAsk) => ExportItem[]>> = {
  variables: exportVariables,
  files: exportFiles,
};

/** The files that the items of a set become. */
export function exportItems({ descriptor: { kind }, items }: OpenSet, ask: ExportAsk): ExportItem[] {
  const make = own[kind];
  if (make !== undefined) return make([...items.values()] as Item<never>[], ask);
  // Values are JSON as they are stored.
  const members = [...items].map(([name, { value }]) => `  ${JSON.stringify(name)}: ${value}`);
  return [{ path: `${kind}.json`, text: visibleLines(`{\n${members.join(",\n")}\n}\n`) }];
}
