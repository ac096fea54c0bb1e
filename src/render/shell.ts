import type { NamedValue } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * Commands for `eval` and `.` in a POSIX shell. Values are in single quotes, with quotes inside as `'\''`. Shells interpret
 * nothing inside single quotes, so every shell reads every value back exactly.
 *
 * @param variables - each name once
 */
export function renderShell(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `export ${name}='${value.replaceAll("'", quote)}'\n`, readShell);
}

const quote = () => "'\\''"; // a function, so that the text is not taken for a replacement pattern

/** Reads the commands by the shell's quoting rules. @throws Error if the text contains anything else */
function readShell(text: string): Map<string, string> {
  const found = new Map<string, string>();
  const command = /export ([A-Za-z_][A-Za-z0-9_]*)=/y;
  for (let at = 0; at < text.length; at++) {
    command.lastIndex = at;
    const name = command.exec(text)?.[1];
    if (name === undefined || found.has(name)) throw new Error("not a command, or a repeated name");
    at = command.lastIndex;
    const parts: string[] = [];
    while (text.charAt(at) !== "\n") {
      if (text.startsWith("\\'", at)) {
        parts.push("'");
        at += 2;
        continue;
      }
      const close = text.indexOf("'", at + 1);
      if (text.charAt(at) !== "'" || close === -1) throw new Error("neither quoted text nor a quote");
      parts.push(text.slice(at + 1, close));
      at = close + 1;
    }
    found.set(name, parts.join(""));
  }
  return found;
}
