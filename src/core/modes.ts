import type { Modes } from "./whole-file.ts";

/**
 * Warns of files with secrets that others can read although Keyhole gave them a mode: on Windows drives in WSL, SMB and
 * FAT, the mount decides.
 */
export function modesTo(say: (line: string) => void): Modes {
  return (files) => {
    const open = process.platform === "win32" ? [] : files.filter(({ mode }) => (mode & 0o077) !== 0);
    const [first] = open;
    if (first === undefined) return;
    const others = open.length > 1 ? ` and ${open.length - 1} more` : "";
    const mode = (first.mode & 0o777).toString(8).padStart(4, "0");
    say(
      `WARNING: ${first.path}${others} can be read by other users (mode ${mode}): the file system keeps no modes, so write secrets to another one, or mount it with umask=077.`,
    );
  };
}
