import { type Decision, policies, take } from "./bucket.ts";

/**
 * One bucket for each presented text that is not a valid key. The table has a fixed size and is set associative, with
 * eight entries in a set. It never holds the text. An entry takes 14 bytes, the table 3.5 MiB:
 *
 * | field | content |
 * | --- | --- |
 * | `#fullAtUs`, f64 | the bucket, exact in whole µs for 285 years; 0 is an empty entry |
 * | `#tagsLow`, u32, and `#tagsHigh`, u16 | 48 bits of the hash: of 10⁷ keys, two share an entry with a chance < 10⁻⁶ |
 *
 * The hash is HMAC-SHA-256 under a secret of this process, 0.2 µs (measured). With a faster hash, seeded or not, an
 * attacker could find texts that share a victim's entry and spend its tokens, or that evict it.
 */
export class UnrecognizedLimiter {
  readonly #hmac: Bun.CryptoHasher;
  readonly #digest = new Uint8Array(64); // the runtime requires room for its longest digest
  readonly #words = new Uint32Array(this.#digest.buffer);
  readonly #setMask: number;
  readonly #fullAtUs: Float64Array;
  readonly #tagsLow: Uint32Array;
  readonly #tagsHigh: Uint16Array;

  /**
   * @param secret - of this process, used for nothing else
   * @param sets - a power of two; smaller tables are for tests
   */
  constructor(secret: Uint8Array = crypto.getRandomValues(new Uint8Array(32)), sets: number = 2 ** 15) {
    this.#hmac = new Bun.CryptoHasher("sha256", secret);
    this.#setMask = sets - 1;
    this.#fullAtUs = new Float64Array(sets * ways);
    this.#tagsLow = new Uint32Array(sets * ways);
    this.#tagsHigh = new Uint16Array(sets * ways);
  }

  /** Whether the next attempt with this text would pass. Changes nothing. @param nowUs - monotonic whole µs */
  peek(presented: string, nowUs: number): Decision {
    return take(this.#fullAtUs[this.#find(presented)], policies.unrecognized, nowUs);
  }

  /**
   * Counts one attempt with this text, which was found not to be a valid key. If the set is full, the bucket that is
   * full again soonest is evicted. That gives away the fewest tokens, and a key at its limit survives a flood of
   * others.
   * @param nowUs - monotonic whole µs
   */
  take(presented: string, nowUs: number): Decision {
    const found = this.#find(presented);
    const decision = take(this.#fullAtUs[found], policies.unrecognized, nowUs);
    if (decision.allowed) this.#fullAtUs[found < 0 ? this.#claim() : found] = decision.fullAtUs;
    return decision;
  }

  /** The entry of this text, or -1, where nothing is. Leaves the text's hash in `#words`, for `#claim`. */
  #find(presented: string): number {
    this.#hmac.copy().update(presented).digest(this.#digest); // the copy saves hashing the secret, 0.1 µs
    const first = this.#firstOfSet();
    const low = this.#words[1] as number;
    const high = (this.#words[2] as number) & 0xffff;
    for (let entry = first; entry < first + ways; entry++) {
      if (this.#tagsLow[entry] === low && this.#tagsHigh[entry] === high) return entry;
    }
    return -1;
  }

  /** Gives the entry that is full again soonest to the text that `#find` did not find. */
  #claim(): number {
    const first = this.#firstOfSet();
    let soonest = first;
    for (let entry = first + 1; entry < first + ways; entry++) {
      if ((this.#fullAtUs[entry] as number) < (this.#fullAtUs[soonest] as number)) soonest = entry;
    }
    this.#tagsLow[soonest] = this.#words[1] as number;
    this.#tagsHigh[soonest] = this.#words[2] as number;
    return soonest;
  }

  #firstOfSet(): number {
    return ((this.#words[0] as number) & this.#setMask) * ways;
  }
}

const ways = 8;
