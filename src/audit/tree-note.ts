import { openNote, type Signer, signNote, type Verifier } from "./note.ts";
import type { TreeHead } from "./tree.ts";

/*
 * The head of a tree as a note (https://c2sp.org/tlog-checkpoint). Its text has three lines: the origin, which is the
 * name of the signer, the size, and the root in base64.
 */

export function signTreeHead({ size, root }: TreeHead, signer: Signer): string {
  return signNote(`${signer.name}\n${size}\n${root.toString("base64")}\n`, signer);
}

/** The head that a note shows, if the log itself signed it; its other lines and signatures are passed over. */
export function openTreeHead(note: string, log: readonly Verifier[]): TreeHead | undefined {
  const [origin, size = "", root = "", ...more] = openNote(note, log)?.split("\n") ?? [];
  const isOrigin = log.some(({ name }) => name === origin);
  if (!isOrigin || !/^(0|[1-9]\d{0,15})$/.test(size) || !/^[0-9A-Za-z+/]{43}=$/.test(root)) return undefined;
  if (more.pop() !== "" || more.includes("") || !Number.isSafeInteger(Number(size))) return undefined;
  return { size: Number(size), root: Buffer.from(root, "base64") };
}
