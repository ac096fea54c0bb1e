import { Refused } from "../../core/refused.ts";
import { revealOf } from "../../desk/changes.ts";
import { type AdminContext, writing } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { requireEnvironment } from "../../desk/validate.ts";
import { openItems, requireSets } from "../../sets/open.ts";
import { accounts } from "./entry.ts";

/**
 * The fields of an account: in this environment or, without one, in the environment where it changed last, as in the
 * API. Only environments in which the person may see values count.
 */
export async function revealAccount(admin: AdminContext, where: string, name: string, environmentName?: string) {
  const only = environmentName === undefined ? undefined : requireEnvironment(environmentName);
  const project = await findProject(admin, where, "reveal", only && [only]);
  return writing(admin, project.permit, async (db) => {
    const sets = await requireSets(admin, { ...project, db }, accounts);
    const [latest] = sets
      .filter((set) => only === undefined || set.environment === only)
      .flatMap((set) => set.entries.filter((entry) => entry.name === name).map(({ updatedAt }) => ({ set, updatedAt })))
      .sort((a, b) => b.updatedAt - a.updatedAt);
    if (latest === undefined) {
      const words = `There is no account ${JSON.stringify(name)} in ${where}${only ? ` ${only}` : ""}.`;
      throw new Refused("not_found", words);
    }
    const { environment } = latest.set;
    const item = openItems({ project, descriptor: accounts, environment }, latest.set).items.get(name);
    const values = JSON.parse(String(item?.value)) as Record<string, string>;
    return [{ environment, values }, [revealOf("accounts.reveal", project, environment, [name])]];
  });
}
