import { accessSync, closeSync, existsSync, constants as files, openSync, statSync } from "node:fs";
import { constants as system } from "node:os";
import { delimiter } from "node:path";
import { attempt } from "../core/attempt.ts";
import type { NamedValue } from "../core/formats/dotenv.ts";
import { Problem } from "../core/problem.ts";
import { type Descriptor, nameOf, textEnvironment, textOf } from "../core/settings/children.ts";
import { bytesOf } from "../core/settings/inherited.ts";
import { readStart } from "../core/whole-file.ts";
import type { Watch } from "./watch.ts";
import { type Clock, realClock } from "./wire.ts";

/**
 * The command's environment: the fetched variables in place of inherited ones of the same name, or the other way round
 * with `preserve`. Inherited ones that lead to more secrets are withheld: Keyhole's settings and database, the API key
 * or token under any name, and a runner's credentials for tokens if Keyhole got its token with them.
 * @param own - entries as `core/settings/inherited.ts` describes them, and so is the result
 */
export function childEnvironment(
  own: readonly string[],
  fetched: readonly NamedValue[],
  how: { readonly inherit: boolean; readonly preserve: true | undefined; readonly apiKey: string },
): { env: string[]; withheld: string[] } {
  const askedRunner = own.some((entry) => entry.startsWith("KEYHOLE_OIDC=github"));
  const isWithheld = (entry: string) => {
    const name = nameOf(entry);
    const isRunners = askedRunner && name.startsWith("ACTIONS_ID_TOKEN_REQUEST_");
    return isSetting(name) || name === "DATABASE_URL" || isRunners || entry.includes(how.apiKey);
  };
  const inherited = own.filter((entry) => !isWithheld(entry) && (how.inherit || isEssential(nameOf(entry))));
  const before = new Set(inherited.map((entry) => spelled(nameOf(entry))));
  const added = fetched.filter(({ name }) => !(how.preserve && before.has(spelled(name))));
  const replaced = new Set(added.map(({ name }) => spelled(name)));
  const kept = inherited.filter((entry) => !replaced.has(spelled(nameOf(entry))));
  const env = [...kept, ...added.map(({ name, value }) => bytesOf(`${name}=${value}`))];
  return { env, withheld: own.filter(isWithheld).map(nameOf) };
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

/** The name by which variables are told apart; Windows compares names without case. */
function spelled(name: string): string {
  return process.platform === "win32" ? name.toUpperCase() : name;
}

/**
 * Finds a program by its path, or in the PATH that it will get, as `execvp` does.
 * @returns its path, each character a byte. @throws Problem with exit code 126 or 127
 */
export function findProgram(program: string, env: readonly string[]): string {
  const name = bytesOf(program);
  const path = env.find((entry) => spelled(nameOf(entry)) === "PATH")?.slice("PATH=".length);
  const folders = (path ?? "/usr/local/bin:/usr/bin:/bin").split(delimiter).map((folder) => folder || ".");
  // A path stays as it was typed, so that the program sees the name that its caller used.
  const candidates = program.includes("/") ? [name] : folders.map((folder) => `${folder}/${name}`);
  const found = process.platform === "win32" ? whichOnWindows(program, path) : candidates.find(isRunnable);
  if (found !== undefined && program !== "") return found;
  if (program !== "" && candidates.some((candidate) => existsSync(fileOf(candidate)))) {
    throw notRunnable(program, "it is not an executable file");
  }
  const message = program === "" ? "The command has an empty name." : `The command ${program} was not found.`;
  throw new Problem(127, "command_not_found", message);
}

/** Windows adds endings such as .exe. */
function whichOnWindows(program: string, path: string | undefined): string | undefined {
  const found = Bun.which(program, path === undefined ? {} : { PATH: textOf(path) });
  return found === null ? undefined : bytesOf(found);
}

function isRunnable(path: string): boolean {
  const isFile = attempt(() => {
    accessSync(fileOf(path), files.X_OK);
    return statSync(fileOf(path)).isFile();
  });
  return isFile === true;
}

function fileOf(path: string): Buffer {
  return Buffer.from(path, "latin1");
}

function notRunnable(program: string, reason: string, cause?: unknown): Problem {
  return new Problem(126, "command_not_runnable", `The command ${program} cannot be run: ${reason}.`, { cause });
}

/** A program, its arguments from its own name on, and its environment. */
export type Command = {
  /** Each character is a byte. */
  readonly path: string;
  readonly argv: readonly [string, ...string[]];
  /** Entries as `core/settings/inherited.ts` describes them. */
  readonly env: readonly string[];
};

/**
 * Starts a command. A text without an interpreter line is run by /bin/sh, as shells and `env` do.
 * @param start - throws an error with the system's code. @throws Problem with exit code 126
 */
export function launch<T>(command: Command, start: (command: Command) => T): T {
  try {
    return start(command);
  } catch (error) {
    if (error instanceof Problem) throw error;
    const { path, argv, env } = command;
    const { code = "no reason given" } = error as NodeJS.ErrnoException;
    if (code === "ENOEXEC" && path !== shell && isText(path)) {
      return launch({ path: shell, argv: [shell, textOf(path), ...argv.slice(1)], env }, start);
    }
    throw notRunnable(argv[0], startFailures[code] ?? code, error);
  }
}

const shell = "/bin/sh";

/** Whether a file does not look like a program for another kind of machine. */
function isText(path: string): boolean {
  const begin = attempt(() => {
    const file = openSync(fileOf(path), "r");
    const bytes = readStart(file, 512);
    closeSync(file);
    return bytes;
  });
  return begin !== undefined && !begin.includes(0);
}

/** How a command is supervised. */
export type Supervision = {
  /** Whether signals from a terminal reach the command without us. */
  readonly onTerminal: boolean;
  /** The descriptors that the command gets, and what makes them as they were. */
  readonly inherited?: readonly Descriptor[];
  readonly giveBack?: (inherited: readonly Descriptor[]) => void;
  /** As process 1: ends the entries of processes that nobody else waits for, except this child. */
  readonly reap?: ((child: number | undefined) => void) | undefined;
  /**
   * `next` resolves to a command that replaces the running one, which gets SIGTERM, and SIGKILL after 10 s. After a
   * signal that asked the running one to end, nothing replaces it.
   */
  readonly changes?: Watch<Command> | undefined;
  readonly clock?: Clock;
};

/**
 * Runs the command to its end and forwards every signal, except those that a terminal sends to all of its foreground
 * processes: many programs act differently on a second one.
 * @returns its exit code, or 128 plus the number of the signal that ended it. @throws Problem with exit code 126
 */
export async function supervise(command: Command, supervision: Supervision): Promise<number> {
  const { onTerminal, changes, reap, clock = realClock } = supervision;
  const fromTerminal = onTerminal ? ["SIGINT", "SIGQUIT"] : [];
  let child: Bun.Subprocess | undefined;
  let isEnding = false;
  const forward = (signal: NodeJS.Signals) => {
    isEnding ||= endings.includes(signal);
    if (!fromTerminal.includes(signal)) child?.kill(signal);
  };
  const reapOthers = () => reap?.(child?.pid);
  for (const signal of forwarded) process.on(signal, forward);
  if (reap !== undefined) process.on("SIGCHLD", reapOthers);
  try {
    for (let running = command; ; ) {
      child = launch(running, (one) => spawn(one, supervision));
      const ended = child.exited.then(() => undefined);
      const following = await Promise.race([ended, changes?.next() ?? ended]);
      if (following !== undefined && !isEnding) {
        changes?.say("Something changed: the command is started again.");
        await stop(child, clock);
      }
      await ended;
      reapOthers(); // the child may have hidden them
      if (following === undefined || isEnding) return exitCodeOf(child);
      running = following;
    }
  } finally {
    for (const signal of forwarded) process.off(signal, forward);
    process.off("SIGCHLD", reapOthers);
  }
}

/** @throws Problem if a variable would not arrive unchanged */
function spawn({ path, argv, env }: Command, { inherited = [], giveBack }: Supervision): Bun.Subprocess {
  const more: (number | null)[] = [];
  for (const { fd } of inherited) while (more.length + 3 <= fd) more.push(more.length + 3 === fd ? fd : null);
  giveBack?.(inherited);
  const stdio = ["inherit", "inherit", "inherit", ...more] as const;
  return Bun.spawn([textOf(path), ...argv.slice(1)], { argv0: argv[0], env: textEnvironment(env), stdio: [...stdio] });
}

async function stop(child: Bun.Subprocess, { sleep }: Clock): Promise<void> {
  child.kill("SIGTERM");
  const isLate = await Promise.race([child.exited.then(() => false), sleep(10_000).then(() => true)]);
  if (isLate) child.kill("SIGKILL");
}

function exitCodeOf({ exitCode, signalCode: signal }: Bun.Subprocess): number {
  if (signal === null) return exitCode ?? 125;
  return 128 + (typeof signal === "number" ? signal : system.signals[signal]);
}

/** Signals by which people and systems ask a program to end. On SIGHUP many read their settings again instead. */
const endings: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGQUIT"];
const forwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

const startFailures: Readonly<Record<string, string>> = {
  E2BIG: "its variables and arguments exceed what the system allows",
  ENOENT: "the interpreter in its first line was not found",
  ENOEXEC: "it is not a program for this machine, and its first line names no interpreter",
  EACCES: "its mode does not allow it",
};
