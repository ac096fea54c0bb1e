import type { inspect } from "node:util";

/**
 * An opened value that may not leave yet. It prints as `[redacted]` wherever text is made of it, and only
 * `audit/release.ts` takes it out, once the entries that name it are durable: a forgotten audit does not compile.
 */
export class Held<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** A `Held` of what `change` makes of the value: rendering happens before release, so a refusal there leaves no entry. */
  map<U>(change: (value: T) => U): Held<U> {
    return new Held(change(this.#value));
  }

  /** Takes the value out. Imported by `audit/release.ts` alone (the linter sees to it), through {@link letGo}. */
  static letGo<T>(held: Held<T>): T {
    return held.#value;
  }

  toString(): string {
    return "[redacted]";
  }

  toJSON(): string {
    return "[redacted]";
  }

  [Symbol.for("nodejs.util.inspect.custom") as typeof inspect.custom](): string {
    return "[redacted]";
  }
}

/** The value itself; see {@link Held}. */
export const letGo: <T>(held: Held<T>) => T = Held.letGo;
