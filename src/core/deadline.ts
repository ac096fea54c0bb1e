/**
 * One deadline for many waits. They share a timer, so a wait may end up to `everyMs` late.
 *
 * If the process was stopped or moved to another machine, the timer fires before the answers that arrived in that time
 * are read. So each wait is extended by the lost time, but only once, or work that blocks repeatedly would never end.
 */
export class Deadline {
  readonly #ms: number;
  readonly #refusal: () => Error;
  readonly #everyMs: number;
  readonly #waits = new Set<PendingWait>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #sweptAtMs = 0;

  /** @param refusal - makes the error for a wait that takes too long */
  constructor(ms: number, refusal: () => Error, everyMs = 100) {
    this.#ms = ms;
    this.#refusal = refusal;
    this.#everyMs = everyMs;
  }

  /**
   * Resolves or rejects as the work does, or calls `late` and rejects with the refusal.
   * @param sinceMs - monotonic; when the wait began, if that was before now
   */
  of<T>(work: Promise<T>, late?: () => void, sinceMs?: number): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const refuse = () => {
      late?.();
      reject(this.#refusal());
    };
    const nowMs = performance.now();
    if (this.#timer === undefined) {
      this.#sweptAtMs = nowMs;
      this.#timer = setInterval(() => this.#sweep(), this.#everyMs);
    }
    const wait: PendingWait = { endsAtMs: (sinceMs ?? nowMs) + this.#ms, extended: false, refuse };
    this.#waits.add(wait);
    const settling = <A>(settle: (outcome: A) => void) => {
      return (outcome: A) => {
        this.#waits.delete(wait);
        settle(outcome);
      };
    };
    work.then(settling(resolve), settling(reject));
    return promise;
  }

  #sweep(): void {
    const nowMs = performance.now();
    const lostMs = nowMs - this.#sweptAtMs - this.#everyMs;
    this.#sweptAtMs = nowMs;
    for (const wait of this.#waits) {
      if (lostMs > lostMsMin && !wait.extended) {
        wait.endsAtMs += lostMs;
        wait.extended = true;
      }
      if (wait.endsAtMs > nowMs) continue;
      // Timers may fire before answers that arrived are read. A timer that is due at once fires after them.
      setTimeout(() => {
        if (this.#waits.delete(wait)) wait.refuse();
      }, 0);
    }
    if (this.#waits.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Waits at most this long for work that goes on by itself. @returns undefined if it takes longer */
export async function atMost<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const late = new Error("late");
  return new Deadline(ms, () => late).of(work).catch((error: unknown) => {
    if (error !== late) throw error;
    return undefined;
  });
}

type PendingWait = { endsAtMs: number; extended: boolean; readonly refuse: () => void };

/** A timer that is this late waited for more than a busy machine. */
export const lostMsMin = 500;
