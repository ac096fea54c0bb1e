import { Option } from "@commander-js/extra-typings";
import { Problem, usageProblem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { type Config, parsePort, readAddress, readConfig } from "../core/settings/settings.ts";
import { wholeNumber } from "../core/words/parse.ts";
import { isEmpty, openInstallation, removeLeftovers } from "../installation/installation.ts";
import { upgradedMessage } from "../installation/upgrade.ts";
import { openUpgraded } from "../serve/process/await-upgrade.ts";
import { boundedOutput, openLog } from "../serve/process/log.ts";
import { requireFreeAddresses, startServer } from "../serve/process/serve.ts";
import { startWatchdog } from "../serve/process/watchdog.ts";
import { openWorkerLink, workerFlag } from "../serve/process/worker-link.ts";
import { harden } from "./harden.ts";
import { type CommandContext, startedAs, verb } from "./terminal/verb.ts";

/** `keyhole serve`: serves the API until it is told to stop. */
export function serveCommand(context: CommandContext) {
  return verb(
    "serve",
    "Serve the API.",
    "keyhole serve",
    "DATABASE_URL=postgres://keyhole@db/keyhole KEYHOLE_ROOT_KEY_FILE=/run/secrets/root.key keyhole serve --host 0.0.0.0",
  )
    .option("--host <host>", "address to listen on, or unix:/path for a socket (default: HOST, or 127.0.0.1)")
    .option("--port <number>", "port to listen on; 0 for any free one (default: PORT, or 4100)")
    .option("--workers <number>", "processes that share the port; needs PostgreSQL (default: 1)", wholeNumber(1, 256))
    .option("--here", "begin an installation on this machine although KEYHOLE_SSH names another")
    .addOption(new Option(`${workerFlag} <log>`).choices(["pretty", "plain"]).hideHelp())
    .action(async ({ workers = 1, ...options }) => {
      const prepared = prepare(context, options);
      return workers > 1 ? supervise(prepared, workers) : serve(prepared);
    });
}

type ServeOptions = {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly here?: true | undefined;
  readonly worker?: "pretty" | "plain" | undefined;
};

type ServeSettings = ReturnType<typeof prepare>;

/** The settings, judged, and the log. */
function prepare(context: CommandContext, { host, port, here, worker }: ServeOptions) {
  const settings = readConfig(context.env);
  const config: Config = {
    ...settings,
    ...(host !== undefined && readAddress("--host", host, context.env)),
    ...(port !== undefined && { port: parsePort("--port", port) }),
  };
  const { stdout } = context.terminal;
  const isWorker = worker !== undefined;
  const pretty = isWorker ? worker === "pretty" : stdout.isTTY;
  const write = boundedOutput(stdout);
  return {
    config,
    isWorker,
    pretty,
    write,
    ...openLog(write, { pretty, now: Date.now }),
    // A worker's parent has already printed the messages about the settings.
    say: isWorker ? () => {} : context.say,
    /** A copy: what holds a secret is erased before the installation is opened. */
    env: { ...context.env },
    elsewhere: here ? undefined : context.env["KEYHOLE_SSH"],
  };
}

/**
 * Opens the installation, and does once what several workers need once. If its tables are of an older program, it waits.
 * @returns also what to tell who begins; undefined if a signal ended the wait
 */
async function open({ config, isWorker, pretty, log, say, elsewhere }: ServeSettings) {
  // The watchdog starts before the database is asked: its first answer may be malformed and hang the parser. With the
  // embedded database it starts afterwards: an upgrade may keep this thread busy for long.
  if (config.postgres !== undefined) startWatchdog(pretty);
  if (!isWorker) await requireFreeAddresses(config);
  harden(); // the wait for an upgrade may be long
  const openNow = () => openHere(config, say, elsewhere);
  const installation = isWorker ? await openNow() : await openUpgraded(config, true, openNow, log, say);
  if (installation === undefined) return undefined;
  if (!isWorker) removeLeftovers(config);
  if (config.postgres === undefined) startWatchdog(pretty);
  // Asked before the port opens: if the database goes away later, the server must not stop.
  const hint = !isWorker && (await isEmpty(installation)) ? firstSteps(startedAs()) : undefined;
  return { installation, hint };
}

/** Serves in this process. */
async function serve(prepared: ServeSettings): Promise<void> {
  const { config, isWorker, log, flush, say } = prepared;
  const link = isWorker ? openWorkerLink() : undefined;
  const opened = await open(prepared);
  if (opened === undefined) return flush();
  const { installation, hint } = opened;
  const server = await startServer(config, installation, log, say, link);
  if (hint) say(hint);
  const exitCode = await server.stopped;
  flush();
  if (exitCode !== 0) throw new Error("stopped after a defect");
}

/** Starts workers that serve. Only this process loads what watches over them, and it answers no request itself. */
async function supervise(prepared: ServeSettings, count: number): Promise<void> {
  const { config, flush, say } = prepared;
  if (config.postgres === undefined) {
    throw usageProblem("--workers needs PostgreSQL (DATABASE_URL): the embedded database has one server.");
  }
  if (config.socket !== undefined) {
    throw usageProblem("--workers shares a port, and no socket: give HOST an address, or serve with one process.");
  }
  const opened = await open(prepared);
  if (opened === undefined) return flush();
  if (opened.hint) say(opened.hint);
  const { Supervisor } = await import("../serve/process/workers.ts");
  const worst = await new Supervisor({ ...prepared, count }).run();
  flush();
  if (worst !== 0) throw new Problem(worst, "worker_failed", "A worker failed: see above.");
}

/**
 * Opens the installation, and upgrades an embedded database.
 * @param elsewhere - where people's commands run, if not here: then no installation begins here
 */
async function openHere(config: Config, say: (line: string) => void, elsewhere: string | undefined) {
  try {
    const consent = { begin: elsewhere === undefined, upgrade: config.postgres === undefined };
    const installation = await openInstallation(config, say, consent);
    const { from, to } = installation.tables;
    if (from < to) say(upgradedMessage(installation.tables));
    return installation;
  } catch (error) {
    if (elsewhere === undefined || !(error instanceof Refused) || error.kind !== "not_found") throw error;
    throw usageProblem(`KEYHOLE_SSH names ${elsewhere}, and no Keyhole is here: serve --here begins one.`);
  }
}

function firstSteps(program: string): string {
  return `Nothing is stored yet. In another terminal, in this folder, begin with:
  ${program} org create acme
  ${program} project create acme/web
  ${program} key create --org acme --name ci --project web --env production`;
}
