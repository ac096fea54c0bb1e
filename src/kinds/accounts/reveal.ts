import type { Environment } from "../../core/names.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { revealItem } from "../../people/editing/reveal.ts";
import { accounts } from "./entry.ts";

/** The fields of an account, as {@link revealItem}. */
export function revealAccount(
  admin: AdminContext,
  where: string,
  name: string,
  only?: Environment,
  version?: number,
): Promise<{ readonly environment: Environment; readonly values: Readonly<Record<string, string>> }> {
  return revealItem(admin, accounts, { where, name, environment: only, version }, ({ value }, environment) => {
    return { environment, values: JSON.parse(value?.shown() ?? "{}") };
  });
}
