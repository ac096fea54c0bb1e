import { remarkNames } from "../core/names.ts";
import { visibleLines } from "../core/visible.ts";
import type { Operations } from "../people/desk/operation.ts";
import type { Item, OpenSet } from "../people/editing/open.ts";
import { alarmActions, machineActions, peopleActions } from "../record/entry.ts";
import { projects, requests } from "../serve/access/grant.ts";
import type { KindDescriptor } from "../serve/sets/kind.ts";
import type { ExportAsk, ExportItem } from "./export-item.ts";
import { everyKind } from "./kind.ts";
import { variables } from "./variables/entry.ts";

// What people use of each kind. Its operations and its export are loaded only if they are used.

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

/** The files that the items of a set become, and one for each remark, such as their notes, if there are any. */
export async function exportItems(set: OpenSet, ask: ExportAsk): Promise<ExportItem[]> {
  const remarks = remarkNames.flatMap((remark) => {
    const said = [...set.items].flatMap(([name, { entry }]) => (entry[remark] ? [[name, entry[remark]]] : []));
    const text = visibleLines(`${JSON.stringify(Object.fromEntries(said), null, 2)}\n`);
    return said.length === 0 ? [] : [{ path: `${set.descriptor.kind}-${remark}s.json`, text }];
  });
  return [...(await exportValues(set, ask)), ...remarks];
}

async function exportValues({ descriptor: { kind }, items }: OpenSet, ask: ExportAsk): Promise<ExportItem[]> {
  const make = await own[kind]?.();
  if (make !== undefined) return make([...items.values()] as Item<never>[], ask);
  // Values are JSON as they are stored.
  const members = [...items].map(([name, { value }]) => `  ${JSON.stringify(name)}: ${value?.shown()}`);
  return [{ path: `${kind}.json`, text: visibleLines(`{\n${members.join(",\n")}\n}\n`) }];
}

/** The descriptor of a kind that is known at run time only. */
export function descriptorOf(kind: string): KindDescriptor {
  const found = everyKind.find((descriptor) => descriptor.kind === kind);
  if (found === undefined) throw new Error(`there is no kind ${kind}`);
  return found;
}

/** What a key may read, in the order of the bits that store it. */
export const resources: readonly string[] = [projects, requests, ...everyKind.map(({ resource }) => resource)]
  .sort((a, b) => a.bit - b.bit)
  .map(({ name }) => name);

/** What a new key may read unless somebody says otherwise. */
export const resourcesByDefault: readonly string[] = [projects.name, variables.resource.name];

/** What people change or see. */
export const changeActions: readonly string[] = [
  ...everyKind.flatMap(({ actions }) => actions.filter((action) => !action.endsWith(".read"))),
  ...peopleActions,
];

/** What the audit records: reads, then changes. */
export const auditActions: readonly string[] = [
  ...everyKind.flatMap(({ actions }) => actions.filter((action) => action.endsWith(".read"))),
  ...machineActions,
  ...alarmActions,
  ...changeActions,
];
