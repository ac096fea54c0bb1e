import { Database as SqliteFile } from "bun:sqlite";
import { statSync } from "node:fs";
import { attempt } from "../core/attempt.ts";
import { lostMsMin } from "../core/deadline.ts";
import { makeIfAbsent } from "../core/whole-file.ts";

// Work that SQLite leaves to its users: replaced files, locks between processes, and short waits.

/**
 * Tells, whenever asked, whether `path` still leads to the same database, with its -wal and -shm, as at first. SQLite
 * itself would go on in files that were deleted or replaced: it would miss revocations, and its writes would be lost.
 */
export function isSameDatabase(path: string): () => boolean {
  const first = identify(path);
  return () => first !== undefined && identify(path) === first;
}

/** Which files these are. A number is not given to another file while this process has the file open. */
function identify(path: string): string | undefined {
  const stats = attempt(() => ["", "-wal", "-shm"].map((side) => statSync(`${path}${side}`, { bigint: true })));
  return stats?.map(({ dev, ino }) => `${dev} ${ino}`).join();
}

/**
 * Runs a write, and runs it again while another process holds the lock. SQLite's own busy handler sleeps up to 100 ms,
 * and commands that write in a row take the lock from each other in that time: reads waited 1.3 s.
 * Time in which this process stood still does not count: the lock's holder may be a thread of it, which stood still too.
 * @param sleep - blocks the thread for this many milliseconds
 * @param nowMs - monotonic milliseconds
 * @throws what the write throws; `SQLITE_BUSY` after 1.8 s
 */
export function retryBusy<T>(write: () => T, sleep: (ms: number) => void, nowMs: () => number): T {
  let lastMs = nowMs() + waitMsMax;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs + 1, pauseMsMax)) {
    try {
      return write();
    } catch (error) {
      const isBusy = String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
      const askedMs = nowMs();
      if (!isBusy || askedMs + pauseMs > lastMs) throw error;
      sleep(pauseMs);
      const lostMs = nowMs() - askedMs - pauseMs;
      if (lostMs > lostMsMin) lastMs += lostMs;
    }
  }
}

/** Less than the 2 s of an audit entry: a batch that waits for the lock is refused before its callers give up. */
const waitMsMax = 1800;
const pauseMsMax = 5;

/** The files of the locks that this process holds, by path. One that is garbage would be closed, and its lock free. */
const held = new Map<string, SqliteFile>();

/**
 * A lock between processes: an exclusive transaction on an SQLite file of its own, which ends with its holder.
 * @returns undefined if another process still holds it after `waitMs`, or this one already
 */
export function exclusively(path: string, waitMs: number): Lock | undefined {
  makeIfAbsent(path);
  const { dev, ino } = statSync(path, { bigint: true });
  const name = `${dev} ${ino}`;
  if (held.has(name)) return undefined;
  const file = new SqliteFile(path, { create: false, readwrite: true });
  file.run(`PRAGMA busy_timeout = ${waitMs}`);
  try {
    file.run("BEGIN EXCLUSIVE");
  } catch (error) {
    file.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  held.set(name, file);
  const release = () => {
    if (held.get(name) === file) held.delete(name);
    file.close();
  };
  return { release, [Symbol.dispose]: release };
}

/** It is released at the end of a block that says `using`, or before. */
export type Lock = Disposable & { readonly release: () => void };
