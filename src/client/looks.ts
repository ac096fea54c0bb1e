import type { Clock } from "./wire.ts";

/** What a look found, and whether the server waited for a change. */
export type LookResult<T> = { readonly found: T; readonly waited: boolean };

/** What came of a look. */
export type Look<T> = LookResult<T> | { readonly failed: unknown };

/**
 * Looks again and again, one look after the other: after `everyMs`, and after a failure no sooner than its `retryAfter`
 * seconds say. While looks fail, the pause doubles up to a minute. Up to a tenth is added, so that many programs that
 * started together do not ask together. `keyhole run --watch` and the npm package share this loop.
 *
 * A server that waits for changes is asked again soon, but once a second at most, whatever it answers. One answer that
 * does not say so may be that of a server that stops, or the first, which had no tag. After two, it does not wait.
 * @param look - gets how many seconds its answer may wait
 * @param isDue - whether the first look does not wait @param signal - ends it
 */
export async function* looks<T>(
  everyMs: number,
  look: (waitS: number) => Promise<LookResult<T>>,
  { nowMs, sleep, random }: Clock,
  { isDue = false, signal }: { readonly isDue?: boolean; readonly signal?: AbortSignal } = {},
): AsyncGenerator<Look<T>, undefined> {
  let waitS = Math.min(Math.max(Math.floor(everyMs / 1000), 1), waitSMax);
  let failures = 0;
  let retryAfter = 0;
  let isSoon = true;
  let mayWait = true;
  let beganAtMs = nowMs();
  for (let pauses = !isDue; signal?.aborted !== true; pauses = true) {
    const doubled = Math.min(everyMs * 2 ** Math.max(failures - 1, 0), Math.max(everyMs, failingMsMax));
    const pauseMs = Math.max(doubled, Math.min(retryAfter * 1000, retryAfterMsMax)) * (1 + random() / 10);
    const soonMs = Math.max(beganAtMs + soonMsMin - nowMs(), 0) + (random() * soonMsMin) / 2;
    if (pauses) await sleep(Math.min(Math.ceil(isSoon ? soonMs : pauseMs), timerMsMax), signal);
    beganAtMs = nowMs();
    try {
      const found = await look(waitS);
      failures = retryAfter = 0;
      // A proxy on the way is less patient.
      if (!found.waited && nowMs() - beganAtMs > cutMsMin) waitS = Math.min(waitS, cutMsMin / 1000);
      isSoon = found.waited || mayWait;
      mayWait = found.waited;
      yield found;
    } catch (failed) {
      isSoon = false;
      mayWait = true;
      failures += 1;
      retryAfter = Number((failed as { readonly retryAfter?: unknown } | undefined)?.retryAfter) || 0;
      yield { failed };
    }
  }
  return undefined;
}

/** Many proxies cut a request that takes 30 s. */
const waitSMax = 25;
const cutMsMin = 10_000;
const soonMsMin = 1000;
const failingMsMax = 60_000;
/** A server that names a longer time is asked nonetheless: it may be a lie. */
const retryAfterMsMax = 3_600_000;
/** Timers of all runtimes fire at once if they get more. */
const timerMsMax = 2 ** 31 - 1;
