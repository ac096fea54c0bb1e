import type { Caller } from "../access/authenticate.ts";
import { placeOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { contentBytesMax, type Environment, environmentMask, environmentsOf, itemsMax } from "../names.ts";
import { pathProblem } from "../path.ts";
import { discard, generationOf, overheadBytes } from "../seal/envelope.ts";
import type { FileText, SealedFile } from "../seal/file-text.ts";
import { fileEntry } from "../seal/item-set.ts";
import { filePlace } from "../seal/place.ts";
import type { ContentRow, FileRow } from "../store/files.ts";
import type { PlaceValues } from "../store/place.ts";
import { holdAgainstItemSet } from "./item-sets.ts";
import type { Budget, Share } from "./memory.ts";
import { countsOf } from "./projects.ts";
import { DataKeys, type Source } from "./source.ts";
import { opened, passed, type Stages } from "./stages.ts";
import { judgeStanding, type ReadProject } from "./standing.ts";

/** A file as its metadata shows it. */
export type FileRecord = {
  readonly name: string;
  readonly path: string;
  readonly mode: string;
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
  /** Those of the file's environments that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
};
/** A file with its content in base64, as ASCII. */
export type OpenedFile = { readonly record: FileRecord; readonly base64: Uint8Array };

export type FilesAsk = {
  readonly project: string;
  readonly environment: Environment;
  /** Exact paths, or every file of the environment. */
  readonly paths: readonly string[] | undefined;
};

export type ReadFiles = {
  readonly project: ReadProject;
  /** In byte order. */
  readonly paths: readonly string[];
  readonly held: Held<readonly OpenedFile[]>;
  /** The memory that these take; to be given back when the last byte has left or nothing will. */
  readonly share: Share;
};

/** How long a request for files may wait for memory, and be read. */
export const filesDeadlineMs = 15_000;

/**
 * Gates 7 and 8 for metadata: the records of the environment's files, nothing decrypted.
 * @throws Fault `project_not_found`, `too_many_items`, `unavailable`; or what a key that lost its standing is owed
 */
export async function listFiles(source: Source, caller: Caller, ask: FilesAsk, stages?: Stages): Promise<FileRecord[]> {
  passed(stages, "readFromMs");
  const { rows } = await findFiles(source, caller, ask);
  passed(stages, "readToMs");
  return rows.map((row) => recordOf(caller, row));
}

/**
 * Gates 7 to 9 for content: every file asked for, opened and held against its record, or a Fault.
 * @throws Fault as {@link listFiles}, and `content_too_large`, `decryption_failed`
 */
export async function readFiles(
  source: Source,
  budget: Budget,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<ReadFiles> {
  passed(stages, "readFromMs");
  const giveUpAt = performance.now() + filesDeadlineMs;
  // A file that is written anew between its record and its content makes the two differ: then both are read again.
  while (performance.now() < giveUpAt) {
    const { project, rows, place, standing } = await findFiles(source, caller, ask);
    const bytes = rows.reduce((sum, row) => sum + row.size, 0);
    if (bytes > contentBytesMax) throw new Fault("content_too_large", `${bytes} bytes of files in ${project.id}`);
    if (!ask.paths) holdAgainstSet(source, project, ask.environment, standing, rows);
    const share = await budget.acquire(bytes, caller.grant.keyId, signal(), giveUpAt - performance.now());
    try {
      const sealed = await fetchSealed(source, project, place, rows, giveUpAt);
      if (sealed === "changed") {
        share.release();
        continue;
      }
      passed(stages, "readToMs");
      const texts = await source.opener.open(rows.map((row) => sealedFile(sealed, project, ask.environment, row)));
      const files = rows.map((row, index) => ({ record: recordOf(caller, row), base64: fitting(row, texts[index]) }));
      opened(stages, "file", files.length);
      return { project, paths: rows.map((row) => row.path), held: new Held(files), share };
    } catch (error) {
      share.release();
      throw error;
    }
  }
  throw new Fault("unavailable", "the files changed each time they were read, for 15 s");
}

async function findFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
): Promise<{ project: ReadProject; rows: FileRow[]; place: PlaceValues; standing: FileRow | undefined }> {
  const { grant } = caller;
  const place = { keyId: grant.keyId, ...placeOf(grant, ask.project) };
  // A path that could not have been stored is not there; and PostgreSQL takes no NUL.
  const paths = ask.paths && [...new Set(ask.paths)].filter((path) => pathProblem(path) === undefined);
  const [standing, ...rows] = await source.files.records(place, ask.environment, paths);
  const id = judgeStanding(standing);
  const total = countsOf(standing?.fileCounts ?? "").reduce((sum, count) => sum + count, 0);
  if (total > itemsMax || rows.length > itemsMax) throw new Fault("too_many_items", `${total} files in ${id}`);
  return { project: { id, organizationId: grant.organizationId, slug: ask.project }, rows, place, standing };
}

/** The set seal, by the records alone: a set that does not fit is refused before any content is fetched. */
function holdAgainstSet(
  source: Source,
  project: ReadProject,
  environment: Environment,
  standing: FileRow | undefined,
  rows: readonly FileRow[],
): void {
  const { setSealed, setGeneration, setRootId, setWrapped } = standing ?? ({} as Partial<FileRow>);
  const dataKeys = new DataKeys(source.keyring, project, [
    { id: setRootId ?? null, number: setGeneration ?? 0, bytes: setWrapped ?? null },
  ]);
  const entries = rows.map((row) => fileEntry(project.id, { ...row, id: row.id as string }));
  holdAgainstItemSet(dataKeys, { projectId: project.id, kind: "files", environment }, setSealed, entries);
}

type Sealed = { readonly dataKeys: DataKeys; readonly contents: ReadonlyMap<string, Buffer> };

/** The sealed content of every file, in statements of bounded size; "changed" where a version is not the record's. */
async function fetchSealed(
  source: Source,
  project: ReadProject,
  place: PlaceValues,
  rows: readonly FileRow[],
  giveUpAt: number,
): Promise<Sealed | "changed"> {
  const contents = new Map<string, Buffer>();
  // Of every statement: a rotation may delete the key of what the first one fetched before the last one is sent.
  const wrapped = new Map<number, ContentRow>();
  for (const group of grouped(rows, source.files.pieceBytes)) {
    const length = Math.max(...group.map((row) => row.sealedSize));
    const ids = group.map((row) => row.id as string);
    for (let from = 1; from <= length; from += source.files.pieceBytes) {
      if (performance.now() > giveUpAt) throw new Fault("unavailable", "reading the files took over 15 s");
      const found = await source.files.contents(place, ids, from, source.files.pieceBytes);
      const standing = found.find((row) => row.kind === 0);
      judgeStanding(standing && { live: standing.number, plan: standing.plan, projectId: standing.id });
      for (const row of found) if (row.kind === 1) wrapped.set(row.number, row);
      const parts = new Map(found.filter((row) => row.kind === 2).map((row) => [row.id, row]));
      for (const row of group) {
        const part: ContentRow | undefined = parts.get(row.id);
        if (part?.number !== row.version) return "changed";
        gather(contents, row, from, part.bytes as Buffer);
      }
    }
  }
  return { dataKeys: new DataKeys(source.keyring, project, [...wrapped.values()]), contents };
}

/** Puts a piece of a file to those before it: one that is whole as it is, any other into memory for all of them. */
function gather(contents: Map<string, Buffer>, row: FileRow, from: number, piece: Buffer): void {
  const id = row.id as string;
  if (piece.length === row.sealedSize) {
    contents.set(id, piece);
    return;
  }
  const whole = contents.get(id) ?? Buffer.allocUnsafeSlow(row.sealedSize);
  contents.set(id, whole);
  piece.copy(whole, from - 1);
  discard(piece);
}

/** Files that one statement may fetch together: as many as fit into a piece, and at least one. */
function* grouped(rows: readonly FileRow[], pieceBytes: number): Generator<FileRow[]> {
  let group: FileRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (row.sealedSize !== row.size + overheadBytes) {
      throw new Fault("decryption_failed", `file ${row.id}: its sealed size does not fit its record`);
    }
    if (group.length > 0 && bytes + row.sealedSize > pieceBytes) {
      yield group;
      [group, bytes] = [[], 0];
    }
    group.push(row);
    bytes += row.sealedSize;
  }
  if (group.length > 0) yield group;
}

function sealedFile(
  { dataKeys, contents }: Sealed,
  project: ReadProject,
  environment: Environment,
  row: FileRow,
): SealedFile {
  const sealed = contents.get(row.id as string) as Buffer;
  if (!(row.environments & environmentMask(environment))) throw new Fault("decryption_failed", `file ${row.id}`);
  const place = filePlace({
    projectId: project.id,
    fileId: row.id as string,
    version: row.version,
    environments: row.environments,
    path: row.path,
    mode: row.mode,
    size: row.size,
    sha256: row.sha256,
    name: row.name,
    contentType: row.contentType,
  });
  return { id: row.id as string, key: dataKeys.of(generationOf(sealed)).subkey("file"), place, sealed };
}

/** The content, where it is what the record says. @throws Fault `decryption_failed` */
function fitting(row: FileRow, text: FileText | undefined): Uint8Array {
  if (text?.size === row.size && text.sha256 === row.sha256) return text.base64;
  throw new Fault("decryption_failed", `file ${row.id}: its content does not fit its record`);
}

function recordOf(caller: Caller, row: FileRow): FileRecord {
  return {
    name: row.name,
    path: row.path,
    mode: row.mode,
    size: row.size,
    sha256: row.sha256,
    contentType: row.contentType,
    environments: environmentsOf(row.environments & caller.grant.environments),
    updatedAt: row.updatedAt,
  };
}
