import { compareBytes } from "../../core/names.ts";
import { type AdminContext, requireFreshToCompare, writing } from "../../desk/context.ts";
import type { Seen } from "../../desk/plan.ts";
import { seenOf } from "../../desk/plan.ts";
import { findProject, placeOf } from "../../desk/projects.ts";
import { requireEnvironment } from "../../desk/validate.ts";
import { type OpenSet, openItems, openSet, openSetAt, requireSet } from "../../editing/open.ts";
import { revealItem, revealOf } from "../../editing/reveal.ts";
import type { NamedValue } from "../../formats/dotenv.ts";
import { type VariableEntry, variables } from "./entry.ts";
import { storedValue } from "./write.ts";

/** @param version - a kept version; if it is left out, the current one */
export async function revealVariable(
  admin: AdminContext,
  where: string,
  environment: string,
  name: string,
  version?: number,
) {
  const asked = { where, name, environment: requireEnvironment(environment), version };
  return revealItem(admin, variables, asked, storedValue);
}

/**
 * All variables of an environment as a text. What cannot be rendered is not on record, since nothing leaves.
 * @param render - gets the variables in byte order of their names
 */
export async function revealVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  render: (variables: readonly NamedValue[]) => string,
): Promise<{ readonly text: string; readonly variables: readonly NamedValue[]; readonly seen: Seen }> {
  const target = requireEnvironment(environment);
  const project = await findProject(admin, where, "reveal", [target]);
  return writing(admin, project.permit, async (db) => {
    const of = { project: { ...project, db }, descriptor: variables, environment: target };
    const set = await requireSet(admin, of);
    const { items } = openItems(of, set);
    const opened = [...items].map(([name, item]) => ({ name, value: storedValue(item) }));
    const revealed = { text: render(opened), variables: opened, seen: seenOf(project, [set]) };
    return [revealed, items.size === 0 ? [] : [revealOf(admin, of, items.values())]];
  });
}

/** @param other - another environment, or the number of a version of this one */
export async function diffVariables(admin: AdminContext, where: string, environment: string, other: string | number) {
  const here = requireEnvironment(environment);
  const there = typeof other === "string" ? requireEnvironment(other) : here;
  const project = await findProject(admin, where, "reveal", [...new Set([here, there])]);
  requireFreshToCompare(admin, placeOf(project), [here, there]);
  const of = { project, descriptor: variables, environment: here };
  const openOther = () =>
    typeof other === "string" ? openSet(admin, { ...of, environment: there }) : openSetAt(admin, of, other);
  const valuesIn = ({ items }: OpenSet<VariableEntry>) =>
    new Map([...items].map(([name, item]) => [name, storedValue(item)]));
  const [ours, theirs] = [valuesIn(await openSet(admin, of)), valuesIn(await openOther())];
  return [...new Set([...ours.keys(), ...theirs.keys()])].sort(compareBytes).flatMap((name): Difference[] => {
    if (ours.get(name) === theirs.get(name)) return [];
    const status = !theirs.has(name) ? "only" : !ours.has(name) ? "missing" : "differs";
    return [{ name, status }];
  });
}

/** How the variables of one environment differ from others, by name. Values are compared and not shown. */
export type Difference = {
  readonly name: string;
  /** `only`: the other side has no such variable. `missing`: this environment has none. `differs`: in its value. */
  readonly status: "only" | "missing" | "differs";
};
