import { describe, expect, test } from "bun:test";
import { leafHash, Tree, verifyConsistency, verifyInclusion } from "../../src/record/tree.ts";
import vectors from "../vectors/merkle-tree.json" with { type: "json" };

const hex = (text: string) => Buffer.from(text, "hex");
const { roots, inclusion, consistency } = vectors.groups;

describe("the tree, by the published vectors,", () => {
  test("has the roots of Certificate Transparency's test tree", () => {
    const tree = new Tree();
    expect(tree.root.toString("hex")).toBe(roots.empty);
    for (const { leaf, root } of roots.tests) {
      tree.append(leafHash(hex(leaf)));
      expect(tree.root.toString("hex")).toBe(root);
    }
  });

  test("accepts exactly the valid proofs of inclusion", () => {
    for (const { comment, index, size, leaf, root, proof, valid } of inclusion.tests) {
      const tree = { size: Number(size), root: hex(root) };
      const found = verifyInclusion(hex(leaf), Number(index), tree, proof.map(hex));
      expect({ comment, valid: found }).toEqual({ comment, valid });
    }
    expect(inclusion.tests.filter(({ valid }) => valid)).toHaveLength(6);
  });

  test("accepts exactly the valid proofs of consistency", () => {
    for (const { comment, size1, size2, root1, root2, proof, valid } of consistency.tests) {
      const head = (size: string | number, root: string) => ({ size: Number(size), root: hex(root) });
      const [earlier, later] = [head(size1, root1), head(size2, root2)];
      expect({ comment, valid: verifyConsistency(earlier, later, proof.map(hex)) }).toEqual({ comment, valid });
    }
    expect(consistency.tests.filter(({ valid }) => valid)).toHaveLength(6);
  });
});
