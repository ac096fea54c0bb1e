import { Fault } from "../../core/fault.ts";

/**
 * A bounded queue for work that anybody can cause without a valid key, such as the first lookup of a key. Four run at
 * once, 64 wait in FIFO order, and the rest is refused. So strangers can occupy only a small part of the database.
 */
export class AdmissionQueue {
  readonly #runningMax: number;
  readonly #queuedMax: number;
  readonly #queue: (() => void)[] = [];
  readonly #slots = new Map<string, Slot>();
  #running = 0;
  /** How many calls were refused because the queue was full. */
  refused = 0;

  constructor(runningMax: number = 4, queuedMax: number = 64) {
    this.#runningMax = runningMax;
    this.#queuedMax = queuedMax;
  }

  /**
   * Runs the work when its turn comes. The work must bound its own time.
   * @param key - calls with the same key share one slot: a client may present a new key with all its requests at once
   * @throws Fault `rate_limited` if the queue is full and the work has not started; else what the work throws
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    let slot = this.#slots.get(key);
    if (!slot || slot.users >= slotUsersMax) {
      slot = { users: 0, turn: this.#turn() };
      this.#slots.set(key, slot);
    }
    slot.users += 1;
    let admitted = false;
    try {
      await slot.turn;
      admitted = true;
      return await work();
    } finally {
      slot.users -= 1;
      if (slot.users === 0) {
        if (this.#slots.get(key) === slot) this.#slots.delete(key);
        if (admitted) this.#release();
      }
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < this.#runningMax) {
      this.#running += 1;
      return;
    }
    if (this.#queue.length >= this.#queuedMax) {
      this.refused += 1;
      const message = `the admission queue is full: ${this.#running} running, ${this.#queue.length} waiting`;
      throw new Fault("rate_limited", message, { retryAfterS: 1 });
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve));
  }

  /** Hands the slot directly to the next waiter: if it were counted free first, a newcomer could take it. */
  #release(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#running -= 1;
  }
}

/** The calls that share one slot, and the promise of its turn. */
type Slot = { users: number; readonly turn: Promise<void> };

/** More than any bucket holds. */
const slotUsersMax = 1024;
