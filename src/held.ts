import type { inspect } from "node:util";

let apply: <T>(render: Render<T>, value: T) => Body;
let renderInside: <T>(held: Held<T>, render: Render<T>) => Body;

/**
 * An opened value that may not leave yet. It prints as `[redacted]`, and nothing hands its inside to a callback: only
 * `audit/release.ts` makes a body of it, with a {@link Render}, and returns that body once the entries that name the
 * value are on record. A forgotten audit does not compile.
 */
export class Held<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  static {
    renderInside = (held, render) => apply(render, held.#value);
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
 * How a value becomes a body. Only files of `render/` make one, and only {@link renderHeld} runs it, so no other code is
 * ever handed a value. A render that refuses throws a Fault.
 */
export class Render<T> {
  readonly #render: (value: T) => Body;

  constructor(render: (value: T) => Body) {
    this.#render = render;
  }

  static {
    apply = (render, value) => render.#render(value);
  }
}

/** A body as it leaves: whole, or in pieces that are made as fast as the client takes them. */
export type Body = {
  readonly content: string | Uint8Array | Iterable<string | Uint8Array>;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Makes a body of a held value. For `audit/release.ts` alone: a test reads the imports of every file. */
export const renderHeld: typeof renderInside = (held, render) => renderInside(held, render);
