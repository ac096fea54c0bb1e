/**
 * `bun run bench`: measures what a request costs in the compiled program, and compares it with bare servers. See
 * `docs/maintainers/performance-method.md` for the method, and `--help`.
 */
import { copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "../package.json";
import { type Postgres, startPostgres } from "../test/support/postgres.ts";
import {
  buildCommit,
  buildWithoutJournal,
  type Compared,
  compare,
  comparedTable,
  dearerIn,
  isTooBusy,
  othersOf,
  untilSigned,
} from "./against.ts";
import { Backends } from "./backends.ts";
import { measureDashboard } from "./dashboard.ts";
import { writeResults } from "./docs.ts";
import {
  type Extras,
  measureCommit,
  measureFirstReads,
  measureLeaked,
  measureMeanwhile,
  measureSoak,
  measureStart,
  measureWaits,
} from "./extras.ts";
import { openLoadGenerator } from "./load.ts";
import { Meter, type Sample } from "./measure.ts";
import { measureRows, pointOf } from "./points.ts";
import { Processes } from "./processes.ts";
import {
  type Conditions,
  conditionsOf,
  extrasTable,
  faultsOf,
  machine,
  markdownOf,
  type Point,
  type Results,
  type RunReport,
  rowsTable,
  type ScaleReport,
  type ScaleRunReport,
  scaleTable,
  textOf,
} from "./report.ts";
import { type DatabaseName, Rig } from "./rig.ts";
import { floorsOf, mixedRow, type Row, rowsOf, rowsStock, unknownKeysCount } from "./rows.ts";
import { measureScale, scalePointsOf, scaleStocks, strangersCount } from "./scale.ts";
import { seed } from "./seed.ts";
import { targetsTable } from "./targets.ts";

const help = `Usage: bun run bench [options]

Measures the compiled server on PostgreSQL and SQLite, and bare servers for comparison, on loopback, and prints tables.
Without options it takes about fifteen minutes and writes docs/performance.json, .svg and the tables of the page.

  --quick               takes two minutes: 1 and 64 connections, fewer repeats, writes nothing
  --scale               measures how cost grows with variables, keys, projects that a key lists, trusts, persons, names,
                        segments of the audit, connections and variables per environment; writes docs/ too
  --dashboard           measures how long a person waits for the dashboard's grid, in Chromium; prints it, writes nothing
  --against COMMIT      compares a request with that of a commit, in pairs; exit code 1 if it takes more processor time,
                        statements or commits; takes ten minutes, in which a busy machine measures fewer pairs; writes
                        nothing
  --audit-tax           compares value reads with those of a journal that keeps nothing; takes five minutes; writes docs/
                        unless the machine was busy
  --no-docs             does not write docs/
  --only REGEX          measures only rows with matching ids, such as 'postgres/value-20', and their floors; writes no docs
  --connections N,N     --seconds N     --repeats N
`;

const root = join(import.meta.dir, "..");
const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    scale: { type: "boolean", default: false },
    dashboard: { type: "boolean", default: false },
    against: { type: "string" },
    "audit-tax": { type: "boolean", default: false },
    "no-docs": { type: "boolean", default: false },
    only: { type: "string" },
    connections: { type: "string" },
    seconds: { type: "string" },
    repeats: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (flags.help) {
  process.stdout.write(help);
  process.exit(0);
}

const only = flags.only === undefined ? undefined : new RegExp(flags.only);
const options = {
  connections: flags.connections?.split(",").map(Number) ?? (flags.quick ? [1, 64] : [1, 16, 64, 256]),
  seconds: Number(flags.seconds ?? 1),
  repeats: Number(flags.repeats ?? (flags.quick || flags.scale ? 2 : 3)),
};
if (
  ![...options.connections, options.seconds, options.repeats].every((number) => Number.isInteger(number) && number > 0)
) {
  say("--connections, --seconds and --repeats must be whole numbers above 0.");
  process.exit(2);
}

/** What a change may cost: the reads that machines make all day, and a refusal; and how many callers each has. */
const watchedRows = {
  "value-20": [1, 4, 16, 64],
  "value-20-again": [1, 4],
  metadata: [1, 4, 64],
  filtered: [1, 4, 64],
  "unchanged-20": [1, 64],
  "over-limit": [1, 64],
};
/** For how long pairs are measured, in milliseconds. */
const againstMs = 300_000;
/** Fewer say little. */
const pairsMin = 4;

const folder = mkdtempSync(join(tmpdir(), "keyhole-bench-"));
const processes = new Processes(folder);
const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
stopped.catch(() => {});
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => stop(new Error(`Interrupted by ${signal}.`)));
}
const deadlineMin = flags.quick ? 10 : flags.scale ? 60 : 30;
const deadline = setTimeout(() => stop(new Error(`Not done after ${deadlineMin} minutes.`)), deadlineMin * 60_000);

let cluster: Postgres | undefined;
let backends: Backends | undefined;
let exitCode = 1;
try {
  exitCode = await Promise.race([bench(), stopped]);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
} finally {
  clearTimeout(deadline);
  await processes.close();
  await backends?.drop();
  await cluster?.stop();
}
process.exit(exitCode);

async function bench(): Promise<number> {
  const startedAtMs = performance.now();
  const binary = await buildBinary();
  cluster = await startPostgres(say);
  if (!cluster) say("NO POSTGRESQL WAS FOUND: its rows are skipped. Set DATABASE_URL, or install PostgreSQL 15.");
  backends = new Backends(cluster, folder);
  if (flags.dashboard) {
    const table = await measureDashboard(binary, folder, await backends.create(), options.repeats);
    process.stdout.write(`${markdownOf(table)}\n`);
    return 0;
  }
  const generator = openLoadGenerator(processes, folder);
  const conditions: Conditions = {
    machine: machine(),
    software: {
      Keyhole: version,
      Bun: Bun.version,
      ...(cluster && { PostgreSQL: cluster.version }),
      "load by": generator.name,
    },
    seconds: options.seconds,
    repeats: options.repeats,
  };
  say(conditionsOf(conditions));
  const meter = new Meter(generator);
  if (flags.against !== undefined) return runAgainst(flags.against, meter, binary, backends, againstMs);
  if (flags["audit-tax"]) return runAuditTax(meter, conditions, binary, backends, againstMs / 2);
  const results: Results = flags.scale
    ? { format: 1, scale: await runScale(meter, conditions, binary, backends) }
    : { format: 1, run: await runRows(meter, conditions, binary, backends) };
  const { run, scale } = results;
  const tables = [
    run && rowsTable(run.rows),
    run && Object.keys(run.extras).length > 0 && extrasTable(run.extras),
    scale && scaleTable(scale.scales),
    targetsTable(results),
  ];
  for (const table of tables) if (table && table.length > 1) process.stdout.write(`${textOf(table)}\n\n`);
  if (!flags["no-docs"] && !flags.quick && !only)
    writeResults(join(root, "docs"), run ? { run } : { scale: scale as ScaleRunReport });
  say(`Done in ${Math.round((performance.now() - startedAtMs) / 1000)} s.`);
  const faults = [...(run?.rows ?? []), ...(scale?.scales ?? [])].flatMap(({ points }) =>
    points.flatMap((point) => point.faults),
  );
  faults.push(...Object.values(run?.extras ?? {}).flatMap(faultsOf));
  if (faults.length === 0) return 0;
  say(`${faults.length} faults: the figures marked INVALID mean nothing.`);
  return 1;
}

/** Builds the program and returns a copy, which a later build does not change. */
async function buildBinary(): Promise<string> {
  await processes.run([process.execPath, "run", "build"], { cwd: root, deadlineMs: 600_000 });
  const copy = join(folder, "keyhole");
  copyFileSync(join(root, "dist/keyhole"), copy);
  return copy;
}

async function runAgainst(commit: string, meter: Meter, binary: string, backends: Backends, forMs: number) {
  const old = await buildCommit({ processes, folder, root }, commit);
  const compared = await compare({
    programs: [old.binary, binary],
    checkout: old.checkout,
    rows: watchedRows,
    ...{ forMs, meter, backends, processes, folder, say },
  });
  const isInvalid = print(compared);
  const dearer = compared.filter((one) => dearerIn(one).length > 0);
  const names = dearer.map(({ row, connections }) => `${row.id} at ${connections}`).join(", ");
  say(
    `By processor time and counts, ${names ? `dearer than at ${commit}: ${names}.` : `nothing is dearer than at ${commit}.`}`,
  );
  return isInvalid || dearer.length > 0 ? 1 : 0;
}

async function runAuditTax(
  meter: Meter,
  conditions: Conditions,
  binary: string,
  backends: Backends,
  forMs: number,
): Promise<number> {
  const without = await buildWithoutJournal({ processes, folder, root });
  const compared = await compare({
    programs: [without.binary, binary],
    checkout: root,
    rows: { "value-20": [1, 4, 16, 64] },
    ...{ forMs, meter, backends, processes, folder, say },
  });
  const isInvalid = print(compared);
  const repeats = Math.min(...compared.map(({ pairs }) => pairs.length));
  // A page has no room for these.
  const left = new Set(["pairs", "round trips", "flushes", "verdict"]);
  const [heads = [], ...lines] = comparedTable(compared);
  const table = [heads, ...lines].map((cells) => cells.filter((_, at) => !left.has(heads[at] ?? "")));
  const tax = { ...conditions, repeats, table };
  if (!isInvalid && !isTooBusy(compared) && !flags["no-docs"]) writeResults(join(root, "docs"), { tax });
  return isInvalid ? 1 : 0;
}

/** @returns whether any figure is invalid */
function print(compared: readonly Compared[]): boolean {
  process.stdout.write(`${textOf(comparedTable(compared))}\n\n`);
  const others = `Other programs took ${Math.round(othersOf(compared) * 100)} % of the processor time`;
  say(isTooBusy(compared) ? `${others}: the machine was too busy for rates and p50.` : `${others}.`);
  const pairs = Math.min(...compared.map(({ pairs }) => pairs.length));
  if (pairs < pairsMin)
    say(`The machine was slow: some rows had ${pairs} pairs, and fewer than ${pairsMin} say little.`);
  return compared.some(({ pairs }) => pairs.flat().some(({ fault }) => fault !== null));
}

async function runRows(meter: Meter, conditions: Conditions, binary: string, backends: Backends): Promise<RunReport> {
  const rigs: Rig[] = [];
  for (const backend of await backends.create()) {
    const startedAtMs = performance.now();
    const keys = await seed(backend.settings, rowsStock);
    const rig = new Rig({ backend, processes, binary, folder, unknownKeys: unknownKeysCount }, keys, rowsStock);
    say(`Seeded ${backend.name} in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s.`);
    await rig.start();
    rigs.push(rig);
  }
  const [first] = rigs as [Rig];
  const offered: Row[] = [];
  for (const rig of rigs) offered.push(...(await rowsOf(rig)));
  const chosen = offered.filter((row) => !only || only.test(row.id));
  const bodies = join(folder, "bodies");
  mkdirSync(bodies);
  const environment = first.backend.settings["DATABASE_URL"];
  const floors = await floorsOf(first, offered, bodies, (path) =>
    processes.serve(
      [process.execPath, "--no-env-file", join(import.meta.dir, "floor.ts"), path],
      environment === undefined ? {} : { DATABASE_URL: environment },
    ),
  );
  const wanted = new Set(chosen.map((row) => row.floor));
  const rows = [...floors.filter((row) => wanted.has(row.id) || (only?.test(row.id) ?? true)), ...chosen].filter(
    (row) => cluster || row.id !== "floor/select-1",
  );
  const pace = { ...options, say };
  const measured = await measureRows(
    meter,
    rows.filter(({ large }) => !large),
    pace,
  );
  const large = rows.filter((row) => row.large);
  if (large.length > 0) {
    for (const rig of rigs) await rig.start();
    measured.push(...(await measureRows(meter, large, { ...pace, repeats: Math.min(pace.repeats, 3) })));
  }
  const extras: Partial<Record<DatabaseName, Extras>> = {};
  if (!only) {
    for (const rig of rigs) {
      const row = (name: string) => offered.find(({ id, rig: of }) => of === rig && id.endsWith(`/${name}`)) as Row;
      say(`Measuring the extras of ${rig.backend.name}`);
      const firstReads = await measureFirstReads(meter, rig, row("value-1000"), row("value-20"));
      const meanwhile = await measureMeanwhile(meter, rig, row("file-8m"), row("metadata"));
      const soak = flags.quick ? null : await measureSoak(meter, rig, mixedRow(rig, offered));
      const waits = flags.quick ? null : await measureWaits(binary, rig);
      const start = await measureStart(rig, 7);
      const commitMs = await measureCommit(rig.backend, folder);
      const leaked = flags.quick || rig !== first ? null : await measureLeaked(binary, folder);
      extras[rig.backend.name] = { ...start, commitMs, firstReads, meanwhile, soak, leaked, waits };
    }
  }
  return { ...conditions, rows: measured, extras };
}

async function runScale(
  meter: Meter,
  conditions: Conditions,
  binary: string,
  backends: Backends,
): Promise<ScaleRunReport> {
  const scalePoints = [];
  const rigs: Partial<Record<DatabaseName, Record<string, Rig>>> = {};
  const signed: Promise<void>[] = [];
  for (const [name, stock] of Object.entries(scaleStocks)) {
    for (const backend of await backends.create()) {
      const startedAtMs = performance.now();
      const options = { backend, processes, binary, folder, unknownKeys: strangersCount };
      const rig = new Rig(options, await seed(backend.settings, stock), stock);
      await rig.start();
      if (backend.name === "SQLite") signed.push(untilSigned(backend));
      signed.at(-1)?.catch(() => {});
      rigs[backend.name] = { ...rigs[backend.name], [name]: rig };
      say(`Seeded ${backend.name}, ${name}, in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s.`);
    }
  }
  await Promise.all(signed);
  for (const named of Object.values(rigs)) scalePoints.push(...scalePointsOf(named));
  const samples = await measureScale(meter, scalePoints, { ...options, binary, say });
  const scales: (ScaleReport & { points: (Point & { size: number })[] })[] = [];
  for (const [index, { database, what, read, size, connections }] of scalePoints.entries()) {
    let scale = scales.find((line) => line.database === database && line.what === what);
    if (!scale) {
      scale = { database, what, read, points: [] };
      scales.push(scale);
    }
    scale.points.push({ size, ...pointOf(connections, samples[index] as Sample[], undefined) });
  }
  return { ...conditions, scales };
}

function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
}
