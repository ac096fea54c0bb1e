import { type SQL, sql } from "drizzle-orm";
import type { Database } from "./database.ts";

/**
 * The common table expressions `items`, whose columns are to be called id, name, version, environments, sealed and
 * updated_at, and `total`, how many sealed bytes these have together. Of large values neither database reads more for
 * that than their lengths.
 *
 * @param from - all of the select statement that follows its columns
 */
export function sizedItems(database: Database, columns: SQL, sealed: SQL, from: SQL): SQL {
  const items = sql`select ${columns}, ${sealed} as sealed ${from}`;
  // PostgreSQL looks each row up once, and keeps pointers to what is large. SQLite would keep copies, so it looks twice.
  return database.dialect === "postgres"
    ? sql`items as materialized (${items}), total as (select coalesce(sum(length(sealed)), 0) as bytes from items)`
    : sql`items as not materialized (${items}), total as materialized (
        select coalesce(sum(bytes), 0) as bytes from (select length(${sealed}) as bytes ${from}))`;
}

/**
 * Part 2 of what a statement returns. Where all items together have more sealed bytes than the parameter `bytesMax` none
 * comes with its own: `sealed` is null and `number` says how many there are.
 */
export const sizedItemsPart: SQL = sql`
    select 2, id, name, case when ${fits()} then version else length(sealed) end, environments,
      case when ${fits()} then sealed end, updated_at
    from total cross join items`;

function fits(): SQL {
  return sql`total.bytes <= cast(${sql.placeholder("bytesMax")} as bigint)`;
}
