import { type Environment, environmentsOf } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import { parseList } from "../core/words/lists.ts";
import { joined, listed } from "../core/words/text.ts";
import type { AdminContext } from "../people/desk/context.ts";
import { completed, ifVersion, input, project, severalEnvironments } from "../people/desk/inputs.ts";
import { operation, type Words } from "../people/desk/operation.ts";
import { done } from "../people/desk/outcome.ts";
import { rightTo } from "../people/desk/permit.ts";
import { applying, requireAsSeen, type Seen } from "../people/desk/plan.ts";
import { findToChange } from "../people/desk/projects.ts";
import { requireEnvironments } from "../people/desk/validate.ts";
import { openItems, requireSets } from "../people/editing/open.ts";
import { noItem } from "../people/editing/reveal.ts";
import { type PlannedItems, planItems } from "../people/editing/write-project.ts";
import type { Entry, KindDescriptor } from "../serve/sets/kind.ts";
import { everyKind } from "./kind.ts";

/** Which items are deleted. */
type Gone<E extends Entry> = {
  readonly descriptor: KindDescriptor<E>;
  readonly names: readonly string[];
  /**
   * The environments, each of which must have all of them. Default: those in which the person may write, as far as they
   * have them.
   */
  readonly from?: readonly string[];
};

/** Deletes items. @param seen - the sets as somebody saw them @returns the environments that had one */
export function deleteItem<E extends Entry>(admin: AdminContext, where: string, gone: Gone<E>, seen?: Seen) {
  return applying(admin, (admin) => planDeletion(admin, where, gone), seen);
}

/** What {@link deleteItem} would do. */
export async function planDeletion<E extends Entry>(
  admin: AdminContext,
  where: string,
  { descriptor, names, from }: Gone<E>,
): Promise<PlannedItems<readonly Environment[]>> {
  const targets = from && environmentsOf(requireEnvironments(from));
  const project = await findToChange(admin, where, "write", targets);
  const sets = await requireSets(admin, project, descriptor, targets);
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
  const looked = sets.map(({ environment, stored: { version } }) => {
    return { set: { project, descriptor, environment, version }, names };
  });
  const plan = { changes: new Map(changes), outcomeOf: () => holders.map(({ environment }) => environment), looked };
  return planItems(admin, project, descriptor, plan, { kinds: everyKind });
}

export const severalNames = completed(
  input("<names>", "the variable, or several, comma-separated", parseList),
  "items",
);

/**
 * `var delete`, and what pages do with the items of any kind that were chosen there.
 * @param examples - of the command, if it is one
 */
export function deletionOf(descriptor: KindDescriptor, examples: Words["examples"] = ["keyhole"]) {
  const { command, kind } = descriptor;
  const path = `${command} delete`;
  return operation({
    path,
    about: `Delete ${kind}.`,
    examples,
    right: rightTo(`${kind}.write`),
    inputs: { project, environments: severalEnvironments, names: severalNames, version: ifVersion },
    check: ({ environments, version }) => requireOne(path, environments, version),
    plan: async (admin, { project, environments, names, version }) => {
      const change = await planDeletion(admin, project, { descriptor, names, from: environments });
      await requireAsSeen(change, ifAt(environments, version));
      const where = environments.length === 1 ? { environment: environments[0] } : { environments };
      const those = `${listed(names)} from ${project}, ${joined(environments)}.`;
      const document = { project, ...where, ...(names.length === 1 ? { key: names[0] } : { keys: names }) };
      const apply = async () => {
        await change.apply();
        return done({ ...document, status: "deleted" }, `Deleted ${those}`);
      };
      const sentence = `Nothing was written. It would delete ${those}`;
      return { ...change, document, sentence, names: { added: [], changed: [], deleted: names }, same: 0, apply };
    },
  });
}

/** @throws Problem for `--if-version` with several environments */
export function requireOne(path: string, among: readonly Environment[], version: number | undefined): void {
  if (version === undefined || among.length === 1) return;
  throw usageProblem(`${path}: --if-version needs a single environment: each has versions of its own.`);
}

/** What `--if-version` says that somebody saw of the first environment. */
export function ifAt([environment]: readonly Environment[], version: number | undefined): Seen {
  return version === undefined ? {} : { [`version.${environment}`]: version };
}
