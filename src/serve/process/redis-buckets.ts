import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { RedisClient } from "bun";
import { policyOf } from "../limit/bucket.ts";
import { connectDeadlineMs, type SharedBuckets, type SharedDecision } from "./shared-limiter.ts";

/**
 * Buckets in Redis or Valkey, 7 or newer. Each bucket is one key, which expires when the bucket is full. The time is
 * that of the store. Buckets of unrecognized keys are not stored, because made-up keys would fill the store.
 */
export function redisBuckets(url: string): SharedBuckets {
  let client: RedisClient | undefined;
  return {
    take: async ({ keyId, rate }, bucket) => {
      if (!client) throw new Error("not connected");
      const { capacity, intervalUs } = policyOf(bucket, rate);
      const key = `keyhole:bucket:${bucket}:${keyId}`;
      return parseDecision(await client.send("EVAL", [script, "1", key, String(capacity), String(intervalUs)]));
    },
    connect: async () => {
      client?.close();
      // Bun's client reconnects after some failures and not after others, so every attempt makes a new client.
      const options = { connectionTimeout: connectDeadlineMs, autoReconnect: false, enableOfflineQueue: false };
      // Otherwise NODE_TLS_REJECT_UNAUTHORIZED would give the password to anybody.
      const strict = url.startsWith("redis:") ? {} : { tls: { rejectUnauthorized: true } };
      const fresh = new RedisClient(url, { ...options, ...strict });
      client = fresh;
      await fresh.connect().catch(async (error: unknown) => {
        throw (await causeOf(new URL(url))) ?? error;
      });
      // Refuses a store that runs no scripts here, and not at each request.
      await fresh.send("EVAL", ["return redis.call('TIME')", "0"]);
    },
    close: () => client?.close(),
  };
}

/**
 * Asks once more, by a connection of its own: Bun's client has one code for a store that is away, a certificate that is
 * not trusted and a sign-in that is refused.
 * @returns an error with the system's code, or the store's refusal; undefined if this cannot be found out
 */
function causeOf({ protocol, hostname, port, username, password }: URL): Promise<Error | undefined> {
  const { promise, resolve } = Promise.withResolvers<Error | undefined>();
  const host = hostname.replace(/^\[|\]$/g, "");
  const at = { host, port: Number(port || 6379) };
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket =
    protocol === "redis:" ? connectTcp(at) : connectTls({ ...at, ...servername, rejectUnauthorized: true });
  const words = password === "" ? ["PING"] : ["AUTH", ...(username === "" ? [] : [username]), password];
  const sent = words.map((word) => Buffer.from(decodeURIComponent(word)).toString("latin1"));
  socket.on("error", resolve);
  socket.on("data", (bytes) => {
    const refusal = /^-([^\r]+)/.exec(bytes.toString())?.[1];
    resolve(refusal === undefined ? undefined : new Error(refusal));
  });
  socket.on("close", () => resolve(undefined));
  socket.setTimeout(connectDeadlineMs, () => resolve(undefined));
  socket.write(`*${sent.length}\r\n${sent.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`, "latin1");
  return promise.finally(() => socket.destroy());
}

/**
 * {@link take} of `serve/limit/bucket.ts` in whole microseconds, exact in Lua's doubles until the year 2255 (`tostring` would
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
