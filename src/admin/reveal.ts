import { compareBytes, type Environment } from "../names.ts";
import type { VerifiedSet } from "../read/verified-set.ts";
import { accounts, type Kind, type KindDescriptor, variables } from "../seal/kinds.ts";
import type { Change } from "./changes.ts";
import { type AdminContext, writing } from "./context.ts";
import type { FoundProject } from "./found-project.ts";
import { findProject } from "./projects.ts";
import { Refused } from "./refused.ts";
import { openSet, openSets, openValues, openVersion } from "./sets.ts";
import { requireEnvironment } from "./validate.ts";

// What a person sees of a secret is on record before it is shown, like what a machine reads.

/** The value of one variable. @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict` */
export async function revealVariable(
  admin: AdminContext,
  where: string,
  environment: string,
  name: string,
): Promise<string> {
  const target = requireEnvironment(environment);
  const project = await findProject(admin, where);
  return writing(admin, async (db) => {
    const set = await openSet(admin, db, project, variables, target);
    const item = openValues(project, variables, set).get(name);
    if (item === undefined) {
      throw new Refused("not_found", `There is no variable ${JSON.stringify(name)} in ${where} ${target}.`);
    }
    const { value } = JSON.parse(item.toString("utf8")) as { readonly value: string };
    return [value, [revealOf(project, variables, target, name)]];
  });
}

/**
 * The fields of an account: in `environment`, or else in the one in which it changed last, as the API answers.
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict`
 */
export async function revealAccount(
  admin: AdminContext,
  where: string,
  name: string,
  environment?: string,
): Promise<{ readonly environment: Environment; readonly values: Readonly<Record<string, string>> }> {
  const only = environment === undefined ? undefined : requireEnvironment(environment);
  const project = await findProject(admin, where);
  return writing(admin, async (db) => {
    const sets = await openSets(admin, { ...project, db }, accounts);
    const [latest] = sets
      .filter((set) => only === undefined || set.environment === only)
      .flatMap((set) => set.entries.filter((entry) => entry.name === name).map(({ updatedAt }) => ({ set, updatedAt })))
      .sort((a, b) => b.updatedAt - a.updatedAt);
    const item = latest && openValues(project, accounts, latest.set).get(name);
    if (item === undefined) {
      throw new Refused(
        "not_found",
        `There is no account ${JSON.stringify(name)} in ${where}${only ? ` ${only}` : ""}.`,
      );
    }
    const found = latest?.set.environment as Environment;
    const values = JSON.parse(item.toString("utf8")) as Record<string, string>;
    return [{ environment: found, values }, [revealOf(project, accounts, found, name)]];
  });
}

/** How the variables of one environment differ from others, by name. Values are compared and not shown. */
export type Difference = {
  readonly environment: Environment;
  readonly name: string;
  /** `only`: the other side has no such variable. `missing`: this environment has none. `differs`: in its value. */
  readonly status: "only" | "missing" | "differs";
};

/**
 * @param other - another environment, or the number of a version of this one
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict`
 */
export async function diffVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  other: string | number,
): Promise<Difference[]> {
  const here = requireEnvironment(environment);
  const { db } = admin.database;
  const project = await findProject(admin, where);
  const valuesIn = (set: VerifiedSet<"variables">, isKept = false) => {
    const items = [...openValues(project, variables, set, isKept)];
    return new Map(items.map(([name, item]) => [name, (JSON.parse(item.toString("utf8")) as { value: string }).value]));
  };
  const current = await openSet(admin, db, project, variables, here);
  const ours = valuesIn(current);
  const theirs =
    typeof other === "string"
      ? valuesIn(await openSet(admin, db, project, variables, requireEnvironment(other)))
      : other === current.stored.version
        ? ours
        : valuesIn(await openVersion(admin, db, project, variables, here, other), true);
  return [...new Set([...ours.keys(), ...theirs.keys()])].sort(compareBytes).flatMap((name): Difference[] => {
    if (ours.get(name) === theirs.get(name)) return [];
    const status = !theirs.has(name) ? "only" : !ours.has(name) ? "missing" : "differs";
    return [{ environment: here, name, status }];
  });
}

function revealOf<K extends Kind>(
  { organization, id, slug }: FoundProject,
  { kind }: KindDescriptor<K>,
  environment: Environment,
  name: string,
): Change {
  const action = kind === "variables" ? "variables.reveal" : "accounts.reveal";
  return { action, organization, project: { id, slug }, environment, names: [name] };
}
