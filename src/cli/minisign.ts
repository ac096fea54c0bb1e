import { decodeBase64, isSigned } from "../record/note.ts";

/*
 * Signatures of minisign (https://jedisct1.github.io/minisign/). A public key is base64 of `Ed`, 8 bytes of the key's
 * id and an Ed25519 key, under a comment if it is a file. A signature has four lines:
 *
 *   untrusted comment: TEXT
 *   BASE64(`ED`, the key's id, Ed25519 over BLAKE2b-512 of the content)
 *   trusted comment: TEXT
 *   BASE64(Ed25519 over the signature before it and the trusted comment)
 *
 * The older form `Ed`, which signs the content itself, is refused.
 */

export type MinisignKey = { readonly id: Buffer; readonly publicKey: Buffer };

/** @param text - a line of base64, or the file of a key. Undefined if it is no public key */
export function parseMinisignKey(text: string): MinisignKey | undefined {
  const bytes = decodeBase64(text.trim().split("\n").at(-1)?.trim() ?? "", 42);
  if (bytes?.toString("latin1", 0, 2) !== "Ed") return undefined;
  return { id: bytes.subarray(2, 10), publicKey: bytes.subarray(10) };
}

/** Returns the trusted comment of a signature; undefined if the key did not sign this content with it. */
export function verifyMinisign(key: MinisignKey, content: Uint8Array, signature: string): string | undefined {
  const form = /^untrusted comment: .*\n(\S+)\ntrusted comment: (.*)\n(\S+)\n?$/;
  const [, first = "", comment = "", last = ""] = form.exec(signature) ?? [];
  const signed = decodeBase64(first, 74);
  const whole = decodeBase64(last, 64);
  if (signed === undefined || whole === undefined || signed.toString("latin1", 0, 2) !== "ED") return undefined;
  if (!signed.subarray(2, 10).equals(key.id)) return undefined;
  const ofContent = signed.subarray(10);
  const hash = new Bun.CryptoHasher("blake2b512").update(content).digest();
  const isWhole = isSigned(key, Buffer.concat([ofContent, Buffer.from(comment)]), whole);
  return isWhole && isSigned(key, hash, ofContent) ? comment : undefined;
}
