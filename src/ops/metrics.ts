import { AggregatorRegistry, Counter, Gauge, type Metric, Registry } from "prom-client";
import type { MeasuredBatch } from "../audit/journal.ts";
import type { FaultCode } from "../fault.ts";
import type { Stages } from "../read/stages.ts";

/*
 * What the server counts. A request touches plain numbers only; prom-client reads them when somebody scrapes. Labels are
 * route patterns, statuses, codes and words of ours, so their number is bounded, and nothing of a caller's is among them.
 */

/** What is read at the moment of a scrape, each from the place that keeps it. */
export type Watched = {
  readonly dialect: string;
  readonly auditQueued: () => number;
  /** By the name of the bucket; `lane` for strangers turned away from the database. */
  readonly refusals: () => Readonly<Record<string, number>>;
  readonly buckets: () => number;
  /** By the size of the read. */
  readonly memory: () => Readonly<Record<"small" | "large", number>>;
  readonly pools: Readonly<Record<string, { readonly underWay: number; readonly connectionsMax: number }>>;
  /** Undefined where the buckets are meant to be this process's own. */
  readonly shared: { readonly away: boolean; readonly losses: number } | undefined;
};

/** A request as far as it is measured. */
type Measured = { readonly route: string; readonly startedAtMs: number; readonly stages: Stages | undefined };

/** A scrape of one process, to be added to those of others; plain data. */
export type Scrape = readonly unknown[];

const latencyBoundsS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 20,
];
const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** The metrics of one process. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #routes = new Map<string, Route>();
  readonly #decryptions = { set: 0, variable: 0, account: 0, file: 0 };
  readonly #batches = { durable: 0, refused: 0, unknown: 0 };
  readonly #batchEntries = new Histogram(batchBounds);
  readonly #commitS = new Histogram(latencyBoundsS);

  /** @param version - of this program */
  constructor(version: string, watched: Watched) {
    this.#requests();
    this.#audit(watched);
    this.#limits(watched);
    this.#process(version, watched);
  }

  /** Takes one answered request. @param endedAtMs - monotonic milliseconds, as in its stages */
  readonly measure = (request: Measured, status: number, code: FaultCode | undefined, endedAtMs: number): void => {
    const route = this.#routes.get(request.route) ?? this.#newRoute(request.route);
    const outcome = code ?? status;
    const counted = route.outcomes.get(outcome);
    if (counted) counted.count += 1;
    else route.outcomes.set(outcome, { status, count: 1 });
    route.total.observe((endedAtMs - request.startedAtMs) / 1000);
    const { stages } = request;
    if (stages === undefined) return;
    if (stages.lookUpToMs > 0) route.lookUp.observe((stages.lookUpToMs - stages.lookUpFromMs) / 1000);
    if (stages.readToMs > 0) route.read.observe((stages.readToMs - stages.readFromMs) / 1000);
    if (stages.auditToMs > 0) route.audit.observe((stages.auditToMs - stages.auditFromMs) / 1000);
    if (stages.openedKind === undefined) return;
    route.open.observe((stages.openToMs - stages.readToMs) / 1000);
    this.#decryptions[stages.openedKind] += stages.opened;
  };

  /** Takes one batch of audit entries. */
  readonly measureBatch = ({ entries, commitMs, outcome }: MeasuredBatch): void => {
    this.#batches[outcome] += 1;
    this.#batchEntries.observe(entries);
    this.#commitS.observe(commitMs / 1000);
  };

  /** In Prometheus's text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  scrape(): Promise<Scrape> {
    return this.#registry.getMetricsAsJSON();
  }

  #newRoute(name: string): Route {
    const [total, lookUp, read, open, audit] = Array.from({ length: 5 }, () => new Histogram(latencyBoundsS)) as [
      Histogram,
      Histogram,
      Histogram,
      Histogram,
      Histogram,
    ];
    const route = { outcomes: new Map(), total, lookUp, read, open, audit };
    this.#routes.set(name, route);
    return route;
  }

  #requests(): void {
    this.#counter("keyhole_requests_total", "Requests answered.", ["route", "status", "code"], () =>
      [...this.#routes].flatMap(([route, { outcomes }]) =>
        [...outcomes].map(([outcome, { status, count }]) => {
          const code = typeof outcome === "string" ? outcome : "ok";
          return [{ route, status: String(status), code }, count] as const;
        }),
      ),
    );
    this.#histogram("keyhole_request_duration_seconds", "Time that requests and their stages took.", () =>
      [...this.#routes].flatMap(([route, { total, lookUp, read, open, audit }]) =>
        Object.entries({ total, look_up: lookUp, read, open, audit })
          .filter(([, histogram]) => histogram.count > 0)
          .map(([stage, histogram]) => [{ route, stage }, histogram] as const),
      ),
    );
    this.#counter("keyhole_decryptions_total", "Sealed values opened.", ["kind"], () =>
      Object.entries(this.#decryptions).map(([kind, count]) => [{ kind }, count] as const),
    );
  }

  #audit(watched: Watched): void {
    this.#gauge("keyhole_audit_queue_entries", "Audit entries that wait for a batch.", [], () => [
      [{}, watched.auditQueued()],
    ]);
    this.#counter("keyhole_audit_batches_total", "Batches of audit entries, by how they ended.", ["outcome"], () =>
      Object.entries(this.#batches).map(([outcome, count]) => [{ outcome }, count] as const),
    );
    this.#histogram("keyhole_audit_batch_entries", "Entries in a batch.", () => [[{}, this.#batchEntries]]);
    this.#histogram("keyhole_audit_commit_duration_seconds", "Time that a batch took to be durable.", () => [
      [{}, this.#commitS],
    ]);
  }

  #limits({ refusals, buckets, shared }: Watched): void {
    this.#counter("keyhole_limiter_refusals_total", "Requests refused with 429.", ["bucket"], () =>
      Object.entries(refusals()).map(([bucket, count]) => [{ bucket }, count] as const),
    );
    this.#gauge("keyhole_limiter_buckets", "Buckets in memory that are not full.", [], () => [[{}, buckets()]]);
    if (shared === undefined) return;
    this.#gauge("keyhole_limiter_fallback", "1 while the shared buckets are away and own ones judge.", [], () => [
      [{}, shared.away ? 1 : 0],
    ]);
    this.#counter("keyhole_limiter_fallbacks_total", "How often the shared buckets were lost.", [], () => [
      [{}, shared.losses],
    ]);
  }

  #process(version: string, { pools, memory, dialect }: Watched): void {
    this.#gauge("keyhole_database_statements", "Statements under way.", ["pool"], () =>
      Object.entries(pools).map(([pool, { underWay }]) => [{ pool }, underWay] as const),
    );
    this.#gauge("keyhole_database_connections_max", "Connections of a pool at most.", ["pool"], () =>
      Object.entries(pools).map(([pool, { connectionsMax }]) => [{ pool }, connectionsMax] as const),
    );
    this.#gauge("keyhole_memory_bytes", "Sealed bytes of what requests have opened and not yet sent.", ["read"], () =>
      Object.entries(memory()).map(([read, bytes]) => [{ read }, bytes] as const),
    );
    this.#gauge("keyhole_build_info", "1; what runs is in the labels.", ["version", "bun", "database"], () => [
      [{ version, bun: Bun.version, database: dialect }, 1],
    ]);
    this.#gauge("process_resident_memory_bytes", "Resident memory.", [], () => [[{}, process.memoryUsage.rss()]]);
    this.#counter("process_cpu_seconds_total", "Processor time, user and system.", [], () => {
      const { user, system } = process.cpuUsage();
      return [[{}, (user + system) / 1_000_000]];
    });
    this.#gauge("process_start_time_seconds", "When the process started, since the epoch.", [], () => [
      [{}, performance.timeOrigin / 1000],
    ]);
  }

  #counter(name: string, help: string, labelNames: readonly string[], values: () => Values): void {
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [labels, value] of values()) this.inc(labels, value);
      },
    });
  }

  #gauge(name: string, help: string, labelNames: readonly string[], values: () => Values): void {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      aggregator: aggregators[name] ?? "sum",
      collect() {
        this.reset();
        for (const [labels, value] of values()) this.set(labels, value);
      },
    });
  }

  /** prom-client's own Histogram can only be observed, not told: the registry takes anything that has `get`. */
  #histogram(name: string, help: string, values: () => readonly (readonly [Labels, Histogram])[]): void {
    const get = async () => ({
      name,
      help,
      type: "histogram",
      aggregator: "sum",
      values: values().flatMap(([labels, histogram]) => histogram.values(name, labels)),
    });
    this.#registry.registerMetric({ name, help, get, reset() {} } as unknown as Metric);
  }
}

/** The scrapes of several processes as one, in Prometheus's text format. */
export function summed(scrapes: readonly Scrape[], more: Readonly<Record<string, readonly [help: string, number]>>) {
  const registry = AggregatorRegistry.aggregate(scrapes as unknown as object[]);
  for (const [name, [help, value]] of Object.entries(more)) {
    const metric = name.endsWith("_total")
      ? new Counter({ name, help, registers: [registry] })
      : new Gauge({ name, help, registers: [registry] });
    metric.inc(value);
  }
  return registry.metrics();
}

type Labels = Readonly<Record<string, string>>;
type Values = readonly (readonly [Labels, number])[];
type Route = {
  /** By code, or by status where there is none. */
  readonly outcomes: Map<string | number, { readonly status: number; count: number }>;
  readonly total: Histogram;
  readonly lookUp: Histogram;
  readonly read: Histogram;
  readonly open: Histogram;
  readonly audit: Histogram;
};

const aggregators: Readonly<Record<string, "min" | "max" | "first">> = {
  keyhole_build_info: "first",
  keyhole_limiter_fallback: "max",
  process_start_time_seconds: "min",
};

/** Counts by bounds that never change: an observation is a few comparisons and three additions. */
class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  get count(): number {
    return this.#count;
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at += 1;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
    this.#count += 1;
  }

  /** As prom-client writes them: each bound counts all below it too. */
  values(name: string, labels: Labels): { metricName: string; labels: object; value: number }[] {
    let below = 0;
    const buckets = [...this.#bounds, "+Inf"].map((le, at) => {
      below += this.#counts[at] as number;
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: this.#count },
    ];
  }
}
