import { sha256Of } from "../../core/hash.ts";
import { contentBytesMax, type Environment, environmentsOf, type Remarks } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { pathProblem, pathSetProblem } from "../../core/words/path.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { findProject, type LockedProject, placeOf } from "../../people/desk/projects.ts";
import { displayName, requireEnvironments } from "../../people/desk/validate.ts";
import { sealContent } from "../../people/editing/contents.ts";
import { itemsOf, openSet, requireSets } from "../../people/editing/open.ts";
import { remarked, requireRemarks } from "../../people/editing/remarks.ts";
import { writeSets } from "../../people/editing/write.ts";
import { writingProject } from "../../people/editing/write-project.ts";
import { newCoin } from "../../seal/canary.ts";
import { may } from "../../serve/access/rights.ts";
import { everyKind } from "../kind.ts";
import { type FileEntry, files } from "./entry.ts";

export type StoredFile = Omit<FileEntry, "id" | "sha256"> & {
  /** Null for a person who may not see values: it would confirm a guess of a small file. */
  readonly sha256: string | null;
  readonly environments: readonly Environment[];
  readonly machinesOnly?: true;
};
/** A remark is empty for none. Default: what it has in each environment. */
export type NewFile = Remarks & {
  readonly content: Uint8Array;
  readonly path: string;
  readonly environments: readonly string[];
  readonly name?: string | undefined;
  readonly mode?: string | undefined;
  readonly contentType?: string | undefined;
  /** Whether no person reads it from now on. Default: it stays what it is in each environment. */
  readonly machinesOnly?: true | undefined;
};

/** Puts a file in place for these environments. A file at that path keeps its other environments. */
export async function putFile(admin: AdminContext, where: string, asked: NewFile) {
  const { content, environments, remarks, ...file } = validate(asked);
  const { machinesOnly } = asked;
  const found = await findProject(admin, where, "write", environments);
  const work = async (admin: AdminContext, project: LockedProject) => {
    const sets = await Array.fromAsync(environments, (environment) =>
      openSet(admin, { project, descriptor: files, environment }),
    );
    for (const { environment, items } of sets) {
      const clash = pathSetProblem([...[...items.keys()].filter((path) => path !== file.path), file.path]);
      if (clash === undefined) continue;
      const maySee = may(admin.rights, "see", placeOf(found), environment);
      const words = `${JSON.stringify(file.path)} cannot stand beside the other files of ${environment}`;
      throw new Refused("invalid", `${words}${maySee ? `: ${clash}` : ""}.`);
    }
    const id = Bun.randomUUIDv7();
    await storeContent(admin, project, { id, ...file }, content);
    const itemIn = ({ items }: (typeof sets)[number]) => {
      const old = items.get(file.path);
      const coin = newCoin(admin.systemKeys.listing, false, machinesOnly ?? old?.isHidden);
      return { entry: { id, ...file, updatedAt: project.now, ...remarked(remarks, old?.entry), coin }, value: null };
    };
    const changes = new Map(sets.map((set) => [set, new Map([[file.path, itemIn(set)]])]));
    const writes = await writeSets(admin, project, files, changes);
    const created = [...writes.values()].every(({ added }) => added.length > 0);
    const { path, size, sha256 } = file;
    return [{ id, path, size, sha256, environments, created }, writes] as const;
  };
  return writingProject(admin, found, files, work, { kinds: everyKind });
}

/** The project's files in byte order of path, without content. */
export async function listFiles(admin: AdminContext, where: string): Promise<StoredFile[]> {
  const project = await findProject(admin, where, "see");
  const sets = await requireSets(admin, project, files);
  return itemsOf(files, sets).map(({ entry: { id: _, coin: __, ...file }, environments, ...item }) => {
    // The checksum would confirm a guess of a small file.
    const maySee =
      !item.machinesOnly &&
      environments.some((environment) => may(admin.rights, "reveal", placeOf(project), environment));
    return { ...file, sha256: maySee ? file.sha256 : null, environments, ...item };
  });
}

/** Seals and stores a content, which a listing then names. */
export async function storeContent(
  admin: AdminContext,
  project: LockedProject,
  file: Pick<FileEntry, "id" | "size" | "sha256">,
  content: Uint8Array,
): Promise<void> {
  const { id, size } = file;
  const row = { id, projectId: project.id, size, ...sealContent(project, file, content) };
  await admin.database.db.insert(admin.database.tables.fileContents).values(row);
}

/** @throws Refused `invalid`, `bound` */
function validate(asked: NewFile) {
  const { content, path } = asked;
  const problem = pathProblem(path);
  if (problem) throw new Refused("invalid", `The path ${JSON.stringify(path)} ${problem}.`);
  if (content.length > contentBytesMax) {
    throw new Refused("bound", `The file has ${content.length} bytes; at most ${contentBytesMax} are allowed.`);
  }
  const mode = asked.mode ?? "0600";
  if (mode !== "0600" && mode !== "0400")
    throw new Refused("invalid", `${JSON.stringify(mode)} is not a mode: 0600 or 0400.`);
  const contentType = asked.contentType ?? "application/octet-stream";
  if (!/^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:; ?[\w.+-]{1,40}=[\w.+-]{1,40})*$/.test(contentType)) {
    throw new Refused("invalid", `${JSON.stringify(contentType)} is not a media type, such as text/plain.`);
  }
  return {
    content,
    path,
    environments: environmentsOf(requireEnvironments(asked.environments)),
    name: displayName("file", asked.name ?? (path.split("/").at(-1) as string)),
    mode: mode as "0600" | "0400",
    size: content.length,
    sha256: sha256Of(content),
    contentType,
    remarks: requireRemarks(path, asked),
  };
}
