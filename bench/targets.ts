import { number, type Point, type Results, type Table } from "./report.ts";
import type { DatabaseName } from "./rig.ts";

/** A bar that must be reached, an aim beyond it, and the measurement. */
type Target = {
  readonly what: string;
  readonly better: "more" | "less";
  readonly bar: number;
  readonly aim: (results: Results) => number | undefined;
  readonly unit: string;
  readonly reached: (results: Results) => number | null | undefined;
};

const databases = [
  { name: "PostgreSQL", id: "postgres", file: { bar: 0.15, aim: 0.35 } },
  { name: "SQLite", id: "sqlite", file: { bar: 0.25, aim: 0.45 } },
] as const;

/** Throughputs are those at 64 connections, and shares are those within one run. */
const targets: readonly Target[] = [
  share("PostgreSQL: value read of 20, audited", "the `select 1` floor", 0.42, 0.6, ofFloor("postgres/value-20")),
  share("PostgreSQL: metadata read", "the `select 1` floor", 0.7, 1, ofFloor("postgres/metadata")),
  target(
    "PostgreSQL: value read, one connection, p50 above the `select 1` floor; aim: one commit",
    "less",
    0.4,
    ({ run }) => run?.extras.PostgreSQL?.commitMs.median,
    " ms",
    (results) => {
      const [read, floor] = [at(results, "postgres/value-20", 1), at(results, "floor/select-1", 1)];
      return read && floor && read.p50Ms.median - floor.p50Ms.median;
    },
  ),
  share("SQLite: value read of 20", "PostgreSQL's", 1, 1.3, ofRow("sqlite/value-20", "postgres/value-20")),
  ...databases.flatMap(({ name, id, file }) => [
    share(`${name}: filtered read, 3 of 20`, "the whole read", 0.95, 1, ofRow(`${id}/filtered`, `${id}/value-20`)),
    share(`${name}: account read of 20`, "a value read of 20", 0.9, 1, ofRow(`${id}/accounts`, `${id}/value-20`)),
    share(
      `${name}: 10 files of 4 KiB, audited one by one`,
      "a value read of 20",
      0.5,
      0.7,
      ofRow(`${id}/files-10`, `${id}/value-20`),
    ),
    share(`${name}: file of 8 MiB`, "the ready-made body", file.bar, file.aim, ofFloor(`${id}/file-8m`)),
    share(
      `${name}: unknown keys, all different`,
      "keys over their limit",
      0.3,
      0.5,
      ofRow(`${id}/unknown`, `${id}/over-limit`),
    ),
    target(`${name}: p99 / p50 of a value read of 20`, "less", 3.5, 2.5, "", (results) => {
      const point = at(results, `${id}/value-20`);
      return point && point.p99Ms.median / point.p50Ms.median;
    }),
    target(`${name}: 64 callers of 8 MiB files, memory`, "less", 400, 256, " MiB", extra(name, "rssMib")),
    target(`${name}: … p99 of a metadata read beside them`, "less", 100, 50, " ms", extra(name, "metadataP99Ms")),
    ...["variables in the database", "keys in the database"].map((what) =>
      target(`${name}: loss of throughput, ${what}`, "less", 0.1, 0.03, "", ({ scale }) => {
        const points = scale?.scales.find((line) => line.database === name && line.what === what)?.points;
        const [first, last] = [points?.[0], points?.at(-1)];
        return first && last && Math.max(0, 1 - last.perSecond.median / first.perSecond.median);
      }),
    ),
    target(`${name}: start to first 200`, "less", 150, 60, " ms", ({ run }) => run?.extras[name]?.startMs.median),
    target(`${name}: memory at rest`, "less", 100, 70, " MiB", ({ run }) => run?.extras[name]?.restMib),
    target(`${name}: 10⁵ mixed reads, growth of memory in the second half`, "less", 5, 0, " MiB", ({ run }) => {
      const soak = run?.extras[name]?.soak;
      return soak && soak.wholeMib !== null && soak.halfMib !== null ? soak.wholeMib - soak.halfMib : null;
    }),
  ]),
];

/** All measured targets with bar, aim and result. */
export function targetsTable(results: Results): Table {
  const lines = targets.flatMap(({ what, better, bar, aim, unit, reached }) => {
    const measured = reached(results);
    const best = aim(results);
    if (measured == null || best === undefined) return [];
    const good = (wanted: number) => (better === "more" ? measured >= wanted : measured <= wanted);
    const verdict = good(best) ? "aim" : good(bar) ? "bar" : "missed";
    return [[what, ...[bar, best, measured].map((value) => `${number(value)}${unit}`), verdict]];
  });
  return [["at 64 connections, if not said otherwise", "bar", "aim", "measured", "reached"], ...lines];
}

function target(
  what: string,
  better: Target["better"],
  bar: number,
  aim: number | Target["aim"],
  unit: string,
  reached: Target["reached"],
): Target {
  return { what, better, bar, aim: typeof aim === "number" ? () => aim : aim, unit, reached };
}

function share(what: string, whole: string, bar: number, aim: number, reached: Target["reached"]): Target {
  return target(`${what}, share of ${whole}`, "more", bar, aim, "", reached);
}

function ofFloor(id: string): Target["reached"] {
  return (results) => at(results, id)?.share?.median;
}

/** The throughput of one row divided by that of another in the same run. */
function ofRow(id: string, of: string): Target["reached"] {
  return (results) => {
    const [row, other] = [at(results, id), at(results, of)];
    return row && other && row.perSecond.median / other.perSecond.median;
  };
}

function extra(database: DatabaseName, member: "rssMib" | "metadataP99Ms"): Target["reached"] {
  return ({ run }) => run?.extras[database]?.meanwhile?.[member];
}

function at({ run }: Results, id: string, connections = 64): Point | undefined {
  const point = run?.rows.find((row) => row.id === id)?.points.find((point) => point.connections === connections);
  return point?.faults.length === 0 ? point : undefined;
}
