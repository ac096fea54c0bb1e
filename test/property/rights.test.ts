import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { environmentMask, environments } from "../../src/core/names.ts";
import { Permit } from "../../src/people/desk/permit.ts";
import { everyRight, type Holding, inForce, may, meets, merged, reached } from "../../src/serve/access/rights.ts";
import { parts, seed } from "../support/seed.ts";

/* 10,000 random worlds, in which rights are a set of single facts: who may do what in which project and environment. */

const organizations = ["o1", "o2"];
const projects = ["p1", "p2", "p3"];
/** A project that does not exist yet: only rights for all projects reach it. */
const future = "p4";
const anyHolding: fc.Arbitrary<Holding> = fc.record({
  rights: fc.subarray([...everyRight]),
  organizationId: fc.constantFrom(...organizations),
  projectId: fc.constantFrom(null, ...projects),
  environments: fc.integer({ min: 1, max: 7 }),
});

/** All facts that a holding stands for. */
function factsOf({ rights, organizationId, projectId, environments: mask }: Holding): string[] {
  const places = projectId === null ? [null, ...projects, future] : [projectId];
  return rights.flatMap((right) =>
    places.flatMap((place) =>
      environments
        .filter((environment) => (mask & environmentMask(environment)) !== 0)
        .map((environment) => [right, organizationId, place, environment].join(" ")),
    ),
  );
}

/** Ends and clocks share few moments, so that they often meet. */
const anyEnding: fc.Arbitrary<Holding> = fc
  .tuple(anyHolding, fc.option(fc.integer({ min: 1, max: 5 })))
  .map(([holding, until]) => (until === null ? holding : { ...holding, until }));

describe("rights", () => {
  test.each(parts(5))(
    "are exactly the facts of those that have not ended, in 10,000 random worlds, part %i",
    (part) => {
      let [allowed, ended] = [0, 0];
      fc.assert(
        fc.property(fc.array(anyEnding, { maxLength: 6 }), fc.integer({ min: 0, max: 6 }), (held, now) => {
          const facts = new Set(held.flatMap((one) => ((one.until ?? 7) > now ? factsOf(one) : [])));
          // What the roster keeps of them stands for the same, at every moment.
          for (const rights of [inForce(held, now), inForce(merged(held), now)]) {
            expect(new Set(rights.flatMap(factsOf))).toEqual(facts);
            for (const right of everyRight) {
              for (const organizationId of organizations) {
                for (const projectId of [null, ...projects, future]) {
                  const place = { organizationId, projectId };
                  const is = (one: string) => facts.has([right, organizationId, projectId, one].join(" "));
                  const expected = environments.filter(is);
                  expect(environments.filter((one) => may(rights, right, place, one))).toEqual(expected);
                  expect(reached(rights, [right], place)).toEqual(expected);
                  expect(Permit.find({ rights }, [right], place)?.environments ?? []).toEqual(expected);
                  const inAll = Permit.find({ rights }, [right], place, environments);
                  expect(inAll !== undefined).toBe(expected.length === 3);
                }
              }
            }
          }
          allowed += facts.size;
          ended += new Set(held.flatMap(factsOf)).size - facts.size;
          // Time alone gives no right.
          const later = new Set(inForce(held, now + 1).flatMap(factsOf));
          expect([...later].filter((fact) => !facts.has(fact))).toEqual([]);
          expect(merged(merged(held))).toEqual(merged(held));
        }),
        { numRuns: 2000, seed: seed + part },
      );
      expect(Math.min(allowed, ended)).toBeGreaterThan(2000);
    },
  );

  test("that are added take nothing away, and those that are taken away give nothing", () => {
    fc.assert(
      fc.property(fc.array(anyHolding), anyHolding, (held, more) => {
        const before = new Set(held.flatMap(factsOf));
        const after = new Set([...held, more].flatMap(factsOf));
        expect([...before].filter((fact) => !after.has(fact))).toEqual([]);
        for (const organizationId of organizations) {
          for (const right of everyRight) {
            for (const environment of environments) {
              const place = { organizationId, projectId: future };
              if (may(held, right, place, environment))
                expect(may([...held, more], right, place, environment)).toBe(true);
            }
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("meet a key's reach exactly where both have a place in common", () => {
    fc.assert(
      fc.property(
        fc.array(anyHolding, { maxLength: 4 }),
        fc.record({
          organizationId: fc.constantFrom(...organizations),
          projectId: fc.constantFrom(null, ...projects),
          mask: fc.integer({ min: 1, max: 7 }),
        }),
        (held, { mask, ...place }) => {
          const reach = factsOf({ rights: ["see"], ...place, environments: mask });
          const facts = new Set(held.flatMap(factsOf));
          // Rights for all projects and a key of all projects meet in projects that exist, or will.
          const expected = reach.some((fact) => facts.has(fact));
          expect(meets(held, "see", place, mask)).toBe(expected);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("for everything are an operator's, who needs none", () => {
    for (const right of everyRight) {
      for (const environment of environments) {
        expect(may("operator", right, { organizationId: "any", projectId: null }, environment)).toBe(true);
        expect(may([], right, { organizationId: "any", projectId: null }, environment)).toBe(false);
      }
    }
  });
});
