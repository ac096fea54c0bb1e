import { timingSafeEqual } from "node:crypto";

/** HMAC-SHA-256, 32 bytes. */
export function hmac(key: Uint8Array, content: string | Uint8Array): Buffer {
  return new Bun.CryptoHasher("sha256", key).update(content).digest();
}

/** HMAC-SHA-256 over a list of fields, the first of which is a label. JSON of a flat array is unambiguous. */
export function macOf(key: Uint8Array, fields: readonly unknown[]): Buffer {
  return hmac(key, JSON.stringify(fields));
}

/** Compares two macs in constant time. */
export function isSameMac(a: Uint8Array | null | undefined, b: Uint8Array | null | undefined): boolean {
  return a != null && a.length === b?.length && timingSafeEqual(a, b);
}

/** SHA-256 in lower-case hex. */
export function sha256Of(content: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex");
}
