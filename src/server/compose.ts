import { version } from "../../package.json";
import { IssuerKeys } from "../access/issuer-keys.ts";
import { KeyUses } from "../access/key-uses.ts";
import { TrustDirectory } from "../access/trust-directory.ts";
import { type Checkpoint, Journal } from "../audit/journal.ts";
import { Deadline } from "../core/deadline.ts";
import { Fault } from "../core/fault.ts";
import { configProblem } from "../core/problem.ts";
import { commandsLane } from "../desk/changes.ts";
import type { Installation } from "../desk/installation.ts";
import type { Keyhole } from "../gates/keyhole.ts";
import { AdmissionQueue } from "../limit/admission-queue.ts";
import { MemoryBudget } from "../limit/budget.ts";
import { Limiter } from "../limit/limiter.ts";
import { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import { etagKeyOf } from "../seal/keyring.ts";
import { setBytesMax } from "../sets/kind.ts";
import { RememberedContents } from "../sets/remembered-contents.ts";
import { RememberedSets } from "../sets/remembered-sets.ts";
import { contentQueries } from "../store/contents.ts";
import { type Database, databaseErrorCode, warm } from "../store/database.ts";
import { nextExpiry } from "../store/expiry.ts";
import { keyLookups, keyUseWriter } from "../store/lookups.ts";
import { isPooled } from "../store/postgres.ts";
import { projectQueries } from "../store/projects.ts";
import { requestQueries } from "../store/requests.ts";
import { laneHead } from "../store/segments.ts";
import { setQueries } from "../store/sets.ts";
import { trustList } from "../store/trusts.ts";
import { daysLeft } from "./days-left.ts";
import { Drain } from "./drain.ts";
import { fetchJson } from "./fetch-json.ts";
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
  /** Logs the end of the commands' lane; called once it serves. From then on it is logged again if it has changed. */
  readonly announceCommands: () => Promise<void>;
  /** Finishes the journal, writes the last key uses, and closes every connection. */
  readonly close: () => Promise<void>;
};

type KeyholeOptions = {
  /** Without them this process counts alone. */
  readonly buckets?: SharedBuckets | undefined;
  readonly metered?: boolean;
  /** The collector for traces. */
  readonly tracesUrl?: string | undefined;
  /** Serve the Model Context Protocol, also to browsers that come from these origins. */
  readonly mcpOrigins?: readonly string[] | undefined;
};

/** Builds everything from an installation. The server and the tests both start here. */
export async function openKeyhole(
  installation: Installation,
  log: Log,
  { buckets, metered, tracesUrl, mcpOrigins }: KeyholeOptions = {},
): Promise<OpenKeyhole> {
  const { keyring, systemKeys } = installation;
  const database = installation.open("serve");
  // Lookups have connections of their own, so that they never wait behind other reads.
  const lookupDatabase = database.dialect === "postgres" ? installation.open("look-up") : database;
  const bulk = installation.open("files");
  const usesDatabase = installation.open("journal");
  const store = installation.openJournal();
  if (database.dialect === "postgres" && (await isPooled(lookupDatabase))) {
    throw configProblem("DATABASE_URL leads to a connection pooler such as PgBouncer: name PostgreSQL itself.");
  }
  await Promise.all([warm(lookupDatabase), warm(database)]);

  const logCheckpoint = (checkpoint: Checkpoint) => log({ event: "checkpoint", ...checkpoint });
  const journal = new Journal({
    append: store.append,
    auditKey: systemKeys.audit,
    now: Date.now,
    checkpoint: logCheckpoint,
    measure: (batch) => metrics?.measureBatch(batch),
    deadline: new Deadline(recordDeadlineMs, () => new Fault("unavailable", "writing audit entries took over 2 s")),
  });
  // Commands end too soon to keep a checkpoint. Someone who changes their lane in SQL cannot change this log.
  const readHead = laneHead(database, commandsLane);
  let announced: string | undefined;
  const announceCommands = async () => {
    announced ??= "";
    try {
      const head = await readHead();
      if (head === undefined || announced === head.mac) return;
      announced = head.mac;
      logCheckpoint(head);
    } catch (error) {
      log({ event: "checkpoint_failed", lane: commandsLane, reason: databaseErrorCode(error) });
    }
  };
  const limiter = new Limiter();
  const shared = buckets && new SharedLimiter(buckets, limiter, log);
  await shared?.open();
  const lookupQueue = new AdmissionQueue();
  const refusals = { metadata: 0, value: 0, content: 0, unrecognized: 0 };
  const uses = new KeyUses(keyUseWriter(usesDatabase));
  const memory = new MemoryBudget();
  const drain = new Drain();
  const monotonicMs = () => performance.now();
  const trusts = new TrustDirectory(trustList(lookupDatabase), systemKeys.grant, monotonicMs);
  const noteIssuer = (issuer: string, failure?: string) =>
    log({ event: "issuer", issuer, ok: !failure, reason: failure });
  const issuerKeys = new IssuerKeys(fetchJson, noteIssuer, monotonicMs);
  /** After the start it does nothing unless a trust that it knows needs published keys. */
  const keepIssuerKeys = async (atStart = false) => {
    if (!atStart && trusts.issuers.length === 0) return;
    // Without the database no token is accepted either.
    await trusts.refresh().catch(() => {});
    issuerKeys.keep(trusts.issuers);
  };
  void keepIssuerKeys(true);
  const timers = [
    setInterval(keepIssuerKeys, issuersEveryMs),
    setInterval(() => uses.flush(Date.now()), usesEveryMs),
    setInterval(() => {
      journal.announce();
      if (announced !== undefined) void announceCommands();
    }, checkpointEveryMs),
  ];

  // prom-client, OpenTelemetry and the MCP SDK are large: they are loaded only if somebody asks for them.
  const metrics: Metrics | undefined = metered
    ? new (await import("./metrics.ts")).Metrics(version, {
        dialect: database.dialect,
        auditQueued: () => journal.queued,
        refusals: () => ({ ...refusals, lane: lookupQueue.refused }),
        buckets: () => limiter.size,
        memory: () => memory.bytesTaken,
        // On the connection for last uses, which nobody waits for.
        expiryDays: daysLeft(nextExpiry(usesDatabase, setBytesMax), Date.now),
        pools: { "look-up": lookupDatabase.pool, serve: database.pool, files: bulk.pool, journal: usesDatabase.pool },
        shared,
      })
    : undefined;
  const traces = tracesUrl === undefined ? undefined : (await import("./traces.ts")).startTraces(tracesUrl, version);
  const mcp = mcpOrigins && (await import("../api/mcp.ts")).mcpEndpoint(new Set(mcpOrigins), version);

  return {
    gate: {
      pepper: systemKeys.pepper,
      grantKey: systemKeys.grant,
      lookUp: keyLookups(lookupDatabase),
      findTrusts: (issuer) => trusts.find(issuer),
      findIssuerKeys: (issuer, kid) => issuerKeys.find(issuer, kid),
      limiter,
      shared,
      refusals,
      unrecognized: new UnrecognizedLimiter(),
      lookupQueue,
      nowUs: () => Math.floor(performance.now() * 1000),
      now: Date.now,
      used: (keyId) => uses.note(keyId, Date.now()),
      recess: drain.recess,
    },
    source: {
      keyring,
      listingKey: systemKeys.listing,
      projects: projectQueries(database),
      sets: setQueries(database),
      contents: contentQueries(database, bulk),
      requests: requestQueries(database, usesDatabase),
      memory,
      remembered: new RememberedSets(),
      rememberedContents: new RememberedContents(),
    },
    etagKey: etagKeyOf(systemKeys.listing),
    journal,
    log,
    meter: metrics?.measure,
    trace: traces?.trace,
    mcp,
    draining: drain.draining,
    database,
    metrics,
    shared,
    readiness: watchReadiness(readinessChecks({ database, lookupDatabase, keyring, journal }), drain.draining, log),
    drain,
    announceCommands,
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      shared?.close();
      await traces?.close();
      await Promise.all([journal.close(), announced === undefined ? undefined : announceCommands()]);
      await uses.flush(Date.now(), true);
      const databases = new Set([usesDatabase, bulk, database, lookupDatabase]);
      await Promise.all([store, ...databases].map((one) => one.close()));
    },
  };
}

const recordDeadlineMs = 2000;
const usesEveryMs = 1000;
const issuersEveryMs = 10_000;
const checkpointEveryMs = 60_000;
