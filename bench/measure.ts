import { availableParallelism } from "node:os";
import type { Loaded, LoadGenerator } from "./load.ts";
import {
  type CpuTimes,
  cpuMsBetween,
  familyTimes,
  hasProc,
  machineCpuMs,
  ownCpuMs,
  rssMibOf,
  threadTimes,
} from "./processes.ts";
import type { Row } from "./rows.ts";

/** One run of one row. */
export type Sample = {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of all threads of the server per request; null without `/proc`. */
  readonly serverCpuMs: number | null;
  /** The part of it that the main thread took. */
  readonly mainCpuMs: number | null;
  /** The same for all processes of PostgreSQL; null if the row does not use it, or it runs elsewhere. */
  readonly databaseCpuMs: number | null;
  /** Peak resident memory of the server during the run; null without `/proc`. */
  readonly rssMib: number | null;
  /** Share of the machine's CPU time that unrelated programs took; null without `/proc`. */
  readonly others: number | null;
  /** Answers other than 200 and 304. */
  readonly refused: number;
  /** Failed connections, and requests that timed out. */
  readonly failed: number;
  /** Why the run is invalid; null if it is valid. */
  readonly fault: string | null;
};

/** Measures rows with a load generator. */
export class Meter {
  readonly #generator: LoadGenerator;
  /** Highest throughput of each row so far, in requests per second: how many tokens the next run will need. */
  readonly #seen = new Map<string, number>();

  constructor(generator: LoadGenerator) {
    this.#generator = generator;
  }

  /** Runs a row without measuring it, so that the server compiles the code it uses. */
  async settle(row: Row, seconds = 1): Promise<void> {
    await this.#reserve(row, seconds);
    await row.prepare?.();
    await this.#load(row, settleConnections, seconds);
  }

  async measure(row: Row, connections: number, seconds: number): Promise<Sample> {
    if (await this.#reserve(row, seconds + 1)) await this.settle(row);
    await row.prepare?.();
    const { pid } = row.server();
    const rssMib = [rssMibOf(pid)];
    const sampler = setInterval(() => rssMib.push(rssMibOf(pid)), 50);
    const before = cpuTimes(pid, row.postmaster);
    const loaded = await this.#load(row, connections, seconds).finally(() => clearInterval(sampler));
    const after = cpuTimes(pid, row.postmaster);
    const serverMs = cpuMsBetween(before.server, after.server);
    const mainMs = (after.server.get(pid) ?? 0) - (before.server.get(pid) ?? 0);
    const databaseMs = cpuMsBetween(before.database, after.database);
    const othersMs = after.machine - before.machine - (after.own - before.own) - serverMs - databaseMs;
    return {
      requests: loaded.requests,
      perSecond: loaded.requests / loaded.seconds,
      p50Ms: loaded.p50Ms,
      p99Ms: loaded.p99Ms,
      serverCpuMs: hasProc ? serverMs / loaded.requests : null,
      mainCpuMs: hasProc ? mainMs / loaded.requests : null,
      databaseCpuMs: row.postmaster === undefined ? null : databaseMs / loaded.requests,
      rssMib: hasProc ? Math.max(...rssMib, rssMibOf(pid)) : null,
      others: hasProc ? Math.max(0, othersMs / ((after.atMs - before.atMs) * availableParallelism())) : null,
      refused: loaded.refused,
      failed: loaded.failed,
      fault: faultOf(row, loaded),
    };
  }

  /** @returns whether the server was restarted */
  async #reserve(row: Row, seconds: number): Promise<boolean> {
    const expected = (this.#seen.get(row.id) ?? perSecondUnseen) * seconds * 1.3;
    return (await row.rig?.reserve(row.bucket, expected)) ?? false;
  }

  async #load(row: Row, connections: number, seconds: number): Promise<Loaded> {
    const loaded = await this.#generator.run({
      origin: row.server().origin,
      connections,
      seconds,
      list: row.list.file,
      from: (row.rig?.next(row.bucket) ?? 0) % row.list.length,
      timeoutS: 20,
    });
    // Requests in flight when the time was up have taken tokens too.
    row.rig?.sent(row.bucket, loaded.requests + connections);
    this.#seen.set(row.id, Math.max(this.#seen.get(row.id) ?? 0, loaded.requests / loaded.seconds));
    return loaded;
  }
}

function cpuTimes(server: number, postmaster: number | undefined) {
  return {
    atMs: performance.now(),
    machine: machineCpuMs(),
    own: ownCpuMs(),
    server: threadTimes(server),
    database: postmaster === undefined ? (new Map() satisfies CpuTimes) : familyTimes(postmaster),
  };
}

const settleConnections = 64;
const perSecondUnseen = 20_000;

/** Detects wrong answers: a refusal or an empty answer is faster than a correct one. */
function faultOf(row: Row, loaded: Loaded): string | null {
  if (loaded.requests === 0) return "no request was answered";
  if (loaded.failed > 0) return `${loaded.failed} failed`;
  if (row.expected !== "refusal") {
    if (loaded.refused > 0) return `${loaded.refused} of ${loaded.requests} were not ${row.expected}`;
    if (row.expected === "304" && loaded.bytes > loaded.requests * headBytesMax) return "some answers had a body";
    if (loaded.bytes < loaded.requests * row.bodyBytes) return "answers were shorter than they should be";
  } else if (loaded.refused < loaded.requests * 0.99 - earnedMax) {
    return `${loaded.requests - loaded.refused} of ${loaded.requests} were not refused`;
  }
  return null;
}

/** A few of the keys over their limit may have a token again, which shows if the machine is too busy for many requests. */
const earnedMax = 4;

/** An answer without a body has fewer bytes, and each 200 of a row that expects 304 has more. */
const headBytesMax = 600;

/** Median, minimum and maximum. */
export type Spread = { readonly median: number; readonly least: number; readonly most: number };

/** @returns undefined if there are no values */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  const { length } = sorted;
  if (length === 0) return undefined;
  const upper = sorted[Math.floor(length / 2)] as number;
  const lower = sorted[Math.floor((length - 1) / 2)] as number;
  return { median: (upper + lower) / 2, least: sorted[0] as number, most: sorted[length - 1] as number };
}
