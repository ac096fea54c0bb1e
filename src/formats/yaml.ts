import { type NamedValue, renderEach } from "./dotenv.ts";
import { doubleQuoted } from "./double-quoted.ts";

/**
 * A YAML mapping with all names and values in double quotes, so that no version of YAML reads one as a number, a date or a
 * boolean.
 *
 * @param variables - each name once
 */
export function renderYaml(variables: readonly NamedValue[]): string {
  if (variables.length === 0) return "{}\n";
  return renderEach(variables, ({ name, value }) => `"${name}": ${doubleQuoted(value)}\n`);
}
