import { and, asc, eq } from "drizzle-orm";
import { Fault } from "../fault.ts";
import { contentBytesMax, type Environment, type EnvironmentMask, environmentsOf, itemsMax } from "../names.ts";
import { pathProblem, pathSetProblem } from "../path.ts";
import { generationOf, open, seal } from "../seal/envelope.ts";
import { fileEntry, type ItemEntry } from "../seal/item-set.ts";
import type { DataKey } from "../seal/keyring.ts";
import { filePlace } from "../seal/place.ts";
import type { Tables } from "../store/database.ts";
import type { Desk } from "./desk.ts";
import { type ItemChange, keepItemSets } from "./item-sets.ts";
import { findProject, type LockedProject, noteMove, writingProject } from "./projects.ts";
import { Refused } from "./refused.ts";
import { findDataKey } from "./sets.ts";
import { displayName, requireEnvironments } from "./words.ts";

export type FileRecord = {
  readonly path: string;
  readonly name: string;
  readonly mode: string;
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
  readonly environments: readonly Environment[];
  readonly version: number;
  readonly updatedAt: number;
};
export type NewFile = {
  readonly content: Uint8Array;
  readonly path: string;
  readonly environments: readonly string[];
  readonly name?: string | undefined;
  readonly mode?: string | undefined;
  readonly contentType?: string | undefined;
};

/**
 * Puts a file in place for these environments. Where another file stands at that path in some of them, it keeps its
 * other environments only; where it stands in exactly these, it becomes a new version.
 *
 * @throws Refused `invalid` (path, mode, …), `bound` (8 MiB, 1000 files a project), `not_found`, `ambiguous`, `conflict` as
 *   {@link keepItemSets}, or where a file that should keep other environments does not open
 */
export async function putFile(
  desk: Desk,
  where: string,
  asked: NewFile,
): Promise<{
  id: string;
  path: string;
  size: number;
  sha256: string;
  environments: readonly Environment[];
  created: boolean;
}> {
  const file = judged(asked);
  const { files: f } = desk.database.tables;
  return writingProject(desk, where, async (project) => {
    const paths = await project.db
      .select({ path: f.path, environments: f.environments, id: f.id })
      .from(f)
      .where(eq(f.projectId, project.id));
    // Two paths meet only where one environment holds both.
    const beside = paths.filter((row) => row.path !== file.path && row.environments & file.environments);
    const clash = pathSetProblem([...new Set(beside.map((row) => row.path)), file.path]);
    if (clash) {
      throw new Refused(
        "invalid",
        `${JSON.stringify(file.path)} can not stand beside the project's other files: ${clash}.`,
      );
    }
    const here = paths.filter((row) => row.path === file.path && row.environments & file.environments);
    const same = here.find((row) => row.environments === file.environments);
    const byMask = new Map<EnvironmentMask, number>();
    const changes: ItemChange[] = [];
    let touched = file.environments;
    for (const row of here) {
      if (row === same) continue;
      touched |= row.environments;
      noteMove(byMask, row.environments, row.environments & ~file.environments);
      changes.push(await shrink(desk, project, row, row.environments & ~file.environments));
    }
    noteMove(byMask, same?.environments ?? 0, file.environments);
    const total = paths.length + [...byMask.values()].reduce((sum, change) => sum + change, 0);
    if (total > itemsMax) throw new Refused("bound", `A project holds at most ${itemsMax} files.`);
    const id = same?.id ?? Bun.randomUUIDv7();
    const version = same ? await versionOf(desk, project, id) : 0;
    const entry = await write(desk, project, { ...file, id, version: version + 1 }, file.content, same !== undefined);
    changes.push({ entry, environments: file.environments, before: same?.environments ?? 0 });
    await keepItemSets(desk, project, "files", changes);
    const { path, size, sha256 } = file;
    return {
      result: { id, path, size, sha256, environments: environmentsOf(file.environments), created: !same },
      touched,
      counts: { column: "fileCounts", byMask },
    };
  });
}

/** The project's files in byte order of path, without content. @throws Refused `not_found`, `ambiguous` */
export async function listFiles(desk: Desk, where: string): Promise<FileRecord[]> {
  const project = await findProject(desk, where);
  const { files: f } = desk.database.tables;
  const rows = await desk.database.db
    .select({
      path: f.path,
      name: f.name,
      mode: f.mode,
      size: f.size,
      sha256: f.sha256,
      contentType: f.contentType,
      environments: f.environments,
      version: f.version,
      updatedAt: f.updatedAt,
    })
    .from(f)
    .where(eq(f.projectId, project.id))
    .orderBy(asc(f.path), asc(f.environments));
  return rows.map((row) => ({ ...row, environments: environmentsOf(row.environments) }));
}

/**
 * Takes the file at `path` out of these environments, also where its row is gone by other means; one that stands in none
 * any more is gone.
 * @throws Refused `invalid`, `not_found` where any of the environments has no file there, `ambiguous`, `conflict` as
 *   {@link putFile}
 */
export async function deleteFile(
  desk: Desk,
  where: string,
  path: string,
  environments: readonly string[],
): Promise<void> {
  const mask = requireEnvironments(environments);
  const { files: f } = desk.database.tables;
  await writingProject(desk, where, async (project) => {
    const rows = await project.db
      .select({ id: f.id, path: f.path, environments: f.environments })
      .from(f)
      .where(and(eq(f.projectId, project.id), eq(f.path, path)));
    const byMask = new Map<EnvironmentMask, number>();
    // Whatever the rows say: where SQL took a row away, or out of an environment, the set goes on to have it.
    const changes: ItemChange[] = [{ entry: [path, ""], environments: 0, before: mask }];
    let touched = mask;
    for (const row of rows.filter((row) => row.environments & mask)) {
      touched |= row.environments;
      noteMove(byMask, row.environments, row.environments & ~mask);
      changes.push(await shrink(desk, project, row, row.environments & ~mask));
    }
    const stood = await keepItemSets(desk, project, "files", changes);
    const missing = environmentsOf(mask & ~rows.reduce((all, row) => all | row.environments, stood));
    if (missing.length > 0) {
      throw new Refused("not_found", `There is no file ${JSON.stringify(path)} in ${where} ${missing.join(", ")}.`);
    }
    return { result: undefined, touched, counts: { column: "fileCounts", byMask } };
  });
}

type SealableFile = {
  readonly id: string;
  readonly version: number;
  readonly path: string;
  readonly environments: EnvironmentMask;
  readonly name: string;
  readonly mode: "0600" | "0400";
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
};

function judged(asked: NewFile) {
  const { content, path } = asked;
  const problem = pathProblem(path);
  if (problem) throw new Refused("invalid", `The path ${JSON.stringify(path)} ${problem}.`);
  if (content.length > contentBytesMax) {
    throw new Refused("bound", `The file has ${content.length} bytes; at most ${contentBytesMax} are allowed.`);
  }
  const mode = asked.mode ?? "0600";
  if (mode !== "0600" && mode !== "0400")
    throw new Refused("invalid", `${JSON.stringify(mode)} is no mode: 0600 or 0400.`);
  const contentType = asked.contentType ?? "application/octet-stream";
  if (!/^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:; ?[\w.+-]{1,40}=[\w.+-]{1,40})*$/.test(contentType)) {
    throw new Refused("invalid", `${JSON.stringify(contentType)} is no media type, such as text/plain.`);
  }
  return {
    content,
    path,
    environments: requireEnvironments(asked.environments),
    name: displayName("file", asked.name ?? (path.split("/").at(-1) as string)),
    mode: mode as "0600" | "0400",
    size: content.length,
    sha256: new Bun.CryptoHasher("sha256").update(content).digest("hex"),
    contentType,
  };
}

async function versionOf(desk: Desk, project: LockedProject, id: string): Promise<number> {
  const { files: f } = desk.database.tables;
  const [row] = await project.db.select({ version: f.version }).from(f).where(eq(f.id, id));
  return row?.version ?? 0;
}

/** Leaves a file in fewer environments. They are part of what it is sealed to, so it is sealed anew. */
async function shrink(
  desk: Desk,
  project: LockedProject,
  { id, path, environments: before }: Pick<SealableFile, "id" | "path" | "environments">,
  environments: EnvironmentMask,
): Promise<ItemChange> {
  const { files: f } = desk.database.tables;
  if (environments === 0) {
    await project.db.delete(f).where(eq(f.id, id));
    return { entry: [path, ""], environments, before };
  }
  const [row] = await project.db.select().from(f).where(eq(f.id, id));
  if (!row) throw new Error(`the file ${id} went out of a locked project`);
  const content = await openRow(desk, project, row);
  const entry = await write(desk, project, { ...row, environments, version: row.version + 1 }, content, true);
  content.fill(0);
  return { entry, environments, before, found: fileEntry(project.id, row)[1] };
}

/** @throws Refused `conflict` where it does not open; Fault `decryption_failed` where its data key does not */
async function openRow(
  desk: Desk,
  project: LockedProject,
  row: SealableFile & { readonly sealed: Buffer },
): Promise<Buffer> {
  const dataKey = await keyNamedBy(desk, project, row.sealed);
  try {
    if (dataKey) return open(dataKey.subkey("file"), placeOf(project, row), row.sealed);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "decryption_failed") throw error;
  }
  const where = environmentsOf(row.environments).join(", ");
  throw new Refused(
    "conflict",
    `The file ${JSON.stringify(row.path)} does not open: its row in ${where} was changed by other means than Keyhole's, and nothing was written. Put it anew in just these environments, or delete it from them.`,
  );
}

/** Undefined where the sealed bytes are so damaged that they name none. @throws Fault as {@link findDataKey} */
async function keyNamedBy(desk: Desk, project: LockedProject, sealed: Buffer): Promise<DataKey | undefined> {
  let generation: number;
  try {
    generation = generationOf(sealed);
  } catch {
    return undefined;
  }
  return findDataKey(desk, project, generation);
}

function placeOf(project: LockedProject, file: SealableFile): Buffer {
  const { id, version, environments, path, mode, size, sha256, name, contentType } = file;
  return filePlace({
    projectId: project.id,
    fileId: id,
    version,
    environments,
    path,
    mode,
    size,
    sha256,
    name,
    contentType,
  });
}

async function write(
  desk: Desk,
  project: LockedProject,
  file: SealableFile,
  content: Uint8Array,
  exists: boolean,
): Promise<ItemEntry> {
  const { files: f } = desk.database.tables;
  const { generation } = project.dataKey;
  const sealed = seal(project.dataKey.subkey("file"), generation, placeOf(project, file), content);
  const { id, version, path, environments, name, mode, size, sha256, contentType } = file;
  const columns = {
    ...{ path, environments, name, mode, size, sha256, contentType, version, generation, sealed },
    updatedAt: project.now,
  } satisfies Partial<Tables["files"]["$inferInsert"]>;
  if (exists) await project.db.update(f).set(columns).where(eq(f.id, id));
  else await project.db.insert(f).values({ id, projectId: project.id, ...columns });
  return fileEntry(project.id, { ...file, updatedAt: project.now });
}
