import { Option } from "@commander-js/extra-typings";
import type { Asked } from "../fetch/answers.ts";
import { parseApiKey, parseApiRoot } from "../fetch/api-settings.ts";
import { Client } from "../fetch/client.ts";
import type { Source } from "../fetch/variables.ts";
import { environments, isEnvironment, slugPattern } from "../names.ts";
import { usageProblem } from "../problem.ts";
import { decodeText, listOption, parseDuration, readLocal, type Surroundings, toProblem, verb } from "./command.ts";

/*
 * What the commands of machines share: where the API is, which key to use and what to ask for. A flag beats its
 * variable. Nothing is read from the current folder, which may belong to anybody.
 */

/** A command that fetches, with the options they all have. The key is not one: other users can see arguments. */
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
      "how long to keep trying while the server is busy, unavailable or not running yet (default: not at all)",
      (text) => parseDuration("--wait", text),
    );
}

/** The values of these options. */
export type MachineOptions = ReturnType<ReturnType<typeof machineVerb>["opts"]>;

/** What a machine's command works with. */
export type Machine = Source & {
  /** Tells people something, on stderr. */
  readonly say: (line: string) => void;
};

/**
 * Runs `work` with a client. The options and the environment are validated before anything is sent.
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
  // On an error, programs parse all of stderr. So notes wait until it is known whether there is an error.
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

/** Options for variables and files. They are functions because commander keeps parsed values in an option. */
export const variableOptions = {
  keys: () => listOption("--keys <list>", "only these variables; a missing one is an error"),
  prefix: () => new Option("--prefix <text>", "only variables whose names begin with this"),
  required: () => listOption("--require <list>", "variables that must exist; if one is missing, nothing is done"),
  allowEmpty: () => new Option("--allow-empty", "accept that there is nothing at all"),
  allowName: () => listOption("--allow-name <list>", "allow these names, on which loaders, shells or CI runners act"),
};

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

/** Without the line end that most tools add. */
async function readKeyFile(here: Surroundings, path: string): Promise<string> {
  const text = decodeText(await readLocal(here, path, keyFileBytesMax));
  return (text ?? "").replace(/\r?\n$/, "");
}

const keyFileBytesMax = 4096;
