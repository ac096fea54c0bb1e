import { statSync } from "node:fs";

/** Warns of a file with a secret that other accounts of this machine can use. @param what - such as `The root key` */
export function warnOfReaders(what: string, path: string, say: (line: string) => void): void {
  const mode = statSync(path).mode & 0o777;
  if (process.platform === "win32" || (mode & 0o077) === 0) return;
  const shown = mode.toString(8).padStart(4, "0");
  say(`WARNING: ${what}, ${path}, can be read by other users (mode ${shown}): chmod 600 ${path}`);
}
