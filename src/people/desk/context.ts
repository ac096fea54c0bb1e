import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { Installation } from "../../installation/installation.ts";
import { type PersonActor, searchAction } from "../../record/entry.ts";
import { may, type ProjectPlace, type Rights } from "../../serve/access/rights.ts";
import type { Database } from "../../store/database.ts";
import { type Change, recordChanges } from "./changes.ts";
import { type Permit, requirePermitted } from "./permit.ts";

/** The person at work, as the audit names them, and what they may do. */
export type Who = {
  readonly actor: PersonActor;
  readonly rights: Rights;
  /** Their entries in the list of persons, their own before those of groups; an operator has none. */
  readonly entries: readonly string[];
  /** Whether they have no entry of their own. The audit then calls them by the name of a group's entry. */
  readonly isOfGroup?: boolean;
  /** Until when they may see values of production, make keys for it and give rights in it without signing in again. Default: for ever. */
  readonly freshUntil?: number;
  /**
   * Asks whether these are still their rights: a command may wait long for an answer, or for its input.
   * @throws Refused `forbidden` if there is no such person any more, `conflict` if they have other rights
   */
  readonly requireSameRights?: (admin: KeyedDatabase) => Promise<void>;
};

/** A database, with the keys that verify what is in it. */
export type KeyedDatabase = Pick<AdminContext, "database" | "systemKeys">;

/** The person who holds the root key. @param name - of the account, as `actorOf` gives it */
export function operator(name: string): Who {
  return { actor: { type: "person", name, from: "os" }, rights: "operator", entries: [] };
}

/** What the commands of people work with: a database they may write, and the keys. */
export type AdminContext = Pick<Installation, "keyring" | "systemKeys" | "historyBytesMax" | "checkpoint"> &
  Who & {
    readonly database: Database;
    /** Epoch milliseconds. */
    readonly now: () => number;
    /** When this process began, in epoch milliseconds. */
    readonly startedAt: number;
    /** Whether this is the context of a transaction: {@link within}. */
    readonly isWithin?: true;
    /** Told of the writes to sets that can be undone, each with its version, in their transaction. */
    readonly noteUndoable?: (changes: readonly Change[]) => void;
  };

/** Works in an installation. Closing closes its database. @param database - by default a connection of its own */
export function adminContextOf(
  installation: Installation,
  who: Who,
  now: () => number = Date.now,
  database = installation.open("admin"),
): AdminContext & { close(): Promise<void> } {
  const { keyring, systemKeys, historyBytesMax, checkpoint } = installation;
  const opened = { keyring, systemKeys, historyBytesMax, checkpoint, database, now, startedAt: performance.timeOrigin };
  return { ...opened, ...who, close: () => database.close() };
}

/**
 * Runs `work` in one write transaction, with a context that is the transaction's: all that `work` does with it, reads
 * included, happens there. In the context of a transaction, it is a part of that one.
 */
export function within<T>(admin: AdminContext, work: (admin: AdminContext) => Promise<T>): Promise<T> {
  if (admin.isWithin) return work(admin);
  const { database } = admin;
  return database.transaction((db) => work({ ...admin, database: { ...database, db }, isWithin: true }));
}

/**
 * Runs `work` {@link within} a transaction and records the changes that it returns: all of it happens, or nothing. A change
 * without a record does not compile, and neither does one without a permit. {@link within} alone is for work that
 * changes nothing that people see, such as the steps of a rotation.
 *
 * @example
 * const permit = Permit.operator(admin);
 * const result = await writing(admin, permit, async (admin) => [await work(admin), [change]]);
 */
export function writing<T>(
  admin: AdminContext,
  permits: Permit | readonly Permit[],
  work: (admin: AdminContext) => Promise<readonly [result: T, changes: readonly Change[]]>,
): Promise<T> {
  return within(admin, async (admin) => {
    const [result, changes] = await work(admin);
    requirePermitted([permits].flat(), changes);
    requireFresh(admin, [permits].flat(), changes);
    await recordChanges(admin, changes);
    // No right is taken between this question and the end of the transaction: both lock the lane of commands.
    await admin.requireSameRights?.(admin);
    return result;
  });
}

/**
 * Requires a recent sign-in to reveal a production value, or to change keys or rights of production. All are put on record,
 * so all pass through {@link writing}.
 */
function requireFresh(admin: Freshness, permits: readonly Permit[], changes: readonly Change[]): void {
  if (isFresh(admin)) return;
  const isOfProduction = ({ action, environment }: Change) =>
    /^(?:key|trust|people)\./.test(action)
      ? permits.some(({ environments }) => environments.includes("production"))
      : (action.endsWith(".reveal") || action === searchAction) && environment === "production";
  if (changes.some(isOfProduction)) throw stale();
}

type Freshness = Pick<AdminContext, "freshUntil" | "now">;

/** Whether the sign-in is a recent one. */
export function isFresh({ freshUntil, now }: Freshness): boolean {
  return freshUntil === undefined || now() < freshUntil;
}

/**
 * Whether somebody may be told which values are the same in an environment: it confirms a guess of a value. So in
 * production it takes a recent sign-in, too.
 */
export function mayCompare(admin: Freshness & Pick<Who, "rights">, project: ProjectPlace, of: Environment): boolean {
  return may(admin.rights, "reveal", project, of) && (of !== "production" || isFresh(admin));
}

/** @throws Refused `stale` if somebody may compare once they have signed in again */
export function requireFreshToCompare(
  admin: Freshness & Pick<Who, "rights">,
  project: ProjectPlace,
  environments: readonly Environment[],
): void {
  if (isStaleToCompare(admin, project, environments)) throw stale();
}

/** Whether somebody may compare in one of these environments once they have signed in again. */
export function isStaleToCompare(
  admin: Freshness & Pick<Who, "rights">,
  project: ProjectPlace,
  environments: readonly Environment[],
): boolean {
  const fresh = { ...admin, freshUntil: Number.POSITIVE_INFINITY };
  return environments.some((of) => mayCompare(fresh, project, of) && !mayCompare(admin, project, of));
}

function stale(): Refused {
  const words = "For production, sign in again: you did so too long ago. Nothing was done.";
  return new Refused("stale", words);
}
