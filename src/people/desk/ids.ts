import { and, like, type SQL } from "drizzle-orm";
import { Refused } from "../../core/refused.ts";
import type { AdminContext } from "./context.ts";

type Identified = AdminContext["database"]["tables"]["apiKeys" | "variableRequests"];

/**
 * Finds a row by its id or by the beginning of its id.
 * @param noun - what the table holds, as commands name it
 * @param options - `only`: which rows to search; `isSeen`: whether this person may see a row
 * @throws Refused `not_found` if it has fewer than 8 characters, or fits none or several
 */
export async function findById<T extends Identified>(
  admin: AdminContext,
  table: T,
  noun: string,
  id: string,
  options: { readonly only?: SQL | undefined; readonly isSeen: (row: T["$inferSelect"]) => boolean },
): Promise<T["$inferSelect"]> {
  const { only, isSeen } = options;
  const rows = /^[0-9a-f-]{8,36}$/.test(id)
    ? await admin.database.db
        .select()
        .from(table as Identified)
        .where(and(like(table.id, `${id}%`), only))
    : [];
  const fitting = (rows as T["$inferSelect"][]).filter(isSeen);
  if (fitting.length > 1) throw new Refused("not_found", `Several ${noun}s begin with ${id}: give more of the id.`);
  if (fitting[0] === undefined) throw noId(noun, id);
  return fitting[0];
}

/**
 * Shortens ids for tables: to the shortest unique beginning of at least 8 characters. Other texts stay whole.
 * @param all - what somebody may see
 */
export function shortIds(all: readonly { readonly id: string }[]): (id: string) => string {
  const ids = all.map(({ id }) => id).sort();
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

/** The refusal of an id that fits no row. */
export function noId(noun: string, id: string): Refused {
  const why = id.length < 8 ? "an id takes at least 8 characters, and " : "";
  const list = `\`keyhole ${noun} list\` shows the ids.`;
  return new Refused("not_found", `There is no ${noun} ${JSON.stringify(id)}: ${why}${list}`);
}
