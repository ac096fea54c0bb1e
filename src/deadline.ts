/**
 * A deadline for many waits of one length. They share one timer, so a wait may end up to `everyMs` late.
 *
 * Its clock stops while the process is stopped, frozen or moved to another machine: by a plain clock everything under way
 * would be refused when the process continues, although its answers have arrived. Time in which the process worked
 * counts, even if the event loop was blocked.
 */
export class Deadline {
  readonly #ms: number;
  readonly #refusal: () => Error;
  readonly #everyMs: number;
  /** In the order in which they end. */
  readonly #waits = new Set<Wait>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #readAtMs = 0;
  /** CPU time of the process at the last sweep, all its threads. */
  #workedMs = 0;
  #stoodStillMs = 0;

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
    this.#timer ??= this.#start();
    const wait: Wait = { endsAtMs: this.#nowMs() + this.#ms, refuse };
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

  #start() {
    this.#readAtMs = performance.now();
    this.#workedMs = workedMs();
    return setInterval(() => {
      this.#sweep();
      this.#workedMs = workedMs();
    }, this.#everyMs);
  }

  #sweep(): void {
    const now = this.#nowMs();
    for (const wait of this.#waits) {
      if (wait.endsAtMs > now) return;
      this.#waits.delete(wait);
      wait.refuse();
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #nowMs(): number {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#readAtMs - this.#everyMs;
    if (lateMs > standstillMsMin) this.#stoodStillMs += Math.max(0, lateMs - (workedMs() - this.#workedMs));
    this.#readAtMs = nowMs;
    return nowMs - this.#stoodStillMs;
  }
}

type Wait = { readonly endsAtMs: number; readonly refuse: () => void };

const standstillMsMin = 500;

function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
