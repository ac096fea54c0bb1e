import { macOf } from "../core/hash.ts";
import type { AuditEntry } from "./entry.ts";
import { monthOf } from "./month.ts";
import { decodeEntries, type Segment } from "./segment.ts";
import { completingLeaf, leafHash, proveInclusion, type ReadNodes, Tree } from "./tree.ts";

/*
 * A leaf of the tree is what a lane wrote in a round: consecutive segments of one month (UTC), with at most 4,096 entries
 * unless one segment has more. It is a text of five lines that each end with a newline:
 *
 *   keyhole audit segment v1
 *   LANE
 *   FIRST-LAST      the numbers of its entries
 *   TIME            of the last segment, epoch milliseconds
 *   ROOT            base64, of a tree of its own, whose leaves are the entries
 *
 * A leaf of that tree is the entry's salt, 32 bytes, followed by the entry as JSON in the form of RFC 8785: members
 * sorted, no blanks. Its member `at` is the time of its segment. Whoever has the proof of one entry could otherwise guess
 * what its neighbours say.
 */

/** An entry as it is hashed: with its time, in epoch milliseconds. */
export type TimedEntry = AuditEntry & { readonly at: number };

/** Builds the leaf of segments of a lane, and proves each of their entries. */
export class Leaf {
  readonly lane: string;
  readonly firstSeq: number;
  readonly #saltKey: Uint8Array;
  readonly #tree = new Tree();
  readonly #rows: Buffer[][] = [];
  lastSeq: number;
  #at = 0;

  /** @param first - the segment that it begins with, which is not added yet */
  constructor(saltKey: Uint8Array, { lane, firstSeq }: Pick<Segment, "lane" | "firstSeq">) {
    this.lane = lane;
    this.firstSeq = firstSeq;
    this.#saltKey = saltKey;
    this.lastSeq = firstSeq - 1;
  }

  /** The root over the entries that were added. */
  get root(): Buffer {
    return this.#tree.root;
  }

  get text(): string {
    const { lane, firstSeq, lastSeq } = this;
    return `keyhole audit segment v1\n${lane}\n${firstSeq}-${lastSeq}\n${this.#at}\n${this.root.toString("base64")}\n`;
  }

  /** Whether a notary puts a segment into this leaf, too. */
  takes({ lane, firstSeq, lastSeq, at }: Segment): boolean {
    // Retention drops whole months, and so whole leaves.
    const isNext = lane === this.lane && firstSeq === this.lastSeq + 1;
    return isNext && monthOf(at) === monthOf(this.#at) && lastSeq - this.firstSeq < entriesMax;
  }

  /** @returns false if its entries are not as Keyhole writes them: then nothing was added */
  add(segment: Segment, entries = decodeEntries(segment)): boolean {
    const { lane, firstSeq, lastSeq, at } = segment;
    if (entries === undefined) return false;
    for (const [index, entry] of entries.entries()) {
      const salt = entrySalt(this.#saltKey, lane, firstSeq + index);
      this.#rows.push(this.#tree.append(leafHash(entryLeaf(salt, { ...entry, at }))));
    }
    [this.lastSeq, this.#at] = [lastSeq, at];
    return true;
  }

  /** What leads from an entry to the root, if no entry is missing. */
  prove(seq: number): Promise<Buffer[]> {
    const read: ReadNodes = async (nodes) =>
      nodes.map((node) => this.#rows[completingLeaf(node)]?.[node.level] ?? Buffer.alloc(0));
    return proveInclusion(seq - this.firstSeq, this.#tree.size, read);
  }
}

/** The leaf of these segments; undefined if one of them is not as Keyhole writes it. */
export function leafOf(saltKey: Uint8Array, segments: readonly Segment[]): Leaf | undefined {
  const [first] = segments;
  if (first === undefined) return undefined;
  const leaf = new Leaf(saltKey, first);
  return segments.every((segment) => leaf.add(segment)) ? leaf : undefined;
}

const entriesMax = 4096;

/** 32 bytes that only the holder of the key can tell. */
export function entrySalt(saltKey: Uint8Array, lane: string, seq: number): Buffer {
  return macOf(saltKey, ["keyhole audit salt v1", lane, seq]);
}

export function entryLeaf(salt: Buffer, entry: TimedEntry): Buffer {
  return Buffer.concat([salt, Buffer.from(JSON.stringify(sorted(entry)))]);
}

/** The same value, with the members of its objects in order: `JSON.stringify` keeps it, except for names like "1". */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.every((item) => typeof item === "string") ? value : value.map(sorted);
  // Without a prototype, `__proto__` is a member like any other.
  const members: Record<string, unknown> = Object.create(null);
  for (const name of Object.keys(value).sort()) members[name] = sorted((value as typeof members)[name]);
  return members;
}
