import type { Verifier } from "../audit/note.ts";
import { type StoredLeaf, type TreeVerified, TreeWalk } from "../audit/tree-walk.ts";
import type { Database } from "../store/database.ts";
import { cosignaturesInOrder, headsInOrder, lastCosigned, leavesInOrder, treeEnd } from "../store/tree.ts";

/** What was found, and the newest signed head: the tree is known up to there. */
type Walked = TreeVerified & {
  readonly head: { readonly size: number; readonly root: Buffer; readonly at: number } | undefined;
};

/**
 * Verifies the tree and all of its signed heads. It needs no secret, and of the database only the tables of the tree.
 * @param progress - called now and then with the number of leaves so far
 */
export function verifyPublic(
  database: Database,
  log: readonly Verifier[],
  progress: (leaves: number) => void = () => {},
): Promise<Walked> {
  return verifyTree(database, log, async function* (size) {
    for await (const leaves of leavesInOrder(database, 0, size)) {
      yield* leaves;
      progress((leaves.at(-1)?.leaf ?? 0) + 1);
    }
  });
}

/** The same. @param read - the leaves up to a size; the caller may look at them, too */
export async function verifyTree(
  database: Database,
  log: readonly Verifier[],
  read: (size: number) => AsyncIterable<StoredLeaf>,
): Promise<Walked> {
  // What a notary appends from here on is left out. A signature of a witness is never there before its head.
  const cosigned = await lastCosigned(database);
  const { size, head: newest } = await treeEnd(database);
  const walk = new TreeWalk(log);
  const heads = headsInOrder(database, newest?.size ?? 0);
  let head = await heads.next();
  for await (const leaf of read(size)) {
    for (; !head.done && head.value.size <= leaf.leaf; head = await heads.next()) walk.compare(head.value);
    walk.pass(leaf);
  }
  for (; !head.done; head = await heads.next()) walk.compare(head.value);
  for await (const signature of cosignaturesInOrder(database, cosigned)) walk.cosigned(signature);
  return { ...walk.end(), head: newest };
}
