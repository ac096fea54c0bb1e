import type { Caller } from "../access/authenticate.ts";
import { reaches } from "../access/grant.ts";
import { type AuditEntry, printableUserAgent, type ReadAction } from "../audit/entry.ts";
import { release } from "../audit/release.ts";
import { Fault, type FaultCode } from "../fault.ts";
import type { Held, Render } from "../held.ts";
import type { Share } from "../limit/budget.ts";
import type { Environment } from "../names.ts";
import type { Source } from "../read/lookup.ts";
import { passed } from "../read/stages.ts";
import type { ReadProject } from "../read/verified-set.ts";
import type { Gatekeeper } from "./admit.ts";
import { answer } from "./body.ts";
import type { Exchange } from "./exchange.ts";

/** All that the API needs from outside, built by `server/compose.ts`. */
export type Keyhole = {
  readonly gate: Gatekeeper;
  readonly source: Source;
  readonly journal: { record(entries: readonly AuditEntry[]): Promise<void> };
  /** Writes one event to the log; must return at once and never throw. */
  readonly log: (event: Readonly<Record<string, unknown>>) => void;
  /** Counts each answer; must return at once and never throw. Without it and `trace` nothing is timed. */
  readonly meter?: Measure | undefined;
  /** The same for traces; returns the trace's id for the log. */
  readonly trace?: ((...done: Parameters<Measure>) => string) | undefined;
  /** Whether answers close their connections, because the server is about to stop. */
  readonly draining: () => boolean;
};

/** Takes one answered request. @param endedAtMs - monotonic milliseconds */
export type Measure = (exchange: Exchange, status: number, code: FaultCode | undefined, endedAtMs: number) => void;

/** Gate 6. @throws Fault `environment_not_in_scope` */
export function inScope(caller: Caller, environment: Environment): void {
  if (!reaches(caller.grant, environment)) {
    throw new Fault("environment_not_in_scope", `key ${caller.grant.keyId} does not reach ${environment}`);
  }
}

/** Gate 10, timed, and the answer. @throws Fault as {@link release} */
export async function released<T>(
  keyhole: Keyhole,
  exchange: Exchange,
  entries: readonly AuditEntry[],
  { held, share }: { readonly held: Held<T>; readonly share: Share },
  render: Render<T>,
): Promise<Response> {
  try {
    passed(exchange.stages, "auditFromMs");
    const body = await release(keyhole.journal, entries, held, render);
    passed(exchange.stages, "auditToMs");
    return answer(keyhole, exchange, body, share);
  } catch (error) {
    share.release();
    throw error;
  }
}

/** The audit entry of a read. */
export function auditEntry(
  exchange: Exchange,
  caller: Caller,
  project: ReadProject,
  environment: Environment | null,
  action: ReadAction,
  names: readonly string[],
): AuditEntry {
  return {
    actor: { type: "key", id: caller.grant.keyId },
    organizationId: caller.organization.id,
    organization: caller.organization.slug,
    projectId: project.id,
    project: project.slug,
    environment,
    action,
    names,
    requestId: exchange.requestId,
    clientAddress: exchange.clientAddress(),
    userAgent: printableUserAgent(exchange.userAgent),
  };
}
