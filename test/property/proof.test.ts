import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { AuditEntry } from "../../src/record/entry.ts";
import { entrySalt, type Leaf, leafOf } from "../../src/record/leaf.ts";
import { signerOf } from "../../src/record/note.ts";
import { type EntryProof, encodeTreeProof, proofFormat } from "../../src/record/proof.ts";
import { decodeEntries, encodeEntries, type Segment } from "../../src/record/segment.ts";
import { completingLeaf, leafHash, type Node, proveInclusion, Tree } from "../../src/record/tree.ts";
import { signTreeHead } from "../../src/record/tree-note.ts";
import { checkProof } from "../support/check-proof.ts";
import { entry } from "../support/journal.ts";

const signer = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(7));
const saltKey = Buffer.alloc(32, 1);

/** Segments of two lanes with these numbers of entries, each with names of its own. */
function segmentsOf(sizes: readonly number[]): Segment[] {
  const ends = new Map<string, number>();
  return sizes.map((size, index) => {
    const lane = `lane-${index % 2}`;
    const firstSeq = (ends.get(lane) ?? 0) + 1;
    ends.set(lane, firstSeq + size - 1);
    const entries = Array.from({ length: size }, (_, at): AuditEntry => ({ ...entry, names: [`${index} ${at}`] }));
    const numbers = { lane, firstSeq, lastSeq: firstSeq + size - 1 };
    return { ...numbers, at: 1000 + index, mac: Buffer.alloc(0), ...encodeEntries(entries) };
  });
}

/** What a notary and `audit prove` make of segments: a proof of each entry against the tree of the first of them. */
async function proofsOf(segments: readonly Segment[], size: number, by = signer): Promise<EntryProof[]> {
  const tree = new Tree();
  const trees = segments.slice(0, size).map((segment) => leafOf(saltKey, [segment]) as Leaf);
  const rows = trees.map(({ text }) => tree.append(leafHash(text)));
  const read = async (nodes: readonly Node[]) =>
    nodes.map((node) => rows[completingLeaf(node)]?.[node.level] as Buffer);
  const note = signTreeHead({ size, root: tree.root, acceptedAt: 0 }, by);
  const all = trees.map(async (leaf, index) => {
    const proof = encodeTreeProof(index, await proveInclusion(index, size, read), note);
    const segment = segments[index] as Segment;
    const { lane, firstSeq, at } = segment;
    return Promise.all(
      (decodeEntries(segment) ?? []).map(async (entry, position): Promise<EntryProof> => {
        const seq = firstSeq + position;
        const path = (await leaf.prove(seq)).map((hash) => hash.toString("base64"));
        const salt = entrySalt(saltKey, lane, seq).toString("base64");
        const receipt = `${lane}:${seq}`;
        return { format: proofFormat, receipt, entry: { ...entry, at }, salt, path, segment: leaf.text, proof };
      }),
    );
  });
  return (await Promise.all(all)).flat();
}

const anyTree = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 20 }).chain((sizes) =>
  fc.record({
    sizes: fc.constant(sizes),
    size: fc.integer({ min: 2, max: sizes.length }),
    pick: fc.nat(),
    other: fc.nat(),
  }),
);

/** Text with one letter or digit changed. */
const changed = (text: string, pick: number) => {
  const places = [...text].flatMap((letter, at) => (/[0-9A-Za-z]/.test(letter) ? [at] : []));
  const at = places[pick % places.length] as number;
  const letter = text.charAt(at);
  return (
    text.slice(0, at) +
    (letter === "9" ? "1" : letter === "z" || letter === "Z" ? "a" : String.fromCharCode(letter.charCodeAt(0) + 1)) +
    text.slice(at + 1)
  );
};

/** Lists of hashes that were cut, extended, changed or put into another order. */
function* wrongLists(hashes: readonly string[], pick: number): Generator<string[]> {
  yield [...hashes, Buffer.alloc(32).toString("base64")];
  for (const [at, hash] of hashes.entries()) {
    yield hashes.toSpliced(at, 1);
    yield hashes.with(at, changed(hash, pick));
    if (at > 0) yield hashes.toSpliced(at - 1, 2, hash, hashes[at - 1] as string);
  }
}

/** A proof with one thing wrong. */
function* wrongOf(proof: EntryProof, other: EntryProof, pick: number): Generator<[string, EntryProof]> {
  yield ["another entry", { ...proof, entry: other.entry }];
  yield ["another salt", { ...proof, salt: other.salt }];
  yield ["another number or lane", { ...proof, receipt: other.receipt }];
  yield ["a receipt with a digit changed", { ...proof, receipt: changed(proof.receipt, pick) }];
  yield ["an entry with a name more", { ...proof, entry: { ...(proof.entry as AuditEntry), names: ["more"] } }];
  yield ["a segment with a letter changed", { ...proof, segment: changed(proof.segment, pick) }];
  for (const path of wrongLists(proof.path, pick)) yield ["a path", { ...proof, path }];
  const [head = "", note = ""] = proof.proof.split(/\n\n(.*)/s);
  const [format = "", index = "", ...hashes] = head.split("\n");
  const withTree = (...lines: readonly string[]) => ({ ...proof, proof: `${lines.join("\n")}\n\n${note}` });
  for (const list of wrongLists(hashes, pick)) yield ["a path in the tree", withTree(format, index, ...list)];
  const place = Number(index.slice("index ".length));
  for (const wrong of [place + 1, place + 2 ** 40, place === 0 ? 7 : place - 1])
    yield ["another place", withTree(format, `index ${wrong}`, ...hashes)];
  yield ["a head with a letter changed", { ...proof, proof: `${head}\n\n${changed(note, pick)}` }];
  if (other.segment !== proof.segment) {
    yield ["the segment of another", { ...proof, segment: other.segment }];
    yield ["the place of another", { ...proof, proof: other.proof }];
  }
}

describe("the proof of an entry", () => {
  test("holds for each entry of each tree, and nothing like it does", async () => {
    await fc.assert(
      fc.asyncProperty(anyTree, async ({ sizes, size, pick, other }) => {
        const proofs = await proofsOf(segmentsOf(sizes), size);
        for (const proof of proofs)
          expect(checkProof(proof, [signer])).toMatchObject({ receipt: proof.receipt, entry: proof.entry });
        const proof = proofs[pick % proofs.length] as EntryProof;
        const another = proofs[other % proofs.length] as EntryProof;
        if (another === proof) return;
        for (const [what, wrong] of wrongOf(proof, another, pick)) {
          const refused = { wrong: expect.any(String) as string };
          expect({ what, wrong, found: checkProof(wrong, [signer]) }).toEqual({ what, wrong, found: refused });
        }
      }),
      { numRuns: 60 },
    );
  });

  test("holds under no head of another tree, which the same key signed", async () => {
    await fc.assert(
      fc.asyncProperty(anyTree, async ({ sizes, size, pick }) => {
        const segments = segmentsOf(sizes);
        const proofs = await proofsOf(segments, size);
        const at = pick % proofs.length;
        const proof = proofs[at] as EntryProof;
        const noteOf = ({ proof }: EntryProof) => proof.slice(proof.indexOf("\n\n"));
        const pathsOf = ({ proof }: EntryProof) => proof.slice(0, proof.indexOf("\n\n"));
        // A view without the entry, and the same segments in another order.
        const index = segments.findIndex((segment) => proof.segment.includes(`\n${segment.at}\n`));
        const split = segments.with(index, { ...(segments[index] as Segment), at: 5 });
        const reordered = segments.slice(0, size).toReversed();
        for (const view of [split, ...(size > 1 ? [reordered] : [])]) {
          const [first] = await proofsOf(view, size);
          const mixed = { ...proof, proof: pathsOf(proof) + noteOf(first as EntryProof) };
          expect(checkProof(mixed, [signer])).toHaveProperty("wrong");
        }
        const [smaller] = await proofsOf(segments, size - 1);
        expect(
          checkProof({ ...proof, proof: pathsOf(proof) + noteOf(smaller as EntryProof) }, [signer]),
        ).toHaveProperty("wrong");
      }),
      { numRuns: 60 },
    );
  });
});
