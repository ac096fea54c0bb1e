import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { StoredSet } from "../../src/core/set-rows.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import { FileContent } from "../../src/seal/file-content.ts";
import { Keyring, newKey } from "../../src/seal/keyring.ts";
import { sealSet } from "../../src/seal/new-set.ts";
import { RememberedContents, RememberedSets } from "../../src/serve/sets/remembered.ts";
import { type ReadProject, VerifiedSet } from "../../src/serve/sets/verified-set.ts";

const keys = { keyring: new Keyring([newKey()]), listingKey: newKey() };
const environment = "staging";
const web = projectOf("web");

function projectOf(slug: string): ReadProject {
  return { id: `id of ${slug}`, organizationId: "org", slug };
}

/** A set as it was fetched. Its values are never opened here, so any bytes will do. */
function setOf(project: ReadProject, rowVersion: string, sealedBytes: number | null, names: readonly string[] = ["A"]) {
  const { id: projectId, organizationId, slug } = project;
  const identity = { organizationId, projectId, slug, kind: "variables", environment, version: 1 };
  const listing = JSON.stringify(names.map((key) => ({ key, updatedAt: 1 })));
  const sealed = sealedBytes === null ? null : Buffer.alloc(sealedBytes);
  const stored: StoredSet = {
    ...sealSet(keys.listingKey, identity, listing, null),
    environment,
    version: 1,
    rowVersion,
    listingBytes: listing.length,
    sealed,
    sealedBytes,
    rootId: null,
    wrapped: null,
  };
  return new VerifiedSet(keys, project, variables, stored);
}

/** Whether the lookup, which says this of a set's row, finds the set in memory. */
function find(sets: RememberedSets, project: ReadProject, rowVersion: string, needsValues = true) {
  return sets.find(project, "variables", { environment, rowVersion, row: null }, needsValues);
}

describe("a remembered set", () => {
  const sets = new RememberedSets();
  const set = setOf(web, "1 700 (0,1)", 100);
  sets.remember(set, "variables");

  test("is found under the version of its row", () => expect(find(sets, web, "1 700 (0,1)")).toBe(set));

  test.each(["", "1 700 (0,2)", "1 701 (0,1)", "2 700 (0,1)"])("is not found under version %p", (rowVersion) => {
    expect(find(sets, web, rowVersion)).toBeUndefined();
  });

  test.each([
    ["organization", { ...web, organizationId: "another" }],
    ["slug", { ...web, slug: "api" }],
    ["project", { ...web, id: "another" }],
  ])("is not found for another %s, although its row is the same", (_, project) => {
    expect(find(sets, project, "1 700 (0,1)")).toBeUndefined();
  });

  test("is not found for another kind or environment", () => {
    const row = { environment, rowVersion: "1 700 (0,1)", row: null } as const;
    expect(sets.find(web, "accounts", row, true)).toBeUndefined();
    expect(sets.find(web, "variables", { ...row, environment: "production" }, true)).toBeUndefined();
  });

  test("that came without its values is found for metadata only", () => {
    const own = new RememberedSets();
    const bare = setOf(web, "one", null);
    own.remember(bare, "variables");
    expect(find(own, web, "one")).toBeUndefined();
    expect(find(own, web, "one", false)).toBe(bare);
    // It takes the place of the same row with its values only in memory of another row, or of another slug.
    const whole = setOf(web, "one", 100);
    for (const each of [whole, bare]) own.remember(each, "variables");
    expect(find(own, web, "one")).toBe(whole);
    own.remember(setOf({ ...web, slug: "api" }, "one", null), "variables");
    expect(find(own, web, "one")).toBeUndefined();
  });

  test("is replaced by a later one", () => {
    const own = new RememberedSets();
    const later = setOf(web, "two", 100);
    for (const each of [setOf(web, "one", 100), later]) own.remember(each, "variables");
    expect([find(own, web, "one"), find(own, web, "two")]).toEqual([undefined, later]);
  });

  test("has names that nobody can change", () => expect(() => (set.names as string[]).push("B")).toThrow(TypeError));
});

describe("a remembered set of a database without row versions", () => {
  const sets = new RememberedSets();
  const set = setOf(web, "", 100);
  sets.remember(set, "variables");
  const findRow = (change: Partial<StoredSet>, needsValues = true) => {
    const row = { ...set.stored, ...change };
    return sets.find(web, "variables", { environment, rowVersion: "", row }, needsValues);
  };

  test("is found for the very same row", () => {
    expect(findRow({ listingMac: Buffer.from(set.stored.listingMac ?? ""), sealed: Buffer.alloc(100) })).toBe(set);
  });

  const changes: readonly Partial<StoredSet>[] = [
    ...[{ version: 2 }, { generation: 1 }, { listing: "[]" }, { listing: null }, { listingMac: Buffer.alloc(32) }],
    ...[{ listingMac: null }, { sealed: Buffer.alloc(100, 1) }, { sealed: null }, { sealedBytes: null }],
    ...[{ rootId: "root" }, { wrapped: Buffer.alloc(1) }],
  ];
  const others = changes.map((change) => [Object.keys(change).join(), change] as const);
  test.each(others)("is not found for a row with another %s", (column, change) => {
    expect(findRow(change)).toBeUndefined();
    expect(findRow(change, false)).toBe(column === "sealed" ? set : undefined);
  });
});

test("a remembered content is found for the very same file and row", () => {
  const contents = new RememberedContents();
  const entry = { id: "file-1", size: 1, sha256: "sum", updatedAt: 1 };
  const sealed = { id: entry.id, key: newKey(), associatedData: Buffer.alloc(0), sealed: Buffer.alloc(1) };
  const content = new FileContent(sealed, true);
  contents.remember(web.id, entry, "one", content);
  expect(contents.find(web.id, entry, "one")).toBe(content);
  expect(contents.find(web.id, entry, "two")).toBeUndefined();
  expect(contents.find("another", entry, "one")).toBeUndefined();
  for (const other of [{ id: "file-2" }, { size: 2 }, { sha256: "another" }]) {
    expect(contents.find(web.id, { ...entry, ...other }, "one")).toBeUndefined();
  }
});

test("remembered sets stay within their bound, and none is dropped while all fit", () => {
  const bytesMax = 20_000;
  const step = fc.record({
    slug: fc.constantFrom("a", "b", "c", "d", "e"),
    bytes: fc.integer({ min: 1, max: 12_000 }),
    names: fc.integer({ min: 1, max: 40 }),
    used: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const sets = new RememberedSets(bytesMax);
      /** What was given to it last, by slug. */
      const given = new Map<string, { rowVersion: string; bytes: number }>();
      const kept = () => [...given].filter(([slug, { rowVersion }]) => find(sets, projectOf(slug), rowVersion));
      const sum = (some: ReturnType<typeof kept>) => some.reduce((total, [, { bytes }]) => total + bytes, 0);
      for (const [turn, { slug, bytes, names, used }] of steps.entries()) {
        const known = given.get(slug);
        if (used && known && find(sets, projectOf(slug), known.rowVersion)) continue;
        const others = kept().filter(([other]) => other !== slug);
        const all = Array.from({ length: names }, (_, n) => `NAME_${n + 10}`);
        const set = setOf(projectOf(slug), `${turn}`, bytes, all);
        sets.remember(set, "variables");
        const size = bytes + 8 * set.listing.length + 2048;
        given.set(slug, { rowVersion: `${turn}`, bytes: size });
        expect(sum(kept())).toBeLessThanOrEqual(bytesMax);
        if (sum(others) + size > bytesMax) continue;
        expect(
          kept()
            .map(([other]) => other)
            .sort(),
        ).toEqual([...others.map(([other]) => other), slug].sort());
      }
    }),
  );
});
