import { readFileSync, statSync } from "node:fs";
import { configProblem } from "../problem.ts";

/**
 * The secret in a file, without the line end that most tools add, and the byte order mark of editors on Windows.
 * @param setting - that names the file
 * @throws Problem if it cannot be read, or holds nothing
 */
export function readSecretFile(setting: string, path: string): string {
  let why = "is empty";
  try {
    const text = readFileSync(path, "utf8").replace(/^\uFEFF|\r?\n$/g, "");
    if (text !== "") return text;
  } catch (error) {
    why = `cannot be read (${(error as NodeJS.ErrnoException).code})`;
  }
  throw configProblem(`The file ${path} of ${setting} ${why}.`);
}

/** What decides who can read a file. */
type FileAccess = { readonly mode: number; readonly uid: number; readonly gid: number };

/** Warns of a file with a secret that other accounts of this machine can use. @param what - such as `The root key` */
export function warnOfReaders(what: string, path: string, say: (line: string) => void): void {
  if (process.platform === "win32") return;
  // The group that a process runs as need not be one of its supplementary groups.
  const groups = [...(process.getgroups?.() ?? []), process.getegid?.() ?? 0];
  const advice = adviceFor(statSync(path), process.geteuid?.() ?? 0, groups);
  if (advice === undefined) return;
  say(`WARNING: ${what}, ${path}, can be read by other users (${advice.replace("PATH", path)}`);
}

/**
 * The mode of a file that others can use, and what to do; undefined if nobody else can. If another account owns it, its
 * group may be what lets this process read it, as in a volume of Kubernetes with `fsGroup`.
 * @param groups - of this process
 */
export function adviceFor({ mode, uid, gid }: FileAccess, ownUid: number, groups: readonly number[]) {
  const isOurs = uid === ownUid;
  const others = !isOurs && groups.includes(gid) ? 0o007 : 0o077;
  if ((mode & others) === 0) return undefined;
  const shown = (mode & 0o777).toString(8).padStart(4, "0");
  const how = isOurs ? "chmod 600 PATH" : "its owner can change that, and a pod with defaultMode: 0400 and fsGroup";
  return `mode ${shown}): ${how}`;
}
