import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRoot } from "../../src/http/app.ts";
import { type BucketName, policies } from "../../src/limit/bucket.ts";
import type { Processes, Server } from "./processes.ts";
import { type Stock, seed } from "./seed.ts";

export type DatabaseName = "PostgreSQL" | "SQLite";

/** A database to serve from: what the server's environment says, and the process whose family is the database. */
export type Place = {
  readonly name: DatabaseName;
  readonly settings: Readonly<Record<string, string>>;
  /** PostgreSQL's first process, where it runs on this machine. */
  readonly postmaster: number | undefined;
};

/** Which allowance of its key a request uses up. */
export type Bucket = BucketName | "unrecognized" | "none";

/** Requests in a file, as a load generator takes them, and how they are paid for. */
export type RequestList = { readonly file: string; readonly first: string; readonly length: number };

/**
 * The compiled server on a seeded database. A key may make 30 value reads a minute, so a run spreads over many keys, and
 * this keeps count of what they have left: before a run that would need more it starts the server anew, which forgets
 * its buckets. The server has no switch that would turn its limits off, and none is needed.
 */
export class Stand {
  readonly place: Place;
  readonly keys: readonly string[];
  readonly #processes: Processes;
  readonly #command: readonly string[];
  readonly #folder: string;
  readonly #strangers: number;
  #server: Server | undefined;
  #left = new Map<Bucket, { tokens: number; atMs: number }>();
  readonly #next = new Map<Bucket, number>();
  #lists = 0;

  private constructor(options: StandOptions, keys: readonly string[]) {
    this.place = options.place;
    this.keys = keys;
    this.#processes = options.processes;
    this.#command = [options.binary, "serve", "--port", "0"];
    this.#folder = options.folder;
    this.#strangers = options.strangers ?? 0;
  }

  /** Seeds the database and starts nothing yet. */
  static async seed(options: StandOptions, stock: Stock): Promise<Stand> {
    return new Stand(options, await seed(options.place.settings, stock));
  }

  /** The keys that lists are made of. */
  get worked(): readonly string[] {
    return this.keys.slice(0, workedKeysMax);
  }

  get server(): Server {
    if (!this.#server) throw new Error("the server is not started");
    return this.#server;
  }

  /** Starts the server, or starts it anew, and lets it see each of the keys once. */
  async start(): Promise<void> {
    await this.stop();
    this.#server = await this.launch();
    this.#left = new Map();
    await introduce(this.#server.origin, this.worked);
    this.#spend("metadata", this.worked.length);
  }

  /** A server of its own on this database, which nobody has asked anything yet. */
  launch(): Promise<Server> {
    return this.#processes.serve(this.#command, this.place.settings);
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
  }

  /** Makes a list of one request for each key that is worked with. @param path - of the request with that index */
  list(path: (index: number) => string): RequestList {
    return this.listOf(this.worked.map((key, index) => `${apiRoot}${path(index)} ${key}`));
  }

  /** Makes a list of these lines: path, blank, key. */
  listOf(lines: readonly string[]): RequestList {
    const file = join(this.#folder, `${this.place.name}-${process.hrtime.bigint()}-${this.#lists++}.list`);
    writeFileSync(file, `${lines.join("\n")}\n`);
    return { file, first: lines[0] as string, length: lines.length };
  }

  /**
   * Sees to it that the keys have enough left for so many requests, evenly spread over them.
   * @returns whether it took a fresh server, which has compiled nothing of its hot paths yet
   */
  async reserve(bucket: Bucket, requests: number): Promise<boolean> {
    if (bucket === "none" || this.#tokens(bucket) >= requests) return false;
    await this.start();
    return true;
  }

  /** The line of a list to begin with, so that the keys go on taking turns where the last run ended. */
  next(bucket: Bucket): number {
    return this.#next.get(bucket) ?? 0;
  }

  /** Notes that so many requests were sent, each with the next key in turn. */
  sent(bucket: Bucket, requests: number): void {
    this.#next.set(bucket, (this.#next.get(bucket) ?? 0) + requests);
    this.#spend(bucket, requests);
  }

  #spend(bucket: Bucket, requests: number): void {
    if (bucket === "none") return;
    this.#left.set(bucket, { tokens: this.#tokens(bucket) - requests, atMs: performance.now() });
  }

  /** How many requests all keys together have left, were they to take turns. */
  #tokens(bucket: Exclude<Bucket, "none">): number {
    const { capacity, intervalUs } = policies[bucket];
    const keys = bucket === "unrecognized" ? this.#strangers : Math.min(this.keys.length, workedKeysMax);
    const left = this.#left.get(bucket);
    if (!left) return keys * capacity;
    const earned = (keys * (performance.now() - left.atMs) * 1000) / intervalUs;
    return Math.min(keys * capacity, left.tokens + earned);
  }
}

export type StandOptions = {
  readonly place: Place;
  readonly processes: Processes;
  /** The compiled program. */
  readonly binary: string;
  /** Where lists of requests are written. */
  readonly folder: string;
  /** How many keys that nobody has take turns in a list. */
  readonly strangers?: number;
};

/** How many keys are worked with where there are more: each has to be introduced to a fresh server. */
export const workedKeysMax = 10_000;

/**
 * Presents each key once, a few at a time. Keys that a server has not seen since it started pass a narrow lane, four at
 * once with 64 waiting, beyond which they are refused with 429: a run that began with them would measure that lane.
 */
async function introduce(origin: string, keys: readonly string[]): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) {
      const response = await fetch(`${origin}${apiRoot}/organization`, { headers: { authorization: `Bearer ${key}` } });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`a key was introduced and answered with ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: introducedAtOnce }, worker));
}

const introducedAtOnce = 32;
