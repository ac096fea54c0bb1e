/**
 * A deadline for many waits of one length, kept by one timer: a timer for each would cost more than what most of them
 * wait for. A wait ends up to `everyMs` late.
 */
export class Deadline {
  readonly #ms: number;
  readonly #ticker: Ticker;
  readonly #refusal: () => Error;
  /** In the order of their beginning, which is that of their end. */
  readonly #waits = new Set<Wait>();

  /** @param refusal - what a wait that takes too long is rejected with */
  constructor(ms: number, refusal: () => Error, everyMs = 100) {
    this.#ms = ms;
    this.#refusal = refusal;
    this.#ticker = new Ticker(everyMs, () => this.#sweep());
  }

  /**
   * What the work comes to, or the refusal.
   * @param late - told that it was refused
   */
  of<T>(work: Promise<T>, late?: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#ticker.start();
      const refuse = () => {
        late?.();
        reject(this.#refusal());
      };
      const wait: Wait = { endsAtMs: this.#ticker.nowMs() + this.#ms, refuse };
      this.#waits.add(wait);
      work.then(
        (value) => {
          this.#waits.delete(wait);
          resolve(value);
        },
        (reason) => {
          this.#waits.delete(wait);
          reject(reason);
        },
      );
    });
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
 * Looks at something every so often, by a clock that stands still when the process does (stopped, frozen, moved to
 * another machine): else all that was under way would be refused when it goes on, although it had been answered. Time in
 * which it worked counts, however long it looked at nothing.
 */
export class Ticker {
  readonly #everyMs: number;
  readonly #look: () => void;
  #timer: ReturnType<typeof setInterval> | undefined;
  #readAtMs = 0;
  /** What the process had worked at the last look, all its threads. */
  #workedMs = 0;
  #stoodStillMs = 0;

  constructor(everyMs: number, look: () => void) {
    this.#everyMs = everyMs;
    this.#look = look;
  }

  /** Begins, unless it has begun. */
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

  /** Milliseconds by its clock; to be asked while it runs, and at each look. */
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
