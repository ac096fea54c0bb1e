import { Option } from "@commander-js/extra-typings";
import type { Asked } from "../fetch/answers.ts";
import { Client } from "../fetch/client.ts";
import type { Source } from "../fetch/variables.ts";
import { environments, isEnvironment, slugPattern } from "../names.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import { holdNotes, type Surroundings, verb, wrong } from "./command.ts";
import { decodeText, readLocal } from "./input.ts";
import { parseDuration, parseList } from "./options.ts";

/* What the commands of machines share. Nothing is read from the current folder, which may belong to anybody. */

/** A command that fetches, with the options they all have. The key is not one: other users can see arguments. */
export function machineVerb(...description: Parameters<typeof verb>) {
  return verb(...description)
    .option("-p, --project <slug>", "the project (default: KEYHOLE_PROJECT)")
    .addOption(
      new Option("-e, --env <environment>", "the environment (default: KEYHOLE_ENVIRONMENT)").choices(environments),
    )
    .option("--url <url>", "the server, or its API root (default: KEYHOLE_URL)")
    .option("--api-key-file <file>", "a file that holds the API key (default: KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE)")
    .option("--timeout <duration>", "how long one request may take (default: 30s)", parseDuration)
    .option("--wait <duration>", "how long to retry a busy or unavailable server (default: not at all)", parseDuration)
    .option("--allow-empty", "accept that there is nothing at all");
}

/** A command that fetches variables. */
export function variablesVerb(...description: Parameters<typeof verb>) {
  return machineVerb(...description)
    .option("--keys <list>", "only these variables; a missing one is an error", parseList)
    .option("--prefix <text>", "only variables whose names begin with this")
    .option("--require <list>", "variables that must exist; if one is missing, nothing is done", parseList)
    .option("--allow-name <list>", "allow these names, on which loaders, shells or CI runners act", parseList);
}

/** The values of these options. */
export type MachineOptions = ReturnType<ReturnType<typeof machineVerb>["opts"]>;

/** What a machine's command works with. */
export type Machine = Source & Pick<Surroundings, "say">;

/** Runs `work` with a client. The options and the environment are validated before anything is sent. */
export async function atMachine<T>(
  here: Surroundings,
  options: MachineOptions,
  work: (machine: Machine) => Promise<T>,
): Promise<T> {
  const asked = readAsked(here, options);
  const root = parseApiRoot(...required(here, "--url", options.url, "KEYHOLE_URL"));
  const key = await readApiKey(here, options.apiKeyFile);
  const { timeout: timeoutMs = timeoutMsDefault, wait: waitMs = 0 } = options;
  return holdNotes(here, (say) => work({ asked, client: new Client({ root, key, timeoutMs, waitMs, say }), say }));
}

const timeoutMsDefault = 30_000;

function readAsked(here: Surroundings, options: MachineOptions): Asked {
  const [projectSetting, project] = required(here, "--project", options.project, "KEYHOLE_PROJECT");
  if (!slugPattern.test(project)) {
    throw usageProblem(`${projectSetting} must be a project's slug, such as web: small letters, digits and -.`);
  }
  const [environmentSetting, environment] = required(here, "--env", options.env, "KEYHOLE_ENVIRONMENT");
  if (!isEnvironment(environment)) {
    throw usageProblem(`${wrong(environmentSetting, environment)} is one of ${environments.join(", ")}.`);
  }
  return { project, environment };
}

/** The value of the flag or else of the variable, and which of the two it was. An empty one is an error. */
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

/** The API root, from it or the server's origin. @throws Problem, also if the key would be sent in the clear */
export function parseApiRoot(setting: string, text: string): string {
  const url = URL.parse(text);
  const example = "such as https://keyhole.example.com";
  if (url === null || !/^https?:$/.test(url.protocol)) throw usageProblem(`${setting} must be a URL ${example}.`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw usageProblem(`${setting} must be a URL without a user, a query and a fragment, ${example}.`);
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    const risk = "where others on the network could read the key";
    throw usageProblem(`${setting} is plain http to another machine, ${risk}: use https.`);
  }
  if (url.pathname === "/") return `${url.origin}/api/v1`;
  if (/\/api\/v1\/?$/.test(url.pathname)) return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
  throw usageProblem(`${setting} must be the server's origin or its API root, which ends in /api/v1.`);
}

/** @param hostname - as URL writes it: IPv4 in full, IPv6 in brackets */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** An API key. Any other text may be another secret that was put here by mistake, so it is never sent. */
function parseApiKey(source: string, text: string): string {
  if (/^kh_[0-9A-Za-z]{49}$/.test(text)) return text;
  const words = `${source} holds no API key: one begins with kh_ and has 52 characters.`;
  throw new Problem(exits.unauthorized, "unauthorized", words);
}

async function readApiKey(here: Surroundings, flag: string | undefined): Promise<string> {
  const { KEYHOLE_API_KEY: own, KEYHOLE_API_KEY_FILE: file } = here.env;
  if (flag === undefined && own !== undefined) {
    if (file === undefined) return parseApiKey(...required(here, "--api-key-file", undefined, "KEYHOLE_API_KEY"));
    throw usageProblem("KEYHOLE_API_KEY and KEYHOLE_API_KEY_FILE are both set: keep one of them.");
  }
  if (flag === undefined && file === undefined) {
    throw usageProblem("KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE or --api-key-file is required.");
  }
  const [setting, path] = required(here, "--api-key-file", flag, "KEYHOLE_API_KEY_FILE");
  const source = `The file of ${setting}`;
  const text = decodeText(await readLocal(here, path, keyFileBytesMax, source), source);
  return parseApiKey(source, text.replace(/\r?\n$/, "")); // without the line end that most tools add
}

const keyFileBytesMax = 4096;
