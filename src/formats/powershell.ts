import { type NamedValue, renderEach } from "./dotenv.ts";

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
  return renderEach(
    variables,
    ({ name, value }) => `\${env:${name}} = ${expressionOf(value)}\n`,
    ({ name, value }) => value !== "" && byUpperCase.get(name.toUpperCase())?.length === 1,
  );
}

function expressionOf(value: string): string {
  if (/^[ -~]*$/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  return `${decode}'${Buffer.from(value).toString("base64")}'))`;
}

const decode = "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String(";
