import { and, eq, sql } from "drizzle-orm";
import { environments } from "../../core/names.ts";
import type { AdminContext } from "../../desk/context.ts";
import type { LockedProject } from "../../desk/projects.ts";
import { contentAssociatedData } from "../../seal/associated-data.ts";
import { open, orUndefined } from "../../seal/envelope.ts";
import { findSet, keptVersions } from "../../sets/write.ts";
import type { Db } from "../../store/database.ts";
import { type FileEntry, files } from "./entry.ts";

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

/**
 * What a project's listings of files name, those of kept versions included, by the id of the content; and which
 * listings do not verify, in words.
 */
export async function findListed(
  admin: AdminContext,
  project: LockedProject,
): Promise<{ readonly entries: ReadonlyMap<string, FileEntry>; readonly damaged: readonly string[] }> {
  const entries = new Map<string, FileEntry>();
  const damaged: string[] = [];
  const note = (what: string, set: { readonly entries: readonly FileEntry[] } | undefined) => {
    if (set === undefined) damaged.push(what);
    for (const entry of set?.entries ?? []) entries.set(entry.id, entry);
  };
  for (const environment of environments) {
    note(`the files in ${environment}`, await findSet(admin, project.db, project, files, environment));
    for await (const [version, kept] of keptVersions(admin, project.db, project, files, environment)) {
      note(`version ${version} of the files in ${environment}`, kept);
    }
  }
  return { entries, damaged };
}

/**
 * Deletes a project's contents that no listing names any more. One that is damaged may have named any of them, and then
 * none is deleted.
 * @returns the damaged listings, in words
 */
export async function deleteUnusedContents(admin: AdminContext, project: LockedProject): Promise<readonly string[]> {
  const { fileContents: c } = admin.database.tables;
  const { entries, damaged } = await findListed(admin, project);
  if (damaged.length > 0) return damaged;
  const rows = await project.db.select({ id: c.id }).from(c).where(eq(c.projectId, project.id));
  const unused = JSON.stringify(rows.map(({ id }) => id).filter((id) => !entries.has(id)));
  await project.db.delete(c).where(and(eq(c.projectId, project.id), admin.database.isMember(c.id, sql`${unused}`)));
  return [];
}
