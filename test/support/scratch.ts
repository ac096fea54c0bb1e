import { chmodSync, mkdtempSync, readFileSync, statfsSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

/** A whole run writes at most this much, most of it the log of PostgreSQL. */
const roomMin = 4 * 1024 ** 3;

/** A folder for all that the tests write, and the session that they run in. */
export type Scratch = {
  readonly folder: string;
  /** Names the process that leads the session of the tests. */
  readonly watch: (session: number) => void;
  /** Kills what still runs in the session, and removes the folder. */
  readonly remove: () => Promise<void>;
};

/**
 * Makes the folder in memory if there is room, because every database here syncs each of its writes. TMPDIR overrides
 * that. The users that PostgreSQL and some servers run as may pass through it.
 *
 * If this process ends without `remove`, even by SIGKILL, its {@link watcher} does the same.
 */
export function makeScratch(): Scratch {
  const folder = mkdtempSync(join(process.env["TMPDIR"] || memoryFolder() || tmpdir(), "keyhole-test-"));
  chmodSync(folder, 0o711);
  const watching = Bun.spawn(["/bin/sh", "-c", watcher, "watcher", folder], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    detached: true, // Ctrl-C must not reach it
  });
  return {
    folder,
    watch: (session) => {
      watching.stdin.write(`${session}\n`);
      watching.stdin.flush();
    },
    remove: async () => {
      await watching.stdin.end();
      await watching.exited;
    },
  };
}

/** Its standard input is a pipe from the process that started it, and closes when that process ends. */
const watcher = `
trap '' HUP INT TERM
session=
while read -r line; do session=$line; done
ps -A -o pid= -o sid= | while read -r pid sid; do
  [ "$sid" != "$session" ] || kill -KILL "$pid"
done
tries=0 # A server that is ending may still write into the folder.
until rm -rf "$1" || [ "$((tries += 1))" = 100 ]; do sleep 0.1; done
`;

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
