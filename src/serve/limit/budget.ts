import { Fault } from "../../core/fault.ts";

/**
 * A bound on what all requests hold at once, such as bytes, and on the part of each holder (an API key). Serves waiters
 * in FIFO order, so that small requests cannot starve a large one. Waiters of a holder that is at its own bound go to the
 * back of the queue, so that one key cannot keep the front of it.
 */
export class Budget {
  readonly #max: number;
  readonly holderMax: number;
  readonly #ownRetryAfterS: number | undefined;
  readonly #waiting = new Set<Waiter>();
  readonly #held = new Map<string, number>();
  taken = 0;

  /**
   * @param holderMax - of one holder
   * @param ownRetryAfterS - when a holder has room again that waited for its own part in vain, if that is known: its
   *   requests are then refused as too many, since nobody else is the cause
   */
  constructor(max: number, holderMax: number = max, ownRetryAfterS?: number) {
    this.#max = max;
    this.holderMax = holderMax;
    this.#ownRetryAfterS = ownRetryAfterS;
  }

  /** Takes an amount, or all of a holder's part if that is less: at once if it is free, else as soon as it is. */
  claim(amount: number, holder: string, deadlineMs: number, signal?: () => AbortSignal): Share | Promise<Share> {
    const some = Math.min(amount, this.holderMax);
    return this.take(some, holder) ?? this.acquire(some, holder, signal?.(), deadlineMs);
  }

  /** Takes an amount, at most {@link holderMax}, if it is free and nobody waits for it. */
  take(amount: number, holder: string): Share | undefined {
    if (!Number.isSafeInteger(amount) || amount < 0 || amount > this.holderMax) {
      throw new RangeError(`${amount} were asked of a budget that gives ${this.holderMax} to one`);
    }
    const isFree = this.#waiting.size === 0 && this.taken + amount <= this.#max;
    if (!isFree || this.#isExhaustedFor(holder, amount)) return undefined;
    return this.#grant(amount, holder);
  }

  /**
   * Takes an amount as soon as it is free.
   * @param signal - ends the wait; it takes nothing back
   * @throws Fault `unavailable` if aborted or not served in time; `rate_limited` if it waited for its own part alone, and
   *   it is known when that is free
   */
  async acquire(amount: number, holder: string, signal?: AbortSignal, deadlineMs?: number): Promise<Share> {
    if (signal?.aborted) throw new Fault("unavailable", "the request ended before its part of the budget was free");
    const share = this.take(amount, holder);
    if (share) return share;
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#waiting.delete(waiter);
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
      };
      const leave = (reason: string, retryAfterS?: number) => {
        settle();
        const words = `${reason} while waiting for ${amount} of ${waiter.exhausted ? `the part of ${holder}` : "the budget"}`;
        reject(retryAfterS ? new Fault("rate_limited", words, { retryAfterS }) : new Fault("unavailable", words));
        this.#admit();
      };
      const aborted = () => leave("the request ended");
      const late = () => leave("time ran out", waiter.exhausted ? this.#ownRetryAfterS : undefined);
      const timer = deadlineMs === undefined ? undefined : setTimeout(late, deadlineMs);
      const grant = () => {
        settle();
        // In a turn of its own: the work that follows may keep the event loop busy.
        setImmediate(resolve, this.#grant(amount, holder));
      };
      const waiter: Waiter = { amount, holder, sinceMs: performance.now(), exhausted: false, grant };
      signal?.addEventListener("abort", aborted);
      this.#waiting.add(waiter);
      this.#admit();
    });
  }

  #admit(): void {
    const exhausted = new Set<string>();
    let blocked = false;
    for (const waiter of [...this.#waiting]) {
      const { amount, holder } = waiter;
      waiter.exhausted = exhausted.has(holder) || this.#isExhaustedFor(holder, amount);
      if (waiter.exhausted) {
        exhausted.add(holder);
        this.#waiting.delete(waiter);
        this.#waiting.add(waiter);
        continue;
      }
      blocked ||= this.taken + amount > this.#max;
      if (!blocked) waiter.grant();
    }
  }

  #grant(amount: number, holder: string): Share {
    let held = 0;
    let released = false;
    const hold = (size: number) => {
      this.taken += size - held;
      const all = (this.#held.get(holder) ?? 0) + size - held;
      if (all === 0) this.#held.delete(holder);
      else this.#held.set(holder, all);
      held = size;
    };
    const resize = (size: number) => {
      if (released) return;
      hold(size);
      if (this.#waiting.size > 0) this.#admit();
    };
    hold(amount);
    return {
      get amount() {
        return held;
      },
      waitedForMs: () => {
        const first = [...this.#waiting].find((waiter) => waiter.holder === holder || !waiter.exhausted);
        return first ? performance.now() - first.sinceMs : 0;
      },
      resize,
      release: () => {
        resize(0);
        released = true;
      },
    };
  }

  #isExhaustedFor(holder: string, amount: number): boolean {
    return (this.#held.get(holder) ?? 0) + amount > this.holderMax;
  }
}

/** What one request holds of a budget. */
export type Share = {
  readonly amount: number;
  /** How long the first waiter has waited that this share could serve; 0 if there is none. */
  readonly waitedForMs: () => number;
  /** Corrects the amount. What is added is taken at once, because it is in use already. */
  readonly resize: (amount: number) => void;
  /** Gives it back; later calls do nothing. */
  readonly release: () => void;
};

type Waiter = {
  readonly amount: number;
  readonly holder: string;
  readonly sinceMs: number;
  /** Whether it waits for its holder's own part. */
  exhausted: boolean;
  readonly grant: () => void;
};

/**
 * Room for audit entries, half of it for one key at most. A wait for it leaves half of the deadline to write them, and
 * whatever a key has there has ended after all of it.
 */
export function entriesRoom(
  entriesMax: number,
  deadlineMs: number,
): (entries: number, key: string) => Share | Promise<Share> {
  const room = new Budget(entriesMax, entriesMax / 2, Math.ceil(deadlineMs / 1000));
  return (entries, key) => room.claim(entries, key, deadlineMs / 2);
}

/** Requests up to this size are small. */
export const smallBytesMax: number = 256 * 1024;

/**
 * The memory for what is opened, in sealed bytes. It is claimed before a statement of its own fetches them; what a lookup
 * brings on SQLite, up to 256 KiB of each set, is there before. A body of up to 256 KiB gives its share back as it is
 * handed to Bun, a larger one when it has been sent. Most requests are small. These have a budget of their own and never
 * wait behind large ones.
 */
export class MemoryBudget {
  readonly #small: Budget;
  readonly #large: Budget;

  /** By default three of the largest reads fit at once, and one key may hold five sixths of their memory. */
  constructor(
    smallBytes: number = 64 * 1024 * 1024,
    largeBytes: number = 30 * 1024 * 1024,
    largeBytesPerHolder: number = (largeBytes / 6) * 5,
  ) {
    this.#small = new Budget(smallBytes);
    this.#large = new Budget(largeBytes, largeBytesPerHolder);
  }

  get bytesTaken(): { readonly small: number; readonly large: number } {
    return { small: this.#small.taken, large: this.#large.taken };
  }

  /** Takes memory, if it is free. A read that is larger than one key's part takes all of that part. */
  take(bytes: number, holder: string): Share | undefined {
    const budget = this.#budgetOf(bytes);
    return budget.take(Math.min(bytes, budget.holderMax), holder);
  }

  /** The same, as soon as it is free. @throws Fault `unavailable` if the client leaves or the wait takes too long */
  async claim(bytes: number, holder: string, signal: () => AbortSignal, deadlineMs: number): Promise<Share> {
    return this.#budgetOf(bytes).claim(bytes, holder, deadlineMs, signal);
  }

  #budgetOf(bytes: number): Budget {
    return bytes <= smallBytesMax ? this.#small : this.#large;
  }
}
