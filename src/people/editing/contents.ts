import { and, eq, sql } from "drizzle-orm";
import { environments } from "../../core/names.ts";
import { contentAssociatedData } from "../../seal/associated-data.ts";
import { open, orUndefined, seal } from "../../seal/envelope.ts";
import type { ContentEntry, Entry, KindDescriptor } from "../../serve/sets/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import type { FoundProject, LockedProject } from "../desk/projects.ts";
import { findSet, keptVersions } from "./open.ts";
import { forMachinesOnly } from "./stored-value.ts";

/* Contents: items whose values are too large for a set. Each is a row of its own, and listings name it by its id. */

/** What identifies a content, and is bound to it by its seal. */
type ContentIdentity = Pick<ContentEntry, "id" | "size" | "sha256">;

/** Whether an entry of this kind names a content. */
export function namesContent(descriptor: KindDescriptor, _entry: Entry): _entry is ContentEntry {
  return !descriptor.hasValues;
}

/** A content that a person reads, as {@link openContent}. @throws Refused `forbidden` if it is for machines only */
export async function showContent(
  admin: AdminContext,
  projectId: string,
  { entry, isHidden }: { readonly entry: ContentEntry & { readonly path?: string }; readonly isHidden: boolean },
): Promise<Buffer | undefined> {
  if (isHidden) throw forMachinesOnly(entry.path ?? entry.id);
  return openContent(admin, projectId, entry);
}

/** A content, opened for what shows it to nobody; undefined if it is missing or does not open. The caller zeroes it. */
export async function openContent(admin: AdminContext, projectId: string, { id, size, sha256 }: ContentIdentity) {
  const { fileContents: c, dataKeys: d } = admin.database.tables;
  const [row] = await admin.database.db
    .select({ content: c, dataKey: d })
    .from(c)
    .innerJoin(d, and(eq(d.projectId, c.projectId), eq(d.generation, c.generation)))
    .where(and(eq(c.id, id), eq(c.projectId, projectId)));
  if (row === undefined || row.content.size !== size) return undefined;
  const { content, dataKey } = row;
  return orUndefined(() => {
    const key = admin.keyring.dataKey(projectId, content.generation, dataKey.rootId, dataKey.wrapped).subkey("file");
    return open(key, contentAssociatedData({ projectId, id, size, sha256 }), content.sealed);
  });
}

/** Seals a content under the project's newest data key. */
export function sealContent(
  { id: projectId, dataKey }: LockedProject,
  { id, size, sha256 }: ContentIdentity,
  content: Uint8Array,
): { readonly generation: number; readonly sealed: Buffer } {
  const { generation } = dataKey;
  const associatedData = contentAssociatedData({ projectId, id, size, sha256 });
  return { generation, sealed: seal(dataKey.subkey("file"), generation, associatedData, content) };
}

/** A content that a listing names, and what people call the item. */
type ListedContent = { readonly entry: ContentEntry; readonly what: string };

/** The contents that a project's listings name, kept versions included, by id; and the damaged listings, in words. */
export async function findListed(admin: AdminContext, project: FoundProject, kinds: readonly KindDescriptor[]) {
  const contents = new Map<string, ListedContent>();
  const damaged: string[] = [];
  for (const descriptor of kinds) {
    if (descriptor.hasValues) continue;
    const { kind, item, nameOf } = descriptor;
    const note = (what: string, set: { readonly entries: readonly Entry[] } | undefined) => {
      if (set === undefined) damaged.push(what);
      for (const entry of set?.entries ?? []) {
        if (namesContent(descriptor, entry)) contents.set(entry.id, { entry, what: `the ${item} ${nameOf(entry)}` });
      }
    };
    for (const environment of environments) {
      const of = { project: { ...project, permit: Permit.ofProgram() }, descriptor, environment };
      note(`the ${kind} in ${environment}`, await findSet(admin, of));
      for await (const [version, kept] of keptVersions(admin, of)) {
        note(`version ${version} of the ${kind} in ${environment}`, kept);
      }
    }
  }
  return { contents, damaged };
}

/**
 * Deletes a project's contents that no listing names any more; none if a listing is damaged, because that one may have
 * named them.
 * @returns the damaged listings, in words
 */
export async function deleteUnusedContents(
  admin: AdminContext,
  project: FoundProject,
  kinds: readonly KindDescriptor[],
): Promise<readonly string[]> {
  const { fileContents: c } = admin.database.tables;
  const { contents, damaged } = await findListed(admin, project, kinds);
  if (damaged.length > 0) return damaged;
  const rows = await admin.database.db.select({ id: c.id }).from(c).where(eq(c.projectId, project.id));
  const unused = JSON.stringify(rows.map(({ id }) => id).filter((id) => !contents.has(id)));
  await admin.database.db
    .delete(c)
    .where(and(eq(c.projectId, project.id), admin.database.isMember(c.id, sql`${unused}`)));
  return [];
}
