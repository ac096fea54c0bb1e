import { statSync } from "node:fs";

/**
 * Tells, whenever asked, whether `path` still leads to the same database, with its -wal and -shm, as at first. SQLite
 * itself would go on in files that were deleted or replaced: it would miss revocations, and its writes would be lost.
 */
export function isSameDatabase(path: string): () => boolean {
  const first = identify(path);
  return () => first !== undefined && identify(path) === first;
}

/** Which files these are. A number is not given to another file while this process has the file open. */
function identify(path: string): string | undefined {
  try {
    return ["", "-wal", "-shm"]
      .map((side) => statSync(`${path}${side}`, { bigint: true }))
      .map(({ dev, ino }) => `${dev} ${ino}`)
      .join();
  } catch {
    return undefined;
  }
}
