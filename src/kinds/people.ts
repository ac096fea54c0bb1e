import { visibleLines } from "../core/visible.ts";
import type { Operations } from "../desk/operation.ts";
import type { Item, OpenSet } from "../editing/open.ts";
import type { ExportAsk, ExportItem } from "./export-item.ts";

// What people use of each kind, loaded only if it is used.

/** The operations of each kind by their first word. */
export const kindOperations: Readonly<Record<string, () => Promise<Operations>>> = {
  var: async () => (await import("./variables/operations.ts")).variableOperations,
  account: async () => (await import("./accounts/operations.ts")).accountOperations,
  file: async () => (await import("./files/operations.ts")).fileOperations,
};

type Export = (items: readonly Item<never>[], ask: ExportAsk) => ExportItem[];

/** Kinds whose items leave as more than one JSON object of their values, by name. */
const own: Readonly<Record<string, () => Promise<Export>>> = {
  variables: async () => (await import("./variables/export.ts")).exportVariables,
  files: async () => (await import("./files/export.ts")).exportFiles,
};

/** The files that the items of a set become. */
export async function exportItems({ descriptor: { kind }, items }: OpenSet, ask: ExportAsk): Promise<ExportItem[]> {
  const make = await own[kind]?.();
  if (make !== undefined) return make([...items.values()] as Item<never>[], ask);
  // Values are JSON as they are stored.
  const members = [...items].map(([name, { value }]) => `  ${JSON.stringify(name)}: ${value}`);
  return [{ path: `${kind}.json`, text: visibleLines(`{\n${members.join(",\n")}\n}\n`) }];
}
