import { Refused } from "../../core/refused.ts";

/**
 * A value as a set holds it. A value that is for machines only is sealed again, and no person gets it: whatever shows or
 * compares values asks {@link shown}, which refuses it.
 */
export class StoredValue {
  readonly #bytes: Uint8Array;
  readonly #hidden: string | undefined;

  /** @param hidden - the name of the item, if no person may read it */
  constructor(bytes: Uint8Array, hidden: string | undefined) {
    this.#bytes = bytes;
    this.#hidden = hidden;
  }

  /** What a person may read. @throws Refused `forbidden` if it is for machines only */
  shown(): string {
    if (this.#hidden !== undefined) throw forMachinesOnly(this.#hidden);
    return Buffer.from(this.#bytes).toString();
  }

  /** For what seals it again. It must not be shown, nor compared with what somebody gave. */
  unseen(): Uint8Array {
    return this.#bytes;
  }

  zero(): void {
    this.#bytes.fill(0);
  }
}

/** The refusal of a person's read. */
export function forMachinesOnly(name: string): Refused {
  const words = `${JSON.stringify(name)} is for machines only: keys and trusts read it, and no right shows it.`;
  return new Refused("forbidden", `${words} Write a new value over it, or delete it.`);
}
