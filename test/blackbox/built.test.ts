/** The built program answers as its source does. Bundled and minified, a function says less of what it reads. */
import { beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { runBinary } from "../support/keyhole.ts";
import { type ServeOptions, siteOf } from "../support/server.ts";

type Question = { readonly path: string; readonly method?: string; readonly headers?: Record<string, string> };
type Answer = { readonly status: number; readonly headers: Record<string, unknown>; readonly body: string };

const source = join(import.meta.dir, "../../src/main.ts");
const web = "project=web&environment=staging";

const paths = [
  ...["/organization", "/organization?page=1", "/projects", "/projects/web", "/projects/absent", "/projects/%77eb"],
  ...["/projects/%ff", "/projects/web/", "/projects/web/variables", "/projects/web/variables?environment=staging"],
  ...["/projects/web/variables?environment=production", "/projects/web/variables?environment=development"],
  "/projects/web/variables?environment=elsewhere",
  "/projects/web/variables?environment=staging&environment=staging",
  "/projects/web/variables?environment=staging&unknown=1",
  "/projects/web/variables?environment=staging&keys=A,B,ABSENT",
  ...["/projects/web/variables?environment=staging&keys=,", "/projects/web/variables?environment=staging&prefix=A"],
  "/projects/web/variables?environment=staging&format=env",
  "/projects/web/variables?environment=staging&format=yaml",
  ...["/projects/web/variables?environment=staging&metadata_only=true", "/projects/web/variables?metadata_only=true"],
  ...["/projects/web/variables?metadata_only=maybe", "/projects/web/variables?environment=%73taging"],
  ...["/projects/web/variables?environment=%", "/projects/web/accounts", "/projects/web/accounts?environment=staging"],
  ...["/projects/web/accounts?environment=staging&metadata_only=true", "/projects/web/accounts?keys=A", "/files"],
  ...["", "&metadataOnly=1", "&path=small.bin", "&path=large.bin&path=small.bin", "&path=../x", "&path="].map(
    (query) => `/files?${web}${query}`,
  ),
  ...["/files?project=absent&environment=staging", `/secrets?${web}`, `/secrets?${web}&format=env`],
  ...["/secrets?project=web", "/absent", "/"],
];

describe("the built program and its source", () => {
  const site = siteOf("sqlite", { staging: { A: "one", B: "é🦔 $two\nlines" } });
  let keys: Readonly<Record<string, string>>;
  beforeAll(async () => {
    await site.json(["account", "set", "acme/web", "registry", "--env", "staging"], `{"user":"u","password":"é"}`);
    for (const [name, bytes] of [
      ["small.bin", 1000],
      ["large.bin", 700_001],
    ] as const) {
      const file = join(site.folder, name);
      writeFileSync(file, randomBytes(bytes));
      await site.json(["file", "put", "acme/web", file, "--path", name, "--env", "staging"]);
    }
    const resources = "projects,variables,accounts,files,requests";
    const all = await site.key("--org", "acme", "--resource", resources, "--env", "staging,production");
    const few = await site.key("--org", "acme", "--resource", "projects", "--project", "web", "--env", "production");
    const gone = await site.key("--org", "acme", "--resource", resources);
    await site.json(["key", "revoke", gone.id]);
    keys = { all: all.key, few: few.key, gone: gone.key };
  });

  test("give the same answers, to the byte", async () => {
    const { all, few, gone } = keys as { all: string; few: string; gone: string };
    const questions: Question[] = [
      ...paths.flatMap((path) => [all, few].map((key) => ({ path, headers: { authorization: `Bearer ${key}` } }))),
      ...paths.map((path) => ({ path })),
      ...[`bearer ${all}`, `Bearer  ${all}`, `Bearer ${gone}`, `Bearer ${all}x`, "Bearer", "Basic eDp5", ""].map(
        (authorization) => ({ path: "/organization", headers: { authorization } }),
      ),
      ...["HEAD", "POST", "PUT", "DELETE", "OPTIONS"].map((method) => ({
        path: "/projects/web/variables?environment=staging",
        method,
        headers: { authorization: `Bearer ${all}` },
      })),
      { path: `/organization?access_token=${all}` },
      { path: `/organization?access_token=${all}`, headers: { authorization: `Bearer ${all}` } },
      { path: "/organization", headers: { cookie: `access_token=${all}; a=b` } },
      { path: "/organization", headers: { authorization: `Bearer ${all}`, cookie: "a=b; __proto__=x" } },
      { path: "/organization", headers: { authorization: `Bearer ${all}`, "x-request-id": "its-own.1" } },
    ];
    const fromSource = await answers({ as: [process.execPath, "--no-env-file"], program: source }, questions);
    const fromBuilt = await answers({}, questions);
    expect(new Set(fromSource.map(({ status }) => status))).toEqual(new Set([200, 400, 401, 403, 404, 405]));
    for (const [index, question] of questions.entries()) {
      expect({ question, ...fromBuilt[index] }).toEqual({ question, ...(fromSource[index] as Answer) });
    }
  });

  test("describe the same API, and so does docs/openapi.json", async () => {
    const { stdout } = await site.keyhole(["openapi"]);
    expect(stdout).toBe(readFileSync(join(import.meta.dir, "../../docs/openapi.json"), "utf8"));
  });

  /** What a server of this kind answers to all of them, one after the other. */
  async function answers(options: ServeOptions, questions: readonly Question[]): Promise<Answer[]> {
    const server = await site.serve(options);
    const found: Answer[] = [];
    for (const question of questions) found.push(await ask(server.origin, question));
    expect(await server.stop()).toBe(0);
    return found;
  }
});

/** What differs from run to run is made alike. */
async function ask(origin: string, { path, method = "GET", headers = {} }: Question): Promise<Answer> {
  const response = await fetch(`${origin}/api/v1${path}`, { method, headers: { "x-request-id": "same", ...headers } });
  const { date: _, ratelimit, "retry-after": __, ...rest } = Object.fromEntries(response.headers);
  const left = ratelimit?.replaceAll(/\d+/g, "N");
  const receipt = rest["keyhole-audit"]?.replace(/^[^:]+/, "LANE");
  const alike = { ...rest, ratelimit: left, "keyhole-audit": receipt };
  return { status: response.status, headers: alike, body: await response.text() };
}

test("a version that is not released yet is said with its commit, in a checkout without one", async () => {
  const built = await runBinary(["version"], {});
  const said = built.stdout.replace("keyhole ", "").trimEnd();
  expect(said.replace(/\+[0-9a-f]{12}$/, "")).toBe(version);
  const isInGit = existsSync(join(source, "../../.git"));
  expect(said.includes("+")).toBe(version.endsWith("-dev") && isInGit);
  const { stdout } = Bun.spawnSync([process.execPath, "--no-env-file", source, "version"], { stdin: "ignore" });
  expect(stdout.toString()).toBe(`keyhole ${version}\n`);
});
