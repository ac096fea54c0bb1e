import { compareBytes, type Environment } from "../core/names.ts";
import type { AdminContext } from "../desk/context.ts";
import { findProject } from "../desk/projects.ts";
import { descriptorOf } from "../kinds/kind.ts";
import type { ContentEntry, Entry, KindDescriptor } from "../sets/kind.ts";
import { type Item, openItems, requireSets } from "../sets/open.ts";

/* Which environments of a project have an item, and whether they have the same. No value leaves this file. */

/** What the environments of a project have of a kind: their versions, and each item once, in byte order of name. */
export type ItemsAcross<InEnvironment> = {
  readonly versions: Readonly<Record<Environment, number>>;
  readonly items: readonly {
    readonly name: string;
    /** An environment that does not have the item is absent. */
    readonly environments: Readonly<Partial<Record<Environment, InEnvironment>>>;
  }[];
};

/** An item in one environment. */
export type DatedItem = {
  /** Epoch milliseconds. */
  readonly updatedAt: number;
};

/** An item in one environment, compared with the same item in the others. */
export type ComparedItem = DatedItem & {
  /** Environments with the same content have the same number: 1 for the first environment, then 2 and 3. */
  readonly group: number;
};

/**
 * Compares the environments of a project, item by item: the fields of accounts, the values of variables without their
 * days of rotation, and all that the listing shows of a file, without the times of any. It tells whether a guess is the
 * stored value, so it is for people who may see values. Nothing is on record, since no value is shown.
 *
 * @param kind - one of `everyKind`
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict` if a set does not verify or open
 */
export async function compareEnvironments(
  admin: AdminContext,
  where: string,
  kind: string,
): Promise<ItemsAcross<ComparedItem>> {
  const descriptor = descriptorOf(kind);
  const project = await findProject(admin, where);
  const sets = (await requireSets(admin, project, descriptor)).map((set) =>
    openItems({ project, descriptor, environment: set.environment }, set),
  );
  const compared = across(sets, (found) => {
    const groups = found.length > 1 ? groupsOf(found.map((item) => contentOf(descriptor, item))) : [1];
    return found.map(({ entry }, index) => ({ updatedAt: entry.updatedAt, group: groups[index] as number }));
  });
  for (const { items } of sets) for (const { value } of items.values()) value?.fill(0);
  return compared;
}

/**
 * The same without a comparison, from the listings alone: for people who may not see values. No value is opened.
 * @throws Refused as {@link compareEnvironments}
 */
export async function listAcross(admin: AdminContext, where: string, kind: string): Promise<ItemsAcross<DatedItem>> {
  const descriptor = descriptorOf(kind);
  const listed = (await requireSets(admin, await findProject(admin, where), descriptor)).map((set) => {
    const items = new Map(set.entries.map((entry) => [descriptor.nameOf(entry), entry]));
    return { environment: set.environment, version: set.stored.version, items };
  });
  return across(listed, (found) => found.map(({ updatedAt }) => ({ updatedAt })));
}

/**
 * What makes two items the same: the value without its time, or what the listing shows of a content, without its id and
 * its times.
 */
export function contentOf({ hasValues, datedValue }: KindDescriptor<Entry>, { entry, value }: Item<Entry>): string {
  if (hasValues) return datedValue(Buffer.from(value ?? []), 0).toString();
  const { id: _, version: __, updatedAt: ___, ...shown } = entry as ContentEntry;
  return JSON.stringify(shown);
}

/** @param show - what is shown of an item, from what each environment that has it holds */
function across<Found, Shown>(
  sets: readonly {
    readonly environment: Environment;
    readonly version: number;
    readonly items: ReadonlyMap<string, Found>;
  }[],
  show: (found: readonly Found[]) => readonly Shown[],
): ItemsAcross<Shown> {
  const names = new Set(sets.flatMap(({ items }) => [...items.keys()]));
  const items = [...names].sort(compareBytes).map((name) => {
    const holders = sets.filter((set) => set.items.has(name));
    const shown = show(holders.map((set) => set.items.get(name) as Found));
    const environments = Object.fromEntries(holders.map(({ environment }, index) => [environment, shown[index]]));
    return { name, environments: environments as Partial<Record<Environment, Shown>> };
  });
  const versions = Object.fromEntries(sets.map(({ environment, version }) => [environment, version]));
  return { versions: versions as Record<Environment, number>, items };
}

/** Numbers the contents from 1, in the order in which they are first seen. */
function groupsOf(contents: readonly string[]): number[] {
  const distinct = [...new Set(contents)];
  return contents.map((content) => distinct.indexOf(content) + 1);
}
