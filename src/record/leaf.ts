import { macOf } from "../core/hash.ts";
import type { AuditEntry } from "./entry.ts";
import { decodeEntries, type Segment } from "./segment.ts";
import { completingLeaf, leafHash, proveInclusion, type ReadNodes, Tree } from "./tree.ts";

/*
 * A leaf of the tree is a segment, as a text of five lines that each end with a newline:
 *
 *   keyhole audit segment v1
 *   LANE
 *   FIRST-LAST      the numbers of its entries
 *   TIME            epoch milliseconds
 *   ROOT            base64, of a tree of its own, whose leaves are the entries
 *
 * A leaf of that tree is the entry's salt, 32 bytes, followed by the entry as JSON in the form of RFC 8785: members
 * sorted, no blanks. Whoever has the proof of one entry could otherwise guess what its neighbours say.
 */

/**
 * The leaf of a segment with what proves each of its entries; undefined if they are not as Keyhole writes them.
 */
export function segmentTree(saltKey: Uint8Array, segment: Segment, entries = decodeEntries(segment)) {
  const { lane, firstSeq, lastSeq, at } = segment;
  if (entries === undefined) return undefined;
  const tree = new Tree();
  const salted = entries.map((entry, index) => ({ entry, salt: entrySalt(saltKey, lane, firstSeq + index) }));
  const rows = salted.map(({ entry, salt }) => tree.append(leafHash(entryLeaf(salt, entry))));
  const leaf = `keyhole audit segment v1\n${lane}\n${firstSeq}-${lastSeq}\n${at}\n${tree.root.toString("base64")}\n`;
  const read: ReadNodes = async (nodes) =>
    nodes.map((node) => rows[completingLeaf(node)]?.[node.level] ?? Buffer.alloc(0));
  const prove = (index: number) => proveInclusion(index, tree.size, read);
  return { leaf, salted, prove };
}

/** 32 bytes that only the holder of the key can tell. */
export function entrySalt(saltKey: Uint8Array, lane: string, seq: number): Buffer {
  return macOf(saltKey, ["keyhole audit salt v1", lane, seq]);
}

export function entryLeaf(salt: Buffer, entry: AuditEntry): Buffer {
  return Buffer.concat([salt, Buffer.from(canonicalJson(entry))]);
}

/** @param value - texts, null, and lists and objects of them; an undefined member is left out */
function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value));
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
