import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Fault } from "../core/fault.ts";

/*
 * A sealed value, envelope version 1: 34 bytes more than its plaintext.
 *
 *   offset  bytes  field
 *        0      1  version: 01
 *        1      1  suite: 01, AES-256-GCM
 *        2      4  generation of the data key, big endian; 0 or the format for a root key (`keyring.ts`)
 *        6     12  nonce, random
 *       18      n  ciphertext, as long as the plaintext
 *   18 + n     16  tag
 *
 * Associated data: bytes 0 to 5, then what the value belongs to (`associated-data.ts`).
 */

const version = 1;
const suite = 1;
const nonceAt = 6;
const ciphertextAt = 18;
const tagBytes = 16;
const cipher = "aes-256-gcm";
const gcm = { authTagLength: tagBytes } as const;

/** A sealed value is this many bytes longer than its plaintext. */
export const overheadBytes = ciphertextAt + tagBytes;

/**
 * Seals a plaintext with a random nonce. One key may therefore seal at most 2³¹ times (SP 800-38D, 8.3, allows 2³²).
 * @param generation - of the data key that `key` is a subkey of, from 1; for a root key see `keyring.ts`
 */
export function seal(key: Uint8Array, generation: number, associatedData: Uint8Array, plaintext: Uint8Array): Buffer {
  return sealWithChosenNonceForVectors(randomBytes(ciphertextAt - nonceAt), key, generation, associatedData, plaintext);
}

/** {@link seal} for the format's vectors only: a nonce used twice with one key reveals plaintext and allows forgery. */
export function sealWithChosenNonceForVectors(
  nonce: Uint8Array,
  key: Uint8Array,
  generation: number,
  associatedData: Uint8Array,
  plaintext: Uint8Array,
): Buffer {
  if (generation !== generation >>> 0) throw new RangeError("a generation is a whole number of 32 bits");
  if (nonce.length !== ciphertextAt - nonceAt) throw new RangeError("a nonce has 12 bytes");
  const sealed = Buffer.allocUnsafe(overheadBytes + plaintext.length);
  sealed[0] = version;
  sealed[1] = suite;
  sealed.writeUInt32BE(generation, 2);
  sealed.set(nonce, nonceAt);
  const sealing = createCipheriv(cipher, key, nonce, gcm);
  sealing.setAAD(sealed.subarray(0, nonceAt));
  sealing.setAAD(associatedData);
  sealed.set(sealing.update(plaintext), ciphertextAt);
  sealing.final();
  sealed.set(sealing.getAuthTag(), ciphertextAt + plaintext.length);
  return sealed;
}

/** The verified plaintext. @throws Fault `decryption_failed` if the key, the associated data or any byte differs */
export function open(key: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array): Buffer {
  let opened: Buffer | undefined;
  try {
    const { ciphertext, opening } = startOpening(key, associatedData, sealed);
    opened = opening.update(ciphertext);
    opening.final();
    return opened;
  } catch {
    // `update` returned unverified plaintext: erase it.
    opened?.fill(0);
    // Without a reason or cause, so that neither logs nor responses tell kinds of tampering apart.
    throw new Fault("decryption_failed", "a sealed value does not open with this key and associated data");
  }
}

/** Starts to open a sealed value. Whatever `opening` gives out is unverified until its `final` has returned. */
export function startOpening(key: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array) {
  requireFrame(sealed);
  const opening = createDecipheriv(cipher, key, sealed.subarray(nonceAt, ciphertextAt), gcm);
  opening.setAAD(sealed.subarray(0, nonceAt));
  opening.setAAD(associatedData);
  opening.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  return { ciphertext: sealed.subarray(ciphertextAt, sealed.length - tagBytes), opening };
}

/**
 * The generation of the data key that sealed a value, according to its header, which is verified when the value opens.
 * @throws Fault `decryption_failed` if it is not an envelope of version 1 and suite 1
 */
export function generationOf(sealed: Uint8Array): number {
  requireFrame(sealed);
  return new DataView(sealed.buffer, sealed.byteOffset, sealed.byteLength).getUint32(2);
}

/** What `work` returns; undefined if something does not decrypt. */
export function orUndefined<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Fault && error.code === "decryption_failed") return undefined;
    throw error;
  }
}

function requireFrame(sealed: Uint8Array): void {
  if (sealed.length < overheadBytes) throw new Fault("decryption_failed", "a sealed value is too short");
  if (sealed[0] !== version || sealed[1] !== suite) {
    throw new Fault("decryption_failed", "a sealed value has an unknown version or suite");
  }
}
