import { Fault } from "../fault.ts";

/**
 * A bound on the bytes that all requests together hold at once. First come first served: a small request never
 * overtakes a large one that waits, or a stream of small ones could keep it waiting for ever.
 */
export class ByteBudget {
  readonly #bytesMax: number;
  readonly #waiting = new Set<Waiter>();
  #bytesTaken = 0;

  constructor(bytesMax: number = 64 * 1024 * 1024) {
    this.#bytesMax = bytesMax;
  }

  /** The bytes in use now. */
  get bytesTaken(): number {
    return this.#bytesTaken;
  }

  /**
   * Waits until that many bytes are free and takes them.
   *
   * @param bytes - a whole number, at most the whole budget: bounds on requests are judged before this
   * @param signal - ends the waiting; what was already granted is not taken back
   * @param deadlineMs - the longest wait; none when left out
   * @returns gives the bytes back; calling it again does nothing
   * @throws Fault `unavailable` when aborted or not served in time
   */
  async acquire(bytes: number, signal?: AbortSignal, deadlineMs?: number): Promise<() => void> {
    if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > this.#bytesMax) {
      throw new RangeError(`${bytes} bytes were asked of a budget of ${this.#bytesMax}`);
    }
    if (signal?.aborted) throw new Fault("unavailable", "the request ended before its bytes were free");
    if (this.#waiting.size > 0 || !this.#fits(bytes)) await this.#turn(bytes, signal, deadlineMs);
    else this.#bytesTaken += bytes;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#bytesTaken -= bytes;
      this.#admit();
    };
  }

  #turn(bytes: number, signal: AbortSignal | undefined, deadlineMs: number | undefined): Promise<void> {
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
        grant: () => {
          settle();
          resolve();
        },
      };
      signal?.addEventListener("abort", aborted);
      this.#waiting.add(waiter);
    });
  }

  /** Serves those at the head of the line for as long as they fit. The bytes are taken here, not when the waiter wakes. */
  #admit(): void {
    for (const waiter of this.#waiting) {
      if (!this.#fits(waiter.bytes)) return;
      this.#waiting.delete(waiter);
      this.#bytesTaken += waiter.bytes;
      waiter.grant();
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytesTaken + bytes <= this.#bytesMax;
  }
}

type Waiter = { readonly bytes: number; readonly grant: () => void };
