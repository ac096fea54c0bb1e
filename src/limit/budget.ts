import { Fault } from "../core/fault.ts";

/**
 * A bound on the bytes that all requests hold at once, and on those of each holder (an API key). Serves waiters in
 * FIFO order, so that small requests cannot starve a large one. Waiters of a holder that is at its own bound go to the
 * back of the queue, so that one key cannot keep the front of it.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly holderBytesMax: number;
  readonly #waiting = new Set<Waiter>();
  readonly #held = new Map<string, number>();
  #bytesTaken = 0;

  constructor(bytesMax: number = 64 * 1024 * 1024, holderBytesMax: number = bytesMax) {
    this.#bytesMax = bytesMax;
    this.holderBytesMax = holderBytesMax;
  }

  get bytesTaken(): number {
    return this.#bytesTaken;
  }

  /** Takes bytes, at most {@link holderBytesMax}, if they are free and nobody waits for them. */
  take(bytes: number, holder: string): Share | undefined {
    if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > this.holderBytesMax) {
      throw new RangeError(`${bytes} bytes were asked of a budget that gives ${this.holderBytesMax} to one`);
    }
    const isFree = this.#waiting.size === 0 && this.#bytesTaken + bytes <= this.#bytesMax;
    if (!isFree || this.#isExhaustedFor(holder, bytes)) return undefined;
    return this.#grant(bytes, holder);
  }

  /**
   * Takes bytes as soon as they are free.
   * @param signal - ends the wait; it takes nothing back
   * @throws Fault `unavailable` if aborted or not served in time
   */
  async acquire(bytes: number, holder: string, signal?: AbortSignal, deadlineMs?: number): Promise<Share> {
    if (signal?.aborted) throw new Fault("unavailable", "the request ended before its bytes were free");
    const share = this.take(bytes, holder);
    if (share) return share;
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#waiting.delete(waiter);
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
      };
      const leave = (reason: string) => {
        settle();
        reject(new Fault("unavailable", `${reason} while waiting for ${bytes} bytes of the budget`));
        this.#admit();
      };
      const aborted = () => leave("the request ended");
      const timer = deadlineMs === undefined ? undefined : setTimeout(() => leave("time ran out"), deadlineMs);
      const grant = () => {
        settle();
        // In a turn of its own: the work that follows may keep the event loop busy.
        setImmediate(resolve, this.#grant(bytes, holder));
      };
      const waiter: Waiter = { bytes, holder, sinceMs: performance.now(), exhausted: false, grant };
      signal?.addEventListener("abort", aborted);
      this.#waiting.add(waiter);
      this.#admit();
    });
  }

  #admit(): void {
    const exhausted = new Set<string>();
    let blocked = false;
    for (const waiter of [...this.#waiting]) {
      const { bytes, holder } = waiter;
      waiter.exhausted = exhausted.has(holder) || this.#isExhaustedFor(holder, bytes);
      if (waiter.exhausted) {
        exhausted.add(holder);
        this.#waiting.delete(waiter);
        this.#waiting.add(waiter);
        continue;
      }
      blocked ||= this.#bytesTaken + bytes > this.#bytesMax;
      if (!blocked) waiter.grant();
    }
  }

  #grant(bytes: number, holder: string): Share {
    let held = 0;
    let released = false;
    const hold = (size: number) => {
      this.#bytesTaken += size - held;
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
    hold(bytes);
    return {
      get bytes() {
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

  #isExhaustedFor(holder: string, bytes: number): boolean {
    return (this.#held.get(holder) ?? 0) + bytes > this.holderBytesMax;
  }
}

/** Bytes that one request holds of a budget. */
export type Share = {
  readonly bytes: number;
  /** How long the first waiter has waited that these bytes could serve; 0 if there is none. */
  readonly waitedForMs: () => number;
  /** Corrects the number of bytes. Additional bytes are taken at once, because that memory is in use already. */
  readonly resize: (bytes: number) => void;
  /** Gives the bytes back; later calls do nothing. */
  readonly release: () => void;
};

type Waiter = {
  readonly bytes: number;
  readonly holder: string;
  readonly sinceMs: number;
  /** Whether it waits for its holder's own bound, not for memory. */
  exhausted: boolean;
  readonly grant: () => void;
};

/** Requests up to this size are small. */
export const smallBytesMax: number = 256 * 1024;

/**
 * The memory for what is opened, in sealed bytes. It is claimed before a statement of its own fetches them; what a lookup
 * brings on SQLite, up to 256 KiB of each set, is there before. A body of up to 256 KiB gives its share back as it is
 * handed to Bun, a larger one when it has been sent. Most requests are small. These have a budget of their own and never
 * wait behind large ones.
 */
export class MemoryBudget {
  readonly #small: ByteBudget;
  readonly #large: ByteBudget;

  /** By default three of the largest reads fit at once, and one key may hold five sixths of their memory. */
  constructor(
    smallBytes: number = 64 * 1024 * 1024,
    largeBytes: number = 30 * 1024 * 1024,
    largeBytesPerHolder: number = (largeBytes / 6) * 5,
  ) {
    this.#small = new ByteBudget(smallBytes);
    this.#large = new ByteBudget(largeBytes, largeBytesPerHolder);
  }

  get bytesTaken(): { readonly small: number; readonly large: number } {
    return { small: this.#small.bytesTaken, large: this.#large.bytesTaken };
  }

  /** Takes memory, if it is free. A read that is larger than one key's part takes all of that part. */
  take(bytes: number, holder: string): Share | undefined {
    const budget = this.#budgetOf(bytes);
    return budget.take(Math.min(bytes, budget.holderBytesMax), holder);
  }

  /** The same, as soon as it is free. @throws Fault `unavailable` if the client leaves or the wait takes too long */
  async claim(bytes: number, holder: string, signal: () => AbortSignal, deadlineMs: number): Promise<Share> {
    const budget = this.#budgetOf(bytes);
    return (
      this.take(bytes, holder) ?? budget.acquire(Math.min(bytes, budget.holderBytesMax), holder, signal(), deadlineMs)
    );
  }

  #budgetOf(bytes: number): ByteBudget {
    return bytes <= smallBytesMax ? this.#small : this.#large;
  }
}
