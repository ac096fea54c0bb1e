import { type Environment, type EnvironmentMask, environmentMask, environments } from "../../core/names.ts";

/** What a person may do, in the order in which lists show it. `person grant` says what each lets a person do. */
export const everyRight = ["see", "reveal", "write", "keys", "decide", "audit", "grant"] as const;
export type Right = (typeof everyRight)[number];

/** Rights of a person in one place. */
export type Holding = ProjectPlace & {
  readonly rights: readonly Right[];
  readonly environments: EnvironmentMask;
  /** When they end, in epoch milliseconds. If it is left out, they never end. */
  readonly until?: number;
  /** Who gave them: their entries in the list of persons, their own first. If it is left out, an operator. */
  readonly by?: readonly string[];
};

/** What somebody may do at one moment: {@link inForce}. An operator holds the root key and needs no rights. */
export type Rights = "operator" | readonly Holding[];

/** A project; without an id, all projects of the organization, those of the future too. */
export type ProjectPlace = { readonly organizationId: string; readonly projectId: string | null };

/** The holdings that have not ended. @param now - by the database's clock, in epoch milliseconds */
export function inForce(holdings: readonly Holding[], now: number): readonly Holding[] {
  return holdings.filter((holding) => now < endOf(holding));
}

/** When a holding ends; infinity if it never does. */
export function endOf({ until = Number.POSITIVE_INFINITY }: Pick<Holding, "until">): number {
  return until;
}

/** Whether these rights include one, in this environment of a project or of all projects. */
export function may(rights: Rights, right: Right, project: ProjectPlace, environment: Environment): boolean {
  if (rights === "operator") return true;
  return rights.some(
    (holding) =>
      holding.rights.includes(right) &&
      holding.organizationId === project.organizationId &&
      (holding.projectId === null || holding.projectId === project.projectId) &&
      (holding.environments & environmentMask(environment)) !== 0,
  );
}

/** The environments of a project, or of all projects, in which these rights include every one of `needed`. */
export function reached(rights: Rights, needed: readonly Right[], project: ProjectPlace): Environment[] {
  return environments.filter((environment) => needed.every((right) => may(rights, right, project, environment)));
}

/**
 * Whether these rights and a reach have an environment of a project in common.
 * @param project - without an id: any project of the organization
 */
export function meets(
  rights: readonly Holding[],
  right: Right,
  { organizationId, projectId }: ProjectPlace,
  mask: EnvironmentMask,
): boolean {
  return rights.some(
    (holding) =>
      holding.rights.includes(right) &&
      holding.organizationId === organizationId &&
      (holding.projectId === null || projectId === null || holding.projectId === projectId) &&
      (holding.environments & mask) !== 0,
  );
}

/** Whether these rights include one of `needed`, wherever that is. */
export function hasSomewhere(rights: Rights, ...needed: readonly Right[]): boolean {
  return rights === "operator" || rights.some((holding) => needed.some((right) => holding.rights.includes(right)));
}

/** Whether these rights include all of `needed`, in every environment of all projects of each organization that they name. */
export function hasEverywhere(rights: Rights, ...needed: readonly Right[]): boolean {
  if (rights === "operator") return true;
  const places = rights.map(({ organizationId }) => ({ organizationId, projectId: null }));
  return places.every((place) => reached(rights, needed, place).length === environments.length);
}

/** Whether somebody has any right in this organization. */
export function belongsTo(rights: Rights, organizationId: string): boolean {
  return rights === "operator" || rights.some((holding) => holding.organizationId === organizationId);
}

/** Each place once for each giver and end, with its environments, in a fixed order: equal rights have equal texts. */
export function merged(holdings: readonly Holding[]): Holding[] {
  const given = (one: Holding) => placeKey(one) + JSON.stringify(one.by ?? null);
  const places = [...Map.groupBy(holdings, given)].sort(([a], [b]) => (a < b ? -1 : 1));
  return places.flatMap(([, held]) => {
    // A right that is given twice ends with the later one.
    const lasting = everyRight.map(() => 0);
    const ends = [...Map.groupBy(held, endOf)].sort(([a], [b]) => b - a);
    return ends.flatMap(([, alike]) => {
      const masks = everyRight.map((right, index) => {
        const given = alike.reduce(
          (all, { rights, environments: one }) => (rights.includes(right) ? all | one : all),
          0,
        );
        const mask = given & ~(lasting[index] ?? 0);
        lasting[index] = (lasting[index] ?? 0) | given;
        return mask;
      });
      const distinct = [...new Set(masks)].filter((mask) => mask !== 0).sort();
      return distinct.map((environments) => {
        const rights = everyRight.filter((_, index) => masks[index] === environments);
        return { ...(alike[0] as Holding), environments, rights };
      });
    });
  });
}

/** Whether two are for the same project, or both for all projects of one organization. */
export function isSamePlace(a: ProjectPlace, b: ProjectPlace): boolean {
  return placeKey(a) === placeKey(b);
}

function placeKey({ organizationId, projectId }: ProjectPlace): string {
  return JSON.stringify([organizationId, projectId]);
}
