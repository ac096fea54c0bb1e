import { Refused } from "../../core/refused.ts";
import { type AdminContext, writing } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { requireEnvironment } from "../../desk/validate.ts";
import { lastChangedIn, openSetAt } from "../../sets/open.ts";
import { revealOf } from "../../sets/reveal.ts";
import { accounts } from "./entry.ts";

/**
 * The fields of an account: in this environment or, without one, in the environment where it changed last, as in the
 * API. Only environments in which the person may see values count.
 * @param version - a kept version of that environment's accounts; if it is left out, the current one
 */
export async function revealAccount(
  admin: AdminContext,
  where: string,
  name: string,
  environmentName?: string,
  version?: number,
) {
  const only = environmentName === undefined ? undefined : requireEnvironment(environmentName);
  const project = await findProject(admin, where, "reveal", only && [only]);
  return writing(admin, project.permit, async (db) => {
    const of = { project: { ...project, db }, descriptor: accounts };
    const environment = only ?? (await lastChangedIn(admin, of, name));
    const found = environment && (await openSetAt(admin, { ...of, environment }, version)).items.get(name);
    if (!(environment && found)) {
      const at = version === undefined ? "" : `, version ${version}`;
      const words = `There is no account ${JSON.stringify(name)} in ${where}${only ? ` ${only}` : ""}${at}.`;
      throw new Refused("not_found", words);
    }
    const values = JSON.parse(String(found.value)) as Record<string, string>;
    return [{ environment, values }, [revealOf(admin, { ...of, environment }, [found])]];
  });
}
