import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { showContent } from "../../people/editing/contents.ts";
import { revealItem } from "../../people/editing/reveal.ts";
import { files } from "./entry.ts";

/** The file at a path, as {@link revealItem}. @throws Refused `conflict` if its content does not open */
export function revealFile(admin: AdminContext, where: string, path: string, only?: Environment, version?: number) {
  const asked = { where, name: path, environment: only, version };
  return revealItem(admin, files, asked, async (item, environment, project, admin) => {
    const content = await showContent(admin, project.id, item);
    if (content === undefined) {
      throw new Refused("conflict", `The content of ${JSON.stringify(path)} was deleted or changed by other means.`);
    }
    const { mode, size, sha256, contentType } = item.entry;
    return { path, environment, mode, size, sha256, contentType, content };
  });
}
