import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { digestKey, isWellFormedKey, mintKey, sameDigest } from "../../src/access/api-key.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Random bytes, and enough after them that a key comes of any. */
const randomness = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.concat([bytes, Buffer.alloc(43)]));
const key = randomness.map((source) => mintKey(reader(source)));

test("a key is the random bytes below 248, each modulo 62, in their order", () => {
  fc.assert(
    fc.property(randomness, (source) => {
      const expected = [...source].filter((byte) => byte < 248).map((byte) => digits.charAt(byte % 62));
      expect(mintKey(reader(source)).slice(0, 46)).toBe(`kh_${expected.slice(0, 43).join("")}`);
    }),
  );
});

test("a minted key is well formed, and no longer when a character is changed, moved, dropped or added", () => {
  const at = fc.nat({ max: 51 });
  const character = fc.oneof(fc.constantFrom(...digits), fc.string({ unit: "binary", minLength: 1, maxLength: 1 }));
  fc.assert(
    fc.property(key, at, character, (key, at, character) => {
      expect(isWellFormedKey(key)).toBe(true);
      const changed = key.slice(0, at) + character + key.slice(at + 1);
      expect(isWellFormedKey(changed)).toBe(changed === key);
      expect(isWellFormedKey(key.slice(0, at) + key.slice(at + 1))).toBe(false);
      expect(isWellFormedKey(key.slice(0, at) + character + key.slice(at))).toBe(false);
      const exchanged =
        key.slice(0, at) +
        key
          .slice(at, at + 2)
          .split("")
          .reverse()
          .join("") +
        key.slice(at + 2);
      expect(isWellFormedKey(exchanged)).toBe(exchanged === key);
    }),
    { numRuns: 2000 },
  );
});

test("no other text is well formed, and none is too odd to judge", () => {
  const body = fc.array(fc.constantFrom(...digits), { minLength: 49, maxLength: 49 }).map((of) => `kh_${of.join("")}`);
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), body), (text) => {
      // A random body would pass once in 62⁶ times.
      expect(isWellFormedKey(text)).toBe(false);
    }),
    { numRuns: 2000 },
  );
});

test("a digest is HMAC-SHA-256 of the text under the pepper, as another implementation has it", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.oneof(key, fc.string()), (pepper, text) => {
      expect(digestKey(pepper, text).equals(createHmac("sha256", pepper).update(text).digest())).toBe(true);
    }),
  );
});

test("two digests are the same exactly when their bytes are", () => {
  const digest = fc.uint8Array({ maxLength: 4, max: 2 });
  fc.assert(
    fc.property(digest, digest, (a, b) => {
      expect(sameDigest(a, b)).toBe(Buffer.from(a).equals(b));
    }),
    { numRuns: 1000 },
  );
});

function reader(source: Buffer): (length: number) => Uint8Array {
  let at = 0;
  return (length) => {
    at += length;
    return source.subarray(at - length, at);
  };
}
