import { Fault } from "../fault.ts";

/**
 * A narrow way in for work that strangers can ask for, such as looking up a key never seen before: a few at once, a
 * short queue, and beyond that a refusal at once, so that strangers never hold more of the database than this.
 */
export class Lane {
  readonly #atOnceMax: number;
  readonly #queuedMax: number;
  readonly #queue: (() => void)[] = [];
  #running = 0;

  constructor(atOnceMax: number = 4, queuedMax: number = 64) {
    this.#atOnceMax = atOnceMax;
    this.#queuedMax = queuedMax;
  }

  /**
   * Runs the work when its turn comes, first come first served, and hands on what it returns or throws. Work must bound
   * its own time; what waited too long for its caller finds out by looking when it starts.
   *
   * @throws Fault `rate_limited`, the work not begun, when the queue is full
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnceMax) this.#running++;
    else await this.#turn();
    try {
      return await work();
    } finally {
      // The place goes straight to the next in line: were it counted free in between, a newcomer could slip in.
      const next = this.#queue.shift();
      if (next) next();
      else this.#running--;
    }
  }

  #turn(): Promise<void> {
    if (this.#queue.length >= this.#queuedMax) {
      throw new Fault("rate_limited", `the lane is full: ${this.#running} at work, ${this.#queue.length} waiting`, {
        retryAfterS: 1,
      });
    }
    return new Promise((resolve) => this.#queue.push(resolve));
  }
}
