import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { parse } from "yaml";
import { findKeys } from "../../src/people/keys/found-keys.ts";
import { digestKey, isWellFormedKey, mintKey } from "../../src/serve/access/api-key.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Random bytes, then enough zeros to complete a key. */
const randomness = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.concat([bytes, Buffer.alloc(43)]));
const key = randomness.map((source) => mintKey(reader(source)));

test("a key consists of the random bytes below 248, each modulo 62, in order", () => {
  fc.assert(
    fc.property(randomness, (source) => {
      const expected = [...source].filter((byte) => byte < 248).map((byte) => digits.charAt(byte % 62));
      expect(mintKey(reader(source)).slice(0, 46)).toBe(`kh_${expected.slice(0, 43).join("")}`);
    }),
  );
});

test("a new key is well formed, and is not if one character is changed, moved, removed or added", () => {
  const at = fc.nat({ max: 51 });
  const character = fc.oneof(fc.constantFrom(...digits), fc.string({ unit: "binary", minLength: 1, maxLength: 1 }));
  fc.assert(
    fc.property(key, at, character, (key, at, character) => {
      expect(isWellFormedKey(key)).toBe(true);
      const changed = key.slice(0, at) + character + key.slice(at + 1);
      expect(isWellFormedKey(changed)).toBe(changed === key);
      expect(isWellFormedKey(key.slice(0, at) + key.slice(at + 1))).toBe(false);
      expect(isWellFormedKey(key.slice(0, at) + character + key.slice(at))).toBe(false);
      const swapped = key.slice(0, at) + key.slice(at + 1, at + 2) + key.slice(at, at + 1) + key.slice(at + 2);
      expect(isWellFormedKey(swapped)).toBe(swapped === key);
    }),
    { numRuns: 2000 },
  );
});

test("no other text is well formed, and none makes the check throw", () => {
  const body = fc.array(fc.constantFrom(...digits), { minLength: 49, maxLength: 49 }).map((of) => `kh_${of.join("")}`);
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), body), (text) => {
      // A random body would pass once in 62⁶ tries.
      expect(isWellFormedKey(text)).toBe(false);
    }),
    { numRuns: 2000 },
  );
});

test("every key in a text is found, wherever it stands and however the text comes, and nothing else", async () => {
  const noise = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", "kh_", "kh", "k", "-kh_kh_", "\n"));
  const wrong = key.map((text) => `${text.slice(0, 51)}${text.at(51) === "0" ? "1" : "0"}`);
  const parts = fc.array(fc.oneof(noise, key, wrong), { maxLength: 12 });
  const cuts = fc.array(fc.nat({ max: 120 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(parts, cuts, async (parts, cuts) => {
      const bytes = Buffer.from(parts.join(""));
      async function* chunks() {
        let at = 0;
        for (const cut of cuts) {
          yield bytes.subarray(at, at + cut);
          at += cut;
        }
        yield bytes.subarray(at);
      }
      const text = bytes.toString("latin1");
      const expected = new Set<string>();
      for (let at = 0; at < text.length; at++) {
        const candidate = text.slice(at, at + 52);
        if (isWellFormedKey(candidate)) expected.add(candidate);
      }
      expect(new Set(await findKeys(chunks()))).toEqual(expected);
      for (const part of parts) if (isWellFormedKey(part)) expect(expected.has(part)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

test("the rules for scanners find every key in a line, and it alone", () => {
  const docs = join(import.meta.dir, "../../docs");
  const { rules } = Bun.TOML.parse(readFileSync(join(docs, "deploy/gitleaks.toml"), "utf8")) as {
    readonly rules: readonly [{ readonly regex: string; readonly keywords: readonly string[] }];
  };
  const { detectors } = parse(readFileSync(join(docs, "deploy/trufflehog.yaml"), "utf8")) as {
    readonly detectors: readonly [{ readonly regex: { readonly key: string }; readonly keywords: readonly string[] }];
  };
  const patterns = new Set([rules[0].regex, detectors[0].regex.key]);
  expect([patterns.size, rules[0].keywords, detectors[0].keywords]).toEqual([1, ["kh_"], ["kh_"]]);
  const [pattern = ""] = patterns;
  expect(readFileSync(join(docs, "leaked-key.md"), "utf8")).toContain(`\`${pattern}\``);
  fc.assert(
    fc.property(key, (key) => expect(`KEY="${key}"; # kh_ and more`.match(new RegExp(pattern, "g"))).toEqual([key])),
  );
});

test("a digest is the HMAC-SHA-256 that node:crypto computes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), fc.oneof(key, fc.string()), (pepper, text) => {
      expect(digestKey(pepper, text).equals(createHmac("sha256", pepper).update(text).digest())).toBe(true);
    }),
  );
});

function reader(source: Buffer): (length: number) => Uint8Array {
  let at = 0;
  return (length) => {
    at += length;
    return source.subarray(at - length, at);
  };
}

test.each(["utf8", "utf16le", "utf16be", "utf32le"])("a key in %s is found", async (encoding) => {
  const key = mintKey();
  const text = `export KEY="${key}";\r\n`;
  const wide = Buffer.from(`\uFEFF${text}`, "utf16le");
  const utf32 = Buffer.from(Uint32Array.from([...text], (one) => one.codePointAt(0) ?? 0).buffer);
  const all: Record<string, Buffer> = { utf16le: wide, utf16be: Buffer.from(wide).swap16(), utf32le: utf32 };
  const bytes = all[encoding] ?? Buffer.from(text);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
  }
  expect(await findKeys(chunks())).toEqual([key]);
});

test("at most 10,000 keys are found in a text", async () => {
  const keys = Array.from({ length: 10_001 }, () => mintKey());
  async function* chunks(count: number) {
    for (const key of keys.slice(0, count)) yield Buffer.from(`${key}\n`);
  }
  expect(await findKeys(chunks(10_000))).toHaveLength(10_000);
  await expect(findKeys(chunks(10_001))).rejects.toThrow("has more than 10000 keys");
});
