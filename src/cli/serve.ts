import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { Problem, usageProblem } from "../core/problem.ts";
import { parseHost, parsePort, readConfig } from "../core/settings.ts";
import { isEmpty, openInstallation } from "../installation/installation.ts";
import { removeLeftovers } from "../installation/leftovers.ts";
import { boundedOutput, openLog } from "../server/log.ts";
import { startServer } from "../server/serve.ts";
import { startWatchdog } from "../server/watchdog.ts";
import { openWorkerLink, workerFlag } from "../server/worker-link.ts";
import { Supervisor } from "../server/workers.ts";
import { type CommandContext, startedAs, verb } from "../terminal/command.ts";
import { parseCount } from "../terminal/options.ts";
import { harden } from "./harden.ts";

/** `keyhole serve`: serves the API until it is told to stop. */
export function serveCommand(context: CommandContext) {
  return verb(
    "serve",
    "Serve the API.",
    "keyhole serve",
    "DATABASE_URL=postgres://keyhole@db/keyhole KEYHOLE_ROOT_KEY_FILE=/run/secrets/root.key keyhole serve --host 0.0.0.0",
  )
    .option("--host <host>", "address to listen on (default: HOST, or 127.0.0.1)")
    .option("--port <number>", "port to listen on; 0 for any free one (default: PORT, or 4100)")
    .option("--workers <number>", "processes that share the port; needs PostgreSQL (default: 1)", parseWorkers)
    .addOption(new Option(`${workerFlag} <log>`).choices(["pretty", "plain"]).hideHelp())
    .action(async ({ host, port, workers = 1, worker }) => {
      const settings = readConfig(context.env);
      const config = {
        ...settings,
        ...(host !== undefined && { host: parseHost("--host", host) }),
        ...(port !== undefined && { port: parsePort("--port", port) }),
      };
      const { stdout } = context.terminal;
      const pretty = worker === undefined ? stdout.isTTY : worker === "pretty";
      const write = boundedOutput(stdout);
      const { log, flush } = openLog(write, { pretty, now: Date.now });
      if (workers > 1 && config.postgres === undefined) {
        throw usageProblem("--workers needs PostgreSQL (DATABASE_URL): the embedded database has one server.");
      }
      // A worker's parent has already printed the messages about the settings.
      const say = worker === undefined ? context.say : () => {};
      const env = { ...context.env };
      // The watchdog starts before the database is asked: its first answer may be malformed and hang the parser.
      const link = worker === undefined ? undefined : openWorkerLink();
      if (config.postgres !== undefined) startWatchdog(pretty);
      const installation = await openInstallation(config, say);
      if (worker === undefined) removeLeftovers(config);
      // With the embedded database it starts now: migrations may keep this thread busy for long.
      if (config.postgres === undefined) startWatchdog(pretty);
      harden();
      // Asked before the port opens: if the database goes away later, the server must not stop.
      const hint = worker === undefined && (await isEmpty(installation)) ? firstSteps(startedAs()) : undefined;
      if (workers > 1) {
        if (hint) say(hint);
        const worst = await new Supervisor({ count: workers, config, env, pretty, log, say, write }).run();
        flush();
        if (worst !== 0) throw new Problem(worst, "worker_failed", "A worker failed: see above.");
        return;
      }
      const server = await startServer(config, installation, log, say, link);
      if (hint) say(hint);
      const exitCode = await server.stopped;
      flush();
      if (exitCode !== 0) throw new Error("stopped after a defect");
    });
}

function parseWorkers(text: string): number {
  const count = parseCount(text);
  if (count <= 256) return count;
  throw new InvalidArgumentError("takes at most 256.");
}

function firstSteps(program: string): string {
  return `Nothing is stored yet. In another terminal, in this folder, begin with:
  ${program} org create acme
  ${program} project create acme/web
  ${program} key create --org acme --name ci --project web --env production`;
}
