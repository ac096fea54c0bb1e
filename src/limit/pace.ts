/**
 * How fast a body must move while others wait for its memory: {@link bytesPerSMin} or as much as lets all of it leave in
 * {@link wholeWithinMs}, on average, with {@link patienceMs} of standing still at most. Bytes that move ahead of their
 * time earn nothing beyond that, or the megabytes that a socket swallows at once would buy a client who never reads half
 * a minute.
 *
 * Time is counted in looks, not by a clock: while the process itself stands still nobody can take anything of it.
 */
export class Pace {
  readonly #bytesPerS: number;
  #leftMs = patienceMs;

  /** @param bytes - of the whole body, about */
  constructor(bytes: number) {
    this.#bytesPerS = Math.max(bytesPerSMin, (bytes / wholeWithinMs) * 1000);
  }

  /** Notes bytes that have left. */
  moved(bytes: number): void {
    this.#leftMs = Math.min(patienceMs, Math.max(this.#leftMs, 0) + (bytes / this.#bytesPerS) * 1000);
  }

  /** To be called every {@link lookEveryMs}. @returns whether too little has moved */
  look(): boolean {
    this.#leftMs -= lookEveryMs;
    return this.#leftMs <= 0;
  }
}

export const bytesPerSMin: number = 512 * 1024;
/** Less than those who want files wait for memory. */
export const wholeWithinMs = 10_000;
export const patienceMs = 3000;
export const lookEveryMs = 250;
