import type { Caller } from "../access/authenticate.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { contentBytesMax, type Environment, everyEnvironment, itemsMax } from "../names.ts";
import type { OpenedFile } from "../render/files.ts";
import { contentAssociatedData } from "../seal/associated-data.ts";
import { discard, generationOf, overheadBytes } from "../seal/envelope.ts";
import type { SealedContent } from "../seal/file-content.ts";
import { type FileEntry, files } from "../seal/kinds.ts";
import type { ContentPiece } from "../store/contents.ts";
import { authorizedAt, judgeStanding, readSets, type Source } from "./lookup.ts";
import { countOf } from "./projects.ts";
import { noteOpened, passed, type Stages } from "./stages.ts";
import type { Read } from "./variables.ts";
import type { ReadProject } from "./verified-set.ts";

/** A file as metadata shows it. */
export type FileRecord = Omit<FileEntry, "id" | "updatedAt"> & {
  /** Those that hold the file and that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
};

export type FilesAsk = {
  readonly project: string;
  readonly environment: Environment;
  /** Exact paths, or undefined for every file of the environment. */
  readonly paths: readonly string[] | undefined;
};

/** How long a request for files may wait for memory, and be read. */
export const filesDeadlineMs = 15_000;

/**
 * Gates 7 to 9 for metadata: the environment's files, each with a content that is there; nothing is decrypted.
 * @throws Fault `project_not_found`, `too_many_items`, `decryption_failed`, `unavailable`, or what a key that changed
 *   meanwhile is owed
 */
export async function listFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<readonly FileRecord[]> {
  passed(stages, "readFromMs");
  const giveUpAt = performance.now() + filesDeadlineMs;
  let before = "";
  for (let fresh = false; performance.now() < giveUpAt; fresh = true) {
    const { project, found, version } = await findFiles(source, caller, ask, signal, fresh);
    if (found.length === 0) return [];
    const rows = await source.contents.sizes(
      authorizedAt(caller, project),
      found.map(({ entry }) => entry.id),
    );
    judgeStanding(rows[0]);
    const sizes = new Map(rows.map(({ id, size }) => [id, size]));
    if (found.every(({ entry }) => sizes.get(entry.id) === entry.size)) {
      passed(stages, "readToMs");
      return found.map(({ record }) => record);
    }
    // A file that was written between the two statements has another listing now; one that is missing does not.
    if (before === version) throw missingContent(project);
    before = version;
  }
  throw writtenTooOften();
}

/**
 * Gates 7 to 9 for content: every file that is asked for, opened, or a Fault.
 * @throws Fault as {@link listFiles}, and `content_too_large`
 */
export async function readFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<Read<readonly OpenedFile[]>> {
  passed(stages, "readFromMs");
  const giveUpAt = performance.now() + filesDeadlineMs;
  let before = "";
  for (let fresh = false; performance.now() < giveUpAt; fresh = true) {
    const { project, found, version } = await findFiles(source, caller, ask, signal, fresh);
    const entries = found.map(({ entry }) => entry);
    const bytes = entries.reduce((sum, { size }) => sum + size, 0);
    if (bytes > contentBytesMax) throw new Fault("content_too_large", `${bytes} bytes of files in ${project.id}`);
    const share = await source.memory.claim(bytes, caller.grant.keyId, signal, giveUpAt - performance.now());
    try {
      const sealed = await fetchContents(source, caller, project, entries, giveUpAt);
      if (typeof sealed === "string") {
        // A file that is written, or resealed, while it is read makes one more try worth it; a damaged one does not.
        if (sealed === "missing" && before === version) throw missingContent(project);
        before = version;
        share.release();
        continue;
      }
      passed(stages, "readToMs");
      const opened = await source.opener.open(sealed);
      noteOpened(stages, "file", found.length);
      const read = found.map(({ record }, index) => ({ record, base64: opened[index] as Uint8Array }));
      return { project, names: entries.map(({ path }) => path), held: new Held(read), share };
    } catch (error) {
      share.release();
      throw error;
    }
  }
  throw writtenTooOften();
}

function missingContent({ id }: ReadProject): Fault {
  return new Fault("decryption_failed", `contents of ${id} are missing or of another size`);
}

function writtenTooOften(): Fault {
  return new Fault("unavailable", "the files changed each time they were read, for 15 s");
}

type FoundFile = { readonly entry: FileEntry; readonly record: FileRecord };

/** The files that are asked for, in byte order of path, and what their listing's version is. */
async function findFiles(
  source: Source,
  caller: Caller,
  ask: FilesAsk,
  signal: () => AbortSignal,
  fresh: boolean,
): Promise<{ project: ReadProject; found: FoundFile[]; version: string }> {
  const wanted = { slug: ask.project, descriptor: files, environments: everyEnvironment, values: 0 };
  const { project, sets, share } = await readSets(source, caller, wanted, signal, fresh);
  share.release();
  const own = sets.find(({ environment }) => environment === ask.environment);
  if (own === undefined) throw new Error("the environment is in the key's scope, and its set was not read");
  const total = countOf(caller.target?.fileCounts ?? "");
  if (total > itemsMax || own.entries.length > itemsMax) {
    throw new Fault("too_many_items", `${total} files in ${project.id}`);
  }
  const ids = sets.map(({ environment, entries }) => ({ environment, ids: new Set(entries.map(({ id }) => id)) }));
  const paths = ask.paths && new Set(ask.paths);
  const found = own.entries
    .filter(({ path }) => paths?.has(path) ?? true)
    .map((entry) => {
      const { name, path, mode, size, sha256, contentType, updatedAt } = entry;
      const environments = ids.filter((one) => one.ids.has(entry.id)).map(({ environment }) => environment);
      return { entry, record: { name, path, mode, size, sha256, contentType, environments, updatedAt } };
    });
  return { project, found, version: `${own.stored.version}` };
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
    const length = Math.max(...group.map(({ size }) => size + overheadBytes));
    const generations = new Map<string, number>();
    for (let from = 1; from <= length; from += pieceBytes) {
      if (performance.now() > giveUpAt) throw new Fault("unavailable", "reading the files took over 15 s");
      const ids = group.map(({ id }) => id);
      const rows = await source.contents.pieces(authorizedAt(caller, project), ids, from, pieceBytes);
      judgeStanding(rows[0]);
      const pieces = new Map(rows.map((row) => [row.id, row]));
      for (const entry of group) {
        const piece = pieces.get(entry.id);
        if (piece?.bytes == null || piece.size !== entry.size || piece.sealedBytes !== entry.size + overheadBytes) {
          return "missing";
        }
        if ((generations.get(entry.id) ?? piece.generation) !== piece.generation) return "changed";
        generations.set(entry.id, piece.generation);
        const content = contents.get(entry.id) ?? sealedContent(source, project, entry, piece);
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
function* grouped(entries: readonly FileEntry[], pieceBytes: number): Generator<FileEntry[]> {
  let group: FileEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const sealedBytes = entry.size + overheadBytes;
    if (group.length > 0 && bytes + sealedBytes > pieceBytes) {
      yield group;
      [group, bytes] = [[], 0];
    }
    group.push(entry);
    bytes += sealedBytes;
  }
  if (group.length > 0) yield group;
}
