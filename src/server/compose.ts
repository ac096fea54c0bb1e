import { version } from "../../package.json";
import { KeyUses } from "../access/key-uses.ts";
import type { Installation } from "../admin/installation.ts";
import { Journal } from "../audit/journal.ts";
import { Deadline } from "../deadline.ts";
import { Fault } from "../fault.ts";
import type { Keyhole } from "../http/keyhole.ts";
import { AdmissionQueue } from "../limit/admission-queue.ts";
import { MemoryBudget } from "../limit/budget.ts";
import { Limiter } from "../limit/limiter.ts";
import { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import { RememberedContents } from "../read/remembered-contents.ts";
import { RememberedSets } from "../read/remembered-sets.ts";
import { contentQueries } from "../store/contents.ts";
import { type Database, warm } from "../store/database.ts";
import { keyLookups, keyUseWriter } from "../store/lookups.ts";
import { projectQueries } from "../store/projects.ts";
import { setQueries } from "../store/sets.ts";
import { Drain } from "./drain.ts";
import { type Readiness, readinessChecks, watchReadiness } from "./health.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { type SharedBuckets, SharedLimiter } from "./shared-limiter.ts";

/** Everything that the API needs, and the parts that the process around it operates. */
export type OpenKeyhole = Keyhole & {
  readonly database: Database;
  readonly metrics: Metrics | undefined;
  readonly shared: SharedLimiter | undefined;
  /** Runs every readiness check; logs when the set of failed checks changes. */
  readonly readiness: () => Promise<Readiness>;
  readonly drain: Drain;
  /** Finishes the journal, writes the last key uses, and closes every connection. */
  readonly close: () => Promise<void>;
};

type KeyholeOptions = {
  /** Without them this process counts alone. */
  readonly buckets?: SharedBuckets | undefined;
  readonly metered?: boolean;
  /** The collector for traces. */
  readonly tracesUrl?: string | undefined;
};

/** Builds everything from an installation. The server and the tests both start here. */
export async function openKeyhole(
  installation: Installation,
  log: Log,
  { buckets, metered, tracesUrl }: KeyholeOptions = {},
): Promise<OpenKeyhole> {
  const { keyring, systemKeys } = installation;
  const database = installation.open("serve");
  // Lookups have connections of their own, so that they never wait behind other reads.
  const lookupDatabase = database.dialect === "postgres" ? installation.open("look-up") : database;
  const bulk = installation.open("files");
  const usesDatabase = installation.open("journal");
  const store = installation.openJournal();
  await Promise.all([warm(lookupDatabase), warm(database)]);

  const journal = new Journal({
    append: store.append,
    auditKey: systemKeys.audit,
    now: Date.now,
    checkpoint: (checkpoint) => log({ event: "checkpoint", ...checkpoint }),
    measure: (batch) => metrics?.measureBatch(batch),
    deadline: new Deadline(recordDeadlineMs, () => new Fault("unavailable", "writing audit entries took over 2 s")),
  });
  const limiter = new Limiter();
  const shared = buckets && new SharedLimiter(buckets, limiter, log);
  await shared?.open();
  const lookupQueue = new AdmissionQueue();
  const refusals = { metadata: 0, value: 0, content: 0, unrecognized: 0 };
  const uses = new KeyUses(keyUseWriter(usesDatabase));
  const memory = new MemoryBudget();
  const drain = new Drain();
  const timers = [
    setInterval(() => uses.flush(Date.now()), usesEveryMs),
    setInterval(() => journal.announce(), checkpointEveryMs),
  ];

  // prom-client and OpenTelemetry are large: they are loaded only if somebody asks for them.
  const metrics: Metrics | undefined = metered
    ? new (await import("./metrics.ts")).Metrics(version, {
        dialect: database.dialect,
        auditQueued: () => journal.queued,
        refusals: () => ({ ...refusals, lane: lookupQueue.refused }),
        buckets: () => limiter.size,
        memory: () => memory.bytesTaken,
        pools: { "look-up": lookupDatabase.pool, serve: database.pool, files: bulk.pool, journal: usesDatabase.pool },
        shared,
      })
    : undefined;
  const traces = tracesUrl === undefined ? undefined : (await import("./traces.ts")).startTraces(tracesUrl, version);

  return {
    gate: {
      pepper: systemKeys.pepper,
      grantKey: systemKeys.grant,
      lookUp: keyLookups(lookupDatabase),
      limiter,
      shared,
      refusals,
      unrecognized: new UnrecognizedLimiter(),
      lookupQueue,
      nowUs: () => Math.floor(performance.now() * 1000),
      used: (keyId) => uses.note(keyId, Date.now()),
      recess: drain.recess,
    },
    source: {
      keyring,
      listingKey: systemKeys.listing,
      projects: projectQueries(database),
      sets: setQueries(database),
      contents: contentQueries(database, bulk),
      memory,
      remembered: new RememberedSets(),
      rememberedContents: new RememberedContents(),
    },
    journal,
    log,
    meter: metrics?.measure,
    trace: traces?.trace,
    draining: drain.draining,
    database,
    metrics,
    shared,
    readiness: watchReadiness(readinessChecks({ database, lookupDatabase, keyring, journal }), drain.draining, log),
    drain,
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      shared?.close();
      await traces?.close();
      await journal.close();
      await uses.flush(Date.now(), true);
      const databases = new Set([usesDatabase, bulk, database, lookupDatabase]);
      await Promise.all([store, ...databases].map((one) => one.close()));
    },
  };
}

const recordDeadlineMs = 2000;
const usesEveryMs = 1000;
const checkpointEveryMs = 60_000;
