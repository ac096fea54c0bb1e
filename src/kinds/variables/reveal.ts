import { compareBytes, type Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { revealOf } from "../../desk/changes.ts";
import { type AdminContext, writing } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { requireEnvironment } from "../../desk/validate.ts";
import type { NamedValue } from "../../formats/dotenv.ts";
import type { VerifiedSet } from "../../sets/verified-set.ts";
import { openSet, openValues, openVersion } from "../../sets/write.ts";
import { type VariableEntry, variables } from "./entry.ts";
import { valueIn } from "./write.ts";

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
    return [valueIn(item), [revealOf("variables.reveal", project, target, [name])]];
  });
}

/**
 * All variables of an environment as a text. What cannot be rendered is not on record, since nothing leaves.
 * @param render - gets the variables in byte order of their names
 * @returns the text, with the variables and the version of their set
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict`; and what `render` throws
 */
export async function revealVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  render: (variables: readonly NamedValue[]) => string,
): Promise<{ readonly text: string; readonly variables: readonly NamedValue[]; readonly version: number }> {
  const target = requireEnvironment(environment);
  const project = await findProject(admin, where);
  return writing(admin, async (db) => {
    const set = await openSet(admin, db, project, variables, target);
    const opened = [...openValues(project, variables, set)].map(([name, item]) => ({ name, value: valueIn(item) }));
    const revealed = { text: render(opened), variables: opened, version: set.stored.version };
    return [revealed, opened.length === 0 ? [] : [revealOf("variables.reveal", project, target, set.names)]];
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
    return new Map(items.map(([name, item]) => [name, valueIn(item)]));
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
