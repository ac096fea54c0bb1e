import type { Asked } from "../client/answers.ts";
import { awsTokens } from "../client/aws-token.ts";
import { type Api, Client, type KeptReceipt } from "../client/client.ts";
import { azureTokens, googleTokens } from "../client/cloud-token.ts";
import { commandTokens } from "../client/command-token.ts";
import { runnerTokens } from "../client/runner-token.ts";
import { isToken, tokensOf } from "../client/token-giver.ts";
import type { Source } from "../client/variables.ts";
import { isApiKey, parseApiRoot } from "../client/wire.ts";
import { environments, isEnvironment, slugPattern } from "../core/names.ts";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { warnOfReaders } from "../core/settings/secret-file.ts";
import { parseSocket } from "../core/settings/settings.ts";
import { jsonLine } from "../core/visible.ts";
import { writeWholeSync } from "../core/whole-file.ts";
import { parseList } from "../core/words/lists.ts";
import { didYouMean } from "../core/words/nearest.ts";
import { decodeText } from "../core/words/text.ts";
import { parseDuration } from "../core/words/times.ts";
import { choice, flag, type Given, input } from "../people/desk/inputs.ts";
import { wrong } from "./terminal/command.ts";
import { holdNotes } from "./terminal/failure.ts";
import { readLocal } from "./terminal/input.ts";
import type { CommandContext } from "./terminal/verb.ts";

/* What the commands of machines share. Nothing is read from the current folder, which may belong to anybody. */

/** Which environment. */
export const askedInputs = {
  project: input("-p, --project <slug>", "the project (default: KEYHOLE_PROJECT)"),
  env: choice("-e, --env <environment>", "the environment (default: KEYHOLE_ENVIRONMENT)", environments),
};

/** Which server, and as whom. There is no option for the key itself: other users can see arguments. */
export const serverInputs = {
  url: input("--url <url>", "the server, or its API root (default: KEYHOLE_URL)"),
  apiKeyFile: input(
    "--api-key-file <file>",
    "a file that holds the API key (default: KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE or KEYHOLE_OIDC)",
  ),
  timeout: input("--timeout <duration>", "how long one request may take (default: 30s)", parseDuration),
};

/** What each command takes that fetches. */
export const machineInputs = {
  ...askedInputs,
  ...serverInputs,
  wait: input(
    "--wait <duration>",
    "how long to retry a busy or unavailable server (default: not at all)",
    parseDuration,
  ),
  receipt: input(
    "--receipt <file>",
    "write to this file which audit entries the values left, a line of JSON for each answer",
  ),
  allowEmpty: flag("--allow-empty", "succeed even if there is nothing to fetch"),
};

/** What each command takes that fetches variables. */
export const variablesInputs = {
  ...machineInputs,
  keys: input("--keys <list>", "only these variables; a missing one is an error", parseList),
  prefix: input("--prefix <text>", "only variables whose names begin with this"),
  require: input("--require <list>", "variables that must exist; if one is missing, nothing is done", parseList),
  allowName: input("--allow-name <list>", "allow these names, on which loaders, shells or CI runners act", parseList),
};

export type MachineOptions = Partial<Given<typeof machineInputs>>;

/** What a machine's command works with. */
export type Machine = Source & Pick<CommandContext, "say">;

/** Runs `work` with a client. The options and the environment are validated before anything is sent. */
export async function atMachine<T>(
  context: CommandContext,
  options: MachineOptions,
  work: (machine: Machine) => Promise<T>,
): Promise<T> {
  const asked = readAsked(context, options);
  const { receipt } = options;
  if (receipt === "") throw usageProblem("--receipt is empty.");
  return holdNotes(context, async (say) => {
    const api = await readApi({ ...context, say }, options);
    const keep = receipt === undefined ? undefined : (kept: readonly KeptReceipt[]) => keepReceipts(receipt, kept);
    const client = new Client({ ...api, say, keep });
    const result = await work({ asked, client, say });
    // A file of an earlier run must not look like this one's.
    if (client.receipts.length === 0) await keep?.([]);
    return result;
  });
}

/** Writes the receipts first: no value is used without one. */
async function keepReceipts(path: string, receipts: readonly KeptReceipt[]): Promise<void> {
  writeWholeSync("receipt", path, true, Buffer.from(receipts.map(jsonLine).join("")));
}

/** The receipts of a command, for `--json`. */
export function receiptsOf({ client }: Source): { readonly receipts: readonly string[] } {
  return { receipts: client.receipts.map(({ entries }) => entries) };
}

/** The server and the credential, from the options and the environment. */
export async function readApi(
  context: CommandContext,
  options: Pick<MachineOptions, "url" | "apiKeyFile" | "timeout" | "wait">,
): Promise<Omit<Api, "say">> {
  const { root, socket } = readServer(context, options.url);
  const { timeout: timeoutMs = timeoutMsDefault, wait: waitMs = 0 } = options;
  const credential = await readCredential(context, options.apiKeyFile, new URL(root).origin, timeoutMs);
  return { root, socket, credential, timeoutMs, waitMs };
}

const timeoutMsDefault = 30_000;

/**
 * The API root by option or environment, and the socket that leads there, if one does.
 * @throws Problem, also if the key would be sent in the clear
 */
export function readServer(
  context: Pick<CommandContext, "env">,
  option: string | undefined,
): { readonly root: string; readonly socket?: string } {
  const [setting, url] = required(context, "--url", option, "KEYHOLE_URL");
  if (url.startsWith("unix:")) return { root: "http://localhost/api/v1", socket: parseSocket(setting, url) };
  const allowedHosts = readAllowedHosts(context.env["KEYHOLE_ALLOW_HTTP"]);
  const way = "use https, or name the host in KEYHOLE_ALLOW_HTTP if nobody else is on that network";
  const parsed = parseApiRoot(setting, url, (hostname) => allowedHosts.includes(hostname), way);
  if ("wrong" in parsed) throw usageProblem(parsed.wrong);
  return parsed;
}

/** The project and the environment that the options or the environment name. */
export function readAsked(context: CommandContext, options: Pick<MachineOptions, "project" | "env">): Asked {
  const [projectSetting, project] = required(context, "--project", options.project, "KEYHOLE_PROJECT");
  if (!slugPattern.test(project)) {
    throw usageProblem(`${projectSetting} must be a project's slug, such as web: small letters, digits and -.`);
  }
  const [environmentSetting, environment] = required(context, "--env", options.env, "KEYHOLE_ENVIRONMENT");
  if (!isEnvironment(environment)) {
    const words = `${wrong(environmentSetting, environment)} is one of ${environments.join(", ")}.`;
    throw usageProblem(`${words}${didYouMean(environment, environments)}`);
  }
  return { project, environment };
}

/** The value of the flag or else of the variable, and which of the two it was. An empty one is an error. */
function required(
  context: Pick<CommandContext, "env">,
  flag: string,
  given: string | undefined,
  variable: string,
): [setting: string, value: string] {
  const setting = given === undefined ? variable : flag;
  const value = given ?? context.env[variable];
  if (value === undefined) throw usageProblem(`${flag} or ${variable} is required.`);
  if (value === "") throw usageProblem(`${setting} is empty: give it a value.`);
  return [setting, value];
}

/** The hosts of KEYHOLE_ALLOW_HTTP, as URLs spell them. */
function readAllowedHosts(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  const hosts = text.split(",");
  if (hosts.every((host) => host !== "" && URL.parse(`http://${host}`)?.hostname === host)) return hosts;
  throw usageProblem(
    "KEYHOLE_ALLOW_HTTP must be names of hosts with commas between them, such as keyhole,10.0.0.5, without ports.",
  );
}

/** An API key. Any other text may be another secret that was put here by mistake, so it is never sent. */
function parseApiKey(source: string, text: string): string {
  if (isApiKey(text)) return text;
  const words = `${source} does not hold an API key, which begins with kh_ and has 52 characters.`;
  throw new Problem(exits.unauthorized, "unauthorized", words);
}

/** Gives the API key, or the token that KEYHOLE_OIDC points to. A token file is read again for each request. */
async function readCredential(context: CommandContext, flag: string | undefined, origin: string, timeoutMs: number) {
  const { KEYHOLE_OIDC: setting, KEYHOLE_API_KEY: key, KEYHOLE_API_KEY_FILE: file } = context.env;
  if (flag !== undefined || setting === undefined) {
    const text = await readApiKey(context, flag);
    return async () => text;
  }
  if (key !== undefined || file !== undefined) {
    throw usageProblem("KEYHOLE_OIDC and an API key are both set: keep one of them.");
  }
  const [, kind = "", rest = ""] = /^(github|gcp|azure|aws|env|file|command)(?::(.+))?$/s.exec(setting) ?? [];
  if (kind === "file" && rest !== "") return () => readToken(context, "The file of KEYHOLE_OIDC", rest);
  if (kind === "env" && rest !== "") {
    const value = context.env[rest];
    if (!value) throw usageProblem(`KEYHOLE_OIDC names the variable ${rest}, which is not set.`);
    const text = parseToken(rest, value);
    return async () => text;
  }
  const source = sourceOf(context, kind, rest, origin, timeoutMs);
  if (source !== undefined) return tokensOf(source);
  throw usageProblem('KEYHOLE_OIDC is github, gcp, azure, aws, env:NAME, file:PATH or command:["PROGRAM","ARGUMENT"].');
}

/** A source that is asked again. @param rest - the audience, or the program */
function sourceOf(context: CommandContext, kind: string, rest: string, origin: string, timeoutMs: number) {
  const asked = { env: context.env, audience: rest || origin, timeoutMs };
  const readFile = (setting: string, path: string) => readToken(context, `The file of ${setting}`, path);
  if (kind === "github") return runnerTokens(asked);
  if (kind === "gcp") return googleTokens(asked);
  if (kind === "azure") return azureTokens(asked);
  if (kind === "aws") return awsTokens({ ...asked, readFile });
  return kind === "command" && rest !== "" ? commandTokens(rest, asked) : undefined;
}

async function readToken(context: CommandContext, source: string, path: string): Promise<string> {
  return parseToken(source, decodeText(await readLocal(context, path, tokenFileBytesMax, source), source).trim());
}

/** A token. Any other text may be another secret that was put here by mistake, so it is never sent. */
function parseToken(source: string, text: string): string {
  if (isToken(text)) return text;
  const words = `${source} does not hold a token, which has three parts with dots between them.`;
  throw new Problem(exits.unauthorized, "unauthorized", words);
}

const tokenFileBytesMax = 16 * 1024;

async function readApiKey(context: CommandContext, flag: string | undefined): Promise<string> {
  const { KEYHOLE_API_KEY: own, KEYHOLE_API_KEY_FILE: file } = context.env;
  if (flag === undefined && own !== undefined) {
    if (file === undefined) return parseApiKey(...required(context, "--api-key-file", undefined, "KEYHOLE_API_KEY"));
    throw usageProblem("KEYHOLE_API_KEY and KEYHOLE_API_KEY_FILE are both set: keep one of them.");
  }
  if (flag === undefined && file === undefined) {
    throw usageProblem("KEYHOLE_API_KEY, KEYHOLE_API_KEY_FILE, --api-key-file or KEYHOLE_OIDC is required.");
  }
  const [setting, path] = required(context, "--api-key-file", flag, "KEYHOLE_API_KEY_FILE");
  const source = `The file of ${setting}`;
  const text = decodeText(await readLocal(context, path, keyFileBytesMax, source), source);
  warnOfReaders(source, path, context.say);
  return parseApiKey(source, text.replace(/\r?\n$/, "")); // without the line end that most tools add
}

const keyFileBytesMax = 4096;
