import type { Environment } from "../../core/names.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { revealItem } from "../../people/editing/reveal.ts";
import { accounts } from "./entry.ts";

/** The fields of an account, as {@link revealItem}. */
export function revealAccount(admin: AdminContext, where: string, name: string, only?: Environment, version?: number) {
  return revealItem(admin, accounts, { where, name, environment: only, version }, ({ value }, environment) => {
    const values = JSON.parse(value?.shown() ?? "{}") as Readonly<Record<string, string>>;
    return { environment, values };
  });
}
