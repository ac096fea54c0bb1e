import { type Environment, type EnvironmentMask, environmentMask, environments } from "../core/names.ts";

/** What a person may do, in the order in which lists show it. `person grant` says what each lets a person do. */
export const everyRight = ["see", "reveal", "write", "keys", "decide", "audit"] as const;
export type Right = (typeof everyRight)[number];

/** Rights of a person in one place. */
export type Holding = ProjectPlace & { readonly rights: readonly Right[]; readonly environments: EnvironmentMask };

/** What somebody may do: an operator holds the root key and needs no rights. */
export type Rights = "operator" | readonly Holding[];

/** A project; without an id, all projects of the organization, those of the future too. */
export type ProjectPlace = { readonly organizationId: string; readonly projectId: string | null };

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

/** Whether somebody has any right in this organization. */
export function belongsTo(rights: Rights, organizationId: string): boolean {
  return rights === "operator" || rights.some((holding) => holding.organizationId === organizationId);
}
