import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Caller, Target } from "../../src/access/authenticate.ts";
import { SealedSet, SealedSets } from "../../src/read/sets.ts";
import { variablesListing } from "../../src/render/variables-json.ts";
import type { Keyring } from "../../src/seal/keyring.ts";
import type { SetRow } from "../../src/store/sets.ts";

/** Never asked: nothing is opened here. */
const keyring = {} as Keyring;
const environment = "staging";

const caller = (organizationId = "org") =>
  ({ grant: { keyId: "key", organizationId, projects: null }, target: null }) as unknown as Caller;
const target = (projectId: string, state: string): Target => ({ projectId, state });

function rowOf(projectId: string, state: string, sealed: Buffer, names: readonly string[]): SetRow {
  const listing = variablesListing(names.map((name) => ({ name, updatedAt: 1 })));
  const standing = { live: 1, plan: "pro", projectId, state };
  const set = { revision: 1, setRevision: 1, generation: 1, rootId: "root", wrapped: Buffer.alloc(1), listing };
  return { ...standing, ...set, bytes: sealed.length, sealed };
}

/** Remembered sets over one project of each slug; what is fetched has so many bytes sealed. */
function setsOver(bytesMax?: number) {
  let next: SetRow | undefined;
  const sets = new SealedSets({ read: async () => next }, keyring, bytesMax);
  return {
    recall: (slug: string, state: string, organizationId?: string, projectId = `id of ${slug}`) =>
      sets.remembered(caller(organizationId), target(projectId, state), slug, environment),
    fetch: async (slug: string, state: string, bytes: number, names: readonly string[] = ["A"]) => {
      next = rowOf(`id of ${slug}`, state, Buffer.alloc(bytes), names);
      const set = await sets.fetch(caller(), slug, environment, bytes);
      if (!(set instanceof SealedSet)) throw new Error("no set was fetched");
      return set;
    },
  };
}

describe("a remembered set", () => {
  test("is given for its own state, organization and slug alone", async () => {
    const { fetch, recall } = setsOver();
    const set = await fetch("web", "one", 100);
    expect(recall("web", "one")).toBe(set);
    expect(recall("web", "two")).toBeUndefined();
    expect(recall("web", "one", "another")).toBeUndefined();
    expect(recall("api", "one")).toBeUndefined();
    expect(recall("api", "one", undefined, "id of web")).toBeUndefined();
  });

  test("has a list of names that nobody can change: what entries say of it is spelled once", async () => {
    const { names } = await setsOver().fetch("web", "one", 100, ["A", "B"]);
    expect(names).toEqual(["A", "B"]);
    expect(() => (names as string[]).push("C")).toThrow(TypeError);
  });

  test("that was asked for since stays, and one that came later goes in its place", async () => {
    const { fetch, recall } = setsOver(20_000);
    for (const slug of ["a", "b"]) await fetch(slug, "one", 6000);
    expect(recall("a", "one")).toBeDefined();
    await fetch("c", "one", 6000);
    expect(["a", "b", "c"].map((slug) => recall(slug, "one") !== undefined)).toEqual([true, false, true]);
  });
});

const slugs = ["a", "b", "c", "d", "e"];
const bytesMax = 20_000;

test("remembered sets take no more than they may, and nothing that fits is forgotten for nothing", async () => {
  const step = fc.record({
    slug: fc.constantFrom(...slugs),
    bytes: fc.integer({ min: 1, max: 12_000 }),
    names: fc.integer({ min: 1, max: 40 }),
    asked: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { fetch, recall } = setsOver(bytesMax);
      /** What each would be remembered with, in the order of their coming. */
      const fetched = new Map<string, { state: string; bytes: number }>();
      const known = () => [...fetched].filter(([slug, { state }]) => recall(slug, state));
      let state = 0;
      for (const { slug, bytes, names, asked } of steps) {
        const already = fetched.get(slug);
        if (asked && already && recall(slug, already.state)) continue;
        state += 1;
        const all = Array.from({ length: names }, (_, n) => `NAME_${n + 10}`);
        const set = await fetch(slug, `${state}`, bytes, all);
        const size = bytes + 5 * set.stored.listing.length + 2048;
        const others = known().filter(([other]) => other !== slug);
        fetched.set(slug, { state: `${state}`, bytes: size });
        const sum = (some: typeof others) => some.reduce((total, [, one]) => total + one.bytes, 0);
        expect(sum(known())).toBeLessThanOrEqual(bytesMax);
        if (sum(others) + size > bytesMax) continue;
        expect(recall(slug, `${state}`)).toBe(set);
        for (const [other, { state }] of others) expect(recall(other, state)).toBeDefined();
      }
    }),
  );
});
