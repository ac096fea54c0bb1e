import { createCipheriv, createDecipheriv, createHash, type DecipherGCM, randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
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

/**
 * From how many bytes on a value is opened and hashed in slices: {@link openInSlices}, {@link sha256InSlices}. Below
 * it, waiting for a turn costs more than the work.
 */
export const slicedBytesMin = 256 * 1024;

/** Done in one turn: half a millisecond of hashing. With less, a large file waits for more turns than it takes time. */
const sliceBytes = 1024 * 1024;

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
 * {@link open} for a large value: after every MiB, some tenths of a millisecond, it lets others have a turn. The value
 * is opened in place: what is returned is part of `sealed`, which holds nothing sealed any more, and is zeroed where the
 * value does not open. `place` may not change before the promise settles.
 *
 * WebCrypto was measured for this and not taken. It decrypts in a thread of its own but copies what goes in and what
 * comes out on this one, 2 to 4 ms per 8 MiB, which is as much as the decryption. With eight of 8 MiB at once the
 * longest gap between two turns of a 1 ms timer was 26 ms, with eight times `open` 21 ms, with slices of 256 KiB 3 ms
 * (medians, Bun 1.4.5, two cores). An HTTP request beside them took 7 ms with WebCrypto, 0.3 ms with slices.
 *
 * @throws Fault as {@link open} does, as a rejection
 */
export async function openInSlices(key: Uint8Array, place: Uint8Array, sealed: Uint8Array): Promise<Buffer> {
  requireFrame(sealed);
  const bytes = ciphertextOf(sealed);
  const opened = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const opening = startOpening(key, place, sealed);
    for (let at = 0; at < opened.length; at += sliceBytes) {
      if (at > 0) await nextTurn();
      const slice = opening.update(opened.subarray(at, at + sliceBytes));
      opened.set(slice, at);
      slice.fill(0);
      discard(slice);
    }
    opening.final();
    return opened;
  } catch {
    opened.fill(0);
    throw doesNotOpen();
  }
}

/** Gives memory back that is nobody else's, at once: the collector would let dozens of slices gather. */
function discard({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/**
 * The SHA-256 of a large value in lower-case hex, in turns like {@link openInSlices}: 4 ms of work per 8 MiB.
 * Here too WebCrypto copies first: the longest gap was 27 ms, with slices of 256 KiB 1.5 ms.
 */
export async function sha256InSlices(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    if (at > 0) await nextTurn();
    hash.update(bytes.subarray(at, at + sliceBytes));
  }
  return hash.digest("hex");
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
