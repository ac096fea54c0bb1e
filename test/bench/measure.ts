import { availableParallelism } from "node:os";
import type { Loaded, LoadGenerator } from "./load.ts";
import { cpuMsOf, familyCpuMs, hasProc, machineCpuMs, ownCpuMs, rssMibOf } from "./processes.ts";
import type { Row } from "./rows.ts";

/** One run of one row. */
export type Sample = {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server per request, all its threads; null where the system does not tell. */
  readonly serverCpuMs: number | null;
  /** The same of all of PostgreSQL's processes; null where the row has none, or it runs elsewhere. */
  readonly databaseCpuMs: number | null;
  /** The most that the server held while it ran. */
  readonly rssMib: number | null;
  /** How much of the machine's CPU time went to programs that have nothing to do with this; null where nobody tells. */
  readonly others: number | null;
  /** Answers that were no 200. */
  readonly refused: number;
  /** Broken connections and requests that took too long. */
  readonly failed: number;
  /** Why this counts for nothing; null where it does. */
  readonly fault: string | null;
};

/** Measures rows with one load generator. */
export class Meter {
  readonly #generator: LoadGenerator;
  /** Requests per second of each row as last seen, by which the next run's allowance is reserved. */
  readonly #seen = new Map<string, number>();

  constructor(generator: LoadGenerator) {
    this.#generator = generator;
  }

  /** Runs a row without measuring it, until the server has compiled what the row uses. */
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
    const serverMs = after.server - before.server;
    const databaseMs = after.database - before.database;
    const othersMs = after.machine - before.machine - (after.own - before.own) - serverMs - databaseMs;
    return {
      requests: loaded.requests,
      perSecond: loaded.requests / loaded.seconds,
      p50Ms: loaded.p50Ms,
      p99Ms: loaded.p99Ms,
      serverCpuMs: hasProc ? serverMs / loaded.requests : null,
      databaseCpuMs: row.postmaster === undefined ? null : databaseMs / loaded.requests,
      rssMib: hasProc ? Math.max(...rssMib, rssMibOf(pid)) : null,
      others: hasProc ? Math.max(0, othersMs / ((after.atMs - before.atMs) * availableParallelism())) : null,
      refused: loaded.refused,
      failed: loaded.failed,
      fault: faultOf(row, loaded),
    };
  }

  /** @returns whether the row has a fresh server now */
  async #reserve(row: Row, seconds: number): Promise<boolean> {
    const expected = (this.#seen.get(row.id) ?? perSecondUnseen) * seconds * 1.3;
    return (await row.stand?.reserve(row.bucket, expected)) ?? false;
  }

  async #load(row: Row, connections: number, seconds: number): Promise<Loaded> {
    const loaded = await this.#generator.run({
      origin: row.server().origin,
      connections,
      seconds,
      list: row.list.file,
      from: (row.stand?.next(row.bucket) ?? 0) % row.list.length,
      timeoutS: 20,
    });
    // What was under way when the time ran out has been paid for as well.
    row.stand?.sent(row.bucket, loaded.requests + connections);
    this.#seen.set(row.id, Math.max(this.#seen.get(row.id) ?? 0, loaded.requests / loaded.seconds));
    return loaded;
  }
}

function cpuTimes(server: number, postmaster: number | undefined) {
  return {
    atMs: performance.now(),
    machine: machineCpuMs(),
    own: ownCpuMs(),
    server: cpuMsOf(server),
    database: postmaster === undefined ? 0 : familyCpuMs(postmaster),
  };
}

const settleConnections = 64;
const perSecondUnseen = 20_000;

/** A wrong benchmark must not pass for a fast one: a refusal is quicker than an answer, and an empty answer as well. */
function faultOf(row: Row, loaded: Loaded): string | null {
  if (loaded.requests === 0) return "nothing was answered";
  if (loaded.failed > 0) return `${loaded.failed} failed`;
  if (row.expected === "200") {
    if (loaded.refused > 0) return `${loaded.refused} of ${loaded.requests} were no 200`;
    if (loaded.bytes < loaded.requests * row.bodyBytes) return "answers were shorter than they should be";
  } else if (loaded.refused < loaded.requests * 0.99) {
    return `${loaded.requests - loaded.refused} of ${loaded.requests} were not refused`;
  }
  return null;
}

/** The middle one, and the least and the most. */
export type Spread = { readonly median: number; readonly least: number; readonly most: number };

/** @returns undefined where there is nothing to take it of */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  const { length } = sorted;
  if (length === 0) return undefined;
  const upper = sorted[Math.floor(length / 2)] as number;
  const lower = sorted[Math.floor((length - 1) / 2)] as number;
  return { median: (upper + lower) / 2, least: sorted[0] as number, most: sorted[length - 1] as number };
}
