import { join } from "node:path";
import { sql } from "drizzle-orm";
import { deskOf } from "../admin/desk.ts";
import { type Installation, openInstallation } from "../admin/installation.ts";
import { listOrganizations } from "../admin/organizations.ts";
import { Refused } from "../admin/refused.ts";
import { Journal } from "../audit/journal.ts";
import { type Config, parsePort, readConfig } from "../config.ts";
import { apiRoot, createApp, serveOptions } from "../http/app.ts";
import type { Keyhole } from "../http/keyhole.ts";
import { ByteBudget } from "../limit/budget.ts";
import { Lane } from "../limit/lane.ts";
import { Limiter } from "../limit/limiter.ts";
import { UnrecognizedLimiter } from "../limit/unrecognized.ts";
import { SealedSets } from "../read/sets.ts";
import { accountQueries } from "../store/accounts.ts";
import { type Database, warm } from "../store/database.ts";
import { fileQueries } from "../store/files.ts";
import { keyLookUps, keyUseWriter } from "../store/keys.ts";
import { exclusively } from "../store/migrate.ts";
import { projectQueries } from "../store/projects.ts";
import { setQueries } from "../store/sets.ts";
import { variableQueries } from "../store/variables.ts";
import { type Surroundings, verb } from "./command.ts";
import { harden } from "./harden.ts";
import { type Log, openLog } from "./log.ts";

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
    .action(async ({ host, port }) => {
      const settings = readConfig(here.env);
      const config = {
        ...settings,
        host: host ?? settings.host,
        port: port === undefined ? settings.port : parsePort("--port", port),
      };
      const { stdout } = here.terminal;
      const { log, flush } = openLog((text) => void stdout.write(text), { pretty: stdout.isTTY, now: Date.now });
      const installation = await openInstallation(config, here.say);
      const server = await startServer(config, installation, log, here.say);
      await sayFirstSteps(installation, here.say);
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
 * @throws Refused where the address is taken, or another server runs on the same data folder
 */
export async function startServer(
  config: Config,
  installation: Installation,
  log: Log,
  say: (line: string) => void,
): Promise<RunningServer> {
  harden();
  const lock = config.databaseUrl === undefined ? lockFolder(config.dataFolder) : undefined;
  const keyhole = await openKeyhole(installation, log);
  if (config.databaseUrl !== undefined) await sayDurability(keyhole.database, say);
  const app = createApp(keyhole);
  try {
    app.listen({ ...serveOptions, hostname: config.host, port: config.port });
  } catch (error) {
    await keyhole.close();
    lock?.release();
    const taken = (error as { code?: unknown }).code === "EADDRINUSE";
    throw new Refused(
      "unavailable",
      taken
        ? `The address ${config.host}:${config.port} is in use: stop what listens there, or choose another with --port.`
        : `Cannot listen on ${config.host}:${config.port}.`,
    );
  }
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  const origin = `http://${host}:${app.server?.port}`;
  say(`Keyhole listens on ${origin}${apiRoot}`);
  if (!/^(?:127\.|::1$|localhost$)/.test(config.host)) {
    say(
      "WARNING: this address can be reached from other machines, and Keyhole speaks plain HTTP: put TLS in front of it.",
    );
  }

  const { promise: stopped, resolve } = Promise.withResolvers<number>();
  let exitCode = 0;
  const stop = async () => {
    if (keyhole.draining()) return;
    keyhole.drain();
    // Answers now close their connections; those who are about to ask find out before the port is gone.
    await Bun.sleep(drainNoticeMs);
    await Promise.race([app.server?.stop(false), Bun.sleep(drainDeadlineMs)]);
    await app.server?.stop(true);
    await keyhole.close();
    lock?.release();
    resolve(exitCode);
  };
  const onSignal = (signal: string) => {
    if (keyhole.draining()) process.exit(1);
    say(`${signal}: finishing what is under way; a second one ends at once.`);
    void stop();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  const onDefect = (error: unknown) => {
    // Its message may hold anything; its kind and place do not.
    const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: undefined };
    log({
      event: "defect",
      defect: name,
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
  return { origin, stop: () => void stop(), stopped };
}

/** All that the API needs, made of an installation, and what runs beside it. Tests build their apps of it too. */
export type OpenKeyhole = Keyhole & {
  readonly database: Database;
  readonly drain: () => void;
  /** Finishes the journal and the notes of last use, and closes every connection. */
  readonly close: () => Promise<void>;
};

export async function openKeyhole(installation: Installation, log: Log): Promise<OpenKeyhole> {
  const { keyring, systemKeys } = installation;
  const database = installation.open("serve");
  const bulk = installation.open("files");
  const side = installation.open("journal");
  const store = installation.openJournal();
  await warm(database);
  const journal = new Journal({
    append: store.append,
    auditKey: systemKeys.audit,
    now: Date.now,
    checkpoint: (checkpoint) => log({ event: "checkpoint", ...checkpoint }),
  });
  const limiter = new Limiter();
  const nowUs = () => Math.floor(performance.now() * 1000);
  const uses = new Map<string, number>();
  const writeUses = keyUseWriter(side);
  const flushUses = async () => {
    const due = new Map(uses);
    uses.clear();
    // Lost, they cost nothing but a later look at when a key was used.
    await writeUses(due).catch(() => {});
  };
  const timers = [
    setInterval(flushUses, usesEveryMs),
    setInterval(() => limiter.sweep(nowUs()), sweepEveryMs),
    setInterval(() => journal.announce(), checkpointEveryMs),
  ];
  let draining = false;
  return {
    gate: {
      pepper: systemKeys.pepper,
      grantKey: systemKeys.grant,
      lookUp: keyLookUps(database),
      limiter,
      unrecognized: new UnrecognizedLimiter(),
      lane: new Lane(),
      nowUs,
      used: (keyId) => uses.set(keyId, Date.now()),
    },
    source: {
      keyring,
      projects: projectQueries(database),
      variables: variableQueries(database),
      sets: new SealedSets(setQueries(database)),
      accounts: accountQueries(database),
      files: fileQueries(database, bulk),
    },
    journal,
    budget: new ByteBudget(),
    log,
    draining: () => draining,
    database,
    drain: () => {
      draining = true;
    },
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      await journal.close();
      await flushUses();
      await Promise.all([store.close(), side.close(), bulk.close(), database.close()]);
    },
  };
}

const usesEveryMs = 1000;
const sweepEveryMs = 1000;
const checkpointEveryMs = 60_000;
const drainNoticeMs = 250;
const drainDeadlineMs = 20_000;

/** @throws Refused where another server holds the folder */
function lockFolder(folder: string): { release(): void } {
  const lock = exclusively(join(folder, "serve.lock"), 0);
  if (!lock) throw new Refused("unavailable", `Another Keyhole serves ${folder} already: one server for each folder.`);
  return lock;
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
