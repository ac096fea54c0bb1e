import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { rateMax } from "../../src/serve/access/grant.ts";
import {
  type BucketName,
  type Policy,
  policies,
  policyOf,
  rateLimitHeaders,
  retryAfterS,
  take,
} from "../../src/serve/limit/bucket.ts";
import { Budget, type Share } from "../../src/serve/limit/budget.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { UnrecognizedLimiter } from "../../src/serve/limit/unrecognized.ts";

const anyPolicy: fc.Arbitrary<Policy> = fc.oneof(
  fc.constantFrom(...Object.values(policies)),
  fc.record({
    name: fc.constant("any"),
    capacity: fc.integer({ min: 1, max: 2000 }),
    intervalUs: fc.integer({ min: 1, max: 100_000_000 }),
  }),
);

/** A policy of small capacity, and pauses that are mostly shorter than its interval, so that the limit is reached. */
const anyCalls = anyPolicy.chain((policy) =>
  fc.record({
    policy: fc.constant({ ...policy, capacity: 1 + (policy.capacity % 12) }),
    startUs: fc.integer({ min: 0, max: 2 ** 50 }),
    pausesUs: fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: fc.integer({ min: 0, max: policy.intervalUs }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: policy.intervalUs * 20 }) },
      ),
      { minLength: 40, maxLength: 150 },
    ),
  }),
);

describe("a bucket", () => {
  test("has the quota and window of its policy", () => {
    expect(Object.values(policies).map((policy) => policy.announcement)).toEqual([
      '"metadata";q=120;w=60',
      '"value";q=30;w=60',
      '"file-content";q=1000;w=1000', // 1000 and then 60/min: it fills in 1000 s
      '"unrecognized";q=10;w=60',
    ]);
  });

  test("of a key with a rate of its own is as many times as large, and is full after at most the same time", () => {
    const announced = (bucket: BucketName, rate: number | null) => policyOf(bucket, rate).announcement;
    expect(announced("value", 7)).toBe('"value";q=210;w=60');
    expect(announced("content", 100)).toBe('"file-content";q=100000;w=1000');
    for (const bucket of ["metadata", "value", "content"] as const) {
      expect(policyOf(bucket, null)).toBe(policies[bucket]);
      const { name, capacity, intervalUs } = policies[bucket];
      for (let rate = 2; rate <= rateMax; rate++) {
        const larger = policyOf(bucket, rate);
        const windowUs = larger.capacity * larger.intervalUs;
        expect(larger).toMatchObject({ name, capacity: capacity * rate });
        expect(windowUs).toBeLessThanOrEqual(capacity * intervalUs);
        expect(windowUs).toBeGreaterThan(capacity * intervalUs * 0.9998);
        expect(announced(bucket, rate).split(";w=")[1]).toBe(policies[bucket].announcement.split(";w=")[1]);
      }
    }
  });

  test("refuses exactly: refused at retryAfterUs - 1, allowed at retryAfterUs", () => {
    let refusals = 0;
    fc.assert(
      fc.property(anyCalls, ({ policy, startUs, pausesUs }) => {
        let fullAtUs: number | undefined;
        let nowUs = startUs;
        for (const pauseUs of pausesUs) {
          nowUs += pauseUs;
          const decision = take(fullAtUs, policy, nowUs);
          if (decision.allowed) {
            fullAtUs = decision.fullAtUs;
            continue;
          }
          refusals++;
          expect(take(fullAtUs, policy, nowUs + decision.retryAfterUs - 1).allowed).toBe(false);
          expect(take(fullAtUs, policy, nowUs + decision.retryAfterUs).allowed).toBe(true);
          expect(take(fullAtUs, policy, nowUs + retryAfterS(decision.retryAfterUs) * 1_000_000).allowed).toBe(true);
        }
      }),
    );
    expect(refusals).toBeGreaterThan(300); // otherwise the test proves nothing
  });

  test("agrees with a bucket that counts its tokens", () => {
    fc.assert(
      fc.property(anyCalls, ({ policy, startUs, pausesUs }) => {
        const fullUs = policy.capacity * policy.intervalUs;
        let creditUs = fullUs; // intervalUs of it is one token
        let fullAtUs: number | undefined;
        let nowUs = startUs;
        for (const pauseUs of pausesUs) {
          nowUs += pauseUs;
          creditUs = Math.min(fullUs, creditUs + pauseUs);
          const decision = take(fullAtUs, policy, nowUs);
          expect(decision.allowed).toBe(creditUs >= policy.intervalUs);
          if (!decision.allowed) continue;
          creditUs -= policy.intervalUs;
          fullAtUs = decision.fullAtUs;
          expect(decision.remaining).toBe(Math.floor(creditUs / policy.intervalUs));
          expect(decision.fullAtUs).toBe(nowUs + fullUs - creditUs);
        }
      }),
    );
  });

  test("earns nothing while the clock is behind a time already seen", () => {
    fc.assert(
      fc.property(anyPolicy, fc.array(fc.nat(1000), { maxLength: 50 }), (policy, stepsUs) => {
        const topUs = 1_000_000_000;
        let fullAtUs: number | undefined;
        for (let left = policy.capacity; left > 0; left--) {
          const decision = take(fullAtUs, policy, topUs);
          if (!decision.allowed) throw new Error("a full bucket refused");
          fullAtUs = decision.fullAtUs;
        }
        for (const stepUs of stepsUs) expect(take(fullAtUs, policy, topUs - stepUs).allowed).toBe(false);
        expect(take(fullAtUs, policy, topUs + policy.intervalUs).allowed).toBe(true);
      }),
    );
  });

  test("has headers that are valid structured fields with correct whole numbers", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(policies)),
        fc.nat(1200),
        fc.nat(3_000_000),
        (policy, calls, nowUs) => {
          let fullAtUs: number | undefined;
          for (let i = 0; i < calls; i++) {
            const decision = take(fullAtUs, policy, nowUs);
            if (decision.allowed) fullAtUs = decision.fullAtUs;
          }
          const decision = take(fullAtUs, policy, nowUs);
          const fields = rateLimitHeaders(policy, decision, nowUs);
          expect(fields["RateLimit-Policy"]).toMatch(/^"[a-z-]+";q=[1-9]\d*;w=[1-9]\d*$/);
          const [, name, r, t] = /^"([a-z-]+)";r=(\d+);t=([1-9]\d*)$/.exec(fields.RateLimit) ?? [];
          expect(name).toBe(policy.name);
          expect(Number(r)).toBe(Math.max(0, policy.capacity - calls - 1));
          const thenUs = nowUs + Number(t) * 1_000_000;
          const then = take(decision.allowed ? decision.fullAtUs : fullAtUs, policy, thenUs);
          expect(then).toMatchObject({ allowed: true, ...(decision.allowed && { remaining: policy.capacity - 1 }) });
        },
      ),
    );
  });
});

describe("limiters", () => {
  test("give the same answers as buckets that are never forgotten", () => {
    const anyStep = fc.record({
      of: fc.constantFrom({ keyId: "a", rate: null }, { keyId: "b", rate: 7 }, { keyId: "c", rate: 100 }),
      bucket: fc.constantFrom<BucketName>("metadata", "value", "content"),
      pauseUs: fc.oneof(fc.constant(0), fc.nat(3_000_000), fc.nat(100_000_000)),
      calls: fc.integer({ min: 1, max: 130 }),
      sweeps: fc.constantFrom(0, 1, 384),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
        const limiter = new Limiter();
        const model = new Map<string, number>();
        let nowUs = 0;
        for (const { of, bucket, pauseUs, calls, sweeps } of steps) {
          nowUs += pauseUs;
          for (let i = 0; i < sweeps; i++) limiter.sweep(nowUs);
          for (let i = 0; i < calls; i++) {
            const expected = take(model.get(`${of.keyId} ${bucket}`), policyOf(bucket, of.rate), nowUs);
            if (expected.allowed) model.set(`${of.keyId} ${bucket}`, expected.fullAtUs);
            expect(limiter.take(of, bucket, nowUs)).toEqual(expected);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  test("of unrecognized keys agree with a map that grows, as long as the table has room", () => {
    const anyStep = fc.record({
      presented: fc.oneof(fc.constantFrom("kh_a", "kh_b", ""), fc.string({ unit: "binary-ascii", maxLength: 60 })),
      pauseUs: fc.oneof(fc.constant(0), fc.nat(3_000_000), fc.nat(100_000_000)),
      calls: fc.integer({ min: 1, max: 13 }),
    });
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.array(anyStep, { maxLength: 40 }),
        (secret, steps) => {
          const limiter = new UnrecognizedLimiter(secret, 2 ** 10);
          const model = new Map<string, number>();
          let nowUs = 0;
          for (const { presented, pauseUs, calls } of steps) {
            nowUs += pauseUs;
            for (let i = 0; i < calls; i++) {
              const expected = take(model.get(presented), policies.unrecognized, nowUs);
              if (expected.allowed) model.set(presented, expected.fullAtUs);
              expect(limiter.peek(presented, nowUs)).toEqual(expected);
              expect(limiter.take(presented, nowUs)).toEqual(expected);
            }
          }
        },
      ),
    );
  });
});

const bytesMax = 100;
const holderMax = 60;
const holders = ["a", "b", "c"] as const;
type Step =
  | { readonly do: "acquire"; readonly bytes: number; readonly holder: string }
  | { readonly do: "take"; readonly bytes: number; readonly holder: string }
  | { readonly do: "shrink"; readonly pick: number; readonly bytes: number }
  | { readonly do: "release"; readonly pick: number }
  | { readonly do: "abort"; readonly pick: number };
const sized = { bytes: fc.nat(holderMax), holder: fc.constantFrom(...holders) };
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("acquire" as const), ...sized }),
  fc.record({ do: fc.constant("take" as const), ...sized }),
  fc.record({ do: fc.constant("release" as const), pick: fc.nat(1000) }),
  fc.record({ do: fc.constant("abort" as const), pick: fc.nat(1000) }),
  fc.record({ do: fc.constant("shrink" as const), pick: fc.nat(1000), bytes: fc.nat(holderMax) }),
);

test("a byte budget is never exceeded, limits each holder, serves each holder in FIFO order, and grants all that fits", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), async (steps) => {
      const budget = new Budget(bytesMax, holderMax);
      const granted: { holder: string; share: Share }[] = [];
      let waiting: { id: number; holder: string; bytes: number; controller: AbortController }[] = [];
      const order: { id: number; holder: string }[] = [];
      const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
      const heldBy = (some: readonly { share: Share }[]) => some.reduce((sum, { share }) => sum + share.amount, 0);
      const exhausted = ({ holder, bytes }: { holder: string; bytes: number }) =>
        heldBy(granted.filter((other) => other.holder === holder)) + bytes > holderMax;
      const heads = () => holders.flatMap((holder) => waiting.find((one) => one.holder === holder) ?? []);
      for (const [id, step] of steps.entries()) {
        if (step.do === "acquire") {
          const { bytes, holder } = step;
          const waiter = { id, holder, bytes, controller: new AbortController() };
          waiting.push(waiter);
          const leave = () => {
            waiting = waiting.filter((other) => other !== waiter);
          };
          budget.acquire(bytes, holder, waiter.controller.signal).then((share) => {
            order.push({ id, holder });
            leave();
            granted.push({ holder, share });
          }, leave);
        } else if (step.do === "take") {
          const { holder, bytes } = step;
          const share = budget.take(bytes, holder);
          const fits = !exhausted(step) && heldBy(granted) + bytes <= bytesMax;
          expect(share !== undefined).toBe(waiting.length === 0 && fits);
          if (share) granted.push({ holder, share });
        } else if (step.do === "shrink") {
          const one = granted[step.pick % Math.max(1, granted.length)];
          if (one && step.bytes < one.share.amount) one.share.resize(step.bytes);
        } else if (step.do === "release") {
          const one = granted[step.pick % Math.max(1, granted.length)];
          if (one) {
            granted.splice(granted.indexOf(one), 1);
            one.share.release();
          }
        } else {
          waiting[step.pick % Math.max(1, waiting.length)]?.controller.abort();
        }
        await settled();
        const held = heldBy(granted);
        expect(budget.taken).toBe(held);
        expect(held).toBeLessThanOrEqual(bytesMax);
        for (const holder of holders) {
          const own = order.filter((one) => one.holder === holder).map((one) => one.id);
          expect(own).toEqual(own.toSorted((a, b) => a - b));
          expect(heldBy(granted.filter((one) => one.holder === holder))).toBeLessThanOrEqual(holderMax);
        }
        // Only waiters of holders at their own bound are skipped, so the first of the others does not fit.
        const servable = heads().filter((one) => !exhausted(one));
        if (servable.length > 0)
          expect(held + Math.max(...servable.map(({ bytes }) => bytes))).toBeGreaterThan(bytesMax);
      }
      for (const { share } of granted) share.release();
      while (waiting.length > 0) {
        await settled();
        for (const { share } of granted) share.release();
      }
      expect(budget.taken).toBe(0);
    }),
    { numRuns: 500 },
  );
});
