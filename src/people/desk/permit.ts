import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { type ChangeAction, type PeopleAction, searchAction } from "../../record/entry.ts";
import { everyRight, type ProjectPlace, type Right, type Rights, reached } from "../../serve/access/rights.ts";
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
    const [right, where] = actionOf(action) ?? [];
    if (!this.#isMadeHere || right === undefined) return false;
    if (this.place === null) return this.rights === everyRight;
    // Persons are of the whole installation. Which rights may be given is asked where they are written: `mayGive`.
    if (where === "persons") return organization === null && this.rights.includes(right as Right);
    const { organizationId, projectId } = this.place;
    if (right === "operator" || !this.rights.includes(right) || organization?.id !== organizationId) return false;
    if (where === "credential") return project === undefined;
    if (project === undefined || (projectId !== null && project.id !== projectId)) return false;
    if (where === "environment") return environment !== undefined && this.environments.includes(environment);
    return this.environments.length === environments.length && (where === "project" || projectId === null);
  }
}

/**
 * What a right must be held over: one environment, a whole project, all projects of the organization, everything that a
 * key or a trust reaches, or where rights are given.
 */
type PermitScope = "environment" | "project" | "organization" | "credential" | "persons";

const operators = ["operator"] as const;
/** The right that each action takes, and where. What is not here is permitted to nobody. */
const actions = {
  "organization.create": operators,
  "organization.plan": operators,
  "organization.delete": operators,
  "project.create": ["write", "organization"],
  "project.environments": ["write", "project"],
  "project.rename": ["write", "organization"],
  "project.delete": ["write", "organization"],
  "history.purge": operators,
  [searchAction]: ["reveal", "environment"],
  "key.create": ["keys", "credential"],
  "key.revoke": ["keys", "credential"],
  "key.rotate": ["keys", "credential"],
  "trust.create": ["keys", "credential"],
  "trust.revoke": ["keys", "credential"],
  "people.write": ["grant", "persons"],
  "request.approve": ["decide", "environment"],
  "request.reject": ["decide", "environment"],
  "data_key.rotate": operators,
  "root_key.rotate": operators,
  "audit.prune": operators,
  "audit.accept": operators,
  "audit.accept-restore": operators,
  restore: operators,
} as const satisfies Readonly<Record<PeopleAction, readonly [Right, PermitScope] | readonly ["operator"]>>;

const ofKinds = {
  write: ["write", "environment"],
  rollback: ["write", "environment"],
  reveal: ["reveal", "environment"],
} as const;

function actionOf(action: ChangeAction): readonly [right: Right | "operator", where?: PermitScope] | undefined {
  if (Object.hasOwn(actions, action)) return actions[action as PeopleAction];
  const [, deed = ""] = /^[a-z]+\.([a-z]+)$/.exec(action) ?? [];
  return Object.hasOwn(ofKinds, deed) ? ofKinds[deed as keyof typeof ofKinds] : undefined;
}

/** The right that an action takes; `operator`: only operators do it. @throws Error for one that is not in the table */
export function rightTo<A extends ChangeAction>(action: A): RightTo<A> {
  const [right] = actionOf(action) ?? [];
  if (right === undefined) throw new Error(`no right permits ${action}`);
  return right as RightTo<A>;
}

type RightTo<A> = A extends PeopleAction
  ? (typeof actions)[A][0]
  : A extends `${string}.${infer D extends keyof typeof ofKinds}`
    ? (typeof ofKinds)[D][0]
    : never;

/** @throws Error if no permit covers a change: a defect of this program */
export function requirePermitted(permits: readonly Permit[], changes: readonly Change[]): void {
  const outside = changes.find((change) => !permits.some((permit) => permit.covers(change)));
  if (outside !== undefined) throw new Error(`${outside.action} was done where nobody asked whether it is permitted`);
}
