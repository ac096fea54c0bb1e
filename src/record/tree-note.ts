import { sha256Of } from "../core/hash.ts";
import { openNote, type Signer, signNote, type Verifier } from "./note.ts";
import type { TreeHead } from "./tree.ts";

/*
 * The head of a tree as a note (https://c2sp.org/tlog-checkpoint). Its text has three lines: the origin, which is the
 * name of the signer, the size, and the root in base64. There may be two more:
 *
 *   audit.accept-restore TIME       epoch milliseconds
 *   audit.commands NUMBER           the last entry of people's lane that the tree has
 *
 * The first is there once an operator has accepted that the database was put back. All later heads keep it. Whoever has
 * seen a head with an earlier time, or without one, need not find that head again.
 */

/** A head that the notary signed. */
export type NotedHead = TreeHead & {
  /** When an operator last accepted that the database was put back, in epoch milliseconds; 0 if never. */
  readonly acceptedAt: number;
  /** The last entry of people's lane in the tree; absent if there is none, and in older heads. */
  readonly commands?: number | undefined;
};

export function signTreeHead({ size, root, acceptedAt, commands = 0 }: NotedHead, signer: Signer): string {
  const more = [`${acceptedLine} ${acceptedAt}\n`, `${commandsLine} ${commands}\n`].filter(
    (line) => !line.endsWith(" 0\n"),
  );
  return signNote(`${signer.name}\n${size}\n${root.toString("base64")}\n${more.join("")}`, signer);
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
  const numberOf = (name: string) => more.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
  const [acceptedAt, commands] = [numberOf(acceptedLine), numberOf(commandsLine)];
  if ([acceptedAt, commands].some((number) => number !== undefined && !/^[1-9]\d{0,15}$/.test(number)))
    return undefined;
  return {
    ...{ origin, size: Number(size), root: Buffer.from(root, "base64"), acceptedAt: Number(acceptedAt ?? 0) },
    ...(commands !== undefined && { commands: Number(commands) }),
  };
}

const acceptedLine = "audit.accept-restore";
const commandsLine = "audit.commands";

/** Where a witness shows the newest head of a log that it signed, below its URL. */
export function witnessedPath(origin: string): string {
  return `/${sha256Of(origin)}/checkpoint`;
}
