import { describe, expect, test } from "bun:test";
import { bytesPerSMin, lookEveryMs, Pace, patienceMs, wholeWithinMs } from "../../src/serve/limit/pace.ts";

/** The look at which a body is too slow, of at most `looksMax`; `moving` returns the bytes sent before each look. */
function tooSlowAt(pace: Pace, looksMax: number, moving: (look: number) => number): number | undefined {
  for (let look = 1; look <= looksMax; look++) {
    const bytes = moving(look);
    if (bytes > 0) pace.moved(bytes);
    if (pace.look()) return look;
  }
  return undefined;
}

const patience = patienceMs / lookEveryMs;
const perLook = (bytesPerSMin * lookEveryMs) / 1000;

describe("a body that others wait for", () => {
  test("may stall for 3 s", () => expect(tooSlowAt(new Pace(1_000_000), 1000, () => 0)).toBe(patience));

  test("may take as long as it likes at 512 KiB/s, evenly or in bursts", () => {
    expect(tooSlowAt(new Pace(1_000_000), 10_000, () => perLook)).toBeUndefined();
    const bursts = (look: number) => (look % 8 === 0 ? perLook * 8 : 0);
    expect(tooSlowAt(new Pace(1_000_000), 10_000, bursts)).toBeUndefined();
  });

  test("is too slow at half that rate, and later the closer it comes to it", () => {
    expect(tooSlowAt(new Pace(1_000_000), 1000, () => perLook / 2)).toBe(2 * patience - 1);
    expect(tooSlowAt(new Pace(1_000_000), 1000, () => perLook * 0.9)).toBeGreaterThan(9 * patience);
  });

  test("earns nothing by reading ahead", () => {
    const pace = new Pace(1_000_000);
    pace.moved(100 * 1024 * 1024);
    expect(tooSlowAt(pace, 1000, () => 0)).toBe(patience);
  });

  test("that stalled while nobody waited may stall again as soon as it moves", () => {
    const pace = new Pace(1_000_000);
    for (let look = 0; look < 10 * patience; look++) pace.look();
    pace.moved(perLook * 4);
    expect(tooSlowAt(pace, 1000, () => 0)).toBe(4);
  });

  test("that is large must move fast enough to be sent in 10 s", () => {
    const bytes = 64 * 1024 * 1024;
    const evenly = (bytes * lookEveryMs) / wholeWithinMs;
    expect(tooSlowAt(new Pace(bytes), 10_000, () => evenly)).toBeUndefined();
    expect(tooSlowAt(new Pace(bytes), 10_000, () => perLook)).toBeLessThan(2 * patience);
  });
});
