/** The exit codes of every command; 0 is done. */
export const exits = {
  failed: 1,
  usage: 2,
  unauthorized: 3,
  notFound: 4,
  refused: 5,
  unavailable: 6,
} as const;

/** How a command fails: a sentence for a person, a code for a program, and an exit code for a shell. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly exitCode: number;
  readonly code: string;
  /** The API's request id, set if a call to the API failed. */
  readonly requestId: string | null;
  /** What a command found before it failed, which `--json` prints on stdout. */
  readonly document: unknown;
  /** Help text that people see instead of the sentence. */
  readonly help: string | undefined;
  /** Notes from before the failure, for programs. */
  notes: readonly string[] = [];

  constructor(
    exitCode: number,
    code: string,
    message: string,
    more: { requestId?: string | null; help?: string | undefined; document?: unknown; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.exitCode = exitCode;
    this.code = code;
    this.requestId = more.requestId ?? null;
    this.help = more.help;
    this.document = more.document;
  }
}

/** @returns a Problem that says what is wrong with the command line */
export function usageProblem(message: string): Problem {
  return new Problem(exits.usage, "invalid_usage", message);
}

/** @returns a Problem for a wrong setting; the message is one sentence that names it and never shows a secret value */
export function configProblem(message: string): Problem {
  return new Problem(exits.usage, "invalid_configuration", message);
}

/** Passes a Problem to the listener when a signal asks the process to stop, until the result is disposed of. */
export function onInterrupt(listener: (problem: Problem) => void): Disposable {
  const listening = new DisposableStack();
  for (const [name, number] of Object.entries({ SIGHUP: 1, SIGINT: 2, SIGTERM: 15 })) {
    const onSignal = () => listener(interrupted(number));
    process.on(name, onSignal);
    listening.defer(() => process.off(name, onSignal));
  }
  return listening;
}

/** @param signal - the number of the signal; Ctrl-C is SIGINT, 2 */
export function interrupted(signal: number): Problem {
  return new Problem(128 + signal, "interrupted", "Interrupted: nothing was written.");
}
