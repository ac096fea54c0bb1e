import { describe, expect, test } from "bun:test";
import { bytesPerSMin, lookEveryMs, Pace, patienceMs, wholeWithinMs } from "../../src/limit/pace.ts";

/** How many looks until a body is behind, of at most `looksMax`; `moving` says what moves before each. */
function looksUntilBehind(pace: Pace, looksMax: number, moving: (look: number) => number): number | undefined {
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
  test("may stand still for 3 s", () => {
    expect(looksUntilBehind(new Pace(1_000_000), 1000, () => 0)).toBe(patience);
  });

  test("may go on for ever at 512 KiB a second, evenly or in jerks", () => {
    expect(looksUntilBehind(new Pace(1_000_000), 10_000, () => perLook)).toBeUndefined();
    const jerks = (look: number) => (look % 8 === 0 ? perLook * 8 : 0);
    expect(looksUntilBehind(new Pace(1_000_000), 10_000, jerks)).toBeUndefined();
  });

  test("falls behind at half of that, and later the nearer it comes", () => {
    expect(looksUntilBehind(new Pace(1_000_000), 1000, () => perLook / 2)).toBe(2 * patience - 1);
    expect(looksUntilBehind(new Pace(1_000_000), 1000, () => perLook * 0.9)).toBeGreaterThan(9 * patience);
  });

  test("earns nothing by what moves ahead of its time", () => {
    const pace = new Pace(1_000_000);
    pace.moved(100 * 1024 * 1024);
    expect(looksUntilBehind(pace, 1000, () => 0)).toBe(patience);
  });

  test("that nobody waited for while it stood still has its time again as soon as it moves", () => {
    const pace = new Pace(1_000_000);
    for (let look = 0; look < 10 * patience; look++) pace.look();
    pace.moved(perLook * 4);
    expect(looksUntilBehind(pace, 1000, () => 0)).toBe(4);
  });

  test("of many bytes must move so fast that all of it leaves in 10 s", () => {
    const bytes = 64 * 1024 * 1024;
    const evenly = (bytes * lookEveryMs) / wholeWithinMs;
    expect(looksUntilBehind(new Pace(bytes), 10_000, () => evenly)).toBeUndefined();
    expect(looksUntilBehind(new Pace(bytes), 10_000, () => perLook)).toBeLessThan(2 * patience);
  });
});
