import { type Decision, policies, take } from "./bucket.ts";

/**
 * One bucket per presented text that is no valid key, in a table whose size never changes: sets of eight entries.
 *
 * | per entry | holds |
 * | --- | --- |
 * | `#fullAtUs`, f64 | the bucket's one number, exact in whole µs for 285 years; a u32 of ticks would either round, and `Retry-After` lie, or wrap within hours. 0 is an empty entry: full long ago |
 * | `#tagsLow`, u32, and `#tagsHigh`, u16 | 48 bits of the hash beside the set's: among 10⁷ keys one shares an entry by accident with a chance below 10⁻⁶ |
 *
 * That is 14 bytes an entry and 3.5 MiB in all. The hash is HMAC-SHA-256 under a secret of this process. A fast hash,
 * seeded or not, would let a caller search for texts that fall on another's entry and spend its tokens, or that fill
 * another's set and wipe its count. HMAC costs 0.2 µs a call (measured), and the table never holds what was presented.
 */
export class UnrecognizedLimiter {
  readonly #hmac: Bun.CryptoHasher;
  readonly #digest = new Uint8Array(64); // the runtime asks for room for its longest digest
  readonly #words = new Uint32Array(this.#digest.buffer);
  readonly #setMask: number;
  readonly #fullAtUs: Float64Array;
  readonly #tagsLow: Uint32Array;
  readonly #tagsHigh: Uint16Array;

  /**
   * @param secret - of this process, and of no other use
   * @param sets - a power of two; smaller tables are for tests
   */
  constructor(secret: Uint8Array = crypto.getRandomValues(new Uint8Array(32)), sets: number = 2 ** 15) {
    if (sets < 1 || sets > 2 ** 24 || !Number.isInteger(Math.log2(sets)))
      throw new RangeError("sets must be a power of two");
    this.#hmac = new Bun.CryptoHasher("sha256", secret);
    this.#setMask = sets - 1;
    this.#fullAtUs = new Float64Array(sets * ways);
    this.#tagsLow = new Uint32Array(sets * ways);
    this.#tagsHigh = new Uint16Array(sets * ways);
  }

  /** What the table occupies, now and always. */
  get bytes(): number {
    return this.#fullAtUs.byteLength + this.#tagsLow.byteLength + this.#tagsHigh.byteLength;
  }

  /**
   * Whether the next attempt with this text would pass. Changes nothing: a text never seen is allowed and stays unseen.
   *
   * @param nowUs - monotonic µs, a whole number
   */
  peek(presented: string, nowUs: number): Decision {
    const entry = this.#find(presented);
    return take(entry < 0 ? undefined : this.#fullAtUs[entry], policies.unrecognized, nowUs);
  }

  /**
   * Counts one attempt with this text, once it is known to be no valid key. Where its set is full, the entry that is
   * full again soonest makes room: forgetting it gives away the fewest tokens, and a key at its limit outlives a flood
   * of keys presented once.
   *
   * @param nowUs - monotonic µs, a whole number
   */
  take(presented: string, nowUs: number): Decision {
    const found = this.#find(presented);
    const decision = take(found < 0 ? undefined : this.#fullAtUs[found], policies.unrecognized, nowUs);
    if (decision.allowed) {
      const entry = found < 0 ? this.#claim() : found;
      this.#fullAtUs[entry] = decision.fullAtUs;
    }
    return decision;
  }

  /** The entry that holds this text, or -1. Leaves the text's hash in `#words`, for `#claim`. */
  #find(presented: string): number {
    this.#hmac.copy().update(presented).digest(this.#digest); // a copy spares the key's half of the work, 0.1 µs
    const first = this.#firstOfSet();
    const low = this.#words[1] as number;
    const high = (this.#words[2] as number) & 0xffff;
    for (let entry = first; entry < first + ways; entry++) {
      if (this.#tagsLow[entry] === low && this.#tagsHigh[entry] === high) return entry;
    }
    return -1;
  }

  /** Gives the oldest entry of the set to the text that `#find` has just not found. */
  #claim(): number {
    const first = this.#firstOfSet();
    let oldest = first;
    for (let entry = first + 1; entry < first + ways; entry++) {
      if ((this.#fullAtUs[entry] as number) < (this.#fullAtUs[oldest] as number)) oldest = entry;
    }
    this.#tagsLow[oldest] = this.#words[1] as number;
    this.#tagsHigh[oldest] = this.#words[2] as number;
    return oldest;
  }

  #firstOfSet(): number {
    return ((this.#words[0] as number) & this.#setMask) * ways;
  }
}

const ways = 8;
