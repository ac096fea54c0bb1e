import type { Held, Render } from "../../core/held.ts";
import type { Environment } from "../../core/names.ts";
import { readsHeader } from "../../core/receipt.ts";
import {
  type AuditEntry,
  type overuseAction,
  printable,
  type ReadAction,
  type requestAction,
} from "../../record/entry.ts";
import { release } from "../../record/release.ts";
import type { Caller } from "../access/authenticate.ts";
import type { Share } from "../limit/budget.ts";
import { passed } from "../sets/stages.ts";
import type { ReadProject } from "../sets/verified-set.ts";
import type { ApiParts } from "./api-parts.ts";
import { answer } from "./body.ts";
import type { Exchange } from "./exchange.ts";

/** Gate 10, timed, and the answer. An answer without a value does not count against the reads of a job. */
export async function released<T>(
  parts: ApiParts,
  exchange: Exchange,
  { job }: Pick<Caller, "job">,
  entries: readonly AuditEntry[],
  { held, share }: { readonly held: Held<T>; readonly share: Share },
  render: Render<T>,
  etag: string,
): Promise<Response> {
  try {
    passed(exchange.stages, "auditFromMs");
    const counted = entries.some(({ names }) => names.length > 0) ? job : undefined;
    const body = await release(parts.journal, entries, held, render, counted);
    passed(exchange.stages, "auditToMs");
    const headers = { ...body.headers, ...(job && { [readsHeader]: String(job.readsMax) }) };
    return answer(parts, exchange, { ...body, headers }, share, etag);
  } catch (error) {
    share.release();
    throw error;
  }
}

/** Gate 10 of what returns no value. */
export async function recorded(parts: ApiParts, entry: AuditEntry): Promise<void> {
  await parts.journal.record([entry]);
}

/** The audit entry of a read, of one that a job may not have any more, or of a request that was filed. */
export function auditEntry(
  exchange: Exchange,
  caller: Caller,
  project: ReadProject,
  environment: Environment | null,
  action: ReadAction | typeof requestAction | typeof overuseAction,
  names: readonly string[],
): AuditEntry {
  const { grant, token } = caller;
  return {
    actor: { type: grant.trust === null ? "key" : "trust", id: grant.keyId },
    organizationId: caller.organization.id,
    organization: caller.organization.slug,
    projectId: project.id,
    project: project.slug,
    environment,
    action,
    names,
    requestId: exchange.requestId,
    clientAddress: exchange.clientAddress(),
    userAgent: printable(exchange.userAgent),
    token: token && { jti: printable(token.jti), sub: printable(token.sub), run: printable(token.run) },
  };
}
