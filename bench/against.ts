import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProxy } from "../test/support/proxy.ts";
import { type Backends, look } from "./backends.ts";
import type { Meter, Sample, Spread } from "./measure.ts";
import { othersMax } from "./points.ts";
import type { Processes } from "./processes.ts";
import { number, type Table } from "./report.ts";
import { type Backend, drainedKeys, Rig } from "./rig.ts";
import { ask, type Row, rowsOf } from "./rows.ts";
import type { Stock } from "./seed.ts";
import { Wire } from "./wire.ts";

/*
 * Two programs, each on its own copy of one database, answer the same requests in turn. Rates of a busy machine say
 * little, so what decides is the processor time of a request, in pairs of neighbouring runs, and what can be counted.
 */

export type Comparison = {
  /** Compiled programs. The second is measured against the first, and upgrades its copy. */
  readonly programs: readonly [string, string];
  /** The checkout whose functions fill the databases: that of the first program. */
  readonly checkout: string;
  /** Names of rows, without their database. */
  readonly rows: readonly string[];
  readonly connections: readonly number[];
  /** When the last round must be over, in milliseconds of `performance.now()`. */
  readonly untilMs: number;
  /** The least number of rounds, however long they take. */
  readonly rounds: number;
  readonly meter: Meter;
  readonly backends: Backends;
  readonly processes: Processes;
  readonly folder: string;
  readonly say: (line: string) => void;
};

/** What a request took: counted, not timed. Null if it was not counted. */
type Counts = {
  readonly statements: number | null;
  readonly trips: number | null;
  readonly commits: number;
  readonly flushes: number | null;
};
type Counted = Sample & { readonly commits: number };
type Pair = readonly [Counted, Counted];

/** One row at one number of connections. */
export type Compared = {
  readonly row: Row;
  readonly connections: number;
  readonly pairs: readonly Pair[];
  readonly counts: readonly [Counts, Counts];
};

const stock = {
  keys: 1200 + drainedKeys,
  projects: 50,
  large: 0,
  sizes: [],
  files: [],
} satisfies Stock;

/** Measures every row until the time is up, or as often as it must. */
export async function compare(comparison: Comparison): Promise<Compared[]> {
  const { programs, backends, connections, meter, say, untilMs } = comparison;
  const compared: { row: Row; other: Row; connections: number; pairs: Pair[]; counts: [Counts, Counts] }[] = [];
  for (const backend of await backends.create()) {
    const keys = await seedBy(comparison, backend);
    const copy = await backends.copy(backend);
    await comparison.processes.run([programs[1], "db", "upgrade"], {
      env: { ...copy.settings, KEYHOLE_ACTOR: "bench" },
      deadlineMs: 60_000,
    });
    say(`${backend.name} is filled, copied and upgraded.`);
    const [olds, news] = [await countAll(comparison, 0, backend, keys), await countAll(comparison, 1, copy, keys)];
    const sides = [await startSide(comparison, 0, backend, keys), await startSide(comparison, 1, copy, keys)] as const;
    say(`Both programs serve ${backend.name}.`);
    for (const count of connections) {
      for (const row of sides[0]) {
        const other = sides[1].find(({ id }) => id === row.id) as Row;
        const name = `${row.id} ${count}`;
        const counts: [Counts, Counts] = [olds.get(name) ?? uncounted, news.get(name) ?? uncounted];
        compared.push({ row, other, connections: count, pairs: [], counts });
      }
    }
  }
  for (const { row, other } of compared) for (const one of [row, other]) await meter.settle(one);
  for (let round = 0, roundMs = 0; round < comparison.rounds || performance.now() + roundMs < untilMs; round++) {
    const startedAtMs = performance.now();
    for (const one of compared) {
      const sides = round % 2 === 0 ? [one.row, one.other] : [one.other, one.row];
      const samples = new Map<Row, Counted>();
      for (const row of sides) samples.set(row, await measureOne(meter, row, one.connections));
      one.pairs.push([samples.get(one.row) as Counted, samples.get(one.other) as Counted]);
    }
    roundMs = performance.now() - startedAtMs;
    say(`Round ${round + 1} took ${Math.round(roundMs / 1000)} s.`);
  }
  return compared.map(({ row, connections, pairs, counts: [before, after] }) => {
    const commits = (side: 0 | 1) => median(pairs.map((pair) => pair[side].commits));
    const counts = [
      { ...before, commits: commits(0) },
      { ...after, commits: commits(1) },
    ] as const;
    return { row, connections, pairs, counts };
  });
}

const uncounted: Counts = { statements: null, trips: null, commits: 0, flushes: null };
const runSeconds = 1;

async function measureOne(meter: Meter, row: Row, connections: number): Promise<Counted> {
  await row.prepare?.();
  const backend = (row.rig as Rig).backend;
  const before = await segmentsIn(backend);
  const sample = await meter.measure(row, connections, runSeconds);
  return { ...sample, commits: ((await segmentsIn(backend)) - before) / sample.requests };
}

/** Each commit of the audit is one segment. */
async function segmentsIn(backend: Backend): Promise<number> {
  const [found] = await look(backend, "select count(*) as segments from audit_segments");
  return Number(found?.["segments"]);
}

/** Fills an empty database by the functions of the checkout. @returns the keys */
async function seedBy({ checkout, processes, folder }: Comparison, { settings }: Backend): Promise<string[]> {
  const file = join(mkdtempSync(join(folder, "seed-")), "seed.ts");
  const from = ["bench/seed.ts", "test/bench/seed.ts"].map((path) => join(checkout, path)).find(existsSync);
  const call = `await seed(${JSON.stringify(settings)}, ${JSON.stringify(stock)})`;
  writeFileSync(file, `import { seed } from ${JSON.stringify(from)};\nconsole.log(JSON.stringify(${call}));\n`);
  const printed = await processes.run([process.execPath, "--no-env-file", file], {
    cwd: checkout,
    deadlineMs: 600_000,
  });
  return JSON.parse(printed.trim().split("\n").at(-1) as string) as string[];
}

/** Starts a program, and waits until its notary, if it has one, has signed what is there. @returns its rows */
async function startSide(of: Comparison, which: 0 | 1, backend: Backend, keys: readonly string[]): Promise<Row[]> {
  const binary = of.programs[which];
  const rig = new Rig({ backend, processes: of.processes, binary, folder: of.folder }, keys, stock);
  await rig.start();
  const rows = await rowsOf(rig, (name) => of.rows.includes(name));
  // On PostgreSQL the notary is a process of its own, which does not run here.
  if (backend.name === "SQLite") await untilSigned(backend);
  return rows;
}

async function untilSigned(backend: Backend): Promise<void> {
  const isThere = "select 1 from sqlite_schema where name = 'audit_checkpoints_signed'";
  if ((await look(backend, isThere)).length === 0) return;
  const segments = await segmentsIn(backend);
  for (const startedAtMs = performance.now(); performance.now() - startedAtMs < signedWithinMs; await Bun.sleep(200)) {
    const [signed] = await look(backend, "select max(size) as size from audit_checkpoints_signed");
    if (Number(signed?.["size"]) >= segments) return;
  }
  throw new Error(`the notary has not signed ${segments} segments after ${signedWithinMs / 1000} s`);
}

const signedWithinMs = 150_000;

/** Counts what the rows send to PostgreSQL, by a proxy before it. @returns by row and connections */
async function countAll(
  of: Comparison,
  which: 0 | 1,
  backend: Backend,
  keys: readonly string[],
): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>();
  const url = backend.settings["DATABASE_URL"];
  if (url === undefined) return counts;
  const wire = new Wire();
  const proxy = await startProxy(new URL(url), wire.listen);
  const through = new URL(url);
  through.port = String(proxy.port);
  const settings = { ...backend.settings, DATABASE_URL: through.href };
  const binary = of.programs[which];
  const options = { backend: { ...backend, settings }, processes: of.processes, binary, folder: of.folder };
  const rig = new Rig(options, keys, stock);
  try {
    await rig.start();
    const rows = await rowsOf(rig, (name) => of.rows.includes(name));
    const value = rows.find(({ bucket }) => bucket === "value") as Row;
    for (const row of rows) await of.meter.settle(row);
    for (const connections of of.connections) {
      for (const row of rows) {
        await row.prepare?.();
        const flushesBefore = await flushesOf(backend, rig, value);
        const [statements, trips] = [wire.statements, wire.trips];
        const { requests } = await of.meter.measure(row, connections, runSeconds);
        counts.set(`${row.id} ${connections}`, {
          statements: (wire.statements - statements) / requests,
          trips: (wire.trips - trips) / requests,
          commits: 0,
          flushes: ((await flushesOf(backend, rig, value)) - flushesBefore - 1) / requests,
        });
      }
    }
    return counts;
  } finally {
    await rig.stop();
    await proxy.stop();
  }
}

/**
 * How often PostgreSQL has flushed its log. A connection tells its share a second after it told it last, and not before
 * it has done something: so this reads one value, whose commit is a flush.
 */
async function flushesOf(backend: Backend, rig: Rig, value: Row): Promise<number> {
  await Bun.sleep(1100);
  await (await ask(rig.server, value.list.first)).arrayBuffer();
  rig.sent(value.bucket, 1);
  const [version] = await look(backend, "select current_setting('server_version_num')::integer >= 180000 as is_newer");
  const [found] = await look(
    backend,
    version?.["is_newer"]
      ? "select sum(fsyncs) as flushes from pg_stat_io where object = 'wal'"
      : "select wal_sync as flushes from pg_stat_wal",
  );
  return Number(found?.["flushes"]);
}

/** Builds a commit, in a folder of its own. @returns its program and the folder */
export function buildCommit(of: Building, commit: string): Promise<Built> {
  return buildFrom(of, 'git archive "$1"', commit);
}

/** Builds the working tree with a journal that keeps nothing (`no-journal.ts`). */
export function buildWithoutJournal(of: Building): Promise<Built> {
  return buildFrom(of, "git ls-files -z | tar -c --null -T -", "", async (checkout) => {
    await Bun.write(join(checkout, "src/store/journal.ts"), Bun.file(join(import.meta.dir, "no-journal.ts")));
  });
}

type Building = Pick<Comparison, "processes" | "folder"> & { readonly root: string };
type Built = { readonly binary: string; readonly checkout: string };

/** @param sources - a command of the shell that prints them as an archive */
async function buildFrom(
  { processes, folder, root }: Building,
  sources: string,
  argument: string,
  change?: (checkout: string) => Promise<void>,
): Promise<Built> {
  const checkout = mkdtempSync(join(folder, "sources-"));
  const unpack = `${sources} | tar -x -C "$2"`;
  await processes.run(["/bin/sh", "-c", unpack, "sh", argument, checkout], { cwd: root, deadlineMs: 60_000 });
  await change?.(checkout);
  await processes.run([process.execPath, "run", "build"], { cwd: checkout, deadlineMs: 600_000 });
  return { binary: join(checkout, "dist/keyhole"), checkout };
}

/** Median, and the quartiles around it. */
function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] as number;
  return { median: median(values), least: at(0.25), most: sorted[Math.ceil((sorted.length - 1) * 0.75)] as number };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const { length } = sorted;
  return ((sorted[Math.floor(length / 2)] as number) + (sorted[Math.floor((length - 1) / 2)] as number)) / 2;
}

const cpuOf = (sample: Sample) => (sample.serverCpuMs ?? 0) + (sample.databaseCpuMs ?? 0);

/**
 * The second program's to the first's: of all requests together, so that a run in which few were answered weighs little,
 * with the quartiles of the pairs.
 */
function cpuRatio(pairs: readonly Pair[], of: (sample: Sample) => number | null): Spread {
  const whole = (side: 0 | 1) => {
    const runs = pairs.map((pair) => pair[side]);
    return sum(runs.map((run) => (of(run) ?? 0) * run.requests)) / sum(runs.map(({ requests }) => requests));
  };
  return { ...ratio(pairs, of), median: whole(1) / whole(0) };
}

/** The ratio of each pair. */
function ratio(pairs: readonly Pair[], of: (sample: Sample) => number | null): Spread {
  return spread(pairs.map(([before, after]) => (of(after) ?? 0) / (of(before) ?? 0)));
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Whether a request became dearer, by processor time and by counts. */
export function isDearer({ pairs, connections, counts: [before, after] }: Compared): boolean {
  const cpu = cpuRatio(pairs, cpuOf);
  if (cpu.median > 1.05 && cpu.least > 1) return true;
  // How many callers share a statement depends on when they arrive. One caller shares with nobody.
  const allowed = (count: number) => (connections === 1 ? count * 1.02 + 0.05 : count * 1.5 + 0.05);
  return (["statements", "trips", "commits", "flushes"] as const).some(
    (what) => (after[what] ?? 0) > allowed(before[what] ?? 0),
  );
}

/** The share of the processor time that other programs took. */
export function othersOf(compared: readonly Compared[]): number {
  return median(compared.flatMap(({ pairs }) => pairs.flat().map(({ others }) => others ?? 0)));
}

export const isTooBusy = (compared: readonly Compared[]) => othersOf(compared) > othersMax;

/** A line for each row, with the second program beside the first. */
export function comparedTable(compared: readonly Compared[]): Table {
  const heads = [
    "",
    "conn.",
    "pairs",
    "CPU µs",
    "ratio",
    "main thread",
    "PostgreSQL",
    "statements",
    "round trips",
    "commits",
    "flushes",
    "req/s",
    "p50",
    "",
  ];
  const spreadText = ({ median, least, most }: Spread) =>
    `${median.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
  const lines = compared.map((one) => {
    const { row, connections, pairs, counts } = one;
    const both = (what: keyof Counts) =>
      counts[0][what] === null ? "" : counts.map((count) => (count[what] ?? 0).toFixed(2)).join(" → ");
    const cpu = [0, 1].map((side) => number(1000 * median(pairs.map((pair) => cpuOf(pair[side as 0 | 1])))));
    const faults = [...new Set(pairs.flat().flatMap(({ fault }) => fault ?? []))];
    return [
      `${row.database}: ${row.title}`,
      String(connections),
      String(pairs.length),
      cpu.join(" → "),
      spreadText(cpuRatio(pairs, cpuOf)),
      cpuRatio(pairs, ({ mainCpuMs }) => mainCpuMs).median.toFixed(2),
      row.postmaster === undefined ? "" : cpuRatio(pairs, ({ databaseCpuMs }) => databaseCpuMs).median.toFixed(2),
      both("statements"),
      both("trips"),
      both("commits"),
      both("flushes"),
      spreadText(ratio(pairs, ({ perSecond }) => perSecond)),
      spreadText(ratio(pairs, ({ p50Ms }) => p50Ms)),
      faults.length > 0 ? `INVALID: ${faults.join("; ")}` : isDearer(one) ? "dearer" : "",
    ];
  });
  return [heads, ...lines];
}
