/** The proof of an entry as anybody may spell it, in TypeScript and in Python. */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { CommandContext } from "../../src/cli/terminal/verb.ts";
import { execute } from "../../src/main.ts";
import { parseVerifier, parseWitness, type Verifier } from "../../src/record/note.ts";
import { readProof } from "../../src/record/proof.ts";
import { checkProof } from "../support/check-proof.ts";
import { streamTo } from "../support/context.ts";
import { newFolder } from "../support/folder.ts";
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
const bothSigned = "a head that both witnesses signed";

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

/** Lists of keys, and how a check with them ends: of a head that the log and both witnesses signed. */
const log = vectors.keys[0] as string;
const older = cases.flatMap(({ keys = [] }) => keys).find((key) => key !== log) as string;
const [first = "", second = ""] = cases.find(({ comment }) => comment === bothSigned)?.witnesses ?? [];
const others = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const rows: readonly (readonly [string, exitCode: number, keys: string, witnesses?: string])[] = [
  ["a key", 0, log],
  ["a key, and an older one", 0, `${log},${older}`],
  ["two witnesses", 0, log, `${first},${second}`],
  ["two witnesses, the second one first", 0, log, `${second},${first}`],
  ["an older key alone", 1, older],
  ["the key of somebody else", 1, others],
  ["a key twice", 2, `${log},${log}`],
  ["a key twice, with another between", 2, `${log},${older},${log}`],
  ["keys of two installations", 2, `${log},${others}`],
  ["a blank", 2, ""],
  ["a comma", 2, ","],
  ["a comma at the end", 2, `${log},`],
  ["a space behind the comma", 2, `${log}, ${older}`],
  ["a line feed at the end", 2, `${log}\n`],
  ["a witness's key as the log's", 2, first],
  ["a witness's key beside the log's", 2, `${log},${first}`],
  ["the log's key as a witness's", 2, log, log],
  ["a witness twice", 2, log, `${first},${first}`],
  ["witnesses that are blank", 2, log, ""],
  ["a blank witness beside one", 2, log, `${first},`],
  ["a key in upper case", 2, log.toUpperCase()],
  ["a key with another name", 2, `x${log}`],
  ["base64 that no encoder writes", 2, `${log}=`],
  ["a key cut short", 2, log.slice(0, -4)],
  // What one language's blanks are and another's are not.
  ["a next-line character in the name", 2, named("keyhole/\u0085")],
  ["a file separator in the name", 1, named("keyhole/\u001c")],
  ["a byte order mark in the name", 2, named("\ufeffkeyhole")],
];

const lists = rows.map(([comment, exitCode, keys, witnesses]) => {
  const asked = witnesses === undefined ? [] : ["--witness", witnesses];
  return [comment, exitCode, ["--key", keys, ...asked]] as const;
});

/** The log's key under another name. */
function named(name: string): string {
  const key = Buffer.from(log.split("+").slice(2).join("+"), "base64");
  const id = createHash("sha256").update(`${name}\n`).update(key).digest("hex").slice(0, 8);
  return `${name}+${id}+${key.toString("base64")}`;
}

describe("lists of keys", () => {
  const file = join(newFolder(), "proof");
  writeFileSync(file, JSON.stringify(cases.find(({ comment }) => comment === bothSigned)?.proof));
  test.each(lists)("are judged by `keyhole audit check`: %s", async (_, exitCode, options) => {
    const [stdout, stderr] = [streamTo(() => {}), streamTo(() => {})];
    const terminal = { stdin: Readable.from([]), stdout, stderr } as unknown as CommandContext["terminal"];
    const ended = await execute(["audit", "check", file, ...options], { env: {}, terminal, inherited: [] });
    expect(ended).toBe(exitCode);
  });

  whereInstalled(["python3"], "in Python,", (python = "") => {
    test("are judged alike by docs/clients/keyhole_proof.py", () => {
      const given = lists.map(([, , options]) => [file, ...options]);
      const { stdout } = Bun.spawnSync([python, "-B", "-c", checkAll], {
        cwd: join(import.meta.dir, "../../docs/clients"),
        stdin: Buffer.from(JSON.stringify(given)),
      });
      const found = JSON.parse(stdout.toString()) as unknown[];
      expect(lists.map(([comment], at) => [comment, found[at]])).toEqual(
        lists.map(([comment, exitCode]) => [comment, [exitCode, exitCode < 2]]),
      );
    });
  });
});

/** Prints how the checker ends with each list of arguments, and whether it says something of the proof. */
const checkAll = `
import contextlib, io, json, sys
from keyhole_proof import main
def ended(arguments):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            status = main(arguments)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    return [status, said.getvalue() != ""]
print(json.dumps([ended(arguments) for arguments in json.load(sys.stdin)]))
`;

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
