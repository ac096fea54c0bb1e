import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

/*
 * Signed notes (https://c2sp.org/signed-note): a text, a blank line, and a line for each signature:
 *
 *   — NAME BASE64(4 bytes of the key's id, signature)
 *
 * Signatures are Ed25519 over the text with its last newline. The id is the first 4 bytes of SHA-256(NAME, newline,
 * 0x01, public key). A verifier key spells all of that: NAME+HEX(id)+BASE64(0x01, public key).
 *
 * A witness's signature (https://c2sp.org/tlog-cosignature) has 0x04 in place of 0x01. It is 8 bytes of a time, in
 * seconds since 1970, and Ed25519 over two lines, `cosignature/v1` and `time TIME`, with the text behind them.
 */

const ed25519 = Buffer.of(0x01);
const cosignature = Buffer.of(0x04);

/** Who signed: what a reader must know beforehand. */
export type Verifier = { readonly name: string; readonly id: Buffer; readonly publicKey: Buffer };
export type Signer = Verifier & { readonly privateKey: KeyObject };

/** @param seed - 32 random bytes, the Ed25519 private key */
export function signerOf(name: string, seed: Uint8Array): Signer {
  return makeSigner(name, seed, ed25519);
}

/** The same for a witness. */
export function witnessOf(name: string, seed: Uint8Array): Signer {
  return makeSigner(name, seed, cosignature);
}

function makeSigner(name: string, seed: Uint8Array, type: typeof ed25519): Signer {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: "der", type: "pkcs8" });
  const publicKey = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(spki.length);
  return { name, publicKey, id: keyId(name, publicKey, type), privateKey };
}

/** A verifier key as text. */
export function encodeVerifier(verifier: Verifier): string {
  return encodeKey(verifier, ed25519);
}

/** The same for the key of a witness. */
export function encodeWitness(verifier: Verifier): string {
  return encodeKey(verifier, cosignature);
}

function encodeKey({ name, id, publicKey }: Verifier, type: typeof ed25519): string {
  return `${name}+${id.toString("hex")}+${Buffer.concat([type, publicKey]).toString("base64")}`;
}

/** A verifier key from its text; undefined if it is not one, or not for Ed25519. */
export function parseVerifier(text: string): Verifier | undefined {
  return parseKey(text, ed25519);
}

/** The same for the key of a witness. */
export function parseWitness(text: string): Verifier | undefined {
  return parseKey(text, cosignature);
}

function parseKey(text: string, type: typeof ed25519): Verifier | undefined {
  const [, name = "", id, encoded = ""] = /^([^\s\x85+]+)\+([0-9a-f]{8})\+([0-9A-Za-z+/]+=*)$/.exec(text) ?? [];
  const key = decodeBase64(encoded);
  if (key?.length !== 33 || key[0] !== type[0]) return undefined;
  const publicKey = key.subarray(1);
  const expected = keyId(name, publicKey, type);
  return expected.toString("hex") === id ? { name, publicKey, id: expected } : undefined;
}

/** @param text - ends with a newline */
export function signNote(text: string, { name, id, privateKey }: Signer): string {
  return `${text}\n${signatureLine(name, [id, sign(null, Buffer.from(text), privateKey)])}`;
}

/** A witness's signature of a note's text, as a line. @param at - epoch milliseconds */
export function cosign(text: string, { name, id, privateKey }: Signer, at: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(Math.floor(at / 1000)));
  const signed = Buffer.from(cosignedText(time, text));
  return signatureLine(name, [id, time, sign(null, signed, privateKey)]);
}

function cosignedText(time: Buffer, text: string): string {
  return `cosignature/v1\ntime ${time.readBigUInt64BE()}\n${text}`;
}

function signatureLine(name: string, parts: readonly Buffer[]): string {
  return `— ${name} ${Buffer.concat(parts).toString("base64")}\n`;
}

/** The text of a note, whoever signed it; undefined if it is malformed. */
export function noteText(note: string): string | undefined {
  return parseNote(note)?.text;
}

/** A note with at most one signature by each of these, and with no others. It must not be malformed. */
export function signedOnlyBy(note: string, verifiers: readonly Verifier[]): string {
  const { text = "", signatures = [] } = parseNote(note) ?? {};
  const kept = verifiers.map((one) => signatures.find(isBy(one))).filter((one) => one !== undefined);
  return `${text}\n${kept.map(({ line }) => `${line}\n`).join("")}`;
}

/**
 * The text of a note that one of these signed; signatures of others do not count.
 * @returns undefined if it is malformed, none of them signed it, or the signature of one of them is wrong
 */
export function openNote(note: string, verifiers: readonly Verifier[]): string | undefined {
  const parsed = parseNote(note);
  if (parsed === undefined) return undefined;
  const { text, signatures } = parsed;
  const known = verifiers.flatMap((one) => signatures.filter(isBy(one)).map(({ bytes }) => isSigned(one, text, bytes)));
  return known.length > 0 && known.every(Boolean) ? text : undefined;
}

/**
 * When a witness cosigned a note, in epoch milliseconds.
 * @returns undefined if it is malformed, or has no signature of the witness, or a wrong one
 */
export function cosignedAt(note: string, witness: Verifier): number | undefined {
  const { text, signatures = [] } = parseNote(note) ?? {};
  const times = signatures.filter(isBy(witness)).map(({ bytes }) => {
    if (bytes.length !== 72) return undefined;
    const time = bytes.readBigUInt64BE();
    const isRight = isSigned(witness, cosignedText(bytes, text ?? ""), bytes.subarray(8));
    return isRight && time < 8_640_000_000_000n ? Number(time) * 1000 : undefined;
  });
  return times.includes(undefined) ? undefined : times[0];
}

/** Whether the line is the signature of a note by the witness with this verifier key. */
export function isCosigned({ witness, line, note }: { readonly [K in "witness" | "line" | "note"]: string }): boolean {
  const verifier = parseWitness(witness);
  return verifier !== undefined && /^.+\n$/.test(line) && cosignedAt(`${note}${line}`, verifier) !== undefined;
}

type Signature = {
  readonly line: string;
  readonly name: string | undefined;
  readonly id: Buffer;
  readonly bytes: Buffer;
};

const isBy =
  ({ name, id }: Verifier) =>
  (one: Signature) =>
    one.name === name && one.id.equals(id);

/** Whether an Ed25519 signature is by this key. */
export function isSigned({ publicKey }: Pick<Verifier, "publicKey">, content: string | Uint8Array, signature: Buffer) {
  const key = createPublicKey({ key: Buffer.concat([spki, publicKey]), format: "der", type: "spki" });
  return verify(null, Buffer.from(content), key, signature);
}

/** Undefined if it is not a note. */
function parseNote(note: string): { readonly text: string; readonly signatures: readonly Signature[] } | undefined {
  const end = note.lastIndexOf("\n\n") + 1;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those that a note must not have
  if (end === 0 || /[\x00-\x09\x0b-\x1f]/.test(note) || !note.isWellFormed()) return undefined;
  if (Buffer.byteLength(note) > noteBytesMax) return undefined;
  const signatures: Signature[] = [];
  const lines = note.slice(end + 1).split("\n");
  if (lines.pop() !== "" || lines.length === 0) return undefined;
  for (const line of lines) {
    const [, name, encoded = ""] = /^— ([^\s\x85+]+) ([0-9A-Za-z+/]+=*)$/.exec(line) ?? [];
    const bytes = decodeBase64(encoded);
    if (bytes === undefined || bytes.length < 5) return undefined;
    signatures.push({ line, name, id: bytes.subarray(0, 4), bytes: bytes.subarray(4) });
  }
  return { text: note.slice(0, end), signatures };
}

function keyId(name: string, publicKey: Buffer, type = ed25519): Buffer {
  const hash = new Bun.CryptoHasher("sha256").update(`${name}\n`).update(type).update(publicKey).digest();
  return hash.subarray(0, 4);
}

/** Undefined unless it is base64, as an encoder spells it, of that many bytes. */
export function decodeBase64(text: string, length?: number): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === (length ?? bytes.length) && bytes.toString("base64") === text ? bytes : undefined;
}

/** Room for 16 signatures of any kind. */
export const noteBytesMax = 128 * 1024;
/** What DER puts before the 32 bytes of a private and of a public key (RFC 8410). */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex");
const spki = Buffer.from("302a300506032b6570032100", "hex");
