/** The npm package, installed from its tarball: the client in each runtime, its types, and the examples of its page. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { type Liar, startLiar } from "../support/liar.ts";
import { blocksOf } from "../support/markdown.ts";
import { outputOf, startProgram } from "../support/program.ts";
import { whereInstalled, withPrograms } from "../support/programs.ts";
import { serverOf, siteOf } from "../support/server.ts";
import { startUnasked } from "../support/unasked.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const greeting = 'it\'s "two"\n';

/** Every method against a real server, and what another server may do to a client. Prints one JSON document. */
const program = `
import { inspect } from "node:util";
import { createClient, KeyholeError } from "keyhole/client";
import { fakeKeyhole } from "keyhole/testing";

const { KEYHOLE_URL: url, KEYHOLE_API_KEY: apiKey, LIAR_URL: liarUrl, UNASKED_URL: unaskedUrl } = process.env;
const keyhole = createClient({ url, apiKey });
const liar = createClient({ url: liarUrl, apiKey });
// Only silence is meant to last that long: on a slow machine any other answer may take its time.
const impatient = createClient({ url: liarUrl, apiKey, timeoutMs: 1000 });
const failure = async (promise) => {
  const error = await promise.then(() => "it did not fail", (thrown) => thrown);
  return error instanceof KeyholeError ? error.code : String(error);
};
const notFound = await keyhole.project("absent").catch((error) => error);
const unasked = createClient({ url: unaskedUrl, apiKey });
const slugs = new Set();
const watch = keyhole.watch("web", "production", { keys: ["TOKEN"] });
const fake = fakeKeyhole({ web: { production: { A: "1" } } });
const { url: fakeUrl, close } = await fake.listen();
for (let n = 0; n < 200; n++) slugs.add((await unasked.organization()).slug);
console.log(JSON.stringify({
  organization: await keyhole.organization(),
  projects: await keyhole.projects(),
  project: await keyhole.project("web"),
  variables: await keyhole.variables("web", "production", { prefix: "G" }),
  variableNames: await keyhole.variableNames("web", null),
  values: await keyhole.values("web", "production", { keys: ["GREETING", "TOKEN", "GONE"] }),
  accounts: await keyhole.accounts("web", "production"),
  files: await keyhole.files("web", "production", { paths: ["etc/greeting.txt"] }),
  watched: [await watch.ready, watch.current(), watch.staleSince ?? null],
  faked: [await createClient(fake).values("web", "production"), await createClient({ ...fake, fetch, url: fakeUrl }).projects()],
  notFound: { ...notFound, message: notFound.message },
  isShown: [keyhole, liar, notFound].some((one) => inspect(one, { depth: null, showHidden: true }).includes(apiKey)),
  notModified: (await liar.files("web", "production", { ifNoneMatch: '"tag"' })) === undefined,
  redirect: await failure(liar.project("redirect")),
  endless: await failure(liar.project("endless")),
  silent: await failure(impatient.project("silent")),
  cut: await failure(liar.project("cut")),
  slugs: [...slugs],
}));
watch.close(); // or the program would not end
await close();
`;

/** What must compile, and what must not. */
const consumer = `
import { createClient, type Environment, type KeyholeClient, KeyholeError, type Variables } from "keyhole/client";
import { fakeKeyhole } from "keyhole/testing";

const url = "https://keyhole.example.com";
const keyhole: KeyholeClient = createClient({ url, apiKey: "kh_" });
createClient({ url, token: "text" });
createClient({ url, token: async () => "text", fetch, timeoutMs: 1, waitMs: 0, allowHttp: true });
// @ts-expect-error: neither a key nor a token
createClient({ url });
// @ts-expect-error: both
createClient({ url, apiKey: "kh_", token: "text" });

export async function reads(environment: Environment, etag: string | undefined): Promise<Variables | undefined> {
  const values: Record<string, string> = await keyhole.values("web", environment, { keys: ["A"], prefix: "A" });
  const answer = await keyhole.variables("web", "production");
  const all: readonly string[] = [...Object.values(values), ...answer.variables.map(({ value }) => value)];
  const tag: string | undefined = answer.etag;
  const changed = await keyhole.variables("web", "production", { ifNoneMatch: tag ?? etag });
  // @ts-expect-error: with ifNoneMatch there may be no answer
  changed.variables;
  const names = await keyhole.variableNames("web", null);
  // @ts-expect-error: names have no values
  names.variables.map(({ value }) => value);
  // @ts-expect-error: values are those of one environment
  await keyhole.variables("web", null);
  // @ts-expect-error: no such environment
  await keyhole.values("web", "prod");
  // @ts-expect-error: no such option
  await keyhole.accounts("web", null, { keys: ["A"] });
  const mode: "0600" | "0400" | undefined = (await keyhole.files("web", environment)).files[0]?.mode;
  console.log(all.length, mode);
  const watch = createClient(fakeKeyhole({ web: { production: { A: "1" } } })).watch("web", "production");
  const value: string | undefined = watch.current()["A"] ?? (await watch.ready)["A"];
  // @ts-expect-error: values are not for writing
  watch.current()["A"] = value ?? "";
  // @ts-expect-error: no such code
  fakeKeyhole({}).fail("none");
  return changed;
}

export function explain(error: unknown): string {
  if (!(error instanceof KeyholeError)) return "another error";
  if (error.code === "rate_limited") return "later: " + error.retryAfter?.toFixed(0);
  return error.code + error.requestId?.trim();
}
`;

/** The blocks of the client's page. Those of programs say their file's name first. */
const blocks = blocksOf("docs/client.md");

let folder: string;
let liar: Liar;
const site = siteOf("sqlite", { production: { GREETING: greeting, TOKEN: "one" }, staging: { A: "b" } });
const server = serverOf(site);

withPrograms(["node", "npm"], "the npm package", (node, npm) => {
  beforeAll(async () => {
    folder = newFolder();
    const offline = ["--offline", "--no-audit", "--no-fund", "--silent", "--cache", join(folder, "npm")];
    const packing = ["pack", join(root, "dist/npm"), "--pack-destination", folder, ...offline];
    await expectDone([process.execPath, "--no-env-file", "run", "--silent", "package"], root);
    const tarball = (await expectDone([npm ?? "", ...packing], root)).trim();
    write("package.json", JSON.stringify({ type: "module", private: true }));
    await expectDone([npm ?? "", "install", ...offline, `./${tarball}`], folder);
    write("all.mjs", program);
    write("consumer.ts", consumer);
    for (const { file, text } of blocks) if (file !== undefined) write(`examples/${file}`, text);

    await site.json(["account", "set", "acme/web", "mail", "--env", "production"], '{"password":"three"}');
    write("greeting.txt", "hello\n");
    const place = ["--path", "etc/greeting.txt", "--env", "production"];
    await site.json(["file", "put", "acme/web", join(folder, "greeting.txt"), ...place]);
    liar = await startLiar(({ path, headers }) => {
      if (headers.get("if-none-match") === '"tag"') return { status: 304 };
      if (path === "/projects/redirect")
        return { status: 302, headers: { Location: `${server.origin}/api/v1/projects/web` } };
      if (path === "/projects/endless") return { endless: new Uint8Array(1024 * 1024).fill(32) };
      if (path === "/projects/cut")
        return { raw: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{" };
      return { silent: true };
    });
  });
  afterAll(() => liar?.stop());

  test("holds the client and the start of the command, and needs no other package", () => {
    const installed = join(folder, "node_modules/keyhole");
    expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["keyhole"]);
    const client = ["answers.d.ts", "client.d.ts", "client.js", "error.d.ts"];
    const others = ["keyhole.js", "package.json", "testing.d.ts", "testing.js", "watch.d.ts"];
    expect(readdirSync(installed).sort()).toEqual(["LICENSE", "README.md", ...client, ...others]);
  });

  test("runs nothing when it is installed, and needs nobody else's package (@bitwarden/cli 2026.4.0)", () => {
    const manifest = JSON.parse(readFileSync(join(folder, "node_modules/keyhole/package.json"), "utf8"));
    const { optionalDependencies, version } = manifest;
    for (const name of ["scripts", "dependencies", "peerDependencies", "bundleDependencies", "gypfile"])
      expect([name, manifest[name]]).toEqual([name, undefined]);
    const foreign = Object.entries(optionalDependencies).filter(
      ([name, wanted]) => !name.startsWith("@keyhole/") || wanted !== version,
    );
    expect(foreign).toEqual([]);
  });

  describe("reads everything, exactly, and withstands other servers", () => {
    const readsAll = async (...command: string[]) => {
      using unasked = await startUnasked();
      const urls = { LIAR_URL: liar.origin, UNASKED_URL: unasked.origin };
      const done = await expectDone([...command, "all.mjs"], folder, await settings(urls));
      const read = JSON.parse(done);
      const updatedAt = expect.any(Number);
      const summary = { id: expect.any(String), name: "web", slug: "web", variableCount: 3, accountCount: 1 };
      expect(read).toEqual({
        organization: { id: expect.any(String), name: "acme", slug: "acme", plan: expect.any(String) },
        projects: { projects: [summary] },
        project: {
          ...summary,
          environments: ["development", "staging", "production"],
          fileCount: 1,
          createdAt: updatedAt,
          updatedAt,
        },
        variables: expect.objectContaining({
          environment: "production",
          variables: [{ key: "GREETING", value: greeting, updatedAt }],
        }),
        variableNames: expect.objectContaining({
          environment: null,
          variables: ["A", "GREETING", "TOKEN"].map((key) => ({ key, updatedAt })),
        }),
        values: { GREETING: greeting, TOKEN: "one" },
        accounts: expect.objectContaining({
          accounts: [{ name: "mail", environments: ["production"], updatedAt, values: { password: "three" } }],
        }),
        files: expect.objectContaining({
          files: [expect.objectContaining({ path: "etc/greeting.txt", content: "aGVsbG8K", size: 6, mode: "0600" })],
        }),
        watched: [{ TOKEN: "one" }, { TOKEN: "one" }, null],
        faked: [{ A: "1" }, { projects: [expect.objectContaining({ slug: "web", variableCount: 1 })] }],
        notFound: {
          name: "KeyholeError",
          code: "project_not_found",
          requestId: expect.stringMatching(/^[\w.-]+$/),
          message: expect.stringMatching(/^The server answered project_not_found: /),
        },
        isShown: false,
        notModified: true,
        redirect: "redirected",
        endless: "invalid_answer",
        silent: "timeout",
        cut: "unreachable",
        slugs: ["asked"], // CVE-2026-48931
      });
    };
    test("in Node", () => readsAll(node ?? ""));
    // A proxy of the environment would get the key in the clear.
    test("in Bun", () => readsAll("/usr/bin/env", "HTTP_PROXY=http://127.0.0.1:1", process.execPath));
    whereInstalled(["deno"], "in Deno", (deno) => {
      test("too", () => readsAll(deno ?? "", "run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env"));
    });
  });

  describe("has types that fit strict consumers", () => {
    test("by each module resolution, with the types of browsers and of Node", async () => {
      await compile(["consumer.ts"], "nodenext", "nodenext", ["es2023"], ["node"]);
      await compile(["consumer.ts"], "preserve", "bundler", ["es2023", "dom"], []);
    });
    test("and a mistake in a consumer is seen", async () => {
      write("wrong.ts", consumer.replace('"web", environment, {', '"web", "prod", {'));
      await expect(compile(["wrong.ts"], "nodenext", "nodenext", ["es2023", "dom"], [])).rejects.toThrow("TS2345");
    });
  });

  describe("has a page whose examples work:", () => {
    test("every block is of a language that is checked here", () => {
      expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["sh", "js", "ts"]));
      expect(blocks.filter(({ language, file }) => (language === "sh") !== (file === undefined))).toEqual([]);
    });

    test("the commands are those that this test runs", () => {
      const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
      const commands = ["bun run package", "npm pack ./dist/npm", `npm install ./keyhole-${version}.tgz`];
      expect(blocks.filter(({ language }) => language === "sh").map(({ text }) => text)).toEqual([
        `${commands.join("\n")}\n`,
        "export KEYHOLE_URL=https://keyhole.example.com KEYHOLE_API_KEY=kh_…\nnode first.mjs\n",
      ]);
    });

    test("TypeScript compiles", async () => {
      const files = blocks.filter(({ language }) => language === "ts").map(({ file }) => `examples/${file}`);
      expect(files).toHaveLength(2);
      await compile(files, "preserve", "bundler", ["es2023"], ["node"]);
    });

    test("the first program, in Node and as TypeScript in Bun", async () => {
      write("examples/first.ts", blocks.find(({ file }) => file === "first.mjs")?.text ?? "");
      for (const command of [
        [node, "examples/first.mjs"],
        [process.execPath, "examples/first.ts"],
      ]) {
        expect(await expectDone(command, folder, await settings())).toBe("web has 2 variables in production.\n");
      }
    });

    test("the worker", async () => {
      const { KEYHOLE_API_KEY: key = "", ...others } = await settings();
      write("key", `${key}\n`);
      const options = { cwd: folder, env: { ...others, KEYHOLE_API_KEY_FILE: join(folder, "key") } };
      const worker = startProgram([process.execPath, "examples/worker.ts"], options);
      await worker.says("Working with 2 variables.\n").finally(() => worker.stop("SIGKILL"));
    });
  });
});

function write(name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

/** The server's address and a new key. */
async function settings(more: Readonly<Record<string, string>> = {}): Promise<Record<string, string>> {
  const { key } = await site.key("--org", "acme", "--resource", "projects,variables,accounts,files");
  return { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key, ...more };
}

/** Runs a program to its end. Returns its stdout. @throws Error with all that it printed, if it failed */
function expectDone(command: string[], cwd: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const own = { PATH: process.env["PATH"], HOME: folder, DENO_DIR: join(folder, "deno"), DENO_NO_UPDATE_CHECK: "1" };
  return outputOf(command, { cwd, env: { ...own, ...env } });
}

/** Compiles strictly, the declarations of libraries included. @throws Error with what tsc says */
async function compile(files: string[], module: string, resolution: string, lib: string[], types: string[]) {
  const types_ = { types, typeRoots: [join(root, "node_modules/@types")] };
  const options = { strict: true, skipLibCheck: false, noEmit: true, target: "es2022", lib, module, ...types_ };
  const config = { compilerOptions: { ...options, moduleResolution: resolution }, files };
  write("tsconfig.json", JSON.stringify(config));
  await expectDone([join(root, "node_modules/.bin/tsc"), "-p", "tsconfig.json"], folder);
}
