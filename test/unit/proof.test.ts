import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { parseVerifier, parseWitness, type Verifier } from "../../src/audit/note.ts";
import { checkProof } from "../../src/audit/proof.ts";
import { whereInstalled } from "../support/programs.ts";
import vectors from "../vectors/audit-proof-v1.json" with { type: "json" };

type Case = {
  readonly comment: string;
  readonly proof: unknown;
  readonly keys?: readonly string[];
  readonly witnesses?: readonly string[];
  readonly wrong: string | null;
};
const cases = vectors.cases as unknown as readonly Case[];

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

  whereInstalled(["python3"], "in Python,", (python = "") => {
    test("is judged alike by docs/clients/keyhole_proof.py", () => {
      const { stdout, stderr } = Bun.spawnSync([python, "-c", driver], {
        cwd: join(import.meta.dir, "../../docs/clients"),
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
        stdin: Buffer.from(JSON.stringify(vectors)),
      });
      expect(stderr.toString()).toBe("");
      const found = JSON.parse(stdout.toString()) as (string | null)[];
      expect(cases.map(({ comment }, at) => [comment, found[at]])).toEqual(
        cases.map(({ comment, wrong }) => [comment, wrong]),
      );
    });
  });
});

const driver = `
import json, sys
from keyhole_proof import Wrong, check
vectors = json.load(sys.stdin)
def judged(case):
    try:
        check(case["proof"], case.get("keys", vectors["keys"]), case.get("witnesses", []))
    except Wrong as wrong:
        return str(wrong)
print(json.dumps([judged(case) for case in vectors["cases"]]))
`;
