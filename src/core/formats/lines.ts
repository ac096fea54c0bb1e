import { quoted } from "../words/shell.ts";
import { type NamedValue, renderEach } from "./dotenv.ts";

/*
 * Formats that write one variable after the other, in the order of the names. Each name occurs once. Each function
 * throws a Fault `env_unrepresentable` with the names of all variables that its format cannot carry.
 */

/**
 * Commands for `eval` and `.` in a POSIX shell. No shell interprets anything inside single quotes, so every value is
 * read back exactly.
 */
export function renderShell(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `export ${name}=${quoted(value)}\n`);
}

/**
 * Lines for `docker run --env-file`: `NAME=value`, where everything after the first `=` is the value. There are no
 * quotes and no escapes. Docker drops a carriage return before a line end, and Go's scanner refuses lines of 64 KiB.
 * @see https://github.com/docker/cli/blob/28f756087eea5fa301f3fbf12b01ae62f91521c2/pkg/kvfile/kvfile.go
 */
export function renderDocker(variables: readonly NamedValue[]): string {
  return renderEach(
    variables,
    ({ name, value }) => `${name}=${value}\n`,
    ({ name, value }) => !/\n|\r$/.test(value) && Buffer.byteLength(`${name}=${value}`) < 64 * 1024,
  );
}

/**
 * Commands for PowerShell, as in `keyhole pull --format powershell | Out-String | Invoke-Expression`. Values other than
 * printable ASCII are decoded from base64, because pipelines change line ends, Windows PowerShell reads scripts in the
 * machine's code page, and PowerShell takes four more characters of Unicode as single quotes.
 *
 * It cannot carry empty values, which delete the variable in all but the newest versions, and names that differ only in
 * case, which are one variable on Windows.
 */
export function renderPowershell(variables: readonly NamedValue[]): string {
  const byUpperCase = Map.groupBy(variables, ({ name }) => name.toUpperCase());
  return renderEach(
    variables,
    ({ name, value }) => `\${env:${name}} = ${powershellText(value)}\n`,
    ({ name, value }) => value !== "" && byUpperCase.get(name.toUpperCase())?.length === 1,
  );
}

function powershellText(value: string): string {
  if (/^[ -~]*$/.test(value)) return `'${value.replaceAll("'", "''")}'`;
  const base64 = Buffer.from(value).toString("base64");
  return `[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('${base64}'))`;
}

/** JSON: one object, one member per line. */
export function renderJson(variables: readonly NamedValue[]): string {
  const members = renderEach(variables, ({ name, value }) => `,\n  ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  return members === "" ? "{}\n" : `{${members.slice(1)}\n}\n`;
}

/** A YAML mapping. Quoted names and values are text in every version of YAML, never numbers, dates or booleans. */
export function renderYaml(variables: readonly NamedValue[]): string {
  if (variables.length === 0) return "{}\n";
  return renderEach(variables, ({ name, value }) => `"${name}": ${doubleQuoted(value)}\n`);
}

/** TOML: one key with a basic string per line, without tables. @see https://toml.io/en/v1.0.0 */
export function renderToml(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `${name} = ${doubleQuoted(value)}\n`);
}

/**
 * A variables file of Terraform and OpenTofu: HCL assignments of strings, in which `${` and `%{` are doubled to `$${`
 * and `%%{`, so that nothing in a value is taken for a template. It cannot carry values that Terraform would change,
 * because it normalizes every string.
 * @see https://github.com/hashicorp/hcl/blob/v2.23.0/hclsyntax/spec.md
 */
export function renderTfvars(variables: readonly NamedValue[]): string {
  return renderEach(
    variables,
    ({ name, value }) => `${name} = ${doubleQuoted(value).replace(/([$%])\{/g, "$1$1{")}\n`,
    ({ name, value }) => !reservedByTerraform.has(name) && isNormalized(value),
  );
}

const reservedByTerraform: ReadonlySet<string> = new Set([
  ...["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"],
]);

/**
 * Whether Go's library leaves it as it is in form C: it also splits runs of more than 30 marks, or of Korean vowels.
 */
function isNormalized(value: string): boolean {
  return value.normalize("NFC") === value && !/[\p{M}\u1160-\u11ff]{30}/u.test(value.normalize("NFD"));
}

/**
 * Text in double quotes, with the escapes that YAML, TOML and HCL have in common. It escapes quotes, backslashes, and
 * characters that some reader folds, drops or refuses: line separators, control, format, private and unassigned ones.
 */
function doubleQuoted(value: string): string {
  const text = value.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const short = shortEscapes[character];
    if (short !== undefined) return short;
    const hex = (character.codePointAt(0) as number).toString(16);
    return hex.length > 4 ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
  });
  return `"${text}"`;
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};
