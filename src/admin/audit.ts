import { decodeEntries, type Segment } from "../audit/segment.ts";
import { type SegmentFilter, segmentsByTime } from "../store/segments.ts";
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
  /** `unreadable`: the segment of this entry was damaged, which `audit verify` finds too. */
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
  const { limit = 100 } = filter;
  const { segments, entries } = await matching(admin, filter);
  const newestFirst: AuditRecord[] = [];
  for await (const page of segmentsByTime(admin.database, segments, "newest first")) {
    for (const segment of page) newestFirst.push(...entries(segment).reverse());
    if (newestFirst.length >= limit) break;
  }
  return newestFirst.slice(0, limit).reverse();
}

/**
 * Every matching entry, oldest first, in pages: memory is bounded and every statement is short.
 * @throws Refused `not_found`
 */
export async function* auditPages(admin: AdminContext, filter: AuditFilter): AsyncGenerator<AuditRecord[]> {
  const { segments, entries } = await matching(admin, filter);
  for await (const page of segmentsByTime(admin.database, segments, "oldest first")) {
    for (const segment of page) yield entries(segment);
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

const lateMs = 5000;

/** Which segments may hold a matching entry, and the matching entries of a segment. */
async function matching(admin: AdminContext, { organization, keyId, sinceAt }: AuditFilter) {
  const organizationId = organization && (await findOrganization(admin, organization)).id;
  const texts = [organizationId, keyId].filter((text) => text !== undefined);
  const segments: SegmentFilter = { texts, sinceAt };
  const entries = (segment: Segment): AuditRecord[] =>
    recordsOf(segment)
      .filter((one) => organizationId === undefined || one.organizationId === organizationId)
      .filter((one) => keyId === undefined || one.keyId === keyId)
      .map(({ organizationId: _, ...record }) => record);
  return { segments, entries };
}

/** A damaged segment is shown, too, as one entry. */
function recordsOf(segment: Segment): (AuditRecord & { readonly organizationId: string })[] {
  const { lane, firstSeq, at } = segment;
  const entries = decodeEntries(segment) ?? [unreadable];
  return entries.map(({ projectId: _, ...entry }, index) => ({
    time: at,
    ...entry,
    count: entry.names.length,
    lane,
    seq: firstSeq + index,
  }));
}

const unreadable = {
  keyId: "",
  organizationId: "",
  organization: "",
  projectId: "",
  project: "",
  environment: null,
  action: "unreadable",
  names: [],
  requestId: "",
  clientAddress: "",
  userAgent: "",
};
