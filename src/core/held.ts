import type { inspect } from "node:util";

let inside: <T>(held: Held<T>) => T;

/**
 * An opened value that may not leave yet. It prints as `[redacted]`, and no method returns the value or passes it to a
 * callback. Only `record/release.ts` makes a body of it, and returns that body once its audit entries are on record. A
 * forgotten audit does not compile.
 *
 * @example
 * const held = new Held(opened);
 * const body: Body = await release(journal, entries, held, variablesJson("production"));
 */
export class Held<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  static {
    inside = (held) => held.#value;
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

/**
 * How a value becomes a body, or a Fault. Only a kind's `render.ts` makes one: a test reads the imports of every file.
 */
export class Render<T> {
  readonly render: (value: T) => Body;
  readonly entriesFor: (value: T) => number;

  /** @param entriesFor - how many audit entries a value needs; one unless given */
  constructor(render: (value: T) => Body, entriesFor: (value: T) => number = () => 1) {
    this.render = render;
    this.entriesFor = entriesFor;
  }
}

/** A response's body: whole, or in pieces that are made as fast as the client takes them. */
export type Body = {
  readonly content: string | Uint8Array | Iterable<string | Uint8Array>;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Makes a body of a held value. Only `record/release.ts` may import it: a test reads the imports of every file. */
export function renderHeld<T>(held: Held<T>, { render, entriesFor }: Render<T>, entryCount: number): Body {
  const value = inside(held);
  const needed = entriesFor(value);
  if (entryCount !== needed) throw new Error(`${entryCount} audit entries for a value that needs ${needed}`);
  return render(value);
}
