/** Programs of any kind, each in a process of its own. */

/** How a program ended. */
export type Ran = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

export type ProgramOptions = {
  readonly cwd?: string;
  /** The whole environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: string | Uint8Array;
};

/** Runs a program to its end. */
export async function run(command: readonly string[], options: ProgramOptions = {}): Promise<Ran> {
  const { stdin = "", env = {}, ...rest } = options;
  const pipes = { stdin: Buffer.from(stdin), stdout: "pipe", stderr: "pipe" } as const;
  const child = Bun.spawn([...command], { ...rest, env, ...pipes });
  const [exitCode, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { exitCode, stdout, stderr };
}

/** Runs a program to its end. Returns its stdout. @throws Error with all that it printed, if it failed */
export async function outputOf(command: readonly string[], options?: ProgramOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await run(command, options);
  if (exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${exitCode}: ${stdout}${stderr}`);
  return stdout;
}

/** A program that runs. */
export type Running = {
  readonly pid: number;
  /** Its output so far. */
  readonly said: () => { readonly stdout: string; readonly stderr: string };
  /** Resolves once it has said this. @throws Error with all that it said, if it ends without */
  readonly says: (text: string) => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves when it ends, with its exit code, or null if a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM or another signal, unless it has ended, and waits for the end. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>;
};

/** Starts a program, whose standard input is empty. */
export function startProgram(command: readonly string[], { cwd, env = {} }: Omit<ProgramOptions, "stdin">): Running {
  const pipes = { stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const;
  const child = Bun.spawn([...command], { ...(cwd !== undefined && { cwd }), env, ...pipes });
  const output = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  const drain = async (name: keyof typeof output) => {
    const decoder = new TextDecoder();
    for await (const bytes of child[name]) {
      output[name] += decoder.decode(bytes, { stream: true });
      for (const look of waiting) look();
    }
  };
  const drained = Promise.all([drain("stdout"), drain("stderr")]);
  const ended = child.exited.then(async () => {
    // Bun does not always notice the end of what a process wrote, above all of one that was killed.
    await Promise.race([drained, Bun.sleep(2000)]);
    return child.signalCode === null ? child.exitCode : null;
  });
  return {
    pid: child.pid,
    said: () => ({ ...output }),
    says: (text) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const look = () => {
        if (!output.stdout.includes(text) && !output.stderr.includes(text)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      ended.then((code) =>
        reject(new Error(`${command[0]} ended with ${code} and never said ${text}: ${output.stderr}`)),
      );
      return promise;
    },
    signal: (signal) => child.kill(signal),
    ended,
    stop: (signal = "SIGTERM") => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return ended;
    },
  };
}
