import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { type AdminContext, writing } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { openContent } from "../../sets/contents.ts";
import { lastChangedIn, openSetAt } from "../../sets/open.ts";
import { revealOf } from "../../sets/reveal.ts";
import { files } from "./entry.ts";

/**
 * The file at a path: in this environment or, without one, in the environment where it changed last. Only environments
 * in which the person may see values count.
 * @param version - a kept version of that environment's files; if it is left out, the current one
 * @throws Refused `conflict` if its content does not open
 */
export async function revealFile(
  admin: AdminContext,
  where: string,
  path: string,
  only?: Environment,
  version?: number,
) {
  const project = await findProject(admin, where, "reveal", only && [only]);
  return writing(admin, project.permit, async (db) => {
    const of = { project: { ...project, db }, descriptor: files };
    const environment = only ?? (await lastChangedIn(admin, of, path));
    const stored = environment && (await openSetAt(admin, { ...of, environment }, version)).items.get(path);
    if (!(environment && stored)) {
      const at = version === undefined ? "" : `, version ${version}`;
      const words = `There is no file ${JSON.stringify(path)} in ${where}${only ? ` ${only}` : ""}${at}.`;
      throw new Refused("not_found", words);
    }
    const { entry } = stored;
    const content = await openContent(admin, db, project.id, entry);
    if (content === undefined) {
      throw new Refused("conflict", `The content of ${JSON.stringify(path)} was deleted or changed by other means.`);
    }
    const { mode, size, sha256, contentType } = entry;
    const found = { path, environment, mode, size, sha256, contentType, content };
    return [found, [revealOf(admin, { ...of, environment }, [stored])]];
  });
}
