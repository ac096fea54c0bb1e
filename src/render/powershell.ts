import { type NamedValue, unrepresentable } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * Commands for PowerShell, as in `keyhole pull --format powershell | Out-String | Invoke-Expression`. Values other than
 * printable ASCII are decoded from base64, because pipelines change line ends, Windows PowerShell reads scripts in the
 * machine's code page, and PowerShell takes four more characters of Unicode as single quotes.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with the names of empty variables (all but the newest versions delete a variable
 * that is set to an empty value) and of names that differ only in case (Windows takes them as one)
 */
export function renderPowershell(variables: readonly NamedValue[]): string {
  const byUpperCase = Map.groupBy(variables, ({ name }) => name.toUpperCase());
  const refused = variables.filter(
    ({ name, value }) => value === "" || (byUpperCase.get(name.toUpperCase()) ?? []).length > 1,
  );
  if (refused.length > 0) throw unrepresentable(refused);
  return renderEach(variables, ({ name, value }) => `\${env:${name}} = ${expressionOf(value)}\n`, readPowershell);
}

function expressionOf(value: string): string {
  if (/^[ -~]*$/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  return `${decode}'${Buffer.from(value).toString("base64")}'))`;
}

const decode = "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String(";

/** Reads the commands by PowerShell's quoting rules. @throws Error if the text contains anything else */
function readPowershell(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split("\n").slice(0, -1)) {
    const [, name, expression] = /^\$\{env:(\w+)\} = ([ -~]*)$/.exec(line) ?? [];
    if (name === undefined || expression === undefined) throw new Error("not an assignment");
    const encoded = expression.startsWith(decode) && expression.endsWith("'))");
    const literal = encoded ? expression.slice(decode.length, -2) : expression;
    const inner = literal.slice(1, -1);
    if (literal !== `'${inner}'` || inner.replaceAll("''", "").includes("'")) throw new Error("not a literal");
    const value = inner.replaceAll("''", "'");
    found.set(name, encoded ? Buffer.from(value, "base64").toString("utf8") : value);
  }
  return found;
}
