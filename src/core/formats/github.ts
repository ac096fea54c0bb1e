import { type NamedValue, renderEach } from "./dotenv.ts";

/**
 * Text to append to `$GITHUB_ENV` or `$GITHUB_OUTPUT`. Every value gets a random delimiter that it does not contain.
 * @param random - returns 32 new random hexadecimal digits
 * @param windows - for a runner on Windows, which takes a trailing carriage return as part of the line end
 * @throws Fault `env_unrepresentable` with the names that a workflow may not set, or whose values cannot be carried
 * @see https://docs.github.com/actions/reference/workflow-commands-for-github-actions
 * @see https://github.com/actions/runner/blob/258d6c857db3519913f7deb6004b60172f8043ae/src/Runner.Worker/FileCommandManager.cs
 */
export function renderGithub(variables: readonly NamedValue[], random: () => string, windows = false): string {
  const write = ({ name, value }: NamedValue) => {
    let delimiter: string;
    do delimiter = `KEYHOLE_${random()}`;
    while (value.includes(delimiter));
    return `${name}<<${delimiter}\n${value}\n${delimiter}\n`;
  };
  const carries = ({ name, value }: NamedValue) => !reserved.test(name) && !(windows && value.endsWith("\r"));
  return renderEach(variables, write, carries);
}

/** The runner refuses NODE_OPTIONS, in any case, and overwrites the others. */
const reserved = /^(?:NODE_OPTIONS$|GITHUB_|RUNNER_)/i;

/**
 * Lines that make the runner mask values in its log: each value, each of its lines, and its base64, URL and JSON forms.
 * Print them before anything else. Short values and common words are not masked, or the log would be unreadable.
 * @param always - names of variables that are masked even so
 * @returns the lines, and the names of the variables whose values are not masked
 */
export function renderMasks(variables: readonly NamedValue[], always: readonly string[] = []) {
  const masks = new Set<string>();
  const unmasked: string[] = [];
  for (const { name, value } of variables) {
    const isForced = always.includes(name);
    if (value !== "" && !isForced && !isTelling(value)) unmasked.push(name);
    else for (const form of formsOf(value, isForced)) masks.add(form);
  }
  return { text: [...masks].map((mask) => `::add-mask::${escapeData(mask)}\n`).join(""), unmasked };
}

/** A shorter value is rarely a secret, and often part of other words. */
const valueLengthMin = 8;
const lineLengthMin = 4;

/** Whether a value is long enough to be a secret, and no common word. */
export function isTelling(value: string): boolean {
  return value.length >= valueLengthMin && !isCommon(value);
}

/** Whether a text is a word that many logs have, and not a secret. */
function isCommon(text: string): boolean {
  return commonWords.has(text.trim().toLowerCase());
}

const commonWords: ReadonlySet<string> = new Set([
  ...["production", "development", "staging", "testing", "test", "localhost", "127.0.0.1"],
  ...["true", "false", "null", "none", "enabled", "disabled", "debug", "info", "warn", "error"],
]);

/** Older runners, and those of other vendors, mask neither single lines nor encoded forms by themselves. */
function formsOf(value: string, isForced: boolean): string[] {
  const lines = value.split(/[\r\n]+/);
  const parts = [
    ...lines,
    ...lines.map((line) => line.trim()),
    Buffer.from(value).toString("base64"),
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
  ].filter((part) => part.length >= lineLengthMin && (isForced || !isCommon(part)));
  return [value, ...parts].filter((form) => form.trim() !== "");
}

function escapeData(data: string): string {
  return data.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
