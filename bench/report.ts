import { cpus, release, totalmem } from "node:os";
import type { Durations, Extras } from "./extras.ts";
import { type Spread, spreadOf } from "./measure.ts";
import type { DatabaseName } from "./rig.ts";
import type { Row } from "./rows.ts";

/** The machine, without names of hosts, users or folders. */
export type Machine = {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
};

/** All repeats of a row at one number of connections. */
export type Point = {
  readonly connections: number;
  readonly perSecond: Spread;
  readonly p50Ms: Spread;
  readonly p99Ms: Spread;
  readonly serverCpuMs: Spread | null;
  readonly databaseCpuMs: Spread | null;
  readonly rssMib: Spread | null;
  /** Throughput divided by that of the floor in the same repeat. */
  readonly share: Spread | null;
  /** The share of the machine's CPU time that other programs took. */
  readonly others: Spread | null;
  /** What went wrong in any repeat. If not empty, the figures are invalid. */
  readonly faults: readonly string[];
};
export type RowReport = Pick<Row, "id" | "title" | "floor"> & {
  readonly database: DatabaseName | null;
  readonly points: readonly Point[];
};

/** How the throughput of one read depends on one size. */
export type ScaleReport = {
  readonly database: DatabaseName;
  /** What grows, as in `variables in the database`. */
  readonly what: string;
  /** The read that is measured. */
  readonly read: string;
  readonly points: readonly (Point & { readonly size: number })[];
};

export type Conditions = {
  readonly machine: Machine;
  readonly software: Readonly<Record<string, string>>;
  /** Duration of each run. */
  readonly seconds: number;
  readonly repeats: number;
};

/** The results of a run. */
export type RunReport = Conditions & {
  readonly rows: readonly RowReport[];
  readonly extras: Readonly<Partial<Record<DatabaseName, Extras>>>;
};
export type ScaleRunReport = Conditions & { readonly scales: readonly ScaleReport[] };

/** What `--audit-tax` found, as its table has it. */
export type TaxReport = Conditions & { readonly table: Table };

/** The content of `docs/performance.json`. */
export type Results = {
  readonly format: 1;
  readonly run?: RunReport;
  readonly scale?: ScaleRunReport;
  readonly tax?: TaxReport;
};

export function machine(): Machine {
  const [first] = cpus();
  return {
    cpu: first?.model.trim() ?? process.arch,
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: `${process.platform === "linux" ? "Linux" : process.platform} ${release().split("-")[0]}`,
  };
}

/** A sentence about machine and software, and one about the CPU time that other programs took. */
export function conditionsOf(
  { machine, software, seconds, repeats }: Conditions,
  points: readonly Point[] = [],
): string {
  const { cpu, cores, memoryGib, kernel } = machine;
  const programs = Object.entries(software).map(([name, version]) => `${name} ${version}`);
  const others = spreadOf(points.map((point) => point.others?.median ?? null));
  const shared = others ? ` Other programs took ${Math.round(others.median * 100)} % of the CPU time meanwhile.` : "";
  return `${cpu}, ${cores} cores, ${memoryGib} GiB, ${kernel}; ${programs.join(", ")}; medians of ${repeats} runs of ${seconds} s each.${shared}`;
}

/** Cells of a table. The first line is its head. */
export type Table = readonly (readonly string[])[];

const heading = (cells: string) => cells.split("|");

/** A line for each row and number of connections. */
export function rowsTable(rows: readonly RowReport[]): Table {
  const heads = heading("|conn.|req/s|spread|of floor|p50 ms|p99 ms|server CPU ms|db CPU ms|RSS MiB|others");
  const lines = rows.flatMap((row) =>
    row.points.map((point) => [`${row.database ?? "floor"}: ${row.title}`, ...pointCells(point)]),
  );
  return [heads, ...lines];
}

/** The rows at a glance: a line for each request, with both databases. */
export function costsTable(rows: readonly RowReport[]): Table {
  const names = databasesOf(rows);
  const nameOf = ({ id }: RowReport) => id.split("/")[1];
  const heads = names.flatMap((name) => [`${name}: req/s at 64`, "p99 at 64", "p50 of one alone"]);
  const served = rows.filter(({ database }) => database !== null);
  const lines = [...new Map(served.map((row) => [nameOf(row), row.title]))].map(([name, title]) => [
    title,
    ...names.flatMap((database) => {
      const row = served.find((other) => other.database === database && nameOf(other) === name);
      const at = (count: number) =>
        row?.points.find(({ connections, faults }) => connections === count && faults.length === 0);
      const [one, many] = [at(1), at(64)];
      return [
        many ? number(many.perSecond.median) : "",
        many ? `${number(many.p99Ms.median)} ms` : "",
        one ? `${number(one.p50Ms.median)} ms` : "",
      ];
    }),
  ]);
  return [["", ...heads], ...lines];
}

/** The first and the last size of each scale, with both databases. */
export function growthTable(scales: readonly ScaleReport[]): Table {
  const names = databasesOf(scales);
  const lines = [...new Set(scales.map(({ what }) => what))].map((what) => {
    const of = scales.filter((scale) => scale.what === what);
    const ends = ({ points }: ScaleReport) => [points[0], points.at(-1)].filter((point) => point !== undefined);
    const [first] = of as [ScaleReport];
    return [
      `${what} (${first.read})`,
      ends(first)
        .map(({ size }) => size.toLocaleString("en-US"))
        .join(" → "),
      ...names.map((name) => {
        const found = of.find(({ database }) => database === name);
        const points = found ? ends(found) : [];
        return points
          .map((point) => (point.faults.length > 0 ? "INVALID" : number(point.perSecond.median)))
          .join(" → ");
      }),
    ];
  });
  return [["what grows", "from → to", ...names.map((name) => `${name}: req/s`)], ...lines];
}

function databasesOf(reports: readonly { readonly database: DatabaseName | null }[]): DatabaseName[] {
  return [...new Set(reports.flatMap(({ database }) => database ?? []))];
}

function pointCells(point: Point): string[] {
  const { perSecond, share, faults } = point;
  const connections = String(point.connections);
  if (faults.length > 0) return [connections, `INVALID: ${faults.join("; ")}`, "", "", "", "", "", "", "", ""];
  return [
    connections,
    number(perSecond.median),
    `${number(perSecond.least)}–${number(perSecond.most)}`,
    share ? share.median.toFixed(2) : "",
    number(point.p50Ms.median),
    number(point.p99Ms.median),
    point.serverCpuMs ? number(point.serverCpuMs.median) : "",
    point.databaseCpuMs ? number(point.databaseCpuMs.median) : "",
    point.rssMib ? number(point.rssMib.most) : "",
    point.others ? `${Math.round(point.others.median * 100)} %` : "",
  ];
}

/** The extras of each database. */
export function extrasTable(extras: RunReport["extras"]): Table {
  const measured = Object.entries(extras);
  const line = (what: string, cell: (extras: Extras) => string) => [what, ...measured.map(([, found]) => cell(found))];
  const mib = (value: number | null | undefined) => (value == null ? "" : `${number(value)} MiB`);
  const durations = (of: Durations | undefined) => (of ? `${number(of.p50Ms)}, ${number(of.p99Ms)} ms` : "");
  return [
    ["", ...measured.map(([name]) => name)],
    line("start to first 200", ({ startMs }) => `${number(startMs.median)} ms`),
    line("memory at rest", ({ restMib }) => mib(restMib)),
    line("one durable commit, alone", ({ commitMs }) => `${number(commitMs.median)} ms`),
    line("first value read of a project since the start, one connection: p50, p99", ({ firstReads }) =>
      durations(firstReads?.first),
    ),
    line("… second read of it", ({ firstReads }) => durations(firstReads?.again)),
    line("64 callers of an 8 MiB file: memory", ({ meanwhile }) => mib(meanwhile?.rssMib)),
    line("… files per second", ({ meanwhile }) => (meanwhile ? number(meanwhile.filesPerSecond) : "")),
    line("… p50, p99 of a metadata read beside them", ({ meanwhile }) =>
      meanwhile ? `${number(meanwhile.metadataP50Ms)}, ${number(meanwhile.metadataP99Ms)} ms` : "",
    ),
    line("10⁵ mixed reads: memory after half, after all", ({ soak }) =>
      soak ? `${mib(soak.halfMib)}, ${mib(soak.wholeMib)}` : "",
    ),
    line("`keyhole leaked`, 1 GiB against 10,000 values: MB per second of one core, memory", ({ leaked }) =>
      leaked ? `${number(leaked.mbPerCpuSecond)}, ${mib(leaked.rssMib)}` : "",
    ),
    line("10,000 reads that wait for a change: memory of each, part of a core at rest", ({ waits }) =>
      waits ? `${number(waits.kibEach)} KiB, ${number(waits.restPercent)} %` : "",
    ),
    line("… processor time of a change that concerns none, one, all", ({ waits }) =>
      waits ? `${[waits.noneMs, waits.oneMs, waits.allMs].map(number).join(", ")} ms` : "",
    ),
    ...(measured.some(([, found]) => faultsOf(found).length > 0)
      ? [line("faults", (extras) => faultsOf(extras).join("; "))]
      : []),
  ];
}

/** What went wrong in any of the extras. */
export function faultsOf({ firstReads, meanwhile, soak, waits }: Extras): string[] {
  return [firstReads, meanwhile, soak, waits].flatMap((measured) => measured?.faults ?? []);
}

export function scaleTable(scales: readonly ScaleReport[]): Table {
  const heads = "what grows|size|conn.|req/s|spread|of the first|p50 ms|p99 ms|server CPU ms|db CPU ms|others";
  const lines = scales.flatMap(({ database, what, read, points }) =>
    points.map((point) => {
      const cells = pointCells(point);
      cells[3] = (point.perSecond.median / (points[0]?.perSecond.median ?? Number.NaN)).toFixed(2);
      cells.splice(8, 1); // memory
      return [`${database}: ${what} (${read})`, point.size.toLocaleString("en-US"), ...cells];
    }),
  );
  return [heading(heads), ...lines];
}

/** Formats with three significant digits. */
export function number(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 100) return Math.round(value).toLocaleString("en-US");
  if (Number.isInteger(value)) return String(value);
  if (magnitude >= 10) return value.toFixed(1);
  return magnitude >= 1 ? value.toFixed(2) : value.toFixed(3);
}

/** The table as aligned text, for a terminal. */
export function textOf(table: Table): string {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0)));
  return table
    .map((line) =>
      line
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return column === 0 ? cell.padEnd(width) : cell.padStart(Math.min(width, 24));
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function markdownOf(table: Table): string {
  const [heads = [], ...lines] = table;
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = heads.map((_, column) => (column === 0 ? "---" : "---:"));
  return [row(heads), row(rule), ...lines.map(row)].join("\n");
}
