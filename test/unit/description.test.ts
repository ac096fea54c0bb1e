import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ruleset, Spectral } from "@stoplight/spectral-core";
import { oas } from "@stoplight/spectral-rulesets";
import { version } from "../../package.json";
import { describeApi } from "../../src/serve/api/description.ts";
import { problemOf } from "../support/described.ts";

type Parameter = { name: string; in: string; required: boolean };

const text = `${JSON.stringify(describeApi(version), undefined, 2)}\n`;

describe("the description of the API", () => {
  test("is what docs/openapi.json says; `bun run keyhole openapi > docs/openapi.json` writes it", () => {
    expect(readFileSync(join(import.meta.dir, "../../docs/openapi.json"), "utf8")).toBe(text);
  });

  test("passes Spectral's rules for OpenAPI without a warning, its examples included", async () => {
    const spectral = new Spectral();
    spectral.setRuleset(new Ruleset({ extends: [[oas, "recommended"]] } as never));
    const found = await spectral.run(JSON.parse(text));
    expect(found.map(({ code, path, message }) => `${code} ${path.join("/")}: ${message}`)).toEqual([]);
  });

  test("requires the parameters that a request cannot leave out, and no other", () => {
    const { paths } = JSON.parse(text) as { paths: Record<string, { get: { parameters?: Parameter[] } }> };
    const required = Object.entries(paths).map(([path, { get }]) => {
      const names = (get.parameters ?? []).filter((one) => one.in === "query" && one.required).map(({ name }) => name);
      return [path, ...names].join(" ");
    });
    const none = [
      "/organization",
      ...["", "/{slug}", "/{slug}/variables", "/{slug}/accounts"].map((end) => `/projects${end}`),
    ];
    const two = ["/files", "/secrets"].map((path) => `${path} project environment`);
    expect(required.toSorted()).toEqual([...none, ...two].toSorted());
  });

  test("declares what the runtime answers in place of Keyhole, without a body", () => {
    for (const path of Object.keys((JSON.parse(text) as { paths: object }).paths)) {
      const asked = path.replace("{slug}", "web");
      for (const status of [431, 505]) {
        expect(problemOf(asked, status, [["connection", "close"]], () => "")).toBeUndefined();
        expect(problemOf(asked, status, [], () => "{}")).toBe("there is a body");
      }
    }
  });

  test("says at keys and prefix that they need an environment, and at path how many fit", () => {
    type Described = { paths: Record<string, { get: { parameters: { name: string; description: string }[] } }> };
    const { paths } = JSON.parse(text) as Described;
    const sentence = (path: string, name: string) =>
      paths[path]?.get.parameters.find((one) => one.name === name)?.description;
    const needs = expect.stringContaining("Needs `environment`, unless `metadata_only=true`.");
    expect(sentence("/projects/{slug}/variables", "keys")).toEqual(needs);
    expect(sentence("/projects/{slug}/variables", "prefix")).toEqual(needs);
    expect(sentence("/files", "path")).toContain("below 16 KiB: about 250 paths of 50 characters");
  });

  const headers = { "content-type": "application/json; charset=utf-8", "x-request-id": "1" };
  const good = JSON.stringify({ id: crypto.randomUUID(), name: "Acme", slug: "acme", plan: "pro" });
  test("fits a good answer", () => {
    expect(problemOf("/organization", 200, Object.entries(headers), () => good)).toBeUndefined();
  });
  test.each([
    ["a member too many", 200, headers, good.replace("{", '{"more":1,')],
    ["a member too few", 200, headers, '{"id":"1"}'],
    ["an unknown status", 201, headers, good],
    ["an unknown header", 200, { ...headers, etag: '"1"' }, good],
    ["another type", 200, { "content-type": "text/html" }, good],
    ["an unknown code", 401, headers, '{"error":"No.","code":"nope"}'],
  ])("does not fit an answer with %s", (_, status, headers, body) => {
    expect(problemOf("/organization", status, Object.entries({ ...headers }), () => body)).toBeString();
  });
});
