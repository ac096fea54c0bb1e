import { BoundedMap } from "../../core/bounded-map.ts";
import { Overused } from "../../record/job-reads.ts";
import { Unmet } from "../../record/journal.ts";
import type { KeyRow } from "../access/authenticate.ts";
import { grantBytes } from "../access/grant-seals.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { Exchange } from "../gates/exchange.ts";
import type { Decision } from "../limit/bucket.ts";

/** Answers a request, with parts that may presume. */
type AnswerWith = (parts: ApiParts, exchange: Exchange) => Promise<Response>;

/**
 * Saves a caller who is alone a statement. A read of values has two: the lookup, and the entry. Here it presumes that the
 * lookup would find what it found for the read before, and stores the entry on that condition, in one statement. So
 * authority is judged in the snapshot that writes the entry.
 *
 * If the entry is not stored, what was prepared is dropped, and the request is answered again like any other. It pays once.
 */
export function answeringAlone(): (parts: ApiParts, exchange: Exchange, answer: AnswerWith) => Promise<Response> {
  let underWay = 0;
  return async (parts, exchange, answer) => {
    underWay += 1;
    try {
      const mayPresume = exchange.ifNoneMatch === undefined && parts.journal.recordIf !== undefined;
      if (underWay > 1 || !mayPresume) return await answer(parts, exchange);
      const attempts = attemptsOf(parts, () => underWay === 1);
      const own = { ...exchange };
      const [first] = await Promise.allSettled([answer(attempts.parts, own)]);
      if (!attempts.counts()) {
        if (first.status === "fulfilled") void first.value.body?.cancel();
        return await answer(attempts.parts, exchange);
      }
      Object.assign(exchange, own);
      if (first.status === "rejected") throw first.reason;
      return first.value;
    } finally {
      underWay -= 1;
    }
  };
}

/** The parts for two attempts at one request. The second begins when the first was found not to count. */
function attemptsOf(parts: ApiParts, isAlone: () => boolean) {
  const { gate, journal } = parts;
  const known = rowsByLookUp.getOrInsertComputed(gate.lookUp, () => new BoundedMap<KeyRow>(rowsBytesMax, grantBytes));
  const buckets = gate.shared ?? gate.limiter;
  let isSecond = false;
  let paid: Decision | Promise<Decision> | undefined;
  let asked = "";
  let found: KeyRow | undefined;
  let presumed: KeyRow | undefined;
  let hasEnded = false;

  const take: typeof buckets.take = (...call) => {
    const decision = (isSecond && paid) || buckets.take(...call);
    paid = isSecond ? undefined : decision;
    return decision;
  };
  const lookUp: typeof gate.lookUp = async (lookup) => {
    asked = `${Buffer.from(lookup.digest).toString("hex")} ${lookup.slug} ${lookup.kind} ${lookup.environments}`;
    const row = isSecond || lookup.values === 0 ? undefined : known.get(asked);
    if (row?.again?.isCurrent() && paid !== undefined) {
      await new Promise(setImmediate); // so that requests of the same turn share a lookup
      if (isAlone()) {
        presumed = row;
        return row;
      }
    }
    found = await gate.lookUp(lookup);
    return found;
  };
  const recordIf = async (row: KeyRow, ...[entries, read]: Parameters<typeof journal.record>) => {
    known.delete(asked);
    try {
      const receipt = row.again && (await journal.recordIf?.(row.again, entries, read));
      hasEnded = receipt !== undefined && row.again?.isCurrent() === true && gate.refusal() === undefined;
      if (!hasEnded) throw new Unmet();
      known.set(asked, row);
      gate.used(row.keyId);
      return receipt;
    } catch (error) {
      // A job that had its answers is refused by the second attempt, with all that is due then.
      if (error instanceof Overused) throw new Unmet();
      // A second attempt would only wait for the same failure.
      hasEnded ||= !(error instanceof Unmet);
      throw error;
    }
  };
  const record: typeof journal.record = async (entries, read) => {
    if (presumed !== undefined && !isSecond) return recordIf(presumed, entries, read);
    const receipt = await journal.record(entries, read);
    if (journal.recordIf && found?.again && receipt !== undefined) known.set(asked, found);
    return receipt;
  };
  const used = (keyId: string) => {
    if (presumed === undefined || isSecond) gate.used(keyId);
  };
  return {
    parts: { ...parts, gate: { ...gate, shared: { take }, lookUp, used }, journal: { record } },
    counts: () => {
      isSecond = presumed !== undefined && !hasEnded;
      return !isSecond;
    },
  };
}

/** What lookups found for reads that were recorded. */
const rowsByLookUp = new WeakMap<ApiParts["gate"]["lookUp"], BoundedMap<KeyRow>>();

/** Those of 16,000 keys. */
const rowsBytesMax = 32 * 1024 * 1024;
