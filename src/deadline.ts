/** A deadline for many waits of one length. They share one timer, so a wait may end up to `everyMs` late. */
export class Deadline {
  readonly #ms: number;
  readonly #ticker: Ticker;
  readonly #refusal: () => Error;
  /** In the order in which they end. */
  readonly #waits = new Set<Wait>();

  /** @param refusal - makes the error for a wait that takes too long */
  constructor(ms: number, refusal: () => Error, everyMs = 100) {
    this.#ms = ms;
    this.#refusal = refusal;
    this.#ticker = new Ticker(everyMs, () => this.#sweep());
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
    this.#ticker.start();
    const wait: Wait = { endsAtMs: this.#ticker.nowMs() + this.#ms, refuse };
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
    const now = this.#ticker.nowMs();
    for (const wait of this.#waits) {
      if (wait.endsAtMs > now) return;
      this.#waits.delete(wait);
      wait.refuse();
    }
    this.#ticker.stop();
  }
}

type Wait = { readonly endsAtMs: number; readonly refuse: () => void };

/**
 * Calls a function at an interval, and keeps a clock that stops while the process is stopped, frozen or moved to another
 * machine. By a plain clock everything under way would be refused when the process continues, although its answers have
 * arrived. Time in which the process worked counts, even if the event loop was blocked.
 */
export class Ticker {
  readonly #everyMs: number;
  readonly #look: () => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #readAtMs = 0;
  /** CPU time of the process at the last call, all its threads. */
  #workedMs = 0;
  #stoodStillMs = 0;

  constructor(everyMs: number, look: () => void) {
    this.#everyMs = everyMs;
    this.#look = look;
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#readAtMs = performance.now();
    this.#workedMs = workedMs();
    this.#timer = setInterval(() => {
      this.#look();
      this.#workedMs = workedMs();
    }, this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Milliseconds by its clock. Must be called while it runs, and at each interval. */
  nowMs(): number {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#readAtMs - this.#everyMs;
    if (lateMs > standstillMsMin) this.#stoodStillMs += Math.max(0, lateMs - (workedMs() - this.#workedMs));
    this.#readAtMs = nowMs;
    return nowMs - this.#stoodStillMs;
  }
}

const standstillMsMin = 500;

function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
