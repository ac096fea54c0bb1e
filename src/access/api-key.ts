import { randomBytes as systemRandomBytes, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";

/*
 * An API key as text, 52 ASCII characters (CONTRACT, keys). Base62 digits are 0-9, A-Z, a-z, in this order of worth.
 *
 *   offset  length  field
 *        0       3  "kh_"
 *        3      43  random base62, 256.03 bits
 *       46       6  CRC-32 (that of zlib and PNG) of the 46 characters before, in base62, most significant digit first
 *
 * The checksum guards against typing errors and false finds of secret scanners. It is no secret and proves nothing.
 */

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const prefix = "kh_";
const checkedLength = 46;
const grammar = /^kh_[0-9A-Za-z]{49}$/;

/**
 * A new API key. Each of its 43 random characters is uniform: bytes from 248 on, which would favour the first eight
 * digits, are thrown away.
 *
 * @param randomBytes - called with the number of bytes wanted, until enough were of use
 */
export function mintKey(randomBytes: (length: number) => Uint8Array = systemRandomBytes): string {
  let text = prefix;
  while (text.length < checkedLength) {
    for (const byte of randomBytes(checkedLength - text.length)) {
      if (byte < 4 * digits.length) text += digits[byte % digits.length];
    }
  }
  return text + checksumOf(text);
}

/** Whether this text can be an API key: grammar and checksum, without a database. */
export function isWellFormedKey(text: string): boolean {
  return grammar.test(text) && checksumOf(text.slice(0, checkedLength)) === text.slice(checkedLength);
}

/**
 * What is stored of an API key: HMAC-SHA-256 under the pepper, 32 bytes. With a plain SHA-256, whoever writes to the
 * database could insert a key of their own making.
 *
 * @param pepper - the system key of this name, 32 bytes
 */
export function digestKey(pepper: Uint8Array, text: string): Buffer {
  return new Bun.CryptoHasher("sha256", pepper).update(text).digest();
}

/** Whether two digests are equal, in a time that does not depend on where they differ. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function checksumOf(text: string): string {
  let rest = crc32(text);
  let spelled = "";
  for (let place = 0; place < 6; place++) {
    spelled = digits[rest % digits.length] + spelled;
    rest = Math.floor(rest / digits.length);
  }
  return spelled;
}
