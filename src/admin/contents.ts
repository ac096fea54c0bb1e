import { and, eq } from "drizzle-orm";
import { contentAssociatedData } from "../seal/associated-data.ts";
import { open } from "../seal/envelope.ts";
import type { FileEntry } from "../seal/kinds.ts";
import type { Db } from "../store/database.ts";
import type { Desk } from "./desk.ts";
import { orUndefined } from "./sets.ts";

/** A file's content, opened; undefined if it is missing or does not open. The caller zeroes it. */
export async function openContent(
  desk: Desk,
  db: Db,
  projectId: string,
  entry: Pick<FileEntry, "id" | "size" | "sha256">,
): Promise<Buffer | undefined> {
  const { fileContents: c, dataKeys: d } = desk.database.tables;
  const [row] = await db
    .select({ content: c, dataKey: d })
    .from(c)
    .innerJoin(d, and(eq(d.projectId, c.projectId), eq(d.generation, c.generation)))
    .where(and(eq(c.id, entry.id), eq(c.projectId, projectId)));
  if (row === undefined || row.content.size !== entry.size) return undefined;
  const { content, dataKey } = row;
  return orUndefined(() => {
    const key = desk.keyring.dataKey(projectId, content.generation, dataKey.rootId, dataKey.wrapped).subkey("file");
    return open(key, contentAssociatedData({ projectId, ...entry }), content.sealed);
  });
}
