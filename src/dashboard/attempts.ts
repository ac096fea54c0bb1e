import { randomBytes } from "node:crypto";
import { CompactEncrypt, compactDecrypt } from "jose";

/** An attempt to sign in: the person is at the identity provider. */
export type Attempt = {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Whether they must prove again who they are. */
  readonly again: boolean;
  /** What the cookie of the browser's session held, if it had one. */
  readonly session: string | undefined;
  /** The path that they asked for, with its query: where they go after it. */
  readonly page: string;
  readonly startedAt: number;
};

const attemptMs = 10 * 60_000;
const usedMax = 10_000;
const [algorithm, cipher] = ["dir", "A256GCM"];

/**
 * Attempts to sign in. Each travels in its browser's cookie, sealed under a key of this process, so a stranger who
 * begins many takes no memory and ends nobody else's.
 */
export class Attempts {
  readonly #now: () => number;
  readonly #key = randomBytes(32);
  /** When each attempt that signed somebody in began, by its state. */
  readonly #used = new Map<string, number>();

  /** @param now - epoch milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What the cookie holds. */
  seal(attempt: Attempt): Promise<string> {
    const sealing = new CompactEncrypt(Buffer.from(JSON.stringify(attempt)));
    return sealing.setProtectedHeader({ alg: algorithm, enc: cipher }).encrypt(this.#key);
  }

  /** The attempt in a cookie; undefined if this process did not seal it, or if it began ten minutes ago. */
  async open(cookie: string): Promise<Attempt | undefined> {
    const only = { keyManagementAlgorithms: [algorithm], contentEncryptionAlgorithms: [cipher] };
    const opened = await compactDecrypt(cookie, this.#key, only).catch(() => undefined);
    const attempt = opened && (JSON.parse(Buffer.from(opened.plaintext).toString()) as Attempt);
    return attempt && this.#isOpen(attempt.startedAt) ? attempt : undefined;
  }

  /**
   * Uses up an attempt. Only attempts that signed somebody in are remembered, so strangers cannot push them out.
   * @returns whether it was not used before
   */
  use({ state, startedAt }: Attempt): boolean {
    if (this.#used.has(state) || !this.#isOpen(startedAt)) return false;
    for (const [one, at] of this.#used) {
      if (this.#isOpen(at) && this.#used.size < usedMax) break;
      this.#used.delete(one);
    }
    this.#used.set(state, startedAt);
    return true;
  }

  #isOpen(startedAt: number): boolean {
    return this.#now() < startedAt + attemptMs;
  }
}
