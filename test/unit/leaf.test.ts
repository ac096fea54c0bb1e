import { describe, expect, test } from "bun:test";
import { createHash, hkdfSync } from "node:crypto";
import type { AuditEntry } from "../../src/record/entry.ts";
import { entryLeaf, entrySalt, Leaf, leafOf } from "../../src/record/leaf.ts";
import { encodeEntries, type Segment } from "../../src/record/segment.ts";
import { leafHash } from "../../src/record/tree.ts";
import { installationId, saltKeyOf } from "../../src/seal/keyring.ts";
import vectors from "../vectors/audit-leaf-v1.json" with { type: "json" };

const saltKey = Buffer.from(vectors.saltKey, "hex");
const segmentOf = ({ lane, firstSeq, at, entries }: (typeof vectors.segments)[number]): Segment => ({
  ...{ lane, firstSeq, lastSeq: firstSeq + entries.length - 1, at, mac: Buffer.alloc(0) },
  ...encodeEntries(entries as unknown as AuditEntry[]),
});
const [, three] = vectors.segments;
if (three === undefined) throw new Error("the vectors have fewer segments");

describe("the leaf of a segment, version 1,", () => {
  test.each(vectors.segments)("is that of another program: $comment", (vector) => {
    const { lane, firstSeq, entries, texts, salts, leaf, hash } = vector;
    for (const [index, entry] of (entries as unknown as AuditEntry[]).entries()) {
      const salt = entrySalt(saltKey, lane, firstSeq + index);
      expect(salt.toString("hex")).toBe(salts[index] as string);
      expect(
        entryLeaf(salt, { ...entry, at: vector.at })
          .subarray(32)
          .toString("utf8"),
      ).toBe(texts[index] as string);
    }
    expect(leafOf(saltKey, [segmentOf(vector)])?.text).toBe(leaf);
    expect(leafHash(leaf).toString("hex")).toBe(hash);
  });

  test("is another one for any other field of the segment, entry, order or salt key", () => {
    const segment = segmentOf(three);
    const entries = three.entries as unknown as AuditEntry[];
    const others: Segment[] = [
      { ...segment, lane: "another" },
      { ...segment, firstSeq: segment.firstSeq + 1, lastSeq: segment.lastSeq + 1 },
      { ...segment, at: segment.at + 1 },
      { ...segment, ...encodeEntries(entries.toReversed()) },
      ...entries.map((entry, at) => ({ ...segment, ...encodeEntries(entries.with(at, { ...entry, project: "x" })) })),
    ];
    const leaves = others.map((other) => leafOf(saltKey, [other])?.text);
    expect(leaves).not.toContain(undefined);
    const known = [three.leaf, leafOf(Buffer.alloc(32), [segment])?.text, ...leaves];
    expect(new Set(known).size).toBe(known.length);
  });

  test("takes what comes next in its lane and month, and nothing else", () => {
    const segment = segmentOf(three);
    const leaf = new Leaf(saltKey, segment);
    leaf.add(segment);
    const next = { ...segment, firstSeq: segment.lastSeq + 1, lastSeq: segment.lastSeq + 1 };
    expect(leaf.takes(next)).toBe(true);
    for (const other of [{ lane: "another" }, { firstSeq: next.firstSeq + 1 }, { at: next.at + 40 * 86_400_000 }])
      expect(leaf.takes({ ...next, ...other })).toBe(false);
    const last = segment.firstSeq + 4095;
    expect([last, last + 1].map((lastSeq) => leaf.takes({ ...next, lastSeq }))).toEqual([true, false]);
  });

  test("does not exist for a segment that Keyhole did not write", () => {
    const segment = segmentOf(three);
    for (const damaged of [{ lastSeq: segment.lastSeq + 1 }, { entries: "{}" }, { texts: "[]" }])
      expect(leafOf(saltKey, [{ ...segment, ...damaged }])?.text).toBeUndefined();
  });

  test("has a salt for each entry, under a key that nobody without the audit key has", () => {
    const salts = [1, 2, 3].flatMap((seq) => ["a", "b"].map((lane) => entrySalt(saltKey, lane, seq).toString("hex")));
    expect(new Set(salts).size).toBe(salts.length);
    // A guess of the right entry without its salt is not the leaf.
    const [entry] = three.entries as unknown as AuditEntry[];
    const salt = entrySalt(saltKey, three.lane, three.firstSeq);
    const guessed = createHash("sha256")
      .update(Buffer.of(0))
      .update(three.texts[0] as string)
      .digest();
    expect(leafHash(entryLeaf(salt, { ...(entry as AuditEntry), at: three.at })).equals(guessed)).toBe(false);
    const derived = (label: string) =>
      Buffer.from(hkdfSync("sha256", Buffer.alloc(32, 1), "", Buffer.from(`\0\0\0${label}`), 32));
    expect(saltKeyOf(Buffer.alloc(32, 1))).toEqual(derived("\x12keyhole 1 salt key"));
    expect(installationId(Buffer.alloc(32, 1))).toBe(derived("\x19keyhole 1 installation id").toString("hex", 0, 8));
  });
});
