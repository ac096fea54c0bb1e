import { openNote, type Signer, signNote, type Verifier } from "./note.ts";
import type { TreeHead } from "./tree.ts";

/*
 * The head of a tree as a note (https://c2sp.org/tlog-checkpoint). Its text has three lines: the origin, which is the
 * name of the signer, the size, and the root in base64. Once an operator has accepted that the database was put back,
 * there is a fourth:
 *
 *   audit.accept-restore TIME       epoch milliseconds
 *
 * All later heads keep it. Whoever has seen a head with an earlier time, or without one, need not find that head again.
 */

/** A head that the notary signed. */
export type NotedHead = TreeHead & {
  /** When an operator last accepted that the database was put back, in epoch milliseconds; 0 if never. */
  readonly acceptedAt: number;
};

export function signTreeHead({ size, root, acceptedAt }: NotedHead, signer: Signer): string {
  const accepted = acceptedAt === 0 ? "" : `${acceptedLine} ${acceptedAt}\n`;
  return signNote(`${signer.name}\n${size}\n${root.toString("base64")}\n${accepted}`, signer);
}

/** The head that a note shows, if the log itself signed it; its other lines and signatures are passed over. */
export function openTreeHead(note: string, log: readonly Verifier[]): NotedHead | undefined {
  const { origin, ...head } = parseTreeHead(openNote(note, log) ?? "") ?? {};
  return log.some(({ name }) => name === origin) ? (head as NotedHead) : undefined;
}

/** The head that the text of a note shows, whoever signed it. */
export function parseTreeHead(text: string): (NotedHead & { readonly origin: string }) | undefined {
  const [origin = "", size = "", root = "", ...more] = text.split("\n");
  if (origin === "" || !/^(0|[1-9]\d{0,15})$/.test(size) || !/^[0-9A-Za-z+/]{43}=$/.test(root)) return undefined;
  if (more.pop() !== "" || more.includes("") || !Number.isSafeInteger(Number(size))) return undefined;
  const [accepted, acceptedAt] = more.find((line) => line.startsWith(`${acceptedLine} `))?.split(" ") ?? [];
  if (accepted !== undefined && !/^[1-9]\d{0,15}$/.test(acceptedAt ?? "")) return undefined;
  return { origin, size: Number(size), root: Buffer.from(root, "base64"), acceptedAt: Number(acceptedAt ?? 0) };
}

const acceptedLine = "audit.accept-restore";
