import { dlopen, FFIType } from "bun:ffi";

/*
 * Advisory locks on open folders (flock). The system drops a lock when its process ends, however that ends. Where the
 * C library or the file system has no such locks, nothing can be locked.
 */

/** Holds a folder that drafts are written to, so that nobody takes them for leftovers. Others may hold it, too. */
export function holdFolder(fd: number): void {
  const canLock = flock(fd, unlock) === 0;
  // Somebody who sweeps the folder needs an instant. After that the lock is one that has nothing to do with us.
  for (let tries = 0; canLock && tries < 50 && flock(fd, shared | noWait) !== 0; tries++) Bun.sleepSync(10);
}

/** Runs `work` if nobody holds the folder, and lets nobody hold it meanwhile. */
export function ifUnheld(fd: number, work: () => void): void {
  if (flock(fd, exclusive | noWait) !== 0) return;
  try {
    work();
  } finally {
    flock(fd, unlock);
  }
}

const [shared, exclusive, noWait, unlock] = [1, 2, 4, 8];

const flock = ((): ((fd: number, operation: number) => number) => {
  try {
    if (process.platform !== "linux") return () => -1;
    const { i32 } = FFIType;
    return dlopen("libc.so.6", { flock: { args: [i32, i32], returns: i32 } }).symbols.flock;
  } catch {
    return () => -1; // musl
  }
})();
