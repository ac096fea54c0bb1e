import { constants } from "node:os";
import { originOf } from "../../core/json-request.ts";
import { listenerOptions, listening } from "../../core/listening.ts";
import type { Log } from "../../core/log.ts";
import type { Config } from "../../core/settings/settings.ts";
import { Limiter } from "../limit/limiter.ts";
import { notaryCheck, type Readiness } from "./health.ts";
import type { Scrape } from "./metrics.ts";
import { drainNotice, openOps, sayOrigin } from "./serve.ts";
import { Pending, type ToParent, type ToWorker, type WorkerAnswers, workerFlag } from "./worker-link.ts";

type WorkersOptions = {
  readonly count: number;
  readonly config: Config;
  /** The workers' environment, copied before this process erased its secrets. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether a person reads the log. */
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
};

/**
 * `serve --workers`: several processes of this program share one port. Starts them, restarts those that die, stops them
 * together, answers for their health and metrics, and keeps their buckets unless a store does.
 */
export class Supervisor {
  readonly #supervision: WorkersOptions;
  readonly #port: number;
  readonly #limiter = new Limiter();
  readonly #workers = new Set<Worker>();
  readonly #answers = new Pending<unknown>();
  readonly #ended = Promise.withResolvers<void>();
  #worst = 0;
  #restarted = 0;
  #restartDelayMs = restartDelayMsMin;
  #ready = false;
  #draining = false;

  /** @throws Refused if an address is taken */
  constructor(supervision: WorkersOptions) {
    this.#supervision = supervision;
    this.#port = reservePort(supervision.config);
  }

  /** @returns the highest of their exit codes; 128 + n if signal n ended one */
  async run(): Promise<number> {
    const ops = await this.#startOps();
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => this.#onSignal(signal));
    for (let started = 0; started < this.#supervision.count; started++) this.#start();
    await this.#ended.promise;
    await ops?.stop();
    return this.#worst;
  }

  #onSignal(signal: string): void {
    if (this.#draining) {
      this.#kill();
      process.exit(1);
    }
    this.#supervision.say(`${signal}: ${drainNotice}`);
    this.#stop();
  }

  /** The second listener for all workers: ready while one of them is, and the sums of their metrics. */
  async #startOps(): Promise<{ stop(): Promise<void> } | undefined> {
    const { config, say } = this.#supervision;
    if (config.ops === undefined) return undefined;
    const { summed } = await import("./metrics.ts");
    const readiness = async () => together(await this.#ask<Readiness>("readiness"), this.#draining);
    const metrics = async (now: Readiness) =>
      summed(await this.#ask<Scrape>("metrics"), now, {
        keyhole_workers: ["Workers that listen.", this.#listening.length],
        keyhole_worker_restarts_total: ["Workers started after another died.", this.#restarted],
      });
    return openOps(config.ops, { readiness, metrics }, say);
  }

  /** Asks every worker that listens. A worker that dies or is too slow is left out. */
  async #ask<T>(question: keyof WorkerAnswers): Promise<T[]> {
    const asked = this.#listening.map((worker) =>
      this.#answers.open((id) => {
        tell([worker], { type: "ask", question, id });
        setTimeout(() => this.#answers.settle(id, undefined), answerDeadlineMs).unref();
      }),
    );
    return (await Promise.all(asked)).filter((answer) => answer !== undefined) as T[];
  }

  get #listening(): Worker[] {
    return [...this.#workers].filter((worker) => worker.listening);
  }

  #start(): void {
    const worker = spawnWorker(this.#supervision, this.#port, (message) => this.#onMessage(worker, message));
    this.#workers.add(worker);
    void worker.process.exited.then(() => this.#onExit(worker));
  }

  #onMessage(worker: Worker, message: ToParent): void {
    if (message.type === "take") {
      const nowUs = Math.floor(performance.now() * 1000);
      const taken = this.#limiter.take(message.payer, message.bucket, nowUs);
      const decision = taken.allowed ? { ...taken, fullAfterUs: taken.fullAtUs - nowUs } : taken;
      tell([worker], { type: "taken", decision, id: message.id });
    } else if (message.type === "answer") {
      this.#answers.settle(message.id, message.answer);
    } else if (message.type === "listening") {
      worker.listening = true;
      this.#onListening();
    } else {
      worker.closed = true;
      if (this.#draining) this.#onPortClosed();
      else tell([worker], { type: "portClosed" });
    }
  }

  #onListening(): void {
    const { config, count, say } = this.#supervision;
    if (this.#ready || this.#listening.length < count) return;
    this.#ready = true;
    sayOrigin(config, originOf(config.host, this.#port), say);
    say(`${count} workers share the port.`);
  }

  /** A client that is answered reconnects at once, so all workers close the port before one of them answers. */
  #onPortClosed(): void {
    if ([...this.#workers].every((worker) => worker.closed)) tell(this.#workers, { type: "portClosed" });
  }

  #onExit(worker: Worker): void {
    this.#workers.delete(worker);
    // A worker that cannot start has said why. The others would say the same.
    if (!this.#ready && !this.#draining) this.#stop();
    if (!this.#draining) {
      this.#restartLater(worker);
      return;
    }
    this.#worst = Math.max(this.#worst, exitCodeOf(worker));
    this.#onPortClosed();
    if (this.#workers.size === 0) this.#ended.resolve();
  }

  #restartLater({ process: { pid, exitCode, signalCode: signal }, startedAtMs }: Worker): void {
    if (performance.now() - startedAtMs > settledAfterMs) this.#restartDelayMs = restartDelayMsMin;
    this.#supervision.log({ event: "worker_died", pid, exitCode, signal, restartInMs: this.#restartDelayMs });
    setTimeout(() => {
      if (this.#draining) return;
      this.#restarted += 1;
      this.#start();
    }, this.#restartDelayMs);
    this.#restartDelayMs = Math.min(this.#restartDelayMs * 2, restartDelayMsMax);
  }

  #stop(): void {
    this.#draining = true;
    tell(this.#workers, { type: "drain" });
    setTimeout(() => this.#kill(), stopDeadlineMs).unref();
    if (this.#workers.size === 0) this.#ended.resolve();
  }

  #kill(): void {
    for (const { process: child } of this.#workers) child.kill("SIGKILL");
  }
}

const restartDelayMsMin = 100;
const restartDelayMsMax = 10_000;
/** The delay is short again for a worker that lived this long. */
const settledAfterMs = 60_000;
const stopDeadlineMs = 30_000;
const answerDeadlineMs = 3000;

/**
 * Makes sure that nobody else listens on the port. Workers bind it with SO_REUSEPORT, so another program of this user
 * could share it silently.
 * @throws Refused
 */
function reservePort({ host, port }: Config): number {
  const fetch = () => new Response(null, { status: 503 });
  const server = listening(host, port, "--port", () => Bun.serve({ ...listenerOptions, hostname: host, port, fetch }));
  const free = server.port ?? port;
  void server.stop(true);
  return free;
}

function spawnWorker(
  { config, env, pretty, write }: WorkersOptions,
  port: number,
  onMessage: (message: ToParent) => void,
): Worker {
  const args = ["--host", config.host, "--port", String(port), workerFlag, pretty ? "pretty" : "plain"];
  const built = import.meta.url.startsWith("file:///$bunfs/");
  const program = built ? [process.execPath] : [process.execPath, ...process.execArgv, Bun.main];
  const child = Bun.spawn([...program, "serve", ...args], {
    env: { ...env },
    stdio: ["ignore", "pipe", "inherit"],
    serialization: "json",
    ipc: onMessage,
  });
  void forwardLines(child.stdout, write);
  return { process: child, startedAtMs: performance.now(), listening: false, closed: false };
}

function tell(workers: Iterable<Worker>, message: ToWorker): void {
  for (const { process: child } of workers) {
    try {
      child.send(message);
    } catch {
      // It has exited, which `onExit` handles.
    }
  }
}

/** 128 + n if signal n ended it. */
function exitCodeOf({ process: { exitCode, signalCode }, listening }: Worker): number {
  // A signal to all processes can meet a worker that is only starting and has nothing to finish.
  if (!listening && signalCode === "SIGTERM") return 0;
  return exitCode ?? 128 + (constants.signals[signalCode as NodeJS.Signals] ?? 0);
}

/** Forwards whole lines, so that lines of two processes do not mix. */
async function forwardLines(from: ReadableStream<Uint8Array>, write: (lines: Uint8Array) => void): Promise<void> {
  let rest = Buffer.alloc(0);
  for await (const bytes of from) {
    const all = Buffer.concat([rest, bytes]);
    const end = all.lastIndexOf("\n") + 1;
    if (end > 0) write(all.subarray(0, end));
    rest = all.subarray(end);
  }
  if (rest.length > 0) write(rest);
}

/** The readiness of all workers: ready while one of them is, and why those that are not refuse. Each looks for a notary. */
export function together(each: readonly Readiness[], draining: boolean): Readiness {
  const names = Object.keys(each[0]?.checks ?? {});
  const passes = (name: string) => (one: Readiness) => one.checks[name] === true;
  const checks = names.map((name) => {
    return [name, name === notaryCheck ? each.every(passes(name)) : each.some(passes(name))] as const;
  });
  return {
    ready: !draining && each.some((one) => one.ready),
    draining,
    checks: { workers: each.length > 0, ...Object.fromEntries(checks) },
    away: Object.assign({}, ...each.map(({ away }) => away)),
    reason: each.find(({ reason }) => reason !== undefined)?.reason,
  };
}
