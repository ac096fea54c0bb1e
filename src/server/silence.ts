/**
 * Counts the seconds in which nothing was heard from an event loop. It counts its own, so what stood still together
 * with it, as in a stopped container, is not found silent.
 */
export class Silence {
  #seconds = 0;

  heard(): void {
    this.#seconds = 0;
  }

  /** To be called every second. */
  isTooLong(): boolean {
    this.#seconds += 1;
    return this.#seconds > silentSecondsMax;
  }
}

/** How often an event loop says that it runs. */
export const aliveEveryMs = 1000;

/** The event that is logged before a silent process is ended. */
export function stuck(pid: number): Readonly<Record<string, unknown>> {
  return { event: "event_loop_stuck", pid, seconds: silentSecondsMax };
}

const silentSecondsMax = 10;
