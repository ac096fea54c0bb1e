import { randomBytes as systemRandomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { hmac } from "../../core/hash.ts";

/*
 * An API key as text: 52 ASCII characters. Base62 digits in ascending value are 0-9, A-Z, a-z.
 *
 *   offset  length  field
 *        0       3  "kh_"
 *        3      43  random base62, 256.03 bits
 *       46       6  CRC-32 (as in zlib and PNG) of the first 46 characters, in base62, most significant digit first
 *
 * The checksum catches typing errors and false positives of secret scanners. Anyone can compute it, so it proves
 * nothing.
 */

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
export const prefix = "kh_";
export const checkedLength = 46;
export const checksumLength = 6;
const grammar = /^kh_[0-9A-Za-z]{49}$/;

/**
 * Makes a new API key. Random bytes above 247 are discarded, because they would favour the first eight digits.
 * @param randomBytes - called with the number of bytes still needed, until the key is complete
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

/** Whether the text has the grammar and the checksum of an API key. */
export function isWellFormedKey(text: string): boolean {
  return grammar.test(text) && checksumOf(text.slice(0, checkedLength)) === text.slice(checkedLength);
}

/**
 * The digest stored for an API key: HMAC-SHA-256 under the pepper, 32 bytes. With a plain SHA-256, anyone who can write
 * to the database could insert a key of their own.
 */
export function digestKey(pepper: Uint8Array, text: string): Buffer {
  return hmac(pepper, text);
}

function checksumOf(text: string): string {
  let rest = crc32(text);
  let checksum = "";
  while (checksum.length < checksumLength) {
    checksum = digits[rest % digits.length] + checksum;
    rest = Math.floor(rest / digits.length);
  }
  return checksum;
}
