import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

/*
 * Signed notes (https://c2sp.org/signed-note): a text, a blank line, and a line for each signature:
 *
 *   — NAME BASE64(4 bytes of the key's id, signature)
 *
 * Signatures are Ed25519 over the text with its last newline. The id is the first 4 bytes of SHA-256(NAME, newline,
 * 0x01, public key). A verifier key spells all of that: NAME+HEX(id)+BASE64(0x01, public key).
 */

const ed25519 = Buffer.of(0x01);

/** Who signed: what a reader must know beforehand. */
export type Verifier = { readonly name: string; readonly id: Buffer; readonly publicKey: Buffer };
export type Signer = Verifier & { readonly privateKey: KeyObject };

/** @param seed - 32 random bytes, the Ed25519 private key */
export function signerOf(name: string, seed: Uint8Array): Signer {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: "der", type: "pkcs8" });
  const publicKey = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(spki.length);
  return { name, publicKey, id: keyId(name, publicKey), privateKey };
}

/** A verifier key as text. */
export function encodeVerifier({ name, id, publicKey }: Verifier): string {
  return `${name}+${id.toString("hex")}+${Buffer.concat([ed25519, publicKey]).toString("base64")}`;
}

/** A verifier key from its text; undefined if it is not one, or not for Ed25519. */
export function parseVerifier(text: string): Verifier | undefined {
  const [, name = "", id, encoded = ""] = /^([^\s+]+)\+([0-9a-f]{8})\+([0-9A-Za-z+/]+=*)$/.exec(text) ?? [];
  const key = decodeBase64(encoded);
  if (key?.length !== 33 || key[0] !== ed25519[0]) return undefined;
  const publicKey = key.subarray(1);
  const expected = keyId(name, publicKey);
  return expected.toString("hex") === id ? { name, publicKey, id: expected } : undefined;
}

/** @param text - ends with a newline */
export function signNote(text: string, { name, id, privateKey }: Signer): string {
  const signature = Buffer.concat([id, sign(null, Buffer.from(text), privateKey)]);
  return `${text}\n— ${name} ${signature.toString("base64")}\n`;
}

/**
 * The text of a note that one of these signed; signatures of others do not count.
 * @returns undefined if it is malformed, none of them signed it, or the signature of one of them is wrong
 */
export function openNote(note: string, verifiers: readonly Verifier[]): string | undefined {
  const end = note.lastIndexOf("\n\n") + 1;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those that a note must not have
  if (end === 0 || note.length > lengthMax || /[\x00-\x09\x0b-\x1f]/.test(note)) return undefined;
  const text = note.slice(0, end);
  const signed = new Set<Verifier>();
  const lines = note.slice(end + 1).split("\n");
  if (lines.pop() !== "" || lines.length === 0) return undefined;
  for (const line of lines) {
    const [, name, encoded = ""] = /^— ([^\s+]+) ([0-9A-Za-z+/]+=*)$/.exec(line) ?? [];
    const bytes = decodeBase64(encoded);
    if (bytes === undefined || bytes.length < 5) return undefined;
    const verifier = verifiers.find((one) => one.name === name && one.id.equals(bytes.subarray(0, 4)));
    if (verifier === undefined) continue;
    const key = createPublicKey({ key: Buffer.concat([spki, verifier.publicKey]), format: "der", type: "spki" });
    if (!verify(null, Buffer.from(text), key, bytes.subarray(4))) return undefined;
    signed.add(verifier);
  }
  return signed.size > 0 ? text : undefined;
}

function keyId(name: string, publicKey: Buffer): Buffer {
  const hash = new Bun.CryptoHasher("sha256").update(`${name}\n`).update(ed25519).update(publicKey).digest();
  return hash.subarray(0, 4);
}

/** Undefined if it is not spelled as an encoder spells it. */
function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}

/** Room for 16 signatures of any kind. */
const lengthMax = 128 * 1024;
/** What DER puts before the 32 bytes of a private and of a public key (RFC 8410). */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex");
const spki = Buffer.from("302a300506032b6570032100", "hex");
