import { expect, test } from "bun:test";
import { parseWait } from "../../src/serve/gates/prefer.ts";

test.each<[header: string | null, seconds: number | undefined]>([
  ["wait=55", 55],
  ["Wait = 1", 1],
  ['wait="60"', 60],
  ["wait=5;x=1; y", 5],
  ["respond-async, wait=7", 7],
  ['foo="a, wait=3", wait=9', 9],
  ["wait=4, wait=9", 4], // the first counts
  ["wait=x, wait=9", undefined],
  ["wait=0", undefined],
  ["wait=61", undefined],
  ["wait=1.5", undefined],
  ["wait=-1", undefined],
  ["wait=5 6", undefined],
  ["wait", undefined],
  ["waiting=5", undefined],
  ["x-wait=5", undefined],
  ['foo="unclosed, wait=5', undefined],
  ["", undefined],
  [null, undefined],
])("the preference of %s is %p", (header, seconds) => {
  expect(parseWait(header)).toBe(seconds);
});
