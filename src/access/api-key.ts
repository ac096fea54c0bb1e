import { randomBytes as systemRandomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { hmac } from "../core/hash.ts";
import { Refused } from "../core/refused.ts";

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
const prefix = "kh_";
const checkedLength = 46;
const checksumLength = 6;
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
 * The API keys in a text, each once: whatever has the grammar and the checksum. The text may be UTF-16 or UTF-32, as
 * Windows PowerShell writes it: there, a key is its characters with zero bytes between them.
 * @throws Refused `bound` if it has more than 10,000 keys
 */
export async function findKeys(chunks: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const found = new Set<string>();
  let rest = "";
  for await (const chunk of chunks) {
    const text = rest + Buffer.from(chunk).toString("latin1").replaceAll("\0", "");
    for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + 1)) {
      const candidate = text.slice(at, at + checkedLength + checksumLength);
      if (isWellFormedKey(candidate)) found.add(candidate);
    }
    if (found.size > foundMax) {
      const words = `The text has more than ${foundMax} keys: give it in parts. Nothing was looked up or revoked.`;
      throw new Refused("bound", words);
    }
    rest = text.slice(1 - checkedLength - checksumLength);
  }
  return [...found];
}

const foundMax = 10_000;

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
