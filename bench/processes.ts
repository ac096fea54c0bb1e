import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";

/** A running server. */
export type Server = {
  readonly pid: number;
  /** Such as `http://127.0.0.1:4100`. */
  readonly origin: string;
  /** Sends SIGTERM, and SIGKILL after a few seconds. May be called again. */
  readonly stop: () => Promise<void>;
};

/**
 * The processes and the folder of one benchmark run. They are killed and removed when the run ends, or by a reaper
 * process if the run itself is killed: the reaper's standard input is a pipe from here, which closes however this
 * process ends.
 */
export class Processes {
  readonly #folder: string;
  readonly #living = new Map<number, Bun.Subprocess>();
  readonly #reaper: Bun.Subprocess<"pipe", "ignore", "ignore">;
  #closed = false;

  /** @param folder - removed with its content at the end */
  constructor(folder: string) {
    this.#folder = folder;
    this.#reaper = Bun.spawn(["/bin/sh", "-c", reaper, "reaper", folder], {
      stdin: "pipe",
      stdout: "ignore",
      stderr: "ignore",
      detached: true, // Ctrl-C must reach only the benchmark
    });
  }

  /**
   * Starts a server and waits until it writes `listens on URL` to standard error. Its standard output is discarded.
   * @param env - the whole environment of the server
   * @throws Error with its last output if it ends or does not listen in time
   */
  async serve(command: readonly string[], env: Readonly<Record<string, string>>): Promise<Server> {
    const server = this.#track(
      Bun.spawn([...command], { env, cwd: this.#folder, stdin: "ignore", stdout: "ignore", stderr: "pipe" }),
    );
    const origin = await readOrigin(server.stderr, startDeadlineMs);
    if (!origin.found) {
      await this.#end(server, "SIGKILL");
      throw new Error(`A server did not start: ${origin.words}`);
    }
    return { pid: server.pid, origin: origin.found, stop: () => this.#end(server, "SIGTERM") };
  }

  /**
   * Runs a program until it ends.
   * @returns its standard output
   * @throws Error with its last output if it fails or takes longer than `deadlineMs`
   */
  async run(
    command: readonly string[],
    options: {
      readonly cwd?: string;
      readonly env?: Readonly<Record<string, string>>;
      readonly deadlineMs: number;
    },
  ): Promise<string> {
    const child = this.#track(
      Bun.spawn([...command], {
        cwd: options.cwd ?? this.#folder,
        env: options.env ?? process.env,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      }),
    );
    const slow = setTimeout(() => child.kill("SIGKILL"), options.deadlineMs);
    const [exitCode, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
    clearTimeout(slow);
    if (exitCode === 0) return stdout;
    const words = `${stdout}${stderr}`.trim().slice(-2000);
    throw new Error(`${command[0]} ended with ${child.signalCode ?? `exit code ${exitCode}`}: ${words}`);
  }

  /** Ends all processes and removes the folder. Nothing can be started afterwards. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#living.values()].map((process) => this.#end(process, "SIGTERM")));
    await rm(this.#folder, { recursive: true, force: true });
    await this.#reaper.stdin.end();
    await this.#reaper.exited;
  }

  #track<P extends Bun.Subprocess>(process: P): P {
    if (this.#closed) {
      process.kill("SIGKILL");
      throw new Error("the benchmark has ended");
    }
    this.#living.set(process.pid, process);
    this.#updateReaper();
    process.exited.then(() => {
      this.#living.delete(process.pid);
      this.#updateReaper();
    });
    return process;
  }

  #updateReaper(): void {
    this.#reaper.stdin.write(`${[...this.#living.keys()].join(" ")}\n`);
    void this.#reaper.stdin.flush();
  }

  async #end(process: Bun.Subprocess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    process.kill(signal);
    const slow = setTimeout(() => process.kill("SIGKILL"), stopDeadlineMs);
    await process.exited;
    clearTimeout(slow);
  }
}

const startDeadlineMs = 20_000;
const stopDeadlineMs = 3000;

/** The last line of its input lists the ids of the living processes. */
const reaper = `
trap '' HUP INT TERM
folder=$1
living=
while read -r line; do living=$line; done
for pid in $living; do kill -KILL "$pid"; done
rm -rf "$folder"
`;

const listens = /listens on (http:\/\/127\.0\.0\.1:\d+)[/\s]/;

/** Reads standard error to its end, because a full pipe would block the server. */
function readOrigin(
  stderr: ReadableStream<Uint8Array<ArrayBuffer>>,
  deadlineMs: number,
): Promise<{ found: string | undefined; words: string }> {
  const { promise, resolve } = Promise.withResolvers<{ found: string | undefined; words: string }>();
  let words = "";
  const settle = () => {
    const found = listens.exec(words)?.[1];
    resolve({ found, words: words.trim() || "it printed nothing" });
  };
  const late = setTimeout(settle, deadlineMs);
  promise.finally(() => clearTimeout(late));
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of stderr) {
      words = `${words}${decoder.decode(chunk)}`.slice(-4000);
      if (listens.test(words)) settle();
    }
    settle();
  };
  read().catch(settle);
  return promise;
}

/** Whether `/proc` shows CPU time and memory of processes. Without it those columns stay empty. */
export const hasProc = process.platform === "linux";

/** CPU time in milliseconds, to the nanosecond, by the id of the thread or process that took it. */
export type CpuTimes = ReadonlyMap<number, number>;

/** That of each thread of a process. Its own id is that of the main thread. */
export function threadTimes(pid: number): CpuTimes {
  if (!hasProc) return new Map();
  return timesOf(idsIn(`/proc/${pid}/task`), (thread) => `${pid}/task/${thread}`);
}

/** That of a process and its children, each of which has one thread. */
export function familyTimes(pid: number): CpuTimes {
  if (!hasProc) return new Map();
  const family = idsIn("/proc").filter((other) => other === pid || statOf(other)?.parent === pid);
  return timesOf(family, String);
}

/** What was taken between two looks. What ended meanwhile is left out: idle helpers that had taken nothing any more. */
export function cpuMsBetween(before: CpuTimes, after: CpuTimes): number {
  return [...after].reduce((sum, [id, ms]) => sum + ms - (before.get(id) ?? 0), 0);
}

function timesOf(ids: readonly number[], folderOf: (id: number) => string): CpuTimes {
  const taken = (id: number) => Number(readProc(folderOf(id), "schedstat")?.split(" ")[0] ?? 0);
  return new Map(ids.map((id) => [id, taken(id) / 1e6]));
}

/** CPU time that the whole machine was busy, including time stolen by its host, in milliseconds. */
export function machineCpuMs(): number {
  if (!hasProc) return 0;
  const fields = readFileSync("/proc/stat", "utf8").split("\n", 1).join("").split(/\s+/).map(Number);
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return (user + nice + system + irq + softirq + steal) * msPerTick;
}

/** CPU time of this process and its children that have ended, such as load generators. */
export function ownCpuMs(): number {
  const times = statOf(process.pid);
  return times ? (times.own + times.ended) * msPerTick : 0;
}

/** Resident memory of a process in MiB, including shared pages and those of the program's file. */
export function rssMibOf(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(pid, "status") ?? "")?.[1];
  return Number(kib ?? 0) / 1024;
}

/** The parent of a PostgreSQL backend on this machine; undefined if it runs elsewhere. */
export function postmasterOf(backendPid: number): number | undefined {
  if (!hasProc || !readProc(backendPid, "comm")?.startsWith("postgres")) return undefined;
  return statOf(backendPid)?.parent;
}

// USER_HZ is 100 on every Linux that runs Bun.
const msPerTick = 10;

/** Ticks of CPU time: of the process, and of its children that have ended. */
type Times = { readonly parent: number; readonly own: number; readonly ended: number };

/** @see proc_pid_stat(5); the second field is a name in brackets that may contain anything */
function statOf(pid: number): Times | undefined {
  const stat = readProc(pid, "stat");
  if (stat === undefined) return undefined;
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const field = (number: number) => fields[number - 3] ?? 0;
  return { parent: field(4), own: field(14) + field(15), ended: field(16) + field(17) };
}

function readProc(pid: number | string, name: "stat" | "status" | "comm" | "schedstat"): string | undefined {
  if (!hasProc) return undefined;
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return undefined; // it ended
  }
}

function idsIn(folder: string): number[] {
  return readdirSync(folder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}
