import { attempt } from "../core/attempt.ts";
import { parseReceipt, receiptName } from "../core/receipt.ts";
import { entryLeaf } from "./leaf.ts";
import { cosignedAt, decodeBase64, type Verifier } from "./note.ts";
import { leafHash, type TreeHead, verifyInclusion } from "./tree.ts";
import { openTreeHead } from "./tree-note.ts";

/*
 * The proof of one entry is a line of JSON. Whoever has the installation's verifier key checks it without a database.
 *
 *   format    "keyhole audit proof v1"
 *   receipt   LANE:NUMBER
 *   entry     the entry whole; its member `at` is its time in epoch milliseconds
 *   salt      base64: the entry's leaf is SHA-256(0x00, salt, the entry as JSON in the form of RFC 8785)
 *   path      hashes in base64, from that leaf to the root of its segment
 *   segment   the leaf that it is in (`leaf.ts`), which has lane, numbers, time and this root
 *   proof     that this leaf is in the tree of a signed head, as https://c2sp.org/tlog-proof spells it
 *
 * There are no other members, the text is UTF-8, numbers are whole, as digits alone, and the entry's members have names
 * of ASCII letters, which all languages sort alike: what two languages read differently proves nothing.
 */
export type EntryProof = {
  readonly format: typeof proofFormat;
  readonly receipt: string;
  readonly entry: unknown;
  readonly salt: string;
  readonly path: readonly string[];
  readonly segment: string;
  readonly proof: string;
};

export const proofFormat = "keyhole audit proof v1";

/** What a proof shows. */
export type Proved = {
  readonly receipt: string;
  /** Of the installation. */
  readonly origin: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly entry: unknown;
  readonly tree: TreeHead;
  /** When each witness signed, in epoch milliseconds, in the order of the witnesses. */
  readonly cosignedAt: readonly number[];
};

/** The proof that a leaf is in the tree, as a text. @param note - the signed head of the tree */
export function encodeTreeProof(index: number, path: readonly Buffer[], note: string): string {
  const hashes = path.map((hash) => `${hash.toString("base64")}\n`).join("");
  return `${treeProofFormat}\nindex ${index}\n${hashes}\n${note}`;
}

/** Checks proofs by these keys. All lines of an export have the same signed head, which is verified once. */
export type Checker = (document: unknown) => Proved | Unproved;
/** What is wrong with a proof, as a clause. */
export type Unproved = { readonly wrong: string };

/**
 * @param log - the keys that may have signed
 * @param witnesses - all of them must have signed as well
 */
export function proofChecker(log: readonly Verifier[], witnesses: readonly Verifier[] = []): Checker {
  let [opened, head]: [string | undefined, OpenedHead | Unproved] = [undefined, { wrong: "" }];
  return (document) => {
    const proof = parseProof(document);
    if (typeof proof === "string") return { wrong: proof };
    if (proof.note !== opened) [opened, head] = [proof.note, openHead(proof.note, log, witnesses)];
    return "wrong" in head ? head : checkPaths(proof, head);
  };
}

/** The document of a line; undefined if it is not JSON in the one form that proofs have. */
export function readProof(line: Uint8Array): unknown {
  return attempt<unknown>(() => JSON.parse(utf8.decode(line), onlyDigits));
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function onlyDigits(_: string, value: unknown, { source = "" }: { readonly source?: string } = {}): unknown {
  if (typeof value !== "number" || (/^\d+$/.test(source) && Number.isSafeInteger(value))) return value;
  throw new SyntaxError(`${source} is not a number of a proof`);
}

type OpenedHead = { readonly tree: TreeHead; readonly times: readonly number[] };

function openHead(note: string, log: readonly Verifier[], witnesses: readonly Verifier[]): OpenedHead | Unproved {
  const tree = openTreeHead(note, log);
  if (tree === undefined) return { wrong: "its signed head is not signed by the given key" };
  const times = witnesses.map((witness) => cosignedAt(note, witness));
  const missing = witnesses.find((_, at) => times[at] === undefined);
  if (missing !== undefined) return { wrong: `its signed head is not signed by the witness ${missing.name}` };
  return { tree, times: times as number[] };
}

function checkPaths(proof: Parsed, { tree, times }: OpenedHead): Proved | Unproved {
  const { receipt, entry, salt, path, segment, index, treePath, note } = proof;
  const named = parseReceipt(receipt);
  const { lane, firstSeq, lastSeq, at, root } = segment;
  const isIn = named?.lane === lane && named.firstSeq === named.lastSeq;
  if (!isIn || named.firstSeq < firstSeq || named.firstSeq > lastSeq) {
    return { wrong: `its segment has ${receiptName(segment)}, and not the entry ${receipt}` };
  }
  const leaf = attempt(() => leafHash(entryLeaf(salt, entry as never)));
  const within = { size: lastSeq - firstSeq + 1, root };
  if (leaf === undefined || !verifyInclusion(leaf, named.firstSeq - firstSeq, within, path)) {
    return { wrong: "its entry, salt and path do not lead to the root of its segment" };
  }
  if (!verifyInclusion(leafHash(segment.text), index, tree, treePath)) {
    return { wrong: "its segment and path do not lead to the root that is signed" };
  }
  const origin = note.slice(0, note.indexOf("\n"));
  return { receipt, origin, at: (entry as { readonly at?: number }).at ?? at, entry, tree, cosignedAt: times };
}

const treeProofFormat = "c2sp.org/tlog-proof@v1";

type Parsed = Exclude<ReturnType<typeof parseProof>, string>;

/** The parts of a proof, or what is wrong with its form. */
function parseProof(document: unknown) {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return "it is no JSON object";
  const { format, receipt, entry, salt, path, segment, proof, ...more } = document as Readonly<Record<string, unknown>>;
  if (format !== proofFormat) return `its format is not \`${proofFormat}\``;
  if (Object.keys(more).length > 0) return "it has members that no proof has";
  const hashes = Array.isArray(path) ? path.map(parseHash) : [undefined];
  const parsed = {
    receipt: typeof receipt === "string" && parseReceipt(receipt) ? receipt : undefined,
    entry: isEntry(entry) && isTimed(entry as object) ? (entry as object) : undefined,
    salt: parseHash(salt),
    path: hashes.includes(undefined) ? undefined : (hashes as Buffer[]),
    segment: typeof segment === "string" ? parseSegment(segment) : undefined,
    proof: typeof proof === "string" ? parseTreeProof(proof) : undefined,
  };
  const malformed = Object.entries(parsed).find(([, value]) => value === undefined);
  if (malformed !== undefined) return `its member \`${malformed[0]}\` is malformed or missing`;
  const { proof: tree, ...rest } = parsed as Required<{ [K in keyof typeof parsed]: NonNullable<(typeof parsed)[K]> }>;
  return { ...rest, ...tree };
}

/** Whether it is an object that every language writes the same in the form of RFC 8785. */
function isEntry(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return depth > 0;
  if (depth === depthMax) return false;
  if (Array.isArray(value)) return depth > 0 && value.every((one) => isEntry(one, depth + 1));
  return Object.entries(value).every(([name, member]) => /^[A-Za-z]+$/.test(name) && isEntry(member, depth + 1));
}

/** Whether its time, if it has one, is a number. */
function isTimed({ at }: { readonly at?: unknown }): boolean {
  return at === undefined || (Number.isSafeInteger(at) && (at as number) >= 0);
}

/** Keyhole's own have three levels. */
const depthMax = 16;

/** 32 bytes of base64, as an encoder spells them. */
function parseHash(text: unknown): Buffer | undefined {
  return typeof text === "string" ? decodeBase64(text, 32) : undefined;
}

function parseSegment(text: string) {
  const [, lane = "", first, last, time, encoded] = segmentPattern.exec(text) ?? [];
  const [firstSeq, lastSeq, at] = [Number(first), Number(last), Number(time)];
  const root = parseHash(encoded);
  if (root === undefined || firstSeq > lastSeq || ![lastSeq, at].every(Number.isSafeInteger)) return undefined;
  return { text, lane, firstSeq, lastSeq, at, root };
}

const segmentPattern =
  /^keyhole audit segment v1\n([\w-]{1,64})\n([1-9]\d{0,15})-([1-9]\d{0,15})\n(\d{1,16})\n([0-9A-Za-z+/]{43}=)\n$/;

function parseTreeProof(text: string) {
  const end = text.indexOf("\n\n");
  const [format, at = "", ...hashes] = text.slice(0, Math.max(end, 0)).split("\n");
  const [, index] = /^index (0|[1-9]\d{0,15})$/.exec(at) ?? [];
  const treePath = hashes.map(parseHash);
  if (format !== treeProofFormat || index === undefined || treePath.includes(undefined)) return undefined;
  return { index: Number(index), treePath: treePath as Buffer[], note: text.slice(end + 2) };
}
