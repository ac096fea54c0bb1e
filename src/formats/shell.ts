import { type NamedValue, renderEach } from "./dotenv.ts";

/**
 * Commands for `eval` and `.` in a POSIX shell. Values are in single quotes, with quotes inside as `'\''`. Shells interpret
 * nothing inside single quotes, so every shell reads every value back exactly.
 *
 * @param variables - each name once
 */
export function renderShell(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `export ${name}='${value.replaceAll("'", quote)}'\n`);
}

const quote = () => "'\\''"; // a function, so that the text is not taken for a replacement pattern
