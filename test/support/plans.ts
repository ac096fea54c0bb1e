import { planAccount } from "../../src/kinds/accounts/write.ts";
import { type EnvironmentWrite, planCopy, planEach, planVariables } from "../../src/kinds/variables/write.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { applying, type Seen } from "../../src/people/desk/plan.ts";
import type { SetAt } from "../../src/people/history/history.ts";
import * as rollback from "../../src/people/history/rollback.ts";

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
