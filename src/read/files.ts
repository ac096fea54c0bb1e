import type { Caller } from "../access/authenticate.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { contentBytesMax, type Environment, everyEnvironment, itemsMax } from "../names.ts";
import type { OpenedFile } from "../render/files.ts";
import { contentAssociatedData } from "../seal/associated-data.ts";
import { generationOf, overheadBytes } from "../seal/envelope.ts";
import { discard, type SealedContent } from "../seal/file-content.ts";
import { type FileEntry, files } from "../seal/kinds.ts";
import type { ContentPiece } from "../store/contents.ts";
import { authorizedAt, judgeStanding, readListings, type Source } from "./lookup.ts";
import { countOf } from "./projects.ts";
import { noteOpened, passed, type Stages } from "./stages.ts";
import type { Read } from "./variables.ts";
import type { ReadProject } from "./verified-set.ts";

/** A file as metadata shows it. */
export type FileRecord = Omit<FileEntry, "id"> & {
  /** Those that hold the file and that the key reaches. */
  readonly environments: readonly Environment[];
};

export type FilesAsk = {
  readonly project: string;
  readonly environment: Environment;
  /** Exact paths, or undefined for every file of the environment. */
  readonly paths: readonly string[] | undefined;
};

/** How long a request for files may wait for memory, and be read. */
const deadlineMs = 15_000;

/** Gates 7 to 9 for metadata: files whose contents are there. @throws Fault as `readSets`, `too_many_items` */
export async function listFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<readonly FileRecord[]> {
  passed(stages, "readFromMs");
  return readFound(source, caller, ask, signal, async ({ project, entries, records }) => {
    if (entries.length === 0) return [];
    const ids = entries.map(({ id }) => id);
    const rows = await source.contents.sizes(authorizedAt(caller, project), ids);
    judgeStanding(rows[0]);
    const sizes = new Map(rows.map(({ id, size }) => [id, size]));
    if (entries.some(({ id, size }) => sizes.get(id) !== size)) return "missing";
    passed(stages, "readToMs");
    return records;
  });
}

/** Gates 7 to 9 for content: every file that is asked for. @throws Fault as {@link listFiles}, `content_too_large` */
export async function readFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<Read<readonly OpenedFile[]>> {
  passed(stages, "readFromMs");
  return readFound(source, caller, ask, signal, async ({ project, entries, records }, giveUpAt) => {
    const bytes = entries.reduce((sum, { size }) => sum + size, 0);
    if (bytes > contentBytesMax) throw new Fault("content_too_large", `${bytes} bytes of files in ${project.id}`);
    const share = await source.memory.claim(bytes, caller.grant.keyId, signal, giveUpAt - performance.now());
    try {
      const sealed = await fetchContents(source, caller, project, entries, giveUpAt);
      if (typeof sealed === "string") {
        share.release();
        return sealed;
      }
      passed(stages, "readToMs");
      const opened = await source.opener.open(sealed);
      noteOpened(stages, "file", entries.length);
      const files = records.map((record, index) => ({ record, base64: opened[index] as Uint8Array }));
      return { project, names: entries.map(({ path }) => path), held: new Held(files), share };
    } catch (error) {
      share.release();
      throw error;
    }
  });
}

type Found = {
  readonly project: ReadProject;
  readonly version: number;
  /** The files that are asked for, in byte order of path, and what metadata shows of each. */
  readonly entries: readonly FileEntry[];
  readonly records: readonly FileRecord[];
};

/** Reads what a listing names, again if files are written or resealed meanwhile. */
async function readFound<T extends object>(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  read: (found: Found, giveUpAt: number) => Promise<T | "missing" | "changed">,
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  let versionBefore: number | undefined;
  for (let fresh = false; performance.now() < giveUpAt; fresh = true) {
    const found = await findFiles(source, caller, ask, signal, fresh);
    const result = await read(found, giveUpAt);
    if (typeof result !== "string") return result;
    // A file that was written between two statements has another listing now; one that is missing does not.
    if (result === "missing" && found.version === versionBefore) {
      throw new Fault("decryption_failed", `contents of ${found.project.id} are missing or of another size`);
    }
    versionBefore = found.version;
  }
  throw new Fault("unavailable", "the files changed each time they were read, for 15 s");
}

async function findFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  fresh: boolean,
): Promise<Found> {
  const wanted = { slug: ask.project, descriptor: files, environments: everyEnvironment, fresh };
  const { project, sets } = await readListings(source, caller, wanted, signal);
  const own = sets.find(({ environment }) => environment === ask.environment);
  if (own === undefined) throw new Error("the environment is in the key's scope, and its set was not read");
  const total = countOf(caller.target?.fileCounts ?? "");
  if (total > itemsMax || own.entries.length > itemsMax) {
    throw new Fault("too_many_items", `${total} files in ${project.id}`);
  }
  const paths = ask.paths && new Set(ask.paths);
  const entries = own.entries.filter(({ path }) => paths?.has(path) ?? true);
  const ids = sets.map(({ environment, entries }) => ({ environment, ids: new Set(entries.map(({ id }) => id)) }));
  const records = entries.map(({ id, name, path, mode, size, sha256, contentType, updatedAt }) => {
    const environments = ids.filter((one) => one.ids.has(id)).map(({ environment }) => environment);
    return { name, path, mode, size, sha256, contentType, environments, updatedAt };
  });
  return { project, version: own.stored.version, entries, records };
}

/** The sealed contents, in statements of bounded size; a word if one is not there or changed between two pieces. */
async function fetchContents(
  source: Source,
  caller: Caller,
  project: ReadProject,
  entries: readonly FileEntry[],
  giveUpAt: number,
): Promise<SealedContent[] | "missing" | "changed"> {
  const contents = new Map<string, SealedContent>();
  const { pieceBytes } = source.contents;
  for (const group of grouped(entries, pieceBytes)) {
    const ids = group.map(({ id }) => id);
    const length = Math.max(...group.map(({ size }) => size + overheadBytes));
    for (let from = 1; from <= length; from += pieceBytes) {
      if (performance.now() > giveUpAt) throw new Fault("unavailable", "reading the files took over 15 s");
      const rows = await source.contents.pieces(authorizedAt(caller, project), ids, from, pieceBytes);
      judgeStanding(rows[0]);
      const pieces = new Map(rows.map((row) => [row.id, row]));
      for (const entry of group) {
        const piece = pieces.get(entry.id);
        if (piece?.bytes == null || piece.size !== entry.size || piece.sealedBytes !== entry.size + overheadBytes) {
          return "missing";
        }
        const known = contents.get(entry.id);
        if (known !== undefined && generationOf(known.sealed) !== piece.generation) return "changed";
        const content = known ?? sealedContent(source, project, entry, piece);
        contents.set(entry.id, content);
        if (content.sealed === piece.bytes) continue;
        content.sealed.set(piece.bytes, from - 1);
        discard(piece.bytes);
      }
    }
  }
  return entries.map(({ id }) => contents.get(id) as SealedContent);
}

/** A content with its first piece, or with memory for all of them. @throws Fault `decryption_failed` */
function sealedContent(
  source: Source,
  project: ReadProject,
  { id, size, sha256 }: FileEntry,
  { generation, rootId, wrapped, bytes: first, sealedBytes }: ContentPiece,
): SealedContent {
  if (first === null || rootId === null || wrapped === null || generationOf(first) !== generation) {
    throw new Fault("decryption_failed", `the content ${id} is under another data key than its row says`);
  }
  const key = source.keyring.dataKey(project.id, generation, rootId, wrapped).subkey("file");
  const sealed = first.length === sealedBytes ? first : Buffer.allocUnsafeSlow(sealedBytes);
  return { id, key, associatedData: contentAssociatedData({ projectId: project.id, id, size, sha256 }), sealed };
}

/** Files that one statement may fetch together: as many as fit into a piece, and at least one. */
function grouped(entries: readonly FileEntry[], pieceBytes: number): FileEntry[][] {
  const groups: FileEntry[][] = [];
  let freeBytes = 0;
  for (const entry of entries) {
    const bytes = entry.size + overheadBytes;
    if (bytes > freeBytes) {
      groups.push([]);
      freeBytes = pieceBytes;
    }
    groups.at(-1)?.push(entry);
    freeBytes -= bytes;
  }
  return groups;
}
