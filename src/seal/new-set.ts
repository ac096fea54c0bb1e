import { hmac } from "../core/hash.ts";
import { listingFields, type SetIdentity, setAssociatedData } from "./associated-data.ts";
import { seal } from "./envelope.ts";
import type { DataKey } from "./keyring.ts";
import { comma, type SealedSet } from "./set.ts";

/** Seals a set. @param values - the JSON of each item in the listing's order, and what seals them; null for files */
export function sealSet(
  listingKey: Uint8Array,
  set: SetIdentity,
  listing: string,
  values: { readonly items: readonly Uint8Array[]; readonly dataKey: DataKey } | null,
): SealedSet {
  const generation = values?.dataKey.generation ?? 0;
  const listingMac = hmac(listingKey, listingFields(set, generation, listing));
  if (values === null) return { generation, listingMac, listing, sealed: null };
  const plaintext = encodeItems(values.items);
  const key = values.dataKey.subkey(set.kind);
  const sealed = seal(key, generation, setAssociatedData(set, listingMac), plaintext);
  plaintext.fill(0);
  return { generation, listingMac, listing, sealed };
}

/** Exported for tests. */
export function encodeItems(items: readonly Uint8Array[]): Buffer {
  const commas = Math.max(0, items.length - 1);
  const bytes = Buffer.allocUnsafe(items.reduce((sum, item) => sum + item.length, 4 + 4 * items.length + commas));
  let at = bytes.writeUInt32BE(items.length, 0);
  for (const item of items) at = bytes.writeUInt32BE(item.length, at);
  items.forEach((item, index) => {
    if (index > 0) bytes[at++] = comma;
    bytes.set(item, at);
    at += item.length;
  });
  return bytes;
}
