import { readdirSync, readFileSync } from "node:fs";

/** Stops PostgreSQL and every process of it where they stand; what it returns lets them go on. Linux only. */
export function freeze(postmaster: number): () => void {
  // The postmaster first, so that there is no child that it started after they were counted.
  process.kill(postmaster, "SIGSTOP");
  const pids = childrenOf(postmaster);
  for (const child of pids) signalIfThere(child, "SIGSTOP");
  return () => {
    for (const one of [...pids, postmaster]) signalIfThere(one, "SIGCONT");
  };
}

/** Linux only. */
export function childrenOf(pid: number): number[] {
  const parentOf = (one: string) => {
    try {
      return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${one}/status`, "utf8"))?.[1]);
    } catch {
      return undefined; // it has ended meanwhile
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);
}

/** Whether it has not ended. Linux only. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Does nothing if the process has ended. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as { code?: string }).code !== "ESRCH") throw error;
  }
}
