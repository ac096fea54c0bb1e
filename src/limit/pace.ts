/**
 * Detects a response body that its client reads too slowly. The body must move at {@link bytesPerSMin} on average, or fast
 * enough to be sent within {@link wholeWithinMs}, and may stall for at most {@link patienceMs}. Reading ahead earns no more
 * than that, because a socket's buffer takes megabytes at once from a client that reads nothing.
 *
 * Time is the number of looks, not a clock: while the process itself is stopped, no client can read.
 */
export class Pace {
  readonly #bytesPerS: number;
  #leftMs = patienceMs;

  /** @param bytes - size of the whole body, approximately */
  constructor(bytes: number) {
    this.#bytesPerS = Math.max(bytesPerSMin, (bytes / wholeWithinMs) * 1000);
  }

  /** Notes bytes that were sent. */
  moved(bytes: number): void {
    this.#leftMs = Math.min(patienceMs, Math.max(this.#leftMs, 0) + (bytes / this.#bytesPerS) * 1000);
  }

  /** Must be called every {@link lookEveryMs}. @returns whether the body is too slow */
  look(): boolean {
    this.#leftMs -= lookEveryMs;
    return this.#leftMs <= 0;
  }
}

/** The slowest average rate. */
export const bytesPerSMin: number = 512 * 1024;
/** The longest time that a large body may take. Shorter than the time that requests wait for memory. */
export const wholeWithinMs = 10_000;
/** The longest stall. */
export const patienceMs = 3000;
/** The interval of {@link Pace.look}. */
export const lookEveryMs = 250;
