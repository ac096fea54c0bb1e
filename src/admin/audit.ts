import { and, desc, eq, gte } from "drizzle-orm";
import type { Desk } from "./desk.ts";
import { findOrganization } from "./organizations.ts";

/** An audit entry as people see it. */
export type AuditRecord = {
  /** Epoch milliseconds. */
  readonly time: number;
  readonly keyId: string;
  /** Slugs as they were at the time. */
  readonly organization: string;
  readonly project: string;
  /** Null where an account read named none. */
  readonly environment: string | null;
  readonly action: string;
  readonly names: readonly string[];
  readonly count: number;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly userAgent: string;
  readonly lane: string;
  readonly seq: number;
};

/**
 * The latest entries that fit, oldest of them first.
 * @param filter - `sinceAt` in epoch milliseconds; `limit` is 100 where left out
 * @throws Refused `not_found` where the organization does not exist
 */
export async function listAudit(
  desk: Desk,
  filter: {
    readonly organization?: string | undefined;
    readonly keyId?: string | undefined;
    readonly sinceAt?: number | undefined;
    readonly limit?: number | undefined;
  },
): Promise<AuditRecord[]> {
  const { auditEntries: e } = desk.database.tables;
  const only = filter.organization === undefined ? undefined : await findOrganization(desk, filter.organization);
  const rows = await desk.database.db
    .select()
    .from(e)
    .where(
      and(
        only && eq(e.organizationId, only.id),
        filter.keyId === undefined ? undefined : eq(e.keyId, filter.keyId),
        filter.sinceAt === undefined ? undefined : gte(e.at, filter.sinceAt),
      ),
    )
    .orderBy(desc(e.at), desc(e.lane), desc(e.seq))
    .limit(filter.limit ?? 100);
  return rows.reverse().map((row) => ({
    time: row.at,
    keyId: row.keyId,
    organization: row.organization,
    project: row.project,
    environment: row.environment,
    action: row.action,
    names: JSON.parse(row.names) as string[],
    count: row.count,
    requestId: row.requestId,
    clientAddress: row.clientAddress,
    userAgent: row.userAgent,
    lane: row.lane,
    seq: row.seq,
  }));
}
