import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { environments, environmentsOf, everyEnvironment } from "../../src/core/names.ts";
import { accounts } from "../../src/kinds/accounts/entry.ts";
import { files } from "../../src/kinds/files/entry.ts";
import { parseFiles } from "../../src/kinds/files/query.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import { parseSecrets, parseVariables } from "../../src/kinds/variables/query.ts";
import { isMetadataRead } from "../../src/serve/gates/query.ts";
import { lookupOf } from "../../src/serve/gates/read-endpoint.ts";

/** Percent-encodes the characters that `chosen` picks. */
function encoded(text: string, chosen: readonly boolean[]): string {
  const hex = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return [...text].map((character, at) => (chosen[at % chosen.length] ? hex(character) : character)).join("");
}

const anyChoice = fc.array(fc.boolean(), { minLength: 1, maxLength: 8 });
const anySlug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,10}$/);

describe("a query", () => {
  test("is read the same however it is encoded and ordered", () => {
    const anyQuery = fc.record({ slug: anySlug, environment: fc.constantFrom(...environments), choice: anyChoice });
    fc.assert(
      fc.property(anyQuery, fc.boolean(), ({ slug, environment, choice }, reversed) => {
        const pairs = Object.entries({ environment, project: slug }).map(
          ([name, value]) => `${encoded(name, choice)}=${encoded(value, choice)}`,
        );
        const raw = (reversed ? pairs.toReversed() : pairs).join("&");
        expect(parseSecrets(raw)).toMatchObject({ project: slug, environment });
        expect(parseVariables(pairs[0] ?? "", slug)).toMatchObject({ project: slug, environment });
      }),
    );
  });

  test("may name a thousand paths, and no project that its path does not", () => {
    const asked = { project: "web", environment: "production", paths: ["a"] };
    const raw = `${"path=a&".repeat(1000)}environment=production&project=web`;
    expect(parseFiles(raw)).toMatchObject(asked);
    expect(() => parseFiles(`path=a&${raw}`)).toThrow("query parameter may be given at most 1000 times");
    expect(() => parseVariables("project=api&environment=production", "web")).toThrow("query parameter is not known");
  });

  test("has no parameter that is not known, nor one that lacks its sign", () => {
    for (const other of ["other=1", "other", "projectx"]) {
      expect(() => parseSecrets(`${other}&environment=production`)).toThrow("query parameter is not known");
    }
  });

  test.each([
    ["metadata_only=true", true],
    ["environment=staging&metadata_only=true", true],
    ["metadata_only=false", false],
    ["metadata_only=1", false],
    ["metadata_only=true&metadata_only=true", false],
    ["metadata%5Fonly=true", false],
    ["format=metadata_only", false],
  ])("%s is charged as a read of metadata: %p", (raw, isMetadata) => {
    expect(isMetadataRead(raw, "metadata_only")).toBe(isMetadata);
    expect(isMetadataRead(raw, undefined)).toBe(false);
    expect(isMetadataRead(raw.replaceAll("_o", "O"), "metadataOnly")).toBe(isMetadata || raw.endsWith("=1"));
  });
});

describe("what is looked up with the key", () => {
  const place = { project: "web", environment: "production" } as const;
  const shown = ({ environments, values, ...rest }: ReturnType<typeof lookupOf>) => {
    return { ...rest, environments: environmentsOf(environments), values: environmentsOf(values) };
  };

  test.each([
    [variables, true, ["production"], ["production"]],
    [variables, false, ["production"], []],
    [accounts, true, environments, ["production"]], // an account says in which environments it is
    [files, true, environments, []], // a set of files has no values
  ] as const)("is what the kind needs: %#", (kind, needsValues, sets, values) => {
    const expected = { slug: "web", kind: kind.kind, environments: [...sets], values: [...values] };
    expect(shown(lookupOf(kind, place, needsValues))).toEqual(expected);
  });

  test("is every environment if the query names none", () => {
    expect(lookupOf(accounts, { project: "web", environment: null }, true).values).toBe(everyEnvironment);
  });

  test("has no project that cannot be a slug", () => {
    for (const project of ["we b", "\0", "..", "", "Web"]) {
      expect(lookupOf(variables, { ...place, project }, true).slug).toBe("");
    }
  });
});
