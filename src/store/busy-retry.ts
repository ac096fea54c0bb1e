/**
 * Runs a write on the embedded database, again and again while another process holds its lock. SQLite's own busy handler
 * sleeps up to 100 ms, and meanwhile commands that write in a row take the lock from each other: reads waited 1.3 s.
 *
 * @param sleep - blocks the thread for this many milliseconds
 * @param nowMs - monotonic milliseconds
 * @throws what the write throws; `SQLITE_BUSY` after 1.8 s
 */
export function retryBusy<T>(write: () => T, sleep: (ms: number) => void, nowMs: () => number): T {
  const lastMs = nowMs() + waitMsMax;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs + 1, pauseMsMax)) {
    try {
      return write();
    } catch (error) {
      const isBusy = String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
      if (!isBusy || nowMs() + pauseMs > lastMs) throw error;
      sleep(pauseMs);
    }
  }
}

/** Less than the 2 s of a request's audit entry, so that a batch which waits for the lock is known to be refused. */
const waitMsMax = 1800;
const pauseMsMax = 5;
