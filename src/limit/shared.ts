import { RedisClient } from "bun";
import { type BucketName, type Decision, policies } from "./bucket.ts";
import type { Limiter } from "./limiter.ts";

/** Buckets that several processes share: a store by the network, or the process that started this one. */
export type SharedBuckets = {
  /** Takes one token. Rejects where the buckets cannot be reached; may never settle. */
  readonly take: (keyId: string, bucket: BucketName) => Promise<SharedDecision>;
  /** Connects, anew where it was connected before. Rejects where nobody answers; may never settle. */
  readonly connect: () => Promise<void>;
  readonly close: () => void;
};

/** As {@link Decision}, but in time from now: the processes have no clock in common. */
export type SharedDecision =
  | { readonly allowed: true; readonly fullAfterUs: number; readonly remaining: number }
  | { readonly allowed: false; readonly retryAfterUs: number };

/** Told once when shared buckets are lost and once when they are back. */
export type SharedNews = { readonly event: "limiter"; readonly shared: boolean; readonly reason?: string };

/** A store that is well answers in a fraction of this; the request must not wait longer for one that is not. */
export const sharedDeadlineMs = 75;
const connectDeadlineMs = 1000;
const reconnectEveryMs = 250;

/**
 * Shared buckets with this process's own behind them. When the shared ones do not answer, every request is judged by
 * the own ones, at once, until they do again. What the shared ones allowed here is taken from the own ones too, so a
 * key at its limit gets nothing more from this process when the store goes away.
 */
export class SharedLimiter {
  readonly #buckets: SharedBuckets;
  readonly #own: Limiter;
  readonly #tell: (news: SharedNews) => void;
  #away = true;
  #losses = 0;
  #closed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(buckets: SharedBuckets, own: Limiter, tell: (news: SharedNews) => void) {
    this.#buckets = buckets;
    this.#own = own;
    this.#tell = tell;
  }

  /** Whether each process counts for itself at this moment. */
  get away(): boolean {
    return this.#away;
  }

  /** How often the shared buckets were lost. */
  get losses(): number {
    return this.#losses;
  }

  /** Connects for the first time. Where that fails it tells so, and goes on trying. */
  async open(): Promise<void> {
    try {
      await within(connectDeadlineMs, this.#buckets.connect());
      this.#away = false;
    } catch (error) {
      this.#lose(error);
    }
  }

  /**
   * Takes one token.
   * @param nowUs - monotonic µs, as for {@link Limiter.take}
   * @returns a promise only where somebody else is asked; it settles within {@link sharedDeadlineMs} and never rejects
   */
  take(keyId: string, bucket: BucketName, nowUs: number): Decision | Promise<Decision> {
    return this.#away ? this.#own.take(keyId, bucket, nowUs) : this.#ask(keyId, bucket, nowUs);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#buckets.close();
  }

  async #ask(keyId: string, bucket: BucketName, nowUs: number): Promise<Decision> {
    try {
      const decision = await within(sharedDeadlineMs, this.#buckets.take(keyId, bucket));
      if (!decision.allowed) return decision;
      this.#own.take(keyId, bucket, nowUs);
      return { allowed: true, fullAtUs: nowUs + decision.fullAfterUs, remaining: decision.remaining };
    } catch (error) {
      if (!this.#away) this.#lose(error);
      return this.#own.take(keyId, bucket, nowUs);
    }
  }

  #lose(error: unknown): void {
    this.#away = true;
    this.#losses += 1;
    this.#tell({ event: "limiter", shared: false, reason: reasonOf(error) });
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(async () => {
      try {
        await within(connectDeadlineMs, this.#buckets.connect());
        if (this.#closed) return;
        this.#away = false;
        this.#tell({ event: "limiter", shared: true });
      } catch {
        this.#retryLater();
      }
    }, reconnectEveryMs);
  }
}

/**
 * Buckets in Redis or Valkey, 7 or newer. One key for each bucket that is not full, which expires when it is; the
 * server's clock alone counts. Buckets of unrecognized keys are not kept here: whoever makes up keys would fill it.
 *
 * @param url - `redis://` or `rediss://`
 */
export function redisBuckets(url: string): SharedBuckets {
  let client: RedisClient | undefined;
  return {
    take: async (keyId, bucket) => {
      if (!client) throw new Error("not connected");
      const { capacity, intervalUs } = policies[bucket];
      const rest = ["1", `keyhole:bucket:${bucket}:${keyId}`, String(capacity), String(intervalUs)];
      const current = client;
      const reply = await current.send("EVALSHA", [scriptSha, ...rest]).catch((error: unknown) => {
        if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
        return current.send("EVAL", [script, ...rest]);
      });
      return decisionOf(reply);
    },
    connect: async () => {
      client?.close();
      // What a client does on its own after a failure differs from failure to failure: each attempt is a new one.
      const fresh = new RedisClient(url, {
        connectionTimeout: connectDeadlineMs,
        autoReconnect: false,
        enableOfflineQueue: false,
      });
      client = fresh;
      await fresh.connect();
      await fresh.send("SCRIPT", ["LOAD", script]);
    },
    close: () => client?.close(),
  };
}

/**
 * {@link take} of `bucket.ts`, in whole microseconds: exact in Lua's doubles until the year 2255. `tostring` would
 * round them. A clock that was set back leaves at most a full bucket's worth to wait for.
 */
const script = `local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local capacity, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = math.min(tonumber(redis.call('GET', KEYS[1]) or 0), now + capacity * interval)
local next = math.max(full, now) + interval
local spare = now + capacity * interval - next
if spare < 0 then return {0, -spare} end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000))
return {1, next - now, math.floor(spare / interval)}`;
const scriptSha = new Bun.CryptoHasher("sha1").update(script).digest("hex");

function decisionOf(reply: unknown): SharedDecision {
  if (Array.isArray(reply) && reply.every((part) => Number.isSafeInteger(part))) {
    const [allowed, first, remaining] = reply as number[];
    if (allowed === 0 && first !== undefined) return { allowed: false, retryAfterUs: first };
    if (first !== undefined && remaining !== undefined) return { allowed: true, fullAfterUs: first, remaining };
  }
  throw new Error("an answer that is none of the script's");
}

async function within<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    // Where this process itself stood still the answer may lie there unread: it gets a turn before it is given up.
    const giveUp = () => setImmediate(() => reject(new Error(`no answer within ${deadlineMs} ms`)));
    timer = setTimeout(giveUp, deadlineMs);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** The code of a failure, or the first word that the server says: its sentences may quote what it was sent. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === "string") return code;
  return typeof message === "string"
    ? (/^no answer within \d+ ms$|^[A-Z]{3,}/.exec(message)?.[0] ?? "failed")
    : "failed";
}
