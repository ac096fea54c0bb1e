import { type NamedValue, renderEach } from "./dotenv.ts";
import { doubleQuoted } from "./double-quoted.ts";

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
    ({ name, value }) => !reserved.has(name) && isNormalized(value),
  );
}

/** Names that Terraform gives to nobody's variable. */
const reserved = new Set(["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"]);

/** Whether Go's library leaves it as it is in form C: it also breaks up rows of more than 30 marks, or of Korean vowels. */
function isNormalized(value: string): boolean {
  return value.normalize("NFC") === value && !/[\p{M}\u1160-\u11ff]{30}/u.test(value.normalize("NFD"));
}
