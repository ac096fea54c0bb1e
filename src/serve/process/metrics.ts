import { type Aggregator, AggregatorRegistry, Counter, Gauge, Histogram, Registry } from "prom-client";
import { dayMs } from "../../core/names.ts";
import { everyKind } from "../../kinds/kind.ts";
import { dueAtOf } from "../../kinds/variables/entry.ts";
import type { MeasuredBatch } from "../../record/journal.ts";
import type { NewestCheckpoint } from "../../record/notary/newest-checkpoint.ts";
import type { NextExpiry } from "../../store/expiry.ts";
import { endpointPaths } from "../api/app.ts";
import type { Measure } from "../gates/api-parts.ts";
import { spansOf } from "../sets/stages.ts";
import type { Readiness } from "./health.ts";

/* Labels are route patterns, statuses, codes and fixed words: their number is bounded, and no caller can add one. */

/** A number, or numbers by a label. */
type Measured = number | Readonly<Record<string, number>>;

/** The metrics of one process as plain data, to be added to those of others. */
export type Scrape = readonly object[];

const latencyBucketsS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 20,
];
/** What docs/prometheus/alerts.yml counts. These counters begin at 0, so that the first refusal is an increase. */
const alertedCodes = [
  ["401", "unauthorized"],
  ["500", "internal_error"],
  ["503", "decryption_failed"],
  ["503", "unavailable"],
] as const;
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** The metrics of one process. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = this.#counter("keyhole_requests_total", "Requests answered.", ["route", "status", "code"]);
  readonly #durations = this.#histogram(
    "keyhole_request_duration_seconds",
    "Duration of requests and of their stages.",
    latencyBucketsS,
    ["route", "stage"],
  );
  readonly #decryptions = this.#counter("keyhole_decryptions_total", "Sealed values opened.", ["kind"]);
  readonly #batches = this.#counter("keyhole_audit_batches_total", "Audit batches by outcome.", ["outcome"]);
  readonly #batchEntries = this.#histogram("keyhole_audit_batch_entries", "Audit entries per batch.", batchBuckets);
  readonly #commits = this.#histogram(
    "keyhole_audit_commit_duration_seconds",
    "Time until a batch of audit entries was durable.",
    latencyBucketsS,
  );

  constructor(version: string, database: string) {
    // A rate needs the zero before the first event.
    for (const { item } of everyKind) this.#decryptions.inc({ kind: item }, 0);
    for (const outcome of ["durable", "refused", "unknown"]) this.#batches.inc({ outcome }, 0);
    for (const route of [...endpointPaths, "none"]) {
      for (const [status, code] of alertedCodes) this.#requests.inc({ route, status, code }, 0);
    }
    new Gauge({
      name: "keyhole_build_info",
      help: "Always 1; the labels say what runs.",
      labelNames: ["version", "bun", "database"],
      aggregator: "first",
      registers: [this.#registry],
    }).set({ version, bun: Bun.version, database }, 1);
    this.watch("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss);
    this.watch("process_cpu_seconds_total", "CPU time, user and system.", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000_000;
    });
    const startedAtS = performance.timeOrigin / 1000;
    const startHelp = "Start of the process, in seconds since 1970.";
    this.watch("process_start_time_seconds", startHelp, () => startedAtS, { aggregator: "min" });
  }

  /** Counts one answered request. @param endedAtMs - monotonic milliseconds, as in its stages */
  readonly measure: Measure = ({ route, startedAtMs, stages }, status, code, endedAtMs) => {
    this.#requests.inc({ route, status: String(status), code: code ?? "ok" });
    // Labels given in advance save nothing: prom-client hashes them at each observation, some 0.4 µs (measured).
    this.#durations.observe({ route, stage: "total" }, (endedAtMs - startedAtMs) / 1000);
    if (stages === undefined) return;
    for (const [stage, fromMs, toMs] of spansOf(stages)) {
      this.#durations.observe({ route, stage: stage.replace("-", "_") }, (toMs - fromMs) / 1000);
    }
    if (stages.openedItem !== undefined) this.#decryptions.inc({ kind: stages.openedItem }, stages.opened);
  };

  /** Counts one batch of audit entries. */
  readonly measureBatch = ({ entries, commitMs, outcome }: MeasuredBatch): void => {
    this.#batches.inc({ outcome });
    this.#batchEntries.observe(entries);
    this.#commits.observe(commitMs / 1000);
  };

  /**
   * Adds a metric that each scrape reads: a counter if its name ends in `_total`. `label` names the keys of a record.
   */
  watch(
    name: string,
    help: string,
    read: () => Measured | Promise<Measured>,
    { label = "", aggregator = "sum" }: { label?: string; aggregator?: Aggregator } = {},
  ): void {
    const Kind = name.endsWith("_total") ? Counter : Gauge;
    new Kind<string>({
      name,
      help,
      labelNames: label === "" ? [] : [label],
      aggregator,
      registers: [this.#registry],
      async collect(this: Counter | Gauge) {
        const reading = await read();
        this.reset();
        if (typeof reading === "number") this.inc(reading);
        else for (const [key, value] of Object.entries(reading)) this.inc({ [label]: key }, value);
      },
    });
  }

  scrape(): Promise<Scrape> {
    return this.#registry.getMetricsAsJSON();
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string, buckets: number[], labelNames: string[] = []): Histogram {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }
}

/** Adds what is known of the comparison with what was seen of the database, and of the heads of the audit's tree. */
export function watchCheckpoint(metrics: Metrics, checkpoint: NewestCheckpoint): void {
  // All processes look at the same tree.
  const newest = { aggregator: "max" } as const;
  const ageHelp = "Seconds since the database was last compared with what was seen of it, or since the start.";
  const age = () => Math.min(checkpoint.ageMs, performance.now()) / 1000;
  metrics.watch("keyhole_comparison_age_seconds", ageHelp, age, newest);
  const unsignedHelp = "Seconds since the oldest known entry that no signed head has, 0 if there is none.";
  metrics.watch("keyhole_audit_unsigned_age_seconds", unsignedHelp, () => checkpoint.unsignedMs / 1000, newest);
  const signedHelp = "Leaves of the audit's tree by its newest signed head.";
  metrics.watch("keyhole_audit_signed_leaves", signedHelp, () => checkpoint.signedSize, newest);
  const witnessedHelp = "Leaves of the audit's tree by the newest head that each witness shows.";
  const witnessed = () => checkpoint.witnessedSizes;
  metrics.watch("keyhole_audit_witnessed_leaves", witnessedHelp, witnessed, { ...newest, label: "witness" });
}

/**
 * The metrics of one or several processes together, in Prometheus's text format.
 * @param readiness - of all of them together, as `/readyz` answers at this moment
 * @param more - gauges, or counters if their name ends in `_total`
 */
export function summed(
  scrapes: readonly Scrape[],
  { ready, checks }: Readiness,
  more: Readonly<Record<string, readonly [help: string, value: number]>> = {},
): Promise<string> {
  const registry = AggregatorRegistry.aggregate([...scrapes]);
  const registers = [registry];
  new Gauge({ name: "keyhole_ready", help: "1 if /readyz answers 200.", registers }).set(ready ? 1 : 0);
  const help = "1 if a check of /readyz passes.";
  const passes = new Gauge({ name: "keyhole_check_passes", help, labelNames: ["check"], registers });
  for (const [check, passed] of Object.entries(checks)) passes.set({ check }, passed ? 1 : 0);
  for (const [name, [help, value]] of Object.entries(more)) {
    const Kind = name.endsWith("_total") ? Counter : Gauge;
    new Kind({ name, help, registers }).inc(value);
  }
  return registry.metrics();
}

/**
 * How many days are left until the next key or trust expires, and until the next variable is due for rotation; negative
 * if it is overdue. A member is missing if nothing expires, or if the database failed.
 * @param find - called at most once a minute, however often somebody scrapes
 */
export function daysLeft(
  find: () => Promise<NextExpiry>,
  nowMs: () => number,
): () => Promise<Readonly<Record<string, number>>> {
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let answer: Promise<NextExpiry> | undefined;
  return async () => {
    // A clock that steps back must not keep an answer for longer.
    if (answer === undefined || Math.abs(nowMs() - askedAtMs) >= keptMs) {
      askedAtMs = nowMs();
      answer = find().catch(() => ({ key: null, variable: null }));
    }
    const { key, variable } = await answer;
    const now = nowMs();
    const dueAt = variable === null ? Number.NaN : dueAtOf(variable); // NaN also if SQL wrote a day that does not exist
    return {
      ...(key !== null && key > now && { key: (key - now) / dayMs }),
      ...(!Number.isNaN(dueAt) && { variable: (dueAt - now) / dayMs }),
    };
  };
}

const keptMs = 60_000;
