import { expect, test } from "bun:test";
import { hasLeaf, openLeaves, sealLeaves, unionOf } from "../../src/record/leaf-set.ts";
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
