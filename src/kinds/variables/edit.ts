import { attempt } from "../../core/attempt.ts";
import { type NamedValue, renderDotenv } from "../../core/formats/dotenv.ts";
import { parseEnvFile } from "./env-file.ts";

/* What `var edit` shows a person, and what they made of it. */

/** The variables with a new value, and the names that the person removed. */
export function changesIn(before: readonly NamedValue[], after: readonly NamedValue[]) {
  const old = new Map(before.map(({ name, value }) => [name, value]));
  const names = new Set(after.map(({ name }) => name));
  const gone = before.filter(({ name }) => !names.has(name));
  return {
    changed: after.filter(({ name, value }) => old.get(name) !== value).map(({ name, value }) => ({ name, value })),
    removed: gone.filter(({ name, value }) => writtenAs(name, value) !== undefined).map(({ name }) => name),
  };
}

/**
 * The text that a person edits. Variables that dotenv text cannot carry are named in it, and stay as they are.
 * @param about - its first line: where it is from, and what is done with it
 */
export function textOf(about: string, variables: readonly NamedValue[], hidden: readonly string[]): string {
  const lines = variables.map(
    ({ name, value }) => writtenAs(name, value) ?? `# ${name} cannot be shown here, and stays.\n`,
  );
  const unseen = hidden.map((name) => `# ${name} is for machines only, and stays.\n`);
  const first = `# ${about} A variable whose line you delete is deleted.\n\n`;
  return first + [...lines, ...unseen].join("");
}

/** The assignment that an import reads back as exactly this value, in the plainest quotes that do so. */
function writtenAs(name: string, value: string): string | undefined {
  const plain = () => renderDotenv([{ name, value }]).text;
  const quoted = ["", "'", '"', "`"].map((quote) => () => `${name}=${quote}${value}${quote}\n`);
  for (const write of [plain, ...quoted]) {
    const text = attempt(write); // the renderer refuses some values
    if (text === undefined) continue;
    const { variables, problems } = parseEnvFile(text, () => true);
    const [first, second] = variables;
    const isRead = first?.name === name && first.value === value && second === undefined;
    if (isRead && problems.length === 0) return text;
  }
  return undefined;
}
