/** A map that is bounded in bytes. The oldest goes first. */
export class Remembered<Value> {
  readonly #entries = new Map<string, { readonly value: Value; readonly bytes: number }>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  set(key: string, value: Value, bytes: number): void {
    this.#forget(key);
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }
}
