import { randomBytes } from "node:crypto";
import { Option } from "@commander-js/extra-typings";
import { Fault } from "../fault.ts";
import { type NamedValue, renderDotenv } from "../render/dotenv.ts";
import { isExact, unrepresentable } from "../render/read-back.ts";
import { answer, counted, exits, Problem, type Surroundings, usageProblem } from "./command.ts";
import { atMachine, fetchVariables, type Machine, machineVerb, refuseSteering, setOptions } from "./machine.ts";
import { openAppending, writeWhole } from "./place.ts";
import { OutputClosed, visible, write } from "./terminal.ts";

/** `keyhole pull` */
export function pullCommand(here: Surroundings) {
  return machineVerb(
    "pull",
    "Print the variables of an environment, or write them to a file: all of them or nothing.",
    "keyhole pull -p web -e production --out .env",
    'vars=$(keyhole pull -p web -e production --format shell) && eval "$vars"',
    "keyhole pull -p web -e staging --format json --keys DATABASE_URL,SMTP_PASSWORD",
    "keyhole pull -p web -e staging --format docker --out web.env",
    "keyhole pull -p web -e production --format github",
  )
    .addOption(new Option("--format <format>", "how they are written (default: env)").choices(formats))
    .option("--out <file>", "write to this file, with mode 0600 (with github: append to it in place of $GITHUB_ENV)")
    .addOption(setOptions.keys())
    .addOption(setOptions.prefix())
    .addOption(setOptions.required())
    .addOption(setOptions.allowEmpty())
    .addOption(setOptions.allowName())
    .option("--as-output <name>", "with github: all as one JSON object, appended to $GITHUB_OUTPUT under this name")
    .action(async ({ format = here.json ? "json" : "env", out, asOutput, allowName, keys, prefix, ...rest }) => {
      const { require, allowEmpty, ...options } = rest;
      if (out === "") throw usageProblem("--out is empty.");
      if (asOutput !== undefined && format !== "github") throw usageProblem("--as-output goes with --format github.");
      if (here.json && format === "github") {
        throw usageProblem("--json does not go with --format github, whose output is commands for the runner.");
      }
      await atMachine(here, options, async (machine) => {
        const file = format === "github" ? githubFile(here, out, asOutput) : "";
        const variables = await fetchVariables(machine, { keys, prefix, require, allowEmpty });
        // Data is data; every other format ends up as somebody's environment.
        if (format !== "json" && format !== "yaml" && asOutput === undefined) refuseSteering(variables, allowName);
        const pulled = { here, machine, variables };
        if (format === "github") return toGithub(pulled, file, asOutput);
        const text = await render(format, pulled);
        if (out !== undefined && out !== "-") return toFile(pulled, format, out, text);
        if (!here.json) refuseUnseen(pulled, format);
        if (!here.json || format === "json") return write(here.terminal.stdout, text);
        await answer(here, { ...machine.asked, format, text }, "");
      });
    });
}

const formats = ["env", "json", "yaml", "shell", "docker", "powershell", "github"] as const;
type Format = (typeof formats)[number];

/** Variables in hand, on their way into some format. */
type Pulled = {
  readonly here: Surroundings;
  readonly machine: Machine;
  readonly variables: readonly NamedValue[];
};

/** Each is loaded only where it is used, and reads back what it wrote. @throws Problem naming what it cannot carry */
async function render(format: Exclude<Format, "github">, { machine, variables }: Pulled): Promise<string> {
  try {
    switch (format) {
      case "env":
        return await renderEnv(variables, machine.say);
      case "json":
        return renderJson(variables);
      case "yaml":
        return (await import("../render/yaml.ts")).renderYaml(variables);
      case "shell":
        return (await import("../render/shell.ts")).renderShell(variables);
      case "docker":
        return (await import("../render/docker.ts")).renderDocker(variables);
      case "powershell":
        return (await import("../render/powershell.ts")).renderPowershell(variables);
    }
  } catch (error) {
    throw cannotCarry(format, error);
  }
}

/**
 * dotenv text, read back before anybody else does.
 * @param say - told of values that some readers alter
 * @throws Fault `env_unrepresentable`
 */
export async function renderEnv(variables: readonly NamedValue[], say: (line: string) => void): Promise<string> {
  const { text, nonportable } = renderDotenv(variables);
  // The reader whose rules most such files were written for. Values that some readers alter are named, and need not be
  // exact in this one; but none may be gone, and none may bring others along.
  const { parse } = await import("dotenv");
  const found = new Map(Object.entries(parse(text, { fast: true })));
  const altered = new Set(nonportable);
  const lost = variables.filter(({ name, value }) =>
    altered.has(name) ? !found.has(name) : found.get(name) !== value,
  );
  if (lost.length > 0 || found.size !== variables.length) throw unrepresentable(lost.length > 0 ? lost : variables);
  if (nonportable.length > 0) {
    say(`Not every reader of .env files gives these values back exactly: ${nonportable.join(", ")}.`);
  }
  return text;
}

/** One object, a member to a line; escaped as JSON allows wherever a terminal would act on a character. */
function renderJson(variables: readonly NamedValue[]): string {
  const members = variables.map(
    ({ name, value }) => `  ${visible(JSON.stringify(name))}: ${visible(JSON.stringify(value))}`,
  );
  const text = members.length === 0 ? "{}\n" : `{\n${members.sort().join(",\n")}\n}\n`;
  if (!isExact(text, variables, (json) => new Map(Object.entries(JSON.parse(json))))) throw unrepresentable(variables);
  return text;
}

/** @returns a Problem where `error` says which variables the format cannot carry, or else the error itself */
function cannotCarry(format: Format, error: unknown): unknown {
  if (!(error instanceof Fault) || error.code !== "env_unrepresentable") return error;
  const names = (error.detail.names ?? []).join(", ");
  const words = `The format ${format} cannot carry ${names} (${limits[format]}). The format json carries every value.`;
  return new Problem(exits.refused, error.code, words, { cause: error });
}

const limits: Readonly<Record<Format, string>> = {
  env: "a `$(` together with a line break",
  json: "text that is no Unicode",
  yaml: "text that is no Unicode",
  shell: "text that is no Unicode",
  docker: "a line break, or a line of 64 KiB",
  powershell: "an empty value, or names that differ in case alone",
  github: "a name that the runner keeps to itself",
};

/** These show values as they are, and a terminal acts on what is in them. @throws Problem */
function refuseUnseen({ here, variables }: Pulled, format: Format): void {
  if (!here.terminal.stdout.isTTY || !["env", "shell", "docker"].includes(format)) return;
  const steers = (value: string) => visible(value.replace(/[\n\t]/g, "")) !== value.replace(/[\n\t]/g, "");
  const names = variables.filter(({ value }) => steers(value)).map(({ name }) => name);
  if (names.length === 0) return;
  const words = `Not shown on a terminal, which could act on them: ${names.join(", ")}. Use --out, a pipe, or --format json.`;
  throw new Problem(exits.failed, "not_shown", words);
}

async function toFile({ here, machine, variables }: Pulled, format: Format, out: string, text: string): Promise<void> {
  writeWhole(out, Buffer.from(text));
  const names = variables.map(({ name }) => name).sort();
  await answer(here, { ...machine.asked, format, out, names }, `Wrote ${counted(names.length, "variable")} to ${out}.`);
}

function githubFile(here: Surroundings, out: string | undefined, asOutput: string | undefined): string {
  if (asOutput !== undefined && !/^[A-Za-z_][A-Za-z0-9_-]{0,99}$/.test(asOutput)) {
    throw usageProblem("--as-output takes a name of letters, digits, _ and -.");
  }
  const variable = asOutput === undefined ? "GITHUB_ENV" : "GITHUB_OUTPUT";
  const file = out ?? here.env[variable];
  if (file !== undefined && file !== "" && file !== "-") return file;
  throw usageProblem(`${variable} is not set, as it is in a step of GitHub Actions: name a file with --out.`);
}

/** Everything that can fail has not, before the first mask is printed; and every mask is, before a value is written. */
async function toGithub({ here, machine, variables }: Pulled, file: string, asOutput?: string): Promise<void> {
  const { renderGithub, renderMasks } = await import("../render/github.ts");
  const object = () => JSON.stringify(Object.fromEntries(variables.map(({ name, value }) => [name, value])));
  const entries = asOutput === undefined ? variables : [{ name: asOutput, value: object() }];
  let text: string;
  try {
    const onWindows = here.env["RUNNER_OS"] === "Windows";
    text = renderGithub(entries, () => randomBytes(16).toString("hex"), onWindows);
  } catch (error) {
    throw cannotCarry("github", error);
  }
  const masks = renderMasks(variables);
  const appending = openAppending(file);
  try {
    await write(here.terminal.stdout, masks.text).catch((error: unknown) => {
      if (!(error instanceof OutputClosed)) throw error;
      throw new Problem(exits.failed, "unmasked", "Nobody took the masks, so nothing was set.");
    });
    appending.append(text);
  } finally {
    appending.close();
  }
  if (masks.unmasked.length > 0) {
    machine.say(`Too short to be hidden in the log: ${masks.unmasked.join(", ")}.`);
  }
  const set =
    asOutput === undefined
      ? `${counted(variables.length, "variable")} for the steps that follow`
      : `the output ${asOutput}`;
  machine.say(`Set ${set}.`);
}
