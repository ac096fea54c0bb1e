/** Work of this length is followed by a rest. */
const workMs = 10;

/**
 * Makes long work take a quarter of a processor at most, since requests wait for it: what comes back is called between
 * two steps, and after each 10 ms of work it waits for three times as long.
 * @param workedMs - milliseconds of processor time, which a busy machine does not make longer
 */
export function quarterOf(workedMs: () => number, wait: (ms: number) => Promise<unknown>): () => Promise<void> {
  let restedAtMs = workedMs();
  return async () => {
    const ms = workedMs() - restedAtMs;
    if (ms < workMs) return;
    await wait(3 * ms);
    restedAtMs = workedMs();
  };
}
