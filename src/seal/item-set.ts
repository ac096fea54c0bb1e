import type { EnvironmentMask } from "../names.ts";
import { generationOf, open, seal } from "./envelope.ts";
import type { DataKey } from "./keyring.ts";
import { accountPlace, encodeFields, filePlace, variablePlace } from "./place.ts";

/*
 * The seal over all accounts, or all files, of one environment: what is read whole is held against it, so that an item
 * which SQL deleted, added or put back as it once was is noticed. It is an envelope with nothing in it, sealed under the
 * data key's set subkey to a place whose last field is the listing of the set:
 *
 *   ["name or path","fingerprint"] for each item, by name, as one JSON array
 *
 * A fingerprint is the SHA-256, in base64, of what is stored of an item: the place it is sealed to, its time of change
 * and, of an account, nonce and tag of its envelope. A file's content is in there by its own SHA-256, so that a set can
 * be judged before any content is fetched.
 *
 * Variables have sets of another kind, which hold the values themselves (`setPlace`). Where these would be too large for
 * that, such a set holds a listing instead.
 */

/** What an environment has a set of, beside its variables. */
export type ItemKind = "accounts" | "files";

/** An item as the listing of its set has it. */
export type ItemEntry = readonly [name: string, fingerprint: string];

/** @throws Fault `decryption_failed` for a row that only SQL can have made so */
export function variableEntry(
  projectId: string,
  environment: string,
  variable: {
    readonly id: string;
    readonly name: string;
    readonly version: number;
    readonly sealed: Uint8Array;
    readonly updatedAt: number;
  },
): ItemEntry {
  const { id: variableId, name, version, sealed, updatedAt } = variable;
  const place = variablePlace({ projectId, environment, variableId, version, name });
  return [name, fingerprintOf(place, String(updatedAt), ...frameOf(sealed))];
}

/** @throws Fault `decryption_failed` for a row that only SQL can have made so */
export function accountEntry(
  projectId: string,
  account: {
    readonly id: string;
    readonly name: string;
    readonly version: number;
    readonly environments: EnvironmentMask;
    readonly sealed: Uint8Array;
    readonly updatedAt: number;
  },
): ItemEntry {
  const { id: accountId, name, version, environments, sealed, updatedAt } = account;
  const place = accountPlace({ projectId, accountId, version, environments, name });
  return [name, fingerprintOf(place, String(updatedAt), ...frameOf(sealed))];
}

/** @throws Fault `decryption_failed` for a row that only SQL can have made so */
export function fileEntry(
  projectId: string,
  file: Omit<Parameters<typeof filePlace>[0], "projectId" | "fileId"> & {
    readonly id: string;
    readonly updatedAt: number;
  },
): ItemEntry {
  return [file.path, fingerprintOf(filePlace({ ...file, projectId, fileId: file.id }), String(file.updatedAt))];
}

/** The listing of a set: the same items, in whatever order, give the same text. */
export function itemListing(entries: Iterable<ItemEntry>): string {
  return JSON.stringify([...entries].sort(([a], [b]) => (a < b ? -1 : Number(a > b))));
}

/** The entries of a listing that its seal fits. */
export function entriesOf(listing: string): ItemEntry[] {
  return JSON.parse(listing) as ItemEntry[];
}

/** Where a set belongs, as the writer and the reader know it. */
export type ItemSetPlace = { readonly projectId: string; readonly kind: ItemKind; readonly environment: string };

/** The seal of a set. */
export function sealItemSet(dataKey: DataKey, place: ItemSetPlace, listing: string): Buffer {
  return seal(dataKey.subkey("set"), dataKey.generation, bytesOf(place, listing), Buffer.alloc(0));
}

/**
 * Holds a set against its seal.
 * @param dataKeyOf - a data key by its generation
 * @throws Fault `decryption_failed` where it is another set
 */
export function openItemSet(
  dataKeyOf: (generation: number) => DataKey,
  place: ItemSetPlace,
  listing: string,
  sealed: Uint8Array,
): void {
  open(dataKeyOf(generationOf(sealed)).subkey("set"), bytesOf(place, listing), sealed);
}

function bytesOf({ projectId, kind, environment }: ItemSetPlace, listing: string): Buffer {
  return encodeFields("item set", projectId, kind, environment, listing);
}

/** Nonce and tag, which no two envelopes have in common. */
function frameOf(sealed: Uint8Array): [Uint8Array, Uint8Array] {
  return [sealed.subarray(6, 18), sealed.subarray(-16)];
}

function fingerprintOf(...stored: readonly (string | Uint8Array)[]): string {
  return new Bun.CryptoHasher("sha256").update(encodeFields(...stored)).digest("base64");
}
