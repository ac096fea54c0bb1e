import { Fault } from "../fault.ts";

/**
 * A narrow way in for work that strangers can ask for, such as looking up a key never seen before: a few at once, a
 * short queue, and beyond that a refusal at once, so that strangers never hold more of the database than this.
 */
export class Lane {
  readonly #atOnceMax: number;
  readonly #queuedMax: number;
  readonly #queue: (() => void)[] = [];
  readonly #shared = new Map<string, { users: number; readonly turn: Promise<void> }>();
  #running = 0;
  #refused = 0;

  constructor(atOnceMax: number = 4, queuedMax: number = 64) {
    this.#atOnceMax = atOnceMax;
    this.#queuedMax = queuedMax;
  }

  /** How often it was full. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Runs the work when its turn comes, first come first served, and hands on what it returns or throws. Work must bound
   * its own time; what waited too long for its caller finds out by looking when it starts.
   *
   * @param key - work for one key shares one place: a key that is new here may come with all of its requests at once
   * @throws Fault `rate_limited`, the work not begun, when the queue is full
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    let place = this.#shared.get(key);
    if (!place || place.users >= sharersMax) {
      place = { users: 0, turn: this.#turn() };
      this.#shared.set(key, place);
    }
    place.users += 1;
    let taken = false;
    try {
      await place.turn;
      taken = true;
      return await work();
    } finally {
      place.users -= 1;
      if (place.users === 0) {
        if (this.#shared.get(key) === place) this.#shared.delete(key);
        if (taken) this.#free();
      }
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < this.#atOnceMax) {
      this.#running += 1;
      return;
    }
    if (this.#queue.length >= this.#queuedMax) {
      this.#refused += 1;
      throw new Fault("rate_limited", `the lane is full: ${this.#running} at work, ${this.#queue.length} waiting`, {
        retryAfterS: 1,
      });
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve));
  }

  /** The place goes straight to the next in line: were it counted free in between, a newcomer could slip in. */
  #free(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#running -= 1;
  }
}

/** More than any bucket holds. */
const sharersMax = 1024;
