import type { Verifier } from "../../record/note.ts";
import { leavesInOrder, monthsInOrder } from "../../record/store/tree.ts";
import { treeEnd } from "../../record/store/tree-end.ts";
import { cosignaturesInOrder, headsInOrder, lastCosigned } from "../../record/store/tree-search.ts";
import { TreeWalk } from "../../record/tree-walk.ts";
import type { Database } from "../../store/database.ts";

/**
 * Verifies the tree and all of its signed heads. It needs no secret, and of the database only the tables of the tree.
 * @param progress - called now and then with the number of leaves so far
 * @returns what was found, and the newest signed head: the tree is known up to there
 */
export async function verifyPublic(
  database: Database,
  log: readonly Verifier[],
  progress: (leaves: number) => void = () => {},
) {
  // What a notary appends from here on is left out. A signature of a witness is never there before its head.
  const cosigned = await lastCosigned(database);
  const { size, head: newest } = await treeEnd(database);
  const walk = new TreeWalk(log);
  const heads = headsInOrder(database, newest?.size ?? 0);
  const months = await monthsInOrder(database, size);
  let head = await heads.next();
  for await (const leaves of leavesInOrder(database, 0, size)) {
    for (const leaf of leaves) {
      for (; !head.done && head.value.size <= leaf.leaf; head = await heads.next()) walk.compare(head.value);
      for (; months[0] && months[0].size <= leaf.leaf; months.shift()) walk.compareMonth(months[0]);
      walk.pass(leaf);
    }
    progress((leaves.at(-1)?.leaf ?? 0) + 1);
  }
  for (; !head.done; head = await heads.next()) walk.compare(head.value);
  for await (const signature of cosignaturesInOrder(database, cosigned)) walk.cosigned(signature);
  return { ...walk.end(), head: newest };
}
