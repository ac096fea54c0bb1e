import { contentBytesMax } from "../core/names.ts";
import { exits, onInterrupt, Problem, usageProblem } from "../core/problem.ts";
import type { Modes } from "../core/whole-file.ts";
import { didYouMean } from "../core/words/nearest.ts";
import type { FetchedFile, FileRecord } from "./answers.ts";
import { queryBytesMax } from "./client.ts";
import { type Comparison, Root } from "./safe-files.ts";
import type { Source } from "./variables.ts";

/** Which files, and where to. */
export type FilesAsk = {
  readonly root: string;
  /** All files if empty. */
  readonly paths: readonly string[];
  readonly allowEmpty?: true | undefined;
  /** What repeated pulls remember; a single one has none. */
  readonly memory?: PullMemory;
};

export type PullMemory = {
  /** Contents by checksum that were fetched and then could not be written, so that none is read twice. */
  readonly unwritten: Map<string, Uint8Array>;
  /** The server's list that the last pull put in place. If it is the same again, nothing is compared or written. */
  placed?: readonly FileRecord[];
};

export type Pulled = { readonly root: string; readonly written: readonly string[]; readonly unchanged: number };

type PullProgress = Readonly<Record<"fetching" | "writing", (done: number, total: number) => void>> & {
  readonly modes: Modes;
};

/**
 * Fetches the files that differ below the root, then writes all of them or none, even on a signal. Also removes what a
 * killed pull left in their folders.
 */
export async function pullFiles(source: Source, ask: FilesAsk, progress: PullProgress): Promise<Pulled> {
  const { memory = { unwritten: new Map<string, Uint8Array>() } } = ask;
  using root = new Root(ask.root);
  const { listed, wanted } = await list(source, ask);
  if (listed === memory.placed) return { root: ask.root, written: [], unchanged: wanted.length };
  const files: FetchedFile[] = [];
  const stale: FileRecord[] = [];
  for (const record of wanted) {
    const found = root.compare(record);
    if (found.state === "mode") files.push({ ...record, content: found.content });
    else if (found.state !== "same") stale.push(record);
  }
  await fetchContents(source, stale, listed.length, memory.unwritten, progress);
  for (const record of stale) files.push({ ...record, content: memory.unwritten.get(record.sha256) as Uint8Array });
  root.sweep(wanted.map(({ path }) => path)); // before the disk must take more
  await place(root, files, progress);
  memory.unwritten.clear();
  memory.placed = listed;
  return { root: ask.root, written: files.map(({ path }) => path).sort(), unchanged: wanted.length - files.length };
}

/** Fetches the contents of these files, by checksum, except for those that are there. Removes all others. */
async function fetchContents(
  { asked, client }: Source,
  stale: readonly FileRecord[],
  listed: number,
  contents: Map<string, Uint8Array>,
  { fetching }: PullProgress,
): Promise<void> {
  const bytes = bytesOf(stale);
  if (bytes > pullBytesMax) {
    const words = `The files to fetch hold ${bytes} bytes, more than 1 GiB: take fewer at a time with --path.`;
    throw new Problem(exits.refused, "too_much", words);
  }
  const sums = new Set(stale.map(({ sha256 }) => sha256));
  for (const sha256 of contents.keys()) if (!sums.has(sha256)) contents.delete(sha256);
  const unread = stale.filter(({ sha256 }) => !contents.has(sha256));
  let fetched = 0;
  for (const { records, all } of planRequests(unread, listed)) {
    fetching(fetched, unread.length);
    for (const { sha256, content } of await client.fetchFiles(asked, records, all)) contents.set(sha256, content);
    fetched += records.length;
  }
}

/** Everything is held in memory until it is written. */
const pullBytesMax = 1024 * 1024 * 1024;

type ComparedFile = { readonly path: string; readonly state: Comparison["state"] | "obstructed" };

/** Compares the files below the root with the server's records and writes nothing. */
export async function findDrift(source: Source, ask: FilesAsk): Promise<{ files: number; drift: ComparedFile[] }> {
  const { wanted } = await list(source, ask);
  using root = new Root(ask.root);
  const states = wanted.map((record) => ({ path: record.path, state: stateOf(root, record) }));
  return { files: wanted.length, drift: states.filter(({ state }) => state !== "same") };
}

/** A request for the content of these files. `all` means that the environment has no others. */
type ContentRequest = { readonly records: readonly FileRecord[]; readonly all: boolean };

/**
 * Plans few requests within 8 MiB of content and the length of a query: each file, the largest first, goes into the
 * first request with room for it. If all `listed` files are wanted, their paths need not be sent.
 */
export function planRequests(wanted: readonly FileRecord[], listed: number): ContentRequest[] {
  if (wanted.length > 0 && wanted.length === listed && bytesOf(wanted) <= contentBytesMax) {
    return [{ records: wanted, all: true }];
  }
  const requests: { records: FileRecord[]; bytes: number; queryBytes: number }[] = [];
  for (const record of [...wanted].sort((a, b) => b.size - a.size)) {
    const queryBytes = pathParameter(record).length;
    let request = requests.find(
      (one) => one.bytes + record.size <= contentBytesMax && one.queryBytes + queryBytes <= queryBytesMax,
    );
    if (request === undefined) {
      request = { records: [], bytes: 0, queryBytes: 200 }; // project and environment
      requests.push(request);
    }
    request.records.push(record);
    request.bytes += record.size;
    request.queryBytes += queryBytes;
  }
  return requests.map(({ records }) => ({ records, all: false }));
}

/** How a file is asked for, after other parameters. */
export function pathParameter({ path }: Pick<FileRecord, "path">): string {
  return `&path=${encodeURIComponent(path)}`;
}

type ListedFiles = { readonly listed: readonly FileRecord[]; readonly wanted: readonly FileRecord[] };

/** The records of all files that the server has, and of those that are wanted. */
async function list({ asked, client }: Source, ask: FilesAsk): Promise<ListedFiles> {
  const { paths, allowEmpty } = ask;
  if (paths.includes("")) throw usageProblem("--path is empty.");
  const records = await client.listFiles(asked);
  const where = `${asked.project}, ${asked.environment}`;
  const missing = paths.filter((path) => !records.some((record) => record.path === path));
  if (missing.length > 0) {
    const others = records.map(({ path }) => path).filter((path) => !paths.includes(path));
    const words = `Not found in ${where}: ${missing.join(", ")}.${didYouMean(missing, others)}`;
    throw new Problem(exits.notFound, "missing_files", words);
  }
  if (records.length === 0 && !allowEmpty) {
    throw new Problem(exits.notFound, "empty_set", `There are no files in ${where}; --allow-empty accepts that.`);
  }
  const wanted = paths.length === 0 ? records : records.filter(({ path }) => paths.includes(path));
  return { listed: records, wanted };
}

/** Writes the files. A signal before the first rename leaves everything unchanged; a later one is ignored. */
async function place(root: Root, files: readonly FetchedFile[], { writing, modes }: PullProgress): Promise<void> {
  let interruption: Problem | undefined;
  using _ = onInterrupt((problem) => {
    interruption = problem;
  });
  await root.place(files, modes, (done, total) => {
    writing(done, total);
    if (interruption !== undefined) throw interruption;
  });
}

function stateOf(root: Root, record: FileRecord): ComparedFile["state"] {
  try {
    return root.compare(record).state;
  } catch (error) {
    if (error instanceof Problem && error.code === "obstructed") return "obstructed";
    throw error;
  }
}

function bytesOf(records: readonly FileRecord[]): number {
  return records.reduce((sum, { size }) => sum + size, 0);
}
