import type { NamedValue } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * A YAML mapping with every name and every value in double quotes, so that none is taken for a number, a date or a
 * truth value by any version of YAML. Characters that some reader folds, drops or refuses (line separators, control,
 * format, private and unassigned ones) are escaped; letters of all scripts are not.
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

/** By the runtime's own parser of YAML. @throws Error */
function readYaml(text: string): Map<string, string> {
  return new Map(Object.entries(Bun.YAML.parse(text) as Record<string, string>));
}
