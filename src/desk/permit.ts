import { everyRight, type ProjectPlace, type Right, type Rights, reached } from "../access/rights.ts";
import { type ChangeAction, searchAction } from "../audit/entry.ts";
import { type Environment, environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import type { Change } from "./changes.ts";

/**
 * Proof that somebody may do something somewhere. Only this file makes one, after it has checked the rights. Every
 * function that opens a set or makes a change takes one.
 *
 * @example
 * const permit = Permit.find(admin, ["write"], place, ["production"]);
 * if (permit !== undefined) await writing(admin, permit, async () => [undefined, [change]]);
 */
export class Permit {
  readonly rights: readonly Right[];
  /** Null: the whole installation. */
  readonly place: ProjectPlace | null;
  readonly environments: readonly Environment[];
  readonly #isMadeHere = true;

  private constructor(rights: readonly Right[], place: ProjectPlace | null, among: readonly Environment[]) {
    this.rights = rights;
    this.place = place;
    this.environments = among;
  }

  /**
   * The permit of somebody who has these rights in a project, or in all projects.
   * @param among - all of these environments; if it is left out, those in which they have the rights, at least one
   * @returns undefined if they do not have them
   */
  static find(
    { rights }: { readonly rights: Rights },
    needed: readonly Right[],
    place: ProjectPlace,
    among?: readonly Environment[],
  ): Permit | undefined {
    const found = reached(rights, needed, place);
    const held = among === undefined ? found : found.filter((environment) => among.includes(environment));
    if (held.length === 0 || held.length < (among?.length ?? 0)) return undefined;
    return new Permit(needed, place, held);
  }

  /** The permit of an operator, for everything. @throws Refused `forbidden` for anybody else */
  static operator({ rights }: { readonly rights: Rights }): Permit {
    if (rights !== "operator") {
      throw new Refused("forbidden", "Only an operator may do this: somebody who holds the root key.");
    }
    return new Permit(everyRight, null, environments);
  }

  /** The permit of the program itself, to learn what is there. Nothing that it opens is shown to anybody. */
  static ofProgram(): Permit {
    return new Permit(["see"], null, environments);
  }

  /** Whether the permit covers this right in this environment. */
  allows(right: Right, environment: Environment): boolean {
    return this.#isMadeHere && this.rights.includes(right) && this.environments.includes(environment);
  }

  /** Whether the permit covers this change: its right, in its place. */
  covers({ action, organization, project, environment }: Change): boolean {
    if (!this.rights.includes(rightTo(action))) return false;
    if (this.place === null) return true;
    const { organizationId, projectId } = this.place;
    if (organization?.id !== organizationId) return false;
    if (project !== undefined && projectId !== null && project.id !== projectId) return false;
    return environment === undefined || this.environments.includes(environment);
  }
}

/** The right that an action takes. What only operators do needs no line of its own: their permit has every right. */
function rightTo(action: ChangeAction): Right {
  if (action.endsWith(".reveal") || action === searchAction) return "reveal";
  if (/^(?:key|trust)\./.test(action)) return "keys";
  return action.startsWith("request.") ? "decide" : "write";
}

/** @throws Error if no permit covers a change: a defect of this program */
export function requirePermitted(permits: readonly Permit[], changes: readonly Change[]): void {
  const outside = changes.find((change) => !permits.some((permit) => permit.covers(change)));
  if (outside !== undefined) throw new Error(`${outside.action} was done where nobody asked whether it is permitted`);
}
