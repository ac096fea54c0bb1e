import { describe, expect, test } from "bun:test";
import { type Policy, policies, rateLimitHeaders, retryAfterS, take } from "../../src/limit/bucket.ts";

/** Two tokens, one more every 10 µs. */
const small: Policy = { name: "small", capacity: 2, intervalUs: 10 };

/** The decisions about calls at these moments in one bucket. */
function run(policy: Policy, moments: readonly number[]) {
  let fullAtUs: number | undefined;
  return moments.map((nowUs) => {
    const decision = take(fullAtUs, policy, nowUs);
    if (decision.allowed) fullAtUs = decision.fullAtUs;
    return decision;
  });
}

describe("one bucket", () => {
  const rows: readonly { nowUs: number; allowed: boolean; remaining?: number; retryAfterUs?: number }[] = [
    { nowUs: 100, allowed: true, remaining: 1 },
    { nowUs: 100, allowed: true, remaining: 0 }, // the whole capacity may be spent at once
    { nowUs: 100, allowed: false, retryAfterUs: 10 },
    { nowUs: 109, allowed: false, retryAfterUs: 1 }, // a refusal costs nothing: the wait has not grown
    { nowUs: 110, allowed: true, remaining: 0 },
    { nowUs: 90, allowed: false, retryAfterUs: 30 }, // the clock stepped back: nothing is earned, one passes at 120
    { nowUs: 125, allowed: true, remaining: 0 }, // half a token is left over
    { nowUs: 130, allowed: true, remaining: 0 }, // and is not lost
    { nowUs: 1_000, allowed: true, remaining: 1 }, // never more than the capacity, however long the pause
  ];

  test("allows and refuses exactly these calls", () => {
    const decisions = run(
      small,
      rows.map((row) => row.nowUs),
    );
    expect(
      decisions.map((decision, i) => ({
        nowUs: rows[i]?.nowUs,
        allowed: decision.allowed,
        ...(decision.allowed ? { remaining: decision.remaining } : { retryAfterUs: decision.retryAfterUs }),
      })),
    ).toEqual(rows as never);
  });

  test("that is full again behaves like no bucket", () => {
    expect(take(50, small, 50)).toEqual(take(undefined, small, 50));
  });
});

describe("the policies", () => {
  const rows = [
    { bucket: "metadata", burst: 120, inTenMinutes: 120 + 1200 },
    { bucket: "value", burst: 30, inTenMinutes: 30 + 300 },
    { bucket: "content", burst: 1000, inTenMinutes: 1000 + 600 },
    { bucket: "unrecognized", burst: 10, inTenMinutes: 10 + 100 },
  ] as const;

  for (const { bucket, burst, inTenMinutes } of rows) {
    test(`allow ${burst} ${bucket} calls at once and ${inTenMinutes} in ten minutes`, () => {
      const allowed = (moments: readonly number[]) =>
        run(policies[bucket], moments).filter((decision) => decision.allowed).length;
      expect(allowed(Array.from({ length: 2000 }, () => 5_000_000))).toBe(burst);
      expect(allowed(Array.from({ length: 6001 }, (_, i) => i * 100_000))).toBe(inTenMinutes);
    });
  }
});

describe("Retry-After", () => {
  const rows: readonly [retryAfterUs: number, seconds: number][] = [
    [1, 1], // never 0: a client that retries at once would be refused again
    [999_999, 1],
    [1_000_000, 1],
    [1_000_001, 2], // rounded down, the client would be refused again
    [6_000_000, 6],
  ];
  for (const [retryAfterUs, seconds] of rows) {
    test(`of ${retryAfterUs} µs is ${seconds} s`, () => {
      expect(retryAfterS(retryAfterUs)).toBe(seconds);
    });
  }
});

describe("the RateLimit headers", () => {
  test("show quota and window of each policy", () => {
    expect(Object.values(policies).map((policy) => policy.announcement)).toEqual([
      '"metadata";q=120;w=60',
      '"value";q=30;w=60',
      '"file-content";q=1000;w=1000', // 1000 and then 60/min: it fills in 1000 s
      '"unrecognized";q=10;w=60',
    ]);
  });

  test("show what is left, and the seconds until the bucket is full", () => {
    const first = take(undefined, policies.value, 7);
    expect(rateLimitHeaders(policies.value, first, 7)).toEqual({
      "RateLimit-Policy": '"value";q=30;w=60',
      RateLimit: '"value";r=29;t=2',
    });
    const second = take(7 + 2_000_000, policies.value, 8); // 3.999999 s, rounded up
    expect(rateLimitHeaders(policies.value, second, 8).RateLimit).toBe('"value";r=28;t=4');
  });

  test("show the seconds of Retry-After after a refusal", () => {
    const refused = take(7 + 60_000_000, policies.value, 7);
    expect(rateLimitHeaders(policies.value, refused, 7).RateLimit).toBe('"value";r=0;t=2');
  });
});
