import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { constants as system } from "node:os";
import { delimiter } from "node:path";
import { Problem, usageProblem } from "../problem.ts";
import type { NamedValue } from "../render/dotenv.ts";

/** Exit codes before the command runs, as in `env`: 125 our own failure, 126 cannot run, 127 not found. */
export const ownFailure = 125;
const cannotRun = 126;
const notFound = 127;

/** An argument that is not UTF-8 was already damaged when the runtime read it. Linux still shows it. @throws Problem */
export function refuseMangled(args: readonly string[]): void {
  if (process.platform !== "linux" || !args.some((arg) => arg.includes("\uFFFD"))) return;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(readFileSync("/proc/self/cmdline"));
  } catch (error) {
    if (!(error instanceof TypeError)) return;
    throw usageProblem("An argument of the command is not UTF-8, so it would not arrive unchanged.");
  }
}

/** How the command's environment is made. */
export type Inheritance = {
  readonly inherit: boolean;
  /** Whether an existing variable wins over a fetched one. */
  readonly preserve: boolean;
  readonly apiKey: string;
};

/**
 * The command's environment: the fetched variables on top of the inherited ones. Inherited variables that lead to more
 * secrets are withheld: settings of Keyhole, the address of its database, and the API key under any name.
 *
 * @returns `withheld` has their names
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

/** Whether a variable is a setting of Keyhole. */
export function isSetting(name: string): boolean {
  return /^KEYHOLE_/i.test(name);
}

/** Whether programs need this variable to work at all. */
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

/** The name under which this variable exists; Windows compares names without case. */
function spellingOf(name: string, env: ReadonlyMap<string, string>): string | undefined {
  if (env.has(name)) return name;
  if (process.platform !== "win32") return undefined;
  return [...env.keys()].find((existing) => existing.toUpperCase() === name.toUpperCase());
}

/**
 * Finds a program by its path, or in the PATH that it will get.
 * @throws Problem with exit code 126 or 127
 */
export function findProgram(program: string, env: Readonly<Record<string, string>>): string {
  if (process.platform === "win32") {
    const found = Bun.which(program, { PATH: env["PATH"] ?? env["Path"] ?? "" });
    if (found !== null) return found;
    throw new Problem(notFound, "command_not_found", `The command ${program} was not found.`);
  }
  // With a slash it stays as it was typed, so that the program sees the name that its caller used.
  const search = !program.includes("/");
  const path = env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const candidates = search ? path.split(delimiter).map((folder) => `${folder || "."}/${program}`) : [program];
  let obstacle: string | undefined;
  for (const candidate of program === "" ? [] : candidates) {
    const found = tryProgram(candidate, search);
    if (found === "runs") return candidate;
    if (found !== "missing") obstacle ??= found;
  }
  if (obstacle === undefined) throw new Problem(notFound, "command_not_found", `The command ${program} was not found.`);
  throw new Problem(cannotRun, "command_not_runnable", `The command ${program} cannot be run: ${obstacle}.`);
}

/**
 * @param search - this is one of many candidates: a folder, or a file in a closed folder, counts as missing
 * @returns `runs`, `missing`, or why it cannot be run
 */
function tryProgram(path: string, search: boolean): string {
  try {
    if (!statSync(path).isFile()) return search ? "missing" : "it is not a file";
  } catch (error) {
    const closed = !search && (error as NodeJS.ErrnoException).code === "EACCES";
    return closed ? "its folder's mode does not allow it" : "missing";
  }
  try {
    accessSync(path, constants.X_OK);
    return "runs";
  } catch {
    return "its mode does not allow it";
  }
}

/**
 * Runs the command to its end with our own streams and forwards every signal. A terminal sends some signals to all of
 * its foreground processes: those are not forwarded, because many programs treat a second one differently.
 *
 * @param path - from {@link findProgram}
 * @param argv - the command as it was typed
 * @returns its exit code, or 128 plus the number of the signal that ended it
 * @throws Problem with exit code 126
 */
export async function supervise(
  path: string,
  argv: readonly [string, ...string[]],
  env: Record<string, string>,
  onTerminal: boolean,
): Promise<number> {
  const fromTerminal = onTerminal ? ["SIGINT", "SIGQUIT"] : [];
  let child: Bun.Subprocess | undefined;
  const listeners = forwarded.map((signal) => {
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
    const words = `The command ${argv[0]} cannot be run: ${reason}.`;
    throw new Problem(cannotRun, "command_not_runnable", words, { cause: error });
  } finally {
    for (const remove of listeners) remove();
  }
}

const forwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

const spawnFailures: Readonly<Record<string, string>> = {
  E2BIG: "its variables and arguments exceed what the system allows",
  ENOENT: "the interpreter in its first line was not found",
  ENOEXEC: "it is not a program for this machine, and its first line names no interpreter",
  EACCES: "its mode does not allow it",
};
