import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  completingLeaf,
  leafHash,
  type Node,
  peaksOf,
  proveConsistency,
  proveInclusion,
  Tree,
  verifyConsistency,
  verifyInclusion,
} from "../../src/record/tree.ts";

/* RFC 6962, section 2.1, written a second time as the RFC spells it: over lists of leaves, without stored nodes. */

const sha256 = (...parts: readonly Uint8Array[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const largestPowerBelow = (n: number) => {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
};

function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Buffer.of(0), leaves[0] as Buffer);
  const k = largestPowerBelow(leaves.length);
  return sha256(Buffer.of(1), rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)));
}

function pathOf(m: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 1) return [];
  const k = largestPowerBelow(leaves.length);
  const [left, right] = [leaves.slice(0, k), leaves.slice(k)];
  return m < k ? [...pathOf(m, left), rootOf(right)] : [...pathOf(m - k, right), rootOf(left)];
}

function subproofOf(m: number, leaves: readonly Buffer[], whole: boolean): Buffer[] {
  if (m === leaves.length) return whole ? [] : [rootOf(leaves)];
  const k = largestPowerBelow(leaves.length);
  const [left, right] = [leaves.slice(0, k), leaves.slice(k)];
  return m <= k ? [...subproofOf(m, left, whole), rootOf(right)] : [...subproofOf(m - k, right, false), rootOf(left)];
}

/** A tree as the notary keeps it: nodes by the leaf that they are stored with. */
function grown(leaves: readonly Buffer[]) {
  const tree = new Tree();
  const rows = leaves.map((leaf) => tree.append(leafHash(leaf)));
  const read = async (nodes: readonly Node[]) =>
    nodes.map((node) => rows[completingLeaf(node)]?.[node.level] as Buffer);
  return { tree, read, rows };
}

const leaves = fc.array(fc.uint8Array({ maxLength: 12 }), { minLength: 1, maxLength: 70 });
const grownTree = leaves.chain((some) =>
  fc.record({
    leaves: fc.constant(some.map((leaf) => Buffer.from(leaf))),
    index: fc.nat({ max: some.length - 1 }),
    earlier: fc.integer({ min: 1, max: some.length }),
    bit: fc.nat({ max: 255 }),
    other: fc.nat(),
  }),
);
const flipped = (hash: Buffer, bit: number) => {
  const copy = Buffer.from(hash);
  copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  return copy;
};
/** Every way in which a list of hashes is changed by one bit, cut, extended or put into another order. */
function* wrong(proof: readonly Buffer[], bit: number): Generator<Buffer[]> {
  for (const [at, hash] of proof.entries()) {
    yield proof.with(at, flipped(hash, bit));
    yield proof.toSpliced(at, 1);
    yield proof.toSpliced(at, 0, hash);
    yield proof.with(at, hash.subarray(1));
    if (at > 0 && !proof[at - 1]?.equals(hash)) yield proof.toSpliced(at - 1, 2, hash, proof[at - 1] as Buffer);
  }
  yield [...proof, Buffer.alloc(32)];
  yield [Buffer.alloc(32), ...proof];
}

describe("a tree that grew leaf by leaf", () => {
  test("has the root and the proofs of RFC 6962, from its stored nodes", async () => {
    await fc.assert(
      fc.asyncProperty(grownTree, async ({ leaves, index, earlier }) => {
        const { tree, read, rows } = grown(leaves);
        expect(tree.root).toEqual(rootOf(leaves));
        expect(await proveInclusion(index, leaves.length, read)).toEqual(pathOf(index, leaves));
        expect(await proveConsistency(earlier, leaves.length, read)).toEqual(subproofOf(earlier, leaves, true));
        // It goes on from its peaks as if it had never been put away.
        const again = new Tree(earlier, await read(peaksOf(earlier)));
        expect(again.root).toEqual(rootOf(leaves.slice(0, earlier)));
        const rest = leaves.slice(earlier).map((leaf) => again.append(leafHash(leaf)));
        expect(rest).toEqual(rows.slice(earlier));
        expect({ size: again.size, root: again.root }).toEqual({ size: tree.size, root: tree.root });
      }),
    );
  });

  test("is in every later tree, and no other leaf, place, size, root or proof is", async () => {
    await fc.assert(
      fc.asyncProperty(grownTree, async ({ leaves, index, bit, other }) => {
        const { tree, read } = grown(leaves);
        const head = { size: tree.size, root: tree.root };
        const leaf = leafHash(leaves[index] as Buffer);
        const proof = await proveInclusion(index, tree.size, read);
        expect(verifyInclusion(leaf, index, head, proof)).toBe(true);
        expect(verifyInclusion(flipped(leaf, bit), index, head, proof)).toBe(false);
        expect(verifyInclusion(leaf, index, { ...head, root: flipped(head.root, bit) }, proof)).toBe(false);
        for (const bad of wrong(proof, bit)) expect(verifyInclusion(leaf, index, head, bad)).toBe(false);
        const elsewhere = other % leaves.length;
        const isSame = leaves[elsewhere]?.equals(leaves[index] as Buffer);
        if (elsewhere !== index && !isSame) expect(verifyInclusion(leaf, elsewhere, head, proof)).toBe(false);
        for (const size of [0, index, -1, Number.NaN, 2 ** 53, head.size * 2, head.size ** 3 + 1])
          if (size !== head.size && size !== 1)
            expect(verifyInclusion(leaf, index, { ...head, size }, proof)).toBe(false);
      }),
    );
  });

  test("begins with each earlier tree, and with no changed, reordered, cut or other one", async () => {
    await fc.assert(
      fc.asyncProperty(grownTree, async ({ leaves, earlier, bit, other }) => {
        const { tree, read } = grown(leaves);
        const before = { size: earlier, root: rootOf(leaves.slice(0, earlier)) };
        const after = { size: tree.size, root: tree.root };
        const proof = await proveConsistency(earlier, tree.size, read);
        expect(verifyConsistency(before, after, proof)).toBe(true);
        for (const bad of wrong(proof, bit)) expect(verifyConsistency(before, after, bad)).toBe(false);
        expect(verifyConsistency({ ...before, root: flipped(before.root, bit) }, after, proof)).toBe(false);
        expect(verifyConsistency(before, { ...after, root: flipped(after.root, bit) }, proof)).toBe(false);
        for (const size of [0, -1, 0.5, Number.NaN, after.size + 1])
          expect(verifyConsistency({ ...before, size }, after, proof)).toBe(false);
        // Two notaries that showed different leaves to different people.
        const at = other % earlier;
        const split = { size: earlier, root: rootOf(leaves.slice(0, earlier).with(at, Buffer.from("another leaf"))) };
        expect(verifyConsistency(split, after, proof)).toBe(false);
      }),
    );
  });

  test("has exact levels up to the largest sizes", async () => {
    for (const size of [2 ** 49 - 1, 2 ** 53 - 1, 2 ** 52 + 1]) {
      const covered = peaksOf(size).reduce((sum, { level }) => sum + 2 ** level, 0);
      expect(covered).toBe(size);
      const hash = leafHash("");
      const proof = await proveInclusion(size - 1, size, async (nodes) => nodes.map(() => hash));
      expect(proof.length).toBe(size.toString(2).replaceAll("0", "").length - 1 + (size % 2 === 0 ? 1 : 0));
    }
  });
});
