import { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { apiRoot } from "../src/serve/api/app.ts";
import { percentile } from "./load.ts";
import { type Meter, type Spread, spreadOf } from "./measure.ts";
import { cpuMsBetween, hasProc, rssMibOf, type Server, threadTimes } from "./processes.ts";
import type { Backend, Rig } from "./rig.ts";
import { ask, type Row, rowsStock } from "./rows.ts";
import { organization } from "./seed.ts";

/** Measurements made once for each database, outside the rows. */
export type Extras = {
  /** From the start of the process to its first 200. */
  readonly startMs: Spread;
  /** Resident memory a second after that. */
  readonly restMib: number | null;
  /** One durable commit of one row without other writers: the lower bound of an audited read. */
  readonly commitMs: Spread;
  readonly firstReads: FirstReads;
  readonly meanwhile: Meanwhile | null;
  readonly soak: Soak | null;
  /** Absent from results of earlier versions. */
  readonly leaked?: Leaked | null;
  /** Absent from results of earlier versions. */
  readonly waits?: WaitsCost | null;
};

/** Reads that wait for a change, and the server's processor time for a change that concerns none, one or all of them. */
export type WaitsCost = {
  readonly count: number;
  readonly kibEach: number;
  /** Of one core, while nothing changes. */
  readonly restPercent: number;
  readonly noneMs: number;
  readonly oneMs: number;
  readonly allMs: number;
  readonly faults: readonly string[];
};

/** `keyhole leaked` with 1 GiB of a log on stdin, against 10,000 values: text per second of its processor time. */
export type Leaked = { readonly mbPerCpuSecond: number; readonly readyCpuMs: number; readonly rssMib: number };

/** Value reads of projects of which the server remembers nothing, because it has just started; and second reads. */
export type FirstReads = { readonly first: Durations; readonly again: Durations; readonly faults: readonly string[] };
export type Durations = { readonly p50Ms: number; readonly p99Ms: number };

/** 64 concurrent callers of an 8 MiB file, and one caller that reads metadata meanwhile. */
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

/** Starts the server `times` times. An embedded database allows one server, so the rig is stopped, and stays so. */
export async function measureStart(rig: Rig, times: number): Promise<Pick<Extras, "startMs" | "restMib">> {
  await rig.stop();
  const startsMs: number[] = [];
  let restMib: number | null = null;
  for (let turn = 0; turn < times; turn++) {
    const startedAtMs = performance.now();
    const server = await rig.launch();
    await firstAnswer(server, rig.keys[turn] as string);
    startsMs.push(performance.now() - startedAtMs);
    if (turn === times - 1) {
      await Bun.sleep(1000);
      restMib = hasProc ? rssMibOf(server.pid) : null;
    }
    await server.stop();
  }
  return { startMs: spreadOf(startsMs) as Spread, restMib };
}

/** @param folder - for an installation of its own, which has these values alone */
export async function measureLeaked(binary: string, folder: string, mib = 1024): Promise<Leaked> {
  const settings = { KEYHOLE_DATA: join(folder, "leaked"), KEYHOLE_ROOT_KEY: randomBytes(32).toString("base64") };
  const keyhole = async (words: readonly string[], input: AsyncIterable<string> | Iterable<string>) => {
    const child = Bun.spawn([binary, ...words], {
      env: { ...settings },
      stdin: "pipe",
      stdout: "ignore",
      stderr: "pipe",
    });
    // What the system says in the end is at least what this process had when it started the other.
    let rssMib = 0;
    const sampler = setInterval(() => {
      rssMib = Math.max(rssMib, hasProc ? rssMibOf(child.pid) : 0);
    }, 20);
    for await (const text of input) {
      child.stdin.write(text);
      await child.stdin.flush();
    }
    await child.stdin.end();
    const [code, words_] = await Promise.all([child.exited, child.stderr.text()]);
    clearInterval(sampler);
    if (code !== 0) throw new Error(`keyhole ${words[0]} ended with ${code}: ${words_}`);
    return { cpuMs: Number((child.resourceUsage() as Bun.ResourceUsage).cpuTime.total) / 1000, rssMib };
  };
  await keyhole(["org", "create", organization], []);
  await keyhole(["project", "create", `${organization}/leaked`], []);
  const value = (at: number) => randomBytes(8 + (at % 40)).toString(at % 2 === 0 ? "hex" : "base64url");
  const variables = Array.from({ length: 10_000 }, (_, at) => `VALUE_${at}=${value(at)}\n`);
  await keyhole(["var", "import", `${organization}/leaked`, "production", "-"], variables);
  const line = () =>
    `2026-11-28T03:38:11Z INFO GET /api/v1/projects/web/variables 200 id=${randomBytes(12).toString("hex")}\n`;
  const piece = Array.from({ length: 10_000 }, line).join("");
  const count = Math.ceil((mib * 1024 * 1024) / piece.length);
  const empty = await keyhole(["leaked"], ["-"]);
  const whole = await keyhole(
    ["leaked"],
    Array.from({ length: count }, () => piece),
  );
  const seconds = (whole.cpuMs - empty.cpuMs) / 1000;
  return {
    mbPerCpuSecond: (count * piece.length) / 1e6 / seconds,
    readyCpuMs: empty.cpuMs,
    rssMib: whole.rssMib,
  };
}

async function firstAnswer(server: Server, key: string): Promise<void> {
  const response = await fetch(`${server.origin}${apiRoot}/organization`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`the server's first answer was ${response.status}`);
}

/** Commits one row at a time, with the durability of the server. */
export async function measureCommit(backend: Backend, folder: string): Promise<Spread> {
  return backend.name === "PostgreSQL"
    ? postgresCommit(backend.settings["DATABASE_URL"] as string)
    : sqliteCommit(folder);
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

/**
 * Reads a hundred projects that the server has not read yet, then the same again, then the next hundred, on one
 * connection and with a different key each time. So both kinds of reads are made in the same minutes.
 * @param warming - reads of other projects, so that the server has compiled its code; its rig is restarted
 * @param read - its list has the projects one after the other, more than once
 */
export async function measureFirstReads(meter: Meter, rig: Rig, warming: Row, read: Row): Promise<FirstReads> {
  await rig.start();
  await meter.settle(warming, 2);
  const { projects } = rowsStock;
  const lines = readFileSync(read.list.file, "utf8").split("\n");
  const faults = new Set<string>();
  const timed = async (from: number) => {
    const durationsMs: number[] = [];
    for (const line of lines.slice(from, from + projectsInTurn)) {
      const startedAtMs = performance.now();
      const response = await ask(rig.server, line);
      await response.arrayBuffer();
      durationsMs.push(performance.now() - startedAtMs);
      if (response.status !== 200) faults.add(`a first or second read was answered with ${response.status}`);
    }
    return durationsMs;
  };
  const [first, again]: [number[], number[]] = [[], []];
  for (let from = 0; from < projects; from += projectsInTurn) {
    first.push(...(await timed(from)));
    again.push(...(await timed(projects + from)));
  }
  rig.sent(read.bucket, first.length + again.length);
  return { first: durationsOf(first), again: durationsOf(again), faults: [...faults] };
}

const projectsInTurn = 100;

function durationsOf(eachMs: readonly number[]): Durations {
  const sorted = eachMs.toSorted((a, b) => a - b);
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
}

/** @param file, metadata - rows of the same rig, which is restarted */
export async function measureMeanwhile(meter: Meter, rig: Rig, file: Row, metadata: Row): Promise<Meanwhile> {
  await rig.start();
  await meter.settle(metadata);
  const loading = meter.measure(file, callersAtOnce, meanwhileS + 2);
  await Bun.sleep(1000);
  const metadataSample = await meter.measure(metadata, 1, meanwhileS);
  const files = await loading;
  return {
    rssMib: files.rssMib,
    metadataP50Ms: metadataSample.p50Ms,
    metadataP99Ms: metadataSample.p99Ms,
    filesPerSecond: files.perSecond,
    faults: [files.fault, metadataSample.fault].filter((fault) => fault !== null),
  };
}

const callersAtOnce = 64;
const meanwhileS = 4;

/** @param mixed - reads of all kinds of variables; its rig is restarted */
export async function measureSoak(meter: Meter, rig: Rig, mixed: Row): Promise<Soak> {
  await rig.start();
  const half = async () => {
    let requests = 0;
    const faults = new Set<string>();
    while (requests < soakRequests / 2) {
      const sample = await meter.measure(mixed, callersAtOnce, 2);
      requests += sample.requests;
      if (sample.fault) faults.add(sample.fault);
    }
    return { requests, faults, restMib: await restMib(rig.server.pid) };
  };
  const { pid } = rig.server;
  const first = await half();
  const second = await half();
  const faults = new Set([...first.faults, ...second.faults]);
  if (rig.server.pid !== pid) faults.add("the server had to be restarted in between");
  return {
    requests: first.requests + second.requests,
    halfMib: first.restMib,
    wholeMib: second.restMib,
    faults: [...faults],
  };
}

const soakRequests = 100_000;

/**
 * Lets each key wait for a change of one project, and the first of them for another's. All is over before their minute.
 * @param binary - the program whose commands make the changes @param rig - is restarted
 */
export async function measureWaits(binary: string, rig: Rig): Promise<WaitsCost | null> {
  if (!hasProc) return null;
  await rig.start();
  const { pid, origin } = rig.server;
  const questions = rig.worked.map((key, at) => {
    return { path: `${apiRoot}/projects/p${at === 0 ? 1 : 0}/variables?environment=production`, key };
  });
  const tags: string[] = [];
  for (let from = 0; from < questions.length; from += 64) {
    const some = questions.slice(from, from + 64);
    const answers = await Promise.all(some.map(({ path, key }) => ask(rig.server, `${path} ${key}`)));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    tags.push(...answers.map(({ headers }) => headers.get("etag") ?? ""));
  }
  rig.sent("value", questions.length);
  const beforeMib = (await restMib(pid)) as number;
  const statuses = questions.map(({ path, key }, at) => statusOf(origin, path, key, tags[at] as string));
  await Bun.sleep(6000);
  const kibEach = ((rssMibOf(pid) - beforeMib) * 1024) / questions.length;
  const cpuMsFor = async (ms: number, change?: string) => {
    const before = threadTimes(pid);
    if (change !== undefined) await setVariable(binary, rig.backend, change);
    await Bun.sleep(ms);
    return cpuMsBetween(before, threadTimes(pid));
  };
  const restMs = await cpuMsFor(20_000);
  const costMs = async (change: string) => (await cpuMsFor(5000, change)) - restMs / 4;
  const noneMs = await costMs("p2");
  const oneMs = await costMs("p1");
  const allMs = await costMs("p0");
  const wrong = new Set((await Promise.all(statuses)).filter((status) => status !== 200));
  const faults = [...wrong].map((status) => `a read that waited was answered with ${status}`);
  return { count: questions.length, kibEach, restPercent: restMs / 200, noneMs, oneMs, allMs, faults };
}

/** The status of a read that may wait for a minute, on a connection of its own. */
function statusOf(origin: string, path: string, key: string, tag: string): Promise<number> {
  const { hostname, port } = new URL(origin);
  const { promise, resolve } = Promise.withResolvers<number>();
  const head = `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nConnection: close`;
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("connect", () => socket.write(`${head}\r\nIf-None-Match: ${tag}\r\nPrefer: wait=60\r\n\r\n`));
  socket.once("data", (bytes: Buffer) => {
    resolve(Number(bytes.toString("latin1", 9, 12)));
    socket.destroy();
  });
  for (const event of ["error", "close"]) socket.on(event, () => resolve(0));
  return promise;
}

async function setVariable(binary: string, { settings }: Backend, project: string): Promise<void> {
  const words = ["var", "set", `${organization}/${project}`, "production", "CHANGED", "--value", "yes"];
  const child = Bun.spawn([binary, ...words], { env: { ...settings }, stdout: "ignore", stderr: "inherit" });
  if ((await child.exited) !== 0) throw new Error("keyhole var set failed");
}

/**
 * The lowest memory of a process within 14 seconds. After three seconds it varied by 70 MiB, depending on garbage
 * collection; after twelve seconds it was 110 to 112 MiB in four runs.
 */
async function restMib(pid: number): Promise<number | null> {
  if (!hasProc) return null;
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < 14; second++) {
    await Bun.sleep(1000);
    least = Math.min(least, rssMibOf(pid));
  }
  return least;
}
