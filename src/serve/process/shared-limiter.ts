import { Deadline } from "../../core/deadline.ts";
import type { BucketName, Decision, Payer } from "../limit/bucket.ts";
import type { Limiter } from "../limit/limiter.ts";

/** Buckets that several processes share, in Redis or in the process that started this one. */
export type SharedBuckets = {
  /** Takes one token. Rejects if the buckets cannot be reached; may never settle. */
  readonly take: (payer: Payer, bucket: BucketName) => Promise<SharedDecision>;
  /** Connects or reconnects. Rejects if nobody answers; may never settle. */
  readonly connect: () => Promise<void>;
  readonly close: () => void;
};

/** A {@link Decision} with times relative to now, because the processes share no clock. */
export type SharedDecision =
  | { readonly allowed: true; readonly fullAfterUs: number; readonly remaining: number }
  | { readonly allowed: false; readonly retryAfterUs: number };

/** Logged when the shared buckets are lost, when they then refuse the sign-in, and when they are back. */
export type SharedNews = { readonly event: "limiter"; readonly shared: boolean; readonly reason?: string };

/** The longest that a request waits for the store. A healthy one answers in a fraction of this. */
export const sharedDeadlineMs = 75;
/** How late that may be. */
const lateMsMax = 10;
const reconnectEveryMs = 250;

/**
 * Shared buckets, with this process's own as the fallback. A token that a shared bucket gives is also taken from the
 * own one, so that a key at its limit gets no more from this process if the store is lost.
 */
export class SharedLimiter {
  readonly #buckets: SharedBuckets;
  readonly #own: Limiter;
  readonly #report: (news: SharedNews) => void;
  readonly #answer = deadline(sharedDeadlineMs);
  readonly #connection = deadline(connectDeadlineMs);
  /** Whether this process counts alone now. */
  away = true;
  /** Why it does, as a code. */
  reason = "";
  /** How often the shared buckets were lost. */
  losses = 0;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(buckets: SharedBuckets, own: Limiter, report: (news: SharedNews) => void) {
    this.#buckets = buckets;
    this.#own = own;
    this.#report = report;
  }

  /** Connects. If that fails, reports it and tries again until it succeeds. */
  open(): Promise<void> {
    return this.#connect().catch((error) => this.#lose(error));
  }

  /** As {@link Limiter.take}. Settles within some {@link sharedDeadlineMs} and never rejects. */
  async take(payer: Payer, bucket: BucketName, nowUs: number): Promise<Decision> {
    if (this.away) return this.#own.take(payer, bucket, nowUs);
    try {
      const decision = await this.#answer.of(this.#buckets.take(payer, bucket));
      if (!decision.allowed) return decision;
      this.#own.take(payer, bucket, nowUs);
      return { allowed: true, fullAtUs: nowUs + decision.fullAfterUs, remaining: decision.remaining };
    } catch (error) {
      if (!this.away) this.#lose(error);
      return this.#own.take(payer, bucket, nowUs);
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#buckets.close();
  }

  async #connect(): Promise<void> {
    await this.#connection.of(this.#buckets.connect());
    this.away = false;
  }

  #lose(error: unknown): void {
    this.away = true;
    this.losses += 1;
    this.#tell(reasonOf(error));
    this.#reconnectLater();
  }

  #tell(reason: string): void {
    this.reason = reason;
    this.#report({ event: "limiter", shared: false, reason });
  }

  #reconnectLater(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(async () => {
      try {
        await this.#connect();
        if (!this.#closed) this.#report({ event: "limiter", shared: true });
      } catch (error) {
        const reason = reasonOf(error);
        if (isRefusal(reason) && reason !== this.reason) this.#tell(reason);
        this.#reconnectLater();
      }
    }, reconnectEveryMs);
  }
}

function deadline(ms: number): Deadline {
  return new Deadline(ms, () => new Error(`no answer within ${ms} ms`), lateMsMax);
}

/** The first word of the store's message, whose rest may quote what it was sent, or the error's code. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const said = /^no answer within \d+ ms$|^[A-Z]{3,}\b/.exec(String(message))?.[0];
  return said ?? (typeof code === "string" ? code : "failed");
}

/** Whether the store is there and refuses the user, the password or a command. */
export function isRefusal(reason: string): boolean {
  return /^(?:NOAUTH|NOPERM|WRONGPASS)$/.test(reason);
}

export const connectDeadlineMs = 1000;
