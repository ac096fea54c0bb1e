import { type NamedValue, renderEach } from "./dotenv.ts";

/**
 * Text to append to `$GITHUB_ENV` or `$GITHUB_OUTPUT`. Every value gets a random delimiter that it does not contain.
 *
 * @param variables - each name once
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
 * Print them before anything else. Text of fewer than four characters is not masked, or the log would be unreadable.
 *
 * @returns the lines, and the names of the variables whose values are not masked at all
 */
export function renderMasks(variables: readonly NamedValue[]): { text: string; unmasked: string[] } {
  const masks = new Set<string>();
  const unmasked: string[] = [];
  for (const { name, value } of variables) {
    const forms = formsOf(value).filter((form) => form.length >= maskLengthMin && form.trim() !== "");
    for (const form of forms) masks.add(form);
    if (forms.length === 0 && value !== "") unmasked.push(name);
  }
  return { text: [...masks].map((mask) => `::add-mask::${escapeData(mask)}\n`).join(""), unmasked };
}

const maskLengthMin = 4;

/** Older runners, and those of other vendors, mask neither single lines nor encoded forms by themselves. */
function formsOf(value: string): string[] {
  if (value.length < maskLengthMin) return [];
  const lines = value.split(/[\r\n]+/);
  return [
    value,
    ...lines,
    ...lines.map((line) => line.trim()),
    Buffer.from(value).toString("base64"),
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
  ];
}

function escapeData(data: string): string {
  return data.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
