import type { NamedValue } from "./dotenv.ts";
import { doubleQuoted, readAssignments } from "./double-quoted.ts";
import { renderEach } from "./read-back.ts";

/**
 * A variables file of Terraform and OpenTofu: HCL assignments of strings, in which `${` and `%{` are doubled to `$${` and
 * `%%{`, so that nothing in a value is taken for a template.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with the names that Terraform reserves and the names of all values that it would
 * change: it normalizes every string
 * @see https://github.com/hashicorp/hcl/blob/v2.23.0/hclsyntax/spec.md
 */
export function renderTfvars(variables: readonly NamedValue[]): string {
  return renderEach(
    variables,
    ({ name, value }) => `${name} = ${doubleQuoted(value).replace(/([$%])\{/g, "$1$1{")}\n`,
    readTfvars,
  );
}

/** Names that Terraform gives to nobody's variable. */
const reserved = new Set(["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"]);

/** Reads the assignments as Terraform does. @throws Error if it would refuse one, or evaluate a template */
function readTfvars(text: string): Map<string, string> {
  return new Map(
    Array.from(readAssignments(text), ([name, value]) => {
      if (reserved.has(name)) throw new Error("no variable can have this name");
      return [name, normalized(value.replace(/\$?\$\{|%?%\{/g, literal))];
    }),
  );
}

function literal(introducer: string): string {
  if (introducer.length === 2) throw new Error("a template");
  return introducer.slice(1);
}

/** Unicode's normal form C, by Go's library: it also breaks up rows of more than 30 marks, or of Korean vowels. */
function normalized(value: string): string {
  if (/[\p{M}\u1160-\u11ff]{30}/u.test(value.normalize("NFD"))) throw new Error("too many marks in a row");
  return value.normalize("NFC");
}
