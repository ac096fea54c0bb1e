import { describe, expect, test } from "bun:test";
import {
  cosign,
  cosignedAt,
  encodeWitness,
  openNote,
  parseWitness,
  signerOf,
  signNote,
  witnessOf,
} from "../../src/record/note.ts";
import { leafHash, proveConsistency, Tree, type TreeHead } from "../../src/record/tree.ts";
import { parseTreeHead, signTreeHead } from "../../src/record/tree-note.ts";
import { encodeSubmission, judgeSubmission } from "../../src/record/witness.ts";
import vectors from "../vectors/tlog-witness.json" with { type: "json" };

const log = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(7));
const witness = witnessOf("witness.example.com/w1", new Uint8Array(32).fill(8));

test("a witness's key and signature are read back, and tell when it signed", () => {
  const { name, id, publicKey } = witness;
  expect(parseWitness(encodeWitness(witness))).toEqual({ name, id, publicKey });
  const text = "one\ntwo\n";
  const note = signNote(text, log) + cosign(text, witness, 1_764_547_200_999);
  expect(openNote(note, [log])).toBe(text);
  expect(cosignedAt(note, witness)).toBe(1_764_547_200_000);
  expect(cosignedAt(note, witnessOf(witness.name, new Uint8Array(32).fill(9)))).toBeUndefined();
  expect(cosignedAt(note.replace("two", "six"), witness)).toBeUndefined();
});

test("a witness answers the requests of litewitness's own test as litewitness does", () => {
  const { origin, publicKey } = vectors;
  const known = parsed(origin, publicKey);
  let newest: TreeHead | undefined;
  for (const { body, status, size } of vectors.requests) {
    const judged = judgeSubmission(body, [known], () => newest);
    expect(judged).toMatchObject({ status, ...(size !== undefined && { size }) });
    if (judged.status === 200) newest = parseTreeHead(judged.text);
  }
  expect(newest?.size).toBe(5);
});

describe("a request to a witness", () => {
  const leaves = Array.from({ length: 9 }, (_, at) => leafHash(`${at}`));
  const headOf = (hashes: readonly Buffer[]) => {
    const tree = new Tree();
    for (const hash of hashes) tree.append(hash);
    return { size: tree.size, root: tree.root, acceptedAt: 0 };
  };
  const at = (size: number) => headOf(leaves.slice(0, size));
  const hashesOf = new Map<string, Buffer>();
  const tree = new Tree();
  for (const [leaf, hash] of leaves.entries()) {
    for (const [level, node] of tree.append(hash).entries())
      hashesOf.set(`${level}/${(leaf + 1) / 2 ** level - 1}`, node);
  }
  const prove = (from: number, to: number) =>
    proveConsistency(from, to, async (nodes) =>
      nodes.map((node) => hashesOf.get(`${node.level}/${node.at}`) as Buffer),
    );
  const ask = (body: string, newest?: TreeHead) => judgeSubmission(body, [log], () => newest);
  const note = (size: number) => signTreeHead(at(size), log);

  test("is signed if it goes on from what was signed before, and from nothing else", async () => {
    for (let from = 0; from <= 9; from++) {
      for (let to = 0; to <= 9; to++) {
        const proof = from === 0 || from > to ? [] : await prove(from, to);
        const newest = from === 0 ? undefined : at(from);
        expect(ask(encodeSubmission(from, proof, note(to)), newest).status).toBe(from > to ? 400 : 200);
        if (from > to) continue;
        expect(ask(encodeSubmission(from, [...proof, leaves[0] as Buffer], note(to)), newest).status).toBe(422);
        if (proof.length > 0) {
          expect(ask(encodeSubmission(from, proof.slice(1), note(to)), newest).status).toBe(422);
        }
        // Another history of the same size, with a proof that is right for the witnessed one.
        const fork = headOf([leafHash("other"), ...leaves.slice(1, to)]);
        const refused = to === from ? 409 : 422;
        if (from > 0) expect(ask(encodeSubmission(from, proof, signTreeHead(fork, log)), newest).status).toBe(refused);
        if (from > 0) expect(ask(encodeSubmission(0, [], note(to)), newest)).toEqual({ status: 409, size: from });
      }
    }
  });

  test("is refused if the log is another one, its signature is wrong, or it is malformed", () => {
    const other = signerOf("keyhole/fedcba9876543210", new Uint8Array(32).fill(7));
    const impostor = signerOf(log.name, new Uint8Array(32).fill(9));
    expect(ask(encodeSubmission(0, [], signTreeHead(at(3), other))).status).toBe(404);
    expect(ask(encodeSubmission(0, [], signTreeHead(at(3), impostor))).status).toBe(403);
    expect(ask(encodeSubmission(0, [], note(3).replace("\n3\n", "\n4\n"))).status).toBe(403);
    expect(ask(encodeSubmission(0, [], signNote(`${log.name}\nno size\n`, log))).status).toBe(400);
    const empty = signNote(`${log.name}\n0\n${leafHash("x").toString("base64")}\n`, log);
    expect(ask(encodeSubmission(0, [], empty)).status).toBe(422);
    const many = Array.from({ length: 64 }, () => leafHash("x"));
    const bodies = [
      ...["", "old 0", "old 0\n", "old -1\n\n", "old 01\n\n", "old 1e3\n\n", "size 0\n\n", "old 9999999999999999\n\n"],
    ];
    for (const body of bodies) expect(ask(`${body}${body.includes("\n\n") ? note(3) : ""}`).status).toBe(400);
    expect(ask(`old 1\nAAAA\n\n${note(3)}`, at(1)).status).toBe(400);
    expect(ask(encodeSubmission(1, many, note(3)), at(1)).status).toBe(400);
  });
});

function parsed(name: string, publicKeyHex: string) {
  const publicKey = Buffer.from(publicKeyHex, "hex");
  const id = new Bun.CryptoHasher("sha256").update(`${name}\n`).update(Buffer.of(1)).update(publicKey).digest();
  return { name, publicKey, id: id.subarray(0, 4) };
}
