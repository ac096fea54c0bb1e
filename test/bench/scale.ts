import type { Meter, Sample } from "./measure.ts";
import type { Row } from "./rows.ts";
import { type Stock, variablesPerLarge, variablesPerProject } from "./seed.ts";
import type { DatabaseName, RequestList, Stand } from "./stand.ts";

/** One size of one thing, and the row that is measured there. */
export type Rung = {
  readonly database: DatabaseName;
  readonly what: string;
  readonly read: string;
  readonly size: number;
  readonly connections: number;
  readonly row: Row;
};

const projects = 50;
const nothing = { keys: 0, projects, large: 0, sizes: [], files: [] } as const satisfies Stock;
const smallFile = { project: "files-one", count: 1, bytes: 1024 } as const;
const environmentSizes = [1, 3, 10, 30, 100, 300, 1000];
const connectionCounts = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** The base, of 1000 variables and 10,000 keys: what the other stands have more or less of. */
const base = { ...nothing, keys: 10_000, sizes: environmentSizes, files: [smallFile] } satisfies Stock;

/**
 * A stand for each size, so that all sizes are there at once and can take turns: on a machine that others use, two
 * minutes apart is another machine.
 */
export const scaleStocks = {
  base,
  ...Object.fromEntries(
    [10_000, 100_000, 1_000_000].map((variables) => [
      `variables-${variables}`,
      { ...nothing, keys: 5000, large: Math.round((variables - projects * variablesPerProject) / variablesPerLarge) },
    ]),
  ),
  ...Object.fromEntries([100, 1000, 100_000].map((keys) => [`keys-${keys}`, { ...nothing, keys, files: [smallFile] }])),
} satisfies Record<string, Stock>;

/** Every rung of one database. @param stands - by the names of {@link scaleStocks} */
export function rungsOf(stands: Readonly<Record<string, Stand>>): Rung[] {
  const at = (name: string) => stands[name] as Stand;
  const value20 = (stand: Stand) =>
    row(
      stand,
      "value",
      stand.list((index) => `/projects/p${index % projects}/variables?environment=production`),
    );
  const file = (stand: Stand) =>
    row(
      stand,
      "content",
      stand.list(() => `/files?project=${smallFile.project}&environment=production`),
    );
  const database = at("base").place.name;
  const rung = (what: string, read: string, size: number, row: Row, connections = 64): Rung => ({
    ...{ database, what, read, size, connections, row },
  });
  const baseRow = value20(at("base"));
  return [
    ...[1000, 10_000, 100_000, 1_000_000].map((size) =>
      rung(
        "variables in the database",
        "value read of 20",
        size,
        size === 1000 ? baseRow : value20(at(`variables-${size}`)),
      ),
    ),
    // Hundred keys have three thousand value reads in all; a small file is audited as well and may be read 1000 times.
    ...[100, 1000, 10_000, 100_000].map((size) =>
      rung("keys in the database", "read of a 1 KiB file", size, file(at(size === 10_000 ? "base" : `keys-${size}`))),
    ),
    ...connectionCounts.map((count) => rung("connections", "value read of 20", count, baseRow, count)),
    ...environmentSizes.map((size) => {
      const list = at("base").list(() => `/projects/size-${size}/variables?environment=production`);
      return rung("variables per environment", "value read of all", size, row(at("base"), "value", list));
    }),
  ];
}

function row(stand: Stand, bucket: "value" | "content", list: RequestList): Row {
  const { place } = stand;
  return {
    id: `${place.name} ${list.file}`,
    title: "",
    database: place.name,
    floor: undefined,
    bucket,
    list,
    expected: "200",
    bodyBytes: 0,
    large: false,
    server: () => stand.server,
    stand,
    postmaster: place.postmaster,
  };
}

/** Measures all rungs in turn, so many times. @returns the samples of each rung */
export async function climb(
  meter: Meter,
  rungs: readonly Rung[],
  options: { readonly seconds: number; readonly repeats: number; readonly say: (line: string) => void },
): Promise<Sample[][]> {
  const samples: Sample[][] = rungs.map(() => []);
  for (const rung of rungs) await meter.settle(rung.row);
  for (let repeat = 0; repeat < options.repeats; repeat++) {
    for (const [index, rung] of rungs.entries()) {
      const sample = await meter.measure(rung.row, rung.connections, options.seconds);
      samples[index]?.push(sample);
      options.say(
        `${rung.database}, ${rung.what}, ${rung.size}: ${Math.round(sample.perSecond)}/s ${sample.fault ?? ""}`,
      );
    }
  }
  return samples;
}
