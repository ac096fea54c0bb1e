import { childEnvironment, findProgram, isSetting, ownFailure, refuseMangled, supervise } from "../fetch/run.ts";
import { fetchVariables, refuseSteering } from "../fetch/variables.ts";
import { Problem, usageProblem } from "../problem.ts";
import { type Surroundings, toProblem } from "./command.ts";
import { pullWithProgress } from "./files.ts";
import { harden } from "./harden.ts";
import { atMachine, machineVerb, variableOptions } from "./machine.ts";
import { scrubEnvironment } from "./scrub.ts";

/** `keyhole run` */
export function runCommand(here: Surroundings) {
  const command = machineVerb(
    "run",
    "Run a command with the variables of an environment in its environment.",
    "keyhole run -p web -e production -- node server.js",
    "keyhole run -p web -e production --files --require DATABASE_URL -- ./start.sh --verbose",
    "keyhole run -p web -e staging --no-inherit-env -- env",
  )
    .argument("<command>", "the program, after --")
    .argument("[arguments...]", "its arguments, passed on unchanged")
    .addOption(variableOptions.keys())
    .addOption(variableOptions.prefix())
    .addOption(variableOptions.required())
    .addOption(variableOptions.allowEmpty())
    .addOption(variableOptions.allowName())
    .option("--files", "first write the secret files, as `keyhole files pull` does")
    .option("--root <folder>", "with --files: the folder to write them to (default: the current one)")
    .option("--preserve-env", "keep existing variables instead of replacing them")
    .option("--no-inherit-env", "start from an environment with only PATH, HOME and what the platform needs")
    .action(async (program, args, { files, root, allowName, inheritEnv, preserveEnv, ...options }) => {
      const { path, env, withheld } = await atMachine(here, options, async (machine) => {
        refuseMangled([program, ...args]);
        if (root !== undefined && !files) throw usageProblem("--root goes with --files.");
        const variables = await fetchVariables(machine, options);
        refuseSteering(variables, allowName);
        const { env, withheld } = childEnvironment(here.env, variables, {
          inherit: inheritEnv,
          preserve: preserveEnv ?? false,
          apiKey: machine.client.key,
        });
        const path = findProgram(program, env);
        if (files) {
          await pullWithProgress(here, machine, { root: root ?? ".", paths: [], allowEmpty: options.allowEmpty });
        }
        const missed = withheld.filter((name) => !isSetting(name) && env[name] === undefined);
        if (missed.length > 0) machine.say(`Not passed to the command: ${missed.join(", ")}.`);
        return { path, env, withheld };
      }).catch(fail);
      // Our environment and our memory hold the key, and the command could look into both.
      scrubEnvironment(withheld);
      harden();
      const code = await supervise(path, [program, ...args], env, here.terminal.stdin.isTTY);
      // The command has printed its own errors.
      if (code !== 0) throw new Problem(code, "command_failed", `The command ended with ${code}.`, { help: "" });
    });
  return guarded(command);
}

/** Our own failure must not look like the command's: the exit code is 125, unless it is 126 or more already. */
function fail(error: unknown): never {
  const problem = toProblem(error);
  if (problem.exitCode >= ownFailure) throw problem;
  const { code, message, requestId, help, notes } = problem;
  const own = new Problem(ownFailure, code, message, { requestId, cause: error, ...(help !== undefined && { help }) });
  own.notes = notes;
  throw own;
}

/** The methods of commander's Command that {@link guarded} replaces. */
type Parser = {
  parseOptions: (args: string[]) => { operands: string[]; unknown: string[] };
  error: (message: string, options?: { exitCode?: number; code?: string }) => never;
};

/**
 * Makes wrong usage end with 125 too, and takes everything after the first `--` unchanged. Commander would look for
 * options before a second `--` and drop it.
 */
function guarded<T extends Parser>(command: T): T {
  const parseOptions = command.parseOptions.bind(command);
  const error = command.error.bind(command);
  command.parseOptions = (args) => {
    try {
      const at = args.includes("--") ? args.indexOf("--") : args.length;
      const { operands, unknown } = parseOptions(args.slice(0, at));
      if (operands.length > 0) throw usageProblem("run: put -- before the command. See 'keyhole run --help'.");
      return { operands: args.slice(at + 1), unknown };
    } catch (thrown) {
      return fail(thrown);
    }
  };
  command.error = (message, options) => {
    try {
      return error(message, options);
    } catch (thrown) {
      return fail(thrown);
    }
  };
  return command;
}
