/**
 * A deadline for many waits of one length, kept by one timer: a timer for each would cost more than what most of them
 * wait for. A wait ends up to `everyMs` late.
 */
export class Deadline {
  readonly #ms: number;
  readonly #everyMs: number;
  readonly #refusal: () => Error;
  /** In the order of their beginning, which is that of their end. */
  readonly #waits = new Set<Wait>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** @param refusal - what a wait that takes too long is rejected with */
  constructor(ms: number, refusal: () => Error, everyMs = 100) {
    this.#ms = ms;
    this.#everyMs = everyMs;
    this.#refusal = refusal;
  }

  /** What the work comes to, or the refusal. */
  of<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const wait: Wait = { endsAtMs: performance.now() + this.#ms, reject };
      this.#waits.add(wait);
      this.#timer ??= setInterval(() => this.#sweep(), this.#everyMs);
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
    const now = performance.now();
    for (const wait of this.#waits) {
      if (wait.endsAtMs > now) return;
      this.#waits.delete(wait);
      wait.reject(this.#refusal());
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

type Wait = { readonly endsAtMs: number; readonly reject: (reason: Error) => void };
