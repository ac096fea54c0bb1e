import { dayMs } from "../../core/names.ts";
import { parseReceipt, receiptName } from "../../core/receipt.ts";
import { Refused } from "../../core/refused.ts";
import type { AuditEntry } from "../../record/entry.ts";
import { entrySalt, type Leaf, leafOf } from "../../record/leaf.ts";
import { findVerifiers } from "../../record/notary/signers.ts";
import { encodeVerifier, parseWitness } from "../../record/note.ts";
import { type EntryProof, encodeTreeProof, proofChecker, proofFormat } from "../../record/proof.ts";
import { decodeEntries, type Segment } from "../../record/segment.ts";
import { segmentsByLane } from "../../record/store/segments.ts";
import { leafHolding, newestCosigned } from "../../record/store/tree.ts";
import { readNodes, type SignedHead, treeEnd } from "../../record/store/tree-end.ts";
import { cosignedNote, headFrom } from "../../record/store/tree-search.ts";
import { leafHash, proveInclusion, verifyInclusion } from "../../record/tree.ts";
import { openTreeHead } from "../../record/tree-note.ts";
import type { LeafOfSegments } from "../../record/verify.ts";
import { saltKeyOf } from "../../seal/keyring.ts";
import type { Database } from "../../store/database.ts";
import type { AdminContext } from "../desk/context.ts";
import { type AuditFilter, auditSegments, findSegment, type NoteDamage, noEntry, seenSeqs } from "./audit.ts";
import { requireAuditor } from "./audit-chain.ts";

/** The keys that sign the tree's heads, as verifier keys, the newest first. */
export async function auditKeys(admin: AdminContext): Promise<string[]> {
  requireAuditor(admin);
  const { database, keyring, systemKeys } = admin;
  return (await findVerifiers(database, keyring, systemKeys.audit)).signers.map(encodeVerifier);
}

/** When the newest head was signed, in epoch milliseconds: entries from before can be proved. Undefined if there is none. */
export async function provedUntil({ database }: AdminContext): Promise<number | undefined> {
  const { head } = await treeEnd(database);
  return head?.at;
}

/** A witness, and which heads it has signed. */
export type WitnessRecord = Awaited<ReturnType<typeof listWitnesses>>[number];

/**
 * The witnesses that are set here; if none is, those that have signed within a month. Times are epoch milliseconds.
 * `until`: when the newest head that it has signed was signed by the notary; `missingSince`: when the first head that it
 * lacks was signed; `lossAt`: when a loss was accepted since its newest signature, so that it vouches for what came
 * before.
 */
export async function listWitnesses(admin: AdminContext) {
  const { database, checkpoint, keyring, systemKeys, now } = admin;
  const found = await findVerifiers(database, keyring, systemKeys.audit).catch(() => undefined);
  const log = found?.signers ?? [];
  const acceptedAt = (head: SignedHead | undefined) => openTreeHead(head?.note ?? "", log)?.acceptedAt ?? 0;
  const newest = acceptedAt((await treeEnd(database)).head);
  const signed = await newestCosigned(database, Number.MAX_SAFE_INTEGER);
  const isSet = checkpoint.witnesses.length > 0;
  const records = (isSet ? checkpoint.witnesses : [...signed.keys()]).map(async (key) => {
    const size = signed.get(key);
    const [last, next] = await Promise.all([size && headFrom(database, size), headFrom(database, (size ?? 0) + 1)]);
    const lossAt = last && acceptedAt(last) < newest ? newest : undefined;
    return { name: parseWitness(key)?.name ?? key, until: last ? last.at : undefined, missingSince: next?.at, lossAt };
  });
  return (await Promise.all(records)).filter(({ until = 0 }) => isSet || until > now() - monthMs);
}

const monthMs = 30 * dayMs;

/**
 * Proves the entries of a receipt.
 * @param name - `LANE:SEQ`, or `LANE:FIRST-LAST`; the lane may be shortened to its first 8 or more characters
 * @throws Refused `forbidden`, `invalid`, `not_found`; `unavailable` if they are in no signed head yet; `conflict` if
 *   they are not what was put into the tree
 */
export async function proveAudit(admin: AdminContext, name: string): Promise<EntryProof[]> {
  requireAuditor(admin);
  const named = parseReceipt(name);
  if (named === undefined) {
    throw new Refused("invalid", "Give LANE:NUMBER, as a receipt or `keyhole audit list --wide` has it.");
  }
  const { firstSeq, lastSeq } = named;
  if (lastSeq - firstSeq >= entriesMax) {
    throw new Refused("bound", `${name} has more than ${entriesMax} entries: \`audit export --proofs\` proves many.`);
  }
  const { lane, firstSeq: from } = await findSegment(admin, named.lane, firstSeq);
  const prove = await openProver(admin);
  const proofs: EntryProof[] = [];
  for await (const segment of segmentsByLane(admin.database, {}, { lane, seq: from })) {
    if (segment.firstSeq > lastSeq) break;
    const asked = seenSeqs(admin, segment).filter((seq) => seq >= firstSeq && seq <= lastSeq);
    const found = await prove(segment, asked);
    if (found === undefined) {
      throw new Refused("unavailable", `${name} is in no signed head yet: the notary takes it in within a minute.`);
    }
    proofs.push(...found);
  }
  if (proofs.length < lastSeq - firstSeq + 1) throw noEntry(name);
  return proofs;
}

/**
 * The proofs of all matching entries, in pages, oldest first.
 * @param left - called with the number of entries that are in no signed head: those of the last minute, and flaws
 * @throws Refused as {@link auditPages}; `conflict` if a segment is not the one that was taken into the tree
 */
export async function* provenPages(
  admin: AdminContext,
  filter: AuditFilter,
  left: (entries: number) => void,
  noteDamage: NoteDamage,
): AsyncGenerator<EntryProof[]> {
  const prove = await openProver(admin);
  for await (const page of auditSegments(admin, filter, noteDamage, "oldest first")) {
    for (const { segment, records } of page) {
      const seqs = records.map(({ seq }) => seq);
      const proofs = await prove(segment, seqs);
      if (proofs === undefined) left(seqs.length);
      else yield proofs;
    }
  }
}

/** As many as one answer leaves. */
const entriesMax = 1000;

/**
 * Proves entries against the newest head that a witness has signed, and what came later against the newest head of all.
 * @returns what proves these of a segment's entries. It returns undefined if the segment is in no signed head, checks each
 *   proof as those who get it check it, and throws Refused `conflict` if the segment is not the one of the tree, or the
 *   tree's head is not signed
 */
async function openProver({ database, keyring, systemKeys }: AdminContext) {
  const { head: newest } = await treeEnd(database);
  const signed = newest === undefined ? new Map() : await newestCosigned(database, newest.size);
  const cosigned = signed.size === 0 ? undefined : await headFrom(database, Math.max(...signed.values()));
  const heads = [cosigned, newest].filter((head) => head !== undefined);
  const notes = await Promise.all(heads.map((head) => cosignedNote(database, head, [...signed.keys()])));
  const saltKey = saltKeyOf(systemKeys.audit);
  // Segments of one leaf follow each other.
  let made: { readonly leaf: number; readonly tree: Leaf | undefined } | undefined;
  const check = proofChecker((await findVerifiers(database, keyring, systemKeys.audit)).signers);
  return async (segment: Segment, seqs: readonly number[]): Promise<EntryProof[] | undefined> => {
    if (seqs.length === 0) return [];
    const stored = await leafHolding(database, segment.lane, segment.lastSeq);
    const at = heads.findIndex(({ size }) => stored !== undefined && stored.leaf < size);
    const head = heads[at];
    if (head === undefined || stored === undefined) return undefined;
    const { leaf } = stored;
    const tree = made?.leaf === leaf ? made.tree : await makeLeaf(database, saltKey, stored);
    made = { leaf, tree };
    const path = await proveInclusion(leaf, head.size, (nodes) => readNodes(database, nodes));
    if (tree === undefined || !verifyInclusion(leafHash(tree.text), leaf, head, path)) {
      throw new Refused("conflict", cannotProve(segment, "it is not what the tree has"));
    }
    const proof = encodeTreeProof(leaf, path, notes[at] ?? "");
    const entries = decodeEntries(segment) ?? [];
    return Promise.all(
      seqs.map(async (seq) => {
        const proved = {
          format: proofFormat,
          receipt: receiptName({ lane: segment.lane, firstSeq: seq, lastSeq: seq }),
          entry: { ...(entries[seq - segment.firstSeq] as AuditEntry), at: segment.at },
          salt: entrySalt(saltKey, segment.lane, seq).toString("base64"),
          path: (await tree.prove(seq)).map((hash) => hash.toString("base64")),
          segment: tree.text,
          proof,
        } as const;
        const found = check(proved);
        if ("wrong" in found)
          throw new Refused("conflict", cannotProve(segment, `the proof would not hold: ${found.wrong}`));
        return proved;
      }),
    );
  };
}

async function makeLeaf(database: Database, saltKey: Uint8Array, stored: LeafOfSegments): Promise<Leaf | undefined> {
  const { lane, firstSeq: seq, lastSeq } = stored;
  return leafOf(saltKey, await Array.fromAsync(segmentsByLane(database, {}, { lane, seq, lastSeq })));
}

function cannotProve(segment: Segment, why: string): string {
  return `${receiptName(segment)} cannot be proved: ${why}. \`keyhole audit verify\` says more.`;
}
