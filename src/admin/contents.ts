import { and, eq, inArray } from "drizzle-orm";
import { type Environment, environments } from "../names.ts";
import { contentAssociatedData } from "../seal/associated-data.ts";
import { open } from "../seal/envelope.ts";
import { type FileEntry, files } from "../seal/kinds.ts";
import type { Db } from "../store/database.ts";
import type { AdminContext } from "./context.ts";
import type { LockedProject } from "./found-project.ts";
import { findSet, orUndefined } from "./sets.ts";

/** A file's content, opened; undefined if it is missing or does not open. The caller zeroes it. */
export async function openContent(
  admin: AdminContext,
  db: Db,
  projectId: string,
  entry: Pick<FileEntry, "id" | "size" | "sha256">,
): Promise<Buffer | undefined> {
  const { fileContents: c, dataKeys: d } = admin.database.tables;
  const [row] = await db
    .select({ content: c, dataKey: d })
    .from(c)
    .innerJoin(d, and(eq(d.projectId, c.projectId), eq(d.generation, c.generation)))
    .where(and(eq(c.id, entry.id), eq(c.projectId, projectId)));
  if (row === undefined || row.content.size !== entry.size) return undefined;
  const { content, dataKey } = row;
  return orUndefined(() => {
    const key = admin.keyring.dataKey(projectId, content.generation, dataKey.rootId, dataKey.wrapped).subkey("file");
    return open(key, contentAssociatedData({ projectId, ...entry }), content.sealed);
  });
}

/** What a project's listings of files name, by the id of the content, and where there is no listing that verifies. */
export async function findListed(
  admin: AdminContext,
  project: LockedProject,
): Promise<{ readonly entries: ReadonlyMap<string, FileEntry>; readonly damaged: readonly Environment[] }> {
  const entries = new Map<string, FileEntry>();
  const damaged: Environment[] = [];
  for (const environment of environments) {
    const set = await findSet(admin, project.db, project, files, environment);
    if (set === undefined) damaged.push(environment);
    for (const entry of set?.entries ?? []) entries.set(entry.id, entry);
  }
  return { entries, damaged };
}

/** Deletes those of these contents that no listing names any more. One that is damaged may have named any of them. */
export async function deleteUnusedContents(
  admin: AdminContext,
  project: LockedProject,
  ids: readonly string[],
): Promise<void> {
  const { fileContents: c } = admin.database.tables;
  const { entries, damaged } = await findListed(admin, project);
  const unused = ids.filter((id) => !entries.has(id));
  if (damaged.length > 0 || unused.length === 0) return;
  await project.db.delete(c).where(and(eq(c.projectId, project.id), inArray(c.id, unused)));
}
