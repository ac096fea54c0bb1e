import { isUtf8 } from "node:buffer";
import { Fault } from "../core/fault.ts";
import { hmac, isSameMac } from "../core/hash.ts";
import { encodeFields, listingFields, type SetIdentity, setAssociatedData } from "./associated-data.ts";
import { generationOf, open } from "./envelope.ts";
import type { DataKey } from "./keyring.ts";

/*
 * A set: what a project holds of one kind in one environment, as one row.
 *
 * The listing is JSON in the clear: an array with one entry for each item, in byte order of the items' names. Its mac,
 * HMAC-SHA-256 under the listing key, covers the set's identity and version. The values are one envelope, whose
 * associated data contains the mac. Nothing in a set can be changed, moved, swapped or removed without the root key.
 *
 *   offset       bytes  the values, opened
 *        0           4  n, the number of items, big endian
 *        4          4n  the length of each item
 *   4 + 4n              the items, as JSON in UTF-8, with commas between them
 *
 * So the items of a whole set are the inside of a JSON array, and one item is a slice. The nth item belongs to the nth
 * entry of the listing.
 */

/** A set's row without its identity. `sealed` is null for files. */
export type SealedSet = {
  readonly generation: number;
  readonly listingMac: Buffer;
  readonly listing: string;
  readonly sealed: Buffer | null;
};

/**
 * Opened values: all items with their commas, where in `all` each begins (it ends one byte before the next), and views
 * of single ones. Zeroing `all` zeroes each.
 */
export type OpenedItems = {
  readonly all: Buffer;
  readonly count: number;
  readonly starts: Uint32Array;
  readonly item: (index: number) => Buffer;
};

/** Checks that a listing was written as this version of this set. @throws Fault `decryption_failed` */
export function verifyListing(
  listingKey: Uint8Array,
  set: SetIdentity,
  { generation, listingMac, listing }: Omit<SealedSet, "sealed">,
): void {
  if (isSameMac(listingMac, hmac(listingKey, listingFields(set, generation, listing)))) return;
  throw new Fault("decryption_failed", `${describe(set)}: its listing was not written by Keyhole`);
}

/** The key and the associated data that open a set's values. @throws Fault `decryption_failed` */
export function setOpener(
  set: SetIdentity,
  { generation, listingMac, sealed }: Omit<SealedSet, "listing">,
  dataKey: DataKey,
): { readonly open: () => OpenedItems } {
  if (sealed === null || generationOf(sealed) !== generation) {
    throw new Fault("decryption_failed", `${describe(set)}: its values are missing or of another generation`);
  }
  const key = dataKey.subkey(set.kind);
  const associatedData = setAssociatedData(set, listingMac);
  return { open: () => decodeItems(open(key, associatedData, sealed)) };
}

/** Names a set to the operator. */
function describe({ projectId, kind, environment }: SetIdentity): string {
  return `the ${kind} of project ${projectId} in ${environment}`;
}

/** Who wrote a version of a set, and when. The project's slug is left out, because a rename changes it. */
export type SetVersion = Omit<SetIdentity, "organizationId" | "slug"> & {
  readonly at: number;
  readonly actor: string;
  readonly names: string;
  /** Of the listing; null if SQL had removed the version before its record covered it. */
  readonly listingMac: Uint8Array | null;
};

/** The mac of a version's record. @throws Fault `decryption_failed` for a record that Keyhole cannot have written */
export function versionMac(listingKey: Uint8Array, version: SetVersion): Buffer {
  const content = version.listingMac ?? Buffer.alloc(0);
  return hmac(listingKey, encodeFields("version 2", ...versionFields(version), content));
}

/** The same as 0.2.0 made it, without the content. Only the upgrade of its databases believes it. */
export function versionMacOf020(listingKey: Uint8Array, version: SetVersion): Buffer {
  return hmac(listingKey, encodeFields("version", ...versionFields(version)));
}

function versionFields({ projectId, kind, environment, version, at, actor, names }: SetVersion) {
  return [projectId, kind, environment, version, at, actor, names];
}

export const comma = 0x2c;

function decodeItems(plaintext: Buffer): OpenedItems {
  const count = plaintext.length < 4 ? -1 : plaintext.readUInt32BE(0);
  const start = 4 + 4 * count;
  if (count < 0 || start > plaintext.length) throw malformed(plaintext);
  const all = plaintext.subarray(start);
  const starts = new Uint32Array(count + 1);
  let at = 0;
  for (let index = 0; index < count; index++) {
    at += plaintext.readUInt32BE(4 + 4 * index) + 1;
    starts[index + 1] = at;
  }
  // A byte that is no UTF-8 must never reach a client as U+FFFD.
  if (Math.max(0, at - 1) !== all.length || !isUtf8(all)) throw malformed(plaintext);
  return { all, count, starts, item: (index) => all.subarray(starts[index], (starts[index + 1] ?? 1) - 1) };
}

/** Only someone with the root key can have sealed such values. */
function malformed(plaintext: Buffer): Fault {
  plaintext.fill(0);
  return new Fault("decryption_failed", "the values of a set are not laid out as Keyhole writes them");
}
