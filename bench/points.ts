import { type Meter, type Sample, type Spread, spreadOf } from "./measure.ts";
import type { Point, RowReport } from "./report.ts";
import type { Row } from "./rows.ts";

/** How often and how long to measure. */
export type Pace = {
  readonly connections: readonly number[];
  /** Duration of each run; doubled for large answers on many connections. */
  readonly seconds: number;
  readonly repeats: number;
  readonly say: (line: string) => void;
};

/**
 * Measures every row at every number of connections, all of them once before the next repeat. Runs that other programs
 * disturbed are repeated, as long as that adds no more than half of the planned runs.
 */
export async function measureRows(meter: Meter, rows: readonly Row[], pace: Pace): Promise<RowReport[]> {
  const samples = new Map<string, Sample[]>();
  const taken = (row: Row, connections: number) => {
    const name = `${row.id} ${connections}`;
    const list = samples.get(name) ?? [];
    samples.set(name, list);
    return list;
  };
  const connectionsOf = (row: Row) => pace.connections.filter((count) => count <= (row.large ? 64 : 256));
  for (const row of rows) {
    pace.say(`Warming ${row.id}`);
    await meter.settle(row);
  }
  const plan = pace.connections.flatMap((connections) =>
    rows.filter((row) => connectionsOf(row).includes(connections)).map((row) => ({ row, connections })),
  );
  let done = 0;
  let againLeft = Math.floor((plan.length * pace.repeats) / 2);
  for (let repeat = 0; repeat < pace.repeats; repeat++) {
    for (const { row, connections } of plan) {
      const measure = async () => {
        // The server must not be idle before a run. Before the very first runs all rows have just been warmed up.
        if (!row.large && repeat + connections > 1) await meter.settle(row);
        return meter.measure(row, connections, pace.seconds * (row.large && connections > 1 ? 2 : 1));
      };
      let sample = await measure();
      for (let again = 0; again < 2 && (sample.others ?? 0) > othersMax && againLeft > 0; again++, againLeft--) {
        const another = await measure();
        if ((another.others ?? 0) < (sample.others ?? 0)) sample = another;
      }
      taken(row, connections).push(sample);
      const figures = `${Math.round(sample.perSecond)}/s ${sample.fault ?? ""}`.trim();
      pace.say(`${++done}/${plan.length * pace.repeats} ${row.id} at ${connections}: ${figures}`);
    }
  }
  return rows.map((row) => {
    const floor = rows.find(({ id }) => id === row.floor);
    return {
      id: row.id,
      title: row.title,
      database: row.database ?? null,
      floor: row.floor,
      points: connectionsOf(row).map((connections) =>
        pointOf(connections, taken(row, connections), floor && taken(floor, connections)),
      ),
    };
  });
}

/** If other programs took more of the machine's CPU time, the run is repeated and the less disturbed one counts. */
export const othersMax = 0.2;

/** @param floor - samples of the floor, in the same order of repeats */
export function pointOf(connections: number, samples: readonly Sample[], floor: readonly Sample[] | undefined): Point {
  const spread = (of: (sample: Sample) => number | null) => spreadOf(samples.map(of)) ?? null;
  return {
    connections,
    perSecond: spread((sample) => sample.perSecond) as Spread,
    p50Ms: spread((sample) => sample.p50Ms) as Spread,
    p99Ms: spread((sample) => sample.p99Ms) as Spread,
    serverCpuMs: spread((sample) => sample.serverCpuMs),
    databaseCpuMs: spread((sample) => sample.databaseCpuMs),
    rssMib: spread((sample) => sample.rssMib),
    share: spreadOf(samples.map((sample, repeat) => shareOf(sample, floor?.[repeat]))) ?? null,
    others: spread((sample) => sample.others),
    faults: [...new Set(samples.flatMap(({ fault }) => fault ?? []))],
  };
}

function shareOf(sample: Sample, floor: Sample | undefined): number | null {
  return floor && floor.perSecond > 0 ? sample.perSecond / floor.perSecond : null;
}
