import { Fault } from "../../core/fault.ts";
import { type NewRequest, pendingPerKeyMax, pendingPerOrganizationMax } from "../../store/requests.ts";
import { judgeStanding, type Reading } from "../sets/lookup.ts";
import type { ReadProject } from "../sets/verified-set.ts";

/** How often a request is filed again because another one, or a command on the embedded database, was in its way. */
const triesMax = 40;
const pauseMs = 25;

/**
 * Files a request for a variable, unless the key has one for the same variable pending, which then counts. A person
 * decides about it; until then nothing else exists.
 * @throws Fault `too_many_items`, `unavailable`, or the refusal for a key that changed during the request
 */
export async function fileRequest(
  { source, caller }: Pick<Reading, "source" | "caller">,
  project: Pick<ReadProject, "id" | "slug">,
  asked: Pick<NewRequest, "environment" | "name" | "reason">,
): Promise<{ readonly id: string; readonly expiresAt: number }> {
  const { keyId, organizationId } = caller.grant;
  const id = Bun.randomUUIDv7();
  const request = { ...asked, id, keyId, organizationId, slug: project.slug, projectId: project.id };
  for (let tries = 0; tries < triesMax; tries++) {
    const expiresAt = await source.requests.file(request);
    if (expiresAt !== undefined) return { id, expiresAt };
    const [refusal] = await source.requests.refusal(request);
    judgeStanding(refusal);
    const { ofKey, ofOrganization, equalId, equalExpiresAt } = refusal;
    if (equalId && equalExpiresAt) return { id: equalId, expiresAt: equalExpiresAt };
    if (ofKey >= pendingPerKeyMax) throw tooMany(pendingPerKeyMax, "key");
    if (ofOrganization >= pendingPerOrganizationMax) throw tooMany(pendingPerOrganizationMax, "organization");
    await Bun.sleep(pauseMs);
  }
  throw new Fault("unavailable", "other writers were in the way of each attempt to file a request");
}

/** What became of a request that this key filed. The reason is that of the person who decided. */
export async function readRequest({ source, caller: { grant } }: Reading, id: string) {
  // No request has another id, and PostgreSQL would refuse some texts, such as one with a NUL.
  const [row] = await source.requests.find(grant.keyId, /^[0-9a-f-]{36}$/.test(id) ? id : "");
  judgeStanding(row);
  const problem = "is not the id of a request that this key filed";
  if (!row.status)
    throw new Fault("not_found", "this key filed no such request", { argument: { name: "id", problem } });
  return { id, status: row.status, reason: row.decisionReason };
}

function tooMany(max: number, of: "key" | "organization"): Fault {
  return new Fault("too_many_items", `${max} requests of the ${of} are pending`, { pending: { max, of } });
}
