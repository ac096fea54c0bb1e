/** What `keyhole pull` does with a server that is well is in transcripts/pull.txt. */
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, makePlace } from "../support/keyhole.ts";
import { honestly, type Question, type Reply, refusal } from "../support/liar.ts";
import { machineMaker, runProgram, truth } from "../support/machine.ts";
import { type Ran, run } from "../support/program.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

const machine = machineMaker();

describe("from a real server", () => {
  const site = siteOf("sqlite", { staging: { A: "plain" } });
  const server = serverOf(site);
  const busy = keyOf(site, "--env", "staging");

  test("an empty bucket is waited for as long as --wait says", async () => {
    const env = { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: busy.key };
    // A token comes every 2 s: a program that is slow to start may find one, and then another run is to find none.
    const pullOfNothing = async (...more: string[]): Promise<Ran> => {
      for (let tries = 1; ; tries++) {
        while ((await server.get("/projects/web/variables?environment=staging", busy.key)).status === 200);
        const ran = await runProgram(["pull", "-p", "web", "-e", "staging", ...more], { env });
        if (ran.stderr.includes("rate_limited") || tries === 10) return ran;
      }
    };
    const refused = await pullOfNothing();
    expect(refused.stderr).toMatch(
      /^keyhole: The server answered rate_limited: too many requests for now\. To try again until it answers, add --wait 60s\. \(request [\w-]+\)\n$/,
    );
    expect(refused).toMatchObject({ exitCode: 5, stdout: "" });
    const waited = await pullOfNothing("--wait", "20s");
    expect(waited.stderr).toMatch(/rate_limited.+\(request [\w-]+\) Trying again in \d+\.\d s\.\n/);
    expect(waited).toMatchObject({ exitCode: 0, stdout: "A=plain\n" });
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
    expect(refused.screen.includes("\u001b")).toBe(false);
    const shown = await place.onTerminal(["pull", "--format", "shell", "--keys", "A"]).ended;
    expect(shown).toMatchObject({ exitCode: 0, screen: expect.stringContaining("export A='fine") });
    const json = await place.onTerminal(["pull", "--format", "json"]).ended;
    expect(json.exitCode).toBe(0);
    expect(json.screen.includes("\u001b")).toBe(false);
    expect(JSON.parse(json.screen)).toEqual(variables);
  } finally {
    place.remove();
  }
});

test("a reader that closes early is not a failure", async () => {
  const { folder, env } = await machine();
  const script = `set -o pipefail; ${binary} pull --format json | head -c 1`;
  const ran = await run(["bash", "-c", script], { cwd: folder, env: { PATH: process.env["PATH"], ...env } });
  expect(ran).toMatchObject({ stdout: "{", stderr: "" });
});
