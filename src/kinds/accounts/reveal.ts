import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { revealOf } from "../../desk/changes.ts";
import { type AdminContext, writing } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { requireEnvironment } from "../../desk/validate.ts";
import { openSets, openValues } from "../../sets/write.ts";
import { accounts } from "./entry.ts";

/**
 * The fields of an account: in `environment`, or else in the one in which it changed last, as the API answers.
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict`
 */
export async function revealAccount(
  admin: AdminContext,
  where: string,
  name: string,
  environment?: string,
): Promise<{ readonly environment: Environment; readonly values: Readonly<Record<string, string>> }> {
  const only = environment === undefined ? undefined : requireEnvironment(environment);
  const project = await findProject(admin, where);
  return writing(admin, async (db) => {
    const sets = await openSets(admin, { ...project, db }, accounts);
    const [latest] = sets
      .filter((set) => only === undefined || set.environment === only)
      .flatMap((set) => set.entries.filter((entry) => entry.name === name).map(({ updatedAt }) => ({ set, updatedAt })))
      .sort((a, b) => b.updatedAt - a.updatedAt);
    const item = latest && openValues(project, accounts, latest.set).get(name);
    if (item === undefined) {
      throw new Refused(
        "not_found",
        `There is no account ${JSON.stringify(name)} in ${where}${only ? ` ${only}` : ""}.`,
      );
    }
    const found = latest?.set.environment as Environment;
    const values = JSON.parse(item.toString("utf8")) as Record<string, string>;
    return [{ environment: found, values }, [revealOf("accounts.reveal", project, found, [name])]];
  });
}
