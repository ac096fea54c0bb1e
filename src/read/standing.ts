import { Fault } from "../fault.ts";

/** The project of an answer, resolved through the caller's scope. */
export type ReadProject = { readonly id: string; readonly organizationId: string; readonly slug: string };

/**
 * Judges a key's standing as the very statement that fetched the items saw it, then gate 7.
 * @param standing - undefined where the key itself is gone
 * @returns the project's id
 * @throws Fault `unauthorized`, `plan_required` or `project_not_found`
 */
export function judgeStanding(standing: { live: number; plan: string; projectId: string | null } | undefined): string {
  if (!standing?.live) throw new Fault("unauthorized", "key was deleted, expired or revoked while it was being served");
  if (standing.plan !== "pro") throw new Fault("plan_required", "the plan was changed during the request");
  if (standing.projectId === null) throw new Fault("project_not_found", "no such project in the key's scope");
  return standing.projectId;
}
