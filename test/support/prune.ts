import { planPruning } from "../../src/people/audit/audit-chain.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";

/** Plans a pruning of the audit and carries it out. @returns how many entries went, or the flaws */
export async function pruneAudit(admin: AdminContext, keepMs: number, unverified = false) {
  const plan = await planPruning(admin, keepMs, unverified);
  if (!("apply" in plan)) return plan;
  await plan.apply();
  return plan.pruned;
}
