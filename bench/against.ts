import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
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
  /** How many callers each row has at a time, by its name without its database. */
  readonly rows: Readonly<Record<string, readonly number[]>>;
  /** For how long pairs are measured, in milliseconds. Each row has one pair at least. */
  readonly forMs: number;
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
type Pair = readonly [Sample, Sample];

/** One row at one number of connections. */
export type Compared = {
  readonly row: Row;
  readonly connections: number;
  readonly pairs: readonly Pair[];
  readonly counts: readonly [Counts, Counts];
};

const stock = {
  keys: 4000 + drainedKeys,
  projects: 50,
  large: 0,
  sizes: [],
  files: [],
} satisfies Stock;

/** Counts what every row takes, then measures pairs of all rows in turn. */
export async function compare(comparison: Comparison): Promise<Compared[]> {
  const { programs, backends, meter, say } = comparison;
  const compared: (Compared & { other: Row; pairs: Pair[] })[] = [];
  for (const backend of await backends.create()) {
    const keys = await seedBy(comparison, backend);
    const copy = await backends.copy(backend);
    await comparison.processes.run([programs[1], "db", "upgrade"], {
      env: { ...copy.settings, KEYHOLE_ACTOR: "bench" },
      deadlineMs: 60_000,
    });
    say(`${backend.name} is filled, copied and upgraded.`);
    const [olds, news] = [await countAll(comparison, 0, backend, keys), await countAll(comparison, 1, copy, keys)];
    say(`What a request takes of ${backend.name} is counted.`);
    const sides = [await startSide(comparison, 0, backend, keys), await startSide(comparison, 1, copy, keys)] as const;
    say(`Both programs serve ${backend.name}.`);
    for (const row of sides[0]) {
      const other = sides[1].find(({ id }) => id === row.id) as Row;
      for (const connections of callersOf(comparison, row)) {
        const name = `${row.id} ${connections}`;
        const counts = [olds.get(name) as Counts, news.get(name) as Counts] as const;
        compared.push({ row, other, connections, pairs: [], counts });
      }
    }
  }
  for (const { row, other } of compared) for (const one of [row, other]) await meter.settle(one);
  const untilMs = performance.now() + comparison.forMs;
  let pairMs = 0;
  for (let done = 0; done < compared.length || performance.now() + pairMs < untilMs; done++) {
    const startedAtMs = performance.now();
    const { row, other, connections, pairs } = compared[done % compared.length] as (typeof compared)[number];
    const measure = async (one: Row) => meter.measure(one, connections, runSeconds);
    if (pairs.length % 2 === 0) pairs.push([await measure(row), await measure(other)]);
    else pairs.push(((after, before): Pair => [before, after])(await measure(other), await measure(row)));
    pairMs = Math.max(pairMs, performance.now() - startedAtMs);
  }
  return compared;
}

const callersOf = ({ rows }: Comparison, { id }: Row) => rows[id.slice(id.indexOf("/") + 1)] ?? [];
const runSeconds = 1;

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
  const rows = await rowsOf(rig, (name) => name in of.rows);
  // On PostgreSQL the notary is a process of its own, which does not run here.
  if (backend.name === "SQLite") await untilSigned(backend);
  return rows;
}

/** Waits until the notary has signed a head over every lane's end, if the database has a place for heads. */
export async function untilSigned(backend: Backend): Promise<void> {
  const isThere = "select 1 from sqlite_schema where name = 'audit_checkpoints_signed'";
  if ((await look(backend, isThere)).length === 0) return;
  const unsigned = `select lane from audit_heads as head where seq > coalesce((select max(last_seq) from audit_leaves
    where lane = head.lane and leaf < (select max(size) from audit_checkpoints_signed)), 0)`;
  for (const startedAtMs = performance.now(); performance.now() - startedAtMs < signedWithinMs; await Bun.sleep(200)) {
    if ((await look(backend, unsigned)).length === 0) return;
  }
  throw new Error(`the notary has not signed every lane after ${signedWithinMs / 1000} s`);
}

/** A notary that rests takes in a million segments in some minutes. */
const signedWithinMs = 600_000;

/**
 * Counts what requests take, of which there are as many however fast the machine is: bursts of one request of each
 * caller. What a server sends to PostgreSQL is seen by a proxy. Of one caller the median request counts, which what the
 * server does by itself now and then does not change.
 * @returns by row and callers
 */
async function countAll(
  of: Comparison,
  which: 0 | 1,
  backend: Backend,
  keys: readonly string[],
): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>();
  const { DATABASE_URL: url } = backend.settings;
  const wire = new Wire();
  const proxy = url === undefined ? undefined : await startProxy(new URL(url), wire.listen);
  const settings = { ...backend.settings };
  if (url !== undefined) settings["DATABASE_URL"] = Object.assign(new URL(url), { port: proxy?.port }).href;
  const binary = of.programs[which];
  const rig = new Rig(
    { backend: { ...backend, settings }, processes: of.processes, binary, folder: of.folder },
    keys,
    stock,
  );
  try {
    await rig.start();
    const rows = await rowsOf(rig, (name) => name in of.rows);
    const value = rows.find(({ bucket }) => bucket === "value") as Row;
    const flushesNow = async () => (proxy === undefined ? null : flushesOf(backend, rig, value));
    for (const row of rows) {
      await rig.reserve(row.bucket, countedMax * callersOf(of, row).length);
      await row.prepare?.();
      let flushes = await flushesNow();
      for (const callers of callersOf(of, row)) {
        const segments = await segmentsIn(backend);
        const bursts = await burstsOf(row, rig, callers, wire);
        const requests = bursts.length * callers;
        const commits = ((await segmentsIn(backend)) - segments) / requests;
        const before = flushes;
        flushes = await flushesNow();
        const each = (what: "statements" | "trips") =>
          proxy === undefined ? null : (callers === 1 ? median : mean)(bursts.map((burst) => burst[what])) / callers;
        counts.set(`${row.id} ${callers}`, {
          statements: each("statements"),
          trips: each("trips"),
          commits,
          flushes: flushes === null ? null : (flushes - (before ?? 0) - 1) / requests,
        });
      }
    }
    return counts;
  } finally {
    await rig.stop();
    await proxy?.stop();
  }
}

/** The statements and trips of each burst. */
async function burstsOf(row: Row, rig: Rig, callers: number, wire: Wire) {
  const lines = readFileSync(row.list.file, "utf8").trimEnd().split("\n");
  const isRefusal = row.expected === "refusal";
  const bursts: { statements: number; trips: number }[] = [];
  for (let sent = rig.next(row.bucket); bursts.length * callers < countedMin || bursts.length < burstsMin; ) {
    const { statements, trips } = wire;
    const burst = Array.from({ length: callers }, async () => {
      const response = await ask(rig.server, lines[sent++ % lines.length] as string);
      await response.arrayBuffer();
      if (!isRefusal && String(response.status) !== row.expected) throw new Error(`${row.id} got ${response.status}`);
    });
    await Promise.all(burst);
    bursts.push({ statements: wire.statements - statements, trips: wire.trips - trips });
  }
  rig.sent(row.bucket, bursts.length * callers);
  return bursts;
}

const [countedMin, burstsMin] = [300, 15];
/** With 64 callers at most. */
const countedMax = burstsMin * 64;

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
    await Bun.write(join(checkout, "src/record/store/journal.ts"), Bun.file(join(import.meta.dir, "no-journal.ts")));
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

const mean = (values: readonly number[]) => sum(values) / values.length;
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** In what a request became dearer: processor time, or anything that is counted. */
export function dearerIn({ pairs, connections, counts: [before, after] }: Compared): string[] {
  const cpu = cpuRatio(pairs, cpuOf);
  // How many callers share a statement depends on when they arrive. One caller shares with nobody.
  const allowed = (count: number) => (connections === 1 ? count * 1.02 + 0.05 : count * 1.5 + 0.05);
  return [
    ...(cpu.median > 1.05 && agree(pairs, (ratio) => ratio > 1) ? ["processor time"] : []),
    ...(["statements", "trips", "commits", "flushes"] as const).filter(
      (what) => (after[what] ?? 0) > allowed(before[what] ?? 0),
    ),
  ];
}

/** Whether all pairs but an eighth say it. Of few pairs, that is all: on a busy machine three of four say anything. */
function agree(pairs: readonly Pair[], says: (ratio: number) => boolean): boolean {
  const others = pairs.filter(([before, after]) => !says(cpuOf(after) / cpuOf(before)));
  return others.length <= pairs.length / 8;
}

function verdictOf(one: Compared): string {
  const faults = [...new Set(one.pairs.flat().flatMap(({ fault }) => fault ?? []))];
  if (faults.length > 0) return `INVALID: ${faults.join("; ")}`;
  const dearer = dearerIn(one);
  if (dearer.length > 0) return `dearer: ${dearer.join(", ")}`;
  if (one.pairs.length === 0) return "only counted";
  const cpu = cpuRatio(one.pairs, cpuOf);
  return cpu.median < 0.95 && agree(one.pairs, (ratio) => ratio < 1) ? "cheaper" : "same";
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
    "verdict",
  ];
  const spreadText = ({ median, least, most }: Spread) =>
    `${median.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
  const lines = compared.map((one) => {
    const { row, connections, pairs, counts } = one;
    const both = (what: keyof Counts) =>
      counts[0][what] === null ? "" : counts.map((count) => (count[what] ?? 0).toFixed(2)).join(" → ");
    const cpu = [0, 1].map((side) => number(1000 * median(pairs.map((pair) => cpuOf(pair[side as 0 | 1])))));
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
      verdictOf(one),
    ];
  });
  return [heads, ...lines];
}
