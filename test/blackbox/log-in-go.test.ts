import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { encodeVerifier, openNote, parseVerifier, signerOf, type Verifier } from "../../src/record/note.ts";
import {
  completingLeaf,
  leafHash,
  type Node,
  proveConsistency,
  proveInclusion,
  Tree,
  type TreeHead,
  verifyConsistency,
  verifyInclusion,
} from "../../src/record/tree.ts";
import { signTreeHead } from "../../src/record/tree-note.ts";
import { newFolder } from "../support/folder.ts";
import { outputOf } from "../support/program.ts";
import { whereInstalled } from "../support/programs.ts";

setDefaultTimeout(120_000);

whereInstalled(["go"], "Go's own checksum database", (go = "") => {
  const folder = newFolder();
  const env = { PATH: process.env["PATH"], HOME: folder, GOTOOLCHAIN: "local", GO111MODULE: "off", GOPATH: folder };

  test("opens our notes and accepts every proof of a tree of 19 leaves, and we its notes and proofs", async () => {
    // Its packages come with Go itself: it finds them as it found packages before there were modules.
    const goroot = Bun.spawnSync([go, "env", "GOROOT"], { env }).stdout.toString().trim();
    mkdirSync(join(folder, "src"));
    symlinkSync(join(goroot, "src/cmd/vendor/golang.org"), join(folder, "src/golang.org"));

    const signer = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(7));
    const leaves = Array.from({ length: 19 }, (_, at) => Buffer.from(`leaf ${at}\n`));
    const tree = new Tree();
    const roots: Buffer[] = [];
    const rows = leaves.map((leaf) => {
      const nodes = tree.append(leafHash(leaf));
      roots.push(tree.root);
      return nodes;
    });
    const read = async (nodes: readonly Node[]) =>
      nodes.map((node) => rows[completingLeaf(node)]?.[node.level] as Buffer);
    const asText = (hashes: readonly Buffer[]) => hashes.map((hash) => hash.toString("base64"));
    const input = {
      note: signTreeHead({ size: tree.size, root: tree.root, acceptedAt: 0 }, signer),
      verifier: encodeVerifier(signer),
      leaves: asText(leaves),
      size: tree.size,
      root: tree.root.toString("base64"),
      inclusion: await Promise.all(
        leaves.map(async (_, index) => ({ index, proof: asText(await proveInclusion(index, tree.size, read)) })),
      ),
      consistency: await Promise.all(
        roots.map(async (root, at) => {
          const proof = asText(await proveConsistency(at + 1, tree.size, read));
          return { size: at + 1, root: root.toString("base64"), proof };
        }),
      ),
    };
    const command = [go, "run", join(import.meta.dir, "log-in-go.go")];
    const said = await outputOf(command, { env, stdin: JSON.stringify(input) });
    const theirs: Made = JSON.parse(said);
    expect(theirs.text).toBe(`${signer.name}\n19\n${tree.root.toString("base64")}\n`);
    expect(openNote(theirs.note, [parseVerifier(theirs.verifier) as Verifier])).toBe(theirs.text);
    const hash = (text: string) => Buffer.from(text, "base64");
    const heads = theirs.roots.map((root, at) => ({ size: at + 1, root: hash(root) }));
    const head = heads.at(-1) as TreeHead;
    const accepted = leaves.map((leaf, at) => [
      verifyInclusion(leafHash(leaf), at, head, (theirs.inclusion[at] ?? []).map(hash)),
      verifyConsistency(heads[at] as TreeHead, head, (theirs.consistency[at] ?? []).map(hash)),
    ]);
    expect(accepted).toEqual(leaves.map(() => [true, true]));
  });
});

/** What Go makes of the leaves; hashes are base64. */
type Made = { readonly [K in "text" | "verifier" | "note"]: string } & {
  readonly roots: readonly string[];
  readonly inclusion: readonly (readonly string[] | null)[];
  readonly consistency: readonly (readonly string[] | null)[];
};
