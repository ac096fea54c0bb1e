import { and, asc, desc, eq, gte, type SQL, sql } from "drizzle-orm";
import type { AdminContext } from "./context.ts";
import { findOrganization } from "./organizations.ts";

/** An audit entry for people. */
export type AuditRecord = {
  /** Epoch milliseconds. */
  readonly time: number;
  readonly keyId: string;
  /** Slugs at the time of the entry. */
  readonly organization: string;
  readonly project: string;
  /** Null if an account read named none. */
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

/** Which entries; an absent field matches all. */
export type AuditFilter = {
  /** Its slug. */
  readonly organization?: string | undefined;
  readonly keyId?: string | undefined;
  /** Epoch milliseconds. */
  readonly sinceAt?: number | undefined;
};

/**
 * The newest matching entries, oldest first.
 * @param filter - `limit` is 100 by default
 * @throws Refused `not_found` if the organization does not exist
 */
export async function listAudit(
  admin: AdminContext,
  filter: AuditFilter & { readonly limit?: number | undefined },
): Promise<AuditRecord[]> {
  const { auditEntries: e } = admin.database.tables;
  const rows = await admin.database.db
    .select()
    .from(e)
    .where(await matching(admin, filter))
    .orderBy(desc(e.at), desc(e.lane), desc(e.seq))
    .limit(filter.limit ?? 100);
  return rows.reverse().map(recordOf);
}

/**
 * Every matching entry, oldest first, in pages: memory is bounded and every statement is short.
 * @throws Refused `not_found`
 */
export async function* auditPages(admin: AdminContext, filter: AuditFilter): AsyncGenerator<AuditRecord[]> {
  const { auditEntries: e } = admin.database.tables;
  const where = await matching(admin, filter);
  let after: Row | undefined;
  for (;;) {
    const beyond = after && sql`(${e.at}, ${e.lane}, ${e.seq}) > (${after.at}, ${after.lane}, ${after.seq})`;
    const rows = await admin.database.db
      .select()
      .from(e)
      .where(and(where, beyond))
      .orderBy(asc(e.at), asc(e.lane), asc(e.seq))
      .limit(rowsPerPage);
    if (rows.length > 0) yield rows.map(recordOf);
    if (rows.length < rowsPerPage) return;
    after = rows.at(-1);
  }
}

/** Follows the entries that are recorded after those already shown. */
export class AuditTail {
  readonly #admin: AdminContext;
  readonly #filter: AuditFilter;
  readonly #seen = new Map<string, number>();
  #newestAt: number;

  /** @param shown - entries already shown, oldest first */
  constructor(admin: AdminContext, filter: AuditFilter, shown: readonly AuditRecord[]) {
    this.#admin = admin;
    this.#filter = filter;
    this.#newestAt = shown.at(-1)?.time ?? filter.sinceAt ?? admin.now();
    for (const record of shown) this.#note(record);
  }

  /** New entries, oldest first, in pages. */
  async *news(): AsyncGenerator<AuditRecord[]> {
    // An entry may be written a little after a newer one of another server.
    const sinceAt = Math.max(this.#newestAt - lateMs, this.#filter.sinceAt ?? 0);
    for await (const page of auditPages(this.#admin, { ...this.#filter, sinceAt })) {
      const fresh = page.filter(({ lane, seq }) => seq > (this.#seen.get(lane) ?? 0));
      for (const record of fresh) this.#note(record);
      if (fresh.length > 0) yield fresh;
    }
  }

  #note({ lane, seq, time }: AuditRecord): void {
    this.#seen.set(lane, Math.max(seq, this.#seen.get(lane) ?? 0));
    this.#newestAt = Math.max(time, this.#newestAt);
  }
}

// An entry may name 1000 variables: a page of such entries still fits into memory.
const rowsPerPage = 256;
const lateMs = 5000;

async function matching(admin: AdminContext, { organization, keyId, sinceAt }: AuditFilter): Promise<SQL | undefined> {
  const { auditEntries: e } = admin.database.tables;
  const only = organization === undefined ? undefined : await findOrganization(admin, organization);
  return and(
    only && eq(e.organizationId, only.id),
    keyId === undefined ? undefined : eq(e.keyId, keyId),
    sinceAt === undefined ? undefined : gte(e.at, sinceAt),
  );
}

type Row = AdminContext["database"]["tables"]["auditEntries"]["$inferSelect"];

function recordOf({ at, organizationId: _, projectId: __, mac: ___, names, ...row }: Row): AuditRecord {
  return { time: at, ...row, names: namesOf(names) };
}

/** A forged entry is shown, too; `audit verify` finds it. */
function namesOf(text: string): string[] {
  try {
    const names: unknown = JSON.parse(text);
    if (Array.isArray(names)) return names.map(String);
  } catch {}
  return [text];
}
