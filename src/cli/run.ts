import { pullFiles } from "../fetch/files-pull.ts";
import { type Command, childEnvironment, findProgram, isSetting, refuseMangled, supervise } from "../fetch/run.ts";
import { fetchVariables, refuseSteering } from "../fetch/variables.ts";
import { unlessUnchanged, Watch } from "../fetch/watch.ts";
import { Problem, usageProblem } from "../problem.ts";
import type { Surroundings } from "./command.ts";
import { pullWithProgress } from "./files.ts";
import { harden, scrubEnvironment } from "./harden.ts";
import { atMachine, type Machine, variablesVerb } from "./machine.ts";
import { parseInterval } from "./options.ts";

/** `keyhole run` */
export function runCommand(here: Surroundings) {
  return variablesVerb(
    "run",
    "Run a command with the variables of an environment in its environment.",
    "keyhole run -p web -e production -- node server.js",
    "keyhole run -p web -e production --files --require DATABASE_URL -- ./start.sh --verbose",
    "keyhole run -p web -e production --watch 5m -- node server.js",
  )
    .argument("<command>", "the program, after --")
    .argument("[arguments...]", "its arguments, passed on unchanged")
    .option("--files", "first write the secret files, as `keyhole files pull` does")
    .option("--root <folder>", "with --files: the folder to write them to (default: the current one)")
    .option("--preserve-env", "keep existing variables instead of replacing them")
    .option("--no-inherit-env", "start from an environment with only PATH, HOME and what the platform needs")
    .option(
      "--watch [interval]",
      "start it again when something changed; looks this often (default: 30s)",
      parseInterval,
    )
    .action(async (program, args, { files, root, allowName, inheritEnv, preserveEnv, watch, ...options }, command) => {
      const argv = [program, ...args] as const;
      // Commander would take words before -- for the command, too.
      const { rawArgs } = command.parent as unknown as { readonly rawArgs: readonly string[] };
      if (rawArgs.length - rawArgs.indexOf("--") - 1 !== argv.length) {
        throw usageProblem("run: put -- before the command. See 'keyhole run --help'.");
      }
      const own = { ...here.env }; // secrets in it are erased later
      const prepare = async (machine: Machine) => {
        const variables = await fetchVariables(machine, options);
        refuseSteering(variables, allowName);
        const how = { inherit: inheritEnv, preserve: preserveEnv, apiKey: machine.client.key };
        const { env, withheld } = childEnvironment(own, variables, how);
        return { path: findProgram(program, env), argv, env, withheld };
      };
      const ask = { root: root ?? ".", paths: [], allowEmpty: options.allowEmpty };
      let tags = new Map<string, string>();
      const { machine, first } = await atMachine(here, options, async (machine) => {
        refuseMangled(argv);
        if (root !== undefined && !files) throw usageProblem("--root goes with --files.");
        const asking = { ...machine, client: machine.client.conditional(tags) };
        const first = await prepare(asking);
        if (files) await pullWithProgress(here, asking, ask);
        const missed = first.withheld.filter((name) => !isSetting(name) && first.env[name] === undefined);
        if (missed.length > 0) machine.say(`Not passed to the command: ${missed.join(", ")}.`);
        return { machine, first };
      });
      // Our environment and our memory hold the key, and the command could look into both.
      scrubEnvironment(first.withheld);
      harden();
      let running: Command = first;
      /** The command as it would be started now, if something changed for it. */
      const look = async (): Promise<Command | undefined> => {
        const seen = new Map(tags);
        const asking = { ...machine, client: machine.client.conditional(seen) };
        const found = (await unlessUnchanged(prepare(asking))) ?? running;
        const pulled = files && (await unlessUnchanged(pullFiles(asking, ask, silently)));
        tags = seen; // not earlier: after a failure everything is asked for again
        if (!pulled?.written.length && Bun.deepEquals(found.env, running.env)) return undefined;
        running = found;
        return running;
      };
      const everyMs = watch === true ? everyMsDefault : watch;
      const changes = everyMs === undefined ? undefined : new Watch(everyMs, look, here.say);
      const code = await supervise(first, here.terminal.stdin.isTTY, changes);
      // The command has printed its own errors.
      if (code !== 0) throw new Problem(code, "command_failed", `The command ended with ${code}.`, { help: "" });
    });
}

const everyMsDefault = 30_000;

/** A progress line would mix with the command's own output. */
const silently = { fetching: () => {}, writing: () => {} };
