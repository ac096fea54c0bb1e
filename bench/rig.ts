import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRoot } from "../src/serve/api/app.ts";
import { type BucketName, policies } from "../src/serve/limit/bucket.ts";
import type { Processes, Server } from "./processes.ts";
import type { Stock } from "./seed.ts";

export type DatabaseName = "PostgreSQL" | "SQLite";

/** A database to serve from. */
export type Backend = {
  readonly name: DatabaseName;
  /** The server's environment. */
  readonly settings: Readonly<Record<string, string>>;
  /** PostgreSQL's main process, if it runs on this machine. */
  readonly postmaster: number | undefined;
};

/** The bucket that a request takes a token from. */
export type Bucket = BucketName | "unrecognized" | "none";

/** A file of requests for a load generator, its first line, and the number of its lines. */
export type RequestList = { readonly file: string; readonly first: string; readonly length: number };

/**
 * The compiled server on a seeded database. The server's limits cannot be turned off, and a key may make only 30 value
 * reads a minute. So a run uses many keys, and the rig counts the tokens they have left. If a run would need more, the
 * server is restarted, which fills all buckets.
 */
export class Rig {
  readonly backend: Backend;
  readonly keys: readonly string[];
  readonly stock: Stock;
  readonly #processes: Processes;
  readonly #command: readonly string[];
  readonly #folder: string;
  readonly #unknownKeys: number;
  #server: Server | undefined;
  #left = new Map<Bucket, { tokens: number; atMs: number }>();
  readonly #next = new Map<Bucket, number>();
  #lists = 0;

  /** Does not start the server. @param keys, stock - what the database was seeded with */
  constructor(options: RigOptions, keys: readonly string[], stock: Stock) {
    this.backend = options.backend;
    this.keys = keys;
    this.stock = stock;
    this.#processes = options.processes;
    this.#command = [options.binary, "serve", "--port", "0"];
    this.#folder = options.folder;
    this.#unknownKeys = options.unknownKeys ?? 0;
  }

  /** The keys that lists use. */
  get worked(): readonly string[] {
    return this.keys.slice(0, -drainedKeys).slice(0, workedKeysMax);
  }

  /** Keys that are kept over their limit and used by no other list. */
  get drained(): readonly string[] {
    return this.keys.slice(-drainedKeys);
  }

  get server(): Server {
    if (!this.#server) throw new Error("the server is not started");
    return this.#server;
  }

  /** Starts or restarts the server and presents each key once. */
  async start(): Promise<void> {
    await this.stop();
    this.#server = await this.launch();
    this.#left = new Map();
    await presentKeys(this.#server.origin, this.worked);
    this.#spend("metadata", this.worked.length);
  }

  /** Starts another server on this database, which has answered no request yet. */
  launch(): Promise<Server> {
    return this.#processes.serve(this.#command, this.backend.settings);
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
  }

  /** Makes a list of one request per key. @param path - of the request with this index */
  list(path: (index: number) => string): RequestList {
    return this.listOf(this.worked.map((key, index) => `${apiRoot}${path(index)} ${key}`));
  }

  /** Makes a list of these lines: path, space, key. */
  listOf(lines: readonly string[]): RequestList {
    const file = join(this.#folder, `${this.backend.name}-${process.hrtime.bigint()}-${this.#lists++}.list`);
    writeFileSync(file, `${lines.join("\n")}\n`);
    return { file, first: lines[0] as string, length: lines.length };
  }

  /**
   * Ensures that the keys have tokens for this many requests, evenly distributed.
   * @returns whether that required a restart, after which the server has not compiled its hot paths
   */
  async reserve(bucket: Bucket, requests: number): Promise<boolean> {
    if (bucket === "none" || this.#tokens(bucket) >= requests) return false;
    await this.start();
    return true;
  }

  /** The line of a list to start with, so that the keys take turns across runs. */
  next(bucket: Bucket): number {
    return this.#next.get(bucket) ?? 0;
  }

  /** Notes that this many requests were sent, each with the next key. */
  sent(bucket: Bucket, requests: number): void {
    this.#next.set(bucket, (this.#next.get(bucket) ?? 0) + requests);
    this.#spend(bucket, requests);
  }

  #spend(bucket: Bucket, requests: number): void {
    if (bucket === "none") return;
    this.#left.set(bucket, { tokens: this.#tokens(bucket) - requests, atMs: performance.now() });
  }

  /** The tokens that all keys have together. */
  #tokens(bucket: Exclude<Bucket, "none">): number {
    const { capacity, intervalUs } = policies[bucket];
    const keys = bucket === "unrecognized" ? this.#unknownKeys : this.worked.length;
    const left = this.#left.get(bucket);
    if (!left) return keys * capacity;
    const earned = (keys * (performance.now() - left.atMs) * 1000) / intervalUs;
    return Math.min(keys * capacity, left.tokens + earned);
  }
}

export type RigOptions = {
  readonly backend: Backend;
  readonly processes: Processes;
  /** The compiled program. */
  readonly binary: string;
  /** The folder for lists of requests. */
  readonly folder: string;
  /** How many unknown keys take turns in a list. */
  readonly unknownKeys?: number;
};

/** At most this many keys are used, because each must be presented to a restarted server. */
export const workedKeysMax = 10_000;
export const drainedKeys = 2;

/**
 * Presents each key once, a few at a time. A server admits keys that it has not seen since its start through a bounded
 * queue and answers 429 beyond it, so a run that started with such keys would measure the queue.
 */
async function presentKeys(origin: string, keys: readonly string[]): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) {
      const response = await fetch(`${origin}${apiRoot}/organization`, { headers: { authorization: `Bearer ${key}` } });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`a key was answered with ${response.status} when presented first`);
    }
  };
  await Promise.all(Array.from({ length: presentedAtOnce }, worker));
}

const presentedAtOnce = 32;
