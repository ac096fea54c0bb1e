/** Writes when keys were last used, in epoch milliseconds by key id; an earlier moment than is there changes nothing. */
export type WriteKeyUses = (uses: ReadonlyMap<string, number>) => Promise<void>;

/** For so long what was written of a key stands for its later uses: a busy key is not worth a write a second. */
export const usesStandForMs = 60_000;

/** Notes when keys are used, and has it written now and then: what nobody waits for, and nobody needs to the second. */
export class KeyUses {
  readonly #write: WriteKeyUses;
  /** Not written yet. */
  #noted = new Map<string, number>();
  /** Written, and still standing for later ones. */
  readonly #standing = new Map<string, number>();

  constructor(write: WriteKeyUses) {
    this.#write = write;
  }

  /** @param atMs - epoch milliseconds */
  note(keyId: string, atMs: number): void {
    this.#noted.set(keyId, atMs);
  }

  /**
   * Writes the uses of keys of which nothing that still stands was written. Never throws: lost, a note costs nothing but
   * a later look at when a key was used.
   * @param all - those of the other keys too, because no other call will come
   */
  async flush(nowMs: number, all = false): Promise<void> {
    for (const [keyId, atMs] of this.#standing) if (nowMs - atMs >= usesStandForMs) this.#standing.delete(keyId);
    const noted = this.#noted;
    const due = new Map<string, number>();
    this.#noted = new Map();
    for (const [keyId, atMs] of noted) (all || !this.#standing.has(keyId) ? due : this.#noted).set(keyId, atMs);
    if (due.size === 0) return;
    try {
      await this.#write(due);
      for (const [keyId, atMs] of due) this.#standing.set(keyId, atMs);
    } catch {
      // See above.
    }
  }
}
