/**
 * The program behind `bun run test`, `test:quick` and `test:full`: runs the files of one size, or those that its
 * arguments name. It finds a PostgreSQL and builds the binary, which the quick files do without, runs `bun test` with
 * its own arguments, several files at once, and says how far it is. At the end it lists the slowest files, and the
 * command that runs each failed test again. The last line of standard output is `N passed, N failed`, and `, N skipped`
 * if any were.
 *
 * An interrupted run ends what it started and counts nothing.
 */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, constants } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { tables } from "./proofs/tables.ts";
import { type Size, sizes, testFiles } from "./sizes.ts";
import { buildBinary } from "./support/build.ts";
import { type Postgres, startPostgres } from "./support/postgres.ts";
import { missingLines, type Untested } from "./support/programs.ts";
import { missingProofs } from "./support/proof-pages.ts";
import { untriedProofs } from "./support/proofs.ts";
import { commandFor, parseTests, progressLine, slowestFiles } from "./support/report.ts";
import { makeScratch } from "./support/scratch.ts";

/** Ends tests that hang, but no test that is only slow because the machine is busy. */
const testTimeoutMs = 60_000;
/** Files that run at once. Some only wait, so one more than there are processors keeps all of these busy. */
const workers = availableParallelism() + 1;
const progressEveryMs = 15_000;
/** How long each file took, so that the slowest start first. `bun run test:full --update-timings` writes it again. */
const timings = join(import.meta.dir, "timings.json");
const root = join(import.meta.dir, "..");
const inCi = !["", "0", "false"].includes(process.env["CI"] ?? "");
const { size, named, passedOn } = readArguments(process.argv.slice(2));
const isQuick = size === "quick" && !named;
/** `bun test` leaves out the files that import nothing that changed. Then there may be none. */
const onlyChanged = passedOn.some((argument) => /^--changed(=|$)/.test(argument));

let interruptedBy: NodeJS.Signals | undefined;
let running: Bun.Subprocess | undefined;
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    interruptedBy = signal;
    running?.kill("SIGKILL"); // on another signal it lists every file that has not ended
  });
}

const problems: string[] = [];
const note = (error: unknown) => void problems.push(error instanceof Error ? error.message : String(error));
const scratch = makeScratch();
const missing = join(scratch.folder, "missing-programs");
const progress = join(scratch.folder, "progress");
process.env["TMPDIR"] = scratch.folder;
const starting = isQuick ? undefined : startPostgres(say, ["max_wal_size=1GB"]).catch(note);
if (!isQuick && process.env["KEYHOLE_TEST_BUILT"] === undefined) await build(); // meanwhile
const cluster = await starting;
if (isQuick) say("The quick tests use SQLite alone. What needs PostgreSQL or the built program is in `bun run test`.");
else if (cluster) say(`The tests use PostgreSQL ${cluster.version} (${cluster.origin}) and SQLite.`);
else if (inCi) problems.push("No PostgreSQL was found, and in CI a skipped suite is a failure.");
else say("NO POSTGRESQL WAS FOUND: suites that need one are skipped. Set TEST_DATABASE_URL, or install PostgreSQL 15.");

const seed = process.env["KEYHOLE_TEST_SEED"];
say(`Random choices have the seed ${seed ?? 1}; KEYHOLE_TEST_SEED makes others.`);

// Tests that read files as text: no import says that they are due.
const lists = ["house", "messages", "proofs", "sizes", "tests", "untested"].map((name) => `test/unit/${name}.test.ts`);
if (onlyChanged && !named) {
  const command = [process.execPath, "test", "--only-failures", ...lists];
  const { exitCode } = Bun.spawnSync(command, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) problems.push("A list does not fit the files: see above.");
}

let leftOut: string[] = [];
let failures: string[] = [];
let slowest = "";
const total = { passed: 0, failed: 0, skipped: 0 };
try {
  if (!interruptedBy) Object.assign(total, await runTests(cluster));
} finally {
  if (!isQuick) leftOut = missingLines(readNotes());
  await cluster?.stop();
  await scratch.remove();
}
if (interruptedBy) {
  say(`Interrupted by ${interruptedBy}.`);
  process.exit(128 + constants.signals[interruptedBy]);
}
if (problems.length + total.passed + total.failed === 0 && !onlyChanged) problems.push("No test ran.");
if (total.skipped > 0 && inCi) problems.push(`${total.skipped} skipped: in CI a skipped test is a failure.`);
if (slowest !== "") say(slowest);
if (failures.length > 0) say(["To run a failed test again:", ...failures].join("\n  "));
for (const problem of problems) say(problem);
for (const line of leftOut) say(line);
total.failed += problems.length; // so that the line and the exit code agree

const line = `${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}\n`;
await new Promise((resolve) => process.stdout.write(line, resolve));
process.exit(total.failed > 0 ? 1 : 0);

/**
 * The size, whether files are named, which run whatever their size is, and what `bun test` gets.
 * `--quick` comes from `bun run check --quick`, behind the size of `check`.
 */
function readArguments(args: readonly string[]): { size: Size; named: boolean; passedOn: readonly string[] } {
  const size = args.includes("--quick") ? "quick" : sizes.find((one) => args[0] === `--size=${one}`);
  const passedOn = args.filter((argument) => !/^--(quick|size=.*)$/.test(argument));
  const options = { "test-name-pattern": { type: "string", short: "t" } } as const;
  const { positionals } = parseArgs({ args: [...passedOn], options, strict: false, allowPositionals: true });
  return { size: size ?? "usual", named: positionals.length > 0, passedOn };
}

function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
}

/** What the files of tests, each in a process of its own, left out. */
function readNotes(): Untested[] {
  const lines = existsSync(missing) ? readFileSync(missing, "utf8").split("\n").filter(Boolean) : [];
  return lines.map((line) => JSON.parse(line) as Untested);
}

async function build(): Promise<void> {
  const startedAt = performance.now();
  try {
    buildBinary();
    say(`Built dist/keyhole in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
  } catch (error) {
    note(error);
  }
  await new Promise(setImmediate); // what arrived meanwhile: the build blocked this thread
}

/** Returns the counts of `bun test`. If it fails without counting a failure, that is a problem. */
async function runTests(cluster: Postgres | undefined): Promise<typeof total> {
  const report = join(scratch.folder, "report.xml");
  const command = [process.execPath, "test", "--no-orphans", `--timeout=${testTimeoutMs}`];
  command.push(`--parallel=${workers}`, `--timings=${timings}`);
  command.push("--reporter=junit", `--reporter-outfile=${report}`);
  if (!named) command.push("--only-failures"); // they would be lost among thousands of lines
  command.push(...passedOn);
  if (!named) command.push(...testFiles(size));
  const tests = Bun.spawn(command, {
    cwd: root,
    env: testEnvironment(cluster),
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    detached: true, // in a session of its own
  });
  running = tests;
  scratch.watch(tests.pid);
  const startedAtMs = Date.now();
  const count = testFiles(size).length;
  const sayProgress = () => say(progressLine(progress, count, startedAtMs, Date.now()));
  const saying = named || onlyChanged ? undefined : setInterval(sayProgress, progressEveryMs);
  await tests.exited;
  clearInterval(saying);
  if (interruptedBy) return total;
  const xml = existsSync(report) ? readFileSync(report, "utf8") : undefined;
  const counted = xml === undefined ? undefined : parseReport(xml);
  if (xml !== undefined) {
    const failed = parseTests(xml).filter(({ outcome }) => outcome === "failed");
    failures = failed.map((test) => commandFor(test, process.env["npm_config_user_agent"], seed));
    const files = slowestFiles(xml);
    const ten = files.slice(0, 10).map(([file, seconds]) => `  ${seconds.toFixed(1).padStart(5)} s  ${file}`);
    if (files.length > 10) slowest = ["The ten slowest files:", ...ten].join("\n");
  }
  const isWhole = size === "full" && passedOn.length === 0;
  if (isWhole && inCi) {
    problems.push(...untriedProofs(Object.values(tables).flat(), xml ?? ""));
    for (const page of new Bun.Glob("docs/maintainers/proofs*.md").scanSync(root)) {
      problems.push(...missingProofs(page, readFileSync(join(root, page), "utf8"), xml ?? ""));
    }
  }
  if (!counted && onlyChanged && tests.exitCode === 0) return total;
  if (!counted)
    problems.push(`bun test ended without a report (${tests.signalCode ?? `exit code ${tests.exitCode}`}).`);
  else if (tests.exitCode !== 0 && counted.failed === 0)
    problems.push(`bun test ended with exit code ${tests.exitCode}: see above.`);
  return counted ?? total;
}

/** The caller's environment without the settings of Keyhole, postgres.js and libpq. */
function testEnvironment(cluster: Postgres | undefined): Record<string, string | undefined> {
  const settings =
    /^(KEYHOLE_(?!TEST_).*|KEYHOLE_TEST_(DATABASE_URL|POSTGRES)|TEST_DATABASE_URL|DATABASE_URL|HOST|PORT|PG[A-Z]+)$/;
  const kept = Object.entries(process.env).filter(([name]) => !settings.test(name));
  return {
    ...Object.fromEntries(kept),
    KEYHOLE_TEST_BUILT: "1",
    KEYHOLE_TEST_MISSING: missing,
    KEYHOLE_TEST_PROGRESS: progress,
    ...(cluster && { KEYHOLE_TEST_DATABASE_URL: cluster.url }),
  };
}

function parseReport(xml: string): typeof total {
  const count = (name: string) => {
    const value = new RegExp(`<testsuites [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1];
    if (value === undefined) throw new Error(`the report of bun test does not say how many ${name} there were`);
    return Number(value);
  };
  const failed = count("failures");
  const skipped = count("skipped");
  return { passed: count("tests") - failed - skipped, failed, skipped };
}
