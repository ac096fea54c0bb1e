import { type Environment, environments } from "../../core/names.ts";
import { usageProblem } from "../../core/problem.ts";
import { parseChoices } from "../../core/words/lists.ts";
import { whoStillReads } from "../../core/words/machines-only.ts";
import { parseCount, Unfit } from "../../core/words/parse.ts";

/* What an operation takes. Each input says what completes it, and whether it is read from a file or from stdin. */

/** One input. `T` is what the operation gets. */
export type Input<T = unknown> = {
  /** How it stands in the help: `<name>` or `[name]` for an argument, `--name <value>` or `--name` for an option. */
  readonly flags: string;
  readonly help: string;
  /** An option that must be given. */
  readonly isRequired?: boolean;
  /** The only words that it takes. */
  readonly choices?: readonly string[];
  /** The names in use that complete it. */
  readonly completes?: Completion;
  /** It is read here: the words of its prompt, and how long it may be. */
  readonly source?: ReadWords;
  /** It names a file to write, or needs somebody at the machine: no person over SSH gives it. */
  readonly isLocal?: boolean;
  /** @param before - its value so far, for an option that may be repeated @throws Unfit */
  parse?(text: string, before: T | undefined): T;
  /** There is no such property: it tells the type. */
  readonly type?: T;
};

/** Which names complete an input: `items` are of the kind that the noun of the command says. */
export type Completion = "organizations" | "projects" | "keys" | "trusts" | "keysAndTrusts" | "requests" | "items";

export type Inputs = Readonly<Record<string, Input>>;

/** What an operation gets: the value of each input. An option that is not given is undefined. */
export type Given<I extends Inputs> = { readonly [K in keyof I]: I[K] extends Input<infer T> ? T : never };

/** Whether an argument in brackets, or an option, may be left out. */
type Maybe<Flags extends string, T> = Flags extends `<${string}` ? T : T | undefined;

/** Text. @param parse - makes a value of it */
export function input<const Flags extends string>(flags: Flags, help: string): Input<Maybe<Flags, string>>;
export function input<const Flags extends string, T>(
  flags: Flags,
  help: string,
  parse: (text: string, before: T | undefined) => T,
): Input<Maybe<Flags, T>>;
export function input(flags: string, help: string, parse?: (text: string, before: unknown) => unknown): Input {
  return { flags, help, ...(parse && { parse }) };
}

/** An option without a value, such as `--force`. */
export function flag(flags: string, help: string): Input<true | undefined> {
  return { flags, help };
}

/** Words of any number. @param listed - what one of them says: by default itself */
export function repeated<const Flags extends string>(
  flags: Flags,
  help: string,
  listed: (text: string) => readonly string[] = (text) => [text],
): Input<Maybe<Flags, string[]>> {
  return input(flags, help, (text, before: string[] = []) => [...before, ...listed(text)]);
}

/** An option that must be given. */
export function required<T>(asked: Input<T>): Input<Exclude<T, undefined>> {
  return { ...asked, help: `required: ${asked.help}`, isRequired: true } as Input<Exclude<T, undefined>>;
}

/** One of several words. */
export function choice<const Flags extends string, const T extends string>(
  flags: Flags,
  help: string,
  choices: readonly T[],
): Input<Maybe<Flags, T>> {
  return { flags, help, choices };
}

/** A comma-separated list of some words. */
export function choices<const Flags extends string, const T extends string>(
  flags: Flags,
  help: string,
  allowed: readonly T[],
): Input<Maybe<Flags, T[]>> {
  return { flags, help, choices: allowed, parse: parseChoices(allowed) } as Input<Maybe<Flags, T[]>>;
}

/** An input that names in use complete. */
export function completed<T>(asked: Input<T>, completes: Completion): Input<T> {
  return { ...asked, completes };
}

/** How bytes are read: from a file, from stdin, or from a hidden prompt. */
export type ReadWords = {
  readonly bytesMax: number;
  /** What they are called in messages. Default: the name of the file. */
  readonly what?: (given: GivenWords) => string;
  /** The hidden prompt on a terminal. If it is left out, a terminal is refused. */
  readonly prompt?: (given: GivenWords) => string;
  /** Refuses no bytes, and says how an empty value is stored. */
  readonly unlessEmpty?: string;
  /** The option that makes them: if it is given, nobody is asked for them. */
  readonly madeBy?: string;
  /** They come from stdin unless the option is given: it is there in any case. */
  readonly isTyped?: true;
  /** The option is the text itself, and not the name of a file. */
  readonly isText?: true;
};

/** The inputs that are words of the command line, by name. */
type GivenWords = Readonly<Record<string, unknown>>;

/** What an operation gets of an input that is read. */
export type ReadInput = {
  /** Such as `stdin`, or the file's name. */
  readonly name: string;
  /** @param more - what the words of its prompt need besides @throws Problem if it cannot be read, or is too long */
  readonly read: (more?: GivenWords) => Promise<Uint8Array>;
  /** Its bytes as they come, however many. */
  readonly chunks: () => AsyncIterable<Uint8Array>;
};

/** Bytes of a file that an argument or an option names, `-` for stdin. */
export function file<const Flags extends string>(flags: Flags, help: string, source: ReadWords) {
  return { flags, help, source } as Input<Maybe<Flags, ReadInput>>;
}

/** Bytes from stdin or a hidden prompt, unless an option names a file or is the text. */
export function typed(source: ReadWords, flags = "", help = ""): Input<ReadInput> {
  return { flags, help, source: { ...source, isTyped: true } };
}

/**
 * What a command line has no word for. A form gives it, such as a value for each environment, or a command that calls the
 * operation itself.
 */
export function formOnly<T>(): Input<T | undefined> {
  return { flags: "", help: "" };
}

/* Inputs of many operations. */

export const organization = completed(input("<org>", "the organization"), "organizations");

/** Lists what is of one organization. @param what - such as `keys` */
export function ofOrganization(what: string): Input<string | undefined> {
  return completed(input("--org <org>", `only ${what} of this organization`), "organizations");
}

export const project = completed(
  input("<project>", "ORG/PROJECT, or PROJECT if only one organization exists"),
  "projects",
);

export const environment = choice("<env>", "the environment", environments);

/** One or several, comma-separated. */
export const severalEnvironments = choices("<env>", "the environment, or several, comma-separated", environments);

/** The required option `--env`, a list. */
export function environmentList(help: string): Input<Environment[]> {
  return required(choices("--env <list>", help, environments));
}

/** A key, a trust or a request. @param noun - what it is */
export function id(noun: "key" | "trust" | "request"): Input<string> {
  return completed(input("<id>", `the ${noun}'s id, or its first 8 or more characters`), `${noun}s`);
}

/** For what shows a list. */
export const wide = flag("--wide", "show everything; on a narrow terminal, as a block for each entry");

/** For what writes an item. Where the mark is sealed: `seal/canary.ts`. Where it is kept: `people/editing/open.ts`. */
export const machinesOnly = flag("--machines-only", `for machines only until it is deleted: ${whoStillReads}`);

/** For what writes variables: nobody must have written them since somebody looked. */
export const ifVersion = input(
  "--if-version <number>",
  "only if nobody has written what it writes since this version, the first that `keyhole history` lists",
  parseCount,
);

/** For what shows a value. */
export const atVersion = input(
  "--version <number>",
  "as it was in this version, which `keyhole history` lists (default: the current one)",
  parseCount,
);

/** Refuses {@link atVersion} without an environment, since each has versions of its own. @param path - of the command */
export function requireOneEnvironment(path: string) {
  return ({ environment, version }: { readonly environment: unknown; readonly version: unknown }) => {
    if (version === undefined || environment !== undefined) return;
    throw usageProblem(`${path}: --version needs --env: each environment has versions of its own.`);
  };
}

/** For what prints a secret. `-` is stdout, for a caller who knows where that goes: see {@link fileOf}. */
export const out = {
  ...input("--out <file>", "write to this file, mode 0600, instead of stdout", (text) => {
    if (text === "") throw new Unfit("names no file; - is stdout.");
    return text;
  }),
  isLocal: true,
};

/** The file that `--out` names; undefined for stdout. */
export function fileOf(out: string | undefined): string | undefined {
  return out === "-" ? undefined : out;
}

export const force = { ...flag("--force", "replace an existing file"), isLocal: true };
