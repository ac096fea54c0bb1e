import { join } from "node:path";
import { Option } from "@commander-js/extra-typings";
import { sql } from "drizzle-orm";
import { version } from "../../package.json";
import { KeyUses } from "../access/key-uses.ts";
import { deskOf } from "../admin/desk.ts";
import { type Installation, openInstallation } from "../admin/installation.ts";
import { listOrganizations } from "../admin/organizations.ts";
import { Refused } from "../admin/refused.ts";
import { Journal } from "../audit/journal.ts";
import { type Config, parsePort, readConfig } from "../config.ts";
import { Ticker } from "../deadline.ts";
import { apiRoot, createApp, serveOptions } from "../http/app.ts";
import type { Keyhole } from "../http/keyhole.ts";
import { MemoryBudget } from "../limit/budget.ts";
import { Lane } from "../limit/lane.ts";
import { Limiter } from "../limit/limiter.ts";
import { redisBuckets, type SharedBuckets, SharedLimiter } from "../limit/shared.ts";
import { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import type { readinessChecks } from "../ops/checks.ts";
import type { Readiness } from "../ops/listener.ts";
import type { Metrics } from "../ops/metrics.ts";
import { RememberedSets } from "../read/lookup.ts";
import { FileOpener } from "../seal/file-opener.ts";
import { contentQueries } from "../store/contents.ts";
import { type Database, databaseErrorCode, isStrayConnectionFailure, warm } from "../store/database.ts";
import { keyLookups, keyUseWriter } from "../store/lookups.ts";
import { exclusively } from "../store/migrate.ts";
import { projectQueries } from "../store/projects.ts";
import { rightsBeyondServing } from "../store/rights.ts";
import { setQueries } from "../store/sets.ts";
import { Problem, parseCount, type Surroundings, usageProblem, verb } from "./command.ts";
import { harden } from "./harden.ts";
import { type Log, openLog } from "./log.ts";
import { addressProblem, openWorkerLink, superviseWorkers, type WorkerLink, workerFlag } from "./workers.ts";

/** `keyhole serve`: the API, until it is told to stop. */
export function serveCommand(here: Surroundings) {
  return verb(
    "serve",
    "Serve the API.",
    "keyhole serve",
    "DATABASE_URL=postgres://keyhole@db/keyhole KEYHOLE_ROOT_KEY_FILE=/run/secrets/root.key keyhole serve --host 0.0.0.0",
  )
    .option("--host <host>", "address to listen on (default: HOST, or 127.0.0.1)")
    .option("--port <number>", "port to listen on, 0 for any that is free (default: PORT, or 4100)")
    .option("--workers <number>", "processes that share the port, on PostgreSQL (default: 1)")
    .addOption(new Option(`${workerFlag} <log>`).choices(["pretty", "plain"]).hideHelp())
    .action(async ({ host, port, workers, worker }) => {
      const settings = readConfig(here.env);
      const config = {
        ...settings,
        host: host ?? settings.host,
        port: port === undefined ? settings.port : parsePort("--port", port),
      };
      const { stdout } = here.terminal;
      const pretty = worker === undefined ? stdout.isTTY : worker === "pretty";
      const { log, flush } = openLog((text) => void stdout.write(text), { pretty, now: Date.now });
      const count = workers === undefined ? 1 : parseWorkers(workers);
      if (count > 1 && config.databaseUrl === undefined) {
        throw usageProblem("--workers needs PostgreSQL (DATABASE_URL): the embedded database has one server.");
      }
      // A worker's parent has said already whatever is to be said about settings.
      const say = worker === undefined ? here.say : () => {};
      const env = { ...here.env };
      const installation = await openInstallation(config, say);
      if (count > 1) {
        harden();
        sayExposure(config, say);
        await sayFirstSteps(installation, say);
        const write = (lines: Uint8Array) => void stdout.write(lines);
        const worst = await superviseWorkers({ count, config, env, pretty, log, say, write });
        flush();
        if (worst !== 0) throw new Problem(worst, "worker_failed", "A worker did not end well: see above.");
        return;
      }
      const server = await startServer(config, installation, log, say, worker && openWorkerLink());
      if (worker === undefined) await sayFirstSteps(installation, say);
      const exitCode = await server.stopped;
      flush();
      if (exitCode !== 0) throw new Error("stopped after a defect");
    });
}

/** A server that runs. */
export type RunningServer = {
  /** Where it listens, as in `http://127.0.0.1:4100`. */
  readonly origin: string;
  /** Drains and stops; safe to call again. */
  readonly stop: () => void;
  /** The exit code, once everything is finished and flushed. */
  readonly stopped: Promise<number>;
};

/**
 * Starts the API on an open installation. SIGTERM and SIGINT drain it; a second one ends the process at once.
 *
 * @param link - to the process that started this one as one of several on the same port
 * @throws Refused where the address is taken, or another server runs on the same data folder
 */
export async function startServer(
  config: Config,
  installation: Installation,
  log: Log,
  say: (line: string) => void,
  link?: WorkerLink,
): Promise<RunningServer> {
  harden();
  const lock = config.databaseUrl === undefined ? lockFolder(config.dataFolder) : undefined;
  const buckets = config.limiterUrl === undefined ? link?.buckets : redisBuckets(config.limiterUrl);
  const keyhole = await openKeyhole(installation, log, {
    buckets,
    metered: config.ops !== undefined,
    tracesUrl: config.tracesUrl,
  });
  if (keyhole.gate.shared?.away) {
    say("WARNING: the store at KEYHOLE_LIMITER_URL cannot be reached: until it is, each process counts for itself.");
  }
  if (config.databaseUrl !== undefined) {
    await sayDurability(keyhole.database, say);
    await sayRights(keyhole.database, say);
  }
  const app = createApp(keyhole);
  try {
    app.listen({ ...serveOptions, reusePort: link !== undefined, hostname: config.host, port: config.port });
  } catch (error) {
    await keyhole.close();
    lock?.release();
    throw addressProblem(error, config.host, config.port, "--port");
  }
  let ops: { readonly origin: string; stop(): Promise<void> } | undefined;
  if (config.ops !== undefined && link === undefined) {
    const { startOps } = await import("../ops/listener.ts");
    try {
      ops = startOps(config.ops, {
        readiness: keyhole.readiness,
        metrics: async () => (await keyhole.metrics?.text()) ?? "",
      });
    } catch (error) {
      await app.server?.stop(true);
      await keyhole.close();
      lock?.release();
      throw addressProblem(error, config.ops.host, config.ops.port, "KEYHOLE_OPS_PORT");
    }
    say(`Health and metrics are on ${ops.origin}`);
  }
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  const origin = `http://${host}:${app.server?.port}`;
  say(`Keyhole listens on ${origin}${apiRoot}`);
  sayExposure(config, say);

  const { promise: stopped, resolve } = Promise.withResolvers<number>();
  let exitCode = 0;
  const stop = async () => {
    if (keyhole.draining()) return;
    keyhole.drain();
    // Answers now close their connections; those who are about to ask find out before the port is gone.
    await Bun.sleep(drainNoticeMs);
    // Whoever is answered now connects anew at once, and a connection without its request is cut off with the port. So
    // for a moment nobody is answered, until every connection has its request; these are finished once the port is gone.
    const { held, goOn } = keyhole.pause();
    const giveUpAt = performance.now() + drainNoticeMs * 4;
    while ((app.server?.pendingRequests ?? 0) > held() && performance.now() < giveUpAt) await Bun.sleep(5);
    await Bun.sleep(drainPauseMs);
    const finished = app.server?.stop(false);
    await link?.closed();
    goOn();
    await Promise.race([finished, Bun.sleep(drainDeadlineMs)]);
    await app.server?.stop(true);
    await keyhole.close();
    await ops?.stop();
    lock?.release();
    resolve(exitCode);
  };
  const onSignal = (signal: string) => {
    // A worker ends when its parent says so; a signal to the whole group reaches both.
    if (link !== undefined) return signal === "SIGTERM" ? void stop() : undefined;
    if (keyhole.draining()) process.exit(1);
    say(`${signal}: finishing what is under way; a second one ends at once.`);
    void stop();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  const onDefect = (error: unknown) => {
    // A database that fails is waited for, not a reason to end.
    if (isStrayConnectionFailure(error)) return log({ event: "connection_lost", code: databaseErrorCode(error) });
    // Its message may hold anything; its kind and place do not.
    const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: undefined };
    log({
      event: "defect",
      defect: name,
      code: databaseErrorCode(error),
      at: stack
        ?.split("\n")
        .find((line) => line.includes("at "))
        ?.trim(),
    });
    exitCode = 1;
    void stop();
  };
  process.on("uncaughtException", onDefect);
  process.on("unhandledRejection", onDefect);
  link?.listening(
    { readiness: keyhole.readiness, metrics: async () => (await keyhole.metrics?.scrape()) ?? [] },
    () => void stop(),
  );
  return { origin, stop: () => void stop(), stopped };
}

/** All that the API needs, made of an installation, and what runs beside it. Tests build their apps of it too. */
export type OpenKeyhole = Keyhole & {
  readonly database: Database;
  /** Undefined where nobody asked for them. */
  readonly metrics: Metrics | undefined;
  /** Whether all that requests need is there at this moment; a change is logged. */
  readonly readiness: () => Promise<Readiness>;
  readonly drain: () => void;
  /** Holds requests that begin from now on, until `goOn`. `held` is how many that are. */
  readonly pause: () => { readonly held: () => number; readonly goOn: () => void };
  /** Finishes the journal and the notes of last use, and closes every connection. */
  readonly close: () => Promise<void>;
};

export type KeyholeOptions = {
  /** Buckets that other processes share; its own where left out. */
  readonly buckets?: SharedBuckets | undefined;
  /** Whether to count, for a scrape. */
  readonly metered?: boolean;
  /** Where to send traces, if anywhere. */
  readonly tracesUrl?: string | undefined;
};

export async function openKeyhole(
  installation: Installation,
  log: Log,
  options: KeyholeOptions = {},
): Promise<OpenKeyhole> {
  const { keyring, systemKeys } = installation;
  const database = installation.open("serve");
  // On connections of their own, look-ups wait behind no other read.
  const gatehouse = database.dialect === "postgres" ? installation.open("look-up") : database;
  const bulk = installation.open("files");
  const side = installation.open("journal");
  const store = installation.openJournal();
  await Promise.all([warm(gatehouse), warm(database)]);
  const journal = new Journal({
    append: store.append,
    auditKey: systemKeys.audit,
    now: Date.now,
    checkpoint: (checkpoint) => log({ event: "checkpoint", ...checkpoint }),
    measure: (batch) => metrics?.measureBatch(batch),
    ticker: (look) => new Ticker(100, look),
  });
  const limiter = new Limiter();
  const nowUs = () => Math.floor(performance.now() * 1000);
  const uses = new KeyUses(keyUseWriter(side));
  const timers = [
    setInterval(() => uses.flush(Date.now()), usesEveryMs),
    setInterval(() => limiter.sweep(nowUs()), sweepEveryMs),
    setInterval(() => journal.announce(), checkpointEveryMs),
  ];
  let draining = false;
  let paused: Promise<void> | undefined;
  let held = 0;
  const shared = options.buckets && new SharedLimiter(options.buckets, limiter, log);
  await shared?.open();
  const lane = new Lane();
  const opener = new FileOpener();
  const memory = new MemoryBudget();
  const refusals = { metadata: 0, value: 0, content: 0, unrecognized: 0 };
  const metrics: Metrics | undefined = options.metered
    ? new (await import("../ops/metrics.ts")).Metrics(version, {
        dialect: database.dialect,
        auditQueued: () => journal.queued,
        refusals: () => ({ ...refusals, lane: lane.refused }),
        buckets: () => limiter.size,
        memory: () => memory.bytesTaken,
        pools: { "look-up": gatehouse.pool, serve: database.pool, files: bulk.pool, journal: side.pool },
        shared,
      })
    : undefined;
  const traces =
    options.tracesUrl === undefined
      ? undefined
      : (await import("../ops/traces.ts")).startTraces(
          options.tracesUrl,
          process.env["OTEL_SERVICE_NAME"] || "keyhole",
          version,
        );
  return {
    gate: {
      pepper: systemKeys.pepper,
      grantKey: systemKeys.grant,
      lookUp: keyLookups(gatehouse),
      limiter,
      shared,
      refusals,
      unrecognized: new UnrecognizedLimiter(),
      lane,
      nowUs,
      used: (keyId) => uses.note(keyId, Date.now()),
    },
    source: {
      keyring,
      listingKey: systemKeys.listing,
      projects: projectQueries(database),
      sets: setQueries(database),
      contents: contentQueries(database, bulk),
      opener,
      memory,
      remembered: new RememberedSets(),
    },
    journal,
    log,
    meter: metrics?.measure,
    trace: traces?.trace,
    draining: () => draining,
    recess: () => {
      if (paused) held += 1;
      return paused;
    },
    database,
    metrics,
    readiness: readinessOf({ database, gatehouse, keyring, journal }, () => draining, log),
    drain: () => {
      draining = true;
    },
    pause: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      paused = promise;
      return { held: () => held, goOn: resolve };
    },
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      opener.close();
      shared?.close();
      await traces?.close();
      await journal.close();
      await uses.flush(Date.now(), true);
      await Promise.all([
        store.close(),
        side.close(),
        bulk.close(),
        database.close(),
        gatehouse !== database && gatehouse.close(),
      ]);
    },
  };
}

const usesEveryMs = 1000;
const sweepEveryMs = 1000;
const checkpointEveryMs = 60_000;
const drainNoticeMs = 250;
const drainPauseMs = 100;
const drainDeadlineMs = 20_000;

function readinessOf(
  needs: Parameters<typeof readinessChecks>[0],
  draining: () => boolean,
  log: Log,
): () => Promise<Readiness> {
  let checks: ReturnType<typeof readinessChecks> | undefined;
  let last = "";
  return async () => {
    const { checkReadiness } = await import("../ops/listener.ts");
    checks ??= (await import("../ops/checks.ts")).readinessChecks(needs);
    const readiness = await checkReadiness(draining(), checks);
    const failed = Object.keys(readiness.checks).filter((name) => !readiness.checks[name]);
    if (failed.join() !== last) log({ event: "readiness", ready: readiness.ready, failed });
    last = failed.join();
    return readiness;
  };
}

function parseWorkers(text: string): number {
  const count = parseCount("--workers", text);
  if (count <= workersMax) return count;
  throw usageProblem(`--workers takes at most ${workersMax}.`);
}

const workersMax = 256;

function sayExposure({ host }: Config, say: (line: string) => void): void {
  if (/^(?:127\.|::1$|localhost$)/.test(host)) return;
  say(
    "WARNING: this address can be reached from other machines, and Keyhole speaks plain HTTP: put TLS in front of it.",
  );
}

/** @throws Refused where another server holds the folder */
function lockFolder(folder: string): { release(): void } {
  const lock = exclusively(join(folder, "serve.lock"), 0);
  if (!lock) throw new Refused("unavailable", `Another Keyhole serves ${folder} already: one server for each folder.`);
  return lock;
}

async function sayRights(database: Database, say: (line: string) => void): Promise<void> {
  const { role, beyond } = await rightsBeyondServing(database);
  if (beyond.length === 0) return;
  say(
    `WARNING: the database role ${role} can do more than serving needs: it ${beyond.join(", and ")}. \`keyhole db grants\` prints what is enough.`,
  );
}

async function sayDurability(database: Database, say: (line: string) => void): Promise<void> {
  const [row] = await database.query<{ fsync: string; commit: string }>(
    sql`select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit`,
  )({});
  if (row?.fsync !== "on") {
    say(
      "WARNING: PostgreSQL runs with fsync off: audit entries of values that left can be lost when the machine fails.",
    );
  }
}

async function sayFirstSteps(installation: Installation, say: (line: string) => void): Promise<void> {
  const desk = deskOf(installation);
  const organizations = await listOrganizations(desk).finally(() => desk.close());
  if (organizations.length > 0) return;
  say("Nothing is stored here yet. In another terminal, type first:");
  say("  keyhole org create acme");
  say("  keyhole project create acme/web");
  say("  keyhole key create --org acme --name ci");
  say("(from a checkout: `bun run keyhole` in place of `keyhole`)");
}
