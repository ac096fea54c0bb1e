import { Fault } from "../fault.ts";
import { exits, Problem } from "../problem.ts";
import { renderCsv } from "./csv.ts";
import { type NamedValue, renderDotenv } from "./dotenv.ts";
import { renderGithub, renderMasks } from "./github.ts";
import * as lines from "./lines.ts";

/** The formats that `keyhole pull` and `keyhole var export` write: what each cannot carry, and who writes it. */
const writers = {
  env: ["a `$(` together with a line break", renderEnv],
  json: ["text that is not Unicode", lines.renderJson],
  yaml: ["text that is not Unicode", lines.renderYaml],
  toml: ["text that is not Unicode", lines.renderToml],
  csv: ["text that is not Unicode", renderCsv],
  tfvars: ["a name that Terraform reserves, or text that it normalizes", lines.renderTfvars],
  shell: ["text that is not Unicode", lines.renderShell],
  docker: ["a line break, or a line of 64 KiB", lines.renderDocker],
  powershell: ["an empty value, or names that differ only in case", lines.renderPowershell],
} as const;
export type TextFormat = keyof typeof writers;
export type Format = TextFormat | "github";
export const textFormats = Object.keys(writers) as readonly TextFormat[];
export const formats: readonly Format[] = [...textFormats, "github"];

/** Formats that are data. Every other becomes an environment. */
export const dataFormats: readonly Format[] = ["json", "yaml", "toml", "csv", "tfvars"];

/** Variables as text. @throws Problem that names those it cannot carry */
export function renderPulled(format: TextFormat, variables: readonly NamedValue[], say: (line: string) => void) {
  const [limit, write] = writers[format];
  return carrying(format, limit, () => write(variables, say));
}

/** dotenv text; names the values that some readers change. @throws Fault `env_unrepresentable` */
function renderEnv(variables: readonly NamedValue[], say: (line: string) => void): string {
  const { text, nonportable } = renderDotenv(variables);
  if (nonportable.length > 0) {
    say(`Some readers of .env files do not return these values exactly: ${nonportable.join(", ")}.`);
  }
  return text;
}

/**
 * Variables for the runner of GitHub Actions, or one JSON object of them under the name `asOutput`.
 * @param mask - names of variables to mask however short they are
 * @param random - a new random text for each call, which no value can contain
 * @returns `masks` to print before `text` is appended to the runner's file, and the names that are not masked
 */
export function renderForGithub(
  variables: readonly NamedValue[],
  onWindows: boolean,
  asOutput: string | undefined,
  mask: readonly string[] | undefined,
  random: () => string,
): { text: string; masks: string; unmasked: readonly string[] } {
  const object = () => JSON.stringify(Object.fromEntries(variables.map(({ name, value }) => [name, value])));
  const entries = asOutput === undefined ? variables : [{ name: asOutput, value: object() }];
  return carrying("github", "a name that the runner reserves", () => {
    const text = renderGithub(entries, random, onWindows);
    const { text: masks, unmasked } = renderMasks(variables, mask);
    return { text, masks, unmasked };
  });
}

/** @throws Problem that names the variables if the format cannot carry them */
function carrying<T>(format: Format, limit: string, render: () => T): T {
  try {
    return render();
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "env_unrepresentable") throw error;
    const names = (error.detail.names ?? []).join(", ");
    const words = `The format ${format} cannot carry ${names} (${limit}). The format json carries every value.`;
    throw new Problem(exits.refused, error.code, words, { cause: error });
  }
}
