/** A client that a generator makes of docs/openapi.json: its types compile, and it reads from a server. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectDescribed } from "../support/described.ts";
import { newFolder } from "../support/folder.ts";
import { outputOf } from "../support/program.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const generator = join(root, "test/support/openapi-client");

/** A strict consumer: every member that it names must be in the types, and nothing is cast. */
const consumer = `
import createClient from "openapi-fetch";
import type { components, paths } from "./api.ts";

const { KEYHOLE_URL = "", KEYHOLE_API_KEY = "" } = process.env;
const client = createClient<paths>({ baseUrl: \`\${KEYHOLE_URL}/api/v1\`,
  headers: { Authorization: \`Bearer \${KEYHOLE_API_KEY}\` },
});
const slug = "web";
const environment = "production";

const organization = await client.GET("/organization");
const projects = await client.GET("/projects");
const project = await client.GET("/projects/{slug}", { params: { path: { slug } } });
const path = { slug };
const some = { environment, keys: "TOKEN,NONE", format: "json" } as const;
const variables = await client.GET("/projects/{slug}/variables", { params: { path, query: some } });
const accounts = await client.GET("/projects/{slug}/accounts", { params: { path, query: { environment } } });
const wanted = ["etc/a.txt", "etc/none.txt"];
const files = await client.GET("/files", { params: { query: { project: slug, environment, path: wanted } } });
const absent = await client.GET("/projects/{slug}", { params: { path: { slug: "absent" } } });

const problem: components["schemas"]["Problem"] | undefined = absent.error;
console.log(JSON.stringify({ organization: organization.data?.slug,
  projects: projects.data?.projects.map((one) => one.slug),
  files: project.data?.fileCount,
  variables: typeof variables.data === "object" ? variables.data.variables.map((one) => [one.key, "value" in one ? one.value : null]) : null,
  accounts: accounts.data?.accounts.map((one) => [one.name, "values" in one ? one.values : null]),
  contents: files.data?.files.map((one) => [one.path, "content" in one ? atob(one.content ?? "") : null]),
  absent: [absent.response.status, problem?.code],
}));
`;

describe("a client of openapi-typescript", () => {
  let folder: string;
  const site = siteOf("sqlite", { production: { TOKEN: "one", OTHER: "two" } });
  const key = keyOf(site, "--org", "acme", "--resource", "projects,variables,accounts,files");
  const server = serverOf(site);
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

  beforeAll(async () => {
    await done([process.execPath, "install", "--frozen-lockfile", "--ignore-scripts", "--silent"], generator);
    folder = newFolder();
    symlinkSync(join(generator, "node_modules"), join(folder, "node_modules"));
    const cli = join(generator, "node_modules/openapi-typescript/bin/cli.js");
    await done([process.execPath, "--no-env-file", cli, join(root, "docs/openapi.json"), "-o", "api.ts"], folder);
    const own = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, allowImportingTsExtensions: true };
    const typeRoots = [join(root, "node_modules/@types"), join(root, "node_modules")];
    const target = { target: "es2023", module: "preserve", lib: ["es2023", "dom"], types: ["node"], typeRoots };
    write("tsconfig.json", JSON.stringify({ compilerOptions: { ...own, ...target }, files: ["consumer.ts"] }));
    write("consumer.ts", consumer);

    await site.json(["account", "set", "acme/web", "mail", "--env", "production"], '{"password":"three"}');
    write("a.txt", "hello");
    const place = ["--path", "etc/a.txt", "--env", "production"];
    await site.json(["file", "put", "acme/web", join(folder, "a.txt"), ...place]);
  });
  const compile = () => done([join(root, "node_modules/.bin/tsc"), "-p", "tsconfig.json"], folder);

  test("has types that fit a strict consumer", compile);

  test("has types that show a mistake in a consumer", async () => {
    write("consumer.ts", consumer.replace('const environment = "production"', 'const environment = "prod"'));
    await expect(compile()).rejects.toThrow("TS2322");
    write("consumer.ts", consumer);
  });

  test("reads every kind of thing, and the code of a refusal", async () => {
    const env = { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key };
    const read = await done([process.execPath, "--no-env-file", "consumer.ts"], folder, env);
    expect(JSON.parse(read)).toEqual({
      organization: "acme",
      projects: ["web"],
      files: 1,
      variables: [["TOKEN", "one"]],
      accounts: [["mail", { password: "three" }]],
      contents: [["etc/a.txt", "hello"]],
      absent: [404, "project_not_found"],
    });
  });

  test("can ask for as many paths as the description says, and gets a declared 431 for more than fit", async () => {
    const asking = async (count: number) => {
      const paths = Array.from({ length: count }, (_, at) => `&path=${String(at).padStart(50, "p")}`).join("");
      const path = `/files?project=web&environment=production${paths}`;
      const headers = { Authorization: `Bearer ${key.key}` };
      const answer = await fetch(`${server.origin}/api/v1${path}`, { headers, keepalive: false });
      const body = await answer.text();
      expectDescribed(path, answer.status, answer.headers, () => body);
      return answer.status;
    };
    expect([await asking(250), await asking(300)]).toEqual([200, 431]);
  });
});

/** Runs a program to its end. Returns its stdout. @throws Error with all that it printed, if it failed */
function done(command: string[], cwd: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { PATH, HOME, NODE_EXTRA_CA_CERTS } = process.env;
  return outputOf(command, { cwd, env: { PATH, HOME, NODE_EXTRA_CA_CERTS, ...env } });
}
