import { Database as SqliteFile } from "bun:sqlite";
import { Refused } from "../../core/refused.ts";
import { isSameDatabase, retryBusy } from "../../store/sqlite-file.ts";
import { sqliteGuard } from "../../store/sqlite-guard.ts";
import type { JobReads } from "../job-reads.ts";
import type { Appended } from "../journal.ts";
import type { JournalOrder, SegmentValues } from "./journal.ts";

// The embedded database's journal, in its own thread: a commit waits for the disk and for other processes, and the
// API's event loop must wait for neither.
declare const self: Worker;

let file: SqliteFile | undefined;
let isInPlace = () => false;
let write: ((segment: SegmentValues | undefined, reads: readonly JobReads[]) => Appended) | undefined;

self.onmessage = ({ data }: MessageEvent<JournalOrder>) => {
  if ("open" in data) open(data.open, data.insert);
  else if ("append" in data) self.postMessage(append(data.append, data.reads));
  else {
    file?.close();
    self.postMessage({ outcome: "durable" } satisfies Appended);
  }
};

function open(path: string, insertText: string): void {
  const opened = new SqliteFile(path, { create: false, readwrite: true });
  opened.run("PRAGMA busy_timeout = 0"); // see retryBusy
  opened.run("PRAGMA synchronous = FULL");
  // Commits wait for a checkpoint. With half of SQLite's own interval the p99 of 64 callers is 13.5 ms rather than 17,
  // at the same rate; a quarter costs rate and p50, and 8000 pages made it 25 ms.
  opened.run("PRAGMA wal_autocheckpoint = 500");
  const insert = opened.query(insertText);
  const requireUntouched = sqliteGuard(opened);
  const version = opened.query<{ schema_version: number }, []>("PRAGMA schema_version");
  let passed: number | undefined;
  const count = opened.query<{ reads: number }, [string, Uint8Array, number, number]>(countText);
  const insertOne = opened.transaction((segment: SegmentValues | undefined, reads: readonly JobReads[]): Appended => {
    // This connection reads the schema again only if its number has changed, and does so in these transactions alone.
    const now = version.get()?.schema_version;
    if (now !== passed) {
      passed = undefined; // an addition that was found may come back under the number that passed
      requireUntouched();
      passed = now;
    }
    const counts = reads.map(({ trustId, job, reads, keptMs }) => {
      return count.get(trustId, Buffer.from(job, "hex"), reads, keptMs)?.reads ?? Number.MAX_SAFE_INTEGER;
    });
    if (counts.some((count, at) => count > (reads[at]?.readsMax ?? 0))) return { outcome: "refused", counts };
    if (segment !== undefined) insert.run(...segment);
    else opened.run("PRAGMA user_version = 0"); // as it is: the commit shows whether the disk takes a page
    return { outcome: "durable" };
  });
  isInPlace = isSameDatabase(path);
  file = opened;
  write = insertOne.immediate;
}

const countText = `insert into job_reads (trust_id, job, reads, ends_at)
  values (?, ?, ?, cast(unixepoch('subsec') * 1000 as integer) + ?)
  on conflict (trust_id, job) do update set reads = reads + excluded.reads, ends_at = excluded.ends_at returning reads`;

function append(segment: SegmentValues | undefined, reads: readonly JobReads[]): Appended {
  const reason = "the database's files were deleted or replaced";
  if (!isInPlace()) return { outcome: "refused", reason };
  let appended: Appended | undefined;
  try {
    const nowMs = () => performance.now();
    appended = retryBusy(() => write?.(segment, reads), Bun.sleepSync, nowMs);
  } catch (error) {
    // Whatever failed, the transaction was rolled back.
    const reason = error instanceof Refused ? error.message : String((error as { code?: unknown }).code);
    return { outcome: "refused", reason };
  }
  return isInPlace() && appended !== undefined ? appended : { outcome: "unknown", reason };
}
