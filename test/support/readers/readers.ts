/**
 * Other programs that read dotenv text, run as their users run them: in a separate process (except npm's dotenv, which
 * runs no commands), in a scratch folder, and with only PATH in the environment, because most do not override set
 * variables.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "dotenv";
import { findProgram, findPython } from "../programs.ts";

/** Readers of one family read the same values correctly. */
export const families = ["dotenv", "dotenvx", "dotenv-expand", "node", "bun", "python", "shell"] as const;
export type Family = (typeof families)[number];

/** The variables that one file set, by name. */
export type Reading = ReadonlyMap<string, string>;

export type Reader = {
  readonly name: string;
  readonly family: Family;
  /** Whether every file takes a process. */
  readonly slow: boolean;
  /** Reads each file independently. Rejects if the reader fails or prints an error. */
  readonly read: (paths: readonly string[], folder: string) => Promise<Reading[]>;
};

const script = join(import.meta.dir, "read.mjs");

const reader = (name: string, family: Reader["family"], slow: boolean, read: Reader["read"]): Reader => {
  return { name, family, slow, read };
};

/** The installed readers, and the names of the missing ones. */
export async function findReaders(): Promise<{ readers: Reader[]; missing: string[] }> {
  const bun = process.execPath;
  const readers: Reader[] = [
    reader(
      "dotenv",
      "dotenv",
      false,
      inProcess((text) => parse(text)),
    ),
    reader(
      "dotenv, fast",
      "dotenv",
      false,
      inProcess((text) => parse(text, { fast: true })),
    ),
    reader("dotenv-expand", "dotenv-expand", false, batch([bun, "--no-env-file", script, "expand"])),
    reader("dotenvx run", "dotenvx", true, dotenvxRun),
    reader(
      "bun --env-file",
      "bun",
      true,
      loader((path) => [bun, `--env-file=${path}`]),
    ),
    reader("bun, .env of its folder", "bun", true, bunInFolder),
  ];
  const missing: string[] = [];

  const node = await findNode();
  if (node === undefined) missing.push("Node.js");
  else {
    readers.push(reader("node util.parseEnv", "node", false, batch([node, script, "parseEnv"])));
    readers.push(
      reader(
        "node --env-file",
        "node",
        true,
        loader((path) => [node, `--env-file=${path}`]),
      ),
    );
  }
  for (const shell of ["bash", "dash"]) {
    const program = findProgram(shell);
    if (program === undefined) missing.push(shell);
    else readers.push(reader(shell, "shell", false, sourcedBy(program)));
  }
  const python = findPython("dotenv");
  if (python === undefined) missing.push("python3-dotenv");
  else
    readers.push(
      reader("python-dotenv", "python", false, batch([python, "-X", "utf8", join(import.meta.dir, "read.py")])),
    );
  return { readers, missing };
}

/** `node` may be Bun under another name, and its `parseEnv` differs. */
async function findNode(): Promise<string | undefined> {
  const node = findProgram("node");
  if (node === undefined) return undefined;
  const expression =
    'typeof require("node:util").parseEnv === "function" && !process.versions.bun ? process.execPath : ""';
  return (await succeeds([node, "-p", expression])) || undefined;
}

async function succeeds(command: string[]): Promise<string> {
  try {
    const ran = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    const text = await ran.stdout.text();
    return (await ran.exited) === 0 ? text.trim() : "";
  } catch {
    return "";
  }
}

function inProcess(read: (text: string) => Record<string, string>): Reader["read"] {
  return async (paths) => paths.map((path) => toReading(read(readFileSync(path, "utf8"))));
}

/** A program that takes all paths and prints a JSON list. */
function batch(command: string[]): Reader["read"] {
  return async (paths, folder) => {
    const list = JSON.parse(await run([...command, ...paths], folder)) as Record<string, string>[];
    return list.map(toReading);
  };
}

/** A runtime that loads a file into its environment. Variables that exist without the file do not count. */
function loader(command: (path: string) => string[]): Reader["read"] {
  let before: Reading | undefined;
  return async (paths, folder) => {
    const print = async (path: string) =>
      toReading(JSON.parse(await run([...command(path), script, "environment"], folder)));
    const empty = join(folder, "empty");
    writeFileSync(empty, "");
    const known = before ?? (await print(empty));
    before = known;
    return atOnce(paths, async (path) => without(known, await print(path)));
  };
}

const dotenvx = Bun.resolveSync("@dotenvx/dotenvx/package.json", import.meta.dir);
const dotenvxProgram = join(dirname(dotenvx), "src/cli/dotenvx.js");

const dotenvxRun = loader((path) => {
  const bun = [process.execPath, "--no-env-file"];
  return [...bun, dotenvxProgram, "run", "--quiet", "-f", path, "--", ...bun];
});

/** Bun reads `.env` in the folder in which it starts. */
async function bunInFolder(paths: readonly string[], folder: string): Promise<Reading[]> {
  const print = async (within: string) =>
    toReading(JSON.parse(await run([process.execPath, script, "environment"], within)));
  const before = await print(folder);
  return atOnce(paths, async (path) => {
    const within = `${path}.folder`;
    mkdirSync(within, { recursive: true });
    writeFileSync(join(within, ".env"), readFileSync(path));
    return without(before, await print(within));
  });
}

/** Runs `set -a; . FILE` in a subshell for each file, and reads the result from `env -0`. */
function sourcedBy(shell: string): Reader["read"] {
  const sourceEach = [
    'for file do (set -a; . "$file" || exit 1; exec env -0 >"$file.set") 2>>"$0"',
    '[ $? = 0 ] || echo "$file" >>"$0"; done',
  ].join("; ");
  return async (paths, folder) => {
    const errors = join(folder, "errors");
    const empty = join(folder, "empty");
    writeFileSync(errors, "");
    writeFileSync(empty, "");
    const absolute = [empty, ...paths];
    await run([shell, "-c", sourceEach, errors, ...absolute], folder);
    const output = readFileSync(errors, "utf8");
    if (output !== "") throw new Error(output.slice(0, 2000));
    const [before = new Map(), ...readings] = absolute.map((path) => {
      const assigned = readFileSync(`${path}.set`, "utf8").split("\0").slice(0, -1);
      return new Map(assigned.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
    });
    return readings.map((reading) => without(before, reading));
  };
}

function toReading(values: Record<string, string>): Reading {
  return new Map(Object.entries(values));
}

function without(before: Reading, reading: Reading): Reading {
  return new Map([...reading].filter(([name]) => !before.has(name)));
}

/** Two at a time, because other programs need the processors too. */
async function atOnce<T, U>(items: readonly T[], work: (item: T) => Promise<U>): Promise<U[]> {
  const results: U[] = [];
  for (let at = 0; at < items.length; at += 2) results.push(...(await Promise.all(items.slice(at, at + 2).map(work))));
  return results;
}

/** What readers print if they cannot decrypt or parse a variable and go on with the next one. */
const skippedVariable = /^(?:☠ \[DECRYPTION_FAILED\]|[Pp]ython-dotenv could not parse statement)/;

/** Returns the program's standard output. Rejects if the program fails or prints anything else to standard error. */
async function run(command: string[], folder: string): Promise<string> {
  const ran = Bun.spawn(command, {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([ran.stdout.text(), ran.stderr.text(), ran.exited]);
  const errors = stderr.split("\n").filter((line) => line !== "" && !skippedVariable.test(line));
  if (exitCode !== 0 || errors.length > 0)
    throw new Error(`${command[0]} ended with ${exitCode}: ${stderr.slice(0, 2000)}`);
  return stdout;
}
