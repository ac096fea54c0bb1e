import { createCipheriv, createDecipheriv, type DecipherGCM, randomBytes } from "node:crypto";
import { Fault } from "../fault.ts";

/*
 * A sealed value, envelope version 1: 34 bytes more than its plaintext.
 *
 *   offset  bytes  field
 *        0      1  version: 01
 *        1      1  suite: 01, AES-256-GCM
 *        2      4  generation of the data key, big endian; 0 where a root's wrap key sealed it
 *        6     12  nonce, random
 *       18      n  ciphertext, as long as the plaintext
 *   18 + n     16  tag
 *
 * Associated data: bytes 0 to 5, then the place the value belongs to (`place.ts`).
 */

const version = 1;
const suite = 1;
const nonceAt = 6;
const ciphertextAt = 18;
const tagBytes = 16;
const keyBytes = 32;
const cipher = "aes-256-gcm";
const gcm = { authTagLength: tagBytes } as const;

/** How many bytes longer a sealed value is than its plaintext. */
export const overheadBytes = ciphertextAt + tagBytes;

/** What {@link openInPieces} gives at a time: a multiple of 3, so that pieces of base64 join without padding between them. */
export const pieceBytes = 192 * 1024;

/**
 * Seals a plaintext with a nonce of its own. Nonces are random, so one key may seal at most 2³¹ times
 * (SP 800-38D, 8.3, allows 2³²).
 *
 * @param key - 32 bytes
 * @param generation - of the data key that `key` is a subkey of, from 1 on; 0 for a root's wrap key
 * @param place - what to seal it to, from `place.ts`
 */
export function seal(key: Uint8Array, generation: number, place: Uint8Array, plaintext: Uint8Array): Buffer {
  return sealWithChosenNonceForVectors(randomBytes(ciphertextAt - nonceAt), key, generation, place, plaintext);
}

/**
 * What {@link seal} does, with a nonce from outside. For the format's vectors and nothing else: a nonce used twice with
 * one key gives away both plaintexts' difference and the means to forge.
 */
export function sealWithChosenNonceForVectors(
  nonce: Uint8Array,
  key: Uint8Array,
  generation: number,
  place: Uint8Array,
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
  sealing.setAAD(place);
  sealed.set(sealing.update(plaintext), ciphertextAt);
  sealing.final();
  sealed.set(sealing.getAuthTag(), ciphertextAt + plaintext.length);
  return sealed;
}

/**
 * The plaintext of a sealed value, all of it verified.
 *
 * @param key - the subkey of the generation that {@link generationOf} names; no other is tried
 * @throws Fault `decryption_failed`, whatever is wrong: the key, the place, any byte, the length
 */
export function open(key: Uint8Array, place: Uint8Array, sealed: Uint8Array): Buffer {
  requireFrame(sealed);
  let opened: Buffer | undefined;
  try {
    const opening = startOpening(key, place, sealed);
    opened = opening.update(ciphertextOf(sealed));
    opening.final();
    return opened;
  } catch {
    // What `update` gave is not verified: it stays here, and does not linger.
    opened?.fill(0);
    throw doesNotOpen();
  }
}

/**
 * {@link open} piece by piece, for a large value of which there shall be no second copy. What `take` is given is not
 * verified before this returns, and nothing made of it may leave before; each piece is zeroed once it was taken.
 *
 * @throws Fault as {@link open} does
 */
export function openInPieces(
  key: Uint8Array,
  place: Uint8Array,
  sealed: Uint8Array,
  take: (piece: Buffer) => void,
): void {
  requireFrame(sealed);
  const bytes = ciphertextOf(sealed);
  try {
    const opening = startOpening(key, place, sealed);
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

/** Gives memory back that is nobody else's, at once: the collector would let dozens of pieces gather. */
export function discard({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/**
 * The generation of the data key that a sealed value says it was sealed with. Not verified until the value opens: good
 * for choosing the key and for nothing else.
 *
 * @throws Fault `decryption_failed` when it is not an envelope of version 1 and suite 1
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

function startOpening(key: Uint8Array, place: Uint8Array, sealed: Uint8Array): DecipherGCM {
  const opening = createDecipheriv(cipher, key, sealed.subarray(nonceAt, ciphertextAt), gcm);
  opening.setAAD(sealed.subarray(0, nonceAt));
  opening.setAAD(place);
  opening.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  return opening;
}

function ciphertextOf(sealed: Uint8Array): Uint8Array {
  return sealed.subarray(ciphertextAt, sealed.length - tagBytes);
}

/** Says nothing of why and carries no cause: neither log nor answer tells one kind of tampering from another. */
function doesNotOpen(): Fault {
  return new Fault("decryption_failed", "a sealed value does not open with this key at this place");
}
