import { createCipheriv, createDecipheriv, type DecipherGCM, randomBytes } from "node:crypto";
import { Fault } from "../fault.ts";

/*
 * A sealed value, envelope version 1: 34 bytes more than its plaintext.
 *
 *   offset  bytes  field
 *        0      1  version: 01
 *        1      1  suite: 01, AES-256-GCM
 *        2      4  generation of the data key, big endian; 0 for the wrap key of a root key
 *        6     12  nonce, random
 *       18      n  ciphertext, as long as the plaintext
 *   18 + n     16  tag
 *
 * Associated data: bytes 0 to 5, then what the value belongs to (`place.ts`).
 */

const version = 1;
const suite = 1;
const nonceAt = 6;
const ciphertextAt = 18;
const tagBytes = 16;
const keyBytes = 32;
const cipher = "aes-256-gcm";
const gcm = { authTagLength: tagBytes } as const;

/** A sealed value is this many bytes longer than its plaintext. */
export const overheadBytes = ciphertextAt + tagBytes;

/** Size of the pieces of {@link openInPieces}: a multiple of 3, so that their base64 can be joined. */
export const pieceBytes = 192 * 1024;

/**
 * Seals a plaintext with a random nonce. One key may therefore seal at most 2³¹ times (SP 800-38D, 8.3, allows 2³²).
 *
 * @param key - 32 bytes
 * @param generation - of the data key that `key` is a subkey of, from 1; 0 for the wrap key of a root key
 * @param associatedData - from `place.ts`; the same bytes are needed to open the value
 */
export function seal(key: Uint8Array, generation: number, associatedData: Uint8Array, plaintext: Uint8Array): Buffer {
  return sealWithChosenNonceForVectors(randomBytes(ciphertextAt - nonceAt), key, generation, associatedData, plaintext);
}

/**
 * {@link seal} with a given nonce, only for the format's vectors: a nonce used twice with one key reveals the difference of
 * the two plaintexts and lets an attacker forge values.
 */
export function sealWithChosenNonceForVectors(
  nonce: Uint8Array,
  key: Uint8Array,
  generation: number,
  associatedData: Uint8Array,
  plaintext: Uint8Array,
): Buffer {
  if (key.length !== keyBytes) throw new RangeError("a sealing key has 32 bytes");
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

/**
 * Opens a sealed value and returns the verified plaintext.
 *
 * @param key - the subkey of the generation that {@link generationOf} returns
 * @throws Fault `decryption_failed` whatever differs: the key, the associated data, any byte, the length
 */
export function open(key: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array): Buffer {
  requireFrame(sealed);
  let opened: Buffer | undefined;
  try {
    const opening = startOpening(key, associatedData, sealed);
    opened = opening.update(ciphertextOf(sealed));
    opening.final();
    return opened;
  } catch {
    // `update` returned unverified plaintext: erase it.
    opened?.fill(0);
    throw doesNotOpen();
  }
}

/**
 * {@link open} in pieces, so that memory never holds a second copy of a large value. The pieces are not verified until this
 * returns, and nothing derived from them may leave before. Each piece is zeroed after `take` returns.
 *
 * @throws Fault as {@link open}
 */
export function openInPieces(
  key: Uint8Array,
  associatedData: Uint8Array,
  sealed: Uint8Array,
  take: (piece: Buffer) => void,
): void {
  requireFrame(sealed);
  const bytes = ciphertextOf(sealed);
  try {
    const opening = startOpening(key, associatedData, sealed);
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = opening.update(bytes.subarray(at, at + pieceBytes));
      take(piece);
      piece.fill(0);
      discard(piece);
    }
    opening.final();
  } catch {
    throw doesNotOpen();
  }
}

/** Frees a buffer that nothing else uses. The garbage collector alone would let dozens of pieces pile up. */
export function discard({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/**
 * The generation of the data key that sealed a value, according to its header. The header is not verified until the value
 * opens, so use this only to choose the key.
 *
 * @throws Fault `decryption_failed` if it is not an envelope of version 1 and suite 1
 */
export function generationOf(sealed: Uint8Array): number {
  requireFrame(sealed);
  return new DataView(sealed.buffer, sealed.byteOffset, sealed.byteLength).getUint32(2);
}

function requireFrame(sealed: Uint8Array): void {
  if (sealed.length < overheadBytes) throw new Fault("decryption_failed", "a sealed value is too short");
  if (sealed[0] !== version || sealed[1] !== suite) {
    throw new Fault("decryption_failed", "a sealed value has an unknown version or suite");
  }
}

function startOpening(key: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array): DecipherGCM {
  const opening = createDecipheriv(cipher, key, sealed.subarray(nonceAt, ciphertextAt), gcm);
  opening.setAAD(sealed.subarray(0, nonceAt));
  opening.setAAD(associatedData);
  opening.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  return opening;
}

function ciphertextOf(sealed: Uint8Array): Uint8Array {
  return sealed.subarray(ciphertextAt, sealed.length - tagBytes);
}

/** Carries no reason and no cause, so that neither logs nor responses distinguish kinds of tampering. */
function doesNotOpen(): Fault {
  return new Fault("decryption_failed", "a sealed value does not open with this key and associated data");
}
