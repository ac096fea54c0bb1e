import { HostRefused } from "../core/refused.ts";
import { excerpt } from "../core/visible.ts";

/*
 * Who can change the schema can make the database say one thing and do another: a trigger that removes what was just
 * written, a policy that hides it from everybody later, a view in a table's place. Reading a row back shows none of
 * this. So the catalogue is asked whether our tables are as our migrations made them.
 *
 * - A change asks inside its transaction, after its last write. Each such addition needs a lock that a row write keeps
 *   others from taking (PostgreSQL: ROW EXCLUSIVE against SHARE ROW EXCLUSIVE or more; SQLite has one writer).
 * - The journal of reads asks with each batch about the table that it writes to. It holds that table's lock by then.
 * - A server asks on each new client of the database, and again when the last answer is a minute old.
 */

/**
 * Goes on only if there is none.
 * @param found - such as `trigger t on table api_keys`; the first three are named
 * @throws Refused `unavailable`
 */
export function refuseAdditions(found: readonly string[]): void {
  if (found.length === 0) return;
  const what = found.slice(0, 3).map(excerpt).join(", ");
  const words = `Nothing was done: the database has things that Keyhole did not make, and that may hide or lose writes: ${what}. Remove it, then run \`keyhole audit verify\`.`;
  throw new HostRefused("unavailable", words, { forPersons });
}

const forPersons = "Nothing was done, because the database has what Keyhole did not make: ask an operator.";
