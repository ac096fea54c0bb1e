import { compareBytes, type Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { revealOf } from "../../desk/changes.ts";
import { type AdminContext, writing } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { requireEnvironment } from "../../desk/validate.ts";
import type { VerifiedSet } from "../../sets/verified-set.ts";
import { openSet, openValues, openVersion } from "../../sets/write.ts";
import { type VariableEntry, variables } from "./entry.ts";

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
    return [value, [revealOf("variables.reveal", project, target, name)]];
  });
}

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
  const valuesIn = (set: VerifiedSet<VariableEntry>, isKept = false) => {
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

/** How the variables of one environment differ from others, by name. Values are compared and not shown. */
export type Difference = {
  readonly environment: Environment;
  readonly name: string;
  /** `only`: the other side has no such variable. `missing`: this environment has none. `differs`: in its value. */
  readonly status: "only" | "missing" | "differs";
};
