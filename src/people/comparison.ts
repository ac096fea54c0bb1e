import { compareBytes, type Environment } from "../core/names.ts";
import type { AdminContext } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import { findProject, placeOf } from "../desk/projects.ts";
import { descriptorOf } from "../kinds/kind.ts";
import type { ContentEntry, Entry, KindDescriptor } from "../sets/kind.ts";
import { type Item, openItems, requireSets } from "../sets/open.ts";
import type { VerifiedSet } from "../sets/verified-set.ts";

/* Which environments of a project have an item, and whether they have the same. No value leaves this file. */

/** What the environments of a project have of a kind, as far as somebody may see. */
export type ItemsAcross = {
  /** Those that they may see. */
  readonly environments: readonly Environment[];
  /** Each item once, in byte order of name. */
  readonly items: readonly {
    readonly name: string;
    /** An environment that does not have the item is absent. */
    readonly environments: Readonly<Partial<Record<Environment, ComparedItem>>>;
  }[];
};

/** An item in one environment, compared with the same item in the others. */
type ComparedItem = {
  /** Epoch milliseconds. */
  readonly updatedAt: number;
  /**
   * Environments with the same content have the same number: 1 for the first environment, then 2 and 3. Null where
   * somebody may not see values: it would tell whether a guess is the stored one.
   */
  readonly group: number | null;
};

/**
 * Compares the environments of a project, item by item: the fields of accounts, the values of variables without their
 * days of rotation, and all that the listing shows of a file, without the times of any. Nothing is on record, since no
 * value is shown.
 *
 * @param kind - one of `everyKind`
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict` if a set does not verify or open
 */
export async function compareEnvironments(admin: AdminContext, where: string, kind: string): Promise<ItemsAcross> {
  const descriptor = descriptorOf(kind);
  const project = await findProject(admin, where, "see");
  const revealing = Permit.find(admin, ["see", "reveal"], placeOf(project));
  const sets = (await requireSets(admin, project, descriptor)).map((set) => {
    const { environment } = set;
    if (!revealing?.allows("reveal", environment)) return { environment, items: listed(descriptor, set) };
    return openItems({ project: { ...project, permit: revealing }, descriptor, environment }, set);
  });
  const names = new Set(sets.flatMap(({ items }) => [...items.keys()]));
  const items = [...names].sort(compareBytes).map((name) => {
    const holders = sets.flatMap(({ environment, items }) => {
      const found = items.get(name);
      return found === undefined ? [] : [{ environment, found }];
    });
    const groups = groupsOf(holders.map(({ found }) => (isOpened(found) ? contentOf(descriptor, found) : null)));
    const environments = Object.fromEntries(
      holders.map(({ environment, found }, index): [Environment, ComparedItem] => {
        return [environment, { updatedAt: found.entry.updatedAt, group: groups[index] ?? null }];
      }),
    );
    return { name, environments };
  });
  for (const { items } of sets) {
    for (const item of items.values()) if (isOpened(item)) item.value?.fill(0);
  }
  return { environments: project.permit.environments, items };
}

function isOpened<E extends Entry>(item: { readonly entry: E } | Item<E>): item is Item<E> {
  return "value" in item;
}

/** The items of a set that is not opened. */
function listed<E extends Entry>({ nameOf }: KindDescriptor<E>, { entries }: VerifiedSet<E>) {
  return new Map<string, { readonly entry: E } | Item<E>>(entries.map((entry) => [nameOf(entry), { entry }]));
}

/**
 * What makes two items the same: the value without its time, or what the listing shows of a content, without its id and
 * its times.
 */
export function contentOf({ hasValues, datedValue }: KindDescriptor, { entry, value }: Item): string {
  if (hasValues) return datedValue(Buffer.from(value ?? []), 0).toString();
  const { id: _, version: __, updatedAt: ___, ...shown } = entry as ContentEntry;
  return JSON.stringify(shown);
}

/** Numbers the contents from 1, in the order in which they are first seen. */
function groupsOf(contents: readonly (string | null)[]): (number | null)[] {
  const distinct = [...new Set(contents.filter((content) => content !== null))];
  return contents.map((content) => (content === null ? null : distinct.indexOf(content) + 1));
}
