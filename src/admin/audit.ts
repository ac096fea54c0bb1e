import type { Actor } from "../audit/entry.ts";
import { decodeEntries, type Segment } from "../audit/segment.ts";
import { type SegmentFilter, segmentsByTime } from "../store/segments.ts";
import type { AdminContext } from "./context.ts";
import { findOrganization } from "./organizations.ts";

/** An audit entry for people. */
export type AuditRecord = {
  /** Epoch milliseconds. */
  readonly time: number;
  readonly actor: Actor;
  /** Slugs at the time of the entry; null for what concerns no organization, project or environment. */
  readonly organization: string | null;
  readonly project: string | null;
  readonly environment: string | null;
  /** `unreadable`: the segment of this entry was damaged, which `audit verify` finds too. */
  readonly action: string;
  readonly names: readonly string[];
  readonly count: number;
  /** What a write did to the names. */
  readonly added?: readonly string[];
  readonly changed?: readonly string[];
  readonly deleted?: readonly string[];
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
  /** What this key read, and what was done to it. */
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

  constructor(admin: AdminContext, filter: AuditFilter) {
    this.#admin = admin;
    this.#filter = filter;
    this.#newestAt = filter.sinceAt ?? admin.now();
  }

  /** The newest entries, oldest first, as {@link listAudit}. What is older than these is no news, shown or not. */
  async newest(limit: number | undefined): Promise<AuditRecord[]> {
    const sinceAt = Math.max(this.#admin.now() - lateMs, this.#filter.sinceAt ?? 0);
    for await (const page of auditPages(this.#admin, { ...this.#filter, sinceAt })) {
      for (const record of page) this.#note(record);
    }
    const shown = await listAudit(this.#admin, { ...this.#filter, limit });
    for (const record of shown) this.#note(record);
    return shown;
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
      .filter((one) => keyId === undefined || concerns(one, keyId))
      .map(({ organizationId: _, ...record }) => record);
  return { segments, entries };
}

function concerns({ actor, action, names }: AuditRecord, keyId: string): boolean {
  return (actor.type === "key" && actor.id === keyId) || (action.startsWith("key.") && names.includes(keyId));
}

/** A damaged segment is shown, too, as one entry. */
function recordsOf(segment: Segment): (AuditRecord & { readonly organizationId: string })[] {
  const { lane, firstSeq, at } = segment;
  const entries = decodeEntries(segment);
  if (entries === undefined) return [{ time: at, ...unreadable, lane, seq: firstSeq }];
  return entries.map(({ projectId: _, organization, project, names, write, ...entry }, index) => ({
    time: at,
    ...entry,
    organization: organization || null,
    project: project || null,
    names,
    count: names.length,
    ...write,
    lane,
    seq: firstSeq + index,
  }));
}

const unreadable = {
  actor: { type: "person", name: "" },
  organizationId: "",
  organization: null,
  project: null,
  environment: null,
  action: "unreadable",
  names: [],
  count: 0,
  requestId: "",
  clientAddress: "",
  userAgent: "",
} as const;
