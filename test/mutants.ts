/**
 * The program behind `bun run mutants PATH… [--tests=WORD…] [--sample=N [--seed=N]] [--verdicts=FILE]`: puts small faults
 * into these files of `src` (`test/support/mutate.ts` says which), and lists those that no test of the files with these
 * words notices. With `--sample`, it tries N of them, drawn by the seed.
 *
 * A test is given its fault just before it begins, and only one that it comes to without a fault. So one run of a file
 * tries as many faults as it has tests. What is only reached while a file is loaded is not tried. With `--verdicts`,
 * it goes on with what this file says, and writes it.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { equivalents } from "./proofs/equivalents.ts";
import { allTestFiles } from "./sizes.ts";
import { type Mutant, mutate } from "./support/mutate.ts";
import { makeScratch } from "./support/scratch.ts";

type Tried = Mutant & { readonly file: string; verdict: "not tried" | "survived" | "killed" | "equivalent" };

/** A test that takes longer hangs. One that takes a third of it without a fault finds none. */
const testMs = 4000;
/** Processor time after which a test that does not end goes round for ever. */
const loopS = 10;
/** Tests of files that together take so long, on a free machine, run as one. */
const groupMs = 8000;

const root = join(import.meta.dir, "..");
const options = {
  tests: { type: "string", multiple: true },
  sample: { type: "string" },
  seed: { type: "string" },
  verdicts: { type: "string" },
} as const;
const { values, positionals: paths } = parseArgs({ options, allowPositionals: true });
const { tests: words = ["unit/", "property/"] } = values;
const size = Number(values.sample ?? Number.POSITIVE_INFINITY);
const seed = Number(values.seed ?? Math.trunc(Math.random() * 1e9));
if (!Number.isSafeInteger(seed) || !(size > 0)) throw new Error("--sample and --seed are numbers");
const scratch = makeScratch();
process.env["TMPDIR"] = scratch.folder;
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
const folder = join(scratch.folder, "copy");
const mutants: Tried[] = makeCopy();
if (mutants.length === 0) throw new Error("no file of src begins with these paths");
const order = (one: Tried) => Bun.hash.crc32(keyOf(one), seed);
const drawn = values.sample ? mutants.toSorted((one, other) => order(one) - order(other)).slice(0, size) : mutants;
if (values.sample) say(`These are ${drawn.length} of ${mutants.length}, of the seed ${seed}.`);
const left = () => drawn.filter(({ verdict }) => verdict === "not tried" || verdict === "survived");

for (const group of groups()) {
  await tryTests(group);
  if (values.verdicts) writeFileSync(values.verdicts, `${JSON.stringify(mutants, null, 1)}\n`);
}
for (const { verdict, file, line, text, fault } of left()) say(`${verdict}: ${file}:${line}: ${text}: ${fault}`);
const counts = Map.groupBy(drawn, ({ verdict }) => verdict);
say([...counts].map(([verdict, { length }]) => `${length} ${verdict}`).join(", "));
await scratch.remove();
process.exit(left().some(({ verdict }) => verdict === "survived") ? 1 : 0);

/** Shows each fault to the tests that come to it, until one fails. */
async function tryTests(files: readonly string[]): Promise<void> {
  const { reached, tookMs, failed } = await runTests(files);
  const toShow = new Map<number, number[]>();
  const wanted = new Set(left().map((one) => mutants.indexOf(one) + 1));
  for (const [test, numbers] of reached.entries()) {
    if (failed.has(test) || (tookMs[test] ?? 0) > testMs / 3) continue;
    for (const number of numbers) if (wanted.has(number)) toShow.set(number, [...(toShow.get(number) ?? []), test]);
  }
  const judge = (number: number, verdict: Tried["verdict"]) => {
    const mutant = mutants[number - 1];
    if (mutant && mutant.verdict !== "killed") mutant.verdict = verdict;
    if (verdict === "killed") toShow.delete(number);
  };
  for (let runs = 1; toShow.size > 0; runs++) {
    const shown = share(toShow, reached.length);
    const told = await runTests(files, shown);
    for (const [test, number] of shown.entries()) {
      if (test > told.lastTest)
        toShow.get(number)?.push(test); // it did not run
      else judge(number, told.failed.has(test) ? "killed" : "survived");
    }
    for (const [number, tests] of toShow) if (tests.length === 0) toShow.delete(number);
    say(
      `${files.length} files, run ${runs}: ${told.failed.size} tests fail, ${toShow.size} to show, ${left().length} left`,
    );
  }
}

/** Gives each test a fault that it comes to. Those that few tests come to choose first. */
function share(toShow: ReadonlyMap<number, number[]>, tests: number): number[] {
  const shown: number[] = new Array(tests).fill(0);
  const queue = [...toShow].sort(([, one], [, other]) => one.length - other.length);
  for (let before = -1, given = 0; given > before; ) {
    before = given;
    for (const [number, own] of queue) {
      const at = own.findIndex((test) => shown[test] === 0);
      for (const test of at < 0 ? [] : own.splice(at, 1)) {
        shown[test] = number;
        given += 1;
      }
    }
  }
  return shown;
}

/** @param shown - the number of the fault that each test gets. Without, it tells what each test comes to */
async function runTests(files: readonly string[], shown?: readonly number[]) {
  const plan = join(folder, "plan.json");
  writeFileSync(plan, JSON.stringify(shown ?? []));
  for (const end of ["begun", "reached", "output"]) writeFileSync(`${plan}.${end}`, "");
  const kept = Object.entries(process.env).filter(([name]) => !/^(KEYHOLE_|.*DATABASE_URL$|PG[A-Z]+$|CI$)/.test(name));
  const command = [process.execPath, "test", "--no-orphans", `--timeout=${shown ? testMs : 60_000}`, ...files];
  const tests = Bun.spawn([...command, "--preload", "./test/support/mutant-preload.ts"], {
    cwd: folder,
    env: { ...Object.fromEntries(kept), KEYHOLE_TEST_MUTANTS: plan },
    stdio: ["ignore", "ignore", Bun.file(`${plan}.output`)],
    detached: true, // a group of its own, which is killed as one
  });
  // The timeout ends a wait that never ends, but not a loop.
  let [begunBefore, spentBefore] = [0, 0];
  const watch = setInterval(() => {
    const begun = statSync(`${plan}.begun`).size;
    const spent = Number(readFileSync(`/proc/${tests.pid}/stat`, "utf8").split(" ")[13]) / 100;
    if (begun > begunBefore) [begunBefore, spentBefore] = [begun, spent];
    if (shown && spent - spentBefore > loopS) process.kill(-tests.pid, "SIGKILL");
  }, 200);
  await tests.exited;
  clearInterval(watch);
  const lastTest = statSync(`${plan}.begun`).size - 1;
  // It lists what failed once more at its end.
  const outcomes = readFileSync(`${plan}.output`, "utf8").match(/^\((?:pass|fail)\)/gm) ?? [];
  const failed = new Set(outcomes.slice(0, lastTest + 1).flatMap((word, test) => (word === "(fail)" ? [test] : [])));
  if (tests.signalCode !== null) failed.add(lastTest);
  const told = readFileSync(`${plan}.reached`, "utf8");
  if (told === "" && !shown)
    throw new Error(`${files.join(" ")} do not run: ${readFileSync(`${plan}.output`, "utf8")}`);
  const { reached, tookMs } = JSON.parse(told || '{"reached":[],"tookMs":[]}') as Record<"reached", number[][]> &
    Record<"tookMs", number[]>;
  return { reached, tookMs, failed, lastTest };
}

/** Names a fault. */
function keyOf({ file, line, text, fault }: Omit<Tried, "verdict">): string {
  return `${file} ${line} ${text} ${fault}`;
}

/** All that is not ignored, with the faults in the files of `paths`. */
function makeCopy(): Tried[] {
  const found: Tried[] = [];
  const { stdout } = Bun.spawnSync(["git", "ls-files", "-co", "--exclude-standard", "-z"], { cwd: root });
  for (const file of String(stdout).split("\0").filter(Boolean)) {
    if (!existsSync(join(root, file))) continue; // it was deleted
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file), { verbatimSymlinks: true });
    if (!/^src\/.*\.ts$/.test(file) || !paths.some((path) => file.startsWith(path))) continue;
    const faulty = mutate(readFileSync(join(root, file), "utf8"), found.length + 1);
    const module = JSON.stringify(join(folder, "test/support/mutant.ts"));
    writeFileSync(join(folder, file), `import { $m } from ${module}; ${faulty.text}`);
    found.push(...faulty.mutants.map((one): Tried => ({ ...one, file, verdict: "not tried" })));
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const known = values.verdicts && existsSync(values.verdicts) ? readFileSync(values.verdicts, "utf8") : "[]";
  const verdicts = new Map((JSON.parse(known) as Tried[]).map((one) => [keyOf(one), one.verdict]));
  for (const one of found) {
    const isAccepted = equivalents.some(
      ([file, text, fault]) => one.file === file && one.text === text && one.fault === fault,
    );
    one.verdict = isAccepted ? "equivalent" : (verdicts.get(keyOf(one)) ?? one.verdict);
  }
  return found;
}

/** The quickest first. */
function groups(): string[][] {
  const timings = JSON.parse(readFileSync(join(root, "test/timings.json"), "utf8")) as {
    files: Record<string, number>;
  };
  const msOf = (file: string) => timings.files[file] ?? 0;
  const files = allTestFiles().filter((file) => words.some((word) => file.includes(word)));
  const made: string[][] = [];
  let spentMs = groupMs;
  for (const file of files.sort((one, other) => msOf(one) - msOf(other))) {
    if (spentMs >= groupMs) {
      made.push([]);
      spentMs = 0;
    }
    made.at(-1)?.push(file);
    spentMs += msOf(file);
  }
  return made;
}

function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
}
