/*
 * What a promise of seconds is measured with. Where this process stood still the machine did, and a machine that stops
 * is no slow server.
 */

/** Monotonic milliseconds, less those during which this process did not run. */
export function ranMs(): number {
  const nowMs = performance.now();
  const lateMs = nowMs - readAtMs - everyMs;
  if (lateMs > everyMs) stoodMs += lateMs;
  readAtMs = nowMs;
  return nowMs - stoodMs;
}

/** For how long in all it did not run, in moments of 20 ms and more. */
export function stoodStillMs(): number {
  ranMs();
  return stoodMs;
}

/** Lets time pass, so that what a test does next strikes at another moment, or lasts that long. It waits for nothing. */
export function moment(ms: number): Promise<void> {
  return Bun.sleep(ms);
}

/** A day to rotate by, in UTC: this many after the one on which the tests began, so midnight changes none of them. */
export function inDays(days: number): string {
  return new Date(beganAt + days * 86_400_000).toISOString().slice(0, 10);
}

const beganAt = Date.now();
const everyMs = 20;
let readAtMs = performance.now();
let stoodMs = 0;
setInterval(ranMs, everyMs).unref();
