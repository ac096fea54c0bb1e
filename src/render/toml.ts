import type { NamedValue } from "./dotenv.ts";
import { doubleQuoted, readAssignments } from "./double-quoted.ts";
import { renderEach } from "./read-back.ts";

/**
 * TOML: one key with a basic string per line, without tables.
 *
 * The runtime's parser is not used to read the text back: that of Bun 1.4.5 loses a key `constructor`.
 *
 * @param variables - each name once
 * @see https://toml.io/en/v1.0.0
 */
export function renderToml(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `${name} = ${doubleQuoted(value)}\n`, readAssignments);
}
