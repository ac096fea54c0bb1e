/**
 * The first of what may be more. Nobody gets the entries without saying what stands for the others, so a list that was
 * cut does not look whole.
 */
export class Cut<T> {
  readonly #entries: readonly T[];
  readonly #isWhole: boolean;

  constructor(entries: readonly T[], isWhole = true) {
    this.#entries = entries;
    this.#isWhole = isWhole;
  }

  /** The first ones, `max` at most. */
  first(max: number): Cut<T> {
    return new Cut(this.#entries.slice(0, max), this.#isWhole && this.#entries.length <= max);
  }

  /** The same list, with something else for each entry. */
  map<U>(draw: (entry: T) => U): Cut<U> {
    return new Cut(this.#entries.map(draw), this.#isWhole);
  }

  reversed(): Cut<T> {
    return new Cut(this.#entries.toReversed(), this.#isWhole);
  }

  /** The entries, and `more` if there may be others. */
  with<M>(more: M): readonly [entries: readonly T[], more: M | undefined] {
    return [this.#entries, this.#isWhole ? undefined : more];
  }
}
