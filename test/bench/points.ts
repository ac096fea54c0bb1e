import { type Meter, type Sample, type Spread, spreadOf } from "./measure.ts";
import type { Point, RowReport } from "./report.ts";
import type { Row } from "./rows.ts";

/** How often and how long, and who is told how far it is. */
export type Pace = {
  readonly connections: readonly number[];
  /** Of each run. Large answers get twice the time where many wait for them. */
  readonly seconds: number;
  readonly repeats: number;
  readonly say: (line: string) => void;
};

/**
 * Every row at every number of connections, all of them once before any of them again. Disturbed runs are made again as
 * long as that does not take more than half the time again.
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
        // Not from a rest; before the very first runs all rows have just been warmed.
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

/** From this share of the machine's CPU time on, a run that other programs disturbed is made again, and the less disturbed counts. */
const othersMax = 0.2;

/** @param floor - samples of the floor in the same repeats */
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
