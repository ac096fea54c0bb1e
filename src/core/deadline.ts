/**
 * A deadline for many waits of one length. They share one timer, so a wait may end up to `everyMs` late.
 *
 * If the process was stopped, frozen or moved to another machine, the timer fires before the answers that arrived
 * meanwhile are read. So each wait is extended by the time lost, once: work that blocks again and again ends all the same.
 */
export class Deadline {
  readonly #ms: number;
  readonly #refusal: () => Error;
  readonly #everyMs: number;
  /** In the order in which they end. */
  readonly #waits = new Set<Wait>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #sweptAtMs = 0;

  /** @param refusal - makes the error for a wait that takes too long */
  constructor(ms: number, refusal: () => Error, everyMs = 100) {
    this.#ms = ms;
    this.#refusal = refusal;
    this.#everyMs = everyMs;
  }

  /**
   * Resolves or rejects as the work does, or rejects with the refusal.
   * @param late - called if it is refused
   */
  of<T>(work: Promise<T>, late?: () => void): Promise<T> {
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
    const wait: Wait = { endsAtMs: nowMs + this.#ms, extended: false, refuse };
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
      this.#waits.delete(wait);
      wait.refuse();
    }
    if (this.#waits.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

type Wait = { endsAtMs: number; extended: boolean; readonly refuse: () => void };

/** A timer that is later than this was not only busy. */
const lostMsMin = 500;
