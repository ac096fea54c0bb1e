import { existsSync } from "node:fs";
import { constants as system } from "node:os";
import { delimiter } from "node:path";
import { Problem } from "../core/problem.ts";
import type { NamedValue } from "../formats/dotenv.ts";
import type { Watch } from "./watch.ts";

/**
 * The command's environment: the fetched variables on top of the inherited ones, or below them with `preserve`.
 * Inherited ones that lead to more secrets are withheld: Keyhole's settings and database, the API key or token under
 * any name, and a runner's credentials for tokens if Keyhole got its token with them.
 */
export function childEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  fetched: readonly NamedValue[],
  how: { readonly inherit: boolean; readonly preserve: true | undefined; readonly apiKey: string },
): { env: Record<string, string>; withheld: string[] } {
  const env = new Map<string, string>();
  const withheld: string[] = [];
  const askedRunner = own["KEYHOLE_OIDC"]?.startsWith("github");
  for (const [name, value = ""] of Object.entries(own)) {
    const isRunners = askedRunner && name.startsWith("ACTIONS_ID_TOKEN_REQUEST_");
    if (isSetting(name) || name === "DATABASE_URL" || isRunners || value.includes(how.apiKey)) withheld.push(name);
    else if (how.inherit || isEssential(name)) env.set(name, value);
  }
  for (const { name, value } of fetched) {
    const existing = spellingOf(name, env);
    if (how.preserve && existing !== undefined) continue;
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
  return /^(?:PATH|HOME)$/.test(name) || (process.platform === "darwin" && /^(?:TMPDIR|__CF_.*)$/.test(name));
}

const windowsEssentials =
  /^(?:PATH|PATHEXT|COMSPEC|SYSTEMROOT|SYSTEMDRIVE|WINDIR|TEMP|TMP|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA|LOCALAPPDATA|PROGRAMDATA|PROGRAMFILES(?:\(X86\))?|COMMONPROGRAMFILES(?:\(X86\))?|NUMBER_OF_PROCESSORS|PROCESSOR_ARCHITECTURE|OS)$/i;

/** The name under which this variable exists; Windows compares names without case. */
function spellingOf(name: string, env: ReadonlyMap<string, string>): string | undefined {
  if (env.has(name)) return name;
  if (process.platform !== "win32") return undefined;
  return [...env.keys()].find((existing) => existing.toUpperCase() === name.toUpperCase());
}

/** Finds a program by its path, or in the PATH that it will get. @throws Problem with exit code 126 or 127 */
export function findProgram(program: string, env: Readonly<Record<string, string>>): string {
  const path = env["PATH"] ?? env["Path"] ?? "/usr/local/bin:/usr/bin:/bin";
  const found = Bun.which(program, { PATH: path });
  const isPath = program.includes("/");
  // A path stays as it was typed, so that the program sees the name that its caller used.
  if (found !== null) return isPath ? program : found;
  const candidates = isPath ? [program] : path.split(delimiter).map((folder) => `${folder}/${program}`);
  if (program !== "" && candidates.some((candidate) => existsSync(candidate))) {
    throw notRunnable(program, "it is not an executable file");
  }
  const message = program === "" ? "The command has an empty name." : `The command ${program} was not found.`;
  throw new Problem(127, "command_not_found", message);
}

function notRunnable(program: string, reason: string, cause?: unknown): Problem {
  return new Problem(126, "command_not_runnable", `The command ${program} cannot be run: ${reason}.`, { cause });
}

/** A program, its arguments from its own name on, and its environment. */
export type Command = {
  readonly path: string;
  readonly argv: readonly [string, ...string[]];
  readonly env: Record<string, string>;
};

/**
 * Runs the command to its end with our own streams and forwards every signal, except those that a terminal sends to all
 * of its foreground processes: many programs act differently on a second one.
 * @param changes - `next` resolves to a command that replaces the running one, which gets SIGTERM, and SIGKILL after
 *   `stopMs`. After a signal that asked the running one to end, nothing replaces it
 * @returns its exit code, or 128 plus the number of the signal that ended it. @throws Problem with exit code 126
 */
export async function supervise(
  command: Command,
  onTerminal: boolean,
  changes?: Watch<Command>,
  stopMs = 10_000,
): Promise<number> {
  const fromTerminal = onTerminal ? ["SIGINT", "SIGQUIT"] : [];
  let child: Bun.Subprocess | undefined;
  let isEnding = false;
  const forward = (signal: NodeJS.Signals) => {
    isEnding ||= endings.includes(signal);
    if (!fromTerminal.includes(signal)) child?.kill(signal);
  };
  for (const signal of forwarded) process.on(signal, forward);
  try {
    for (let running = command; ; ) {
      child = start(running);
      const ended = child.exited.then(() => undefined);
      const following = await Promise.race([ended, changes?.next() ?? ended]);
      if (following !== undefined && !isEnding) {
        changes?.say("Something changed: the command is started again.");
        await stop(child, stopMs);
      }
      await ended;
      if (following === undefined || isEnding) return exitCodeOf(child);
      running = following;
    }
  } finally {
    for (const signal of forwarded) process.off(signal, forward);
  }
}

function start({ path, argv, env }: Command): Bun.Subprocess {
  try {
    return Bun.spawn([path, ...argv.slice(1)], { argv0: argv[0], env, stdio: ["inherit", "inherit", "inherit"] });
  } catch (error) {
    const { code = "no reason given" } = error as NodeJS.ErrnoException;
    throw notRunnable(argv[0], spawnFailures[code] ?? code, error);
  }
}

async function stop(child: Bun.Subprocess, stopMs: number): Promise<void> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopMs);
  await child.exited;
  clearTimeout(timer);
}

function exitCodeOf({ exitCode, signalCode: signal }: Bun.Subprocess): number {
  if (signal === null) return exitCode ?? 125;
  return 128 + (typeof signal === "number" ? signal : system.signals[signal]);
}

/** Signals by which people and systems ask a program to end. On SIGHUP many read their settings again instead. */
const endings: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGQUIT"];
const forwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

const spawnFailures: Readonly<Record<string, string>> = {
  E2BIG: "its variables and arguments exceed what the system allows",
  ENOENT: "the interpreter in its first line was not found",
  ENOEXEC: "it is not a program for this machine, and its first line names no interpreter",
  EACCES: "its mode does not allow it",
};
