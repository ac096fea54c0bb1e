/*
 * The Merkle tree of RFC 6962, section 2.1, over SHA-256. A leaf hashes as SHA-256(0x00 || leaf) and a node as
 * SHA-256(0x01 || left || right). A node is named by its level and its position there; leaves are level 0.
 *
 * Only full nodes are stored, those above 2^level leaves: they never change. Each is completed by one leaf and stored
 * with it, so leaf 7 has its own hash and the nodes above leaves 6 to 7, 4 to 7 and 0 to 7. Any hash that a proof needs
 * is made of a few of them.
 */

/** A full node. */
export type Node = { readonly level: number; readonly at: number };
/** Reads full nodes, in this order. */
export type ReadNodes = (nodes: readonly Node[]) => Promise<readonly Buffer[]>;
/** The leaves from the first number up to the second, which is left out. */
type Leaves = { readonly from: number; readonly to: number };

export function leafHash(leaf: string | Uint8Array): Buffer {
  return Bun.CryptoHasher.hash("sha256", Buffer.concat([leafPrefix, Buffer.from(leaf)])) as Buffer;
}

/** A tree by its size and the roots of the full subtrees that it consists of, the largest and leftmost first. */
export class Tree {
  #size: number;
  readonly #peaks: Buffer[];

  /** @param peaks - of a tree of that size: the nodes that {@link peaksOf} names; none for an empty tree */
  constructor(size = 0, peaks: readonly Buffer[] = []) {
    this.#size = size;
    this.#peaks = [...peaks];
  }

  get size(): number {
    return this.#size;
  }

  get root(): Buffer {
    return rootOver(this.#peaks);
  }

  /** Appends a leaf by its hash. @returns the nodes to store with it: itself, and those that it completes, by level */
  append(leaf: Buffer): Buffer[] {
    const nodes = [leaf];
    let node = leaf;
    for (let left = this.#size; left % 2 === 1; left = (left - 1) / 2) {
      node = nodeHash(this.#peaks.pop() as Buffer, node);
      nodes.push(node);
    }
    this.#peaks.push(node);
    this.#size += 1;
    return nodes;
  }
}

/** The full nodes that a tree of this size consists of. */
export function peaksOf(size: number): Node[] {
  return coverOf({ from: 0, to: size });
}

/** The leaf that completes a node, and is stored with it. */
export function completingLeaf({ level, at }: Node): number {
  return (at + 1) * 2 ** level - 1;
}

/** What leads from a leaf to the root of a tree: PATH of RFC 6962. */
export function proveInclusion(index: number, size: number, read: ReadNodes): Promise<Buffer[]> {
  return readAll(wayDown(index, size, isOneLeaf).beside, read);
}

/** Shows that a tree begins with an earlier one, which has leaves: PROOF of RFC 6962. */
export function proveConsistency(earlier: number, size: number, read: ReadNodes): Promise<Buffer[]> {
  const { end, beside } = wayDown(earlier - 1, size, endsWith(earlier));
  return readAll(isRoot(end) ? beside : [end, ...beside], read);
}

/** The size of a tree and the hash of all its leaves. */
export type TreeHead = { readonly size: number; readonly root: Buffer };

/** Whether the leaf with this hash and index is in the tree. */
export function verifyInclusion(leaf: Buffer, index: number, tree: TreeHead, proof: readonly Buffer[]): boolean {
  if (!isCount(tree.size) || !isCount(index) || index >= tree.size || ![leaf, ...proof].every(isHash)) return false;
  const { beside } = wayDown(index, tree.size, isOneLeaf);
  if (beside.length !== proof.length) return false;
  return beside.reduce((hash, { side }, at) => joinedAt(side, proof[at] as Buffer, hash), leaf).equals(tree.root);
}

/** Whether the tree begins with the earlier one. No proof shows it of an empty one. */
export function verifyConsistency(earlier: TreeHead, tree: TreeHead, proof: readonly Buffer[]): boolean {
  const { size } = earlier;
  if (!isCount(size) || !isCount(tree.size) || size === 0 || size > tree.size || !proof.every(isHash)) return false;
  const { end, beside } = wayDown(size - 1, tree.size, endsWith(size));
  const [first, ...rest] = isRoot(end) ? [earlier.root, ...proof] : proof;
  if (first === undefined || rest.length !== beside.length) return false;
  let [before, after] = [first, first];
  for (const [at, { side }] of beside.entries()) {
    const other = rest[at] as Buffer;
    if (side === "left") before = joinedAt(side, other, before);
    after = joinedAt(side, other, after);
  }
  return before.equals(earlier.root) && after.equals(tree.root);
}

/** Leaves that one node hashes; `side` is where they are of the way that goes past them. */
type Beside = Leaves & { readonly side: "left" | "right" };

/** The way from the root down to a leaf, to the first node that `isEnd`, and what it goes past, the lowest first. */
function wayDown(index: number, size: number, isEnd: (leaves: Leaves) => boolean) {
  const beside: Beside[] = [];
  let end: Leaves = { from: 0, to: size };
  while (!isEnd(end)) {
    const { from, to } = end;
    const split = from + 2 ** levelOf(to - from - 1);
    const [left, right] = [
      { from, to: split },
      { from: split, to },
    ];
    const isLeft = index < split;
    beside.unshift(isLeft ? { ...right, side: "right" } : { ...left, side: "left" });
    end = isLeft ? left : right;
  }
  return { end, beside };
}

const isOneLeaf = ({ from, to }: Leaves) => to - from === 1;
const endsWith = (count: number) => (leaves: Leaves) => leaves.to === count;
/** Whether the earlier tree is this node, so that a proof need not name it. */
const isRoot = ({ from }: Leaves) => from === 0;

function joinedAt(side: Beside["side"], other: Buffer, hash: Buffer): Buffer {
  return side === "left" ? nodeHash(other, hash) : nodeHash(hash, other);
}

/** The hash of each range. */
async function readAll(ranges: readonly Leaves[], read: ReadNodes): Promise<Buffer[]> {
  const covers = ranges.map(coverOf);
  const found = [...(await read(covers.flat()))];
  return covers.map((cover) => rootOver(found.splice(0, cover.length)));
}

/** The full nodes over a range, from left to right. A range begins at a multiple of its largest one. */
function coverOf({ from, to }: Leaves): Node[] {
  const nodes: Node[] = [];
  for (let start = from; start < to; ) {
    const level = levelOf(to - start);
    nodes.push({ level, at: start / 2 ** level });
    start += 2 ** level;
  }
  return nodes;
}

/** The root over full subtrees, the largest first. */
export function rootOver(subtrees: readonly Buffer[]): Buffer {
  if (subtrees.length === 0) return new Bun.CryptoHasher("sha256").digest();
  return subtrees.reduceRight((right, left) => nodeHash(left, right));
}

export function nodeHash(left: Buffer, right: Buffer): Buffer {
  return new Bun.CryptoHasher("sha256").update(nodePrefix).update(left).update(right).digest();
}

/** The whole part of a count's binary logarithm. `Math.log2` rounds from 2^49 on. */
function levelOf(count: number): number {
  return count.toString(2).length - 1;
}

function isCount(count: number): boolean {
  return Number.isSafeInteger(count) && count >= 0;
}

function isHash(bytes: Buffer): boolean {
  return bytes.length === hashBytes;
}

/** The hash of the node on this level, of those that a leaf completes; undefined if it is missing or was cut. */
export function hashAt(hashes: Buffer | undefined, level: number): Buffer | undefined {
  const hash = hashes?.subarray(level * hashBytes, (level + 1) * hashBytes);
  return hash && isHash(hash) ? hash : undefined;
}

export const hashBytes = 32;

const leafPrefix = new Uint8Array([0]);
const nodePrefix = new Uint8Array([1]);
