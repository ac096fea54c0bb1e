import type { Caller } from "../access/authenticate.ts";
import { isSameEtag } from "../access/etag.ts";
import { reaches } from "../access/grant.ts";
import { type AuditEntry, printable, type ReadAction, type requestAction } from "../audit/entry.ts";
import { release } from "../audit/release.ts";
import { Fault, type FaultCode } from "../core/fault.ts";
import type { Held, Render } from "../core/held.ts";
import type { Environment } from "../core/names.ts";
import { passed } from "../core/stages.ts";
import type { BucketName } from "../limit/bucket.ts";
import type { Share } from "../limit/budget.ts";
import type { Reading, ReadSource } from "../sets/lookup.ts";
import type { ReadProject } from "../sets/verified-set.ts";
import { charge, type Gatekeeper } from "./admit.ts";
import { answer } from "./body.ts";
import { type Exchange, notModified } from "./exchange.ts";

/** All that the API needs from outside, built by `server/compose.ts`. */
export type Keyhole = {
  readonly gate: Gatekeeper;
  readonly source: ReadSource;
  readonly etagKey: Uint8Array;
  readonly journal: { record(entries: readonly AuditEntry[]): Promise<void> };
  /** Writes one event to the log; must return at once and never throw. */
  readonly log: (event: Readonly<Record<string, unknown>>) => void;
  /** Counts each answer; must return at once and never throw. Without it and `trace` nothing is timed. */
  readonly meter?: Measure | undefined;
  /** The same for traces; returns the trace's id for the log. */
  readonly trace?: ((...done: Parameters<Measure>) => string) | undefined;
  /** `POST /mcp`; undefined unless it is turned on. It is loaded only then. */
  readonly mcp?: McpEndpoint | undefined;
  /** Whether answers close their connections, because the server is about to stop. */
  readonly draining: () => boolean;
};

/** Answers one message of the Model Context Protocol. @throws Fault */
export type McpEndpoint = (
  keyhole: Keyhole,
  exchange: Exchange,
  token: string | undefined,
  request: Request,
) => Promise<Response>;

/** Takes one answered request. @param endedAtMs - monotonic milliseconds */
export type Measure = (exchange: Exchange, status: number, code: FaultCode | undefined, endedAtMs: number) => void;

/** Gate 6. @throws Fault `environment_not_in_scope` */
export function inScope(caller: Caller, environment: Environment): void {
  if (!reaches(caller.grant, environment)) {
    throw new Fault("environment_not_in_scope", `key ${caller.grant.keyId} does not reach ${environment}`);
  }
}

/** What the request carries through its read. */
export function readingOf({ source }: Keyhole, { signal, stages }: Exchange, caller: Caller): Reading {
  return { source, caller, signal, stages };
}

/**
 * A conditional read of values or contents. It has paid one token of the metadata bucket so far. If the answer is not
 * the one that the client has, it pays one of its own bucket and is then an ordinary read.
 * @param find - gates 7 to 9, but nothing is opened
 * @returns a 304, or undefined if the read goes on
 * @throws Fault `rate_limited`, or what `find` throws
 */
export async function unlessChanged(
  keyhole: Keyhole,
  exchange: Exchange,
  caller: Caller,
  bucket: BucketName,
  find: () => Promise<{ readonly fingerprint: string }>,
  etagOf: (fingerprint: string) => string,
): Promise<Response | undefined> {
  if (exchange.ifNoneMatch === undefined) return undefined;
  const etag = etagOf((await find()).fingerprint);
  if (isSameEtag(etag, exchange.ifNoneMatch)) return notModified(exchange, etag);
  await charge(keyhole.gate, exchange, caller.grant.keyId, bucket);
  return undefined;
}

/** Gate 10, timed, and the answer. @throws Fault as {@link release} */
export async function released<T>(
  keyhole: Keyhole,
  exchange: Exchange,
  entries: readonly AuditEntry[],
  { held, share }: { readonly held: Held<T>; readonly share: Share },
  render: Render<T>,
  etag: string,
): Promise<Response> {
  try {
    passed(exchange.stages, "auditFromMs");
    const body = await release(keyhole.journal, entries, held, render);
    passed(exchange.stages, "auditToMs");
    return answer(keyhole, exchange, body, share, etag);
  } catch (error) {
    share.release();
    throw error;
  }
}

/** Gate 10 of what returns no value. @throws Fault `unavailable` */
export function recorded(keyhole: Keyhole, entry: AuditEntry): Promise<void> {
  return keyhole.journal.record([entry]);
}

/** The audit entry of a read, or of a request that was filed. */
export function auditEntry(
  exchange: Exchange,
  caller: Caller,
  project: ReadProject,
  environment: Environment | null,
  action: ReadAction | typeof requestAction,
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
