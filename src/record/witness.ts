import { openNote, signedOnlyBy, type Verifier } from "./note.ts";
import { rootOver, type TreeHead, verifyConsistency } from "./tree.ts";
import { parseTreeHead } from "./tree-note.ts";

/*
 * What a log and a witness say to each other (https://c2sp.org/tlog-witness). The log sends
 *
 *   old SIZE        of the tree that the witness signed last
 *   HASH            in base64: the proof that the tree goes on from there, one line each
 *                   an empty line
 *   NOTE            the new head, signed by the log
 *
 * and the witness answers with its signatures of that head, one line each.
 */

/** The path of that request, below a witness's URL. */
export const submissionPath = "/add-checkpoint";
/** How many bytes such a request has at most: 63 hashes, and a note with many signatures. */
export const submissionBytesMax = 64 * 1024;
/** The type of an answer that is the size of a tree. */
export const sizeType = "text/x.tlog.size";

export function encodeSubmission(oldSize: number, proof: readonly Buffer[], note: string): string {
  return `old ${oldSize}\n${proof.map((hash) => `${hash.toString("base64")}\n`).join("")}\n${note}`;
}

/**
 * A request as the witness judges it: the status to answer with, and what goes with it. The note has the signatures of
 * the log's keys alone: a stranger may add others, until nobody reads a note of that length. A 409 or 422 about a head
 * that the log signed has the reason.
 */
export type Judgement =
  | { readonly status: 200; readonly origin: string; readonly note: string; readonly text: string }
  | { readonly status: 409; readonly size: number; readonly reason?: string }
  | { readonly status: 400 | 403 | 404 | 422; readonly reason: string };

/**
 * Judges a request.
 * @param logs - the keys of the logs that are witnessed; a log may have several
 * @param newestOf - the newest head of a log that was signed here; undefined if there is none
 */
export function judgeSubmission(
  body: string,
  logs: readonly Verifier[],
  newestOf: (origin: string) => TreeHead | undefined,
): Judgement {
  const parsed = parseSubmission(body);
  if (parsed === undefined) return refuse(400, "The request is malformed.");
  const { oldSize, proof, note } = parsed;
  const origin = note.slice(0, note.indexOf("\n"));
  const keys = logs.filter(({ name }) => name === origin);
  if (keys.length === 0) return refuse(404, "This log is not witnessed here.");
  const text = openNote(note, keys);
  if (text === undefined) return refuse(403, "The checkpoint is not signed by the log's key.");
  const head = parseTreeHead(text);
  if (head === undefined) return refuse(400, "The checkpoint is malformed.");
  if (oldSize > head.size) return refuse(400, "The old size is larger than the checkpoint's.");
  const newest = newestOf(origin);
  if (oldSize !== (newest?.size ?? 0)) return { status: 409, size: newest?.size ?? 0 };
  if (newest?.size === head.size && !newest.root.equals(head.root)) {
    return { status: 409, size: newest.size, reason: "The checkpoint is of another tree of the same size." };
  }
  if (!goesOn(newest, head, proof)) return refuse(422, "The checkpoint does not go on from the newest one.");
  return { status: 200, origin, note: signedOnlyBy(note, keys), text };
}

const refuse = (status: 400 | 403 | 404 | 422, reason: string) => ({ status, reason }) as const;

/** Nothing needs to be proved of an empty tree, except that no other head was signed of it. */
function goesOn(newest: TreeHead | undefined, head: TreeHead, proof: readonly Buffer[]): boolean {
  if (head.size === 0 && !head.root.equals(rootOver([]))) return false;
  if (newest === undefined || newest.size === 0) return proof.length === 0;
  return verifyConsistency(newest, head, proof);
}

function parseSubmission(body: string) {
  const end = body.indexOf("\n\n");
  const [old = "", ...hashes] = body.slice(0, Math.max(end, 0)).split("\n");
  const [, size] = /^old (0|[1-9]\d{0,15})$/.exec(old) ?? [];
  const proof = hashes.map((hash) => Buffer.from(hash, "base64"));
  const isProof =
    proof.length <= 63 && proof.every((hash, at) => hash.length === 32 && hash.toString("base64") === hashes[at]);
  if (size === undefined || !isProof || !Number.isSafeInteger(Number(size))) return undefined;
  return { oldSize: Number(size), proof, note: body.slice(end + 2) };
}
