import { Fault } from "../fault.ts";

/**
 * A bound on the bytes that all requests together hold at once. First come first served: a small request never
 * overtakes a large one that waits, or a stream of small ones could keep it waiting for ever. A holder (an API key) may
 * have no more than its part of the whole: one who waits for bytes of his own holds up nobody else, and comes after
 * those who were there when he gave them back; else a single key could line up for everything, again and again.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #holderBytesMax: number;
  readonly #waiting = new Set<Waiter>();
  readonly #held = new Map<string, number>();
  #bytesTaken = 0;

  constructor(bytesMax: number = 64 * 1024 * 1024, holderBytesMax: number = bytesMax) {
    this.#bytesMax = bytesMax;
    this.#holderBytesMax = holderBytesMax;
  }

  /** The bytes in use now. */
  get bytesTaken(): number {
    return this.#bytesTaken;
  }

  /**
   * Takes that many bytes if they are free and nobody is before this holder.
   *
   * @param bytes - a whole number, at most what one holder may have: bounds on requests are judged before this
   */
  take(bytes: number, holder: string): Share | undefined {
    if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > this.#holderBytesMax) {
      throw new RangeError(`${bytes} bytes were asked of a budget that gives ${this.#holderBytesMax} to one`);
    }
    if (this.#isExhaustedFor(holder, bytes) || !this.#fits(bytes) || this.#firstBefore(holder)) return undefined;
    return this.#grant(bytes, holder);
  }

  /**
   * Waits until that many bytes are free and takes them.
   *
   * @param bytes - as for {@link take}
   * @param signal - ends the waiting; what was already granted is not taken back
   * @param deadlineMs - the longest wait; none when left out
   * @throws Fault `unavailable` when aborted or not served in time
   */
  async acquire(bytes: number, holder: string, signal?: AbortSignal, deadlineMs?: number): Promise<Share> {
    if (signal?.aborted) throw new Fault("unavailable", "the request ended before its bytes were free");
    return this.take(bytes, holder) ?? this.#turn(bytes, holder, signal, deadlineMs);
  }

  #turn(
    bytes: number,
    holder: string,
    signal: AbortSignal | undefined,
    deadlineMs: number | undefined,
  ): Promise<Share> {
    return new Promise((resolve, reject) => {
      const leave = (reason: string) => {
        this.#waiting.delete(waiter);
        settle();
        reject(new Fault("unavailable", `${reason} while waiting for ${bytes} bytes of the budget`));
        this.#admit(); // the one that left may have been the one that did not fit
      };
      const aborted = () => leave("the request ended");
      const timer = deadlineMs === undefined ? undefined : setTimeout(() => leave("time ran out"), deadlineMs);
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
      };
      const waiter: Waiter = {
        bytes,
        holder,
        sinceMs: performance.now(),
        grant: (share) => {
          settle();
          // In a turn of its own: what follows may hold the event loop for a while, and many may be waiting.
          setImmediate(resolve, share);
        },
      };
      signal?.addEventListener("abort", aborted);
      this.#waiting.add(waiter);
    });
  }

  /** Serves those at the head of the line for as long as they fit. The bytes are taken here, not when the waiter wakes. */
  #admit(): void {
    for (const waiter of this.#servable()) {
      const { bytes, holder } = waiter;
      if (!this.#fits(bytes)) return;
      this.#waiting.delete(waiter);
      waiter.grant(this.#grant(bytes, holder));
    }
  }

  /**
   * Those who wait, in their order, but for who waits for bytes of his own: his later ones come no earlier than that.
   * @param holder - whose waiters are among them all the same
   */
  *#servable(holder?: string): Generator<Waiter> {
    const exhausted = new Set<string>();
    for (const waiter of this.#waiting) {
      if (waiter.holder === holder) yield waiter;
      else if (exhausted.has(waiter.holder)) continue;
      else if (this.#isExhaustedFor(waiter.holder, waiter.bytes)) exhausted.add(waiter.holder);
      else yield waiter;
    }
  }

  /** Before a holder gives bytes back: those of his who waited for just these come after all who waited for others'. */
  #requeue(holder: string): void {
    if (this.#waiting.size === 0) return;
    const own = [...this.#waiting].filter((waiter) => waiter.holder === holder);
    const from = own.findIndex(({ bytes }) => this.#isExhaustedFor(holder, bytes));
    for (const waiter of from < 0 ? [] : own.slice(from)) {
      this.#waiting.delete(waiter);
      this.#waiting.add(waiter);
    }
  }

  #grant(bytes: number, holder: string): Share {
    let held = bytes;
    let released = false;
    this.#change(holder, bytes);
    return {
      get bytes() {
        return held;
      },
      waitedForMs: () => {
        const first = this.#firstBefore(holder);
        return first === undefined ? 0 : performance.now() - first.sinceMs;
      },
      resize: (size) => {
        if (released) return;
        if (size < held) this.#requeue(holder);
        this.#change(holder, size - held);
        held = size;
        this.#admit();
      },
      release: () => {
        if (released) return;
        released = true;
        this.#requeue(holder);
        this.#change(holder, -held);
        held = 0;
        this.#admit();
      },
    };
  }

  /** The first of those who wait for bytes that this holder has or asks for. */
  #firstBefore(holder: string): Waiter | undefined {
    if (this.#waiting.size === 0) return undefined;
    const [first] = this.#servable(holder);
    return first;
  }

  #change(holder: string, bytes: number): void {
    this.#bytesTaken += bytes;
    const held = (this.#held.get(holder) ?? 0) + bytes;
    if (held === 0) this.#held.delete(holder);
    else this.#held.set(holder, held);
  }

  #isExhaustedFor(holder: string, bytes: number): boolean {
    return (this.#held.get(holder) ?? 0) + bytes > this.#holderBytesMax;
  }

  #fits(bytes: number): boolean {
    return this.#bytesTaken + bytes <= this.#bytesMax;
  }
}

/** Bytes that one request has of a budget. */
export type Share = {
  /** How many; 0 once they were given back. */
  readonly bytes: number;
  /** How long somebody has waited already whom these bytes could serve; 0 where nobody does. */
  readonly waitedForMs: () => number;
  /** Says what is really held. More than was asked for is taken at once, since it is there already: others wait for it. */
  readonly resize: (bytes: number) => void;
  /** Gives the bytes back; calling it again does nothing, nor does anything else from then on. */
  readonly release: () => void;
};

type Waiter = {
  readonly bytes: number;
  readonly holder: string;
  readonly sinceMs: number;
  readonly grant: (share: Share) => void;
};

/** Requests up to this size are small. */
export const smallBytesMax: number = 256 * 1024;

/**
 * The memory for all that is opened and not yet sent, in sealed bytes. It is asked for before bytes are fetched. Small
 * requests, which nearly all are, have a part of their own: they never wait behind large ones.
 */
export class MemoryBudget {
  readonly #small: ByteBudget;
  readonly #large: ByteBudget;
  readonly #largeBytesPerHolder: number;

  /** By default three of the largest reads fit at once, and most of them may be one key's. */
  constructor(
    smallBytes: number = 64 * 1024 * 1024,
    largeBytes: number = 30 * 1024 * 1024,
    largeBytesPerHolder: number = (largeBytes / 6) * 5,
  ) {
    this.#small = new ByteBudget(smallBytes);
    this.#large = new ByteBudget(largeBytes, largeBytesPerHolder);
    this.#largeBytesPerHolder = largeBytesPerHolder;
  }

  /** Bytes in use now. */
  get bytesTaken(): { readonly small: number; readonly large: number } {
    return { small: this.#small.bytesTaken, large: this.#large.bytesTaken };
  }

  /**
   * Takes memory at once if it is free, so that the usual read need not wait for a promise. A read that is larger than
   * one key's part takes all of that part.
   * @throws Fault `unavailable` if the client left or the wait took too long
   */
  claim(bytes: number, holder: string, signal: () => AbortSignal, deadlineMs: number): Share | Promise<Share> {
    const [budget, claimed] =
      bytes <= smallBytesMax ? [this.#small, bytes] : [this.#large, Math.min(bytes, this.#largeBytesPerHolder)];
    return budget.take(claimed, holder) ?? budget.acquire(claimed, holder, signal(), deadlineMs);
  }
}
