/**
 * Finds clients that read a response too slowly. A body must move at {@link bytesPerSMin} on average, or fast enough
 * to be sent within {@link wholeWithinMs}, and may stall for at most {@link patienceMs}. A fast start earns no longer
 * stall, because a socket's buffer takes megabytes at once even if its client reads nothing.
 *
 * Time is counted in looks, not by a clock: while this process is stopped, no client can read.
 */
export class Pace {
  readonly #bytesPerS: number;
  #leftMs = patienceMs;

  /** @param bytes - approximate size of the whole body */
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

export const bytesPerSMin: number = 512 * 1024;
/** Less than requests wait for memory. */
export const wholeWithinMs = 10_000;
export const patienceMs = 3000;
export const lookEveryMs = 250;
