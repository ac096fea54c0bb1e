import { describe, expect, test } from "bun:test";
import { isWellFormedKey, mintKey } from "../../src/access/api-key.ts";

describe("mintKey", () => {
  test("makes well-formed keys that never repeat", () => {
    const keys = new Set(Array.from({ length: 1000 }, () => mintKey()));
    expect(keys.size).toBe(1000);
    for (const key of keys) expect(isWellFormedKey(key)).toBe(true);
  });
});

describe("isWellFormedKey", () => {
  test("detects every wrong character and every swap of two neighbours", () => {
    const key = mintKey();
    const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (let at = 3; at < key.length; at++) {
      for (const digit of digits) {
        const changed = key.slice(0, at) + digit + key.slice(at + 1);
        expect(isWellFormedKey(changed)).toBe(changed === key);
      }
      const swapped = key.slice(0, at) + key.slice(at + 1, at + 2) + key.slice(at, at + 1) + key.slice(at + 2);
      expect(isWellFormedKey(swapped)).toBe(swapped === key);
    }
  });
});
