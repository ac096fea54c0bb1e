/** Last use is written at most once per key in this interval. */
export const writeIntervalMs = 60_000;
const lastTriesMs = 1000;

/** Collects the last uses of keys and writes them in batches. Requests never wait for it. */
export class KeyUses {
  readonly #write: (uses: ReadonlyMap<string, number>) => Promise<void>;
  /** The newest use of each key and the newest that was written, until that is {@link writeIntervalMs} ago. */
  readonly #uses = new Map<string, { usedAt: number; writtenAt: number }>();
  #last: Promise<unknown> = Promise.resolve();

  /**
   * @param write - stores by key id how many milliseconds ago it was used, by the database's clock: one server whose clock
   *   is ahead must not date a key's last use for all. Must ignore uses older than the stored one
   */
  constructor(write: (uses: ReadonlyMap<string, number>) => Promise<void>) {
    this.#write = write;
  }

  /** @param usedAt - monotonic milliseconds */
  note(keyId: string, usedAt: number): void {
    const use = this.#uses.get(keyId);
    if (use === undefined) this.#uses.set(keyId, { usedAt, writtenAt: Number.NEGATIVE_INFINITY });
    else use.usedAt = usedAt;
  }

  /**
   * Writes pending uses, at most one per key in {@link writeIntervalMs}. Never throws: a failed write is tried again,
   * unless the key has a newer use.
   */
  async flush(nowMs: number): Promise<void> {
    await this.#after(() => this.#flush(nowMs));
  }

  /**
   * Writes all that is pending, at the end. For {@link lastTriesMs} it tries again: others may hold a file's lock.
   * @param now - monotonic milliseconds
   * @param pause - waits a little, such as 10 ms
   */
  async close(now: () => number, pause: () => Promise<unknown>): Promise<void> {
    const triesUntil = now() + lastTriesMs;
    while (!(await this.#after(() => this.#flush(now(), true))) && now() < triesUntil) await pause();
  }

  #after<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done;
    return done;
  }

  /** Returns whether everything that was due was written. */
  async #flush(nowMs: number, isLast = false): Promise<boolean> {
    const due = new Map<string, number>();
    for (const [keyId, { usedAt, writtenAt }] of this.#uses) {
      const isRecent = !isLast && nowMs - writtenAt < writeIntervalMs;
      if (usedAt > writtenAt && !isRecent) due.set(keyId, usedAt);
      else if (!isRecent) this.#uses.delete(keyId);
    }
    if (due.size === 0) return true;
    try {
      await this.#write(new Map([...due].map(([keyId, usedAt]) => [keyId, Math.max(0, Math.round(nowMs - usedAt))])));
    } catch {
      return false;
    }
    for (const [keyId, usedAt] of due) (this.#uses.get(keyId) as { writtenAt: number }).writtenAt = usedAt;
    return true;
  }
}
