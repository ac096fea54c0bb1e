import { Deadline } from "../../core/deadline.ts";
import { Fault } from "../../core/fault.ts";
import { fetchJson } from "../../core/fetch-json.ts";
import type { Log } from "../../core/log.ts";
import type { Config } from "../../core/settings/settings.ts";
import { version } from "../../core/version.ts";
import type { Installation } from "../../installation/installation.ts";
import type { ServingDatabases } from "../../installation/serving.ts";
import { boundedKinds } from "../../kinds/kind.ts";
import { entriesMax, Journal, type LaneCheckpoint, type MeasuredBatch } from "../../record/journal.ts";
import type { RunningNotary } from "../../record/notary/link.ts";
import type { NewestCheckpoint } from "../../record/notary/newest-checkpoint.ts";
import { commandsLane } from "../../record/segment.ts";
import { laneHead } from "../../record/store/lane-end.ts";
import { etagKeyOf } from "../../seal/keyring.ts";
import { contentQueries } from "../../store/contents.ts";
import { type Database, databaseErrorCode } from "../../store/database.ts";
import { nextExpiry, pruneJobReads } from "../../store/expiry.ts";
import { keyLookups, keyUseWriter, trustFinder } from "../../store/lookups.ts";
import { projectQueries } from "../../store/projects.ts";
import { requestQueries } from "../../store/requests.ts";
import { setQueries } from "../../store/sets.ts";
import { GrantSeals } from "../access/grant-seals.ts";
import { IssuerKeys } from "../access/issuer-keys.ts";
import { KeyUses } from "../access/key-uses.ts";
import { TrustDirectory } from "../access/trust-directory.ts";
import { Waits } from "../api/waits.ts";
import { Alarms } from "../gates/alarms.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import { AdmissionQueue } from "../limit/admission-queue.ts";
import { entriesRoom, MemoryBudget } from "../limit/budget.ts";
import { Limiter } from "../limit/limiter.ts";
import { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import { setBytesMax } from "../sets/kind.ts";
import { RememberedContents, RememberedSets } from "../sets/remembered.ts";
import { Drain } from "./drain.ts";
import { notaryCheck, type Readiness, readinessChecks, watchReadiness } from "./health.ts";
import type { Metrics } from "./metrics.ts";
import { type SharedBuckets, SharedLimiter } from "./shared-limiter.ts";

/** Everything that the API needs, and the parts that the process around it operates. */
export type OpenKeyhole = ApiParts & {
  readonly database: Database;
  readonly metrics: Metrics | undefined;
  readonly shared: SharedLimiter | undefined;
  /** Runs every readiness check; logs when the set of failed checks changes. */
  readonly readiness: () => Promise<Readiness>;
  readonly drain: Drain;
  /** Logs the end of the commands' lane; called once it serves. From then on it is logged again if it has changed. */
  readonly announceCommands: () => Promise<void>;
  /** Finishes the journal, writes the last key uses, and closes every connection. */
  readonly close: () => Promise<void>;
};

type KeyholeOptions = Pick<Config, "tracesUrl" | "mcpOrigins"> & {
  readonly proxies?: ApiParts["proxies"];
  /** Without them this process counts alone. */
  readonly buckets?: SharedBuckets | undefined;
  readonly metered?: boolean;
  /** That of the embedded database, once it runs. */
  readonly notary?: () => RunningNotary | undefined;
};

/** Builds everything from an installation. The server and the tests both start here. */
export async function openKeyhole(
  installation: Installation,
  log: Log,
  { buckets, metered, notary, tracesUrl, mcpOrigins, proxies }: KeyholeOptions = {},
): Promise<OpenKeyhole> {
  const { systemKeys, servers, checkpoint } = installation;
  if (servers !== undefined) servers.tell = log;
  const databases = await installation.openServing();
  const { database, lookups, background } = databases;
  const journals = openJournals(installation, log, (batch) => {
    if (batch.outcome === "durable") checkpoint.noteEntry(batch.commitMs);
    metrics?.measureBatch(batch);
  });
  const commands = openCommandsCheckpoint(database, log);
  const limits = await openLimits(buckets, log);
  const uses = openKeyUses(background);
  const jobReads = openJobReads(background);
  const watch = await openWatch(checkpoint, databases.watch, log);
  const memory = new MemoryBudget();
  const waits = openWaits(database);
  const drain = new Drain(waits);
  // prom-client, OpenTelemetry and the MCP SDK are large: they are loaded only if somebody asks for them.
  const metrics = metered ? await openMetrics(databases, journals, limits, memory, checkpoint, waits) : undefined;
  const traces = tracesUrl === undefined ? undefined : (await import("./traces.ts")).startTraces(tracesUrl, version);
  return {
    gate: {
      ...limits.gate,
      ...openTrusts(lookups, systemKeys.grant, log),
      alarms: journals.alarms,
      pepper: systemKeys.pepper,
      seals: new GrantSeals(systemKeys.grant),
      lookUp: keyLookups(lookups, boundedKinds(), checkpoint.ofLookups(lookups, databases.watch)),
      refusal: () => checkpoint.refusal,
      nowUs: () => Math.floor(performance.now() * 1000),
      now: Date.now,
      used: uses.note,
      untilPortCloses: drain.untilPortCloses,
    },
    source: {
      keyring: installation.keyring,
      listingKey: systemKeys.listing,
      projects: projectQueries(database),
      sets: setQueries(database),
      contents: contentQueries(database, databases.bulk),
      requests: requestQueries(database, background),
      memory,
      remembered: new RememberedSets(),
      rememberedContents: new RememberedContents(),
    },
    etagKey: etagKeyOf(systemKeys.listing),
    // On SQLite an entry takes no condition: its lookup is in this process.
    journal:
      database.dialect === "postgres" ? journals.journal : { record: (...given) => journals.journal.record(...given) },
    log,
    meter: metrics?.measure,
    trace: traces?.trace,
    mcp: mcpOrigins && (await import("../api/mcp.ts")).mcpEndpoint(new Set(mcpOrigins), version),
    proxies,
    draining: drain.draining,
    waits,
    database,
    metrics,
    shared: limits.gate.shared,
    readiness: watchReadiness(
      readinessChecks({ ...installation, database, lookups, journal: journals.journal, notary }),
      drain.draining,
      log,
      () => ({ ...checkpoint.away, ...notary?.()?.away }),
      () => servers?.refusal ?? checkpoint.refusal ?? checkpoint.unsigned,
      [notaryCheck],
    ),
    drain,
    announceCommands: commands.announce,
    close: async () => {
      for (const part of [jobReads, watch, limits]) part.close();
      await traces?.close();
      await Promise.all([journals.close(), commands.close()]);
      await uses.close();
      await databases.close();
    },
  };
}

/** The journal of reads, and that of alarms. In one lane, other callers' receipts would count the uses of canary keys. */
function openJournals(
  { openJournal, systemKeys: { audit: auditKey } }: Installation,
  log: Log,
  measure: (batch: MeasuredBatch) => void,
) {
  const store = openJournal();
  const checkpoint = (reached: LaneCheckpoint) => log({ event: "checkpoint", ...reached });
  const tooLate = () => new Fault("unavailable", "writing audit entries took over 2 s");
  const deadline = new Deadline(recordDeadlineMs, tooLate);
  const given = { append: store.append, auditKey, now: Date.now, checkpoint, measure, deadline };
  const open = () => new Journal({ ...given, claim: entriesRoom(entriesMax, recordDeadlineMs) });
  const [journal, ofAlarms] = [open(), open()];
  const alarms = new Alarms((entries) => ofAlarms.record(entries), log);
  const announcing = setInterval(() => {
    for (const one of [journal, ofAlarms]) one.announce();
  }, checkpointEveryMs);
  const flushing = setInterval(() => void alarms.flush(), usesEveryMs);
  return {
    journal,
    alarms,
    lost: store.lost,
    close: async () => {
      clearInterval(announcing);
      clearInterval(flushing);
      await alarms.flush();
      await Promise.all([journal.close(), ofAlarms.close()]);
      await store.close();
    },
  };
}

/** When each key was last used, written once a second. */
function openKeyUses(background: Database) {
  const uses = new KeyUses(keyUseWriter(background));
  const now = () => performance.now();
  const timer = setInterval(() => void uses.flush(now()), usesEveryMs);
  return {
    note: (keyId: string) => uses.note(keyId, now()),
    close: () => {
      clearInterval(timer);
      return uses.close(now, () => Bun.sleep(10));
    },
  };
}

/** Forgets the reads of jobs whose tokens have ended. */
function openJobReads(background: Database) {
  // What fails now is tried again in a minute.
  const prune = () => void pruneJobReads(background).catch(() => {});
  const timer = setInterval(prune, checkpointEveryMs);
  return { close: () => clearInterval(timer) };
}

/** Requests that wait for what people change. */
function openWaits(database: Database): Waits {
  const findHead = laneHead(database, commandsLane);
  return new Waits(async () => (await findHead())?.mac.toString("hex") ?? "");
}

async function openLimits(buckets: SharedBuckets | undefined, log: Log) {
  const limiter = new Limiter();
  const shared = buckets && new SharedLimiter(buckets, limiter, log);
  await shared?.open();
  const refusals = { metadata: 0, value: 0, content: 0, unrecognized: 0 };
  const [unrecognized, lookupQueue] = [new UnrecognizedLimiter(), new AdmissionQueue()];
  return { gate: { limiter, shared, refusals, unrecognized, lookupQueue }, close: () => shared?.close() };
}

async function openMetrics(
  { database, lookups, bulk, background }: ServingDatabases,
  { journal, alarms, lost }: ReturnType<typeof openJournals>,
  { gate: { limiter, shared, refusals, lookupQueue } }: Awaited<ReturnType<typeof openLimits>>,
  memory: MemoryBudget,
  checkpoint: NewestCheckpoint,
  waits: Waits,
): Promise<Metrics> {
  const { Metrics, daysLeft, watchCheckpoint } = await import("./metrics.ts");
  const metrics = new Metrics(version, database.dialect);
  const pools = { "look-up": lookups.pool, serve: database.pool, files: bulk.pool, journal: background.pool };
  const ofPools = (field: "underWay" | "connectionsMax") => () =>
    Object.fromEntries(Object.entries(pools).map(([name, pool]) => [name, pool[field]]));
  metrics.watch("keyhole_audit_queue_entries", "Audit entries that wait for a batch.", () => journal.queued);
  metrics.watch("keyhole_database_statements", "Statements under way.", ofPools("underWay"), { label: "pool" });
  metrics.watch("keyhole_database_connections_max", "Size of a pool.", ofPools("connectionsMax"), { label: "pool" });
  const memoryHelp = "Sealed bytes that requests have opened and not yet sent.";
  metrics.watch("keyhole_memory_bytes", memoryHelp, () => memory.bytesTaken, { label: "read" });
  // `lane` counts unknown keys that were refused before they reached the database.
  const refused = () => ({ ...refusals, lane: lookupQueue.refused });
  metrics.watch("keyhole_limiter_refusals_total", "Requests refused with 429.", refused, { label: "bucket" });
  watchCheckpoint(metrics, checkpoint);
  const usesHelp = "Requests with a canary key, and reads of canaries by machines.";
  metrics.watch("keyhole_canary_uses_total", usesHelp, () => ({ ...alarms.canaries }), { label: "kind" });
  const elsewhereHelp = "Requests with a good key or token, from where it may not be used.";
  metrics.watch("keyhole_keys_elsewhere_total", elsewhereHelp, () => alarms.elsewhere);
  const overusesHelp = "Requests of jobs that had all answers that their trust gives a job.";
  metrics.watch("keyhole_trust_overuses_total", overusesHelp, () => alarms.overuses);
  metrics.watch("keyhole_limiter_buckets", "Buckets in memory that are not full.", () => limiter.size);
  const expiryHelp = "Days until the next live key or trust expires, and until the next variable is to be rotated.";
  const days = daysLeft(nextExpiry(background, setBytesMax), Date.now);
  // All processes have the same answer, or one that is a minute old.
  metrics.watch("keyhole_next_expiry_days", expiryHelp, days, { label: "kind", aggregator: "min" });
  metrics.watch("keyhole_waits", "Conditional reads that wait for a change.", () => waits.size);
  const lostHelp =
    "What failovers lost: entries that this server stored again, and losses that may be larger than it knows.";
  const ofLost = () => ({ brought_back: lost?.broughtBack ?? 0, unknown: lost?.unknown ?? 0 });
  metrics.watch("keyhole_audit_lost_total", lostHelp, ofLost, { label: "kind" });
  if (shared === undefined) return metrics;
  const away = () => (shared.away ? 1 : 0);
  metrics.watch("keyhole_limiter_fallback", "1 while a process counts alone.", away, { aggregator: "max" });
  metrics.watch("keyhole_limiter_fallbacks_total", "How often the shared buckets were lost.", () => shared.losses);
  return metrics;
}

/**
 * Logs the end of the commands' lane as a checkpoint. Commands end too soon to log one themselves, and nobody who edits
 * their lane in SQL can change this log.
 */
function openCommandsCheckpoint(database: Database, log: Log) {
  const readHead = laneHead(database, commandsLane);
  let announced: string | undefined;
  const announce = async () => {
    announced ??= "";
    try {
      const head = await readHead();
      const mac = head?.mac.toString("hex");
      if (head == null || announced === mac) return;
      announced = mac;
      log({ event: "checkpoint", lane: head.lane, seq: head.seq, mac });
    } catch (error) {
      log({ event: "checkpoint_failed", lane: commandsLane, reason: databaseErrorCode(error) });
    }
  };
  // Nothing is logged before the first `announce`.
  const announceNews = async () => (announced === undefined ? undefined : announce());
  const timer = setInterval(announceNews, checkpointEveryMs);
  return {
    announce,
    close: () => {
      clearInterval(timer);
      return announceNews();
    },
  };
}

/** Compares the database with the newest checkpoint that is known, now and from then on. */
async function openWatch(checkpoint: NewestCheckpoint, database: Database, log: Log) {
  let [putBack, unwritten, failure]: (string | undefined)[] = [];
  let isUnsigned = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;
  const look = async () => {
    const answered = await checkpoint.look(database);
    if (checkpoint.failure !== failure) {
      failure = checkpoint.failure;
      log(failure === undefined ? { event: "checkpoint_compared" } : notCompared(failure));
    }
    if (checkpoint.putBack !== putBack) {
      putBack = checkpoint.putBack;
      log(putBack === undefined ? { event: "database_accepted" } : { event: "database_put_back", reason: putBack });
    }
    if (checkpoint.unwritten !== unwritten) {
      unwritten = checkpoint.unwritten;
      if (unwritten !== undefined) log({ event: "checkpoint_unwritten", reason: unwritten });
    }
    if ((checkpoint.unsigned !== undefined) !== isUnsigned) {
      isUnsigned = !isUnsigned;
      log(isUnsigned ? { event: "audit_unsigned", reason: checkpoint.unsigned } : { event: "audit_signed" });
    }
    if (!stopped) timer = setTimeout(look, answered ? compareEveryMs : compareAgainMs);
  };
  await look();
  return {
    close: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

const notCompared = (reason: string) => ({ event: "checkpoint_not_compared", reason });

/** The trusts and their issuers' keys, as tokens need them. */
function openTrusts(lookups: Database, grantKey: Uint8Array, log: Log) {
  const monotonicMs = () => performance.now();
  const trusts = new TrustDirectory(trustFinder(lookups), grantKey, monotonicMs);
  const noteIssuer = (issuer: string, failure?: string) =>
    log({ event: "issuer", issuer, ok: !failure, reason: failure });
  const keys = new IssuerKeys(fetchJson, noteIssuer, monotonicMs);
  return { findTrusts: trusts.find.bind(trusts), findIssuerKeys: keys.find.bind(keys) };
}

const recordDeadlineMs = 2000;
const usesEveryMs = 1000;
const checkpointEveryMs = 60_000;
const compareEveryMs = 10_000;
/** After the database did not answer. */
const compareAgainMs = 1000;
