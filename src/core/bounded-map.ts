/** A map with room for `max` entries, or for entries of that size together. Those that were set first go first. */
export class BoundedMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #max: number;
  readonly #sizeOf: (value: Value) => number;
  #taken = 0;

  constructor(max: number, sizeOf: (value: Value) => number = () => 1) {
    this.#max = max;
    this.#sizeOf = sizeOf;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  /** Makes the entry the newest. A Map iterates in the order of insertion, so its first entry is the oldest. */
  set(key: string, value: Value): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#taken += this.#sizeOf(value);
    while (this.#taken > this.#max) this.delete(this.#entries.keys().next().value as string);
  }

  delete(key: string): void {
    const value = this.#entries.get(key);
    if (value !== undefined && this.#entries.delete(key)) this.#taken -= this.#sizeOf(value);
  }

  deleteIf(isStale: (value: Value) => boolean): void {
    this.#entries.forEach((value, key) => {
      if (isStale(value)) this.delete(key);
    });
  }
}
