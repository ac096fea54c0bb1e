/** What `keyhole run` does with commands, options and settings is in transcripts/run.txt. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import fc from "fast-check";
import { binary, makePlace } from "../support/keyhole.ts";
import { honestly, refusal, type Truth } from "../support/liar.ts";
import { machineMaker, truth } from "../support/machine.ts";
import { startProgram } from "../support/program.ts";
import { findProgram, noteMissing } from "../support/programs.ts";
import { carriedValues } from "../support/readers/nasty.ts";

const machine = machineMaker();
const holding = (variables: Truth["variables"]) => machine((question) => honestly({ ...truth, variables }, question));

describe("200 hostile values arrive unchanged", () => {
  const own = fc.sample(fc.string({ unit: "binary", maxLength: 40, size: "max" }), { seed: 1, numRuns: 200 });
  const values = [...carriedValues, "x".repeat(65_536), ...own.filter((value) => !value.includes("\0"))].toSorted(
    (a, b) => Number(Bun.hash(a) - Bun.hash(b)),
  );
  const named = values.slice(0, 200).map((value, at) => [`V${String(at).padStart(3, "0")}`, value] as const);
  const variables: Readonly<Record<string, string>> = Object.fromEntries(named);
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
  test("has our own streams", async () => {
    const { keyhole } = await machine();
    const stdin = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 256));
    const ran = await keyhole(["run", "--", "sh", "-c", "cksum; echo err >&2"], { stdin });
    const expected = Bun.spawnSync(["cksum"], { stdin }).stdout.toString();
    expect(ran).toEqual({ exitCode: 0, stdout: expected, stderr: "err\n" });
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const)("gets %s", async (signal) => {
    const { env, folder } = await machine();
    const name = signal.slice(3);
    const script = `trap 'kill -9 $!; echo got ${name}; exit 7' ${name}; sleep 60 & echo ready; wait`;
    const options = { cwd: folder, env: { PATH: process.env["PATH"], ...env } };
    const program = startProgram([binary, "run", "--", "sh", "-c", script], options);
    await program.says("ready\n");
    expect(await program.stop(signal)).toBe(7);
    expect(program.said()).toEqual({ stdout: `ready\ngot ${name}\n`, stderr: "" });
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

test("a server that cannot answer is 125, and nothing runs", async () => {
  const { keyhole, folder, key } = await machine(() => refusal(503, "unavailable", "Nothing is returned."));
  const ran = await keyhole(["run", "--", "touch", "ran"]);
  expect(ran.stderr).toContain("unavailable");
  expect(ran.stderr).not.toContain(key);
  expect(ran).toMatchObject({ exitCode: 125, stdout: "" });
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ["a key that may not read files", [], "resource_required"],
  ["a folder that does not exist", ["--root", "gone"], "gone"],
] as const)("with --files, no read of the variables is spent for %s", async (_, options, says) => {
  const { keyhole, liar } = await machine((question) => {
    if (question.path !== "/files" || options.length > 0) return honestly(truth, question);
    return refusal(403, "resource_required", "This key lacks the resource files.");
  });
  const ran = await keyhole(["run", "--files", ...options, "--", "echo", "ran"]);
  expect(ran).toMatchObject({ exitCode: 125, stdout: "", stderr: expect.stringContaining(says) });
  expect(liar.questions.filter(({ query }) => query.get("metadataOnly") === null)).toEqual([]);
});

test("in a folder that was deleted nothing runs, and the runtime's own words are all that is said", async () => {
  const { keyhole } = await machine(() => refusal(503, "unavailable", "Nothing is asked."));
  const inDeleted = ["sh", "-c", 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$@"', "sh"];
  const ran = await keyhole(["run", "--", "echo", "ran"], { as: inDeleted });
  expect(ran).toMatchObject({ exitCode: 1, stdout: "", stderr: expect.stringContaining("directory was deleted") });
});

describe("the command's environment is all that it sees of the key, while we run beside it", () => {
  // As process 1 of a container, root could read ours.
  const beside = ["run", "--watch", "24h", "--", "sh", "-c"];

  test.skipIf(process.platform !== "linux")("no process title has it", async () => {
    const { keyhole, key } = await machine();
    const { stdout } = await keyhole([...beside, "cat /proc/$PPID/cmdline /proc/$PPID/comm /proc/$$/environ"]);
    expect(stdout).toContain("keyhole");
    expect(stdout).not.toContain(key);
  });

  test.skipIf(process.platform !== "linux")("our environment holds it no longer, even for root", async () => {
    const { keyhole, key } = await machine();
    const env = { CI_KEY: key, DATABASE_URL: "postgres://keyhole-own", KEYHOLE_ROOT_KEY: "root-key", KEPT: "yes" };
    const { stdout } = await keyhole([...beside, "cat /proc/$PPID/environ"], { env });
    if (process.getuid?.() === 0) expect(stdout).toContain("KEPT=yes");
    for (const secret of [key, "keyhole-own", "root-key"]) expect(stdout).not.toContain(secret);
  });
});
