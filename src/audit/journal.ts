import { Fault } from "../fault.ts";
import type { AuditEntry } from "./entry.ts";

/** An entry in its place in a lane, as it is stored. */
export type ChainedRow = Omit<AuditEntry, "names"> & {
  readonly lane: string;
  /** From 1, without gaps. */
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** JSON array: the very text the mac was made over. */
  readonly names: string;
  /** JSON of that text, where it is there already. */
  readonly namesJson?: string;
  readonly count: number;
  readonly mac: Buffer;
};

/** Writes a batch and says how that ended: on record, certainly not on record, or nobody knows. Never throws. */
export type Append = (
  rows: readonly ChainedRow[],
  again: boolean,
) => Promise<{ readonly outcome: "durable" | "refused" | "unknown"; readonly reason?: string }>;

/** Looks every 100 ms or so between start and stop, and tells the milliseconds by which callers wait. */
export type Ticker = { start(): void; stop(): void; nowMs(): number };

/** The last entry of a lane that is on record. */
export type Checkpoint = { readonly lane: string; readonly seq: number; readonly mac: string };

export const entriesPerBatchMax = 512;
export const entriesQueuedMax = 4096;
export const recordDeadlineMs = 2000;

/**
 * The mac of a row: HMAC-SHA-256 under the audit key over the mac before it in its lane (empty for the first) and the
 * row, so that a row changed, removed, put elsewhere or made up shows when the lane is walked.
 */
export function chainMac(auditKey: Uint8Array, previous: Uint8Array, row: Omit<ChainedRow, "mac">): Buffer {
  // One JSON array of all fields, put together so that the names, which may be many, are spelled once for all reads.
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

/** The names as entries hold them, and JSON of that. A remembered set gives the same list to every read of it. */
function spelled(names: readonly string[]): { readonly names: string; readonly namesJson: string } {
  const known = spellings.get(names);
  if (known) return known;
  const text = JSON.stringify(names);
  const spelling = { names: text, namesJson: JSON.stringify(text) };
  spellings.set(names, spelling);
  return spelling;
}

const spellings = new WeakMap<readonly string[], ReturnType<typeof spelled>>();

/**
 * The one writer of audit entries. At most one batch is under way; what arrives meanwhile is the next one, so the more
 * callers wait, the fewer commits each costs, and nobody waits for a timer.
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
    /** Told the newest entry on record every 1,000 rows or 60 s and at {@link close}. */
    checkpoint: (checkpoint: Checkpoint) => void;
    /** Makes what looks for callers that have waited too long. */
    ticker: (look: () => void) => Ticker;
    /** Told of each batch, however it ended. */
    measure?: ((batch: MeasuredBatch) => void) | undefined;
  }) {
    this.#append = options.append;
    this.#auditKey = options.auditKey;
    this.#now = options.now;
    this.#checkpoint = options.checkpoint;
    this.#ticker = options.ticker(() => this.#sweep());
    this.#measure = options.measure;
  }

  /** How many entries wait for their batch. */
  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Whether entries can be written now: an empty batch, in its turn, by the very statement and connection that entries
   * take; not once it is closed. Leaves no trace. Never throws, and ends within the deadlines of a batch.
   */
  check(): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#checks.push(resolve);
      this.#working ??= this.#work();
    });
  }

  /**
   * Resolves once every entry is durable.
   * @throws Fault `unavailable` where that did not happen within 2 s, too many entries wait already, or it is closed; some
   *   of the entries may be on record all the same: the record is a superset of what left, never the other way round
   */
  async record(entries: readonly AuditEntry[]): Promise<void> {
    if (entries.length === 0) return;
    if (this.#closed) throw new Fault("unavailable", "the journal is closed");
    if (this.#queue.length + entries.length > entriesQueuedMax) {
      throw new Fault("unavailable", `${this.#queue.length} audit entries wait already`);
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

  /** Tells the newest checkpoint if it is news; called every 60 s from outside. */
  announce(): void {
    if (this.#unannounced === 0) return;
    this.#unannounced = 0;
    this.#checkpoint({ lane: this.#lane, seq: this.#seq, mac: this.#mac.toString("hex") });
  }

  /** Waits for what is queued, and takes nothing more; then announces the end of the lane. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
    this.#ticker.stop();
    this.announce();
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0 || this.#checks.length > 0) {
      // Callers whose look-up was answered in this turn of the event loop come along: fewer, larger batches.
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
    const begunAtMs = performance.now();
    let result = await this.#append(rows, false);
    if (result.outcome === "unknown") {
      const again = await this.#append(rows, true);
      // That the second was refused says nothing of the first.
      result = again.outcome === "refused" ? { ...again, outcome: "unknown" } : again;
    }
    this.#measure?.({
      entries: rows.length,
      commitMs: performance.now() - begunAtMs,
      outcome: result.outcome,
    });
    if (result.outcome === "durable") {
      const last = rows.at(-1) as ChainedRow;
      this.#seq = last.seq;
      this.#mac = last.mac;
      this.#unannounced += rows.length;
      if (this.#unannounced >= 1000) this.announce();
      for (const { call } of batch) if (--call.left === 0) this.#end(call);
      return;
    }
    // Where the batch may or may not be there, no row may follow in this lane: either guess could break its chain.
    if (result.outcome === "unknown") this.#startLane();
    for (const { call } of batch)
      this.#end(call, `audit entries could not be written: ${result.outcome}, ${result.reason}`);
  }

  #chain(batch: readonly Waiting[]): ChainedRow[] {
    const at = this.#now();
    // Where the clock stepped back: a month that retention drops must be the beginning of its lanes.
    if (at < this.#at) this.#startLane();
    this.#at = at;
    let { seq, mac } = { seq: this.#seq, mac: this.#mac };
    return batch.map(({ entry }) => {
      seq += 1;
      const { names, ...said } = entry;
      const row = { ...said, ...spelled(names), lane: this.#lane, seq, at, count: names.length };
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

  /** Ends what waits for too long, in the queue or under way; entries that nobody waits for any more are not begun. */
  #sweep(): void {
    const now = this.#ticker.nowMs();
    for (const call of this.#calls) if (now >= call.giveUpAtMs) this.#end(call, "audit took over 2 s");
    this.#queue = this.#queue.filter(({ call }) => call.left > 0);
  }

  #end(call: Call, failure?: string): void {
    if (!this.#calls.delete(call)) return;
    call.left = 0;
    if (failure === undefined) call.resolve();
    else call.reject(new Fault("unavailable", failure));
  }
}

/** What one batch took, from the moment it was sent. */
export type MeasuredBatch = {
  readonly entries: number;
  readonly commitMs: number;
  readonly outcome: "durable" | "refused" | "unknown";
};

/** One `record` call: how many of its entries are still to come, and how it ends. */
type Call = { left: number; giveUpAtMs: number; resolve: () => void; reject: (fault: Fault) => void };
type Waiting = { readonly entry: AuditEntry; readonly call: Call };

function newLane(): string {
  return Bun.randomUUIDv7();
}
