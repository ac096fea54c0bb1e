import { expect, test } from "bun:test";
import {
  countLeaves,
  drawLeaves,
  hasLeaf,
  leavesOutside,
  openLeaves,
  sealLeaves,
  unionOf,
} from "../../src/record/leaf-set.ts";
import { auditKey } from "../support/journal.ts";

test("is opened with its mac alone", () => {
  const set = unionOf([
    [[7, 9]],
    [
      [0, 3],
      [4, 4],
    ],
    [[8, 12]],
  ]);
  expect(set).toEqual([
    [0, 4],
    [7, 12],
  ]);
  expect([0, 4, 5, 6, 7, 12, 13].filter((leaf) => hasLeaf(set, leaf))).toEqual([0, 4, 7, 12]);
  const text = sealLeaves(auditKey, set);
  expect(openLeaves(auditKey, text)).toEqual(set);
  expect(openLeaves(auditKey, sealLeaves(auditKey, []))).toEqual([]);
  const mac = text.split(" ")[2];
  for (const other of [`leaves 0-4,7-13 ${mac}`, `leaves 0-4 ${mac}`, `leaves  ${mac}`, text.slice(0, -1), `${text} `])
    expect(openLeaves(auditKey, other)).toBeUndefined();
});

test("leaves what it has not, up to a number", () => {
  const size = 8;
  for (let bits = 0; bits < 2 ** size; bits++) {
    const set = unionOf([[...Array(size).keys()].filter((leaf) => bits & (1 << leaf)).map((leaf) => [leaf, leaf])]);
    for (const to of [0, 3, size, size + 2]) {
      const outside = leavesOutside(set, to);
      const expected = [...Array(to).keys()].filter((leaf) => !hasLeaf(set, leaf));
      expect([...Array(12).keys()].filter((leaf) => hasLeaf(outside, leaf))).toEqual(expected);
      expect(countLeaves(outside)).toBe(expected.length);
    }
  }
});

test("is drawn from: as many as asked for, each once, all if there are no more, and none is left out for good", () => {
  const set = unionOf([[[3, 5]], [[9, 9]], [[20, 25]]]);
  const all = [3, 4, 5, 9, 20, 21, 22, 23, 24, 25];
  expect(drawLeaves(set, 10).sort((a, b) => a - b)).toEqual(all);
  expect(drawLeaves(set, 1000)).toHaveLength(10);
  expect(drawLeaves([], 5)).toEqual([]);
  const [drawn, first] = [new Map<number, number>(), new Set<number>()];
  for (let time = 0; time < 3000; time++) {
    const some = drawLeaves(set, 4);
    expect(new Set(some).size).toBe(4);
    first.add(some[0] as number);
    for (const leaf of some) drawn.set(leaf, (drawn.get(leaf) ?? 0) + 1);
  }
  expect([...drawn.keys()].sort((a, b) => a - b)).toEqual(all);
  expect(first.size).toBe(10);
  // 1,200 of each are to be expected; 400 more or less are fifteen standard deviations.
  for (const times of drawn.values()) expect(Math.abs(times - 1200)).toBeLessThan(400);
});
