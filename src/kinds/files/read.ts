import { Fault } from "../../core/fault.ts";
import { Held } from "../../core/held.ts";
import { contentBytesMax, type Environment, everyEnvironment } from "../../core/names.ts";
import { contentAssociatedData } from "../../seal/associated-data.ts";
import { generationOf, overheadBytes } from "../../seal/envelope.ts";
import { discard, FileContent, type SealedContent } from "../../seal/file-content.ts";
import { smallBytesMax } from "../../serve/limit/budget.ts";
import {
  authorizedAt,
  judgeStanding,
  type Read,
  type Reading,
  type ReadSource,
  readListings,
} from "../../serve/sets/lookup.ts";
import { noteOpened, passed } from "../../serve/sets/stages.ts";
import { digestOf, type ReadProject, type VerifiedSet } from "../../serve/sets/verified-set.ts";
import type { ContentPiece, ContentRow } from "../../store/contents.ts";
import { type FileEntry, files } from "./entry.ts";
import { beforeFiles, type OpenedFile } from "./render.ts";

/** A file that is listed. */
type ListedFile = {
  readonly entry: FileEntry;
  /** What metadata shows of it, with those environments that hold it and that the key reaches. */
  readonly json: string;
  /** Its path: what its audit entry names. Frozen, because entries keep what they make of it. */
  readonly names: readonly string[];
};

export type FilesQuery = {
  readonly project: string;
  readonly environment: Environment;
  /** Exact paths, or undefined for every file of the environment. */
  readonly paths?: readonly string[] | undefined;
};

/** How long a request for files may wait for memory, and be read. */
const deadlineMs = 15_000;

/** Gates 7 to 9 for metadata: files whose contents are there. */
export async function listFiles(reading: Reading, query: FilesQuery) {
  const { listed } = await readFound(reading, query, async ({ project, listed }) => {
    const entries = listed.map(({ entry }) => entry);
    if (entries.length > 0 && (await findRows(reading, project, entries)) === "missing") return "missing";
    passed(reading.stages, "readToMs");
    return { listed };
  });
  const body = `${beforeFiles(query)}${listed.map(({ json }) => json).join(",")}]}`;
  return { body, fingerprint: fingerprintOf(listed) };
}

/**
 * The fingerprint of an answer with content, which is not fetched. An answer of the same fingerprint has passed the
 * bound of 8 MiB, because sizes are part of it.
 */
export async function fingerprintFiles(reading: Reading, query: FilesQuery) {
  const { listed } = await findFiles(reading, query, false);
  return { fingerprint: fingerprintOf(listed) };
}

/** Gates 7 to 9 for content: every requested file. */
export async function readFiles(reading: Reading, query: FilesQuery): Promise<Read<readonly OpenedFile[]>> {
  const { source, caller, signal } = reading;
  return readFound(reading, query, async ({ project, listed }, giveUpAt) => {
    const entries = listed.map(({ entry }) => entry);
    const bytes = entries.reduce((sum, { size }) => sum + size, 0);
    if (bytes > contentBytesMax) throw new Fault("content_too_large", `${bytes} bytes of files in ${project.id}`);
    const share = await source.memory.claim(bytes, caller.grant.keyId, signal, giveUpAt - performance.now());
    try {
      const found = await findContents(reading, project, entries, giveUpAt);
      if (typeof found === "string") {
        share.release();
        return found;
      }
      passed(reading.stages, "readToMs");
      const isSmall = bytes <= smallBytesMax;
      if (!isSmall) for (const { content } of found) await content.verify();
      const opened = listed.map(({ json }, index) => {
        const { content } = found[index] as FoundContent;
        return { json, base64: isSmall ? [content.open()] : content.base64() };
      });
      noteOpened(reading.stages, files.item, entries.length);
      found.forEach(({ content, rowVersion }, index) => {
        if (rowVersion === "") return;
        source.rememberedContents.remember(project.id, entries[index] as FileEntry, rowVersion, content);
      });
      const names = listed.map(({ names }) => names);
      return { project, entries: names, fingerprint: fingerprintOf(listed), held: new Held(opened), share };
    } catch (error) {
      share.release();
      throw error;
    }
  });
}

/** The metadata of a file has the checksum of its content. Made once for a list that is kept. */
function fingerprintOf(listed: readonly ListedFile[]): string {
  return fingerprints.getOrInsertComputed(listed, () => digestOf(listed.map(({ json }) => json).join(",")));
}

const fingerprints = new WeakMap<readonly ListedFile[], string>();

type FoundFiles = Awaited<ReturnType<typeof findFiles>>;

/** Reads the contents that a listing names, and reads again if files were written or resealed during the read. */
async function readFound<T extends object>(
  reading: Reading,
  query: FilesQuery,
  read: (found: FoundFiles, giveUpAt: number) => Promise<T | "missing" | "changed">,
): Promise<T> {
  const giveUpAt = performance.now() + deadlineMs;
  let versionBefore: number | undefined;
  for (let fresh = false; performance.now() < giveUpAt; fresh = true) {
    const found = await findFiles(reading, query, fresh);
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

/** The requested files, in byte order of path. */
async function findFiles(reading: Reading, query: FilesQuery, fresh: boolean) {
  const setsQuery = { slug: query.project, descriptor: files, environments: everyEnvironment, fresh };
  const { project, sets } = await readListings(reading, setsQuery);
  const own = sets.find(({ environment }) => environment === query.environment);
  if (own === undefined) throw new Error("the environment is in the key's scope, and its set was not read");
  const paths = query.paths && new Set(query.paths);
  const all = listedFiles(own, sets);
  const listed = paths ? all.filter(({ entry }) => paths.has(entry.path)) : all;
  return { project, version: own.stored.version, listed };
}

/** The files of one set, each with all environments that hold it and that the key reaches. Cached for these sets. */
function listedFiles(own: FileSet, sets: readonly FileSet[]): readonly ListedFile[] {
  const memory = own.once(newMemory);
  const { known } = memory;
  if (known?.sets.length === sets.length && known.sets.every((set, index) => set === sets[index])) return known.listed;
  const ids = sets.map(({ environment, entries }) => ({ environment, ids: new Set(entries.map(({ id }) => id)) }));
  const listed = own.entries.map((entry) => {
    const { id, name, path, mode, size, sha256, contentType, updatedAt } = entry;
    const environments = ids.filter((one) => one.ids.has(id)).map(({ environment }) => environment);
    const json = JSON.stringify({ name, path, mode, size, sha256, contentType, environments, updatedAt });
    return { entry, json, names: Object.freeze([path]) };
  });
  memory.known = { sets, listed };
  return listed;
}

type FileSet = VerifiedSet<FileEntry>;
const newMemory = (): { known?: { sets: readonly FileSet[]; listed: readonly ListedFile[] } } => ({});

/** Contents with their row versions, in the order of the entries; a word if one is missing or was just written. */
async function findContents(reading: Reading, project: ReadProject, entries: readonly FileEntry[], giveUpAt: number) {
  const { source } = reading;
  const found = new Map<string, FoundContent>();
  if (source.contents.hasRowVersions) {
    const rows = await findRows(reading, project, entries);
    if (rows === "missing") return rows;
    for (const entry of entries) {
      const { rowVersion } = rows.get(entry.id) as ContentRow;
      const content = source.rememberedContents.find(project.id, entry, rowVersion);
      if (content !== undefined) found.set(entry.id, { content, rowVersion });
    }
  }
  const unread = entries.filter(({ id }) => !found.has(id));
  for (const group of grouped(unread, source.contents.pieceBytes)) {
    const fetched = await fetchContents(reading, project, group, giveUpAt);
    if (typeof fetched === "string") return fetched;
    for (const { id, sealed, rowVersion, ...opens } of fetched.values()) {
      found.set(id, { content: new FileContent({ id, sealed, ...opens }, rowVersion !== ""), rowVersion });
    }
  }
  return entries.map(({ id }) => found.get(id) as FoundContent);
}

/** The row of each content, without its bytes. */
async function findRows(reading: Reading, project: ReadProject, entries: readonly FileEntry[]) {
  const ids = entries.map(({ id }) => id);
  const found = await reading.source.contents.find(authorizedAt(reading.caller, project), ids);
  judgeStanding(found[0]);
  const rows = new Map(found.map((row) => [row.id, row]));
  return entries.every(({ id, size }) => rows.get(id)?.size === size) ? rows : "missing";
}

/** The sealed contents of a group, in statements of bounded size. */
async function fetchContents(reading: Reading, project: ReadProject, group: readonly FileEntry[], giveUpAt: number) {
  const { source } = reading;
  const fetched = new Map<string, Fetched>();
  const { pieceBytes } = source.contents;
  const ids = group.map(({ id }) => id);
  const length = Math.max(...group.map(({ size }) => size + overheadBytes));
  for (let from = 1; from <= length; from += pieceBytes) {
    if (performance.now() > giveUpAt) throw new Fault("unavailable", "reading the files took over 15 s");
    const rows = await source.contents.pieces(authorizedAt(reading.caller, project), ids, from, pieceBytes);
    judgeStanding(rows[0]);
    const pieces = new Map(rows.map((row) => [row.id, row]));
    for (const entry of group) {
      const piece = pieces.get(entry.id);
      if (piece?.bytes == null || piece.size !== entry.size || piece.sealedBytes !== entry.size + overheadBytes) {
        return "missing";
      }
      const content = fetched.get(entry.id) ?? firstPiece(source, project, entry, piece);
      if (content.rowVersion !== piece.rowVersion) return "changed";
      fetched.set(entry.id, content);
      if (content.sealed === piece.bytes) continue;
      content.sealed.set(piece.bytes, from - 1);
      discard(piece.bytes);
    }
  }
  return fetched;
}

type FoundContent = { readonly content: FileContent; readonly rowVersion: string };
type Fetched = SealedContent & { readonly rowVersion: string };

/** A content with its first piece, or with memory for all of them. */
function firstPiece(
  source: ReadSource,
  project: ReadProject,
  { id, size, sha256 }: FileEntry,
  { rowVersion, generation, rootId, wrapped, bytes: first, sealedBytes }: ContentPiece,
): Fetched {
  if (first === null || rootId === null || wrapped === null || generationOf(first) !== generation) {
    throw new Fault("decryption_failed", `the content ${id} is under another data key than its row says`);
  }
  const key = source.keyring.dataKey(project.id, generation, rootId, wrapped).subkey("file");
  const associatedData = contentAssociatedData({ projectId: project.id, id, size, sha256 });
  const sealed = first.length === sealedBytes ? first : Buffer.allocUnsafeSlow(sealedBytes);
  return { id, key, associatedData, sealed, rowVersion };
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
