import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { apiRoot } from "../../src/http/app.ts";
import { type Meter, type Spread, spreadOf } from "./measure.ts";
import { hasProc, rssMibOf, type Server } from "./processes.ts";
import type { Row } from "./rows.ts";
import type { Place, Stand } from "./stand.ts";

/** What is measured once for each database and is no row. */
export type Extras = {
  /** From the start of the program to its first 200. */
  readonly startMs: Spread;
  /** Resident memory a second after that. */
  readonly restMib: number | null;
  /** One durable commit of one row, nobody else writing: what an audited read cannot be faster than. */
  readonly commitMs: Spread;
  readonly meanwhile: Meanwhile | null;
  readonly soak: Soak | null;
};

/** 64 callers of an 8 MiB file at once, and somebody beside them who reads metadata. */
export type Meanwhile = {
  readonly rssMib: number | null;
  readonly metadataP50Ms: number;
  readonly metadataP99Ms: number;
  readonly filesPerSecond: number;
  readonly faults: readonly string[];
};

/** Memory at rest after each half of a long run of mixed reads. */
export type Soak = {
  readonly requests: number;
  readonly halfMib: number | null;
  readonly wholeMib: number | null;
  readonly faults: readonly string[];
};

/** Starts the server so many times. It is stopped before, for an embedded database has one server, and stays so. */
export async function measureStart(stand: Stand, times: number): Promise<Pick<Extras, "startMs" | "restMib">> {
  await stand.stop();
  const startsMs: number[] = [];
  let restMib: number | null = null;
  for (let turn = 0; turn < times; turn++) {
    const startedAtMs = performance.now();
    const server = await stand.launch();
    await firstAnswer(server, stand.keys[turn] as string);
    startsMs.push(performance.now() - startedAtMs);
    if (turn === times - 1) {
      await Bun.sleep(1000);
      restMib = hasProc ? rssMibOf(server.pid) : null;
    }
    await server.stop();
  }
  return { startMs: spreadOf(startsMs) as Spread, restMib };
}

async function firstAnswer(server: Server, key: string): Promise<void> {
  const response = await fetch(`${server.origin}${apiRoot}/organization`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`the first answer of a server was ${response.status}`);
}

/** Commits one row at a time, as durably as the server does. */
export async function measureCommit(place: Place, folder: string): Promise<Spread> {
  return place.name === "PostgreSQL" ? postgresCommit(place.settings["DATABASE_URL"] as string) : sqliteCommit(folder);
}

const commits = 300;

async function postgresCommit(url: string): Promise<Spread> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await sql`create table if not exists bench_commits (number integer)`;
    const durationsMs: number[] = [];
    for (let number = 0; number < commits; number++) {
      const startedAtMs = performance.now();
      await sql`insert into bench_commits values (${number})`;
      durationsMs.push(performance.now() - startedAtMs);
    }
    await sql`drop table bench_commits`;
    return spreadOf(durationsMs) as Spread;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

function sqliteCommit(folder: string): Spread {
  const own = mkdtempSync(join(folder, "commit-"));
  const file = new Database(join(own, "commits.db"));
  file.run("pragma journal_mode = wal");
  file.run("pragma synchronous = full");
  file.run("create table commits (number integer)");
  const durationsMs: number[] = [];
  for (let number = 0; number < commits; number++) {
    const startedAtMs = performance.now();
    file.run("insert into commits values (?)", [number]);
    durationsMs.push(performance.now() - startedAtMs);
  }
  file.close();
  rmSync(own, { recursive: true });
  return spreadOf(durationsMs) as Spread;
}

/** @param file, metadata - rows of the same stand, which is started anew */
export async function measureMeanwhile(meter: Meter, stand: Stand, file: Row, metadata: Row): Promise<Meanwhile> {
  await stand.start();
  await meter.settle(metadata);
  const loading = meter.measure(file, callersAtOnce, meanwhileS + 2);
  await Bun.sleep(1000);
  const beside = await meter.measure(metadata, 1, meanwhileS);
  const files = await loading;
  return {
    rssMib: files.rssMib,
    metadataP50Ms: beside.p50Ms,
    metadataP99Ms: beside.p99Ms,
    filesPerSecond: files.perSecond,
    faults: [files.fault, beside.fault].filter((fault) => fault !== null),
  };
}

const callersAtOnce = 64;
const meanwhileS = 4;

/** @param mixed - reads of all kinds of variables; its stand is started anew */
export async function measureSoak(meter: Meter, stand: Stand, mixed: Row): Promise<Soak> {
  await stand.start();
  const half = async () => {
    let requests = 0;
    const faults = new Set<string>();
    while (requests < soakRequests / 2) {
      const sample = await meter.measure(mixed, callersAtOnce, 2);
      requests += sample.requests;
      if (sample.fault) faults.add(sample.fault);
    }
    return { requests, faults, restMib: await restMib(stand.server.pid) };
  };
  const { pid } = stand.server;
  const first = await half();
  const second = await half();
  const faults = new Set([...first.faults, ...second.faults]);
  if (stand.server.pid !== pid) faults.add("the server had to be started anew in between");
  return {
    requests: first.requests + second.requests,
    halfMib: first.restMib,
    wholeMib: second.restMib,
    faults: [...faults],
  };
}

const soakRequests = 100_000;

/**
 * The least of what a process holds in the next 14 seconds. After three it differed by 70 MiB from one time to the next, as
 * the runtime had collected or not; after twelve of rest it was 110 to 112, four times.
 */
async function restMib(pid: number): Promise<number | null> {
  if (!hasProc) return null;
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < 14; look++) {
    await Bun.sleep(1000);
    least = Math.min(least, rssMibOf(pid));
  }
  return least;
}
