import { constants } from "node:os";
import { Refused } from "../admin/refused.ts";
import type { Config } from "../config.ts";
import { apiRoot } from "../http/app.ts";
import type { BucketName } from "../limit/bucket.ts";
import { Limiter } from "../limit/limiter.ts";
import type { SharedBuckets, SharedDecision } from "../limit/shared.ts";
import type { Readiness } from "../ops/listener.ts";
import type { Scrape } from "../ops/metrics.ts";
import type { Log } from "./log.ts";

/*
 * `serve --workers`: several processes of this program on one port, and one that starts them, ends them together,
 * starts anew what dies, answers for their health and metrics, and keeps the buckets where no store does. They talk by
 * the channel between parent and child; a worker obeys it alone, since a terminal or a service manager may send its
 * signals to all of them at once, and a second one would cut requests off.
 */

type ToWorker =
  | { readonly drain: true }
  | { readonly goOn: true }
  | { readonly end: true }
  | { readonly ask: keyof WorkerAnswers; readonly id: number }
  | { readonly taken: SharedDecision; readonly id: number };
type ToParent =
  | { readonly listening: true }
  | { readonly closed: true }
  | { readonly answer: unknown; readonly id: number }
  | { readonly take: BucketName; readonly keyId: string; readonly id: number };

/** What a worker is asked by the process that started it. */
export type WorkerAnswers = { readonly readiness: () => Promise<Readiness>; readonly metrics: () => Promise<Scrape> };

/** A worker's end of the channel. */
export type WorkerLink = {
  /** The buckets that the parent keeps. */
  readonly buckets: SharedBuckets;
  /** Says that requests can come, and from now on does as the parent says. `drain` is called when it says so, or is gone. */
  readonly listening: (answers: WorkerAnswers, drain: () => void) => void;
  /** Says that this worker takes no more connections; resolves when none of those that end with it does. */
  readonly closed: () => Promise<void>;
};

/** The option by which this program starts itself as a worker; the word says how it logs. */
export const workerFlag = "--worker";

/** Opens the channel. @throws Refused where no parent holds the other end */
export function openWorkerLink(): WorkerLink {
  if (process.send === undefined) throw new Refused("invalid", `${workerFlag} is for Keyhole itself: use --workers.`);
  const send = (message: ToParent) => void process.send?.(message);
  const waiting = new Map<number, (decision: SharedDecision) => void>();
  let ids = 0;
  let answers: WorkerAnswers | undefined;
  // Told to end before it listens, it has nothing to finish.
  let drain = (): void => process.exit(0);
  const { promise: allClosed, resolve: goOn } = Promise.withResolvers<void>();
  process.on("message", async (message: ToWorker) => {
    if ("taken" in message) {
      waiting.get(message.id)?.(message.taken);
      waiting.delete(message.id);
    } else if ("ask" in message) {
      send({ answer: await answers?.[message.ask](), id: message.id });
    } else if ("drain" in message) drain();
    else if ("goOn" in message) goOn();
    else process.exit(1);
  });
  // Without its parent nobody would ever end it.
  process.on("disconnect", () => {
    goOn();
    drain();
  });
  return {
    buckets: {
      take: (keyId, bucket) =>
        new Promise((resolve) => {
          const id = ids++;
          waiting.set(id, resolve);
          send({ take: bucket, keyId, id });
        }),
      connect: async () => {},
      close: () => {},
    },
    listening: (given, drainNow) => {
      answers = given;
      drain = drainNow;
      send({ listening: true });
    },
    closed: () => {
      send({ closed: true });
      return Promise.race([allClosed, Bun.sleep(closedDeadlineMs)]);
    },
  };
}

export type Supervision = {
  readonly count: number;
  readonly config: Config;
  /** For the workers; taken before this process forgets its secrets. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether stdout is for a person. */
  readonly pretty: boolean;
  readonly log: Log;
  readonly say: (line: string) => void;
  /** Takes whole lines of a worker's log. */
  readonly write: (lines: Uint8Array) => void;
};

type Worker = {
  readonly process: Bun.Subprocess<"ignore", "pipe", "inherit">;
  readonly startedAtMs: number;
  listening: boolean;
  closed: boolean;
  /** Answers that are due, by the id of what was asked. */
  readonly due: Map<number, (answer: unknown) => void>;
};

const restartDelayMs = { min: 100, max: 10_000 };
/** A worker that lived so long did not die of how it was started. */
const settledAfterMs = 60_000;
const endDeadlineMs = 30_000;
const answerDeadlineMs = 3000;
/** Well within the deadline of the requests that wait meanwhile. */
const closedDeadlineMs = 1000;

/**
 * Runs the workers until they are told to stop.
 * @returns the worst of their exit codes; 128 + n where signal n ended one
 * @throws Refused where the address or that of the second listener is taken
 */
export async function superviseWorkers(supervision: Supervision): Promise<number> {
  const { config, count, log, say } = supervision;
  const port = reservePort(config);
  const limiter = config.limiterUrl === undefined ? new Limiter() : undefined;
  const sweeper = setInterval(() => limiter?.sweep(nowUs()), 1000);
  const workers = new Set<Worker>();
  const restarts = new Set<ReturnType<typeof setTimeout>>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let { worst, restarted, delayMs, ready, draining } = {
    worst: 0,
    restarted: 0,
    delayMs: restartDelayMs.min,
    ready: false,
    draining: false,
  };

  const start = () => {
    const worker = startWorker(supervision, port, limiter, { listening, closed });
    workers.add(worker);
    void worker.process.exited.then(() => died(worker));
  };
  const listening = () => {
    if (ready || [...workers].filter((worker) => worker.listening).length < count) return;
    ready = true;
    const host = config.host.includes(":") ? `[${config.host}]` : config.host;
    say(`Keyhole listens on http://${host}:${port}${apiRoot}`);
    say(`${count} workers share the port.`);
  };
  // Whoever is answered asks again at once, and would meet the last moment of a port that is still open. So nobody is
  // answered until all are closed, but where one worker ends alone.
  const closed = (worker?: Worker) => {
    if (draining && [...workers].every((one) => one.closed)) tell({ goOn: true });
    else if (!draining && worker) tell({ goOn: true }, [worker]);
  };
  const died = (worker: Worker) => {
    workers.delete(worker);
    const { exitCode, signalCode, pid } = worker.process;
    // A signal to all of them may meet one that has only begun to start: it had nothing to finish.
    const idle = draining && !worker.listening && signalCode === "SIGTERM";
    const code = idle ? 0 : (exitCode ?? 128 + (constants.signals[signalCode as NodeJS.Signals] ?? 0));
    for (const answer of worker.due.values()) answer(undefined);
    // One that cannot even start has said why; the others would say the same.
    if (!ready && !draining) stop();
    if (draining) {
      worst = Math.max(worst, code);
      closed();
      if (workers.size === 0) end();
      return;
    }
    if (performance.now() - worker.startedAtMs > settledAfterMs) delayMs = restartDelayMs.min;
    log({ event: "worker_died", pid, exitCode, signal: signalCode, restartInMs: delayMs });
    const timer = setTimeout(() => {
      restarts.delete(timer);
      restarted += 1;
      start();
    }, delayMs);
    restarts.add(timer);
    delayMs = Math.min(delayMs * 2, restartDelayMs.max);
  };
  const tell = (message: ToWorker, whom: Iterable<Worker> = workers) => {
    for (const { process: child } of whom) {
      try {
        child.send(message);
      } catch {
        // It has ended already, which is told elsewhere.
      }
    }
  };
  const stop = () => {
    if (draining) return;
    draining = true;
    for (const timer of restarts) clearTimeout(timer);
    tell({ drain: true });
    setTimeout(() => {
      for (const { process: child } of workers) child.kill("SIGKILL");
    }, endDeadlineMs).unref();
    if (workers.size === 0) end();
  };

  const ops =
    config.ops === undefined
      ? undefined
      : await startSharedOps(config.ops, {
          workers: () => [...workers].filter(({ listening }) => listening),
          count,
          draining: () => draining,
          restarted: () => restarted,
          say,
        });
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (draining) {
        tell({ end: true });
        setTimeout(() => process.exit(1), 100);
        return;
      }
      say(`${signal}: finishing what is under way; a second one ends at once.`);
      stop();
    });
  }
  for (let started = 0; started < count; started++) start();
  await ended;
  clearInterval(sweeper);
  await ops?.stop();
  return worst;
}

/**
 * The port, free at this moment for this program alone. Workers bind it in a way that would let any other program of
 * this user share it too, without a word.
 * @throws Refused
 */
function reservePort({ host, port }: Config): number {
  try {
    const server = Bun.serve({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      fetch: () => new Response(null, { status: 503 }),
    });
    const reserved = server.port ?? port;
    void server.stop(true);
    return reserved;
  } catch (error) {
    throw addressProblem(error, host, port, "--port");
  }
}

/** What is said where nobody can listen on an address. @param setting - by which another can be chosen */
export function addressProblem(error: unknown, host: string, port: number, setting: string): Refused {
  const taken = (error as { code?: unknown }).code === "EADDRINUSE";
  return new Refused(
    "unavailable",
    taken
      ? `The address ${host}:${port} is in use: stop what listens there, or choose another with ${setting}.`
      : `Cannot listen on ${host}:${port}.`,
  );
}

function startWorker(
  { config, env, pretty, write }: Supervision,
  port: number,
  limiter: Limiter | undefined,
  heard: { readonly listening: () => void; readonly closed: (worker: Worker) => void },
): Worker {
  const worker: Worker = {
    process: Bun.spawn(
      [
        ...thisProgram(),
        "serve",
        "--host",
        config.host,
        "--port",
        String(port),
        workerFlag,
        pretty ? "pretty" : "plain",
      ],
      {
        env: { ...env },
        stdio: ["ignore", "pipe", "inherit"],
        serialization: "json",
        ipc: (message: ToParent, child) => {
          if ("take" in message) {
            if (limiter) child.send({ taken: takenFrom(limiter, message.keyId, message.take), id: message.id });
          } else if ("answer" in message) {
            worker.due.get(message.id)?.(message.answer);
            worker.due.delete(message.id);
          } else if ("closed" in message) {
            worker.closed = true;
            heard.closed(worker);
          } else {
            worker.listening = true;
            heard.listening();
          }
        },
      },
    ),
    startedAtMs: performance.now(),
    listening: false,
    closed: false,
    due: new Map(),
  };
  void passOn(worker.process.stdout, write);
  return worker;
}

/** How this very program is started: the binary, or Bun with the file it runs. */
function thisProgram(): string[] {
  const built = import.meta.url.startsWith("file:///$bunfs/");
  return built ? [process.execPath] : [process.execPath, ...process.execArgv, Bun.main];
}

function takenFrom(limiter: Limiter, keyId: string, bucket: BucketName): SharedDecision {
  const now = nowUs();
  const decision = limiter.take(keyId, bucket, now);
  if (!decision.allowed) return decision;
  return { allowed: true, fullAfterUs: decision.fullAtUs - now, remaining: decision.remaining };
}

/** Passes on whole lines: pieces of two processes' lines must not meet. */
async function passOn(from: ReadableStream<Uint8Array>, write: (lines: Uint8Array) => void): Promise<void> {
  let rest: Uint8Array = new Uint8Array(0);
  for await (const bytes of from) {
    const end = bytes.lastIndexOf(10) + 1;
    if (end === 0) {
      rest = Buffer.concat([rest, bytes]);
      continue;
    }
    write(Buffer.concat([rest, bytes.subarray(0, end)]));
    rest = bytes.slice(end);
  }
  if (rest.length > 0) write(rest);
}

type Staff = {
  readonly workers: () => readonly Worker[];
  readonly count: number;
  readonly draining: () => boolean;
  readonly restarted: () => number;
  readonly say: (line: string) => void;
};

/** The second listener for all of them: ready while one of them is, and the sums of their metrics. */
async function startSharedOps(address: NonNullable<Config["ops"]>, staff: Staff): Promise<{ stop(): Promise<void> }> {
  const [{ startOps }, { summed }] = await Promise.all([import("../ops/listener.ts"), import("../ops/metrics.ts")]);
  let ids = 0;
  const askAll = async <T>(ask: keyof WorkerAnswers): Promise<T[]> => {
    const answers = staff.workers().map((worker) => {
      const id = ids++;
      const answer = new Promise<unknown>((resolve) => {
        worker.due.set(id, resolve);
        setTimeout(() => resolve(undefined), answerDeadlineMs).unref();
      });
      worker.process.send({ ask, id });
      return answer.finally(() => worker.due.delete(id));
    });
    return (await Promise.all(answers)).filter((answer) => answer !== undefined) as T[];
  };
  try {
    const ops = startOps(address, {
      readiness: async () => {
        const each = await askAll<Readiness>("readiness");
        const names = Object.keys(each[0]?.checks ?? {});
        const checks = names.map((name) => [name, each.some((one) => one.checks[name])] as const);
        const draining = staff.draining();
        const ready = !draining && each.some((one) => one.ready);
        return { ready, draining, checks: Object.fromEntries([["workers", each.length > 0], ...checks]) };
      },
      metrics: async () =>
        summed(await askAll<Scrape>("metrics"), {
          keyhole_workers: ["Workers that listen.", staff.workers().length],
          keyhole_worker_restarts_total: ["Workers started anew after one died.", staff.restarted()],
        }),
    });
    staff.say(`Health and metrics are on ${ops.origin}`);
    return ops;
  } catch (error) {
    throw addressProblem(error, address.host, address.port, "KEYHOLE_OPS_PORT");
  }
}

function nowUs(): number {
  return Math.floor(performance.now() * 1000);
}
