import { and, asc, eq, like, type SQL } from "drizzle-orm";
import { Refused } from "../core/refused.ts";
import type { AdminContext } from "./context.ts";

type Identified = AdminContext["database"]["tables"]["apiKeys" | "variableRequests"];

/**
 * The whole id that `id` is or begins.
 * @param noun - what the table holds, as commands name it
 * @param only - which rows are looked at, if not all
 * @throws Refused `not_found` if it has fewer than 8 characters, or fits none or several
 */
export async function findId(
  admin: AdminContext,
  table: Identified,
  noun: string,
  id: string,
  only?: SQL,
): Promise<string> {
  const fitting = /^[0-9a-f-]{8,36}$/.test(id)
    ? await admin.database.db
        .select({ id: table.id })
        .from(table)
        .where(and(like(table.id, `${id}%`), only))
        .limit(2)
    : [];
  if (fitting.length > 1) throw new Refused("not_found", `Several ${noun}s begin with ${id}: give more of the id.`);
  if (fitting[0] === undefined) throw noId(noun, id);
  return fitting[0].id;
}

/**
 * Shortens ids as tables show them: to the fewest characters, at least 8, with which no other id begins. What is not an
 * id of the table stays whole.
 */
export async function shortIds(admin: AdminContext, table: Identified): Promise<(id: string) => string> {
  const rows = await admin.database.db.select({ id: table.id }).from(table).orderBy(asc(table.id));
  const ids = rows.map(({ id }) => id);
  const sharedLength = (a: string, b = "") => {
    let length = 0;
    while (length < b.length && a[length] === b[length]) length++;
    return length;
  };
  const lengths = new Map(
    ids.map((id, at) => [id, Math.max(7, sharedLength(id, ids[at - 1]), sharedLength(id, ids[at + 1])) + 1]),
  );
  return (id) => id.slice(0, lengths.get(id));
}

/**
 * The one row that an id, or the beginning of one, names; see {@link findId}.
 * @param find - reads rows by a condition
 * @throws Refused `not_found`
 */
export async function showById<T>(
  admin: AdminContext,
  table: Identified,
  noun: string,
  asked: string,
  find: (where: SQL) => Promise<readonly T[]>,
  only?: SQL,
): Promise<T> {
  const id = await findId(admin, table, noun, asked, only);
  const [found] = await find(eq(table.id, id));
  if (found === undefined) throw noId(noun, id);
  return found;
}

/** @returns a refusal of an id that fits nothing */
export function noId(noun: string, id: string): Refused {
  const why = id.length < 8 ? "an id takes at least 8 characters, and " : "";
  const list = `\`keyhole ${noun} list\` shows the ids.`;
  return new Refused("not_found", `There is no ${noun} ${JSON.stringify(id)}: ${why}${list}`);
}
