import { Option } from "@commander-js/extra-typings";
import { type Environment, environments, isEnvironment, isVariableName, slugPattern } from "../names.ts";
import type { NamedValue } from "../render/dotenv.ts";
import type { Asked } from "./answers.ts";
import { Client, queryBytesMax } from "./client.ts";
import {
  decodeText,
  exits,
  listOption,
  Problem,
  parseDuration,
  readLocal,
  type Surroundings,
  toProblem,
  usageProblem,
  verb,
} from "./command.ts";
import { isSteering } from "./steering.ts";

/*
 * What the commands of machines have in common: where the API is, with which key, and which set is asked for. A flag
 * beats its variable, and nothing is read from the folder one stands in, which may be anybody's.
 */

/** The common options, as commander gives them. */
export type MachineOptions = {
  readonly project?: string | undefined;
  readonly env?: Environment | undefined;
  readonly url?: string | undefined;
  readonly apiKeyFile?: string | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
  /** Milliseconds. */
  readonly wait?: number | undefined;
};

/** A command that fetches, with the options that all of them take. There is none for the key itself: others see arguments. */
export function machineVerb(name: string, description: string, ...examples: [string, ...string[]]) {
  return verb(name, description, ...examples)
    .option("-p, --project <slug>", "the project (default: KEYHOLE_PROJECT)")
    .addOption(
      new Option("-e, --env <environment>", "the environment (default: KEYHOLE_ENVIRONMENT)").choices(environments),
    )
    .option("--url <url>", "the server, or its API root (default: KEYHOLE_URL)")
    .option("--api-key-file <file>", "a file that holds the API key (default: KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE)")
    .option("--timeout <duration>", "how long one request may take (default: 30s)", (text) =>
      parseDuration("--timeout", text),
    )
    .option(
      "--wait <duration>",
      "how long to keep trying while the server is busy, unavailable or not there yet (default: not at all)",
      (text) => parseDuration("--wait", text),
    );
}

/** What such a command works with. */
export type Machine = {
  readonly asked: Asked;
  readonly client: Client;
  /** Words for people, on stderr. */
  readonly say: (line: string) => void;
};

/**
 * Runs `work` with what the options and the environment say, all of it judged before anything is sent.
 * @throws Problem
 */
export async function atMachine<T>(
  here: Surroundings,
  options: MachineOptions,
  work: (machine: Machine) => Promise<T>,
): Promise<T> {
  const asked = readAsked(here, options);
  const root = parseApiRoot(...required(here, "--url", options.url, "KEYHOLE_URL"));
  const key = await readApiKey(here, options.apiKeyFile);
  // A program that meets an error parses all of stderr, so what would be said before it waits until that is settled.
  const notes: string[] = [];
  const say = here.json ? (line: string) => void notes.push(line) : here.say;
  const timeoutMs = options.timeout ?? timeoutMsDefault;
  const client = new Client({ root, key, timeoutMs, waitMs: options.wait ?? 0, say });
  try {
    const result = await work({ asked, client, say });
    notes.forEach(here.say);
    return result;
  } catch (error) {
    const problem = toProblem(error);
    problem.notes = [...notes, ...problem.notes];
    throw problem;
  }
}

/** Which variables a command takes, and what it will not do without. */
export type SetOptions = {
  readonly keys?: readonly string[] | undefined;
  readonly prefix?: string | undefined;
  readonly require?: readonly string[] | undefined;
  readonly allowEmpty?: true | undefined;
};

/** Those options, for commander; each command has its own, since commander keeps what it was given in them. */
export const setOptions = {
  keys: () => listOption("--keys <list>", "only these variables; one that is missing is an error"),
  prefix: () => new Option("--prefix <text>", "only variables whose names begin like this"),
  required: () => listOption("--require <list>", "variables without which nothing is done"),
  allowEmpty: () => new Option("--allow-empty", "nothing at all is no error"),
  allowName: () => listOption("--allow-name <list>", "names that steer loaders, shells or CI and are meant to"),
};

/**
 * The variables that the options ask for.
 * @throws Problem, also where one that is needed is missing or there are none at all
 */
export async function fetchVariables({ asked, client }: Machine, options: SetOptions): Promise<NamedValue[]> {
  const { keys, prefix, require = [] } = options;
  for (const [option, names] of Object.entries({ "--keys": keys ?? [], "--require": require })) {
    const wrong = names.find((name) => !isVariableName(name));
    if (wrong !== undefined) throw usageProblem(`${option} takes names of variables, and '${wrong}' is none.`);
  }
  if (prefix === "") throw usageProblem("--prefix is empty: leave it out to take all.");
  if ((keys ?? []).join(",").length + (prefix ?? "").length * 3 > queryBytesMax) {
    throw usageProblem("--keys and --prefix hold more than one request can carry: take all, or by a shorter --prefix.");
  }
  const variables = await client.variables(asked, { keys, prefix });
  const present = new Set(variables.map(({ name }) => name));
  const missing = [...new Set([...(keys ?? []), ...require])].filter((name) => !present.has(name));
  const where = `${asked.project}, ${asked.environment}`;
  if (missing.length > 0) {
    const words = `Not there in ${where}: ${missing.join(", ")}.`;
    throw new Problem(exits.notFound, "missing_variables", words);
  }
  if (variables.length === 0 && !options.allowEmpty) {
    const what = prefix === undefined ? "no variables" : `no variables that begin with ${prefix}`;
    const words = `There are ${what} in ${where}; --allow-empty makes that no error.`;
    throw new Problem(exits.notFound, "empty_set", words);
  }
  return variables;
}

/** @throws Problem with the variables that would steer more than the program they are for */
export function refuseSteering(variables: readonly NamedValue[], allowed: readonly string[] = []): void {
  const names = variables.map(({ name }) => name).filter((name) => isSteering(name) && !allowed.includes(name));
  if (names.length === 0) return;
  const words = `Refused, because loaders, shells or CI runners act on them: ${names.join(", ")}. If that is meant: --allow-name ${names.join(",")}.`;
  throw new Problem(exits.failed, "steering_names", words);
}

const timeoutMsDefault = 30_000;

function readAsked(here: Surroundings, options: MachineOptions): Asked {
  const [projectSetting, project] = required(here, "--project", options.project, "KEYHOLE_PROJECT");
  if (!slugPattern.test(project)) {
    throw usageProblem(`${projectSetting} must be a project's slug, such as web: small letters, digits and -.`);
  }
  const [environmentSetting, environment] = required(here, "--env", options.env, "KEYHOLE_ENVIRONMENT");
  if (!isEnvironment(environment)) {
    throw usageProblem(`${environmentSetting} must be one of ${environments.join(", ")}.`);
  }
  return { project, environment };
}

/** The flag's value or else the variable's, and which of the two it was. An empty one is not an absent one. */
function required(
  here: Surroundings,
  flag: string,
  given: string | undefined,
  variable: string,
): [setting: string, value: string] {
  const setting = given === undefined ? variable : flag;
  const value = given ?? here.env[variable];
  if (value === undefined) throw usageProblem(`${flag} or ${variable} is required.`);
  if (value === "") throw usageProblem(`${setting} is empty: give it a value.`);
  return [setting, value];
}

/**
 * The API root of a server that may be sent a key.
 * @param setting - where the text comes from, for messages
 * @param text - the server's origin, or its API root
 * @returns such as `https://keyhole.example.com/api/v1`
 * @throws Problem where the text is something else, or would send the key in the clear
 */
export function parseApiRoot(setting: string, text: string): string {
  const url = URL.parse(text);
  const example = "such as https://keyhole.example.com";
  if (url === null || !/^https?:$/.test(url.protocol)) throw usageProblem(`${setting} must be a URL ${example}.`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw usageProblem(`${setting} must be a URL without a user, a query and a fragment, ${example}.`);
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw usageProblem(
      `${setting} is plain http to another machine, where anybody on the way could read the key: use https.`,
    );
  }
  if (url.pathname === "/") return `${url.origin}/api/v1`;
  if (/\/api\/v1\/?$/.test(url.pathname)) return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
  throw usageProblem(`${setting} must be the server's origin or its API root, which ends in /api/v1.`);
}

/** @param hostname - as URL writes it: IPv4 in full, IPv6 in brackets */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

async function readApiKey(here: Surroundings, flag: string | undefined): Promise<string> {
  const { KEYHOLE_API_KEY: text, KEYHOLE_API_KEY_FILE: file } = here.env;
  if (flag !== undefined) return parseApiKey("The file of --api-key-file", await readKeyFile(here, flag));
  if (text !== undefined && file !== undefined) {
    throw usageProblem("KEYHOLE_API_KEY and KEYHOLE_API_KEY_FILE are both set: keep one of them.");
  }
  if (text === "" || file === "") {
    throw usageProblem(`KEYHOLE_API_KEY${text === "" ? "" : "_FILE"} is empty: give it a value.`);
  }
  if (text !== undefined) return parseApiKey("KEYHOLE_API_KEY", text);
  if (file !== undefined) return parseApiKey("The file of KEYHOLE_API_KEY_FILE", await readKeyFile(here, file));
  throw usageProblem("KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE or --api-key-file is required.");
}

/** Files end in a newline, however they were made. */
async function readKeyFile(here: Surroundings, path: string): Promise<string> {
  const text = decodeText(await readLocal(here, path, keyFileBytesMax));
  return (text ?? "").replace(/\r?\n$/, "");
}

const keyFileBytesMax = 4096;

/** Whatever else was put here by mistake may be another secret: it is not sent anywhere. */
function parseApiKey(source: string, text: string): string {
  if (/^kh_[0-9A-Za-z]{49}$/.test(text)) return text;
  throw new Problem(
    exits.unauthorized,
    "unauthorized",
    `${source} holds no API key: they begin with kh_ and have 52 characters.`,
  );
}
