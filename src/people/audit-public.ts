import type { Verifier } from "../audit/note.ts";
import { type TreeVerified, TreeWalk } from "../audit/tree-walk.ts";
import type { Database } from "../store/database.ts";
import { cosignaturesInOrder, headsInOrder, lastCosigned, leavesInOrder, treeEnd } from "../store/tree.ts";

/**
 * Verifies the tree and all of its signed heads. It needs no secret, and of the database only the tables of the tree.
 * @param progress - called now and then with the number of leaves so far
 */
export async function verifyPublic(
  database: Database,
  log: readonly Verifier[],
  progress: (leaves: number) => void = () => {},
): Promise<TreeVerified> {
  // What a notary appends from here on is left out. A signature of a witness is never there before its head.
  const cosigned = await lastCosigned(database);
  const { size, head: newest } = await treeEnd(database);
  const walk = new TreeWalk(log);
  const heads = headsInOrder(database, newest?.size ?? 0);
  let head = await heads.next();
  for await (const leaf of leavesInOrder(database, size)) {
    for (; !head.done && head.value.size <= leaf.leaf; head = await heads.next()) walk.compare(head.value);
    walk.pass(leaf);
    if (leaf.leaf % progressEvery === 0) progress(leaf.leaf);
  }
  for (; !head.done; head = await heads.next()) walk.compare(head.value);
  for await (const signature of cosignaturesInOrder(database, cosigned)) walk.cosigned(signature);
  return walk.end();
}

const progressEvery = 10_000;
