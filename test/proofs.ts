/**
 * The program behind `bun run proofs [WORD…] [--changed] [--random=SECONDS [--seed=N]] [--copies=N]`: removes each defence of
 * `test/proofs/` from a copy of the repository, and runs the test that must then fail. A word is a part of a promise, of a
 * table's title or of a file's path. With `--changed`, it tries the proofs about files that differ from main. With `--random`, it tries
 * as many as fit, in an order that the seed gives. Several copies work side by side.
 *
 * It ends with 1 if a proof does not hold, and says how to try that one again.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import type { Proof } from "./proofs/proof.ts";
import { tables } from "./proofs/tables.ts";
import { builtBinary } from "./support/build.ts";
import { startPostgres } from "./support/postgres.ts";
import { holds, runTest, type Trial, tryProof, type Verdict } from "./support/proofs.ts";
import { makeScratch } from "./support/scratch.ts";

/** A test has this long, however busy the machine is. If it may hang, {@link hangLimitMs}. */
const limitMs = 300_000;
/** Ten times as long as the test takes with the defence, so that nothing that is only slow counts as hanging. */
const hangLimitMs = (intactMs: number) => 5000 + 10 * intactMs;
const root = join(import.meta.dir, "..");
const options = {
  changed: { type: "boolean" },
  random: { type: "string" },
  seed: { type: "string" },
  copies: { type: "string" },
} as const;
const { values, positionals: words } = parseArgs({ options, allowPositionals: true });
const seed = Number(values.seed ?? Math.trunc(Math.random() * 1e9));
const seconds = Number(values.random ?? Number.POSITIVE_INFINITY);
if (!Number.isSafeInteger(seed) || !(seconds > 0)) throw new Error("--random and --seed are numbers");

const changed = values.changed ? changedFiles() : undefined;
const chosen = Object.entries(tables).flatMap(([about, proofs]) =>
  proofs.filter(({ promise, edits, fails: [file] }) => {
    const files = [`test/${file}.test.ts`, ...edits.map(([path]) => path)];
    const isNamed = words.every((word) => [about, promise, ...files].some((text) => text.includes(word)));
    return isNamed && (changed === undefined || files.some((path) => changed.has(path)));
  }),
);
if (chosen.length === 0 && !changed) throw new Error("no proof has these words");
// By test, so that one that many proofs name is tried once with all defences in place.
const queue = values.random
  ? chosen.sort((one, other) => Bun.hash.crc32(one.promise, seed) - Bun.hash.crc32(other.promise, seed))
  : chosen.sort((one, other) => one.fails.join().localeCompare(other.fails.join()));
const count = queue.length;
if (values.random) say(`The order has the seed ${seed}.`);

const scratch = makeScratch();
process.env["TMPDIR"] = scratch.folder;
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
const cluster = queue.some(({ on }) => on) ? await startPostgres(say) : undefined;
/** The copies share the packages, except for those that a proof edits. */
const ownPackages = new Set(
  queue.flatMap(({ edits }) => edits.map(([path]) => /^node_modules\/([^/]+)/.exec(path)?.[1])),
);
const isOfProgram = ({ fails: [file] }: Proof) => file.startsWith("blackbox/");
const program = join(scratch.folder, "keyhole");
if (queue.some(isOfProgram)) copyFileSync(builtBinary(), program);
const startedAtMs = performance.now();
const tried: { proof: Proof; verdict: Verdict; seconds: number }[] = [];
const intact = new Map<string, ReturnType<typeof runIntact>>();
const copies = Math.min(Number(values.copies ?? availableParallelism()), queue.length);
await Promise.all(Array.from({ length: copies }, (_, index) => work(copyTo(join(scratch.folder, `copy-${index}`)))));
await cluster?.stop();
await scratch.remove();

const slowest = tried.toSorted((one, other) => other.seconds - one.seconds).slice(0, 5);
if (tried.length > 5) say("The slowest:");
if (tried.length > 5) for (const one of slowest) say(`  ${one.seconds.toFixed(1)} s  ${one.proof.promise}`);
const broken = tried.filter(({ proof, verdict }) => !holds(proof, verdict));
for (const { proof, verdict } of broken) say(`${verdict}: bun run proofs ${JSON.stringify(proof.promise)}`);
if (queue.length > 0) say(`${queue.length} were not tried: the time was over.`);
process.stdout.write(`${tried.length - broken.length} proofs hold, ${broken.length} do not\n`);
process.exit(broken.length > 0 ? 1 : 0);

/** Tries proofs in one copy until there are no more. */
async function work(folder: string): Promise<void> {
  for (let proof = next(); proof !== undefined; proof = next()) {
    const fromMs = performance.now();
    const verdict = await judge(proof, {
      folder,
      limitMs,
      databaseUrl: proof.on && cluster?.url,
      program: isOfProgram(proof) ? program : undefined,
    });
    const took = (performance.now() - fromMs) / 1000;
    tried.push({ proof, verdict, seconds: took });
    say(`${tried.length} of ${count}: ${verdict} in ${took.toFixed(1)} s: ${proof.promise}`);
  }
}

function next(): Proof | undefined {
  return performance.now() - startedAtMs < seconds * 1000 ? queue.shift() : undefined;
}

/** A test that fails with all defences in place proves nothing. It is tried alone, as without the defence. */
async function judge(proof: Proof, trial: Trial): Promise<Verdict> {
  if (proof.on && !cluster) return "did not run"; // it needs PostgreSQL
  const test = [...proof.fails, proof.on].join();
  const before = intact.get(test) ?? runIntact(proof, trial);
  intact.set(test, before);
  const { outcome, tookMs } = await before;
  if (outcome === "passed") return tryProof(proof, proof.hangs ? { ...trial, limitMs: hangLimitMs(tookMs) } : trial);
  return outcome === "did not run" ? outcome : "fails anyway";
}

async function runIntact(proof: Proof, trial: Trial) {
  const fromMs = performance.now();
  const outcome = await runTest(proof, trial);
  return { outcome, tookMs: performance.now() - fromMs };
}

/** All that is not ignored, on the commit that is checked out. */
function copyTo(folder: string): string {
  git("clone", "--quiet", "--shared", "--no-checkout", root, folder);
  for (const file of git("ls-files", "-co", "--exclude-standard", "-z").split("\0").filter(Boolean)) {
    if (!existsSync(join(root, file))) continue; // it was deleted
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file), { verbatimSymlinks: true });
  }
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules"))) {
    const [from, to] = [root, folder].map((one) => join(one, "node_modules", name)) as [string, string];
    if (ownPackages.has(name)) cpSync(from, to, { recursive: true });
    else symlinkSync(from, to);
  }
  return folder;
}

function changedFiles(): Set<string> {
  const main = ["main", "origin/main"].find((name) => git("branch", "-a", "--list", name) !== "") ?? "HEAD";
  const base = git("merge-base", "HEAD", main).trim();
  const files = git("diff", "--name-only", "-z", base) + git("ls-files", "-o", "--exclude-standard", "-z");
  return new Set(files.split("\0"));
}

function git(...args: string[]): string {
  const { stdout, success, stderr } = Bun.spawnSync(["git", ...args], { cwd: root });
  if (!success) throw new Error(`git ${args[0]}: ${stderr}`);
  return String(stdout);
}

function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
}
