import { Fault } from "../fault.ts";
import type { AuditEntry } from "./entry.ts";

/** An entry as it is stored, at its position in a lane: the chain of entries that one journal writes. */
export type ChainedRow = Omit<AuditEntry, "names"> & {
  readonly lane: string;
  /** Counts from 1 in each lane, without gaps. */
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** JSON array: the exact text that the mac covers. */
  readonly names: string;
  /** That text encoded as a JSON string, if it was encoded before. */
  readonly namesJson?: string;
  readonly count: number;
  readonly mac: Buffer;
};

/**
 * Writes a batch. `durable`: every row is stored. `refused`: none is. `unknown`: it cannot tell. Never throws.
 * @param again - the same batch was tried before and its outcome is unknown
 */
export type Append = (
  rows: readonly ChainedRow[],
  again: boolean,
) => Promise<{ readonly outcome: "durable" | "refused" | "unknown"; readonly reason?: string }>;

/** Calls back about every 100 ms between start and stop. `nowMs` is the clock by which callers time out. */
export type Ticker = { start(): void; stop(): void; nowMs(): number };

/** The newest stored entry of a lane. */
export type Checkpoint = { readonly lane: string; readonly seq: number; readonly mac: string };

const entriesPerBatchMax = 512;
const entriesQueuedMax = 4096;
const recordDeadlineMs = 2000;

/**
 * The mac of a row: HMAC-SHA-256 under the audit key over the previous mac of the lane (empty for the first row) and the
 * row. Verifying the lane therefore detects a row that was changed, removed, moved or added.
 */
export function chainMac(auditKey: Uint8Array, previous: Uint8Array, row: Omit<ChainedRow, "mac">): Buffer {
  // A JSON array of all fields, joined from parts so that a long list of names is not encoded again for every read.
  const before = JSON.stringify([
    "keyhole audit v1",
    Buffer.from(previous).toString("hex"),
    row.lane,
    row.seq,
    row.at,
    row.keyId,
    row.organizationId,
    row.organization,
    row.projectId,
    row.project,
    row.environment,
    row.action,
  ]);
  const after = JSON.stringify([row.count, row.requestId, row.clientAddress, row.userAgent]);
  const names = row.namesJson ?? JSON.stringify(row.names);
  const fields = `${before.slice(0, -1)},${names},${after.slice(1)}`;
  return new Bun.CryptoHasher("sha256", auditKey).update(fields).digest() as Buffer;
}

/**
 * The only writer of audit entries. At most one batch is in flight, and entries that arrive meanwhile form the next one:
 * under load many callers share a commit, and without load none waits for a timer.
 */
export class Journal {
  readonly #append: Append;
  readonly #auditKey: Uint8Array;
  readonly #now: () => number;
  readonly #checkpoint: (checkpoint: Checkpoint) => void;
  readonly #measure: ((batch: MeasuredBatch) => void) | undefined;
  #queue: Waiting[] = [];
  readonly #calls = new Set<Call>();
  #lane = newLane();
  #seq = 0;
  #mac: Buffer = Buffer.alloc(0);
  #at = 0;
  #working: Promise<void> | undefined;
  readonly #ticker: Ticker;
  #unannounced = 0;
  #checks: ((durable: boolean) => void)[] = [];
  #closed = false;

  constructor(options: {
    append: Append;
    auditKey: Uint8Array;
    /** Epoch milliseconds. */
    now: () => number;
    /** Receives the newest stored entry every 1,000 rows, on {@link announce} and on {@link close}. */
    checkpoint: (checkpoint: Checkpoint) => void;
    /** Makes the ticker that times out waiting callers. */
    ticker: (onTick: () => void) => Ticker;
    /** Receives every batch, whatever its outcome. */
    measure?: ((batch: MeasuredBatch) => void) | undefined;
  }) {
    this.#append = options.append;
    this.#auditKey = options.auditKey;
    this.#now = options.now;
    this.#checkpoint = options.checkpoint;
    this.#ticker = options.ticker(() => this.#timeOut());
    this.#measure = options.measure;
  }

  /** How many entries wait to be written. */
  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Whether entries can be written now. It appends an empty batch with the statement and the connection that entries use,
   * which stores nothing. False once the journal is closed. Never throws, and takes no longer than a batch may take.
   */
  check(): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#checks.push(resolve);
      this.#working ??= this.#work();
    });
  }

  /**
   * Resolves when every entry is durable.
   * @throws Fault `unavailable` if that takes over 2 s, the queue is full or the journal is closed. Some of the entries may
   *   still be stored: a stored read may not have been answered, but every answered read is stored.
   */
  async record(entries: readonly AuditEntry[]): Promise<void> {
    if (entries.length === 0) return;
    if (this.#closed) throw new Fault("unavailable", "the journal is closed");
    if (this.#queue.length + entries.length > entriesQueuedMax) {
      throw new Fault("unavailable", `${this.#queue.length} audit entries are already waiting`);
    }
    await new Promise<void>((resolve, reject) => {
      this.#ticker.start();
      const giveUpAtMs = this.#ticker.nowMs() + recordDeadlineMs;
      const call: Call = { left: entries.length, giveUpAtMs, resolve, reject };
      this.#calls.add(call);
      for (const entry of entries) this.#queue.push({ entry, call });
      this.#working ??= this.#work();
    });
  }

  /** Emits a checkpoint if rows were stored since the last one. The server calls it every 60 s. */
  announce(): void {
    if (this.#unannounced === 0) return;
    this.#unannounced = 0;
    this.#checkpoint({ lane: this.#lane, seq: this.#seq, mac: this.#mac.toString("hex") });
  }

  /** Refuses new entries, waits until the queue is empty, and emits the last checkpoint. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
    this.#ticker.stop();
    this.announce();
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0 || this.#checks.length > 0) {
      // Lets callers that are ready in this turn of the event loop join the batch.
      await new Promise(setImmediate);
      const checks = this.#checks.splice(0);
      const batch = this.#queue.splice(0, entriesPerBatchMax).filter(({ call }) => call.left > 0);
      if (batch.length > 0) await this.#write(batch);
      if (checks.length === 0) continue;
      const { outcome } = await this.#append([], false);
      for (const check of checks) check(outcome === "durable");
    }
    this.#working = undefined;
    this.#ticker.stop();
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const rows = this.#chain(batch);
    const startedAtMs = performance.now();
    let result = await this.#append(rows, false);
    if (result.outcome === "unknown") {
      const retry = await this.#append(rows, true);
      // A refused retry does not prove that the first attempt stored nothing.
      result = retry.outcome === "refused" ? { ...retry, outcome: "unknown" } : retry;
    }
    const commitMs = performance.now() - startedAtMs;
    this.#measure?.({ entries: rows.length, commitMs, outcome: result.outcome });
    if (result.outcome === "durable") {
      const last = rows.at(-1) as ChainedRow;
      this.#seq = last.seq;
      this.#mac = last.mac;
      this.#unannounced += rows.length;
      if (this.#unannounced >= 1000) this.announce();
      for (const { call } of batch) if (--call.left === 0) this.#end(call);
      return;
    }
    // The batch may or may not be stored, and the next row would have to chain to one or the other: start a new lane.
    if (result.outcome === "unknown") this.#startLane();
    const failure = `audit entries could not be written: ${result.outcome}, ${result.reason}`;
    for (const { call } of batch) this.#end(call, failure);
  }

  #chain(batch: readonly Waiting[]): ChainedRow[] {
    const at = this.#now();
    // Retention drops whole months, and may drop only the beginning of a lane: no row may be older than the one before.
    if (at < this.#at) this.#startLane();
    this.#at = at;
    let { seq, mac } = { seq: this.#seq, mac: this.#mac };
    return batch.map(({ entry }) => {
      seq += 1;
      const { names, ...fields } = entry;
      const row = { ...fields, ...encodeNames(names), lane: this.#lane, seq, at, count: names.length };
      mac = chainMac(this.#auditKey, mac, row);
      return { ...row, mac };
    });
  }

  #startLane(): void {
    this.announce();
    this.#lane = newLane();
    this.#seq = 0;
    this.#mac = Buffer.alloc(0);
  }

  /** Times out callers, queued or in flight, and drops queued entries whose caller has gone. */
  #timeOut(): void {
    const now = this.#ticker.nowMs();
    for (const call of this.#calls) if (now >= call.giveUpAtMs) this.#end(call, "writing audit entries took over 2 s");
    this.#queue = this.#queue.filter(({ call }) => call.left > 0);
  }

  #end(call: Call, failure?: string): void {
    if (!this.#calls.delete(call)) return;
    call.left = 0;
    if (failure === undefined) call.resolve();
    else call.reject(new Fault("unavailable", failure));
  }
}

/** One batch, and how long it took from the moment it was sent. */
export type MeasuredBatch = {
  readonly entries: number;
  readonly commitMs: number;
  readonly outcome: "durable" | "refused" | "unknown";
};

/** One `record` call; `left` counts its entries that are not stored yet, 0 once it has ended. */
type Call = { left: number; giveUpAtMs: number; resolve: () => void; reject: (fault: Fault) => void };
type Waiting = { readonly entry: AuditEntry; readonly call: Call };

/** The names as a row stores them, and that text as JSON. Reads of a cached set share one list, so it is encoded once. */
function encodeNames(names: readonly string[]): EncodedNames {
  const known = encodedNames.get(names);
  if (known) return known;
  const text = JSON.stringify(names);
  const encoded = { names: text, namesJson: JSON.stringify(text) };
  encodedNames.set(names, encoded);
  return encoded;
}

type EncodedNames = { readonly names: string; readonly namesJson: string };
const encodedNames = new WeakMap<readonly string[], EncodedNames>();

function newLane(): string {
  return Bun.randomUUIDv7();
}
