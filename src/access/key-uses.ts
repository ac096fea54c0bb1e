/** Last use is written at most once per key in this interval. */
export const writeIntervalMs = 60_000;

/** Collects the last uses of keys and writes them in batches. Requests never wait for it. */
export class KeyUses {
  readonly #write: (uses: ReadonlyMap<string, number>) => Promise<void>;
  #pending = new Map<string, number>();
  /** Last written use of each key, for one {@link writeIntervalMs}. */
  readonly #recentlyWritten = new Map<string, number>();
  #last = Promise.resolve();

  /** @param write - stores epoch milliseconds by key id; must ignore timestamps older than the stored one */
  constructor(write: (uses: ReadonlyMap<string, number>) => Promise<void>) {
    this.#write = write;
  }

  /** @param atMs - epoch milliseconds */
  note(keyId: string, atMs: number): void {
    this.#pending.set(keyId, atMs);
  }

  /**
   * Writes the pending uses, except of keys whose use was written within {@link writeIntervalMs}, after what is being
   * written. Never throws: a use that cannot be written stays pending, unless the key has a newer one.
   * @param all - whether to write all of them, at the end
   */
  flush(nowMs: number, all = false): Promise<void> {
    this.#last = this.#last.then(() => this.#flush(nowMs, all));
    return this.#last;
  }

  async #flush(nowMs: number, all: boolean): Promise<void> {
    const recent = this.#recentlyWritten;
    for (const [keyId, atMs] of recent) if (nowMs - atMs >= writeIntervalMs) recent.delete(keyId);
    const due = new Map<string, number>();
    for (const [keyId, atMs] of this.#pending) {
      if (!all && recent.has(keyId)) continue;
      due.set(keyId, atMs);
      this.#pending.delete(keyId);
    }
    if (due.size === 0) return;
    try {
      await this.#write(due);
      for (const [keyId, atMs] of due) recent.set(keyId, atMs);
    } catch {
      this.#pending = new Map([...due, ...this.#pending]);
    }
  }
}
