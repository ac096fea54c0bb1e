import type { NamedValue } from "../../core/formats/dotenv.ts";
import { compareBytes } from "../../core/names.ts";
import { type AdminContext, requireFreshToCompare, writing } from "../../people/desk/context.ts";
import { seenOf } from "../../people/desk/plan.ts";
import { findProject, placeOf } from "../../people/desk/projects.ts";
import { requireEnvironment } from "../../people/desk/validate.ts";
import { openItems, openSet, openSetAt, requireSet } from "../../people/editing/open.ts";
import { revealItem, revealOf } from "../../people/editing/reveal.ts";
import { variables } from "./entry.ts";
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
 * All variables of an environment that a person may read, as a text. What cannot be rendered is not on record, since
 * nothing leaves.
 * @param render - gets the variables in byte order of their names, and the names of those that are left out, because they
 *   are for machines only
 */
export async function revealVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  render: (variables: readonly NamedValue[], hidden: readonly string[]) => string,
) {
  const target = requireEnvironment(environment);
  const project = await findProject(admin, where, "reveal", [target]);
  return writing(admin, project.permit, async (admin) => {
    const of = { project, descriptor: variables, environment: target };
    const set = await requireSet(admin, of);
    const { items } = openItems(of, set);
    const shown = [...items.values()].filter(({ isHidden }) => !isHidden);
    const hidden = [...items].flatMap(([name, { isHidden }]) => (isHidden ? [name] : []));
    const opened = shown.map((item) => ({ name: item.entry.key, value: storedValue(item) }));
    const revealed = { text: render(opened, hidden), variables: opened, hidden, seen: seenOf(project, [set]) };
    return [revealed, shown.length === 0 ? [] : [revealOf(admin, of, shown)]];
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
  const [ours, theirs] = [(await openSet(admin, of)).items, (await openOther()).items];
  return [...new Set([...ours.keys(), ...theirs.keys()])].sort(compareBytes).flatMap((name): Difference[] => {
    const [our, their] = [ours.get(name), theirs.get(name)];
    if (our === undefined || their === undefined) return [{ name, status: our ? "only" : "missing" }];
    if (our.isHidden || their.isHidden) return [{ name, status: "hidden" }];
    return storedValue(our) === storedValue(their) ? [] : [{ name, status: "differs" }];
  });
}

/** How the variables of one environment differ from others, by name. Values are compared and not shown. */
export type Difference = {
  readonly name: string;
  /**
   * `only`: the other side has no such variable. `missing`: this environment has none. `differs`: in its value.
   * `hidden`: it is for machines only, so it is not compared.
   */
  readonly status: "only" | "missing" | "differs" | "hidden";
};
