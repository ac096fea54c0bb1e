import { describe, expect, test } from "bun:test";
import { setAssociatedData } from "../../src/seal/associated-data.ts";
import { seal } from "../../src/seal/envelope.ts";
import { type DataKey, newKey } from "../../src/seal/keyring.ts";
import { encodeItems, sealSet } from "../../src/seal/new-set.ts";
import { type OpenedItems, setOpener, verifyListing } from "../../src/seal/set.ts";

/* The format, other identities and other layouts that never open: vectors.test.ts and property/seal.test.ts. */

const failed = expect.objectContaining({ code: "decryption_failed" });
const listingKey = newKey();
const dataKey = dataKeyOf(3);
const place = { organizationId: "org", projectId: "project", slug: "web", environment: "staging" };
const set = { ...place, kind: "variables", version: 4 };
const listing = '[{"key":"A","updatedAt":1}]';

function itemsOf({ count, item }: OpenedItems): string[] {
  return Array.from({ length: count }, (_, index) => item(index).toString());
}

describe("a sealed set", () => {
  test("opens as often as it is asked, each time into memory of its own", () => {
    const sealed = sealSet(listingKey, set, listing, { items: [Buffer.from("{}")], dataKey });
    const opener = setOpener(set, sealed, dataKey);
    opener.open().all.fill(0);
    expect(itemsOf(opener.open())).toEqual(["{}"]);
  });

  test("shares the memory of its items with the whole, so that zeroing the whole zeroes each", () => {
    const sealed = sealSet(listingKey, set, listing, { items: [Buffer.from('"a"'), Buffer.from('"b"')], dataKey });
    const { all, item } = setOpener(set, sealed, dataKey).open();
    const items = [item(0), item(1)];
    all.fill(0);
    expect(Buffer.concat(items).equals(Buffer.alloc(6))).toBe(true);
  });

  test("of files has no values, generation 0, and never opens", () => {
    const files = { ...set, kind: "files" };
    const sealed = sealSet(listingKey, files, listing, null);
    expect([sealed.generation, sealed.sealed]).toEqual([0, null]);
    verifyListing(listingKey, files, sealed);
    expect(() => setOpener(files, sealed, dataKeyOf(0))).toThrow(failed);
    const forged = { ...sealed, sealed: Buffer.alloc(40, 1), generation: 0x01010101 };
    expect(() => setOpener(files, forged, dataKey).open()).toThrow(failed);
  });

  test("leaves the items that it was given as they were", () => {
    const items = [Buffer.from("one"), Buffer.from("two")];
    sealSet(listingKey, set, listing, { items, dataKey });
    expect(items.map(String)).toEqual(["one", "two"]);
  });

  // A row edited in SQL may hold such a version.
  test.each([-1, 0.5, 2 ** 53, Number.NaN])("has no associated data for version %p", (version) => {
    const sealed = sealSet(listingKey, set, listing, { items: [], dataKey });
    expect(() => verifyListing(listingKey, { ...set, version }, sealed)).toThrow(failed);
    expect(() => setOpener({ ...set, version }, sealed, dataKey)).toThrow(failed);
  });
});

describe("values that are not laid out as Keyhole writes them", () => {
  const listingMac = Buffer.alloc(32, 1);
  const openLaidOut = (plaintext: Uint8Array) => {
    const sealed = seal(dataKey.subkey("variables"), dataKey.generation, setAssociatedData(set, listingMac), plaintext);
    return setOpener(set, { generation: dataKey.generation, listingMac, sealed }, dataKey).open();
  };
  const good = encodeItems([Buffer.from("one"), Buffer.from("three")]);

  test("do not open with lengths whose sum is right modulo 2³²", () => {
    const bytes = Buffer.from(good);
    bytes.writeUInt32BE(good.length - 12, bytes.writeUInt32BE(0xffffffff, 4));
    expect(() => openLaidOut(bytes)).toThrow(failed);
  });

  test("do not open at any length but their own", () => {
    expect(itemsOf(openLaidOut(good))).toEqual(["one", "three"]);
    for (let length = 0; length < good.length; length++) {
      expect(() => openLaidOut(good.subarray(0, length))).toThrow(failed);
    }
  });
});

function dataKeyOf(generation: number): DataKey {
  const subkeys = new Map(["variables", "accounts", "files", "file"].map((of) => [of, newKey()]));
  return { generation, subkey: (of) => subkeys.get(of) as Uint8Array };
}
