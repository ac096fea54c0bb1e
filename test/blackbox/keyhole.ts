import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The compiled program, as `bun run build` leaves it. */
export const binary = join(import.meta.dir, "../../dist/keyhole");

/** How a run of the program ended. */
export type Ran = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

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
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Resolves at the end: the exit code, and everything that was sent to the screen. */
  readonly ended: Promise<{ exitCode: number; screen: string }>;
};

export type RunOptions = {
  readonly cwd?: string;
  /** The whole environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  /** The command in front of the program, such as a shell that lowers a limit first. */
  readonly as?: readonly string[];
};

/** Runs the program to its end. */
export async function runBinary(
  args: readonly string[],
  { cwd, env = {}, stdin = "", as = [] }: RunOptions,
): Promise<Ran> {
  const child = Bun.spawn([...as, binary, ...args], {
    ...(cwd !== undefined && { cwd }),
    env,
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [exitCode, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { exitCode, stdout, stderr };
}

/** @param env - settings beside KEYHOLE_DATA, such as DATABASE_URL */
export function makePlace(env: Readonly<Record<string, string>> = {}): Place {
  if (!existsSync(binary)) throw new Error("There is no dist/keyhole: `bun run build` makes it.");
  const folder = mkdtempSync(join(tmpdir(), "keyhole-commands-"));
  const own = { KEYHOLE_DATA: join(folder, "data"), ...env };
  const keyhole: Place["keyhole"] = (args, stdin) =>
    runBinary(args, { cwd: folder, env: own, ...(stdin !== undefined && { stdin }) });
  return {
    folder,
    env: own,
    keyhole,
    json: async (args, stdin) => {
      const { exitCode, stdout, stderr } = await keyhole([...args, "--json"], stdin);
      if (exitCode !== 0) throw new Error(`keyhole ${args.join(" ")} ended with ${exitCode}: ${stderr}`);
      return JSON.parse(stdout);
    },
    onTerminal: (args, columns = 80) => startOnTerminal(args, columns, folder, own),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function startOnTerminal(
  args: readonly string[],
  columns: number,
  cwd: string,
  env: Readonly<Record<string, string>>,
): OnTerminal {
  let screen = "";
  const decoder = new TextDecoder();
  const waiting = new Set<() => void>();
  const closed = Promise.withResolvers<void>();
  const child = Bun.spawn([binary, ...args], {
    cwd,
    env,
    terminal: {
      cols: columns,
      rows: 24,
      data: (_, bytes) => {
        screen += decoder.decode(bytes, { stream: true });
        for (const look of waiting) look();
      },
      exit: () => closed.resolve(),
    },
  });
  const ended = child.exited.then(async (exitCode) => {
    child.terminal?.close();
    await closed.promise;
    return { exitCode, screen };
  });
  return {
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
    kill: (signal) => child.kill(signal),
    ended,
  };
}
