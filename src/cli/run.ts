import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { constants as system } from "node:os";
import { delimiter } from "node:path";
import type { NamedValue } from "../render/dotenv.ts";
import { Problem, type Surroundings, toProblem, usageProblem } from "./command.ts";
import { fetchFiles, placeFiles } from "./files-pull.ts";
import { harden } from "./harden.ts";
import { atMachine, fetchVariables, machineVerb, refuseSteering, setOptions } from "./machine.ts";
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
    .argument("[arguments...]", "its arguments, handed on as they are")
    .addOption(setOptions.keys())
    .addOption(setOptions.prefix())
    .addOption(setOptions.required())
    .addOption(setOptions.allowEmpty())
    .addOption(setOptions.allowName())
    .option("--files", "put the secret files in place first, as `keyhole files pull` does")
    .option("--root <folder>", "with --files: the folder that they are put below (default: the current one)")
    .option("--preserve-env", "where a variable exists already, keep it")
    .option("--no-inherit-env", "start from an empty environment, but for PATH, HOME and what the platform needs")
    .action(async (program, args, { files, root, allowName, inheritEnv, preserveEnv, ...options }) => {
      const prepared = await atMachine(here, options, async (machine) => {
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
          const ask = { root: root ?? ".", paths: [], allowEmpty: options.allowEmpty };
          await placeFiles(here, await fetchFiles(here, machine, ask));
        }
        const missed = withheld.filter((name) => !isSetting(name) && env[name] === undefined);
        if (missed.length > 0) machine.say(`Not handed to the command: ${missed.join(", ")}.`);
        return { path, env, withheld };
      }).catch(fail);
      const code = await supervise(here, [program, ...args], prepared);
      // It has said itself what there was to say.
      if (code !== 0) throw new Problem(code, "command_failed", `The command ended with ${code}.`, { help: "" });
    });
  return guarded(command);
}

/** Exit codes before the command runs, as `env`, `nohup` and docker have them. */
const ownFailure = 125;
const cannotRun = 126;
const notFound = 127;

/** A failure of ours must not look like the command's: whatever stopped it, the exit code is 125, but for those below. */
function fail(error: unknown): never {
  const problem = toProblem(error);
  if (problem.exitCode >= ownFailure) throw problem;
  const { code, message, requestId, help, notes } = problem;
  const own = new Problem(ownFailure, code, message, { requestId, cause: error, ...(help !== undefined && { help }) });
  own.notes = notes;
  throw own;
}

/** The part of commander's Command that is made stricter here. */
type Parser = {
  parseOptions: (args: string[]) => { operands: string[]; unknown: string[] };
  error: (message: string, options?: { exitCode?: number; code?: string }) => never;
};

/**
 * Has wrong usage end with 125 too, and takes everything after the first `--` for the command as it stands: commander
 * would look for options among what precedes a second one, and drop it.
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

/** Arguments that are not UTF-8 have already lost what they were; on Linux one can still tell. @throws Problem */
function refuseMangled(args: readonly string[]): void {
  if (process.platform !== "linux" || !args.some((arg) => arg.includes("\uFFFD"))) return;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(readFileSync("/proc/self/cmdline"));
  } catch (error) {
    if (!(error instanceof TypeError)) return;
    throw usageProblem("An argument of the command is not UTF-8, so it would not arrive as it is.");
  }
}

/** How the environment of the command is made. */
export type Inheritance = {
  readonly inherit: boolean;
  /** A variable that exists already wins over one that was fetched. */
  readonly preserve: boolean;
  readonly apiKey: string;
};

/**
 * The command's environment: what was fetched over what is inherited, and of that nothing that leads to more secrets. No
 * setting of Keyhole's is in it, nor the database that a server of Keyhole's would use, nor the API key by whatever name.
 *
 * @returns `withheld` names what leads to more secrets
 */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  fetched: readonly NamedValue[],
  { inherit, preserve, apiKey }: Inheritance,
): { env: Record<string, string>; withheld: string[] } {
  const env = new Map<string, string>();
  const withheld: string[] = [];
  for (const [name, value = ""] of Object.entries(own)) {
    if (isSetting(name) || name === "DATABASE_URL" || value.includes(apiKey)) withheld.push(name);
    else if (inherit || isEssential(name)) env.set(name, value);
  }
  for (const { name, value } of fetched) {
    const existing = spellingOf(name, env);
    if (preserve && existing !== undefined) continue;
    if (existing !== undefined) env.delete(existing);
    env.set(name, value);
  }
  return { env: Object.fromEntries(env), withheld };
}

function isSetting(name: string): boolean {
  return /^KEYHOLE_/i.test(name);
}

/** What programs cannot do without. */
function isEssential(name: string): boolean {
  if (process.platform === "win32") return windowsEssentials.test(name);
  return (
    name === "PATH" ||
    name === "HOME" ||
    (process.platform === "darwin" && /^(?:TMPDIR|__CF_USER_TEXT_ENCODING)$/.test(name))
  );
}

const windowsEssentials =
  /^(?:PATH|PATHEXT|COMSPEC|SYSTEMROOT|SYSTEMDRIVE|WINDIR|TEMP|TMP|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA|LOCALAPPDATA|PROGRAMDATA|PROGRAMFILES(?:\(X86\))?|COMMONPROGRAMFILES(?:\(X86\))?|NUMBER_OF_PROCESSORS|PROCESSOR_ARCHITECTURE|OS)$/i;

/** How a variable of this name is spelled where it exists: on Windows case does not matter. */
function spellingOf(name: string, env: ReadonlyMap<string, string>): string | undefined {
  if (env.has(name)) return name;
  if (process.platform !== "win32") return undefined;
  return [...env.keys()].find((existing) => existing.toUpperCase() === name.toUpperCase());
}

/**
 * Where a program is, by its own path or by the PATH that it will itself have.
 * @throws Problem with exit code 126 or 127
 */
export function findProgram(program: string, env: Readonly<Record<string, string>>): string {
  if (process.platform === "win32") {
    const found = Bun.which(program, { PATH: env["PATH"] ?? env["Path"] ?? "" });
    if (found !== null) return found;
    throw new Problem(notFound, "command_not_found", `The command ${program} was not found.`);
  }
  // As it was typed where it has a slash, so that the program sees itself as its caller named it.
  const search = !program.includes("/");
  const path = env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const places = search ? path.split(delimiter).map((folder) => `${folder || "."}/${program}`) : [program];
  const judged = program === "" ? [] : places.map((place) => ({ place, problem: whyNotRunnable(place, search) }));
  const found = judged.find(({ problem }) => problem === undefined);
  if (found !== undefined) return found.place;
  const there = judged.find(({ problem }) => problem !== "");
  if (there === undefined) throw new Problem(notFound, "command_not_found", `The command ${program} was not found.`);
  throw new Problem(cannotRun, "command_not_runnable", `The command ${program} cannot be run: ${there.problem}.`);
}

/**
 * @param search - one place of many: what may not be entered holds nothing
 * @returns undefined where it can be run, nothing where it is not there, or else what is wrong with it
 */
function whyNotRunnable(place: string, search: boolean): string | undefined {
  try {
    if (!statSync(place).isFile()) return search ? "" : "it is no file";
  } catch (error) {
    const closed = !search && (error as NodeJS.ErrnoException).code === "EACCES";
    return closed ? "its folder's mode does not allow it" : "";
  }
  try {
    accessSync(place, constants.X_OK);
    return undefined;
  } catch {
    return "its mode does not allow it";
  }
}

/** A command that can be run. */
type Prepared = { readonly path: string; readonly env: Record<string, string>; readonly withheld: readonly string[] };

/**
 * Runs the command to its end with our own streams, and hands on every signal that one may send it. Of those that a
 * terminal sends to all of its foreground processes the command gets its own: twice would mean something else to many.
 *
 * @returns its exit code, or 128 and the number of the signal that ended it
 */
async function supervise(
  here: Surroundings,
  argv: readonly [string, ...string[]],
  { path, env, withheld }: Prepared,
): Promise<number> {
  // Our environment and our memory hold the key, and the command might look into both.
  scrubEnvironment(withheld);
  harden();
  const fromTerminal = here.terminal.stdin.isTTY ? ["SIGINT", "SIGQUIT"] : [];
  let child: Bun.Subprocess | undefined;
  const listeners = handedOn.map((signal) => {
    const listener = () => {
      if (!fromTerminal.includes(signal)) child?.kill(signal);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  try {
    child = Bun.spawn([path, ...argv.slice(1)], {
      argv0: argv[0],
      env,
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    });
    await child.exited;
    const { exitCode, signalCode: signal } = child;
    if (signal === null) return exitCode ?? ownFailure;
    return 128 + (typeof signal === "number" ? signal : system.signals[signal]);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = spawnFailures[code ?? ""] ?? code ?? "no reason given";
    throw new Problem(cannotRun, "command_not_runnable", `The command ${argv[0]} cannot be run: ${reason}.`, {
      cause: error,
    });
  } finally {
    for (const remove of listeners) remove();
  }
}

const handedOn = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

const spawnFailures: Readonly<Record<string, string>> = {
  E2BIG: "the variables and arguments are more than the system hands to a program",
  ENOENT: "the program that its first line names was not found",
  ENOEXEC: "it is no program for this machine, and has no first line that names one",
  EACCES: "its mode does not allow it",
};
