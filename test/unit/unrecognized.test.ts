import { describe, expect, test } from "bun:test";
import { UnrecognizedLimiter } from "../../src/serve/limit/unrecognized.ts";

const secret = new Uint8Array(32).fill(7);
const minuteUs = 60_000_000;

/** Takes until refused; returns how many calls passed. */
function drain(limiter: UnrecognizedLimiter, presented: string, nowUs: number): number {
  let passed = 0;
  while (limiter.take(presented, nowUs).allowed) passed++;
  return passed;
}

test("every text has ten attempts of its own, however similar", () => {
  const limiter = new UnrecognizedLimiter();
  for (const presented of ["kh_a", "kh_b", "kh_a ", "kh_A", "", "kh_\u0000a", "é", "e\u0301", "x".repeat(16_384)]) {
    expect(drain(limiter, presented, 0)).toBe(10);
  }
});

test("times are exact to the microsecond after a hundred years", () => {
  const limiter = new UnrecognizedLimiter();
  const nowUs = 100 * 365 * 24 * 3_600_000_000 + 1; // beyond any u32, well below 2⁵³
  expect(drain(limiter, "kh_a", nowUs)).toBe(10);
  expect(limiter.take("kh_a", nowUs + 5_999_999)).toEqual({ allowed: false, retryAfterUs: 1 });
  expect(limiter.take("kh_a", nowUs + 6_000_000).allowed).toBe(true);
});

test("a clock that steps back earns nothing", () => {
  const limiter = new UnrecognizedLimiter();
  expect(drain(limiter, "kh_a", minuteUs)).toBe(10);
  expect(limiter.take("kh_a", 0)).toEqual({ allowed: false, retryAfterUs: minuteUs + 6_000_000 });
});

describe("the table", () => {
  test("keeps as many as it has room for, except those that share a full set", () => {
    const limiter = new UnrecognizedLimiter(secret);
    const count = 131_072; // half of what fits: four of eight in each set on average
    for (let i = 0; i < count; i++) limiter.take(`kh_${i}`, i);
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const decision = limiter.peek(`kh_${i}`, count);
      if (decision.allowed && decision.remaining < 9) kept++;
    }
    expect(kept / count).toBeGreaterThan(0.97); // Poisson: 0.9836
  });

  test("holds eight in a set, and the ninth evicts the one that is full again soonest", () => {
    const limiter = new UnrecognizedLimiter(secret, 1);
    for (let i = 0; i < 8; i++) limiter.take(`kh_${i}`, 100 - i); // the last one is full again soonest
    const remaining = (presented: string) => limiter.peek(presented, 100);
    for (let i = 0; i < 8; i++) expect(remaining(`kh_${i}`)).toMatchObject({ remaining: 8 });
    limiter.take("kh_8", 100);
    expect(remaining("kh_8")).toMatchObject({ remaining: 8 });
    expect(remaining("kh_7")).toMatchObject({ remaining: 9 });
    for (let i = 0; i < 7; i++) expect(remaining(`kh_${i}`)).toMatchObject({ remaining: 8 });
  });

  test("keeps a key at its limit through a flood of keys presented once", () => {
    const limiter = new UnrecognizedLimiter(secret, 1);
    drain(limiter, "kh_hot", 0);
    for (let i = 0; i < 10_000; i++) limiter.take(`kh_${i}`, i * 100); // one second
    expect(limiter.take("kh_hot", 1_000_000)).toEqual({ allowed: false, retryAfterUs: 5_000_000 });
  });

  test("takes no text for another: of a million new texts none meets a stored one", () => {
    const limiter = new UnrecognizedLimiter(secret, 2 ** 10); // few sets, so that only the tags differ
    for (let i = 0; i < 8192; i++) drain(limiter, `kh_${i}`, 0);
    let refused = 0;
    for (let i = 0; i < 1_000_000; i++) if (!limiter.peek(`other_${i}`, 0).allowed) refused++;
    expect(refused).toBe(0);
  });
});

test("which texts share a set depends on the secret, so nobody can choose whom to evict", () => {
  const survivors = (own: Uint8Array | undefined) => {
    const limiter = new UnrecognizedLimiter(own, 4);
    for (let i = 0; i < 300; i++) limiter.take(`kh_${i}`, i);
    return Array.from({ length: 300 }, (_, i) => i).filter((i) => {
      const decision = limiter.peek(`kh_${i}`, 300);
      return decision.allowed && decision.remaining < 9;
    });
  };
  expect(survivors(secret)).toHaveLength(32);
  expect(survivors(secret)).toEqual(survivors(secret));
  expect(survivors(secret)).not.toEqual(survivors(new Uint8Array(32).fill(8)));
  expect(survivors(undefined)).not.toEqual(survivors(undefined)); // the default is random; equal with a chance of 10⁻¹⁰
});
