import { sql } from "drizzle-orm";
import { isLoopback, networkFailureOf, originOf } from "../../core/json-request.ts";
import { listening } from "../../core/listening.ts";
import type { Log } from "../../core/log.ts";
import { Refused } from "../../core/refused.ts";
import type { Config } from "../../core/settings/settings.ts";
import { serveLock } from "../../installation/data-folder.ts";
import type { Installation } from "../../installation/installation.ts";
import { kindsByRead } from "../../kinds/kind.ts";
import { type RunningNotary, startNotary, watchNotary } from "../../record/notary/link.ts";
import { databaseErrorCode, isStrayConnectionFailure } from "../../store/database.ts";
import { rightsBeyondServing } from "../../store/rights.ts";
import { exclusively } from "../../store/sqlite-file.ts";
import { apiRoot, createApp, mcpPath, serveOptions } from "../api/app.ts";
import { defectOf } from "../api/problem.ts";
import { type OpenKeyhole, openKeyhole } from "./compose.ts";
import type { Readiness } from "./health.ts";
import { startOps } from "./ops.ts";
import { redisBuckets } from "./redis-buckets.ts";
import { isRefusal } from "./shared-limiter.ts";
import { listenOnSocket, requireFreeSocket } from "./socket.ts";
import type { WorkerLink } from "./worker-link.ts";

export type RunningServer = {
  /** Such as `http://127.0.0.1:4100`, or `unix:/run/keyhole/api.sock`. */
  readonly origin: string;
  /** Drains and stops; later calls do nothing. */
  readonly stop: () => void;
  /** The exit code, once every request is finished and every audit entry written. */
  readonly stopped: Promise<number>;
};

/** Asks for the addresses before an installation begins for a server that cannot listen. @throws Refused if one is taken */
export async function requireFreeAddresses({ host, port, socket, ops }: Config): Promise<void> {
  const probe = (hostname: string, number: number, setting: string) => {
    const bind = () => Bun.listen({ hostname, port: number, socket: { data() {} } });
    if (number !== 0) listening(hostname, number, setting, bind).stop(true);
  };
  if (socket === undefined) probe(host, port, "--port");
  else await requireFreeSocket(socket);
  if (ops !== undefined) probe(ops.host, ops.port, opsPortSetting);
}

const opsPortSetting = "KEYHOLE_OPS_PORT";

/**
 * Starts the API on an open installation. SIGTERM and SIGINT drain it; a second signal ends the process at once.
 * @param link - to the parent process, if this is one of several workers
 * @throws Refused if an address is taken, or another server uses the same data folder
 */
export async function startServer(
  config: Config,
  installation: Installation,
  log: Log,
  say: (line: string) => void,
  link?: WorkerLink,
): Promise<RunningServer> {
  await using opening = new AsyncDisposableStack();
  if (config.postgres === undefined) {
    const lock = exclusively(serveLock(config), 0);
    const message = `Another Keyhole serves ${config.dataFolder} already. A folder has only one server.`;
    if (!lock) throw new Refused("unavailable", message);
    opening.defer(() => lock.release());
  }
  let notary: RunningNotary | undefined;
  const keyhole = await openKeyhole(installation, log, {
    buckets: config.limiterUrl === undefined ? link?.buckets : redisBuckets(config.limiterUrl),
    metered: config.ops !== undefined,
    notary: () => notary,
    tracesUrl: config.tracesUrl,
    mcpOrigins: config.mcpOrigins,
    // On a port, the peer of a connection that is gone has no address either.
    proxies: config.trustedProxies?.filter((one) => one !== "unix" || config.socket !== undefined),
  });
  opening.defer(keyhole.close);
  await warnOf(config, keyhole, say);

  const app = createApp(keyhole);
  const { socket, host, port } = config;
  if (socket !== undefined) await requireFreeSocket(socket);
  const { server: listener, remove } =
    socket === undefined
      ? {
          server: listening(host, port, "--port", () =>
            app.listen({ ...serveOptions(log), reusePort: link !== undefined, hostname: host, port }),
          ),
          remove: () => {},
        }
      : listenOnSocket(socket, (unix) => app.listen({ ...serveOptions(log), unix } as object));
  const { server } = listener;
  if (server === null) throw new Error("the API listens on nothing");
  opening.defer(() => server.stop(true));
  opening.defer(remove);
  if (installation.file !== undefined) {
    notary = await startNotary(installation, installation.file, config, kindsByRead, log);
    opening.defer(notary.stop);
    watchNotary(keyhole.metrics, notary);
  }
  const { readiness } = keyhole;
  const scrape = async () => (await keyhole.metrics?.scrape()) ?? [];
  if (config.ops !== undefined && link === undefined) {
    const { summed } = await import("./metrics.ts");
    const metrics = async (readiness: Readiness) => summed([await scrape()], readiness);
    const ops = openOps(config.ops, { readiness, metrics }, say);
    opening.defer(ops.stop);
  }
  const origin = socket === undefined ? originOf(host, server.port ?? port) : `unix:${socket.path}`;
  sayOrigin(config, origin, say);

  const resources = opening.move();
  const close = async () => {
    await keyhole.drain.stop(server, async () => {
      remove();
      await link?.portClosed();
    });
    await resources.disposeAsync();
  };
  const { stop, stopped } = untilStopped(keyhole.draining, close, link !== undefined, log, say);
  link?.listening({ readiness, metrics: scrape }, stop);
  void keyhole.announceCommands();
  return { origin, stop, stopped };
}

/**
 * Runs until a signal, a defect or a call of `stop`, then closes.
 * @param isWorker - its parent reacts to signals that reach the whole group
 */
function untilStopped(
  draining: () => boolean,
  close: () => Promise<void>,
  isWorker: boolean,
  log: Log,
  say: (line: string) => void,
): Omit<RunningServer, "origin"> {
  const { promise: stopped, resolve } = Promise.withResolvers<number>();
  let exitCode = 0;
  const end = () => resolve(exitCode);
  const stop = () => {
    if (!draining()) void close().catch(onDefect).then(end);
  };
  const onSignal = (signal: string) => {
    // SIGTERM may be meant for this one worker.
    if (isWorker) return signal === "SIGTERM" ? stop() : undefined;
    if (draining()) process.exit(1);
    say(`${signal}: ${drainNotice}`);
    stop();
  };
  const onDefect = (error: unknown) => {
    // The server waits for a failed database and does not end.
    if (isStrayConnectionFailure(error)) return log({ event: "connection_lost", code: databaseErrorCode(error) });
    log({ event: "defect", ...defectOf(error), code: databaseErrorCode(error) });
    exitCode = 1;
    stop();
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, onSignal);
  for (const event of ["uncaughtException", "unhandledRejection"] as const) process.on(event, onDefect);
  return { stop, stopped };
}

export const drainNotice = "finishing open requests. A second signal stops at once.";

/** Says where the API can be reached, and warns if that is beyond this machine. */
export function sayOrigin({ host, socket, mcpOrigins }: Config, origin: string, say: (line: string) => void): void {
  if (socket !== undefined) {
    say(`Keyhole listens on ${origin}`);
    return;
  }
  say(`Keyhole listens on ${origin}${apiRoot}`);
  if (mcpOrigins !== undefined) say(`Agents use ${origin}${mcpPath}`);
  if (isLoopback(host)) return;
  say("WARNING: Other machines can reach this address, and Keyhole speaks plain HTTP. Put TLS in front of it.");
}

/** Starts the second listener and says where it is. @throws Refused if its address is taken */
export function openOps(
  { host, port }: NonNullable<Config["ops"]>,
  answers: Parameters<typeof startOps>[1],
  say: (line: string) => void,
): ReturnType<typeof startOps> {
  const ops = listening(host, port, opsPortSetting, () => startOps({ host, port }, answers));
  say(`Health and metrics are on ${ops.origin}`);
  return ops;
}

async function warnOf({ postgres }: Config, { database, shared }: OpenKeyhole, say: (line: string) => void) {
  const warn = (text: string) => say(`WARNING: ${text}`);
  if (shared?.away) {
    const why = isRefusal(shared.reason)
      ? `refuses the user or the password (${shared.reason})`
      : `cannot be reached: ${networkFailureOf(shared.reason)}`;
    warn(`the store at KEYHOLE_LIMITER_URL ${why}. Until it can be used, each process counts alone.`);
  }
  if (postgres === undefined) return;
  const [row] = await database.query<{ fsync: string }>(sql`select current_setting('fsync') as fsync`)({});
  if (row?.fsync !== "on") {
    warn("PostgreSQL runs with fsync off. A crash of its machine can lose audit entries of values already sent.");
  }
  const { role, beyond } = await rightsBeyondServing(database);
  if (beyond.length === 0) return;
  warn(
    `the database role ${role} can do more than serving needs: it ${beyond.join(", and ")}. \`keyhole db grants\` prints what is enough.`,
  );
}
