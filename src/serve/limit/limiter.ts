import { BoundedMap } from "../../core/bounded-map.ts";
import { type BucketName, type Decision, type KnownPayer, type Payer, policyOf, take } from "./bucket.ts";

/**
 * The buckets of recognized keys, and who recently recognized digests are. With these a key over its limit is
 * refused without asking the database. They never allow anything. Each entry needs a key that the database has found,
 * so strangers cannot fill the tables.
 */
export class Limiter {
  readonly #buckets: Readonly<Record<BucketName, Shards<number>>>;
  readonly #payers: Shards<KnownPayer>;
  #takes = 0;
  #sweeps = 0;

  /**
   * @param bucketsMax - for all three kinds together. 2¹⁸ has room for 87,000 keys and takes at most 90 MiB (measured).
   * Beyond it the least recently used bucket of a shard is evicted, which makes it full again
   * @param digestsMax - 2¹⁶ takes about 11 MiB; one with ranges counts as more. A key whose digest was evicted passes the
   * admission queue again
   */
  constructor(bucketsMax: number = 2 ** 18, digestsMax: number = 2 ** 16) {
    const shards = () => new Shards<number>(Math.floor(bucketsMax / 3));
    this.#buckets = { metadata: shards(), value: shards(), content: shards() };
    this.#payers = new Shards(digestsMax, ({ from }) => 1 + Math.ceil((from?.length ?? 0) / 160));
  }

  /**
   * Takes one token from one of the key's buckets. It is synchronous, so concurrent requests never spend the same
   * token. Every 64th call also sweeps one shard.
   * @param nowUs - monotonic µs, a whole number
   */
  take({ keyId, rate }: Payer, bucket: BucketName, nowUs: number): Decision {
    const shard = this.#buckets[bucket].of(keyId);
    const decision = take(shard.get(keyId), policyOf(bucket, rate), nowUs);
    if (decision.allowed) shard.set(keyId, decision.fullAtUs);
    if (++this.#takes % 64 === 0) this.sweep(nowUs);
    return decision;
  }

  /** Drops the full buckets of the next shard, in about 10 µs: a full bucket is the same as none. */
  sweep(nowUs: number): void {
    const { metadata, value, content } = this.#buckets;
    const sweep = this.#sweeps++;
    const shards = sweep % 3 === 0 ? metadata : sweep % 3 === 1 ? value : content;
    shards.deleteStale(Math.floor(sweep / 3), (fullAtUs) => fullAtUs <= nowUs);
  }

  /** How many buckets are stored. */
  get size(): number {
    return this.#buckets.metadata.size + this.#buckets.value.size + this.#buckets.content.size;
  }

  /** Remembers that the database found this key by this digest. */
  recognize(digest: string, { keyId, rate, from }: KnownPayer): void {
    this.#payers.of(digest).set(digest, { keyId, rate, from });
  }

  /** The key with this digest. Does not say whether it is still valid. */
  payerOf(digest: string): KnownPayer | undefined {
    return this.#payers.of(digest).get(digest);
  }

  /** Forgets a digest that the database no longer finds. The limiter of unrecognized keys applies to it then. */
  forget(digest: string): void {
    this.#payers.of(digest).delete(digest);
  }
}

const shardCount = 128;

/**
 * An LRU map in 128 shards. One large Map would pause for milliseconds when it grows, and would find its oldest entry
 * in 14 µs instead of 0.5 µs, because its iterator walks over deleted ones.
 */
class Shards<V> {
  readonly #shards: readonly BoundedMap<V>[];

  constructor(entriesMax: number, sizeOf?: (value: V) => number) {
    const max = Math.floor(entriesMax / shardCount);
    this.#shards = Array.from({ length: shardCount }, () => new BoundedMap<V>(max, sizeOf));
  }

  /** The shard of an entry. The hash needs no secret, because callers cannot choose ids or digests. */
  of(key: string): BoundedMap<V> {
    return this.#shards[Bun.hash.xxHash32(key) % shardCount] as BoundedMap<V>;
  }

  /** Deletes the stale entries of one shard. @param index - of the shard, modulo their number */
  deleteStale(index: number, isStale: (value: V) => boolean): void {
    this.#shards[index % shardCount]?.deleteIf(isStale);
  }

  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.size, 0);
  }
}
