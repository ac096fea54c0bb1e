import { countsColumnOf, type KindDescriptor } from "../serve/sets/kind.ts";
import { accounts } from "./accounts/entry.ts";
import { files } from "./files/entry.ts";
import { variables } from "./variables/entry.ts";

/** The kinds of item. Everything that treats all of them walks this list. */
export const everyKind: readonly KindDescriptor[] = [variables, accounts, files];

/** The kinds of which a project has a bounded number of items, with the columns that count them. */
export function boundedKinds(): (readonly [kind: string, counts: `${string}Counts`])[] {
  return everyKind
    .filter(({ projectItemsMax }) => projectItemsMax !== undefined)
    .map((one) => [one.kind, countsColumnOf(one)]);
}

/** The kind that each action of machines reads. */
export const kindsByRead: Readonly<Record<string, string>> = Object.fromEntries(
  everyKind.flatMap(({ kind, actions }) =>
    actions.filter((action) => action.endsWith(".read")).map((action) => [action, kind]),
  ),
);
