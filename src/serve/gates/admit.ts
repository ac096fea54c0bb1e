import { Fault } from "../../core/fault.ts";
import type { KeyLookup, Lookup } from "../../core/set-rows.ts";
import type { AuditEntry } from "../../record/entry.ts";
import type { Overused } from "../../record/job-reads.ts";
import { digestKey, isWellFormedKey } from "../access/api-key.ts";
import {
  AlarmingRefusal,
  authenticate,
  type Caller,
  type KeyRow,
  type Recognized,
  requireOrganization,
} from "../access/authenticate.ts";
import { isUsableFrom, type Need, refusalOf } from "../access/grant.ts";
import type { GrantSeals } from "../access/grant-seals.ts";
import {
  isTokenShaped,
  jobOf,
  type KeySet,
  readToken,
  type Token,
  type Trust,
  UnknownSigner,
  verifyToken,
  wordsOf,
} from "../access/token.ts";
import type { AdmissionQueue } from "../limit/admission-queue.ts";
import {
  type BucketName,
  type Decision,
  type Payer,
  policyOf,
  rateLimitHeaders,
  retryAfterS,
} from "../limit/bucket.ts";
import type { Limiter } from "../limit/limiter.ts";
import type { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import { passed } from "../sets/stages.ts";
import type { Alarms } from "./alarms.ts";
import type { Exchange } from "./exchange.ts";

/** What gates 2 to 4 need from outside. */
export type Gatekeeper = {
  readonly pepper: Uint8Array;
  readonly seals: GrantSeals;
  readonly lookUp: (lookup: KeyLookup) => Promise<KeyRow | undefined>;
  /** The trusts that have the issuer and one claim of a token. */
  readonly findTrusts: (token: Token) => Promise<readonly Trust[]>;
  /** The keys that an issuer publishes, as `IssuerKeys` finds them. It may wait for 2 s for them, or for newer ones than those that verified nothing. */
  readonly findIssuerKeys: (issuer: string, isPublic: boolean, unfit?: KeySet) => Promise<KeySet | undefined>;
  readonly limiter: Limiter;
  /** Buckets shared with other processes, which then decide instead of the limiter's own. Never rejects. */
  readonly shared?: { take: (...call: Parameters<Limiter["take"]>) => Decision | Promise<Decision> } | undefined;
  /** How many requests each kind of bucket has refused. */
  readonly refusals: Record<BucketName | "unrecognized", number>;
  readonly unrecognized: UnrecognizedLimiter;
  readonly alarms: Alarms;
  readonly lookupQueue: AdmissionQueue;
  /** Monotonic whole microseconds. */
  readonly nowUs: () => number;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Called with the id of each good key or trust; must return at once. */
  readonly used: (keyId: string) => void;
  /** Why nothing is answered: the database was put back to an earlier state. Undefined if it was not. */
  readonly refusal: () => string | undefined;
  /** Resolves when the port is closed; undefined unless it is closing. A new request waits for it. */
  readonly untilPortCloses: () => Promise<void> | undefined;
};

/** The lookup of a request that names no project. */
export const noLookup: Lookup = { slug: "", kind: "", environments: 0, values: 0 };

/** The bucket that a request is charged to and what it needs of its key. */
export type Admission = Need & { readonly bucket: BucketName };

/**
 * Gates 2 to 4: key, bucket, plan, surface, resource. A key that was recognized before pays first, so that one over its
 * limit costs no statement; any other pays once it is recognized. Either way one request takes one token. From where
 * the key may not be used, it is as if it had never been recognized.
 * @param token - what @elysiajs/bearer took from the header
 * @param lookup - what to look up with the key; the endpoint judges it later
 */
export async function admit(
  gate: Gatekeeper,
  exchange: Exchange,
  token: string | undefined,
  admission: Admission,
  lookup: Lookup = noLookup,
): Promise<Caller> {
  requireServed(gate);
  const closing = gate.untilPortCloses();
  if (closing) await closing;
  const caller = await recognize(gate, exchange, token, admission.bucket, lookup);
  requireServed(gate); // the lookup may have shown that the database was put back
  const lacking = refusalOf(caller.organization.plan, caller.grant, admission);
  if (lacking)
    throw new Fault(lacking, `${lacking}: ${admission.surface ?? "any surface"}, ${admission.resource?.name}`);
  return caller;
}

function requireServed(gate: Gatekeeper): void {
  const refusal = gate.refusal();
  if (refusal !== undefined) throw new Fault("unavailable", refusal);
}

async function recognize(
  gate: Gatekeeper,
  exchange: Exchange,
  token: string | undefined,
  bucket: BucketName,
  lookup: Lookup,
): Promise<Caller> {
  const { presented, clientAddress } = exchange;
  if (presented.kind === "nothing") throw new Fault("unauthorized", "no Authorization header");
  const text = presented.kind === "token" ? (token ?? "") : presented.text;
  exchange.byToken = isTokenShaped(text);
  if (presented.kind === "malformed" || !(exchange.byToken || isWellFormedKey(text))) {
    throw refuseUnrecognized(gate, text, new Fault("unauthorized", "malformed key"));
  }
  const digest = digestKey(gate.pepper, text);
  const digestText = digest.toString("latin1");
  const payer = gate.limiter.payerOf(digestText);
  const known = payer && isUsableFrom(payer, clientAddress) ? payer : undefined;
  if (known === undefined) {
    const peeked = gate.unrecognized.peek(text, gate.nowUs());
    if (!peeked.allowed) {
      gate.alarms.noteLimited(digestText);
      throw limited(gate, "unrecognized", "unrecognized key", peeked.retryAfterUs);
    }
  } else {
    exchange.keyId = known.keyId;
    await charge(gate, exchange, known, bucket);
  }
  passed(exchange.stages, "lookUpFromMs");
  const inTurn: InTurn = (work) => (known === undefined ? gate.lookupQueue.run(digestText, work) : work());
  let found: Recognized;
  try {
    found = exchange.byToken
      ? await identifyByToken(gate, clientAddress, text, lookup, inTurn)
      : authenticate(await inTurn(() => gate.lookUp({ digest, ...lookup })), digest, gate.seals, clientAddress);
  } catch (error) {
    throw refused(gate, exchange, text, digestText, error);
  } finally {
    passed(exchange.stages, "lookUpToMs");
  }
  const { keyId, organizationId } = found.grant;
  exchange.keyId = keyId;
  exchange.organizationId = organizationId;
  // What a payer has never changes. A token that is used again may fit another trust by now, which pays from the next
  // one on.
  if (known?.keyId !== keyId) gate.limiter.recognize(digestText, found.grant);
  if (known === undefined) await charge(gate, exchange, found.grant, bucket);
  gate.used(keyId);
  requireOrganization(found);
  return found;
}

/** Runs work that any token, valid or not, can trigger, when its turn comes. */
type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** The turn does not include the wait for an issuer: an issuer that is down must not hold up others. */
async function identifyByToken(gate: Gatekeeper, caller: () => string, text: string, lookup: Lookup, inTurn: InTurn) {
  const token = readToken(text);
  const trusts = await inTurn(() => gate.findTrusts(token));
  const published = trusts.filter(({ pinned }) => pinned === null);
  const isPublic = published.every(({ terms }) => terms.isPublic);
  const findKeys = async (unfit?: KeySet) =>
    published.length === 0 ? undefined : gate.findIssuerKeys(token.issuer, isPublic, unfit);
  const identify = (keys: KeySet | undefined) =>
    inTurn(async () => {
      const trust = await verifyToken(token, trusts, keys, gate.now());
      const { digest } = trust;
      const row = await gate.lookUp({ digest, ...lookup });
      return { ...authenticate(row, digest, gate.seals, caller), token: wordsOf(token), job: jobOf(token, trust) };
    });
  const keys = await findKeys();
  try {
    return await identify(keys);
  } catch (error) {
    if (!(error instanceof UnknownSigner)) throw error;
    const newer = await findKeys(keys);
    if (newer === keys) throw error;
    return identify(newer);
  }
}

/** From here on an `unauthorized` key is treated as unknown: same answer, same count until 429, no RateLimit fields. */
function refused(gate: Gatekeeper, exchange: Exchange, text: string, digestText: string, error: unknown): unknown {
  if (!(error instanceof Fault) || error.code !== "unauthorized") return error;
  const alarm = error instanceof AlarmingRefusal ? error : undefined;
  // A thief elsewhere must not use up the attempts of whoever may use the key: it stays recognized.
  if (alarm?.kind === "elsewhere") gate.limiter.recognize(digestText, alarm.row);
  else gate.limiter.forget(digestText);
  exchange.rateLimit = undefined;
  const refusal = refuseUnrecognized(gate, text, error);
  const clientAddress = exchange.clientAddress(); // of every refused key: it takes some microseconds
  if (alarm) gate.alarms.noteKey(exchange, clientAddress, alarm, digestText, refusal === error);
  if (alarm?.kind === "canary") gate.used(alarm.row.keyId);
  return refusal;
}

/** Refuses a job that had its answers, as if its token were not known, and sounds the alarm. */
export function refuseOveruse(
  gate: Gatekeeper,
  exchange: Exchange,
  token: string,
  entry: AuditEntry,
  refusal: Overused,
): Fault {
  gate.limiter.forget(digestKey(gate.pepper, token).toString("latin1"));
  exchange.rateLimit = undefined; // of a bucket of the key, of which a 429 for attempts says nothing
  const fault = refuseUnrecognized(gate, token, refusal);
  gate.alarms.noteOveruse(entry, fault === refusal);
  return fault;
}

/** Takes one token of a recognized key. */
export async function charge(gate: Gatekeeper, exchange: Exchange, payer: Payer, bucket: BucketName): Promise<void> {
  const nowUs = gate.nowUs();
  const decision = await (gate.shared ?? gate.limiter).take(payer, bucket, nowUs);
  exchange.rateLimit = rateLimitHeaders(policyOf(bucket, payer.rate), decision, nowUs);
  if (!decision.allowed) throw limited(gate, bucket, `key ${payer.keyId}`, decision.retryAfterUs);
}

/** The Fault for a refused key: its own, or `rate_limited` once its text has used up its attempts. */
function refuseUnrecognized(gate: Gatekeeper, text: string, refusal: Fault): Fault {
  const decision = gate.unrecognized.take(text, gate.nowUs());
  return decision.allowed ? refusal : limited(gate, "unrecognized", refusal.message, decision.retryAfterUs);
}

function limited(gate: Gatekeeper, bucket: keyof Gatekeeper["refusals"], who: string, retryAfterUs: number): Fault {
  gate.refusals[bucket] += 1;
  return new Fault("rate_limited", `${who}: over the ${bucket} limit`, { retryAfterS: retryAfterS(retryAfterUs) });
}
