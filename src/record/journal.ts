import { Fault } from "../core/fault.ts";
import type { JobRead } from "../core/names.ts";
import { type Receipt, receiptName } from "../core/receipt.ts";
import type { AppendCondition } from "../core/set-rows.ts";
import type { AuditEntry } from "./entry.ts";
import { type JobReads, Overused } from "./job-reads.ts";
import { encodeEntries, type Segment, segmentMac } from "./segment.ts";

/**
 * Stores a segment, or checks that it could store one if there is none. The outcome is `durable` if it is stored,
 * `refused` if it is not, and `unknown` if nobody can tell. Never throws.
 * @param again - the same segment was tried before and its outcome is unknown
 * @param condition - must hold in the snapshot of the statement that stores it
 */
export type Append = (
  segment: Segment | undefined,
  again: boolean,
  reads?: readonly JobReads[],
  condition?: AppendCondition,
) => Promise<Appended>;

/** What became of a segment. */
export type Appended = {
  readonly outcome: "durable" | "refused" | "unknown";
  readonly reason?: string;
  /** The segment was refused because another server has the lane so far. */
  readonly moved?: boolean;
  /** It was not stored because a job would have more answers than it may: the count of each job, which is stored. */
  readonly counts?: readonly number[];
  /** It was not stored because its condition does not hold. */
  readonly unmet?: boolean;
};

/** The end of a lane: the number of its newest stored entry, and the mac of the segment that ends with it. */
export type LaneCheckpoint = { readonly lane: string; readonly seq: number; readonly mac: string };

type JournalOptions = {
  readonly append: Append;
  readonly auditKey: Uint8Array;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Receives the end of the lane every 1,000 entries, on {@link Journal.announce} and on {@link Journal.close}. */
  readonly checkpoint: (checkpoint: LaneCheckpoint) => void;
  /** Settles as `work` does, or calls `late` and rejects with a Fault if it takes too long since a monotonic moment. */
  readonly deadline: { of<T>(work: Promise<T>, late: () => void, sinceMs: number): Promise<T> };
  /** Room for entries of a holder, at once or in time, until it is released; of all, at most {@link entriesMax}. */
  readonly claim: (entries: number, holder: string) => Room | Promise<Room>;
  /** Receives every batch, whatever its outcome. */
  readonly measure?: ((batch: MeasuredBatch) => void) | undefined;
};

const entriesPerSegmentMax = 512;
/** The most names in the distinct lists of a segment, unless it has one list only. Bounds the memory of readers. */
const namesPerSegmentMax = 32_000;
/** How many entries wait or are written at a time. */
export const entriesMax = 4096;

/**
 * Writes the audit entries of requests. At most one batch is under way, and entries that arrive in that time form the
 * next one: under load many callers share a commit, and without load none waits for a timer. One key has room for a part
 * of all entries, so its own wait for it, and those of others do not.
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
  #batches = 0;
  #checks: ((durable: boolean) => void)[] = [];
  #closed = false;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** How many entries wait to be written. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Whether entries can be written now. Stores nothing and never throws. */
  check(): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#checks.push(resolve);
      this.#working ??= this.#work();
    });
  }

  /**
   * Resolves when every entry is durable, with their {@link receiptName}; undefined if there are none.
   * @param read - is counted in the commit that stores the first of them
   * @throws Overused if the job had its answers; Fault `unavailable` if the deadline passes, also without room, or the
   *   journal is closed; `rate_limited` if one key's own entries take all of its room so long. Some of the entries may be
   *   stored all the same: every answered read is stored, but not every stored read was answered.
   */
  record(entries: readonly AuditEntry[], read?: JobRead): Promise<string | undefined> {
    return this.#record(entries, read);
  }

  /**
   * The same in a segment of their own, which is stored, and the read counted, if the condition holds in the same statement.
   * @throws Unmet also if they would share a batch with others. Then nothing is stored, and no number used
   */
  recordIf(condition: AppendCondition, entries: readonly AuditEntry[], read?: JobRead): Promise<string | undefined> {
    return this.#record(entries, read, condition);
  }

  async #record(entries: readonly AuditEntry[], read?: JobRead, condition?: AppendCondition) {
    const [some] = entries;
    if (some === undefined) return undefined;
    const sinceMs = performance.now();
    this.#requireOpen();
    const claimed = this.#options.claim(entries.length, some.actor.type === "person" ? some.actor.name : some.actor.id);
    const room = claimed instanceof Promise ? await this.#whileOthersAreStored(claimed) : claimed;
    try {
      this.#requireOpen();
      // Nobody waits for the entries of a call that has failed.
      if (this.#queue.length > entriesMax) this.#queue = this.#queue.filter(({ call }) => call.left > 0);
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const call: RecordCall = { left: entries.length, first: undefined, uncounted: read, condition, resolve, reject };
      for (const entry of entries) this.#queue.push({ entry, call });
      this.#working ??= this.#work();
      const giveUp = () => {
        call.left = 0;
      };
      return await this.#options.deadline.of(promise, giveUp, sinceMs);
    } finally {
      room.release();
    }
  }

  /** Emits a checkpoint if entries were stored since the last one. The server calls it every 60 s. */
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

  #requireOpen(): void {
    if (this.#closed) throw new Fault("unavailable", "the journal is closed");
  }

  /** Waits for room. If nothing is stored in that time, the database is the cause, and not the key whose entries wait. */
  async #whileOthersAreStored(claimed: Promise<Room>): Promise<Room> {
    const before = this.#batches;
    try {
      return await claimed;
    } catch (error) {
      if (this.#batches > before) throw error;
      throw new Fault("unavailable", "no audit entries were stored while these waited for room");
    }
  }

  async #work(): Promise<void> {
    try {
      while (this.#queue.length > 0 || this.#checks.length > 0) {
        // Lets callers that are ready in this turn of the event loop join the batch.
        await new Promise(setImmediate);
        const checks = this.#checks.splice(0);
        const batch = withoutConditions(this.#nextBatch());
        await this.#write(batch);
        if (checks.length === 0) continue;
        const { outcome } = await this.#options.append(undefined, false);
        for (const check of checks) check(outcome === "durable");
      }
    } finally {
      // Whatever failed, later entries are written.
      this.#working = undefined;
    }
  }

  #nextBatch(): Waiting[] {
    const batch: Waiting[] = [];
    const lists = new Set<readonly string[]>();
    let nameCount = 0;
    let taken = 0;
    for (const waiting of this.#queue) {
      const { entry, call } = waiting;
      if (call.left > 0 && !lists.has(entry.names)) {
        lists.add(entry.names);
        nameCount += entry.names.length;
      }
      if (taken === entriesPerSegmentMax || (batch.length > 0 && nameCount > namesPerSegmentMax)) break;
      taken += 1;
      if (call.left > 0) batch.push(waiting);
    }
    this.#queue.splice(0, taken);
    return batch;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 0) return;
    let segment = this.#segmentOf(batch);
    const counted = countedIn(batch);
    const reads = counted.map(([read, calls]) => ({ ...read, reads: calls.length }));
    const condition = batch[0]?.call.condition;
    const startedAtMs = performance.now();
    let result = await this.#append(segment, reads, condition);
    if (result.moved) {
      // After a failover the new server may lack the newest segments. A new lane leaves one gap, at the old lane's end.
      this.#startLane();
      segment = this.#segmentOf(batch);
      result = await this.#append(segment, reads, condition);
    }
    if (result.unmet) return refuseUnmet(batch);
    if (result.counts !== undefined) return this.#write(withoutOverused(batch, counted, result.counts));
    const { outcome, reason } = result;
    const commitMs = performance.now() - startedAtMs;
    if (outcome === "durable") {
      this.#seq = segment.lastSeq;
      this.#mac = segment.mac;
      this.#batches += 1;
      this.#unannounced += batch.length;
      for (const [at, { call }] of batch.entries()) advance(call, segment.lane, segment.firstSeq + at);
    } else {
      // The batch may or may not be stored, and the next segment would have to follow one or the other: start a new lane.
      if (outcome === "unknown") this.#startLane();
      for (const { call } of batch) {
        call.left = 0;
        call.reject(new Fault("unavailable", `audit entries could not be written: ${outcome}, ${reason}`));
      }
    }
    this.#options.measure?.({ entries: batch.length, commitMs, outcome });
    if (this.#unannounced >= 1000) this.announce();
  }

  async #append(segment: Segment, reads: readonly JobReads[], condition?: AppendCondition): Promise<Appended> {
    const result = await this.#options.append(segment, false, reads, condition);
    if (result.outcome !== "unknown") return result;
    const { counts, unmet, ...retry } = await this.#options.append(segment, true, reads, condition);
    // A refused retry does not prove that the first attempt stored nothing.
    return retry.outcome === "refused" ? { ...retry, outcome: "unknown" } : retry;
  }

  #segmentOf(batch: readonly Waiting[]): Segment {
    const at = this.#options.now();
    // Retention drops whole months from a lane's beginning, so no segment may be older than the one before it.
    if (at < this.#at) this.#startLane();
    this.#at = at;
    const seqs = { firstSeq: this.#seq + 1, lastSeq: this.#seq + batch.length };
    const segment = { lane: this.#lane, ...seqs, at, ...encodeEntries(batch.map(({ entry }) => entry)) };
    return { ...segment, mac: segmentMac(this.#options.auditKey, this.#mac, segment) };
  }

  #startLane(): void {
    this.announce();
    this.#lane = Bun.randomUUIDv7();
    this.#seq = 0;
    this.#mac = Buffer.alloc(0);
  }
}

/** The refusal of entries whose condition does not hold. */
export class Unmet extends Fault {
  constructor() {
    super("unavailable", "the condition of an entry does not hold");
  }
}

type Room = { readonly release: () => void };

/** One batch, and how long it took from the moment it was sent. */
export type MeasuredBatch = {
  readonly entries: number;
  readonly commitMs: number;
  readonly outcome: Appended["outcome"];
};

/** One `record` call; `left` counts its entries that are not stored yet, 0 once it has ended. */
type RecordCall = {
  left: number;
  /** Its first entry that is stored. */
  first: Pick<Receipt, "lane" | "firstSeq"> | undefined;
  /** The read that is to be counted with it. */
  uncounted: JobRead | undefined;
  /** What its only segment depends on. */
  readonly condition: AppendCondition | undefined;
  resolve: (receipt: string) => void;
  reject: (fault: Fault) => void;
};
type Waiting = { readonly entry: AuditEntry; readonly call: RecordCall };

type CountedCalls = readonly (readonly [JobRead, readonly RecordCall[]])[];

/** The reads to count with a batch, and the calls that they belong to, in their order. */
function countedIn(batch: readonly Waiting[]): CountedCalls {
  const calls = new Map<string, [JobRead, RecordCall[]]>();
  for (const call of new Set(batch.map(({ call }) => call))) {
    const { uncounted: read } = call;
    if (read === undefined) continue;
    const key = `${read.trustId} ${read.job}`;
    const [, others] = calls.get(key) ?? [read, []];
    calls.set(key, [read, [...others, call]]);
  }
  return [...calls.values()];
}

/** Refuses the calls with a condition that would not have a segment of their own. @returns the others */
function withoutConditions(batch: readonly Waiting[]): readonly Waiting[] {
  const isAlone = ({ left }: RecordCall) => left === batch.length && batch.every(({ call }) => call === batch[0]?.call);
  refuseUnmet(batch.filter(({ call }) => call.condition !== undefined && !isAlone(call)));
  return batch.filter(({ call }) => call.left > 0);
}

function refuseUnmet(batch: readonly Waiting[]): void {
  for (const { call } of batch) {
    call.left = 0;
    call.reject(new Unmet());
  }
}

/** Refuses the calls that are beyond what their job may have. @returns the others, which are counted */
function withoutOverused(batch: readonly Waiting[], counted: CountedCalls, counts: readonly number[]) {
  for (const [at, [read, calls]] of counted.entries()) {
    const before = (counts[at] ?? 0) - calls.length;
    for (const [index, call] of calls.entries()) {
      call.uncounted = undefined;
      if (before + index < read.readsMax) continue;
      call.left = 0;
      call.reject(new Overused(read));
    }
  }
  return batch.filter(({ call }) => call.left > 0);
}

/** Notes that the next entry of a call is stored. */
function advance(call: RecordCall, lane: string, seq: number): void {
  call.uncounted = undefined;
  call.first ??= { lane, firstSeq: seq };
  call.left -= 1;
  if (call.first.lane !== lane) {
    // A lane ended between two batches of the call. One receipt could not name both parts.
    call.left = 0;
    call.reject(new Fault("unavailable", "the audit entries of the request are in two lanes"));
  } else if (call.left === 0) call.resolve(receiptName({ ...call.first, lastSeq: seq }));
}
