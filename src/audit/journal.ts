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

/** The newest stored entry of a lane. */
export type Checkpoint = { readonly lane: string; readonly seq: number; readonly mac: string };

type JournalOptions = {
  readonly append: Append;
  readonly auditKey: Uint8Array;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Receives the newest stored entry every 1,000 rows, on {@link Journal.announce} and on {@link Journal.close}. */
  readonly checkpoint: (checkpoint: Checkpoint) => void;
  /** Settles as a call of {@link Journal.record} does, or calls `late` and rejects with a Fault if it takes too long. */
  readonly deadline: { of<T>(work: Promise<T>, late: () => void): Promise<T> };
  /** Receives every batch, whatever its outcome. */
  readonly measure?: ((batch: MeasuredBatch) => void) | undefined;
};

const entriesPerBatchMax = 512;
const entriesQueuedMax = 4096;

/** The mac of a row: HMAC-SHA-256 under the audit key over the lane's previous mac (empty for the first) and the row. */
export function chainMac(auditKey: Uint8Array, previous: Uint8Array, row: Omit<ChainedRow, "mac">): Buffer {
  // One JSON array, joined from parts so that a long list of names is not encoded again for every read.
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
  readonly #options: JournalOptions;
  #queue: Waiting[] = [];
  #lane: string = Bun.randomUUIDv7();
  #seq = 0;
  #mac: Buffer = Buffer.alloc(0);
  #at = 0;
  #working: Promise<void> | undefined;
  #unannounced = 0;
  #checks: ((durable: boolean) => void)[] = [];
  #closed = false;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** How many entries wait to be written. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Whether entries can be written now: appends an empty batch, which stores nothing. Never throws. */
  check(): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#checks.push(resolve);
      this.#working ??= this.#work();
    });
  }

  /**
   * Resolves when every entry is durable.
   * @throws Fault `unavailable` if the deadline passes, the queue is full or the journal is closed. Some of the entries
   *   may still be stored: a stored read may not have been answered, but every answered read is stored.
   */
  async record(entries: readonly AuditEntry[]): Promise<void> {
    if (entries.length === 0) return;
    if (this.#closed) throw new Fault("unavailable", "the journal is closed");
    const room = entriesQueuedMax - entries.length;
    // Nobody waits for the entries of a call that has failed.
    if (this.#queue.length > room) this.#queue = this.#queue.filter(({ call }) => call.left > 0);
    if (this.#queue.length > room) throw new Fault("unavailable", `${this.#queue.length} audit entries already wait`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const call: Call = { left: entries.length, resolve, reject };
    for (const entry of entries) this.#queue.push({ entry, call });
    this.#working ??= this.#work();
    await this.#options.deadline.of(promise, () => {
      call.left = 0;
    });
  }

  /** Emits a checkpoint if rows were stored since the last one. The server calls it every 60 s. */
  announce(): void {
    if (this.#unannounced === 0) return;
    this.#unannounced = 0;
    this.#options.checkpoint({ lane: this.#lane, seq: this.#seq, mac: this.#mac.toString("hex") });
  }

  /** Refuses new entries, waits until the queue is empty, and emits the last checkpoint. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
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
      const { outcome } = await this.#options.append([], false);
      for (const check of checks) check(outcome === "durable");
    }
    this.#working = undefined;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const rows = this.#chain(batch);
    const startedAtMs = performance.now();
    let result = await this.#options.append(rows, false);
    if (result.outcome === "unknown") {
      const retry = await this.#options.append(rows, true);
      // A refused retry does not prove that the first attempt stored nothing.
      result = retry.outcome === "refused" ? { ...retry, outcome: "unknown" } : retry;
    }
    const { outcome, reason } = result;
    this.#options.measure?.({ entries: rows.length, commitMs: performance.now() - startedAtMs, outcome });
    if (outcome === "durable") {
      const last = rows.at(-1) as ChainedRow;
      this.#seq = last.seq;
      this.#mac = last.mac;
      this.#unannounced += rows.length;
      if (this.#unannounced >= 1000) this.announce();
      for (const { call } of batch) if (--call.left === 0) call.resolve();
      return;
    }
    // The batch may or may not be stored, and the next row would have to chain to one or the other: start a new lane.
    if (outcome === "unknown") this.#startLane();
    for (const { call } of batch) {
      call.left = 0;
      call.reject(new Fault("unavailable", `audit entries could not be written: ${outcome}, ${reason}`));
    }
  }

  #chain(batch: readonly Waiting[]): ChainedRow[] {
    const at = this.#options.now();
    // Retention drops whole months, and may drop only the beginning of a lane: no row may be older than the one before.
    if (at < this.#at) this.#startLane();
    this.#at = at;
    let { seq, mac } = { seq: this.#seq, mac: this.#mac };
    return batch.map(({ entry }) => {
      seq += 1;
      const { names, ...fields } = entry;
      const row = { ...fields, ...encodeNames(names), lane: this.#lane, seq, at, count: names.length };
      mac = chainMac(this.#options.auditKey, mac, row);
      return { ...row, mac };
    });
  }

  #startLane(): void {
    this.announce();
    this.#lane = Bun.randomUUIDv7();
    this.#seq = 0;
    this.#mac = Buffer.alloc(0);
  }
}

/** One batch, and how long it took from the moment it was sent. */
export type MeasuredBatch = {
  readonly entries: number;
  readonly commitMs: number;
  readonly outcome: "durable" | "refused" | "unknown";
};

/** One `record` call; `left` counts its entries that are not stored yet, 0 once it has ended. */
type Call = { left: number; resolve: () => void; reject: (fault: Fault) => void };
type Waiting = { readonly entry: AuditEntry; readonly call: Call };

/** The names as a row stores them, and that text as JSON. Reads of a cached set share one list, so it is encoded once. */
function encodeNames(list: readonly string[]): Pick<ChainedRow, "names" | "namesJson"> {
  const known = encodedNames.get(list);
  if (known) return known;
  const names = JSON.stringify(list);
  const encoded = { names, namesJson: JSON.stringify(names) };
  encodedNames.set(list, encoded);
  return encoded;
}

const encodedNames = new WeakMap<readonly string[], Pick<ChainedRow, "names" | "namesJson">>();
