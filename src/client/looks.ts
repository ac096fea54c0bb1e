import type { Clock } from "./wire.ts";

/** What came of a look. */
export type Look<T> = { readonly found: T } | { readonly failed: unknown };

/**
 * Looks again and again, one look after the other: after `everyMs`, and after a failure no sooner than its `retryAfter`
 * seconds say. While looks fail, the pause doubles up to a minute. Up to a tenth is added, so that many programs that
 * started together do not ask together. `keyhole run --watch` and the npm package share this loop.
 * @param isDue - whether the first look does not wait @param signal - ends it
 */
export async function* looks<T>(
  everyMs: number,
  look: () => Promise<T>,
  { sleep, random }: Clock,
  { isDue = false, signal }: { readonly isDue?: boolean; readonly signal?: AbortSignal } = {},
): AsyncGenerator<Look<T>, undefined> {
  let failures = 0;
  let retryAfter = 0;
  for (let waits = !isDue; signal?.aborted !== true; waits = true) {
    const doubled = Math.min(everyMs * 2 ** Math.max(failures - 1, 0), Math.max(everyMs, failingMsMax));
    const pauseMs = Math.max(doubled, Math.min(retryAfter * 1000, retryAfterMsMax)) * (1 + random() / 10);
    if (waits) await sleep(Math.min(Math.ceil(pauseMs), timerMsMax), signal);
    try {
      yield { found: await look() };
      failures = retryAfter = 0;
    } catch (failed) {
      failures += 1;
      retryAfter = Number((failed as { readonly retryAfter?: unknown } | undefined)?.retryAfter) || 0;
      yield { failed };
    }
  }
  return undefined;
}

const failingMsMax = 60_000;
/** A server that names a longer time is asked nonetheless: it may be a lie. */
const retryAfterMsMax = 3_600_000;
/** Timers of all runtimes fire at once if they get more. */
const timerMsMax = 2 ** 31 - 1;
