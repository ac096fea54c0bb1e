import { describe, expect, test } from "bun:test";
import {
  accountEntry,
  entriesOf,
  fileEntry,
  type ItemKind,
  itemListing,
  openItemSet,
  sealItemSet,
  variableEntry,
} from "../../src/seal/item-set.ts";
import { Keyring, newKey } from "../../src/seal/keyring.ts";

const sealed = (byte: number) => Buffer.alloc(40, byte);
const variable = { id: "v", name: "N", version: 1, sealed: sealed(1), updatedAt: 5 };
const account = { ...variable, environments: 3 };
const file = {
  id: "f",
  path: "a/b",
  name: "b",
  version: 1,
  environments: 3,
  mode: "0600",
  size: 4,
  sha256: "0".repeat(64),
  contentType: "text/plain",
  updatedAt: 5,
};

describe("the fingerprint of an item", () => {
  const changes = { id: "x", version: 2, environments: 1, updatedAt: 6, sealed: sealed(2) };
  const changesOfFiles = { name: "c", mode: "0400", size: 5, sha256: "1".repeat(64), contentType: "text/html" };
  test.each([
    ...Object.entries(changes).map(([field, value]) => ["account", field, value] as const),
    ...Object.entries({ ...changes, ...changesOfFiles })
      .filter(([field]) => field !== "sealed")
      .map(([field, value]) => ["file", field, value] as const),
    ...Object.entries(changes)
      .filter(([field]) => field !== "environments")
      .map(([field, value]) => ["variable", field, value] as const),
  ])("of a kind %s differs with its %s", (kind, field, value) => {
    const entry = (change: object) =>
      ({
        account: () => accountEntry("p", { ...account, ...change }),
        file: () => fileEntry("p", { ...file, ...change }),
        variable: () => variableEntry("p", "staging", { ...variable, ...change }),
      })[kind]();
    expect(entry({})).toEqual(entry({}));
    expect(entry({ [field]: value })[1]).not.toBe(entry({})[1]);
  });

  test("differs with its project, and a variable's with its environment", () => {
    expect(accountEntry("q", account)).not.toEqual(accountEntry("p", account));
    expect(fileEntry("q", file)).not.toEqual(fileEntry("p", file));
    expect(variableEntry("p", "production", variable)).not.toEqual(variableEntry("p", "staging", variable));
  });
});

describe("the seal over a set", () => {
  const keyring = new Keyring([newKey()]);
  const { rootId, wrapped } = keyring.wrapDataKey("p", 1, newKey());
  const owner = { id: "p", organizationId: "o", slug: "web" };
  const dataKey = keyring.dataKey(owner, 1, rootId, wrapped);
  const place = { projectId: "p", kind: "accounts", environment: "staging" } as const;
  const listing = itemListing([accountEntry("p", account), ["other", "fingerprint"]]);
  const seal = sealItemSet(dataKey, place, listing);
  const failed = expect.objectContaining({ code: "decryption_failed" });

  test("opens for the same items in any order, and their listing is read back", () => {
    const again = itemListing(entriesOf(listing).reverse());
    expect(again).toBe(listing);
    expect(() => openItemSet(() => dataKey, place, again, seal)).not.toThrow();
  });

  test("opens for no other items: one more, one less, one twice, none", () => {
    const entries = entriesOf(listing);
    for (const other of [[...entries, ["x", "y"]], entries.slice(1), [...entries, ...entries.slice(1)], []] as const) {
      const text = itemListing(other as typeof entries);
      expect(() => openItemSet(() => dataKey, place, text, seal)).toThrow(failed);
    }
  });

  test("opens for no other project, kind or environment, and with no other project's key", () => {
    for (const change of [{ projectId: "q" }, { kind: "files" as ItemKind }, { environment: "production" }]) {
      expect(() => openItemSet(() => dataKey, { ...place, ...change }, listing, seal)).toThrow(failed);
    }
    const other = keyring.dataKey({ ...owner, slug: "api" }, 1, rootId, wrapped);
    expect(() => openItemSet(() => other, place, listing, seal)).toThrow(failed);
  });
});
