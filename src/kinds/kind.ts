import { projects, requests } from "../access/grant.ts";
import { alarmActions, machineActions, peopleActions } from "../audit/entry.ts";
import type { KindDescriptor } from "../sets/kind.ts";
import { accounts } from "./accounts/entry.ts";
import { files } from "./files/entry.ts";
import { variables } from "./variables/entry.ts";

/** The kinds of item. Everything that treats all of them walks this list. */
export const everyKind: readonly KindDescriptor[] = [variables, accounts, files];

/** The descriptor of a kind that is known at run time only. */
export function descriptorOf(kind: string): KindDescriptor {
  const found = everyKind.find((descriptor) => descriptor.kind === kind);
  if (found === undefined) throw new Error(`there is no kind ${kind}`);
  return found;
}

/** The kind that each action of machines reads. */
export const kindsByRead: Readonly<Record<string, string>> = Object.fromEntries(
  everyKind.flatMap(({ kind, actions }) =>
    actions.filter((action) => action.endsWith(".read")).map((action) => [action, kind]),
  ),
);

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
