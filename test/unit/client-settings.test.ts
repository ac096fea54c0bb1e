import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { atMachine, type MachineOptions, readServer } from "../../src/cli/machine.ts";
import { fetchVariables } from "../../src/client/variables.ts";
import { isSteering, steeringNames } from "../../src/core/words/steering.ts";
import { contextOf } from "../support/context.ts";
import { failing } from "../support/failing.ts";
import { newFolder } from "../support/folder.ts";
import { honestly, liarStarter, type Truth } from "../support/liar.ts";

const folder = newFolder();
const startLiar = liarStarter();
const key = `kh_${"0aZ".repeat(16)}9`;

describe("the server's address", () => {
  const taken: [given: string, root: string][] = [
    ...["https://keyhole.example.com", "http://127.0.0.1:4100", "http://127.8.9.1", "http://[::1]:4100"].map(
      (given): [string, string] => [given, `${given}/api/v1`],
    ),
    ...["/", "/api/v1", "/api/v1/"].map((end): [string, string] => [
      `http://localhost${end}`,
      "http://localhost/api/v1",
    ]),
    ["https://example.com:8443/secrets/api/v1", "https://example.com:8443/secrets/api/v1"],
    ["HTTPS://Keyhole.Example.COM", "https://keyhole.example.com/api/v1"],
  ];
  test.each(taken)("%s is taken as %s", (given, root) => expect(rootFrom(given)).toBe(root));

  test.each([
    ["http://keyhole:4100", ["keyhole"]],
    ["http://keyhole", ["other", "keyhole"]],
    ["http://10.0.0.5:4100", ["10.0.0.5"]],
    ["http://[fd00::5]:4100", ["[fd00::5]"]],
  ])("%s is taken if %j are allowed", (given, allowed) => expect(rootFrom(given, allowed)).toBe(`${given}/api/v1`));

  test.each([
    ["http://keyhole.example.com", ["keyhole"]],
    ["http://akeyhole", ["keyhole"]],
    ["http://keyhole", []],
    ["http://keyhole", ["*"]],
  ])("%s is refused if %j are allowed", async (given, allowed) => {
    const problem = await failing(Promise.try(rootFrom, given, allowed));
    expect(problem.message).toContain("KEYHOLE_ALLOW_HTTP");
  });

  const refused = Object.entries({
    "plain http":
      "http://keyhole.example.com http://127.0.0.1.example.com http://127.example.com http://localhost.example.com " +
      "http://localhost. http://0.0.0.0:4100 http://[::ffff:10.0.0.1] http://[::]:4100 http://10.0.0.1 http://128.0.0.1",
    "must be a URL": "ftp://127.0.0.1 file:///etc/passwd keyhole.example.com 127.0.0.1:4100 https://",
    "without a user":
      "https://user:password@example.com http://localhost@evil.example.com https://example.com/?project=web https://example.com/#x",
    "API root": "https://example.com/keyhole https://example.com/api/v1/projects https://example.com/api/v2",
  }).flatMap(([says, given]) => given.split(" ").map((one) => [one, says] as const));
  test.each(refused)("%s is refused", async (given, says) => {
    const problem = await failing(Promise.try(rootFrom, given));
    expect(problem).toMatchObject({ exitCode: 2, code: "invalid_usage" });
    expect(problem.message).toContain(says);
    expect(problem.message).toContain("KEYHOLE_URL");
    expect(problem.message).not.toContain("password");
  });
});

/** The root from the settings. */
function rootFrom(url: string, allowed: readonly string[] = []): string {
  const hosts = allowed.length > 0 && { KEYHOLE_ALLOW_HTTP: allowed.join(",") };
  return readServer({ env: { KEYHOLE_URL: url, ...hosts } }, undefined).root;
}

describe("settings", () => {
  const place = { KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "staging" };
  const whole = { KEYHOLE_URL: "http://127.0.0.1:1", KEYHOLE_API_KEY: key, ...place };
  const file = join(folder, "key");
  writeFileSync(file, `${key}\n`);

  test("come from the environment, and a flag beats its variable", async () => {
    expect(await settle(whole)).toEqual({ project: "web", environment: "staging", key });
    const flags = { project: "api", env: "production", url: "http://127.0.0.1:2", apiKeyFile: file } as const;
    const other = { ...whole, KEYHOLE_API_KEY: "not looked at" };
    expect(await settle(other, flags)).toEqual({ project: "api", environment: "production", key });
  });

  test("may name a file for the key, with or without a line end", async () => {
    for (const end of ["", "\n", "\r\n"]) {
      writeFileSync(file, `${key}${end}`);
      const { KEYHOLE_API_KEY: _, ...env } = whole;
      expect((await settle({ ...env, KEYHOLE_API_KEY_FILE: file })).key).toBe(key);
    }
  });

  test("may name a token in the environment or in a file, which is read again for each request", async () => {
    const env = { ...whole, KEYHOLE_API_KEY: undefined };
    expect((await settle({ ...env, KEYHOLE_OIDC: "env:TOKEN", TOKEN: "a.b.c" })).key).toBe("a.b.c");
    const path = join(folder, "token");
    await atMachine(contextOf({ env: { ...env, KEYHOLE_OIDC: `file:${path}` } }), {}, async ({ asked, client }) => {
      for (const text of ["a.b.c", "d.e.f"]) {
        writeFileSync(path, `${text}\n`);
        await client.variables(asked).catch(() => {});
        expect(client.key).toBe(text);
      }
    });
  });

  const noKey = { KEYHOLE_API_KEY: undefined };
  const token = { ...noKey, KEYHOLE_OIDC: "env:TOKEN" };
  const runner = { ACTIONS_ID_TOKEN_REQUEST_URL: "http://192.0.2.1", ACTIONS_ID_TOKEN_REQUEST_TOKEN: "x" };
  const wrong: [what: string, env: Record<string, string | undefined>, says: RegExp, exitCode?: number][] = [
    ["no address", { KEYHOLE_URL: undefined }, /--url or KEYHOLE_URL is required/],
    ["no list of hosts", { KEYHOLE_ALLOW_HTTP: "" }, /KEYHOLE_ALLOW_HTTP must be names of hosts/],
    ["a host with a port", { KEYHOLE_ALLOW_HTTP: "keyhole:4100" }, /KEYHOLE_ALLOW_HTTP must be names of hosts/],
    ["any host", { KEYHOLE_ALLOW_HTTP: "a, b" }, /KEYHOLE_ALLOW_HTTP must be names of hosts/],
    ["an empty address", { KEYHOLE_URL: "" }, /KEYHOLE_URL is empty/],
    ["no key", { KEYHOLE_API_KEY: undefined }, /KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE, --api-key-file or KEYHOLE_OIDC/],
    ["a key and a token", { KEYHOLE_OIDC: "env:TOKEN" }, /KEYHOLE_OIDC and an API key are both set/],
    [
      "no source of tokens",
      { ...noKey, KEYHOLE_OIDC: "gitlab" },
      /KEYHOLE_OIDC is github, gcp, azure, aws, env:NAME, file:PATH or command:/,
    ],
    [
      "an empty source of tokens",
      { ...noKey, KEYHOLE_OIDC: "" },
      /KEYHOLE_OIDC is github, gcp, azure, aws, env:NAME, file:PATH or command:/,
    ],
    ["a variable without a token", token, /the variable TOKEN, which is not set/],
    ["something else for a token", { ...token, TOKEN: "a.b" }, /TOKEN does not hold a token/, 3],
    ["no runner", { ...noKey, KEYHOLE_OIDC: "github" }, /id-token: write/],
    ["a program as a line", { ...noKey, KEYHOLE_OIDC: "command:print token" }, /in JSON: no shell reads it/],
    ["no program", { ...noKey, KEYHOLE_OIDC: 'command:[""]' }, /in JSON: no shell reads it/],
    ["an empty program", { ...noKey, KEYHOLE_OIDC: "command:" }, /or command:/],
    ...["10.0.0.1", "169.254.1.evil.example", "metadata.google.internal", "127.0.0.1@evil.example"].map(
      (GCE_METADATA_HOST): (typeof wrong)[number] => {
        const says = /GCE_METADATA_HOST must be http to a link-local address, such as http:\/\/169\.254\.169\.254\.$/;
        return [
          `Google's metadata at ${GCE_METADATA_HOST}`,
          { ...noKey, KEYHOLE_OIDC: "gcp", GCE_METADATA_HOST },
          says,
        ];
      },
    ),
    ...[
      ["azure", "AZURE_POD_IDENTITY_AUTHORITY_HOST"],
      ["aws", "AWS_EC2_METADATA_SERVICE_ENDPOINT"],
    ].map(([KEYHOLE_OIDC = "", setting = ""]): (typeof wrong)[number] => {
      const env = { ...noKey, KEYHOLE_OIDC, [setting]: "http://10.0.0.1" };
      return [`metadata of ${KEYHOLE_OIDC} elsewhere`, env, new RegExp(`${setting} must be http to a link-local`)];
    }),
    [
      "AWS STS in the clear",
      { ...noKey, KEYHOLE_OIDC: "aws", AWS_ENDPOINT_URL_STS: "http://192.0.2.1" },
      /AWS_ENDPOINT_URL_STS must be an https URL/,
    ],
    ["a runner in the clear", { ...noKey, KEYHOLE_OIDC: "github", ...runner }, /REQUEST_URL is not an https URL/],
    ["an empty key", { KEYHOLE_API_KEY: "" }, /KEYHOLE_API_KEY is empty/],
    ["two keys", { KEYHOLE_API_KEY_FILE: file }, /both set/],
    ["something else for a key", { KEYHOLE_API_KEY: "hunter2" }, /does not hold an API key/, 3],
    ["a key and another line", { KEYHOLE_API_KEY: `${key}\nX: y` }, /does not hold an API key/, 3],
    ["no project", { KEYHOLE_PROJECT: undefined }, /--project or KEYHOLE_PROJECT is required/],
    ["a project that is a path", { KEYHOLE_PROJECT: "web/../x" }, /KEYHOLE_PROJECT must be/],
    ["an organization's project", { KEYHOLE_PROJECT: "acme/web" }, /KEYHOLE_PROJECT must be/],
    ["no environment", { KEYHOLE_ENVIRONMENT: undefined }, /--env or KEYHOLE_ENVIRONMENT/],
    ["another environment", { KEYHOLE_ENVIRONMENT: "prod" }, /one of development, staging, production/],
    ["a missing key file", { ...noKey, KEYHOLE_API_KEY_FILE: join(folder, "none") }, /cannot be read/, 1],
  ];
  test.each(wrong)("%s is reported before anything is sent", async (_, env, says, exitCode = 2) => {
    const problem = await failing(settle({ ...whole, ...env }));
    expect(problem.message).toMatch(says);
    expect(problem.exitCode).toBe(exitCode);
    expect(problem.message).not.toContain("hunter2");
  });
});

describe("a set", () => {
  const truth: Truth = { project: "web", environment: "staging", variables: { A: "1", B: "2" }, files: [] };
  const fetchSet = async (options: Parameters<typeof fetchVariables>[1], variables = truth.variables) => {
    const liar = await startLiar((question) => honestly({ ...truth, variables }, question));
    const env = { KEYHOLE_URL: liar.origin, KEYHOLE_API_KEY: key };
    const common = { project: "web", env: "staging" } as const;
    return await atMachine(contextOf({ env }), common, (machine) => fetchVariables(machine, options));
  };

  test("without a required name is not found, and the error has the name", async () => {
    const all = ["A", "C", "D"];
    for (const options of [{ keys: all }, { require: all }, { keys: ["A", "C"], require: ["D"] }]) {
      const problem = await failing(fetchSet(options));
      expect(problem).toMatchObject({ exitCode: 4, code: "missing_variables" });
      expect(problem.message).toContain("C, D");
    }
    expect(await fetchSet({ keys: ["A"] })).toEqual([{ name: "A", value: "1" }]);
    expect(await fetchSet({ require: ["B"] })).toHaveLength(2);
  });

  test("that is empty is not found unless --allow-empty", async () => {
    expect(await failing(fetchSet({}, {}))).toMatchObject({ exitCode: 4, code: "empty_set" });
    expect(await failing(fetchSet({ prefix: "X_" }))).toMatchObject({ exitCode: 4, code: "empty_set" });
    expect(await fetchSet({ allowEmpty: true }, {})).toEqual([]);
  });

  test("is asked for by valid names of variables", async () => {
    for (const options of [{ keys: ["a.b"] }, { require: ["1A"] }, { keys: ["_"] }, { prefix: "" }]) {
      expect(await failing(fetchSet(options))).toMatchObject({ exitCode: 2 });
    }
    const many = Array.from({ length: 1000 }, (_, at) => `LONG_NAME_${at}`);
    expect(await failing(fetchSet({ keys: many }))).toMatchObject({ exitCode: 2 });
  });
});

describe("names that steer", () => {
  const steering = [
    "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES NODE_OPTIONS BUN_OPTIONS BASH_ENV ENV PATH GIT_SSH_COMMAND",
    "GITHUB_TOKEN GITHUB_ENV RUNNER_TEMP KEYHOLE_URL KEYHOLE_API_KEY PYTHONSTARTUP PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS",
    "PROMPT_COMMAND IFS PS4 npm_config_script_shell LUA_INIT LUA_INIT_5_4 LUA_PATH_5_4 TAR_OPTIONS ERL_FLAGS ERL_AFLAGS",
    "ERL_OTP27_FLAGS ELIXIR_ERL_OPTIONS JRUBY_OPTS OPENJ9_JAVA_OPTIONS IBM_JAVA_OPTIONS R_PROFILE_USER R_ENVIRON_USER",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER CARGO_BUILD_RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER PSQLRC VIMINIT",
    "EXINIT RSYNC_RSH SVN_SSH HGRCPATH LESS XDG_CONFIG_HOME",
  ].flatMap((line) => line.split(" "));
  test.each(steering)("%s does", (name) => expect(isSteering(name, "linux")).toBe(true));

  const plain = [
    "DATABASE_URL PATHS MY_PATH LDAP_URL GITLAB_TOKEN GITEA_TOKEN NODE_ENV PORT HOST ENVIRONMENT AWS_SECRET_ACCESS_KEY",
    "HTTP_PROXY path SHELLY DYLAN PYTHON_KEY CARGO_REGISTRY_TOKEN LUA_TOKEN PSQL_PASSWORD ERL_COOKIE R_TOKEN XDG_KEY",
  ].flatMap((line) => line.split(" "));
  test.each(plain)("%s does not", (name) => expect(isSteering(name, "linux")).toBe(false));

  test("steer on Windows in any case", () => {
    expect(isSteering("Path", "win32")).toBe(true);
    expect(isSteering("ld_preload", "win32")).toBe(true);
    expect(isSteering("PSMODULEPATH", "win32")).toBe(true);
  });

  test("are patterns, each once, below the page that says so", async () => {
    expect(steeringNames.filter((name) => !/^\w[\w*]*$/.test(name))).toEqual([]);
    expect(steeringNames).toHaveLength(new Set(steeringNames).size);
    const lines = (await Bun.file("src/core/words/steering.ts").text()).split("\n");
    const sources = lines.filter((_, at) => lines[at + 1]?.startsWith('  "'));
    expect(sources.length).toBeGreaterThan(50);
    for (const source of sources) expect(source).toMatch(/^ {2}\/\/ (?:https:\/\/[^ ]+|docs\/configuration\.md)$/);
  });
});

async function settle(env: Readonly<Record<string, string | undefined>>, options: MachineOptions = {}) {
  return atMachine(contextOf({ env }), options, async ({ asked, client }) => {
    await client.variables(asked).catch(() => {}); // nobody answers, but the key was taken
    return { ...asked, key: client.key };
  });
}
