import { type Environment, environmentsOf } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import type { AdminContext } from "../desk/context.ts";
import { completed, ifVersion, input, project, severalEnvironments } from "../desk/inputs.ts";
import { operation, type Words } from "../desk/operation.ts";
import { done } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { type Seen, seenOf } from "../desk/plan.ts";
import { findProject, type PlannedProject } from "../desk/projects.ts";
import { requireEnvironments } from "../desk/validate.ts";
import { openItems, requireSets } from "../editing/open.ts";
import { noItem } from "../editing/reveal.ts";
import { changingProject, type DryRun } from "../editing/write-project.ts";
import type { Entry, KindDescriptor } from "../sets/kind.ts";
import { parseList } from "../words/lists.ts";
import { joined, listed } from "../words/text.ts";
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
  const plan = async (admin: AdminContext, project: PlannedProject) => {
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
      const gone = { descriptor, names, from: environments };
      const { seen } = await deleteItem(admin, project, gone, { seen: ifAt(environments, version), dryRun: true });
      const where = environments.length === 1 ? { environment: environments[0] } : { environments };
      const sentence = `Nothing was written. It would delete ${listed(names)} from ${project}, ${joined(environments)}.`;
      const document = { project, ...where, ...(names.length === 1 ? { key: names[0] } : { keys: names }) };
      return { seen, document, sentence, gone, names: { added: [], changed: [], deleted: names }, same: 0 };
    },
    run: async (admin, { project, environments, names, version }, { seen, document, gone }) => {
      await deleteItem(admin, project, gone, { seen: { ...seen, ...ifAt(environments, version) } });
      const sentence = `Deleted ${listed(names)} from ${project}, ${joined(environments)}.`;
      return done({ ...document, status: "deleted" }, sentence);
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
