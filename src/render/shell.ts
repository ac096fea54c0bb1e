import type { NamedValue } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * Commands for `eval` and `.` in a POSIX shell: each value in single quotes, and a quote inside as `'\''`. Between single
 * quotes nothing has a meaning, so every value comes back exactly in every shell.
 *
 * @param variables - each name once
 */
export function renderShell(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `export ${name}='${value.replaceAll("'", quote)}'\n`, readShell);
}

const quote = () => "'\\''"; // a function: in a replacement text `$'` and the like would mean something

/** Reads such commands by the shell's rules of quoting. @throws Error where the text holds anything else */
function readShell(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const command = /export ([A-Za-z_][A-Za-z0-9_]*)=/y;
  for (let at = 0; at < text.length; at++) {
    command.lastIndex = at;
    const name = command.exec(text)?.[1];
    if (name === undefined || found.has(name)) throw new Error("no command, or one too many");
    at = command.lastIndex;
    const parts: string[] = [];
    while (text.charAt(at) !== "\n") {
      if (text.startsWith("\\'", at)) {
        parts.push("'");
        at += 2;
        continue;
      }
      const close = text.indexOf("'", at + 1);
      if (text.charAt(at) !== "'" || close === -1) throw new Error("neither a quoted text nor a quote");
      parts.push(text.slice(at + 1, close));
      at = close + 1;
    }
    found.set(name, parts.join(""));
  }
  return found;
}
