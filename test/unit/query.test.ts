import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseSecretsQuery, parseVariablesQuery, soughtBy } from "../../src/http/query.ts";
import { environments } from "../../src/names.ts";

/** Percent-encodes the characters that `chosen` picks. */
function encoded(text: string, chosen: readonly boolean[]): string {
  const hex = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return [...text].map((character, at) => (chosen[at % chosen.length] ? hex(character) : character)).join("");
}

const anyChoice = fc.array(fc.boolean(), { minLength: 1, maxLength: 8 });
const anySlug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,10}$/);

describe("the look-up's hint", () => {
  test.each([
    ["environment=productio%6E", { slug: "web", environment: "production" }],
    ["%65nvironment=staging&format=env", { slug: "web", environment: "staging" }],
    ["keys=A&prefix=A&metadata_only=true&format=json&environment=staging", { slug: "web", environment: "staging" }],
    ["environment=pro+duction", { slug: "web", environment: "" }],
    ["environment=%ff", { slug: "web", environment: "" }],
    ["project=api&environment", { slug: "web", environment: "" }], // the path names the project
    ["", { slug: "web", environment: "" }],
  ])("of the query %j is %j", (raw, hint) => {
    expect(soughtBy("web", raw)).toEqual(hint);
  });

  test("holds no project that cannot be a slug", () => {
    expect(soughtBy(undefined, "project=we%62").slug).toBe("web");
    for (const raw of ["project=we+b", "project=%00", "project=..", "project="]) {
      expect(soughtBy(undefined, raw).slug).toBe("");
    }
  });

  test("agrees with every query that passes gate 5, however it is encoded", () => {
    const anyQuery = fc.record({ slug: anySlug, environment: fc.constantFrom(...environments), choice: anyChoice });
    fc.assert(
      fc.property(anyQuery, fc.boolean(), ({ slug, environment, choice }, reversed) => {
        const pairs = Object.entries({ environment, project: slug }).map(
          ([name, value]) => `${encoded(name, choice)}=${encoded(value, choice)}`,
        );
        const secrets = (reversed ? pairs.toReversed() : pairs).join("&");
        expect(soughtBy(undefined, secrets)).toEqual({ slug, environment });
        expect(parseSecretsQuery(secrets)).toMatchObject({ project: slug, environment });
        const [variables = ""] = pairs;
        expect(soughtBy(slug, variables)).toEqual({ slug, environment });
        expect(parseVariablesQuery(variables).environment).toBe(environment);
      }),
    );
  });

  test("never throws, whatever the query", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."&=%+aeE0f9environment\u00ff") }), (raw) => {
        soughtBy(undefined, raw);
      }),
    );
  });
});
