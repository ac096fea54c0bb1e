import { Deadline } from "../../core/deadline.ts";
import { Fault } from "../../core/fault.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { Exchange } from "../gates/exchange.ts";
import { appliedHeader } from "../gates/prefer.ts";
import type { Decision } from "../limit/bucket.ts";
import { newStages } from "../sets/stages.ts";

/*
 * Conditional reads that wait for a change: `If-None-Match` with `Prefer: wait=N`. While the tag fits, the answer waits,
 * and is then the one of that moment. A wait holds no connection of the database and no value. It is judged again by all
 * gates if the end of the commands' lane has moved, which each change by people moves in its own transaction. That finds no
 * edit by SQL and no key that ends by time, so it is judged at least every ten seconds anyway.
 */

/** Judges a request by all gates. It may be called again, with parts that let it pay once. */
type Judge = (parts: ApiParts) => Promise<Response>;

type WaitingRead = {
  /** The end of the lane that was known when its last judgement began. A later change moves that end. */
  readonly end: string | undefined;
  readonly judgedAtMs: number;
  readonly wake: () => void;
};

/** The waits of one process. */
export class Waits {
  readonly #findEnd: () => Promise<string>;
  readonly #nowMs: () => number;
  readonly #lookEveryMs: number;
  readonly #waits = new Set<WaitingRead>();
  readonly #ofKeys = new Map<string, number>();
  #underWay = 0;
  #end: string | undefined;
  #isLooking = false;
  #isEnding = false;

  /**
   * @param findEnd - where the commands' lane ends: another text for another end
   * @param nowMs - monotonic
   * @param lookEveryMs - how often the end is asked for while somebody waits
   */
  constructor(findEnd: () => Promise<string>, nowMs: () => number = () => performance.now(), lookEveryMs = 1000) {
    this.#findEnd = findEnd;
    this.#nowMs = nowMs;
    this.#lookEveryMs = lookEveryMs;
  }

  /** How many requests wait. */
  get size(): number {
    return this.#underWay;
  }

  /** Ends each wait, because the server stops. */
  readonly end = (): void => {
    this.#isEnding = true;
    for (const { wake } of this.#waits) wake();
  };

  /** Answers a request at once, unless it prefers to wait and its answer would be a 304. */
  async answer(parts: ApiParts, exchange: Exchange, judge: Judge): Promise<Response> {
    const { waitS, startedAtMs } = exchange;
    if (waitS === undefined) return judge(parts);
    const own = payingOnce(parts);
    let end = this.#end;
    const response = await judge(own.parts);
    const { keyId } = exchange;
    if (response.status !== 304 || keyId === undefined) return response;
    const ofKey = this.#ofKeys.get(keyId) ?? 0;
    if (ofKey >= ofKeyMax || this.#underWay >= waitsMax || this.#isEnding) {
      response.headers.delete(appliedHeader);
      return response;
    }
    this.#ofKeys.set(keyId, ofKey + 1);
    this.#underWay += 1;
    const signal = exchange.signal();
    const endsAtMs = startedAtMs + waitS * 1000;
    try {
      for (;;) {
        await this.#untilDue(end, endsAtMs, signal);
        if (this.#isEnding) response.headers.set("Connection", "close");
        if (this.#isEnding || signal.aborted) return response;
        const isLast = this.#nowMs() >= endsAtMs - 1;
        const known = this.#end;
        exchange.startedAtMs = performance.now(); // a wait is no slow request
        if (exchange.stages) exchange.stages = newStages();
        exchange.closing ||= this.#isEnding;
        const judged = judge(own.parts);
        try {
          const found = await (isLast ? lastOf(judged, own.isValueRead) : judged);
          if (isLast || found.status !== 304) return found;
          end = known;
        } catch (error) {
          const mayPass = error instanceof Fault && error.code === "unavailable";
          if (isLast || !mayPass) throw error;
        }
      }
    } finally {
      this.#underWay -= 1;
      const left = (this.#ofKeys.get(keyId) ?? 0) - 1;
      if (left > 0) this.#ofKeys.set(keyId, left);
      else this.#ofKeys.delete(keyId);
    }
  }

  /** Resolves when the wait is to be judged, has ended, or its caller has left. */
  async #untilDue(end: string | undefined, endsAtMs: number, signal: AbortSignal): Promise<void> {
    const nowMs = this.#nowMs();
    if (this.#isEnding || signal.aborted || endsAtMs <= nowMs) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const wait: WaitingRead = { end, judgedAtMs: nowMs, wake };
    const timer = setTimeout(wake, endsAtMs - nowMs);
    signal.addEventListener("abort", wake, { once: true });
    this.#waits.add(wait);
    if (!this.#isLooking) void this.#look();
    await promise;
    this.#waits.delete(wait);
    clearTimeout(timer);
    signal.removeEventListener("abort", wake);
  }

  /** Asks for the end while somebody waits. */
  async #look(): Promise<void> {
    this.#isLooking = true;
    for (;;) {
      await Bun.sleep(this.#lookEveryMs);
      if (this.#waits.size === 0) break;
      try {
        this.#end = await this.#findEnd();
      } catch {
        continue; // a database that is away: who waits is judged when it is back, or at the end of the wait
      }
      const nowMs = this.#nowMs();
      const due = [...this.#waits].filter((one) => one.end !== this.#end || nowMs - one.judgedAtMs >= judgedMsMax);
      // In steps, so that those of thousands come no faster than they are answered.
      for (let at = 0; at < due.length; at += stepSize) {
        if (at > 0) await Bun.sleep(stepMs);
        for (const { wake } of due.slice(at, at + stepSize)) wake();
      }
    }
    this.#isLooking = false;
    this.#end = undefined;
  }
}

/** The parts for all judgements of one request: each bucket is charged once. */
function payingOnce(parts: ApiParts) {
  const { gate } = parts;
  const buckets = gate.shared ?? gate.limiter;
  const paid = new Map<string, Decision | Promise<Decision>>();
  const take: typeof buckets.take = (payer, bucket, nowUs) => {
    const decision = paid.get(bucket) ?? buckets.take(payer, bucket, nowUs);
    paid.set(bucket, decision);
    return decision;
  };
  // The first judgement pays one token of the metadata bucket. Whoever pays another has new values.
  return { parts: { ...parts, gate: { ...gate, shared: { take } } }, isValueRead: () => paid.size > 1 };
}

/** The last judgement, which ends a wait in time. A read of values that it began has the usual deadline. */
function lastOf(judged: Promise<Response>, isValueRead: () => boolean): Promise<Response> {
  const late = last.of(judged).catch((error: unknown) => {
    if (error === tooLate && isValueRead()) return judged;
    throw error;
  });
  void late.catch(() => judged.then((response) => response.body?.cancel()).catch(() => {}));
  return late;
}

const tooLate = new Fault("unavailable", "a wait ended, and the database did not answer in time");
const last = new Deadline(1700, () => tooLate);

const ofKeyMax = 64;
const waitsMax = 10_000;
/** With the second between two looks of a server, it makes ten. */
const judgedMsMax = 9000;
const stepSize = 64;
const stepMs = 5;
