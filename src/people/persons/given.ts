import { type Environment, environmentMask, environmentsOf } from "../../core/names.ts";
import { endOf, type Holding, may, type ProjectPlace, type Right, type Rights } from "../../serve/access/rights.ts";
import type { Person } from "../../serve/access/roster.ts";

/* What persons gave others. A right that somebody gave stands only as long as they could still give it. */

/** One right of a person, in one environment of a place. */
export type GivenRight = { readonly name: string; readonly right: Holding };

/** The same rights, with one right in one environment in each holding. */
export function each(held: readonly Holding[]): Holding[] {
  return held.flatMap(({ rights, environments, ...place }) =>
    environmentsOf(environments).flatMap((one) =>
      rights.map((right) => ({ ...place, environments: environmentMask(one), rights: [right] })),
    ),
  );
}

/** When a right ends in an environment of a project, or of all projects; 0 if these rights do not include it. */
export function lastsUntil(
  rights: readonly Holding[],
  right: Right,
  project: ProjectPlace,
  environment: Environment,
): number {
  return Math.max(0, ...rights.filter((one) => may([one], right, project, environment)).map(endOf));
}

/**
 * Whether somebody with these rights may give those of a holding, or take them away. It takes `grant` and the right
 * itself, wherever the holding is, for as long. Only operators give `grant`.
 */
export function mayGive(rights: Rights, holding: Holding): boolean {
  if (rights === "operator") return true;
  return holding.rights.every((right) =>
    environmentsOf(holding.environments).every(
      (one) =>
        right !== "grant" &&
        Math.min(lastsUntil(rights, right, holding, one), lastsUntil(rights, "grant", holding, one)) >= endOf(holding),
    ),
  );
}

/**
 * The rights that somebody gave who could no longer give them, and those that came of these. What an operator gave stands.
 * What a person gave stands if rights that stand allow it; so two persons cannot keep a right by giving it to each other.
 * @param at - rights that have ended by then count for nothing
 */
export function unsupported(persons: readonly Person[], at: number): readonly GivenRight[] {
  const all = persons.flatMap(({ name, holdings }) => each(holdings).map((right) => ({ name, right })));
  let left: readonly GivenRight[] = all.filter(({ right }) => right.by !== undefined && endOf(right) > at);
  let standing: readonly GivenRight[] = all.filter(({ right }) => right.by === undefined);
  while (left.length > 0) {
    const giving = Map.groupBy(standing, ({ name }) => name);
    const isAllowed = ({ right }: GivenRight) => {
      const held = (right.by ?? []).flatMap((giver) => giving.get(giver) ?? []);
      return mayGive(
        held.map((one) => one.right),
        right,
      );
    };
    const more = left.filter(isAllowed);
    if (more.length === 0) break;
    standing = [...standing, ...more];
    left = left.filter((one) => !more.includes(one));
  }
  return left;
}
