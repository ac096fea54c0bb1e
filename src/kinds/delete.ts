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
 * Deletes an item.
 * @param from - the environments, each of which must have it; by default those in which the person may write, as far as
 *   they have it
 * @param options - `seen`: the sets as somebody saw them; a dry run only says whether it can be deleted
 * @returns the environments that had it, and what was read
 */
export async function deleteItem<E extends Entry>(
  admin: AdminContext,
  where: string,
  { descriptor, name, from }: { descriptor: KindDescriptor<E>; name: string; from?: readonly string[] },
  { seen, dryRun }: { readonly seen?: Seen } & DryRun = {},
) {
  const targets = from && environmentsOf(requireEnvironments(from));
  const found = await findProject(admin, where, "write", targets);
  const plan = async (project: PlannedProject) => {
    const sets = await requireSets(admin, project, descriptor, seen, [name], targets);
    const holders = sets.filter(({ names }) => names.includes(name));
    const missing = sets.filter((set) => !holders.includes(set)).map(({ environment }) => environment);
    if (targets === undefined ? holders.length === 0 : missing.length > 0) {
      const place = targets === undefined ? where : `${where} ${missing.join(", ")}`;
      throw await noItem(admin, { project, descriptor }, name, missing, place);
    }
    const opened = holders.map((set) => openItems({ project, descriptor, environment: set.environment }, set));
    const outcome = { environments: holders.map(({ environment }) => environment), seen: seenOf(project, sets) };
    return { changes: new Map(opened.map((set) => [set, new Map([[name, null]])])), outcomeOf: () => outcome };
  };
  return changingProject(admin, found, descriptor, plan, { dryRun, kinds: everyKind });
}
