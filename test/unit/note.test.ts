import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  cosignedAt,
  encodeVerifier,
  encodeWitness,
  openNote,
  parseVerifier,
  parseWitness,
  signerOf,
  signNote,
  type Verifier,
} from "../../src/record/note.ts";
import { leafHash, Tree } from "../../src/record/tree.ts";
import { openTreeHead, signTreeHead } from "../../src/record/tree-note.ts";
import { whereInstalled } from "../support/programs.ts";
import published from "../vectors/cosigned-checkpoint.json" with { type: "json" };
import vectors from "../vectors/signed-notes.json" with { type: "json" };

const signer = signerOf("keyhole/0123456789abcdef", new Uint8Array(32).fill(7));
const other = signerOf("witness.example.com/w1", new Uint8Array(32).fill(8));
/** A note with the signature lines of another one too. */
const withSignature = (note: string, more: string) => note + more.slice(more.lastIndexOf("\n\n") + 2);

test.each(vectors.groups)(
  "a signed note, by the published vectors, is opened and signed as in $source",
  ({ verifier, seed, text, note }) => {
    const parsed = parseVerifier(verifier) as Verifier;
    expect(encodeVerifier(parsed)).toBe(verifier);
    expect(openNote(note, [parsed])).toBe(text);
    if (seed === undefined) return;
    const signer = signerOf(parsed.name, Buffer.from(seed, "hex"));
    expect(encodeVerifier(signer)).toBe(verifier);
    expect(signNote(text, signer)).toBe(note);
  },
);

const { note, size, witnesses, cosignedAt: at } = published;
const keys = [...witnesses, published.stranger].map((key) => parseWitness(key) as Verifier);
const log = parseVerifier(published.log) as Verifier;
const times = [...witnesses.map(() => at), undefined];

test("a checkpoint that four public witnesses have signed is one of its log, and has the signature of each of them", () => {
  expect(keys.map(encodeWitness)).toEqual([...witnesses, published.stranger]);
  expect(openTreeHead(note, [log])?.size).toBe(size);
  expect(keys.map((key) => cosignedAt(note, key))).toEqual(times);
  const other = note.replace(String(size), String(size + 1));
  expect(keys.map((key) => cosignedAt(other, key))).toEqual(keys.map(() => undefined));
  // An hour later, in the bytes of the time.
  const later = note.replaceAll("AAAABqEiEg", "AAAABqEi8w");
  expect(later).not.toBe(note);
  expect(keys.map((key) => cosignedAt(later, key))).toEqual(keys.map(() => undefined));
});

whereInstalled(["python3"], "in Python,", (python = "") => {
  test("is judged alike by docs/clients/keyhole_proof.py", () => {
    const { stdout, stderr } = Bun.spawnSync([python, "-c", driver], {
      cwd: join(import.meta.dir, "../../docs/clients"),
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
      stdin: Buffer.from(JSON.stringify(published)),
    });
    expect(stderr.toString()).toBe("");
    expect(JSON.parse(stdout.toString())).toEqual([size, ...times.map((time) => time ?? null)]);
  });
});

const driver = `
import json, sys
import keyhole_proof as proof
given = json.load(sys.stdin)
text, signatures = proof._parse_note(given["note"])
def cosigned(key):
    try:
        return proof._cosigned_at(text, signatures, proof._parse_key(key, 4))
    except proof.Wrong:
        return None
size, _ = proof._open_head(text, signatures, [proof._parse_key(given["log"], 1)])
print(json.dumps([size, *[cosigned(key) for key in [*given["witnesses"], given["stranger"]]]]))
`;

describe("a signed note", () => {
  const text = "one\n\nthree\n";
  const note = signNote(text, signer);

  test("opens for those who know the signer, and ignores other signatures", () => {
    expect(openNote(note, [signer])).toBe(text);
    expect(openNote(note, [other, signer])).toBe(text);
    expect(openNote(note, [other])).toBeUndefined();
    const both = withSignature(note, signNote(text, other));
    for (const known of [[signer], [other], [signer, other]]) expect(openNote(both, known)).toBe(text);
  });

  test("does not open when any byte of it is changed, cut or added", () => {
    const bytes = Buffer.from(note);
    for (let at = 0; at < bytes.length; at++) {
      for (const bit of [1, 32]) {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(at) ^ bit, at);
        expect({ at, text: openNote(changed.toString("utf8"), [signer]) }).toEqual({ at, text: undefined });
      }
      expect(openNote(bytes.subarray(0, at).toString("utf8"), [signer])).toBeUndefined();
      if (at > 0) expect(openNote(bytes.subarray(at).toString("utf8"), [signer])).toBeUndefined();
    }
    for (const more of ["\n", "x", "\r\n", "— a\n", "— a b\n", "— a YQ==\n", "\n— a AAAAAAA=\n"])
      expect(openNote(note + more, [signer])).toBeUndefined();
  });

  test("does not open if one of two known signatures is wrong", () => {
    const wrong = signNote("two\n", other);
    expect(openNote(withSignature(note, wrong), [signer, other])).toBeUndefined();
    expect(openNote(withSignature(note, wrong), [signer])).toBe(text);
  });

  test("is bounded, and takes sixteen signatures", () => {
    const many = Array.from({ length: 15 }, (_, at) => signNote(text, signerOf(`w${at}`, Buffer.alloc(32, at))));
    expect(openNote(many.reduce(withSignature, note), [signer])).toBe(text);
    const long = signNote(`${"x".repeat(200_000)}\n`, signer);
    expect(openNote(long, [signer])).toBeUndefined();
  });
});

test("a verifier key is refused if its id, its type, its length or its spelling is another", () => {
  const key = encodeVerifier(signer);
  expect(parseVerifier(key)).toMatchObject({ name: signer.name, id: signer.id, publicKey: signer.publicKey });
  const [name = "", id = "", encoded = ""] = key.split("+");
  const public33 = Buffer.from(encoded, "base64");
  const ofType4 = Buffer.from(public33).fill(4, 0, 1).toString("base64");
  for (const bad of [
    ...["", `${name}+${id}`, ` ${key}`, `${key}\n`, `x${key}`, `${name}+${id.toUpperCase()}+${encoded}x`],
    ...[`${name}+00000000+${encoded}`, `${name}+${id}+${ofType4}`, `+${id}+${encoded}`],
    `${name}+${id}+${public33.subarray(1).toString("base64")}`,
  ])
    expect({ bad, parsed: parseVerifier(bad) }).toEqual({ bad, parsed: undefined });
});

describe("the note of a tree's head", () => {
  const tree = new Tree();
  for (const leaf of ["a", "b", "c"]) tree.append(leafHash(leaf));
  const head = { size: tree.size, root: tree.root, acceptedAt: 0 };

  test("has the lines of a tlog checkpoint, and opens to the head", () => {
    const note = signTreeHead(head, signer);
    expect(note).toStartWith(`${signer.name}\n3\n${tree.root.toString("base64")}\n\n— ${signer.name} `);
    expect(openTreeHead(note, [signer])).toEqual(head);
    const more = signNote(note.slice(0, note.indexOf("\n\n") + 1), other);
    expect(openTreeHead(withSignature(note, more), [signer])).toEqual(head);
  });

  test("has a fourth line once an operator accepted that the database was put back", () => {
    const accepted = { ...head, acceptedAt: 1764547200000 };
    const note = signTreeHead(accepted, signer);
    expect(note).toContain(`\n${tree.root.toString("base64")}\naudit.accept-restore 1764547200000\n\n`);
    expect(openTreeHead(note, [signer])).toEqual(accepted);
    expect(openTreeHead(note.replace("1764547200000", "1764547200001"), [signer])).toBeUndefined();
  });

  test("opens for the log's own key only, and with extension lines", () => {
    expect(openTreeHead(signTreeHead(head, signer), [other])).toBeUndefined();
    const root = tree.root.toString("base64");
    const signed = (...lines: readonly string[]) => openTreeHead(signNote(`${lines.join("\n")}\n`, signer), [signer]);
    expect(signed(signer.name, "3", root, "more", "and more")).toEqual(head);
    expect(signed(signer.name, "3", root, "more", "audit.accept-restore 17")).toEqual({ ...head, acceptedAt: 17 });
    for (const moment of ["", "x", "0", "-1", "1.5", "17x", "99999999999999999"])
      expect(signed(signer.name, "3", root, `audit.accept-restore ${moment}`)).toBeUndefined();
    const good = [signer.name, "3", root];
    for (const lines of [
      ...["another/origin", ""].map((origin) => good.with(0, origin)),
      ...["03", "-3", "", "3.0", "9007199254740993"].map((size) => good.with(1, size)),
      ...[root.slice(4), `${root}A`].map((wrong) => good.with(2, wrong)),
      ...[good.slice(0, 2), [...good, "", "x"]],
    ])
      expect({ lines, head: signed(...lines) }).toEqual({ lines, head: undefined });
  });
});
