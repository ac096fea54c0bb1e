import { chmodSync, mkdtempSync, readFileSync, statfsSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

/** A whole run writes at most this much, most of it the log of PostgreSQL. */
const roomMin = 4 * 1024 ** 3;

/**
 * Makes a folder for all that the tests write. It is in memory if there is room, because every database here syncs each
 * of its writes. TMPDIR overrides that.
 *
 * The users that PostgreSQL and some servers run as may pass through it.
 */
export function makeScratch(): string {
  const folder = mkdtempSync(join(process.env["TMPDIR"] || memoryFolder() || tmpdir(), "keyhole-test-"));
  chmodSync(folder, 0o711);
  return folder;
}

/** A folder in memory with room, in which programs may run. */
export function memoryFolder(): string | undefined {
  const folder = "/dev/shm";
  try {
    const mount = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .find((line) => line.split(" ")[1] === folder);
    const [, , type, options = ""] = mount?.split(" ") ?? [];
    if (type !== "tmpfs" || options.split(",").includes("noexec")) return undefined;
    const { bavail, bsize } = statfsSync(folder);
    return Math.min(bavail * bsize, freemem()) >= roomMin ? folder : undefined;
  } catch {
    return undefined; // another system
  }
}
