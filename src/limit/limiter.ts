import { type BucketName, type Decision, policies, take } from "./bucket.ts";

/**
 * Buckets of recognized keys, and which digests were recognized lately. Nothing here decides what a key may read:
 * neither plan nor scope nor validity is remembered, only that a digest once belonged to a key id, which never changes.
 * So a key over its limit can be refused without asking the database, and nothing else can be answered from here.
 *
 * It cannot be filled from outside: an entry needs a key that the database has confirmed. The bounds hold even so.
 */
export class Limiter {
  readonly #buckets: Readonly<Record<BucketName, Shards<number>>>;
  readonly #keyIds: Shards<string>;
  #takes = 0;
  #sweeps = 0;

  /**
   * @param bucketsMax - for all three kinds together. 2¹⁸ is 87,000 keys with a bucket of the same kind that is not full,
   * and at most some 90 MiB (measured), which a small host can spare. Beyond it the least recently used bucket of a
   * shard is forgotten, that is, full again
   * @param digestsMax - 2¹⁶ is about 11 MiB; a recognized key that is dropped costs one turn in the lane of unknown keys
   */
  constructor(bucketsMax: number = 2 ** 18, digestsMax: number = 2 ** 16) {
    const bucketsOfOneKindMax = Math.floor(bucketsMax / 3);
    this.#buckets = {
      metadata: new Shards(bucketsOfOneKindMax),
      value: new Shards(bucketsOfOneKindMax),
      content: new Shards(bucketsOfOneKindMax),
    };
    this.#keyIds = new Shards(digestsMax);
  }

  /**
   * Takes one token from one of the key's buckets. Check and take are one synchronous step, so two requests of the same
   * moment never spend the same token. Every 64th call also sweeps one shard.
   *
   * @param nowUs - monotonic µs, a whole number
   */
  take(keyId: string, bucket: BucketName, nowUs: number): Decision {
    const shards = this.#buckets[bucket];
    const decision = take(shards.get(keyId), policies[bucket], nowUs);
    if (decision.allowed) shards.put(keyId, decision.fullAtUs);
    if (++this.#takes % 64 === 0) this.sweep(nowUs);
    return decision;
  }

  /**
   * Forgets the full buckets of one shard, the next in turn: a full bucket and none are the same. One shard holds at
   * most 682 entries and takes some 10 µs. A server without traffic may call it from a timer; nothing depends on it.
   *
   * @param nowUs - monotonic µs
   */
  sweep(nowUs: number): void {
    const kinds = this.#buckets;
    const turn = this.#sweeps++;
    const shards = turn % 3 === 0 ? kinds.metadata : turn % 3 === 1 ? kinds.value : kinds.content;
    shards.dropFrom(Math.floor(turn / 3), (fullAtUs) => fullAtUs <= nowUs);
  }

  /** How many buckets are remembered: those that were not full when last looked at. */
  get size(): number {
    return this.#buckets.metadata.size + this.#buckets.value.size + this.#buckets.content.size;
  }

  /**
   * Remembers that the database found this digest to be this key's. The one recognized longest ago makes room.
   *
   * @param digest - of the API key text, keyed, in any encoding the caller always uses; never the text itself
   */
  recognize(digest: string, keyId: string): void {
    this.#keyIds.put(digest, keyId);
  }

  /** The key id that the digest was recognized as, to find its bucket by. Says nothing about whether it is still valid. */
  keyIdOf(digest: string): string | undefined {
    return this.#keyIds.get(digest);
  }

  /** Forgets a digest that the database no longer recognizes, so that the limiter of unrecognized keys takes over. */
  forget(digest: string): void {
    this.#keyIds.delete(digest);
  }
}

/** Enough that sweeping one shard, or its growing inside the runtime, takes microseconds and not milliseconds. */
const shardCount = 128;

/**
 * A map in pieces. One large Map pauses for milliseconds when it grows, and finding the oldest entry of one that is
 * full costs 14 µs at 65,536 entries (the iterator walks over what was deleted), 0.5 µs in a shard.
 */
class Shards<V> {
  readonly #shards: readonly Map<string, V>[] = Array.from({ length: shardCount }, () => new Map<string, V>());
  readonly #shardEntriesMax: number;

  constructor(entriesMax: number) {
    this.#shardEntriesMax = Math.floor(entriesMax / shardCount);
    if (this.#shardEntriesMax < 1) throw new RangeError(`a limiter needs room for ${shardCount} entries of each kind`);
  }

  get(key: string): V | undefined {
    return this.#shardOf(key).get(key);
  }

  /** Sets and makes the newest of its shard. A Map iterates in the order of insertion, so its first entry is the oldest. */
  put(key: string, value: V): void {
    const shard = this.#shardOf(key);
    shard.delete(key);
    shard.set(key, value);
    if (shard.size > this.#shardEntriesMax) shard.delete(shard.keys().next().value as string);
  }

  delete(key: string): void {
    this.#shardOf(key).delete(key);
  }

  /** Deletes what is stale in one shard, counted round and round. */
  dropFrom(turn: number, isStale: (value: V) => boolean): void {
    const shard = this.#shards[turn % shardCount] as Map<string, V>;
    shard.forEach((value, key) => {
      if (isStale(value)) shard.delete(key);
    });
  }

  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.size, 0);
  }

  /** Not a keyed hash, and need not be: ids and digests are not of a caller's choosing. */
  #shardOf(key: string): Map<string, V> {
    return this.#shards[Bun.hash.xxHash32(key) % shardCount] as Map<string, V>;
  }
}
