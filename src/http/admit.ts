import { digestKey, isWellFormedKey } from "../access/api-key.ts";
import { authenticate, type Caller, type KeyRow } from "../access/authenticate.ts";
import { type Need, refusalOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import type { AdmissionQueue } from "../limit/admission-queue.ts";
import { type BucketName, type Decision, policies, retryAfterS } from "../limit/bucket.ts";
import type { Limiter } from "../limit/limiter.ts";
import type { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import type { EnvironmentMask } from "../names.ts";
import { passed } from "../read/stages.ts";
import { type Exchange, noteRateLimit } from "./exchange.ts";

/** What gates 2 to 4 need from outside. */
export type Gatekeeper = {
  readonly pepper: Uint8Array;
  readonly grantKey: Uint8Array;
  readonly lookUp: (lookup: Lookup) => Promise<KeyRow | undefined>;
  readonly limiter: Limiter;
  /** Buckets that several processes share; without them the limiter's own count. */
  readonly shared?: SharedBuckets | undefined;
  /** How many requests each kind of bucket has refused. */
  readonly refusals: Refusals;
  readonly unrecognized: UnrecognizedLimiter;
  readonly lookupQueue: AdmissionQueue;
  /** Monotonic whole microseconds. */
  readonly nowUs: () => number;
  /** Told of each good key; must return at once. */
  readonly used: (keyId: string) => void;
};

/** As {@link Limiter.take}; a promise if another process decides. It never rejects. */
export type SharedBuckets = {
  take(keyId: string, bucket: BucketName, nowUs: number): Decision | Promise<Decision>;
};

export type Refusals = Record<BucketName | "unrecognized", number>;

/** What the lookup looks for beside the key: a project, and sets in it. */
export type Sought = {
  readonly slug: string;
  readonly kind: "variables" | "accounts" | "files" | "";
  /** Masks: the sets that are needed, and those of which the values are needed. */
  readonly environments: EnvironmentMask;
  readonly values: EnvironmentMask;
};
export type Lookup = Sought & { readonly digest: Uint8Array };
export const nothingSought: Sought = { slug: "", kind: "", environments: 0, values: 0 };

/** The bucket that a request is charged to and what it needs of its key. */
export type Admission = Need & { readonly bucket: BucketName };

/**
 * Gates 2 to 4: key, bucket, plan, surface, resource. A key that was recognized before pays first, so that one over its
 * limit costs no statement; any other pays once it is recognized. Either way one request takes one token.
 *
 * @param token - what @elysiajs/bearer took from the header
 * @param sought - looked up with the key; the endpoint judges it later
 * @throws Fault `unauthorized`, `rate_limited`, `plan_required`, `surface_required`, `resource_required`, `unavailable`
 */
export async function admit(
  gate: Gatekeeper,
  exchange: Exchange,
  token: string | undefined,
  admission: Admission,
  sought: Sought = nothingSought,
): Promise<Caller> {
  const caller = await recognize(gate, exchange, token, admission.bucket, sought);
  const refusal = refusalOf(caller.organization.plan, caller.grant, admission);
  if (refusal) throw new Fault(refusal, `${refusal}: ${admission.surface ?? "any surface"}, ${admission.resource}`);
  return caller;
}

async function recognize(
  gate: Gatekeeper,
  exchange: Exchange,
  token: string | undefined,
  bucket: BucketName,
  sought: Sought,
): Promise<Caller> {
  const { presented } = exchange;
  if (presented.kind === "nothing") throw new Fault("unauthorized", "no Authorization header");
  const text = presented.kind === "token" ? (token ?? "") : presented.text;
  if (presented.kind === "malformed" || !isWellFormedKey(text)) {
    throw refuseUnrecognized(gate, text, new Fault("unauthorized", "malformed key"));
  }
  const digest = digestKey(gate.pepper, text);
  const digestText = digest.toString("latin1");
  const known = gate.limiter.keyIdOf(digestText);
  let row: KeyRow | undefined;
  if (known === undefined) {
    checkUnrecognized(gate, gate.unrecognized.peek(text, gate.nowUs()));
    passed(exchange.stages, "lookUpFromMs");
    row = await gate.lookupQueue.run(digestText, () => gate.lookUp({ digest, ...sought }));
  } else {
    exchange.keyId = known;
    const charged = charge(gate, exchange, known, bucket);
    if (charged) await charged;
    passed(exchange.stages, "lookUpFromMs");
    row = await gate.lookUp({ digest, ...sought });
  }
  passed(exchange.stages, "lookUpToMs");
  const caller = judge(gate, exchange, text, digest, row);
  const { keyId, organizationId } = caller.grant;
  exchange.keyId = keyId;
  exchange.organizationId = organizationId;
  if (known === undefined) {
    gate.limiter.recognize(digestText, keyId);
    const charged = charge(gate, exchange, keyId, bucket);
    if (charged) await charged;
  }
  gate.used(known ?? keyId);
  return caller;
}

function judge(gate: Gatekeeper, exchange: Exchange, text: string, digest: Buffer, row: KeyRow | undefined): Caller {
  try {
    return authenticate(row, digest, gate.grantKey);
  } catch (error) {
    // The same from here on as for a key that never was: same answer, same count until 429, no RateLimit fields.
    gate.limiter.forget(digest.toString("latin1"));
    exchange.rateLimit = undefined;
    throw error instanceof Fault ? refuseUnrecognized(gate, text, error) : error;
  }
}

/** Nothing to wait for where the buckets are this process's own: the step stays one with what follows. */
function charge(gate: Gatekeeper, exchange: Exchange, keyId: string, bucket: BucketName): Promise<void> | undefined {
  const nowUs = gate.nowUs();
  const asked = gate.shared?.take(keyId, bucket, nowUs) ?? gate.limiter.take(keyId, bucket, nowUs);
  if (asked instanceof Promise) return asked.then((decision) => settle(gate, exchange, keyId, bucket, decision, nowUs));
  settle(gate, exchange, keyId, bucket, asked, nowUs);
  return undefined;
}

function settle(
  gate: Gatekeeper,
  exchange: Exchange,
  keyId: string,
  bucket: BucketName,
  decision: Decision,
  nowUs: number,
): void {
  noteRateLimit(exchange, policies[bucket], decision, nowUs);
  if (decision.allowed) return;
  gate.refusals[bucket] += 1;
  throw limited(`key ${keyId} is over its ${bucket} limit`, decision.retryAfterUs);
}

/** The Fault that a refused key meets: its own, until its hash has used up its attempts. */
function refuseUnrecognized(gate: Gatekeeper, text: string, refusal: Fault): Fault {
  const decision = gate.unrecognized.take(text, gate.nowUs());
  if (decision.allowed) return refusal;
  gate.refusals.unrecognized += 1;
  return limited(`${refusal.message}, too often`, decision.retryAfterUs);
}

function checkUnrecognized(gate: Gatekeeper, decision: Decision): void {
  if (decision.allowed) return;
  gate.refusals.unrecognized += 1;
  throw limited("unrecognized key, too often", decision.retryAfterUs);
}

function limited(reason: string, retryAfterUs: number): Fault {
  return new Fault("rate_limited", reason, { retryAfterS: retryAfterS(retryAfterUs) });
}
