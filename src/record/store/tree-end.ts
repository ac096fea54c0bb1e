import { desc, eq, inArray, max, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { conflictOf, Refused } from "../../core/refused.ts";
import type { Database } from "../../store/database.ts";
import { commandsLane, type Segment } from "../segment.ts";
import {
  completingLeaf,
  hashAt,
  leafHash,
  type Node,
  proveInclusion,
  type TreeHead,
  verifyInclusion,
} from "../tree.ts";
import type { StoredSegment } from "../verify.ts";

/* Where the stored tree of the audit ends, and its nodes. */

/** The newest head that was signed. */
export type SignedHead = { readonly size: number; readonly root: Buffer; readonly at: number; readonly note: string };

/** Where the tree ends, all of one moment. */
export type TreeEnd = Awaited<ReturnType<typeof treeEnd>>;

export async function treeEnd({ db, tables, server }: Pick<Database, "db" | "tables" | "server">) {
  const { auditLeaves: l, auditCheckpointsSigned: c, auditHeads: h } = tables;
  const last = db
    .select({ leaf: max(l.leaf).as("leaf"), server: server.as("server") })
    .from(l)
    .as("last");
  const newest = db.select().from(c).orderBy(desc(c.size)).limit(1).as("newest");
  const lane = db.select().from(h).where(eq(h.lane, commandsLane)).as("lane");
  const always = sql`true`;
  const [end] = await db.select().from(last).leftJoin(newest, always).leftJoin(lane, always);
  return {
    /** How many leaves there are. */
    size: end?.last.leaf == null ? 0 : Number(end.last.leaf) + 1,
    head: end?.newest ?? undefined,
    /** The head of people's lane; null if nobody has changed anything yet. */
    commands: end?.lane ?? null,
    /** Which server answered. */
    server: end?.last.server ?? "",
  };
}

/** The hashes of nodes, in the order in which they are named. @throws Refused `conflict` if one is missing or was cut */
export async function readNodes({ db, tables }: Database, nodes: readonly Node[]): Promise<Buffer[]> {
  const { auditLeaves: l } = tables;
  const rows = await db
    .select({ leaf: l.leaf, hashes: l.hashes })
    .from(l)
    .where(inArray(l.leaf, [...new Set(nodes.map(completingLeaf))]));
  const hashes = new Map(rows.map((row) => [row.leaf, row.hashes]));
  return nodes.map((node) => {
    const leaf = completingLeaf(node);
    const hash = hashAt(hashes.get(leaf), node.level);
    if (hash) return hash;
    throw new Refused("conflict", `Leaf ${leaf} of the audit's tree is missing or was cut.`);
  });
}

/** Whether the stored tree leads from this leaf to a root. @param tree - a head that was signed */
export async function leadsToRoot(database: Database, tree: TreeHead, leaf: number, text: string): Promise<boolean> {
  if (leaf >= tree.size) return false;
  try {
    const path = await proveInclusion(leaf, tree.size, (nodes) => readNodes(database, nodes));
    return verifyInclusion(leafHash(text), leaf, tree, path);
  } catch (error) {
    conflictOf(error);
    return false;
  }
}

/**
 * Of the leaf that has a segment, as its columns say, or that comes next in the lane. It is looked up by an index for one
 * segment after the other: a page of a join would make PostgreSQL join all that there are.
 */
export function leafFrom({ auditLeaves: l, auditSegments: s }: Database["tables"], column: SQLWrapper): SQL {
  // Drizzle leaves the table's name out of columns, but not within a fragment.
  const found = sql`${l.lane} = ${s.lane} and ${l.lastSeq} >= ${s.lastSeq} order by ${l.lastSeq} limit 1`;
  return sql`(select ${column} from ${l} where ${found})`;
}

/** The number of that leaf; null if there is none. */
export function leafNumber(tables: Database["tables"]): SQL<number | null> {
  return leafFrom(tables, tables.auditLeaves.leaf).mapWith(Number) as SQL<number | null>;
}

/** Sets the leaf of each segment by its number. */
export async function besideLeaves(
  { db, tables: { auditLeaves: l } }: Pick<Database, "db" | "tables">,
  rows: readonly (Segment & { readonly leafAt: number | null })[],
): Promise<StoredSegment[]> {
  const numbers = [...new Set(rows.flatMap(({ leafAt }) => leafAt ?? []))];
  const found = numbers.length === 0 ? [] : await db.select().from(l).where(inArray(l.leaf, numbers));
  const leaves = new Map(found.map((one) => [one.leaf, one]));
  return rows.map(({ leafAt, ...segment }) => ({ ...segment, leaf: leaves.get(leafAt ?? -1) ?? null }));
}
