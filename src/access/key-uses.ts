/** Last use is written at most once per key in this interval. */
export const writeIntervalMs = 60_000;

/** Collects the last uses of keys and writes them in batches. Requests never wait for it. */
export class KeyUses {
  readonly #write: (uses: ReadonlyMap<string, number>) => Promise<void>;
  /** The newest use of each key and the newest that was written, until that is {@link writeIntervalMs} ago. */
  readonly #uses = new Map<string, { usedAt: number; writtenAt: number }>();
  #last = Promise.resolve();

  /** @param write - stores epoch milliseconds by key id; must ignore timestamps older than the stored one */
  constructor(write: (uses: ReadonlyMap<string, number>) => Promise<void>) {
    this.#write = write;
  }

  /** @param usedAt - epoch milliseconds */
  note(keyId: string, usedAt: number): void {
    const use = this.#uses.get(keyId);
    if (use === undefined) this.#uses.set(keyId, { usedAt, writtenAt: Number.NEGATIVE_INFINITY });
    else use.usedAt = usedAt;
  }

  /**
   * Flushes pending uses, at most one per key in {@link writeIntervalMs}. Never throws: a failed write is tried again,
   * unless the key has a newer use.
   * @param all - whether to write all of them, at the end
   */
  flush(nowMs: number, all = false): Promise<void> {
    this.#last = this.#last.then(() => this.#flush(nowMs, all));
    return this.#last;
  }

  async #flush(nowMs: number, all: boolean): Promise<void> {
    const due = new Map<string, number>();
    for (const [keyId, { usedAt, writtenAt }] of this.#uses) {
      const isRecent = nowMs - writtenAt < writeIntervalMs;
      if (usedAt > writtenAt && (all || !isRecent)) due.set(keyId, usedAt);
      else if (!isRecent) this.#uses.delete(keyId);
    }
    if (due.size === 0) return;
    try {
      await this.#write(due);
    } catch {
      return;
    }
    for (const [keyId, usedAt] of due) (this.#uses.get(keyId) as { writtenAt: number }).writtenAt = usedAt;
  }
}
