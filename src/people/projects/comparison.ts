import { compareBytes, type Environment, type Remarks } from "../../core/names.ts";
import { descriptorOf } from "../../kinds/people.ts";
import { searchAction } from "../../record/entry.ts";
import { isCanary } from "../../seal/canary.ts";
import type { ContentEntry, KindDescriptor } from "../../serve/sets/kind.ts";
import { type AdminContext, mayCompare, requireFreshToCompare, writing } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import type { VersionedSet } from "../desk/plan.ts";
import { findProject, placeOf } from "../desk/projects.ts";
import { type Item, openItems, requireSets, shownEnvironments } from "../editing/open.ts";
import { remarked, remarksIn } from "../editing/remarks.ts";

/* Which environments of a project have an item, and whether it is the same in them. No value leaves this file. */

/** The items of a kind in the environments of a project that the person may see. */
export type ItemsAcross = {
  /** The environments that the person may see and the project uses. */
  readonly environments: readonly Environment[];
  /** The versions of their sets. */
  readonly sets: readonly VersionedSet[];
  /** Each item once, in byte order of name. */
  readonly items: readonly {
    readonly name: string;
    /** An environment that does not have the item is absent. */
    readonly environments: Readonly<Partial<Record<Environment, ComparedItem>>>;
  }[];
};

/** An item in one environment, compared with the same item in the others. */
export type ComparedItem = Remarks & {
  /** Epoch milliseconds. */
  readonly updatedAt: number;
  /** When its value is overdue for rotation, if it is marked with a day. Epoch milliseconds. */
  readonly dueAt?: number | undefined;
  readonly isCanary?: true;
  readonly isMachinesOnly?: true;
  /**
   * Environments with the same content have the same number: 1 for the first environment, then 2 and 3. Null if the
   * person may not see values, or nobody may: a number would confirm a guess.
   */
  readonly group: number | null;
};

/**
 * Compares the environments of a project, item by item: all that the listing shows of a file; and if somebody asked for
 * it, which is on record, the fields of accounts and the values of variables without their days of rotation. Times and
 * notes do not count.
 *
 * @param kind - one of `everyKind`
 * @param isAsked - whether values are opened for it
 * @throws Refused `conflict` if a set does not verify or open; `stale`
 */
export async function compareEnvironments(
  admin: AdminContext,
  where: string,
  kind: string,
  isAsked = false,
): Promise<ItemsAcross> {
  const descriptor = descriptorOf(kind);
  const project = await findProject(admin, where, "see");
  const { organization, id, slug } = project;
  const revealing = Permit.find(admin, ["see", "reveal"], placeOf(project));
  const opened = (revealing?.environments ?? []).filter(
    (one) => (isAsked || !descriptor.hasValues) && mayCompare(admin, placeOf(project), one),
  );
  if (isAsked && descriptor.hasValues && revealing !== undefined) {
    requireFreshToCompare(admin, placeOf(project), revealing.environments);
    const changes = opened.map((environment) => {
      return { action: searchAction, organization, project: { id, slug }, environment, names: [] } as const;
    });
    await writing(admin, revealing, async () => [undefined, changes]);
  }
  const verified = await requireSets(admin, project, descriptor);
  const sets = verified.map((set) => {
    const { environment } = set;
    const isOpen = opened.includes(environment);
    const { items } =
      isOpen && revealing
        ? openItems({ project: { ...project, permit: revealing }, descriptor, environment }, set)
        : {
            items: new Map(
              set.entries.map((entry): [string, Item] => {
                return [descriptor.nameOf(entry), { entry, value: null, isHidden: set.isMachinesOnly(entry) }];
              }),
            ),
          };
    return { environment, isOpen, items };
  });
  const names = new Set(sets.flatMap(({ items }) => [...items.keys()]));
  const items = [...names].sort(compareBytes).map((name) => {
    const holders = sets.flatMap(({ environment, isOpen, items }) => {
      const item = items.get(name);
      return item === undefined ? [] : [{ environment, isOpen, item }];
    });
    const groups = groupsOf(
      holders.map(({ isOpen, item }) => (isOpen && !item.isHidden ? contentOf(descriptor, item) : null)),
    );
    const environments = Object.fromEntries(
      holders.map(({ environment, item }, index): [Environment, ComparedItem] => {
        const { entry } = item;
        const dueAt = descriptor.dueAtOf?.(entry);
        const bait = isCanary(admin.systemKeys.listing, entry) && { isCanary: true as const };
        return [
          environment,
          {
            updatedAt: entry.updatedAt,
            group: groups[index] ?? null,
            ...(dueAt && { dueAt }),
            ...bait,
            ...(item.isHidden && { isMachinesOnly: true }),
            ...remarksIn(entry),
          },
        ];
      }),
    );
    return { name, environments };
  });
  for (const { items } of sets) for (const { value } of items.values()) value?.zero();
  const versions = verified.map(({ environment, stored: { version } }) => ({ environment, stored: { version } }));
  return { environments: shownEnvironments(project, verified), sets: versions, items };
}

/**
 * What makes two items the same: the value without its time, or what the listing shows of a content, without its id, its
 * times, its remarks and its coin.
 */
export function contentOf({ hasValues, datedValue }: KindDescriptor, { entry, value }: Item): string {
  const bytes = Buffer.from(value?.shown() ?? "");
  if (hasValues) return (datedValue?.(bytes, 0) ?? bytes).toString();
  const { id: _, version: __, updatedAt: ___, coin: ____, ...shown } = entry as ContentEntry;
  return JSON.stringify({ ...shown, ...remarked({}) });
}

/** Numbers the contents from 1, in the order in which they are first seen. */
function groupsOf(contents: readonly (string | null)[]): (number | null)[] {
  const distinct = [...new Set(contents.filter((content) => content !== null))];
  return contents.map((content) => (content === null ? null : distinct.indexOf(content) + 1));
}
