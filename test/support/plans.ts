import { planAccount } from "../../src/kinds/accounts/write.ts";
import {
  type EnvironmentWrite,
  type Place,
  planCopy,
  planEach,
  planVariables,
} from "../../src/kinds/variables/write.ts";
import { type AdminContext, within } from "../../src/people/desk/context.ts";
import { applying, type Seen } from "../../src/people/desk/plan.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { planPurge, type SetAt } from "../../src/people/history/history.ts";
import * as rollback from "../../src/people/history/rollback.ts";
import { planGrant, planRemoval, planRevocation } from "../../src/people/persons/persons.ts";
import { planOrganizationDeletion } from "../../src/people/projects/organizations.ts";
import { listProjects, type Project, planDeletion, planRename } from "../../src/people/projects/projects.ts";
import { planDecision, type RequestRecord, seenRequest } from "../../src/people/requests/requests.ts";

/* What a change would do, and changes of what somebody saw, in few words. */

export async function wouldSet(...asked: Parameters<typeof planVariables>) {
  return (await planVariables(...asked)).would;
}

export async function wouldCopy(...asked: Parameters<typeof planCopy>) {
  return (await planCopy(...asked)).would;
}

export async function wouldSetAccount(...asked: Parameters<typeof planAccount>) {
  return (await planAccount(...asked)).would;
}

export function writeVariables(
  admin: AdminContext,
  where: string,
  changes: ReadonlyMap<string, EnvironmentWrite>,
  { seen }: { readonly seen?: Seen } = {},
) {
  return applying(admin, (admin) => planEach(admin, where, changes), seen);
}

type VariablesAsked = Exclude<Parameters<typeof planVariables>[4], undefined> & { readonly seen?: Seen };

export function setVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  entries: Parameters<typeof planVariables>[3],
  { seen, ...options }: VariablesAsked = {},
) {
  return applying(admin, (admin) => planVariables(admin, where, environment, entries, options), seen);
}

type AccountAsked = Exclude<Parameters<typeof planAccount>[5], undefined> & { readonly seen?: Seen };

export function setAccount(
  admin: AdminContext,
  where: string,
  name: string,
  environments: readonly string[],
  values: unknown,
  { seen, ...options }: AccountAsked = {},
) {
  return applying(admin, (admin) => planAccount(admin, where, name, environments, values, options), seen);
}

/** What a rollback would do, and what that was found out from. */
export async function planRollback(admin: AdminContext, set: SetAt, to: number, name?: string) {
  const { would, seen } = await rollback.planRollback(admin, set, to, name);
  return { ...would.plan, seen };
}

export function rollBack(
  admin: AdminContext,
  set: SetAt,
  { seen, to, name }: { readonly seen: Seen; readonly to: number; readonly name?: string | undefined },
) {
  return applying(admin, (admin) => rollback.planRollback(admin, set, to, name), seen);
}

export async function planUndo(admin: AdminContext, set: SetAt, version: number) {
  const { would, seen } = await rollback.planUndo(admin, set, version);
  return { ...would.plan, seen };
}

export function undo(
  admin: AdminContext,
  set: SetAt,
  { seen, version }: { readonly seen: Seen; readonly version: number },
) {
  return applying(admin, (admin) => rollback.planUndo(admin, set, version), seen);
}

export function copyVariables(
  admin: AdminContext,
  from: Place,
  to: Place,
  names?: readonly string[],
  { seen }: { readonly seen?: Seen } = {},
) {
  return applying(admin, (admin) => planCopy(admin, from, to, names), seen);
}

export function purgeHistory(admin: AdminContext, set: SetAt) {
  return applying(admin, (admin) => planPurge(admin, set));
}

export function deleteProject(admin: AdminContext, where: string) {
  return applying(admin, (admin) => planDeletion(admin, where));
}

export function renameProject(admin: AdminContext, where: string, asked: Parameters<typeof planRename>[2]) {
  return applying(admin, (admin) => planRename(admin, where, asked));
}

export function deleteOrganization(admin: AdminContext, slug: string) {
  return applying(admin, (admin) => planOrganizationDeletion(admin, slug));
}

/** @param shown - the request as the person saw it */
export function approveRequest(admin: AdminContext, shown: RequestRecord, value: string | Uint8Array) {
  const plan = async (admin: AdminContext) => {
    const { seen, approve } = await planDecision(admin, shown.id);
    return { seen, apply: () => approve(value) };
  };
  return applying(admin, plan, seenRequest(shown));
}

export function rejectRequest(admin: AdminContext, asked: string, reason?: string) {
  return within(admin, async (admin) => (await planDecision(admin, asked)).reject(reason));
}

/** The project at `ORG/PROJECT`, or `PROJECT`, as a list shows it. */
export async function showProject(admin: AdminContext, where: string): Promise<Project> {
  const { id } = await findProject(admin, where, "see");
  return (await listProjects(admin)).find((one) => one.id === id) as Project;
}

type Tail<F> = F extends (admin: AdminContext, ...rest: infer R) => unknown ? R : never;

export function grantRights(admin: AdminContext, ...asked: Tail<typeof planGrant>) {
  return applying(admin, (admin) => planGrant(admin, ...asked));
}

export function revokeRights(admin: AdminContext, ...asked: Tail<typeof planRevocation>) {
  return applying(admin, (admin) => planRevocation(admin, ...asked));
}

export function removePerson(admin: AdminContext, ...asked: Tail<typeof planRemoval>) {
  return applying(admin, (admin) => planRemoval(admin, ...asked));
}
