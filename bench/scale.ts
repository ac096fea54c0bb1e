import { apiRoot } from "../src/serve/api/app.ts";
import type { Meter, Sample } from "./measure.ts";
import { cpuMsBetween, familyTimes } from "./processes.ts";
import type { Bucket, DatabaseName, RequestList, Rig } from "./rig.ts";
import type { Row } from "./rows.ts";
import { type Stock, variablesPerLarge, variablesPerProject } from "./seed.ts";

/** One size on one scale, and what is measured there: a row, or a command that a person runs beside the server. */
export type ScalePoint = {
  readonly database: DatabaseName;
  readonly what: string;
  readonly read: string;
  readonly size: number;
  readonly connections: number;
  readonly row: Row;
  readonly command?: readonly string[];
};

const projects = 50;
const nothing = { keys: 0, projects, large: 0, sizes: [], files: [] } as const satisfies Stock;
const smallFile = { project: "files-one", count: 1, bytes: 1024 } as const;
const environmentSizes = [1, 10, 100, 1000];
const connectionCounts = [1, 4, 16, 64, 256];

/** 1000 variables and 10,000 keys. Each other rig differs in one of these numbers. */
const base = { ...nothing, keys: 10_000, sizes: environmentSizes, files: [smallFile] } satisfies Stock;

/**
 * A rig for each size, so that the sizes can be measured in turn: on a shared machine, measurements minutes apart are
 * not comparable.
 */
export const scaleStocks = {
  // The first, because the notary needs a minute and more for a million segments.
  ...Object.fromEntries(
    [1000, 1_000_000].map((segments) => [`segments-${segments}`, { ...nothing, keys: 5000, segments }]),
  ),
  base,
  ...Object.fromEntries(
    [100_000, 1_000_000].map((variables) => [
      `variables-${variables}`,
      { ...nothing, keys: 5000, large: Math.round((variables - projects * variablesPerProject) / variablesPerLarge) },
    ]),
  ),
  "keys-100": { ...nothing, keys: 100, files: [smallFile] },
  "keys-1000000": { ...nothing, keys: 5000, otherKeys: 995_000, files: [smallFile] },
  ...Object.fromEntries(
    [10, 1000].map((listed) => [
      `listed-${listed}`,
      { ...nothing, keys: 100, projects: listed, listed, files: [smallFile] },
    ]),
  ),
  // No command of persons looks at trusts, and no request at persons.
  ...Object.fromEntries(
    [10, 1000].map((count) => [`trusts-${count}`, { ...nothing, keys: 100, trusts: count, persons: count }]),
  ),
} satisfies Record<string, Stock>;

/** All points of one database. @param rigs - by the names in {@link scaleStocks} */
export function scalePointsOf(rigs: Readonly<Record<string, Rig>>): ScalePoint[] {
  const at = (name: string) => rigs[name] as Rig;
  const value20 = (rig: Rig) => row(rig, "value", (index) => `/projects/p${index % projects}/variables?${environment}`);
  const file = (rig: Rig) => row(rig, "content", () => `/files?project=${smallFile.project}&${environment}`);
  const database = at("base").backend.name;
  const scalePoint = (what: string, read: string, size: number, row: Row, connections = 64): ScalePoint => ({
    ...{ database, what, read, size, connections, row },
  });
  const commandPoint = (what: string, command: readonly string[], size: number, row: Row): ScalePoint => ({
    ...scalePoint(what, `\`keyhole ${command.join(" ")}\``, size, row, 1),
    command,
  });
  const baseRow = value20(at("base"));
  return [
    ...[1000, 100_000, 1_000_000].map((size) => {
      const measured = size === 1000 ? baseRow : value20(at(`variables-${size}`));
      return scalePoint("variables in the database", "value read of 20", size, measured);
    }),
    // A hundred keys allow only 3000 value reads, but each may read a file 1000 times, and files are audited too.
    ...[100, 10_000, 1_000_000].map((size) => {
      const measured = file(at(size === 10_000 ? "base" : `keys-${size}`));
      return scalePoint("keys in the database", "read of a 1 KiB file", size, measured);
    }),
    ...[10, 1000].map((size) =>
      scalePoint("projects that a key lists", "read of a 1 KiB file", size, file(at(`listed-${size}`))),
    ),
    ...[10, 1000].map((size) =>
      scalePoint("trusts", "token of a stranger, 401", size, strangers(at(`trusts-${size}`))),
    ),
    ...[10, 1000].map((size) => commandPoint("persons", ["person", "list"], size, value20(at(`trusts-${size}`)))),
    ...[1000, 100_000].map((size) => {
      const rig = at(size === 1000 ? "segments-1000" : `variables-${size}`);
      return commandPoint("names in the database", ["find", "SETTING_019"], size, value20(rig));
    }),
    ...[1000, 1_000_000].map((size) =>
      scalePoint("segments of the audit", "value read of 20", size, value20(at(`segments-${size}`))),
    ),
    ...connectionCounts.map((count) => scalePoint("connections", "value read of 20", count, baseRow, count)),
    ...environmentSizes.map((size) => {
      const measured = row(at("base"), "value", () => `/projects/size-${size}/variables?${environment}`);
      return scalePoint("variables per environment", "value read of all", size, measured);
    }),
  ];
}

const environment = "environment=production";

/** Different tokens of an issuer that no trust names. */
function strangers(rig: Rig): Row {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const lines = Array.from({ length: strangersCount }, (_, index) => {
    const token = [part({ alg: "ES256" }), part({ iss: "https://stranger.example", sub: String(index) }), "AAAA"];
    return `${apiRoot}/projects/p0/variables?${environment} ${token.join(".")}`;
  });
  return { ...rowOf(rig, "unrecognized", rig.listOf(lines)), expected: "refusal" };
}

/** How many strangers take turns. */
export const strangersCount = 50_000;

function row(rig: Rig, bucket: Bucket, path: (index: number) => string): Row {
  return rowOf(rig, bucket, rig.list(path));
}

function rowOf(rig: Rig, bucket: Bucket, list: RequestList): Row {
  const { backend } = rig;
  return {
    id: `${backend.name} ${list.file}`,
    title: "",
    database: backend.name,
    floor: undefined,
    bucket,
    list,
    expected: "200",
    bodyBytes: 0,
    large: false,
    server: () => rig.server,
    rig,
    postmaster: backend.postmaster,
  };
}

/** Measures all points in turn and repeats that. @returns the samples of each point */
export async function measureScale(
  meter: Meter,
  scalePoints: readonly ScalePoint[],
  options: {
    readonly binary: string;
    readonly seconds: number;
    readonly repeats: number;
    readonly say: (line: string) => void;
  },
): Promise<Sample[][]> {
  const { binary, seconds, repeats, say } = options;
  const samples: Sample[][] = scalePoints.map(() => []);
  for (const { row, command } of scalePoints) if (command === undefined) await meter.settle(row);
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const [index, { database, what, size, row, command, connections }] of scalePoints.entries()) {
      const sample =
        command === undefined
          ? await meter.measure(row, connections, seconds)
          : await measureCommand([binary, ...command], row, seconds);
      samples[index]?.push(sample);
      say(`${database}, ${what}, ${size}: ${Math.round(sample.perSecond)}/s ${sample.fault ?? ""}`);
    }
  }
  return samples;
}

/** Runs a command again and again. Its processor time counts as the server's. */
async function measureCommand(command: readonly string[], { rig, postmaster }: Row, seconds: number): Promise<Sample> {
  const databaseTimes = () => (postmaster === undefined ? new Map<number, number>() : familyTimes(postmaster));
  const startedAtMs = performance.now();
  const before = databaseTimes();
  const lastedMs: number[] = [];
  let cpuMs = 0;
  let failed = 0;
  while (performance.now() - startedAtMs < seconds * 1000 || lastedMs.length < runsMin) {
    const fromMs = performance.now();
    const child = Bun.spawn([...command], {
      env: { ...rig?.backend.settings, KEYHOLE_ACTOR: "bench" },
      stdio: ["ignore", "ignore", "ignore"],
    });
    if ((await child.exited) !== 0) failed += 1;
    lastedMs.push(performance.now() - fromMs);
    cpuMs += Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000;
  }
  const { length } = lastedMs;
  const sorted = lastedMs.toSorted((a, b) => a - b);
  return {
    requests: length,
    perSecond: (1000 * length) / (performance.now() - startedAtMs),
    p50Ms: sorted[length >> 1] as number,
    p99Ms: sorted.at(-1) as number,
    ...{ serverCpuMs: cpuMs / length, mainCpuMs: null, rssMib: null, others: null, refused: 0, failed },
    databaseCpuMs: postmaster === undefined ? null : cpuMsBetween(before, databaseTimes()) / length,
    fault: failed === 0 ? null : `${failed} of ${length} failed`,
  };
}

const runsMin = 3;
