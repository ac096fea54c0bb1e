/**
 * What `keyhole manifest kubernetes` prints (word for word: transcripts/moves.txt), against the fields that External
 * Secrets Operator defines, and against a running server, by the rules that the operator publishes for its webhook
 * provider and follows in its source.
 *
 * @see https://external-secrets.io/latest/provider/webhook/
 * @see https://github.com/external-secrets/external-secrets/blob/cc5bfbc2234ace9cb0caff4ea89c435cf517b27b/providers/v1/webhook/pkg/webhook/webhook.go
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parseAllDocuments } from "yaml";
import { newFolder } from "../support/folder.ts";
import { runBinary } from "../support/keyhole.ts";
import { readPage } from "../support/markdown.ts";
import { whereInstalled } from "../support/programs.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";
import definitions from "./external-secrets.json";

type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  stringData?: Record<string, string>;
  spec?: unknown;
};
type Webhook = {
  url: string;
  method?: string;
  timeout?: string;
  headers: Record<string, string>;
  body?: string;
  result: { jsonPath: string };
  secrets: { name: string; secretRef: { name: string } }[];
};
type ExternalSecret = {
  refreshInterval: string;
  secretStoreRef: { kind: string; name: string };
  target: { name: string; creationPolicy: string; deletionPolicy: string };
  dataFrom: { extract: { key: string } }[];
};

/** The command of the page. */
const asked = ["manifest", "kubernetes", "-p", "web", "-e", "production", "--url", "https://keyhole.example.com"];
const printed = async (...args: string[]) => runBinary([...asked, ...args], {});
const { stdout: text } = await printed();
const manifests = parseAllDocuments(text).map((document) => {
  expect(document.errors).toEqual([]);
  return document.toJS() as Manifest;
});
const page = "docs/external-secrets.md";
const find = (kind: string) => {
  const found = manifests.find((manifest) => manifest.kind === kind);
  if (found === undefined) throw new Error(`there is no ${kind}`);
  return found;
};
const store = find("SecretStore");
const webhook = (store.spec as { provider: { webhook: Webhook } }).provider.webhook;
const external = find("ExternalSecret").spec as ExternalSecret;

describe("the manifests", () => {
  test("come with commands that make the key's Secret, and hold no key", () => {
    const secretName = webhook.secrets[0]?.secretRef.name ?? "";
    expect(text).toContain(`kubectl create secret generic ${secretName} --from-file=key=/dev/stdin`);
    expect(text).toContain(`kubectl label secret ${secretName} external-secrets.io/type=webhook`);
    expect(text).toContain("--surface ci_action --project web --env production");
    for (const command of text.match(/(?<=^# )(tr|kubectl) .*/gm) ?? []) expect(readPage(page)).toContain(command);
    expect(text).not.toMatch(/kh_/);
  });

  test("take a name and a namespace, also those that an older YAML reads as something else", async () => {
    const { stdout } = await printed("--name", "1e3", "--namespace", "no");
    const own = parseAllDocuments(stdout, { version: "1.1" }).map((document) => document.toJS() as Manifest);
    for (const manifest of own) expect(problemsOf(manifest)).toEqual([]);
    expect(own.map(({ metadata }) => metadata)).toEqual([
      { name: "keyhole-web-production", namespace: "no" },
      { name: "1e3", namespace: "no" },
    ]);
    expect(stdout).toContain("kubectl label secret keyhole-web-production --namespace no ");
  });

  test("are one List as JSON", async () => {
    const { stdout } = await printed("--json");
    expect(JSON.parse(stdout)).toEqual({ apiVersion: "v1", kind: "List", items: manifests });
  });

  test("have only fields that the operator defines, with values of their types", () => {
    for (const manifest of manifests) expect(problemsOf(manifest)).toEqual([]);
    const typo = structuredClone(store) as { spec: { provider: { webhook: Record<string, unknown> } } };
    typo.spec.provider.webhook["timeOut"] = "10s";
    expect(problemsOf(typo)).toEqual(["/spec/provider/webhook must NOT have additional properties"]);
  });
});

describe("against a server", () => {
  const variables = { A: "plain", B: 'it\'s "two"\nlines\n', EMPTY: "", NUMBER: "1.50", NULL: "null" };
  const site = siteOf("sqlite", { production: variables });
  const server = serverOf(site);
  const key = keyOf(site, "--surface", "ci_action", "--project", "web", "--env", "production");

  test("the operator gets every variable, byte for byte", async () => {
    expect(await refresh({ key: external.dataFrom[0]?.extract.key ?? "" })).toEqual(variables);
    expect((await site.audit()).at(-1)).toMatchObject({ action: "secrets.read" });
  });

  test("each refresh is a whole read: the operator keeps no tag, and the manifests name none", async () => {
    expect(Object.keys(webhook.headers)).toEqual(["Authorization"]);
    const before = (await site.audit()).length;
    for (const count of [1, 2]) {
      expect(await refresh({ key: "web" })).toEqual(variables);
      expect((await site.audit()).length).toBe(before + count);
    }
  });

  test("a key that it puts into the address is escaped there", async () => {
    const escaped = "project=a%26environment%3Dstaging%23&environment=production";
    expect(urlOf({ key: "a&environment=staging#" })).toContain(escaped);
  });

  test("a project that is absent, or out of the key's scope, is the 404 that the documentation warns of", async () => {
    await site.keyhole(["project", "create", "acme/api"]);
    for (const project of ["none", "api"]) await expect(refresh({ key: project })).rejects.toThrow("NoSecretErr");
  });

  test("a key that is revoked, or without the surface, is an error and no deletion", async () => {
    const other = await site.key("--project", "web");
    await expect(refresh({ key: "web" }, other.key)).rejects.toThrow("endpoint gave error 403");
    await site.keyhole(["key", "revoke", other.id]);
    await expect(refresh({ key: "web" }, other.key)).rejects.toThrow("endpoint gave error 401");
  });

  /** What the operator does at each refresh of `dataFrom.extract`; `apiKey` stands in the Secret. */
  async function refresh(remoteRef: { key: string }, apiKey = key.key): Promise<Record<string, string>> {
    const url = urlOf(remoteRef);
    const headers = headersOf(remoteRef, apiKey);
    const answer = await fetch(`${server.origin}${url.slice(url.indexOf("/api/"))}`, { headers });
    if (answer.status === 404) throw new Error("NoSecretErr");
    if (!answer.ok) throw new Error(`endpoint gave error ${answer.status}`);
    const found = atPath(await answer.json(), webhook.result.jsonPath);
    if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error("wrong type");
    return Object.fromEntries(
      Object.entries(found).map(([name, value]) => {
        // Others are turned into text by rules of their own: only text comes through as it is.
        if (typeof value !== "string") throw new Error(`${name} is no text`);
        if (!/^[-._a-zA-Z0-9]+$/.test(name)) throw new Error(`${name} cannot be in a Secret`);
        return [name, value];
      }),
    );
  }
});

whereInstalled(["go"], "the templates", (go) => {
  test("give in Go what this test takes them for", async () => {
    const home = newFolder();
    const keys = ["web", "a&environment=staging#", "a b/ü"];
    const program = Bun.spawn([go ?? "", "run", join(import.meta.dir, "webhook-provider.go")], {
      env: { PATH: process.env["PATH"], HOME: home, GOTOOLCHAIN: "local" },
      stdin: new Blob([JSON.stringify({ ...webhook, secrets: { auth: { key: "kh_one" } }, keys })]),
      stdout: "pipe",
      stderr: "inherit",
    });
    const expected = keys.map((key) => ({ url: urlOf({ key }), ...headersOf({ key }, "kh_one") }));
    expect(await program.stdout.json()).toEqual(expected);
  });
});

/** What a server that validates fields would say of a manifest. */
function problemsOf(manifest: object): string[] {
  const { apiVersion, kind } = manifest as Manifest;
  const ajv = new Ajv2020({ allErrors: true });
  ajv.validate({ $defs: definitions.$defs, $ref: `#/$defs/${apiVersion.replace("/", "~1")} ${kind}` }, manifest);
  return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Of the address's data everything of `remoteRef` is escaped as Go's url.QueryEscape does. */
function urlOf(remoteRef: { key: string }): string {
  const escaped = encodeURIComponent(remoteRef.key).replaceAll("%20", "+");
  return render(webhook.url, { remoteRef: { key: escaped } });
}

/** `apiKey` stands in the Secret that the store names as `auth`. */
function headersOf(remoteRef: { key: string }, apiKey: string): Record<string, string> {
  const data = { auth: { key: apiKey }, remoteRef };
  return Object.fromEntries(Object.entries(webhook.headers).map(([name, template]) => [name, render(template, data)]));
}

/** `{{ .a.b }}` of Go's templates; anything more is not in the manifests. */
function render(template: string, data: Record<string, Record<string, string>>): string {
  return template.replace(/\{\{(.*?)\}\}/g, (_, expression: string) => {
    const [, object = "", member = ""] = /^ \.(\w+)\.(\w+) $/.exec(expression) ?? [];
    const value = data[object]?.[member];
    if (value === undefined) throw new Error(`no value for ${expression}`);
    return value;
  });
}

/** `$.a.b` of JSONPath. */
function atPath(document: unknown, path: string): unknown {
  const [start, ...names] = path.split(".");
  expect(start).toBe("$");
  return names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
}
