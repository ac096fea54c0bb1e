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

const databases: readonly { readonly name: DatabaseName; readonly id: string }[] = [
  { name: "PostgreSQL", id: "postgres" },
  { name: "SQLite", id: "sqlite" },
];
const refusals = {
  "over-limit": "keys over their limit",
  "unknown-again": "one unknown key again and again",
  unknown: "unknown keys, all different",
} as const;

/** The floor with the defaults of postgres.js. */
export const defaultsFloor = "floor/select-1-defaults";

const targets: readonly Target[] = [
  ...[
    { name: "value read of 20, audited", id: "postgres/value-20", bar: 0.6, aim: 0.8 },
    { name: "metadata read", id: "postgres/metadata", bar: 0.7, aim: 1 },
  ].flatMap(({ name, id, bar, aim }) => [
    target(`PostgreSQL: ${name}, share of the \`select 1\` floor at 64`, "more", bar, aim, "", shareAt(id)),
    target(`PostgreSQL: … of the one with the driver's defaults`, "more", bar, aim, "", (results) => {
      const [read, floor] = [at(results, id), at(results, defaultsFloor)];
      return read && floor && read.perSecond.median / floor.perSecond.median;
    }),
  ]),
  target("PostgreSQL: value read of 1000 at 64", "more", 2000, 4000, "/s", perSecondAt("postgres/value-1000")),
  target("SQLite: value read of 20, audited, at 64", "more", 10_000, 20_000, "/s", perSecondAt("sqlite/value-20")),
  target(
    "PostgreSQL: value read, one connection, p50 over the `select 1` floor; aim: one commit",
    "less",
    1.5,
    ({ run }) => run?.extras.PostgreSQL?.commitMs.median,
    " ms",
    (results) => {
      const [read, floor] = [at(results, "postgres/value-20", 1), at(results, "floor/select-1", 1)];
      return read && floor && read.p50Ms.median - floor.p50Ms.median;
    },
  ),
  ...databases.flatMap(({ name, id }) => [
    target(`${name}: p99 / p50 of a value read at 64`, "less", 4, 2.5, "", (results) => {
      const point = at(results, `${id}/value-20`);
      return point && point.p99Ms.median / point.p50Ms.median;
    }),
    target(
      `${name}: file of 8 MiB at 64, share of the ready-made body`,
      "more",
      0.5,
      0.7,
      "",
      shareAt(`${id}/file-8m`),
    ),
    target(`${name}: 64 callers of 8 MiB files, memory`, "less", 400, 256, " MiB", extra(name, "rssMib")),
    target(`${name}: … p99 of a metadata read beside them`, "less", 250, 50, " ms", extra(name, "metadataP99Ms")),
    ...Object.entries(refusals).map(([row, words]) =>
      target(`${name}: ${words} at 64, share of bare Bun.serve`, "more", 0.4, 0.6, "", shareAt(`${id}/${row}`)),
    ),
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
  return [["", "bar", "aim", "measured", "reached"], ...lines];
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

function shareAt(id: string): Target["reached"] {
  return (results) => at(results, id)?.share?.median;
}

function perSecondAt(id: string): Target["reached"] {
  return (results) => at(results, id)?.perSecond.median;
}

function extra(database: DatabaseName, member: "rssMib" | "metadataP99Ms"): Target["reached"] {
  return ({ run }) => run?.extras[database]?.meanwhile?.[member];
}

function at({ run }: Results, id: string, connections = 64): Point | undefined {
  const point = run?.rows.find((row) => row.id === id)?.points.find((point) => point.connections === connections);
  return point?.faults.length === 0 ? point : undefined;
}
