import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { binary, makePlace } from "../support/keyhole.ts";
import { honestly, type Question, type Reply, refusal, type Truth } from "../support/liar.ts";
import { type Machine, machineMaker, runProgram, truth } from "../support/machine.ts";
import { findProgram, noteMissing } from "../support/programs.ts";
import { carriedValues } from "../support/readers/nasty.ts";

const machine = machineMaker();
const holding = (variables: Truth["variables"]) => machine((question) => honestly({ ...truth, variables }, question));

describe("200 hostile values arrive unchanged", () => {
  const own = fc.sample(fc.string({ unit: "binary", maxLength: 40, size: "max" }), { seed: 1, numRuns: 200 });
  const values = [...carriedValues, "x".repeat(65_536), ...own.filter((value) => !value.includes("\0"))].toSorted(
    (a, b) => Number(Bun.hash(a) - Bun.hash(b)),
  );
  const variables = Object.fromEntries(
    values.slice(0, 200).map((value, at) => [`V${String(at).padStart(3, "0")}`, value]),
  );
  const names = Object.keys(variables);
  const hex = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, Buffer.from(value).toString("hex")]),
  );

  const children: { child: string; program: string; args: string[]; read: (out: string) => unknown }[] = [
    {
      child: "Node.js",
      program: "node",
      args: [
        "-e",
        "console.log(JSON.stringify(Object.fromEntries(process.argv.slice(1).map((n) => [n, Buffer.from(process.env[n]).toString('hex')]))))",
        ...names,
      ],
      read: JSON.parse,
    },
    {
      child: "Python",
      program: "python3",
      args: [
        "-c",
        "import json, os, sys; print(json.dumps({n: os.environb[n.encode()].hex() for n in sys.argv[1:]}))",
        ...names,
      ],
      read: JSON.parse,
    },
    {
      child: "Ruby",
      program: "ruby",
      args: ["-rjson", "-e", "puts JSON.generate(ARGV.to_h { |n| [n, ENV[n].unpack1('H*')] })", ...names],
      read: JSON.parse,
    },
    ...["dash", "bash"].map((shell) => ({
      child: shell,
      program: shell,
      args: ["-c", `printf '%s\\0' ${names.map((name) => `"$${name}"`).join(" ")}`],
      read: (out: string) =>
        Object.fromEntries(
          out
            .split("\0")
            .slice(0, -1)
            .map((value, at) => [names[at], Buffer.from(value).toString("hex")]),
        ),
    })),
  ];
  for (const { child, program, args, read } of children) {
    if (findProgram(program) === undefined) {
      noteMissing([program], `what the children of ${child} get`);
      continue;
    }
    test(`by ${child}`, async () => {
      expect(names).toHaveLength(200);
      const { keyhole } = await holding(variables);
      // A version manager's stand-in for a program may need a HOME.
      const ran = await keyhole(["run", "--", program, ...args], { env: { HOME: process.env["HOME"] ?? "/" } });
      expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
      expect(read(ran.stdout)).toEqual(hex);
    });
  }
});

describe("the command", () => {
  test("gets its arguments as they are", async () => {
    const { keyhole } = await machine();
    const odd = ["", " ", "a b", "it's", '"', "\\", "$HOME", "*", "a\nb", "é🔑"];
    const args = ["--", "-p", "--json", "--help", "-h", "--project=x", "help", ...odd];
    for (const first of [[], ["--"], ["-x"]]) {
      const ran = await keyhole(["run", "--", "sh", "-c", `printf '%s\\0' "$@"`, "sh", ...first, ...args]);
      expect(ran).toEqual({ exitCode: 0, stdout: [...first, ...args, ""].join("\0"), stderr: "" });
    }
    const lone = await keyhole(["run", "-p", "web", "--", "echo"]);
    expect(lone).toEqual({ exitCode: 0, stdout: "\n", stderr: "" });
  });

  test("sees the name that it was called by", async () => {
    const { keyhole } = await machine();
    const ran = await keyhole(["run", "--", "sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline"]);
    expect(ran.stdout).toStartWith("sh -c ");
  });

  test("has our own streams", async () => {
    const { keyhole } = await machine();
    const stdin = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 256));
    const ran = await keyhole(["run", "--", "sh", "-c", "cksum; echo err >&2"], { stdin });
    const expected = Bun.spawnSync(["cksum"], { stdin }).stdout.toString();
    expect(ran).toEqual({ exitCode: 0, stdout: expected, stderr: "err\n" });
  });

  test.each([0, 1, 2, 42, 125, 126, 127, 128, 255])(
    "ends with %d, and so does run, without a message",
    async (code) => {
      const { keyhole } = await machine();
      expect(await keyhole(["run", "--", "sh", "-c", `exit ${code}`])).toEqual({
        exitCode: code,
        stdout: "",
        stderr: "",
      });
    },
  );

  test.each(["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGPIPE"] as const)(
    "is ended by %s, and run ends with 128 and its number",
    async (signal) => {
      const { keyhole } = await machine();
      const ran = await keyhole(["run", "--", "sh", "-c", `kill -${signal.slice(3)} $$`]);
      expect(ran).toEqual({ exitCode: 128 + constants.signals[signal], stdout: "", stderr: "" });
    },
  );

  test.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const)("gets %s", async (signal) => {
    const { env, folder } = await machine();
    const name = signal.slice(3);
    const script = `trap 'kill -9 $!; echo got ${name}; exit 7' ${name}; sleep 60 & echo ready; wait`;
    const child = Bun.spawn([binary, "run", "--", "sh", "-c", script], {
      cwd: folder,
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const reader = child.stdout.getReader();
    const decoder = new TextDecoder();
    expect(decoder.decode((await reader.read()).value)).toBe("ready\n");
    child.kill(signal);
    expect(decoder.decode((await reader.read()).value)).toBe(`got ${name}\n`);
    expect(await child.exited).toBe(7);
    expect(await child.stderr.text()).toBe("");
  });

  test("on a terminal gets Ctrl-C once", async () => {
    const { env } = await machine();
    const place = makePlace({ ...env, PATH: process.env["PATH"] ?? "" });
    try {
      const script = "trap 'echo got-it' INT; echo ready; read -r line; echo line-$line; read -r line; echo end-$line";
      const { type, shows, ended } = place.onTerminal(["run", "--", "bash", "-c", script]);
      await shows("ready");
      type("\x03");
      await shows("got-it");
      type("a\rb\r");
      const { exitCode, screen } = await ended;
      expect(exitCode).toBe(0);
      expect(screen.match(/got-it/g)).toHaveLength(1);
    } finally {
      place.remove();
    }
  });
});

describe("a failure before the command runs", () => {
  const ranMark = ["--", "sh", "-c", "touch ran"];
  const failures: [what: string, reply: (question: Question) => Reply, code: string][] = [
    ["unauthorized", () => refusal(401, "unauthorized", "A valid API key is required."), "unauthorized"],
    ["no such project", () => refusal(404, "project_not_found", "No such project."), "project_not_found"],
    ["unavailable", () => refusal(503, "unavailable", "Nothing is returned."), "unavailable"],
    ["no set at all", () => ({ body: { environment: "production", variables: [] } }), "empty_set"],
    ["half a set", () => ({ body: '{"environment":"production","variables":[' }), "invalid_answer"],
  ];
  test.each(failures)("is 125: %s", async (_, reply, code) => {
    const { keyhole, folder, key } = await machine(reply);
    const ran = await keyhole(["run", "--json", ...ranMark]);
    expect(ran).toMatchObject({ exitCode: 125, stdout: "" });
    expect(JSON.parse(ran.stderr)).toMatchObject({ code });
    expect(ran.stderr).not.toContain(key);
    expect(readdirSync(folder)).toEqual([]);
  });

  const usage: [what: string, args: string[]][] = [
    ["an unknown option", ["--bogus", ...ranMark]],
    ["a flag given twice", ["-p", "a", "-p", "b", ...ranMark]],
    ["a list with a hole", ["--keys", "A,,B", ...ranMark]],
    ["an unknown environment", ["-e", "prod", ...ranMark]],
    ["a wrong duration", ["--wait", "soon", ...ranMark]],
    ["no command", []],
    ["no command after --", ["--"]],
    ["a command without --", ["sh", "-c", "touch ran"]],
    ["--root without a folder", ["--root"]],
    ["--root without --files", ["--root", ".", ...ranMark]],
    ["a required variable that is missing", ["--require", "NOPE", ...ranMark]],
    ["files for a folder that is not there", ["--files", "--root", "none", ...ranMark]],
  ];
  test.each(usage)("is 125: %s", async (_, args) => {
    const { keyhole, folder } = await machine();
    const ran = await keyhole(["run", ...args]);
    expect(ran).toMatchObject({ exitCode: 125, stdout: "", stderr: expect.stringMatching(/^keyhole: \S/) });
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    [["node", "-e", "x"]],
    [["node", "--port", "3000"]],
    [["node", "-p", "x", "--help"]],
    [["-p", "web", "node", "-p", "x"]],
    [["node", "--", "x"]],
  ])("says that -- is missing, whatever options the command has: %j", async (args) => {
    const ran = await runProgram(["run", "-e", "development", ...args], { env: {} });
    const stderr = "keyhole: run: put -- before the command. See 'keyhole run --help'.\n";
    expect(ran).toMatchObject({ exitCode: 125, stdout: "", stderr });
  });

  test("is 125 for an argument that is not UTF-8, since it would arrive as another", async () => {
    const { keyhole } = await machine();
    const ran = await keyhole([], { as: ["bash", "-c", `exec "$0" run -- echo $'\\xff'`] });
    expect(ran).toMatchObject({ exitCode: 125, stdout: "", stderr: expect.stringContaining("UTF-8") });
    expect(await keyhole(["run", "--", "echo", "\ufffd"])).toMatchObject({ exitCode: 0, stdout: "\ufffd\n" });
  });

  test("is 127 for a command that is not found, and 126 for one that cannot be run", async () => {
    const { keyhole, folder } = await machine();
    writeFileSync(join(folder, "text"), "echo hello\n");
    writeFileSync(join(folder, "no-interpreter"), "#!/nonexistent\n", { mode: 0o755 });
    writeFileSync(join(folder, "no-program"), "\x7fELFnot", { mode: 0o755 });
    mkdirSync(join(folder, "folder"));
    for (const name of ["nowhere-to-be-found", "./nowhere", "/nonexistent/x", "", "text/x"]) {
      expect(await keyhole(["run", "--files", "--", name])).toMatchObject({ exitCode: 127, stdout: "" });
    }
    for (const name of ["./text", "./folder", "/", "./no-interpreter", "./no-program"]) {
      expect(await keyhole(["run", "--", name])).toMatchObject({ exitCode: 126, stdout: "" });
    }
    const path = `${folder}:${process.env["PATH"]}`;
    expect(await keyhole(["run", "--", "text"], { env: { PATH: path } })).toMatchObject({ exitCode: 126 });
    chmodSync(join(folder, "text"), 0o755);
    writeFileSync(join(folder, "text"), "#!/bin/sh\necho hello\n");
    expect(await keyhole(["run", "--", "text"], { env: { PATH: path } })).toMatchObject({
      exitCode: 0,
      stdout: "hello\n",
    });
    expect(existsSync(join(folder, "config"))).toBe(false); // no file was put in place for a command that could not run
  });
});

describe("the command's environment", () => {
  const env = async ({ keyhole }: Machine, args: string[], own: Record<string, string> = {}) => {
    const ran = await keyhole(["run", ...args, "--", "env", "-0"], { env: own });
    const lines = ran.stdout.split("\0").slice(0, -1);
    const entries = lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const);
    return { ...ran, env: Object.fromEntries(entries) };
  };

  test("has neither the key, under any name, nor a setting of Keyhole", async () => {
    const asked = await holding({ A: "1" });
    const { env: found, stderr } = await env(asked, [], {
      CI_KEY: asked.key,
      HEADER: `Authorization: Bearer ${asked.key}`,
      KEYHOLE_ROOT_KEY: "root",
      KEYHOLE_DATA: "/data",
      keyhole_other: "x",
      DATABASE_URL: "postgres://keyhole@db/keyhole",
      KEPT: "yes",
    });
    expect(
      Object.keys(found)
        .filter((name) => name !== "PATH")
        .sort(),
    ).toEqual(["A", "KEPT"]);
    expect(JSON.stringify(found)).not.toContain(asked.key);
    expect(stderr).toBe("Not passed to the command: CI_KEY, HEADER, DATABASE_URL.\n");
  });

  test("has fetched values instead of existing ones, except with --preserve-env", async () => {
    const asked = await holding({ A: "fetched", B: "fetched", DATABASE_URL: "fetched" });
    const own = { A: "own", DATABASE_URL: "Keyhole's own" };
    const all = { A: "fetched", B: "fetched", DATABASE_URL: "fetched" };
    expect((await env(asked, [], own)).env).toMatchObject(all);
    expect((await env(asked, ["--preserve-env"], own)).env).toMatchObject({ ...all, A: "own" });
  });

  test("has only PATH and HOME with --no-inherit-env", async () => {
    const asked = await holding({ A: "1" });
    const own = { HOME: "/home/me", LANG: "C", SECRET: "x" };
    const { env: found } = await env(asked, ["--no-inherit-env"], own);
    expect(found).toEqual({ A: "1", HOME: "/home/me", PATH: process.env["PATH"] ?? "" });
  });

  test("has no name that steers, unless it is allowed by name", async () => {
    const asked = await holding({ A: "1", BASH_ENV: "/tmp/x", NODE_OPTIONS: "--require /tmp/x" });
    const refused = await env(asked, []);
    expect(refused).toMatchObject({ exitCode: 125, stdout: "" });
    expect(refused.stderr).toContain("BASH_ENV, NODE_OPTIONS");
    expect((await env(asked, ["--allow-name", "BASH_ENV"])).stderr).toContain("act on them: NODE_OPTIONS.");
    const allowed = await env(asked, ["--allow-name", "BASH_ENV,NODE_OPTIONS"]);
    expect(allowed.env).toMatchObject({ A: "1", BASH_ENV: "/tmp/x" });
  });

  test("has only what was asked for by name or prefix", async () => {
    const asked = await holding({ APP_A: "1", APP_B: "2", OTHER: "3" });
    const { env: found } = await env(asked, ["--no-inherit-env", "--prefix", "APP_", "--keys", "APP_A"]);
    expect(found).toEqual({ APP_A: "1", PATH: process.env["PATH"] ?? "" });
  });

  test.skipIf(process.platform !== "linux")(
    "is all that a command sees of the key: it is in no process title",
    async () => {
      const { keyhole, key } = await machine();
      const script = "cat /proc/$PPID/cmdline /proc/$PPID/comm /proc/$$/cmdline /proc/$$/environ";
      const { stdout } = await keyhole(["run", "--", "sh", "-c", script]);
      expect(stdout).toContain("keyhole");
      expect(stdout).not.toContain(key);
    },
  );

  test.skipIf(process.platform !== "linux")(
    "is all that a command sees of the key: ours holds it no longer, even for root",
    async () => {
      const { keyhole, key } = await machine();
      const env = { CI_KEY: key, DATABASE_URL: "postgres://keyhole-own", KEYHOLE_ROOT_KEY: "root-key", KEPT: "yes" };
      const { stdout } = await keyhole(["run", "--", "sh", "-c", "cat /proc/$PPID/environ"], { env });
      if (process.getuid?.() === 0) expect(stdout).toContain("KEPT=yes");
      for (const secret of [key, "keyhole-own", "root-key"]) expect(stdout).not.toContain(secret);
    },
  );
});

describe("--files", () => {
  test("are in place before the command runs", async () => {
    const { keyhole, folder } = await machine();
    const ran = await keyhole(["run", "--files", "--", "cat", "config/tls.key"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "-----BEGIN KEY-----\nabc\n-----END KEY-----\n", stderr: "" });
    expect(statSync(join(folder, "config/tls.key")).mode & 0o777).toBe(0o400);
    mkdirSync(join(folder, "below"));
    const below = await keyhole(["run", "--files", "--root", "below", "--", "cat", "below/service.json"]);
    expect(below).toMatchObject({ exitCode: 0, stdout: '{"a":1}\n' });
  });

  test("that cannot be put in place keep the command from running", async () => {
    const { keyhole, folder } = await machine();
    writeFileSync(join(folder, "config"), "a file");
    const ran = await keyhole(["run", "--files", "--", "touch", "ran"]);
    expect(ran).toMatchObject({ exitCode: 125, stdout: "" });
    expect(readdirSync(folder)).toEqual(["config"]);
    expect(readFileSync(join(folder, "config"), "utf8")).toBe("a file");
  });
});
