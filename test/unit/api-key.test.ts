import { describe, expect, test } from "bun:test";
import { crc32 } from "node:zlib";
import { digestKey, isWellFormedKey, mintKey, sameDigest } from "../../src/access/api-key.ts";

describe("mintKey", () => {
  test("makes well-formed keys, no two the same", () => {
    const keys = new Set(Array.from({ length: 1000 }, () => mintKey()));
    expect(keys.size).toBe(1000);
    for (const key of keys) expect(isWellFormedKey(key)).toBe(true);
  });

  test("gives every digit of base62 the same share of the 256 bytes, and throws the rest away", () => {
    const shares = new Map<string, number>();
    let discarded = 0;
    for (let byte = 0; byte < 256; byte++) {
      let asked = 0;
      const key = mintKey((length) => {
        asked++;
        return Buffer.alloc(length, asked === 1 ? byte : 0);
      });
      if (asked === 1) shares.set(key.slice(3, 4), (shares.get(key.slice(3, 4)) ?? 0) + 1);
      else discarded++;
    }
    expect(shares.size).toBe(62);
    expect(new Set(shares.values())).toEqual(new Set([4]));
    expect(discarded).toBe(8);
  });

  test("uses every random byte it asks for once and asks for no more than it lacks", () => {
    const asked: number[] = [];
    mintKey((length) => {
      asked.push(length);
      return Buffer.alloc(length, 7).fill(255, 0, asked.length === 1 ? 3 : 0);
    });
    expect(asked).toEqual([43, 3]);
  });
});

describe("isWellFormedKey", () => {
  test("finds every single wrong character and every exchange of neighbours", () => {
    const key = mintKey();
    const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (let at = 3; at < key.length; at++) {
      for (const digit of digits) {
        const changed = key.slice(0, at) + digit + key.slice(at + 1);
        expect(isWellFormedKey(changed)).toBe(changed === key);
      }
      const exchanged = key.slice(0, at) + key.slice(at + 1, at + 2) + key.slice(at, at + 1) + key.slice(at + 2);
      expect(isWellFormedKey(exchanged)).toBe(exchanged === key);
    }
  });

  test("its CRC-32 is the common one", () => {
    expect(crc32("123456789")).toBe(0xcbf43926);
  });
});

describe("digests", () => {
  const pepper = Buffer.alloc(32, 3);
  const key = mintKey();

  test("have 32 bytes and depend on every character of the key and on the pepper", () => {
    const digest = digestKey(pepper, key);
    expect(digest.length).toBe(32);
    expect(digestKey(pepper, key)).toEqual(digest);
    expect(digestKey(Buffer.alloc(32, 4), key)).not.toEqual(digest);
    expect(digestKey(pepper, `${key.slice(0, -1)}!`)).not.toEqual(digest);
  });

  test("follow the pepper's bytes when these change", () => {
    const changing = Buffer.alloc(32, 3);
    const before = digestKey(changing, key);
    changing[31] = 4;
    expect(digestKey(changing, key)).not.toEqual(before);
  });

  test("are the same only when every byte is", () => {
    const digest = digestKey(pepper, key);
    expect(sameDigest(digest, Uint8Array.from(digest))).toBe(true);
    for (let at = 0; at < digest.length; at++) {
      const other = Buffer.from(digest);
      other.writeUInt8(other.readUInt8(at) ^ 1, at);
      expect(sameDigest(digest, other)).toBe(false);
    }
    expect(sameDigest(digest, digest.subarray(1))).toBe(false);
    expect(sameDigest(digest, Buffer.of())).toBe(false);
  });
});
