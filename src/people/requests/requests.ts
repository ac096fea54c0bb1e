import { and, asc, eq, gt, type SQL } from "drizzle-orm";
import { reasonCharactersMax } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { variables } from "../../kinds/variables/entry.ts";
import { nameWarnings, valueWarnings } from "../../kinds/variables/env-file.ts";
import { validateVariables, variableItem } from "../../kinds/variables/write.ts";
import { personText } from "../../record/entry.ts";
import { newCoin } from "../../seal/canary.ts";
import { may } from "../../serve/access/rights.ts";
import { digestOf } from "../../serve/sets/verified-set.ts";
import type { Change } from "../desk/changes.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { findById, noId, shortIds } from "../desk/ids.ts";
import { ofOrganization } from "../desk/organizations.ts";
import { changedSince } from "../desk/plan.ts";
import { type FoundProject, findToChange, projectPath } from "../desk/projects.ts";
import { requireEnvironment } from "../desk/validate.ts";
import { openSet } from "../editing/open.ts";
import { writeSets } from "../editing/write.ts";
import { writingProject } from "../editing/write-project.ts";
import { type KeyRecord, keyStatus } from "../keys/keys.ts";

/** A variable that a machine asks people for. Anybody who can write to the database can have written any of it. */
export type RequestRecord = Omit<StoredRequest, "number" | "organizationId" | "projectId" | "status"> & {
  readonly status: StoredRequest["status"] | "expired";
  /** Their slugs. */
  readonly organization: string;
  readonly project: string;
  /** Null if the key that asks is gone. */
  readonly keyName: string | null;
  readonly keyStatus: KeyRecord["status"] | "gone";
};

/** The requests of one organization or of all, oldest first. @param isToDecide - only those that wait for this person */
export async function listRequests(admin: AdminContext, organization?: string, isToDecide = false) {
  const { variableRequests: r } = admin.database.tables;
  const only = await ofOrganization(admin, r, organization);
  const waits = isToDecide ? and(eq(r.status, "pending"), gt(r.expiresAt, admin.now())) : undefined;
  const rows = await rowsOf(admin, and(only, waits)).orderBy(asc(r.createdAt), asc(r.id));
  const isShown = isToDecide ? mayDecide : isSeen;
  return rows.filter(({ request }) => isShown(admin, request)).map((row) => recordOf(admin, row));
}

/** How many requests wait for this person's decision. */
export async function countPending(admin: AdminContext): Promise<number> {
  const { variableRequests: r, organizations: o } = admin.database.tables;
  const rows = await admin.database.db
    .select({ organizationId: r.organizationId, projectId: r.projectId, environment: r.environment })
    .from(o)
    // By the index of both columns: those that were decided long ago are not read.
    .innerJoin(r, and(eq(r.organizationId, o.id), gt(r.expiresAt, admin.now())))
    .where(eq(r.status, "pending"));
  return rows.filter((request) => mayDecide(admin, request)).length;
}

/** One request by its id or the beginning of it. */
export async function showRequest(admin: AdminContext, asked: string): Promise<RequestRecord> {
  const { variableRequests: r } = admin.database.tables;
  const { id } = await findById(admin, r, "request", asked, { isSeen: (row) => isSeen(admin, row) });
  const [found] = await rowsOf(admin, eq(r.id, id));
  if (found === undefined) throw noId("request", id);
  return recordOf(admin, found);
}

type RequestPlace = Pick<StoredRequest, "organizationId" | "projectId" | "environment">;

/** Whether somebody may see a request: it takes `see` or `decide` where the variable would be. */
function isSeen({ rights }: AdminContext, request: RequestPlace): boolean {
  return (["see", "decide"] as const).some((right) => may(rights, right, request, request.environment));
}

type StoredRequest = AdminContext["database"]["tables"]["variableRequests"]["$inferSelect"];

/** Deciding is writing, too. */
const decideRights = ["decide", "write"] as const;

function mayDecide({ rights }: AdminContext, request: RequestPlace): boolean {
  return decideRights.every((right) => may(rights, right, request, request.environment));
}

/** Shortens ids of requests as tables show them. */
export async function shortRequestIds(admin: AdminContext): Promise<(id: string) => string> {
  return shortIds(await listRequests(admin));
}

/** Refuses a request about which nobody can decide any more. @throws Refused `conflict` that says why */
function requirePending({ id, status, decidedBy }: RequestRecord): void {
  if (status === "pending") return;
  const words = status === "expired" ? "has expired" : `was ${status} by ${decidedBy} already`;
  throw new Refused("conflict", `The request ${id} ${words}. Nothing was changed.`);
}

/** What a person must know before they decide, in sentences. */
export function requestWarnings({ status, name, keyStatus }: RequestRecord): readonly string[] {
  if (status !== "pending") return [];
  const ofKey = `The key that asked is no longer valid (${keyStatus}).`;
  return [...(keyStatus === "active" ? [] : [ofKey]), ...nameWarnings(name).map((warning) => `${warning}.`)];
}

/**
 * A request that somebody may decide about, and both decisions. In a transaction nobody else decides before the end.
 * @throws Refused `conflict` if it is not pending, `not_found` if they may not decide
 */
export async function planDecision(admin: AdminContext, asked: string) {
  const { id, organization, project: slug, environment } = await showRequest(admin, asked);
  const project = await findToChange(admin, `${organization}/${slug}`, decideRights, [requireEnvironment(environment)]);
  const request = await findPending(admin, id);
  if (request.project.id !== project.id) throw changedSince("project", slug, request.project.slug);
  return {
    request: request.record,
    seen: seenRequest(request.record),
    approve: (value: string | Uint8Array) => approve(admin, project, request, value),
    reject: (reason: string | undefined) => reject(admin, project, request, reason),
  };
}

/** Creates the variable that was asked for, and notes the decision. @throws Refused `exists` if the variable exists */
function approve(admin: AdminContext, found: FoundProject, request: PendingRequest, value: string | Uint8Array) {
  const { name, environment } = request.record;
  const text = validateVariables([{ name, value }]).get(name)?.value ?? "";
  const where = projectPath(found);
  return writingProject(admin, found, variables, async (admin, project) => {
    const before = await openSet(admin, { project, descriptor: variables, environment });
    if (before.items.has(name)) {
      throw new Refused("exists", `${name} exists in ${where} ${environment} already. Nothing was written.`);
    }
    const entry = { key: name, updatedAt: project.now, coin: newCoin(admin.systemKeys.listing, false) };
    const changes = new Map([[name, variableItem(entry, text)]]);
    const writes = await writeSets(admin, project, variables, new Map([[before, changes]]));
    const decided = await decide(admin, request, "approved", null);
    const warnings = [
      ...valueWarnings(name, Buffer.from(text)),
      ...variables.warningsOf(where, environment, { total: before.items.size + 1, replaced: [] }),
    ];
    return [{ request: decided.record, warnings }, writes, [decided.change]];
  });
}

function reject(admin: AdminContext, { permit }: FoundProject, request: PendingRequest, reason: string | undefined) {
  if (reason !== undefined && (reason === "" || [...reason].length > reasonCharactersMax)) {
    throw new Refused("invalid", `The reason must have 1 to ${reasonCharactersMax} characters.`);
  }
  return writing(admin, permit, async (admin) => {
    const decided = await decide(admin, request, "rejected", reason ?? null);
    return [decided.record, [decided.change]];
  });
}

/** What somebody sees who decides about a request. */
export function seenRequest({ organization, project, environment, name, keyId, keyStatus, reason }: RequestRecord) {
  return { request: digestOf(JSON.stringify([organization, project, environment, name, keyId, keyStatus, reason])) };
}

type FoundRequest = Awaited<ReturnType<typeof rowsOf>>[number];
type PendingRequest = Pick<FoundRequest, "organization" | "project"> & { readonly record: RequestRecord };

function rowsOf(admin: AdminContext, where: SQL | undefined) {
  const { variableRequests: r, organizations: o, projects: p, apiKeys: k } = admin.database.tables;
  return admin.database.db
    .select({ request: r, organization: { id: o.id, slug: o.slug }, project: { id: p.id, slug: p.slug }, key: k })
    .from(r)
    .innerJoin(o, eq(o.id, r.organizationId))
    .innerJoin(p, eq(p.id, r.projectId))
    .leftJoin(k, eq(k.id, r.keyId))
    .where(where);
}

function recordOf(admin: AdminContext, { request, organization, project, key }: FoundRequest): RequestRecord {
  const { id, status, number: _, organizationId: __, projectId: ___, ...asked } = request;
  return {
    id,
    status: status === "pending" && asked.expiresAt <= admin.now() ? "expired" : status,
    organization: organization.slug,
    project: project.slug,
    ...asked,
    keyName: key?.name ?? null,
    keyStatus: key === null ? "gone" : keyStatus(admin, key),
  };
}

/** A request that is pending. In a transaction nobody else can decide about it before the end. */
async function findPending(admin: AdminContext, id: string): Promise<PendingRequest> {
  const { variableRequests: r } = admin.database.tables;
  const query = rowsOf(admin, eq(r.id, id));
  const [row] = await (admin.isWithin ? admin.database.locked(query, "update", r) : query);
  if (!row) throw noId("request", id);
  const record = recordOf(admin, row);
  requirePending(record);
  return { organization: row.organization, project: row.project, record };
}

async function decide(
  admin: AdminContext,
  { record, organization, project }: PendingRequest,
  status: "approved" | "rejected",
  decisionReason: string | null,
): Promise<{ readonly record: RequestRecord; readonly change: Change }> {
  const { variableRequests: r } = admin.database.tables;
  const decision = { status, decidedAt: admin.now(), decidedBy: personText(admin.actor), decisionReason };
  await admin.database.db.update(r).set(decision).where(eq(r.id, record.id));
  const action = status === "approved" ? "request.approve" : "request.reject";
  const { id, name, environment } = record;
  return {
    record: { ...record, ...decision },
    change: { action, organization, project, environment, names: [id, name] },
  };
}
