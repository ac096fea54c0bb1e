import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mintKey } from "../../src/access/api-key.ts";
import { binary, makePlace, type Ran } from "../support/keyhole.ts";
import { honestly, type Question, type Reply, refusal } from "../support/liar.ts";
import { machineMaker, runProgram, truth } from "../support/machine.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

const machine = machineMaker();

describe("from a real server", () => {
  const site = siteOf("sqlite", { staging: { A: "plain", B: 'it\'s "two"\nlines' } });
  const server = serverOf(site);
  const key = keyOf(site, "--env", "staging");
  const pull = (args: readonly string[], apiKey = key.key) =>
    runProgram(["pull", "-p", "web", "-e", "staging", ...args], {
      cwd: site.folder,
      env: { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: apiKey },
    });

  test("the set comes as it was stored, and is on record", async () => {
    expect(await pull(["--format", "json"])).toEqual({
      exitCode: 0,
      stdout: '{\n  "A": "plain",\n  "B": "it\'s \\"two\\"\\nlines"\n}\n',
      stderr: "",
    });
    expect((await site.audit()).at(-1)).toMatchObject({ action: "variables.read" });
  });

  test("the default is dotenv text, with a warning of values that some readers change", async () => {
    const ran = await pull([]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: 'A=plain\nB="it\'s \\"two\\"\\nlines"\n' });
    expect(ran.stderr).toContain("exactly: B.");
  });

  test("a key that is out of scope, revoked or unknown prints nothing a script could take for a value", async () => {
    const revoked = await site.key("--name", "old");
    await site.keyhole(["key", "revoke", revoked.id]);
    for (const apiKey of [revoked.key, mintKey()]) {
      const ran = await pull([], apiKey);
      expect(ran).toMatchObject({ exitCode: 3, stdout: "" });
      expect(ran.stderr).toMatch(/^keyhole: The server answered unauthorized: .+ \(request [\w-]+\)\n$/);
      expect(ran.stderr).not.toContain(apiKey);
    }
    const production = await runProgram(["pull", "-p", "web", "-e", "production", "--json"], {
      env: { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key },
    });
    expect(production).toMatchObject({ exitCode: 3, stdout: "" });
    expect(JSON.parse(production.stderr)).toEqual({
      error: expect.stringContaining("environment_not_in_scope"),
      code: "environment_not_in_scope",
      requestId: expect.stringMatching(/^[\w-]+$/),
    });
    const absent = await runProgram(["pull", "-p", "none", "-e", "staging"], {
      env: { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key },
    });
    expect(absent).toMatchObject({ exitCode: 4, stdout: "" });
    expect(absent.stderr).toContain("project_not_found");
  });

  test("a key for another surface is refused with the one that is needed", async () => {
    const { key } = await site.key("--surface", "ci_action");
    const env = { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key };
    const asked = ["-p", "web", "-e", "staging"];
    for (const [exitCode, args] of [
      [3, ["pull", ...asked]],
      [125, ["run", ...asked, "--", "true"]],
    ] as const) {
      const ran = await runProgram(args, { cwd: site.folder, env });
      expect(ran).toMatchObject({ exitCode, stdout: "" });
      expect(ran.stderr).toContain("need a key with the surface rest_api, the default;");
    }
  });

  test("an empty bucket is waited for as long as --wait says", async () => {
    const busy = await site.key("--name", "busy");
    const path = "/projects/web/variables?environment=staging";
    // A token comes every 2 s: a program that is slow to start may find one, and then another run is to find none.
    const pullOfNothing = async (...more: string[]): Promise<Ran> => {
      for (let tries = 1; ; tries++) {
        while ((await server.get(path, busy.key)).status === 200);
        const ran = await pull(["--format", "json", ...more], busy.key);
        if (ran.stderr.includes("rate_limited") || tries === 10) return ran;
      }
    };
    const refused = await pullOfNothing();
    expect(refused).toMatchObject({ exitCode: 5, stdout: "" });
    expect(refused.stderr).toMatch(
      /^keyhole: The server answered rate_limited: too many requests for now\. To try again until it answers, add --wait 60s\. \(request [\w-]+\)\n$/,
    );
    const waited = await pullOfNothing("--wait", "20s");
    expect(waited).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("plain") });
    expect(waited.stderr).toMatch(/rate_limited.+\(request [\w-]+\) Trying again in \d+\.\d s\.\n/);
  });
});

describe("formats", () => {
  test("--json prints the format json as it is, and any other format inside one document", async () => {
    const { keyhole } = await machine();
    expect(JSON.parse((await keyhole(["pull", "--json"])).stdout)).toEqual(truth.variables);
    expect(JSON.parse((await keyhole(["pull", "--json", "--format", "shell"])).stdout)).toEqual({
      project: "web",
      environment: "production",
      format: "shell",
      text: expect.stringContaining("export API_TOKEN='tok-123456'\n"),
    });
    const written = await keyhole(["pull", "--json", "--format", "yaml", "--out", "set.yaml"]);
    expect(JSON.parse(written.stdout)).toEqual({
      project: "web",
      environment: "production",
      format: "yaml",
      out: "set.yaml",
      names: ["API_TOKEN", "DATABASE_URL", "MOTD"],
    });
    expect(await keyhole(["pull", "--json", "--format", "github"])).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test("what a format cannot carry is refused by name, and nothing is written", async () => {
    const { keyhole, folder } = await machine();
    const ran = await keyhole(["pull", "--format", "docker", "--out", "web.env"]);
    expect(ran).toMatchObject({ exitCode: 5, stdout: "" });
    expect(ran.stderr).toContain("The format docker cannot carry MOTD (");
    expect(readdirSync(folder)).toEqual([]);
    expect(await keyhole(["pull", "--format", "docker", "--keys", "API_TOKEN"])).toEqual({
      exitCode: 0,
      stdout: "API_TOKEN=tok-123456\n",
      stderr: "",
    });
  });

  test("names that steer are refused in formats for an environment, and accepted in data formats", async () => {
    const { keyhole } = await machine((question) =>
      honestly({ ...truth, variables: { A: "x", LD_PRELOAD: "/tmp/x.so", PATH: "/tmp" } }, question),
    );
    for (const format of ["env", "shell", "docker", "powershell"]) {
      const ran = await keyhole(["pull", "--format", format]);
      expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
      expect(ran.stderr).toContain("LD_PRELOAD, PATH");
      expect((await keyhole(["pull", "--format", format, "--allow-name", "LD_PRELOAD,PATH"])).exitCode).toBe(0);
    }
    for (const format of ["json", "yaml", "toml", "csv", "tfvars"])
      expect((await keyhole(["pull", "--format", format])).exitCode).toBe(0);
  });

  test("--out replaces a file by one of mode 0600, and refuses a link", async () => {
    const { keyhole, folder } = await machine();
    writeFileSync(join(folder, ".env"), "old", { mode: 0o644 });
    const ran = await keyhole(["pull", "--out", ".env"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ran.stderr).toContain("Wrote 3 variables to .env.");
    expect(statSync(join(folder, ".env")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, ".env"), "utf8")).toContain("API_TOKEN=tok-123456\n");
    symlinkSync(".env", join(folder, "link"));
    expect(await keyhole(["pull", "--out", "link"])).toMatchObject({ exitCode: 1, stdout: "" });
    expect(readdirSync(folder).sort()).toEqual([".env", "link"]);
  });
});

describe("github", () => {
  test("masks come first, then the values, after what other steps have set", async () => {
    const { keyhole, folder } = await machine();
    const file = join(folder, "github_env");
    writeFileSync(file, "OTHER=1\n");
    const ran = await keyhole(["pull", "--format", "github"], { env: { GITHUB_ENV: file } });
    expect(ran.exitCode).toBe(0);
    for (const line of ran.stdout.split("\n").slice(0, -1)) expect(line).toStartWith("::add-mask::");
    expect(ran.stdout).toContain("::add-mask::tok-123456\n");
    expect(ran.stdout).toContain("::add-mask::here\n");
    expect(readFileSync(file, "utf8")).toMatch(
      /^OTHER=1\nAPI_TOKEN<<(KEYHOLE_[0-9a-f]{32})\ntok-123456\n\1\nDATABASE_URL<<(KEYHOLE_[0-9a-f]{32})\n/,
    );
  });

  test("nothing is appended, and no mask is printed, unless everything can be set", async () => {
    const { keyhole, folder } = await machine((question) =>
      honestly({ ...truth, variables: { A: "aaaa", GITHUB_TOKEN: "bbbb" } }, question),
    );
    const file = join(folder, "github_env");
    writeFileSync(file, "OTHER=1\n");
    const env = { GITHUB_ENV: file };
    expect(await keyhole(["pull", "--format", "github"], { env })).toMatchObject({ exitCode: 1, stdout: "" });
    const allowed = await keyhole(["pull", "--format", "github", "--allow-name", "GITHUB_TOKEN"], { env });
    expect(allowed).toMatchObject({ exitCode: 5, stdout: "" });
    const missing = await keyhole(["pull", "--format", "github", "--keys", "A,B"], { env });
    expect(missing).toMatchObject({ exitCode: 4, stdout: "" });
    const nowhere = await keyhole(["pull", "--format", "github", "--keys", "A"], {
      env: { GITHUB_ENV: join(folder, "none/file") },
    });
    expect(nowhere).toMatchObject({ exitCode: 1, stdout: "" });
    expect(await keyhole(["pull", "--format", "github"])).toMatchObject({ exitCode: 2, stdout: "" });
    const unknown = await keyhole(["pull", "--format", "github", "--keys", "A", "--mask", "B"], { env });
    expect(unknown).toMatchObject({ exitCode: 4, stdout: "" });
    expect(await keyhole(["pull", "--format", "json", "--mask", "A"])).toMatchObject({ exitCode: 2, stdout: "" });
    expect(readFileSync(file, "utf8")).toBe("OTHER=1\n");
  });
});

describe("on any failure stdout is empty and the disk as it was", () => {
  const failures: [what: string, reply: (question: Question) => Reply, exitCode: number][] = [
    ["half of JSON", () => ({ body: '{"environment":"production","variables":[{"key":"A","value":"b"' }), 1],
    ["a body cut short", () => ({ raw: "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{" }), 6],
    ["no set at all", () => ({ body: { environment: "production", variables: [] } }), 4],
    ["rate_limited", () => refusal(429, "rate_limited", "Wait.", { "Retry-After": "60" }), 5],
    ["silence", () => ({ silent: true }), 6],
  ];
  test.each(failures)("%s", async (what, reply, exitCode) => {
    const { keyhole, folder, key } = await machine(reply);
    const file = join(folder, "out");
    writeFileSync(file, "as it was");
    // Only silence is meant to last that long: on a slow machine any other reply may take its time.
    const timeout = what === "silence" ? "1s" : "20s";
    const runs = [
      ["--format", "env"],
      ["--format", "shell", "--out", "out"],
      ["--format", "github"],
    ];
    await Promise.all(
      runs.map(async (args) => {
        const ran = await keyhole(["pull", "--timeout", timeout, ...args], { env: { GITHUB_ENV: file } });
        expect(ran).toMatchObject({ exitCode, stdout: "" });
        expect(ran.stderr).toMatch(/^keyhole: \S.+\n$/);
        expect(ran.stderr).not.toContain(key);
      }),
    );
    expect(readdirSync(folder)).toEqual(["out"]);
    expect(readFileSync(file, "utf8")).toBe("as it was");
  });

  test("a server that is not there", async () => {
    const { keyhole } = await machine();
    // Nobody listens on port 1. The port of a server that has stopped may be another test's by now.
    const ran = await keyhole(["pull", "--json"], { env: { KEYHOLE_URL: "http://127.0.0.1:1" } });
    expect(ran).toMatchObject({ exitCode: 6, stdout: "" });
    expect(JSON.parse(ran.stderr)).toMatchObject({ code: "unreachable", requestId: null });
  });
});

describe("the key goes to the server alone", () => {
  test("not to a proxy that the environment names, since plain http could be read there", async () => {
    const proxy = await machine(() => ({ status: 500 }));
    const { keyhole, liar } = await machine();
    const at = proxy.liar.origin;
    const env = { HTTP_PROXY: at, http_proxy: at, ALL_PROXY: at, all_proxy: at };
    expect((await keyhole(["pull", "--format", "json"], { env })).exitCode).toBe(0);
    expect([proxy.liar.questions.length, liar.questions.length]).toEqual([0, 1]);
  });

  test("not to an address in a file of the current folder", async () => {
    const trap = await machine(() => ({ status: 500 }));
    const { keyhole, folder, liar } = await machine();
    writeFileSync(join(folder, ".env"), `KEYHOLE_URL=${trap.liar.origin}\n`);
    writeFileSync(join(folder, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
    writeFileSync(join(folder, "preload.ts"), "process.exit(42)\n");
    expect((await keyhole(["pull", "--format", "json"])).exitCode).toBe(0);
    expect([trap.liar.questions.length, liar.questions.length]).toEqual([0, 1]);
  });

  test("and may come from a file, with a warning if others can read that", async () => {
    const { folder, key, liar } = await machine();
    mkdirSync(join(folder, "secrets"));
    writeFileSync(join(folder, "secrets/key"), `${key}\n`);
    const env = { KEYHOLE_URL: liar.origin, KEYHOLE_API_KEY_FILE: "secrets/key" };
    for (const [mode, stderr] of [
      [0o400, ""],
      [
        0o644,
        "WARNING: The file of KEYHOLE_API_KEY_FILE, secrets/key, can be read by other users (mode 0644): chmod 600 secrets/key\n",
      ],
    ] as const) {
      chmodSync(join(folder, "secrets/key"), mode);
      const ran = await runProgram(["pull", "-p", "web", "-e", "production", "--format", "json"], { cwd: folder, env });
      expect(ran).toMatchObject({ exitCode: 0, stderr });
    }
    expect(liar.questions[0]?.headers.get("authorization")).toBe(`Bearer ${key}`);
  });
});

test("values that would steer a terminal are not shown on one, but by json", async () => {
  const variables = { A: "fine\n\ttoo", B: "\u001b]0;title\u0007", C: "a\rb" };
  const { env } = await machine((question) => honestly({ ...truth, variables }, question));
  const place = makePlace(env);
  try {
    const refused = await place.onTerminal(["pull", "--format", "shell"]).ended;
    expect(refused.exitCode).toBe(1);
    expect(refused.screen).toContain("could act on them: B, C.");
    expect(refused.screen).not.toContain("\u001b");
    const shown = await place.onTerminal(["pull", "--format", "shell", "--keys", "A"]).ended;
    expect(shown).toMatchObject({ exitCode: 0, screen: expect.stringContaining("export A='fine") });
    const json = await place.onTerminal(["pull", "--format", "json"]).ended;
    expect(json.exitCode).toBe(0);
    expect(json.screen).not.toContain("\u001b");
    expect(JSON.parse(json.screen)).toEqual(variables);
  } finally {
    place.remove();
  }
});

test("a reader that closes early is not a failure", async () => {
  const { folder, env } = await machine();
  const ran = Bun.spawn(["bash", "-c", `set -o pipefail; ${binary} pull --format json | head -c 1`], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  expect([await ran.stdout.text(), await ran.stderr.text()]).toEqual(["{", ""]);
});
