import { Fault } from "./fault.ts";

/** Requests of strangers that wait for the same thing, such as a client's body. Beyond 1,024 they are refused at once. */
export class Waiters {
  #count = 0;

  /** @throws Fault `rate_limited` if too many wait already; else what the work throws */
  async wait<T>(work: () => Promise<T>): Promise<T> {
    if (this.#count >= waitersMax) throw new Fault("rate_limited", `${waitersMax} requests wait`, { retryAfterS: 1 });
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
    }
  }
}

/** With the largest body or token, these take some 16 MiB. */
const waitersMax = 1024;
