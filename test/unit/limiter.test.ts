import { describe, expect, test } from "bun:test";
import { Limiter } from "../../src/serve/limit/limiter.ts";

const of = (keyId: string) => ({ keyId, rate: null, from: null });

/** One entry for each of the 128 shards of each of the three kinds. */
const oneEntryPerShard = 128 * 3;

/** Empties a bucket and returns how many calls passed. */
function drain(limiter: Limiter, keyId: string, bucket: "metadata" | "value" | "content", nowUs: number): number {
  let passed = 0;
  while (limiter.take(of(keyId), bucket, nowUs).allowed) passed++;
  return passed;
}

describe("buckets", () => {
  test("are dropped by one round of sweeps once they are full again, and not before", () => {
    const limiter = new Limiter();
    for (let i = 0; i < 1000; i++) limiter.take(of(`k${i}`), "value", 0);
    for (let i = 0; i < 1000; i++) limiter.take(of(`m${i}`), "metadata", 0);
    for (let i = 0; i < 1000; i++) limiter.take(of(`c${i}`), "content", 0);
    const round = (nowUs: number) => {
      for (let shard = 0; shard < oneEntryPerShard; shard++) limiter.sweep(nowUs);
      return limiter.size;
    };
    expect(round(499_999)).toBe(3000);
    expect(round(500_000)).toBe(2000);
    expect(round(1_000_000)).toBe(1000);
    expect(round(1_999_999)).toBe(1000);
    expect(round(2_000_000)).toBe(0);
  });

  test("of keys that call once do not pile up, because calls sweep too", () => {
    const limiter = new Limiter();
    let largest = 0;
    for (let i = 0; i < 200_000; i++) {
      limiter.take(of(`k${i}`), "metadata", i * 1_000); // 500 are not full at any moment
      largest = Math.max(largest, i % 1000 === 0 ? limiter.size : 0);
    }
    // A round of sweeps takes 384 × 64 calls.
    expect(largest).toBeLessThanOrEqual(500 + 384 * 64);
    expect(largest).toBeGreaterThanOrEqual(500);
  });

  test("never exceed the bound, even if none becomes full again", () => {
    const limiter = new Limiter(oneEntryPerShard * 4);
    for (let i = 0; i < 20_000; i++) {
      limiter.take(of(`k${i}`), "value", 0);
      limiter.take(of(`k${i}`), "content", 0);
    }
    expect(limiter.size).toBe((oneEntryPerShard * 4 * 2) / 3); // two of three kinds are used, and each of their shards is full
  });

  test("are evicted least recently used first: an active one survives a flood, an idle one does not", () => {
    const limiter = new Limiter(oneEntryPerShard * 2);
    drain(limiter, "idle", "content", 0);
    limiter.take(of("busy"), "content", 0);
    for (let i = 0; i < 900; i++) {
      limiter.take(of(`k${i}`), "content", 0);
      expect(limiter.take(of("busy"), "content", 0)).toMatchObject({ allowed: true, remaining: 998 - i });
    }
    for (let i = 900; i < 5000; i++) limiter.take(of(`k${i}`), "content", 0);
    expect(limiter.take(of("idle"), "content", 0)).toMatchObject({ allowed: true, remaining: 999 });
  });
});

describe("recognized digests", () => {
  test("return the key until they are forgotten", () => {
    const limiter = new Limiter();
    expect(limiter.payerOf("d1")).toBeUndefined();
    limiter.recognize("d1", of("k1"));
    limiter.recognize("\u00ff\u0000\u0080", of("k2")); // a digest as latin1
    expect(limiter.payerOf("d1")).toEqual(of("k1"));
    expect(limiter.payerOf("\u00ff\u0000\u0080")).toEqual(of("k2"));
    limiter.forget("d1");
    expect(limiter.payerOf("d1")).toBeUndefined();
    expect(limiter.payerOf("\u00ff\u0000\u0080")).toEqual(of("k2"));
  });

  test("are at most 65,536, and the least recently recognized is evicted", () => {
    const limiter = new Limiter();
    limiter.recognize("idle", of("idle"));
    for (let i = 0; i < 150_000; i++) {
      limiter.recognize(`d${i}`, of("k"));
      if (i % 1000 === 0) limiter.recognize("busy", of("busy"));
    }
    let known = 0;
    for (let i = 0; i < 150_000; i++) if (limiter.payerOf(`d${i}`)) known++;
    expect(known).toBe(65_536 - 1);
    expect(limiter.payerOf("busy")).toEqual(of("busy"));
    expect(limiter.payerOf("idle")).toBeUndefined();
    expect(limiter.payerOf("d0")).toBeUndefined();
    expect(limiter.payerOf("d149999")).toEqual(of("k"));
  });
});
