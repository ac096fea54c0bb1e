import { brokenBy, type Flaw, flawsMax } from "./flaw.ts";
import type { SealedMonth } from "./month.ts";
import { isCosigned, parseWitness, type Verifier } from "./note.ts";
import { hashAt, hashBytes, type Node, nodeHash, peaksOf, rootOver, type TreeHead } from "./tree.ts";
import { openTreeHead } from "./tree-note.ts";

/** A leaf as it is stored: its number, and the hashes of the nodes that it completes. */
export type StoredLeaf = { readonly leaf: number; readonly hashes: Buffer };
/** A head as it is stored. */
export type StoredHead = TreeHead & { readonly note: string };

/** A witness's signature as it is stored, with its head's note. */
export type StoredCosignature = {
  readonly size: number;
  /** Its verifier key. */
  readonly witness: string;
  readonly line: string;
  readonly note: string | null;
};

/**
 * Walks a whole tree from its first leaf to its newest head. It says where the tree breaks, and goes on behind that. How
 * it broke is not guessed.
 */
export class TreeWalk {
  readonly #log: readonly Verifier[];
  /** The full nodes so far, the largest first; no hash if it is not known. */
  #peaks: { readonly node: Node; readonly hash: Buffer | undefined }[] = [];
  #size = 0;
  #heads = 0;
  #newest = 0;
  /** At most 1000 of what was found so far. */
  readonly flaws: Flaw[] = [];
  #moreFlaws = 0;

  /** @param log - the keys that may have signed */
  constructor(log: readonly Verifier[]) {
    this.#log = log;
  }

  /** Goes on to the next leaf that is stored. Their numbers grow. */
  pass({ leaf, hashes }: StoredLeaf): void {
    if (leaf < this.#size) {
      this.#note(`${leavesOf(leaf, leaf + 1)} is not a leaf of a tree.`);
      return;
    }
    if (leaf > this.#size) {
      this.#note(`${leavesOf(this.#size, leaf)} ${leaf - this.#size === 1 ? "is" : "are"} missing.`);
      this.#growTo(leaf);
    }
    let node: Node = { level: 0, at: leaf };
    let hash = hashAt(hashes, 0);
    let isBroken = hash === undefined;
    for (; node.at % 2 === 1; node = { level: node.level + 1, at: (node.at - 1) / 2 }) {
      const left = this.#peaks.pop()?.hash;
      const stored = hashAt(hashes, node.level + 1);
      const expected = left && hash && nodeHash(left, hash);
      if (stored === undefined) isBroken = true;
      else if (expected !== undefined && !expected.equals(stored)) {
        const width = 2 ** (node.level + 1);
        this.#note(`The tree breaks at ${leavesOf(leaf + 1 - width, leaf + 1).toLowerCase()}.`);
      }
      hash = stored ?? expected;
    }
    if (isBroken || hashes.length !== (node.level + 1) * hashBytes) this.#note(`The tree breaks at leaf ${leaf}.`);
    this.#peaks.push({ node, hash });
    this.#size = leaf + 1;
  }

  /** Compares a head with the leaves so far. Call it when all leaves below its size have passed, the smallest first. */
  compare({ size, root, note }: StoredHead): void {
    this.#heads += 1;
    this.#newest = size;
    const head = openTreeHead(note, this.#log);
    if (head?.size !== size || !head.root.equals(root)) {
      this.#note(`${whichHead(size)} is not signed by the given key.`);
      return;
    }
    this.compareRoot({ size, root });
  }

  /** The same with a head whose signature was verified. */
  compareRoot({ size, root }: TreeHead, which = whichHead(size)): void {
    const hashes = this.#peaks.map(({ hash }) => hash);
    if (size !== this.#size || hashes.includes(undefined)) return; // what is missing is a flaw already
    if (!rootOver(hashes as Buffer[]).equals(root)) this.#note(`${which} is of another tree.`);
  }

  /** The same with a month that a leaf seals. */
  compareMonth({ month, ...head }: SealedMonth): void {
    this.compareRoot(head, `The sealed month ${month}`);
  }

  /** Judges a signature of a witness by the note that it is of, as it is stored; null if it is gone. */
  cosigned({ size, witness, line, note }: StoredCosignature): void {
    const which = whichHead(size);
    const name = parseWitness(witness)?.name ?? "unknown";
    if (note === null) this.#note(`${which} is missing, and the witness ${name} has signed it.`);
    else if (!isCosigned({ witness, line, note })) this.#note(`${which} has a wrong signature of the witness ${name}.`);
  }

  /** What was found: at most 1000 flaws say where it breaks. Without one, each signed head is of the first leaves of it. */
  end() {
    if (this.#newest > this.#size) {
      this.#note(`The newest head is of ${this.#newest} leaves, and the tree ends after ${this.#size}.`);
    } else if (this.#newest < this.#size) {
      const behind = leavesOf(this.#newest, this.#size);
      this.#note(`${behind} ${this.#size - this.#newest === 1 ? "is" : "are"} in no signed head.`);
    }
    return { leaves: this.#size, heads: this.#heads, flaws: this.flaws, moreFlaws: this.#moreFlaws };
  }

  /** Goes on behind leaves that are missing: the nodes above them are not known. */
  #growTo(size: number): void {
    const known = this.#peaks;
    this.#peaks = peaksOf(size).map((node) => {
      const before = known.find((one) => one.node.level === node.level && one.node.at === node.at);
      return { node, hash: before?.hash };
    });
    this.#size = size;
  }

  #note(sentence: string): void {
    if (this.flaws.length < flawsMax) this.flaws.push(brokenBy(sentence));
    else this.#moreFlaws += 1;
  }
}

function whichHead(size: number): string {
  return `The head of ${size} ${size === 1 ? "leaf" : "leaves"}`;
}

/** @param to - the first leaf that is left out */
function leavesOf(from: number, to: number): string {
  return to - from === 1 ? `Leaf ${from}` : `Leaves ${from} to ${to - 1}`;
}
