import { randomBytes } from "node:crypto";
import { hmac } from "../core/hash.ts";

/*
 * The coin of an item in a listing says whether the item is a canary: bait, whose every use is on record; and whether it
 * is for machines only: no person reads its value. A coin is 12 random bytes in base64url, 16 characters. It says yes
 * if the lowest bit of the first byte of
 *
 *   HMAC-SHA-256(listing key, "keyhole canary v1 " or "keyhole machines only v1 ", and the coin)
 *
 * is 1. Each write draws a new coin, for marked items and for all others, until the bits fit. So nobody who only has the
 * database can tell a mark, and the listing's mac keeps coins from being changed. An item without a coin has no mark. A
 * coin of 11 characters, from before there was a second mark, says only whether its item is a canary.
 */

type Coined = { readonly coin?: string | undefined };

/** Draws a coin. */
export function newCoin(listingKey: Uint8Array, canary: boolean, machinesOnly = false): string {
  for (;;) {
    const coin = randomBytes(coinBytes).toString("base64url");
    if (isCanary(listingKey, { coin }) === canary && isMachinesOnly(listingKey, { coin }) === machinesOnly) return coin;
  }
}

const [coinBytes, coinLength] = [12, 16];

/** Whether an item is a canary. */
export function isCanary(listingKey: Uint8Array, { coin }: Coined): boolean {
  return coin !== undefined && says(listingKey, "canary", coin);
}

/** Whether no person may read the value of an item. */
export function isMachinesOnly(listingKey: Uint8Array, { coin }: Coined): boolean {
  return coin?.length === coinLength && says(listingKey, "machines only", coin);
}

function says(listingKey: Uint8Array, mark: string, coin: string): boolean {
  return ((hmac(listingKey, `keyhole ${mark} v1 ${coin}`)[0] ?? 0) & 1) === 1;
}
