import { type NamedValue, renderEach } from "./dotenv.ts";
import { doubleQuoted } from "./double-quoted.ts";

/**
 * TOML: one key with a basic string per line, without tables.
 *
 * @param variables - each name once
 * @see https://toml.io/en/v1.0.0
 */
export function renderToml(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `${name} = ${doubleQuoted(value)}\n`);
}
