import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { environments, environmentsOf } from "../../src/core/names.ts";
import { lookupOf } from "../../src/gates/query.ts";
import { parseFiles } from "../../src/kinds/files/endpoint.ts";
import { parseSecrets, parseVariables } from "../../src/kinds/variables/endpoint.ts";
import { variables as kind } from "../../src/kinds/variables/entry.ts";

/** What the lookup is asked for; all environments if the query names none. */
function hint(slug: string | undefined, raw: string) {
  const lookup = lookupOf(kind, slug, raw, true);
  return { slug: lookup.slug, environment: environmentsOf(lookup.environments).join() };
}
const all = environments.join();

/** Percent-encodes the characters that `chosen` picks. */
function encoded(text: string, chosen: readonly boolean[]): string {
  const hex = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return [...text].map((character, at) => (chosen[at % chosen.length] ? hex(character) : character)).join("");
}

const anyChoice = fc.array(fc.boolean(), { minLength: 1, maxLength: 8 });
const anySlug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,10}$/);

describe("the lookup's hint", () => {
  test.each([
    ["environment=productio%6E", { slug: "web", environment: "production" }],
    ["%65nvironment=staging&format=env", { slug: "web", environment: "staging" }],
    ["keys=A&prefix=A&metadata_only=true&format=json&environment=staging", { slug: "web", environment: "staging" }],
    ["environment=pro+duction", { slug: "web", environment: "" }],
    ["environment=%ff", { slug: "web", environment: "" }],
    ["project=api&environment", { slug: "web", environment: "" }], // the path names the project
    ["", { slug: "web", environment: all }],
  ])("of the query %j is %j", (raw, expected) => {
    expect(hint("web", raw)).toEqual(expected);
  });

  test("is found after a thousand paths", () => {
    const raw = `${"path=a&".repeat(1000)}environment=production&project=web`;
    expect(parseFiles(raw).paths).toEqual(["a"]);
    expect(hint(undefined, raw)).toEqual({ slug: "web", environment: "production" });
  });

  test("holds no project that cannot be a slug", () => {
    expect(hint(undefined, "project=we%62").slug).toBe("web");
    for (const raw of ["project=we+b", "project=%00", "project=..", "project="]) {
      expect(hint(undefined, raw).slug).toBe("");
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
        expect(hint(undefined, secrets)).toEqual({ slug, environment });
        expect(parseSecrets(secrets)).toMatchObject({ project: slug, environment });
        const [variables = ""] = pairs;
        expect(hint(slug, variables)).toEqual({ slug, environment });
        expect(parseVariables(variables).environment).toBe(environment);
      }),
    );
  });

  test("never throws, whatever the query", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."&=%+aeE0f9environment\u00ff") }), (raw) => {
        hint(undefined, raw);
      }),
    );
  });
});
