import type { NamedValue } from "./dotenv.ts";
import { renderEach, unrepresentable } from "./read-back.ts";

/**
 * Commands that PowerShell runs, as in `keyhole pull --format powershell | Out-String | Invoke-Expression`. A value of
 * printable ASCII stands in single quotes, each quote inside doubled; any other is decoded from base64, since pipelines
 * rewrite line ends, Windows PowerShell reads scripts in the machine's code page, and four more quotes of Unicode count
 * as single quotes.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with the names of empty values (assigning one removes the variable, but in the
 * newest versions), or of two that differ in case only (Windows takes them for one)
 */
export function renderPowershell(variables: readonly NamedValue[]): string {
  const spelled = new Map<string, number>();
  for (const { name } of variables) spelled.set(name.toUpperCase(), (spelled.get(name.toUpperCase()) ?? 0) + 1);
  const lost = variables.filter(({ name, value }) => value === "" || (spelled.get(name.toUpperCase()) ?? 0) > 1);
  if (lost.length > 0) throw unrepresentable(lost);
  return renderEach(variables, ({ name, value }) => `\${env:${name}} = ${expressionOf(value)}\n`, readPowershell);
}

function expressionOf(value: string): string {
  if (/^[ -~]*$/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  return `${decode}'${Buffer.from(value).toString("base64")}'))`;
}

const decode = "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String(";

/** Reads such commands by PowerShell's rules of quoting. @throws Error where the text holds anything else */
function readPowershell(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split("\n").slice(0, -1)) {
    const [, name, expression] = /^\$\{env:(\w+)\} = ([ -~]*)$/.exec(line) ?? [];
    if (name === undefined || expression === undefined) throw new Error("no assignment");
    const encoded = expression.startsWith(decode) && expression.endsWith("'))");
    const literal = encoded ? expression.slice(decode.length, -2) : expression;
    const inner = literal.slice(1, -1);
    if (literal !== `'${inner}'` || inner.replaceAll("''", "").includes("'")) throw new Error("no literal");
    const value = inner.replaceAll("''", "'");
    found.set(name, encoded ? Buffer.from(value, "base64").toString("utf8") : value);
  }
  return found;
}
