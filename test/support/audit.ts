import {
  type AuditFilter,
  type AuditRecord,
  listAudit as listOf,
  auditPages as pagesOf,
} from "../../src/people/audit/audit.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";

/** The newest entries, oldest first, for tests that know how many there are. */
export async function listAudit(
  admin: AdminContext,
  filter: AuditFilter & { readonly limit?: number },
): Promise<AuditRecord[]> {
  return [...(await listOf(admin, filter, () => {})).with("")[0]];
}

/** All matching entries, oldest first, in pages. */
export function auditPages(admin: AdminContext, filter: AuditFilter): AsyncGenerator<readonly AuditRecord[]> {
  return pagesOf(admin, filter, () => {});
}
