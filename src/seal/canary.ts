import { randomBytes } from "node:crypto";
import { hmac } from "../core/hash.ts";

/*
 * The coin of an item in a listing says whether the item is a canary: bait, whose every use is on record. A coin is 8
 * random bytes in base64url, 11 characters. Its item is a canary if the lowest bit of the first byte of
 *
 *   HMAC-SHA-256(listing key, "keyhole canary v1 " and the coin)
 *
 * is 1. Each write draws a new coin, for canaries and for all others, until the bit fits. So nobody who only has the
 * database can tell a canary, and the listing's mac keeps coins from being changed. An item without a coin is none.
 */

/** Draws a coin. */
export function newCoin(listingKey: Uint8Array, canary: boolean): string {
  for (;;) {
    const coin = randomBytes(coinBytes).toString("base64url");
    if (isCanary(listingKey, { coin }) === canary) return coin;
  }
}

const coinBytes = 8;

/** Whether an item is a canary. */
export function isCanary(listingKey: Uint8Array, { coin }: { readonly coin?: string | undefined }): boolean {
  return coin !== undefined && ((hmac(listingKey, `keyhole canary v1 ${coin}`)[0] ?? 0) & 1) === 1;
}
