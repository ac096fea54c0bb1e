import { findDrift, pullFiles } from "../client/files-pull.ts";
import { looksFor, prepare } from "../client/recipe.ts";
import { isSetting, launch, supervise } from "../client/run.ts";
import { askVariables } from "../client/variables.ts";
import { watchFor } from "../client/watch.ts";
import { modesTo } from "../core/modes.ts";
import { Problem, usageProblem } from "../core/problem.ts";
import { nameOf, textOf } from "../core/settings/children.ts";
import { inheritedEntries } from "../core/settings/inherited.ts";
import { jsonLine } from "../core/visible.ts";
import { counted } from "../core/words/text.ts";
import { parseInterval } from "../core/words/times.ts";
import { flag, type Input, input, repeated } from "../people/desk/inputs.ts";
import { pullWithProgress } from "./files.ts";
import { harden, scrubEnvironment } from "./harden.ts";
import { atMachine, receiptsOf, variablesInputs } from "./machine.ts";
import { giveBack, reapOrphans, replaceBy } from "./replace.ts";
import { commandFor, processCommand } from "./terminal/draw.ts";
import { write } from "./terminal/terminal.ts";
import type { CommandContext } from "./terminal/verb.ts";

export function runCommand(context: CommandContext) {
  return commandFor({ rows: [runOne] }, context)
    .passThroughOptions() // or an option of a command without -- would be taken for ours
    .hook("preAction", ({ args, parent }) => {
      // Commander would take words before -- for the command, too.
      const { rawArgs } = parent as unknown as { readonly rawArgs: readonly string[] };
      if (rawArgs.length - rawArgs.indexOf("--") - 1 === args.length) return;
      throw usageProblem("run: put -- before the command. See 'keyhole run --help'.");
    });
}

const runOne = processCommand({
  path: "run",
  about: "Run a command with the variables of an environment in its environment.",
  examples: [
    "keyhole run -p web -e production -- node server.js",
    "keyhole run -p web -e production --files --require DATABASE_URL -- ./start.sh --verbose",
    "keyhole run -p web -e production --watch 5m -- node server.js",
  ],
  inputs: {
    ...variablesInputs,
    program: input("<command>", "the program, after --"),
    args: repeated("[arguments...]", "its arguments, passed on unchanged"),
    files: flag("--files", "first write the secret files, as `keyhole files pull` does"),
    root: input("--root <folder>", "with --files: the folder to write them to (default: the current one)"),
    preserveEnv: flag("--preserve-env", "keep existing variables instead of replacing them"),
    inheritEnv: flag(
      "--no-inherit-env",
      "start from an environment with only PATH, HOME and what the platform needs",
    ) as Input<boolean>,
    watch: input(
      "--watch [interval]",
      "start it again when something changed; a server that does not wait for changes is asked this often (default: 30s)",
      (text): number | true => parseInterval(text),
    ),
  },
  action: async (
    context,
    { program, args = [], files, root, allowName, inheritEnv, preserveEnv, watch, ...options },
  ) => {
    const argv = [program, ...args] as const;
    // Secrets in what it could inherit are erased later.
    const recipe = {
      ...options,
      ...{ argv, own: inheritedEntries(), inherit: inheritEnv, preserve: preserveEnv, allowName },
    };
    const memory = { unwritten: new Map<string, Uint8Array>() };
    const ask = { root: root ?? ".", paths: [], allowEmpty: options.allowEmpty, memory };
    const { source, first } = await atMachine(context, options, async (source) => {
      if (root !== undefined && !files) throw usageProblem("--root goes with --files.");
      // What would refuse the files does so before a read of the variables is spent.
      if (files) await findDrift(source, ask);
      const first = prepare(source, await askVariables(source, options), recipe);
      if (files) await pullWithProgress(context, source, ask);
      const passed = new Set(first.env.map(nameOf));
      const missed = first.withheld.filter((name) => !isSetting(name) && !passed.has(name)).map(textOf);
      if (missed.length > 0) source.say(`Not passed to the command: ${missed.join(", ")}.`);
      // The command's own stdout stays its own.
      if (context.json) await write(context.terminal.stderr, jsonLine({ ...source.asked, ...receiptsOf(source) }));
      return { source, first };
    });
    if (watch === undefined) {
      await context.flush();
      launch(first, (command) => replaceBy(command, context.inherited));
    }
    const { readsPerJob } = source.client;
    if (readsPerJob !== undefined) {
      const [all, rest] = [counted(readsPerJob, "answer"), counted(readsPerJob - 1, "change")];
      context.say(
        `The trust gives a job ${all} with values: after ${rest} at most, the command is not watched any more.`,
      );
    }
    // From here on the command runs beside us. Our environment and our memory hold the key, and it could look into both.
    scrubEnvironment(first.withheld);
    harden();
    const pull = async () => (await pullFiles(source, ask, { ...silently, modes: modesTo(context.say) })).written;
    const look = looksFor(source, recipe, first, files ? pull : undefined);
    const everyMs = watch === true ? everyMsDefault : watch;
    const changes = everyMs === undefined ? undefined : watchFor(everyMs, look, context.say);
    const onTerminal = context.terminal.stdin.isTTY;
    const reap = process.pid === 1 ? reapOrphans : undefined;
    const code = await supervise(first, { onTerminal, inherited: context.inherited, giveBack, reap, changes });
    // The command has printed its own errors.
    if (code !== 0) throw new Problem(code, "command_failed", `The command ended with ${code}.`, { help: "" });
  },
});

const everyMsDefault = 30_000;

/** A progress line would mix with the command's own output. */
const silently = { fetching: () => {}, writing: () => {} };
