import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { signerOf } from "../../src/record/note.ts";
import { leafHash, Tree } from "../../src/record/tree.ts";
import { signTreeHead } from "../../src/record/tree-note.ts";
import { type StoredHead, type StoredLeaf, TreeWalk } from "../../src/record/tree-walk.ts";

const signer = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(7));
const other = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(8));

type Stored = { readonly leaves: readonly StoredLeaf[]; readonly heads: readonly StoredHead[] };

/** A tree as a notary stores it, with heads of some sizes and of the last one. */
function stored(texts: readonly string[], sizes: ReadonlySet<number>, by = signer): Stored {
  const tree = new Tree();
  const heads: StoredHead[] = [];
  const leaves = texts.map((text, leaf) => {
    const hashes = Buffer.concat(tree.append(leafHash(text)));
    const { size, root } = tree;
    if (sizes.has(size) || size === texts.length) {
      heads.push({ size, root, note: signTreeHead({ size, root, acceptedAt: 0 }, by) });
    }
    return { leaf, hashes };
  });
  return { leaves, heads };
}

function walked({ leaves, heads }: Stored) {
  const walk = new TreeWalk([signer]);
  const left = [...heads];
  for (const leaf of leaves) {
    while ((left[0]?.size ?? Number.POSITIVE_INFINITY) <= leaf.leaf) walk.compare(left.shift() as StoredHead);
    walk.pass(leaf);
  }
  for (const head of left) walk.compare(head);
  return walk.end();
}

const flipped = (bytes: Buffer, at: number) => {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
  return copy;
};

const anyTree = fc.array(fc.string(), { minLength: 1, maxLength: 40 }).chain((texts) =>
  fc.record({
    texts: fc.constant(texts.map((text, at) => `${at} ${text}`)),
    sizes: fc.array(fc.integer({ min: 1, max: texts.length })).map((sizes) => new Set(sizes)),
    at: fc.nat({ max: texts.length - 1 }),
    pick: fc.nat(),
  }),
);

/** Every way to change what is stored. */
function* changes(
  { leaves, heads }: Stored,
  at: number,
  pick: number,
  texts: readonly string[],
): Generator<[string, Stored]> {
  const { leaf, hashes } = leaves[at] as StoredLeaf;
  const head = heads[pick % heads.length] as StoredHead;
  const put = (hashes: Buffer) => ({ heads, leaves: leaves.with(at, { leaf, hashes }) });
  const putHead = (change: Partial<StoredHead>) => {
    return { leaves, heads: heads.with(heads.indexOf(head), { ...head, ...change }) };
  };
  yield ["a bit of a hash", put(flipped(hashes, pick % hashes.length))];
  yield ["a hash less", put(hashes.subarray(32))];
  yield ["a part of a hash", put(hashes.subarray(0, -1))];
  yield ["a hash more", put(Buffer.concat([hashes, Buffer.alloc(32)]))];
  yield ["a leaf less", { heads, leaves: leaves.toSpliced(at, 1) }];
  yield ["the last leaf less", { heads, leaves: leaves.slice(0, -1) }];
  yield ["no leaf", { heads, leaves: [] }];
  yield ["a leaf more", { heads, leaves: [...leaves, { leaf: leaves.length, hashes: Buffer.alloc(32) }] }];
  yield ["the last head less", { leaves, heads: heads.slice(0, -1) }];
  yield ["a head with another root", putHead({ root: flipped(head.root, pick % 32) })];
  yield ["a head of another size", putHead({ note: (heads[0] as StoredHead).note.replace(/\n\d+\n/, "\n999\n") })];
  yield ["a head by somebody else", putHead({ note: signTreeHead({ ...head, acceptedAt: 0 }, other) })];
  const split = stored(texts.with(at, "another text"), new Set([head.size]));
  const splitHead = split.heads.find(({ size }) => size === head.size) as StoredHead;
  if (at < head.size) yield ["the head of a split view", putHead(splitHead)];
  if (at > 0) {
    const before = leaves[at - 1] as StoredLeaf;
    const swapped = [
      { leaf: before.leaf, hashes: Buffer.concat([hashes.subarray(0, 32), before.hashes.subarray(32)]) },
      { leaf, hashes: Buffer.concat([before.hashes.subarray(0, 32), hashes.subarray(32)]) },
    ];
    yield ["two leaves in another order", { heads, leaves: leaves.toSpliced(at - 1, 2, ...swapped) }];
  }
}

describe("the walk through a stored tree", () => {
  test("finds nothing in what a notary stored, and something in everything else", () => {
    fc.assert(
      fc.property(anyTree, ({ texts, sizes, at, pick }) => {
        const whole = stored(texts, sizes);
        const { leaves, heads } = whole;
        expect(walked(whole)).toEqual({ leaves: leaves.length, heads: heads.length, flaws: [], moreFlaws: 0 });
        for (const [what, changed] of changes(whole, at, pick, texts)) {
          expect({ what, isFound: walked(changed).flaws.length > 0 }).toEqual({ what, isFound: true });
        }
      }),
    );
  });

  const seven = stored(["a", "b", "c", "d", "e", "f", "g"], new Set([3, 5]));
  const without = (...numbers: readonly number[]) => {
    return { ...seven, leaves: seven.leaves.filter(({ leaf }) => !numbers.includes(leaf)) };
  };
  const zeroed = (at: number) => ({
    ...seven,
    leaves: seven.leaves.map(({ leaf, hashes }) => ({
      leaf,
      hashes: leaf === at ? Buffer.alloc(hashes.length) : hashes,
    })),
  });

  test.each([
    [
      "an odd leaf",
      zeroed(3),
      [
        "The tree breaks at leaves 2 to 3.",
        "The tree breaks at leaves 0 to 3.",
        "The head of 5 leaves is of another tree.",
        "The head of 7 leaves is of another tree.",
      ],
    ],
    ["an even leaf", zeroed(4), ["The head of 5 leaves is of another tree.", "The tree breaks at leaves 4 to 5."]],
    ["two leaves", without(1, 2), ["Leaves 1 to 2 are missing."]],
    ["the end", without(5, 6), ["The newest head is of 7 leaves, and the tree ends after 5."]],
    ["the newest head", { ...seven, heads: seven.heads.slice(0, 2) }, ["Leaves 5 to 6 are in no signed head."]],
    [
      "a head",
      { ...seven, heads: seven.heads.with(1, { ...(seven.heads[1] as StoredHead), note: "x" }) },
      ["The head of 5 leaves is not signed by the given key."],
    ],
    ["nothing", { leaves: [], heads: [] }, []],
  ])("says where it breaks, a line each: %s", (_, tree, flaws) => {
    expect(walked(tree as Stored).flaws.map(({ sentence }) => sentence)).toEqual(flaws as string[]);
  });

  test("is not held up by a leaf with an absurd number", () => {
    const leaves = [...seven.leaves, { leaf: 2 ** 52, hashes: Buffer.alloc(32) }];
    expect(walked({ ...seven, leaves }).flaws[0]?.sentence).toStartWith("Leaves 7 to ");
  });
});
