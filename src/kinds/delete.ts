import { type Environment, environmentsOf } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import { joined, listed } from "../core/words/text.ts";
import type { AdminContext } from "../people/desk/context.ts";
import { completed, type Input, ifVersion, project, repeated } from "../people/desk/inputs.ts";
import { operation, type Words } from "../people/desk/operation.ts";
import { done } from "../people/desk/outcome.ts";
import { rightTo } from "../people/desk/permit.ts";
import { requireAsSeen, type Seen } from "../people/desk/plan.ts";
import { findToChange } from "../people/desk/projects.ts";
import { requireEnvironments } from "../people/desk/validate.ts";
import { openItems, requireSets } from "../people/editing/open.ts";
import { noItem } from "../people/editing/reveal.ts";
import { type PlannedItems, planItems } from "../people/editing/write-project.ts";
import type { Entry, KindDescriptor } from "../serve/sets/kind.ts";
import { everyKind } from "./kind.ts";

/**
 * The deletion of items. It tells the environments that had one.
 * @param from - the environments, each of which must have all of them. Default: those in which the person may write, as
 *   far as they have them
 */
export async function planDeletion<E extends Entry>(
  admin: AdminContext,
  where: string,
  descriptor: KindDescriptor<E>,
  names: readonly string[],
  from?: readonly string[],
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

/** Names of items, each a word of its own. @param listed - what one word names: by default one item */
export function severalNames(item: string, listed?: (text: string) => string[]) {
  return completed(repeated("<names...>", `the ${item}, or several`, listed), "items");
}

/** How the deletion of a kind differs: in what its document calls a name, and in how its command is written. */
type DeletionWords = {
  readonly called: string;
  readonly names: Input<string[]>;
  readonly environments: Input<Environment[]> | Input<Environment[] | undefined>;
  readonly examples: Words["examples"];
};

/** The command that deletes items of a kind. Pages do the same with items that were chosen there. */
export function deletionOf<E extends Entry>(
  descriptor: KindDescriptor<E>,
  { called, names, environments, examples }: DeletionWords,
) {
  const { command, kind } = descriptor;
  const path = `${command} delete`;
  return operation({
    path,
    about: `Delete ${kind}.`,
    examples,
    right: rightTo(`${kind}.write`),
    inputs: { project, environments: environments as Input<Environment[] | undefined>, names, version: ifVersion },
    check: ({ environments = [], version }) => requireOne(path, environments, version),
    plan: async (admin, { project, environments: from, names, version }) => {
      const { would, ...change } = await planDeletion(admin, project, descriptor, names, from);
      await requireAsSeen(change, ifAt(would, version));
      const those = `${listed(names)} from ${project}, ${joined(would)}.`;
      const what = names.length === 1 ? { [called]: names[0] } : { [`${called}s`]: names };
      const where = { environments: would, ...(would.length === 1 && { environment: would[0] }) };
      const document = { project, ...where, ...what };
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
