import { childEnvironment, findProgram, isSetting, refuseMangled, supervise } from "../fetch/run.ts";
import { fetchVariables, refuseSteering } from "../fetch/variables.ts";
import { Problem, usageProblem } from "../problem.ts";
import type { Surroundings } from "./command.ts";
import { pullWithProgress } from "./files.ts";
import { harden, scrubEnvironment } from "./harden.ts";
import { atMachine, variablesVerb } from "./machine.ts";

/** `keyhole run` */
export function runCommand(here: Surroundings) {
  return variablesVerb(
    "run",
    "Run a command with the variables of an environment in its environment.",
    "keyhole run -p web -e production -- node server.js",
    "keyhole run -p web -e production --files --require DATABASE_URL -- ./start.sh --verbose",
  )
    .argument("<command>", "the program, after --")
    .argument("[arguments...]", "its arguments, passed on unchanged")
    .option("--files", "first write the secret files, as `keyhole files pull` does")
    .option("--root <folder>", "with --files: the folder to write them to (default: the current one)")
    .option("--preserve-env", "keep existing variables instead of replacing them")
    .option("--no-inherit-env", "start from an environment with only PATH, HOME and what the platform needs")
    .action(async (program, args, { files, root, allowName, inheritEnv, preserveEnv, ...options }, command) => {
      const argv = [program, ...args] as const;
      // Commander would take words before -- for the command, too.
      const { rawArgs } = command.parent as unknown as { readonly rawArgs: readonly string[] };
      if (rawArgs.length - rawArgs.indexOf("--") - 1 !== argv.length) {
        throw usageProblem("run: put -- before the command. See 'keyhole run --help'.");
      }
      const { path, env, withheld } = await atMachine(here, options, async (machine) => {
        refuseMangled(argv);
        if (root !== undefined && !files) throw usageProblem("--root goes with --files.");
        const variables = await fetchVariables(machine, options);
        refuseSteering(variables, allowName);
        const how = { inherit: inheritEnv, preserve: preserveEnv, apiKey: machine.client.key };
        const { env, withheld } = childEnvironment(here.env, variables, how);
        const path = findProgram(program, env);
        const ask = { root: root ?? ".", paths: [], allowEmpty: options.allowEmpty };
        if (files) await pullWithProgress(here, machine, ask);
        const missed = withheld.filter((name) => !isSetting(name) && env[name] === undefined);
        if (missed.length > 0) machine.say(`Not passed to the command: ${missed.join(", ")}.`);
        return { path, env, withheld };
      });
      // Our environment and our memory hold the key, and the command could look into both.
      scrubEnvironment(withheld);
      harden();
      const code = await supervise(path, argv, env, here.terminal.stdin.isTTY);
      // The command has printed its own errors.
      if (code !== 0) throw new Problem(code, "command_failed", `The command ended with ${code}.`, { help: "" });
    });
}
