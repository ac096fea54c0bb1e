import { environmentsOf } from "../core/names.ts";
import type { AdminContext } from "../desk/context.ts";
import { type Seen, seenOf } from "../desk/plan.ts";
import { findProject, type PlannedProject } from "../desk/projects.ts";
import { requireEnvironments } from "../desk/validate.ts";
import { openItems, requireSets } from "../editing/open.ts";
import { noItem } from "../editing/reveal.ts";
import { changingProject, type DryRun } from "../editing/write-project.ts";
import type { Entry, KindDescriptor } from "../sets/kind.ts";
import { everyKind } from "./kind.ts";

/**
 * Deletes items.
 * @param from - the environments, each of which must have all of them; by default those in which the person may write,
 *   as far as they have them
 * @param options - `seen`: the sets as somebody saw them; a dry run only says whether they can be deleted
 * @returns the environments that had one, and what was read
 */
export async function deleteItem<E extends Entry>(
  admin: AdminContext,
  where: string,
  { descriptor, names, from }: { descriptor: KindDescriptor<E>; names: readonly string[]; from?: readonly string[] },
  { seen, dryRun }: { readonly seen?: Seen } & DryRun = {},
) {
  const targets = from && environmentsOf(requireEnvironments(from));
  const found = await findProject(admin, where, "write", targets);
  const plan = async (project: PlannedProject) => {
    const sets = await requireSets(admin, project, descriptor, seen, names, targets);
    const there = new Map(sets.map((set) => [set, new Set(names).intersection(new Set(set.names))]));
    for (const name of names) {
      const missing = sets.filter((set) => !there.get(set)?.has(name)).map(({ environment }) => environment);
      if (targets === undefined ? missing.length < sets.length : missing.length === 0) continue;
      const place = targets === undefined ? where : `${where} ${missing.join(", ")}`;
      throw await noItem(admin, { project, descriptor }, name, missing, place);
    }
    const holders = sets.filter((set) => there.get(set)?.size !== 0);
    const changes = holders.map((set) => {
      const gone = [...(there.get(set) ?? [])].map((name) => [name, null] as const);
      return [openItems({ project, descriptor, environment: set.environment }, set), new Map(gone)] as const;
    });
    const outcome = { environments: holders.map(({ environment }) => environment), seen: seenOf(project, sets) };
    return { changes: new Map(changes), outcomeOf: () => outcome };
  };
  return changingProject(admin, found, descriptor, plan, { dryRun, kinds: everyKind });
}
