import { RedisClient } from "bun";
import { policies } from "../limit/bucket.ts";
import { connectDeadlineMs, type SharedBuckets, type SharedDecision } from "./shared-limiter.ts";

/**
 * Buckets in Redis or Valkey, 7 or newer. Each bucket is one key, which expires when the bucket is full. The time is
 * that of the store. Buckets of unrecognized keys are not stored, because made-up keys would fill the store.
 */
export function redisBuckets(url: string): SharedBuckets {
  let client: RedisClient | undefined;
  return {
    take: async (keyId, bucket) => {
      if (!client) throw new Error("not connected");
      const { capacity, intervalUs } = policies[bucket];
      const key = `keyhole:bucket:${bucket}:${keyId}`;
      return parseDecision(await client.send("EVAL", [script, "1", key, String(capacity), String(intervalUs)]));
    },
    connect: async () => {
      client?.close();
      // Bun's client reconnects after some failures and not after others, so every attempt makes a new client.
      const options = { connectionTimeout: connectDeadlineMs, autoReconnect: false, enableOfflineQueue: false };
      const fresh = new RedisClient(url, options);
      client = fresh;
      await fresh.connect();
      // Refuses a store that runs no scripts here, and not at each request.
      await fresh.send("EVAL", ["return redis.call('TIME')", "0"]);
    },
    close: () => client?.close(),
  };
}

/**
 * {@link take} of `limit/bucket.ts` in whole microseconds, exact in Lua's doubles until the year 2255 (`tostring` would
 * round). If the clock is set back, a bucket is full again after at most the time that an empty one needs.
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

function parseDecision(reply: unknown): SharedDecision {
  if (Array.isArray(reply) && reply.every((part) => Number.isSafeInteger(part))) {
    const [allowed, first, remaining] = reply as number[];
    if (allowed === 0 && first !== undefined) return { allowed: false, retryAfterUs: first };
    if (first !== undefined && remaining !== undefined) return { allowed: true, fullAfterUs: first, remaining };
  }
  throw new Error("unexpected reply from the store");
}
