import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtBinary } from "./build.ts";
import { type ProgramOptions, type Ran, run } from "./program.ts";

/** The compiled program. */
export const binary: string = builtBinary();

/** Where to run the program: its own working folder and data folder, and nothing else in the environment. */
export type Place = {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs the program with these arguments to its end; stdin is empty by default. */
  readonly keyhole: (args: readonly string[], stdin?: string | Uint8Array) => Promise<Ran>;
  /** The same, its `--json` document parsed. @throws if it failed or printed more than one document */
  readonly json: (args: readonly string[], stdin?: string | Uint8Array) => Promise<unknown>;
  /** Starts the program on a terminal of its own. */
  readonly onTerminal: (args: readonly string[], columns?: number) => OnTerminal;
  readonly remove: () => void;
};

/** The program on a pseudo-terminal. */
export type OnTerminal = {
  readonly type: (keys: string | Uint8Array) => void;
  /** Resolves once this text was sent to the screen. Returns the whole screen. */
  readonly shows: (text: string) => Promise<string>;
  /** Types these keys once the question is shown. Resolves at the end. */
  readonly answer: (question: string, keys: string) => OnTerminal["ended"];
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Resolves at the end: the exit code, and everything that was sent to the screen. */
  readonly ended: Promise<{ exitCode: number; screen: string }>;
};

export type RunOptions = ProgramOptions & {
  /** The command in front of the program, such as a shell that lowers a limit first. */
  readonly as?: readonly string[];
  /** Another program than the built one. */
  readonly program?: string;
};

/** Runs the program to its end. */
export function runBinary(args: readonly string[], options: RunOptions): Promise<Ran> {
  const { as = [], program = binary, ...rest } = options;
  return run([...as, program, ...args], rest);
}

/** The same, its `--json` document parsed. @throws if it failed or printed more than one document */
export function runJson(args: readonly string[], options: RunOptions): Promise<unknown> {
  return jsonOf(args, (all) => runBinary(all, options));
}

/** The document that a command prints with `--json`. @throws if it failed or printed more than one document */
type Run = (args: readonly string[]) => Promise<Ran>;
export async function jsonOf(args: readonly string[], keyhole: Run): Promise<unknown> {
  const { exitCode, stdout, stderr } = await keyhole([...args, "--json"]);
  if (exitCode !== 0) throw new Error(`keyhole ${args.join(" ")} ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout);
}

/** @param env - settings beside KEYHOLE_DATA, such as DATABASE_URL */
export function makePlace(env: Readonly<Record<string, string>> = {}): Place {
  const folder = mkdtempSync(join(tmpdir(), "keyhole-commands-"));
  const own = { KEYHOLE_DATA: join(folder, "data"), ...env };
  const options = (stdin?: string | Uint8Array) => ({ cwd: folder, env: own, ...(stdin !== undefined && { stdin }) });
  return {
    folder,
    env: own,
    keyhole: (args, stdin) => runBinary(args, options(stdin)),
    json: (args, stdin) => runJson(args, options(stdin)),
    onTerminal: (args, columns = 80) => startOnTerminal([binary, ...args], columns, folder, own),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * Starts any program on a pseudo-terminal.
 * @param reply - what to type each time that the question appears
 */
export function startOnTerminal(
  command: readonly string[],
  columns: number,
  cwd: string,
  env: Readonly<Record<string, string>>,
  reply?: { readonly question: string; readonly answer: string },
): OnTerminal {
  let screen = "";
  let answered = 0;
  const decoder = new TextDecoder();
  const waiting = new Set<() => void>();
  const closed = Promise.withResolvers<void>();
  const child = Bun.spawn([...command], {
    cwd,
    env,
    terminal: {
      cols: columns,
      rows: 24,
      data: (_, bytes) => {
        screen += decoder.decode(bytes, { stream: true });
        for (const look of waiting) look();
        const at = reply ? screen.indexOf(reply.question, answered) : -1;
        if (reply === undefined || at === -1) return;
        answered = at + reply.question.length;
        child.terminal?.write(reply.answer);
      },
      exit: () => closed.resolve(),
    },
  });
  const ended = child.exited.then(async (exitCode) => {
    child.terminal?.close();
    await closed.promise;
    return { exitCode, screen };
  });
  const terminal: OnTerminal = {
    type: (keys) => void child.terminal?.write(keys),
    shows: (text) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const look = () => {
        if (!screen.includes(text)) return;
        waiting.delete(look);
        resolve(screen);
      };
      waiting.add(look);
      look();
      ended.then(() => reject(new Error(`The program ended and never showed ${JSON.stringify(text)}: ${screen}`)));
      return promise;
    },
    answer: async (question, keys) => {
      await terminal.shows(question);
      terminal.type(keys);
      return ended;
    },
    kill: (signal) => child.kill(signal),
    ended,
  };
  return terminal;
}
