/** The proof of an entry as anybody may spell it, in TypeScript and in Python. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { parseVerifier, parseWitness, type Verifier } from "../../src/audit/note.ts";
import { checkProof, readProof } from "../../src/audit/proof.ts";
import { whereInstalled } from "../support/programs.ts";
import respelled from "../vectors/audit-proof-respelled-v1.json" with { type: "json" };
import vectors from "../vectors/audit-proof-v1.json" with { type: "json" };

type Case = {
  readonly comment: string;
  readonly proof: unknown;
  readonly keys?: readonly string[];
  readonly witnesses?: readonly string[];
  readonly wrong: string | null;
};
const cases = vectors.cases as unknown as readonly Case[];

/** A line of a file of proofs, with the keys to check it by. */
type Line = { readonly bytes: Buffer; readonly keys: readonly string[]; readonly witnesses: readonly string[] };

const lineOf = ({ proof, keys = vectors.keys, witnesses = [] }: Case, text = JSON.stringify(proof)): Line => ({
  bytes: Buffer.from(text),
  keys,
  witnesses,
});

const spellings = respelled.cases.map(({ comment, of, from, to, hex, proved }) => {
  const base = cases.find((one) => one.comment === of) ?? { proof: respelled.base[of as never], comment, wrong: null };
  const { bytes, ...line } = lineOf(base);
  const pieces = typeof to === "string" ? [Buffer.from(to, hex ? "hex" : "utf8")] : to.map(repeated);
  const at = bytes.indexOf(from);
  expect([comment, at]).not.toEqual([comment, -1]);
  const changed = Buffer.concat([bytes.subarray(0, at), ...pieces, bytes.subarray(at + Buffer.byteLength(from))]);
  return { comment, proved, line: { ...line, bytes: changed } };
});

function repeated([text, count]: (string | number)[]): Buffer {
  return Buffer.from(String(text).repeat(Number(count)));
}

/** What is wrong with a line; null if it proves its entry. */
function judged({ bytes, keys, witnesses }: Line): string | null {
  const document = readProof(bytes);
  if (document === undefined) return "it is not JSON: a proof is one line";
  const log = keys.map((key) => parseVerifier(key) as Verifier);
  const by = witnesses.map((key) => parseWitness(key) as Verifier);
  const found = checkProof(document, log, by);
  return "wrong" in found ? found.wrong : null;
}

describe("the proof of an entry, version 1,", () => {
  test.each(cases)("is judged as the vectors say: $comment", ({ proof, keys, witnesses = [], wrong }) => {
    const log = (keys ?? vectors.keys).map((key) => parseVerifier(key) as Verifier);
    const found = checkProof(
      proof,
      log,
      witnesses.map((key) => parseWitness(key) as Verifier),
    );
    if (wrong !== null) return expect(found).toEqual({ wrong });
    const { receipt, entry } = proof as { receipt: string; entry: unknown };
    const cosignedAt = witnesses.map((_, at) => (1_764_547_260 + at) * 1000);
    expect(found).toMatchObject({ receipt, entry, origin: "keyhole/0123456789abcdef", cosignedAt });
  });

  test("has one grammar, whatever a line looks like", () => {
    const found = spellings.map(({ comment, line }) => [comment, judged(line) === null]);
    expect(found).toEqual(spellings.map(({ comment, proved }) => [comment, proved]));
  });

  whereInstalled(["python3"], "in Python,", (python = "") => {
    test("is judged alike by docs/clients/keyhole_proof.py", () => {
      const lines = [...cases.map((one) => lineOf(one)), ...spellings.map(({ line }) => line)];
      const { stdout, stderr } = Bun.spawnSync([python, "-c", driver], {
        cwd: join(import.meta.dir, "../../docs/clients"),
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
        stdin: Buffer.from(JSON.stringify(lines.map((line) => ({ ...line, bytes: line.bytes.toString("base64") })))),
      });
      expect(stderr.toString()).toBe("");
      const found = JSON.parse(stdout.toString()) as (string | null)[];
      expect(cases.map(({ comment }, at) => [comment, found[at]])).toEqual(
        cases.map(({ comment, wrong }) => [comment, wrong]),
      );
      const others = found.slice(cases.length);
      expect(spellings.map(({ comment }, at) => [comment, others[at] === null])).toEqual(
        spellings.map(({ comment, proved }) => [comment, proved]),
      );
    });
  });
});

const driver = `
import base64, json, sys
from keyhole_proof import Wrong, check
def judged(line):
    try:
        check(base64.b64decode(line["bytes"]), line["keys"], line["witnesses"])
    except Wrong as wrong:
        return str(wrong)
print(json.dumps([judged(line) for line in json.load(sys.stdin)]))
`;
