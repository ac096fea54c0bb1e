import type { NamedValue } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * A YAML mapping with all names and values in double quotes, so that no version of YAML reads one as a number, a date or a
 * boolean. Characters that some reader folds, drops or refuses (line separators, control, format, private and unassigned
 * characters) are escaped. Letters of all scripts are not.
 *
 * @param variables - each name once
 */
export function renderYaml(variables: readonly NamedValue[]): string {
  if (variables.length === 0) return "{}\n";
  return renderEach(variables, ({ name, value }) => `"${name}": "${escapeText(value)}"\n`, readYaml);
}

function escapeText(value: string): string {
  return value.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const short = shortEscapes[character];
    if (short !== undefined) return short;
    const hex = (character.codePointAt(0) as number).toString(16);
    return hex.length > 4 ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
  });
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** Reads the text with the runtime's YAML parser. @throws Error if it is not YAML */
function readYaml(text: string): Map<string, string> {
  return new Map(Object.entries(Bun.YAML.parse(text) as Record<string, string>));
}
