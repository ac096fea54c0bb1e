import { sql } from "drizzle-orm";
import { contentBytesMax } from "../names.ts";
import type { Database } from "./database.ts";
import { type Authorized, authorized, bounded, type Standing, standingColumns } from "./reach.ts";

/** A content without its bytes; nulls if there is none. */
export type ContentRow = Standing & {
  readonly id: string | null;
  readonly size: number;
  /** Of the content and its data key: PostgreSQL changes it with every write to one of them. Empty on SQLite. */
  readonly rowVersion: string;
};

/** A piece of a sealed content with the data key that opens it. */
export type ContentPiece = ContentRow & {
  readonly generation: number;
  readonly sealedBytes: number;
  /** Null if the content is larger than any that Keyhole writes. */
  readonly bytes: Buffer | null;
  readonly rootId: string | null;
  readonly wrapped: Buffer | null;
};

export type ContentQueries = ReturnType<typeof contentQueries>;

/** Prepares the reads of contents; `pieces` runs on a pool of its own, so that bulk never delays a lookup. */
export function contentQueries(database: Database, bulk: Database) {
  const { fileContents: c, dataKeys: d } = database.tables;
  // Spelled so that no index of projects is used: the ids lead to fewer rows.
  const chosen = sql`standing
    left join ${c} on ${c.projectId} || '' = standing.reached and ${database.isMember(c.id, sql.placeholder("ids"))}`;
  const dataKey = sql`${d} on ${d.projectId} = ${c.projectId} and ${d.generation} = ${c.generation}`;
  const columns = sql`${standingColumns}, ${c.id} as id, ${c.size} as size, ${
    database.dialect === "postgres" ? sql`concat_ws(' ', ${c}.xmin, ${c}.ctid, ${d}.xmin, ${d}.ctid)` : sql`''`
  } as "rowVersion"`;
  const find = database.query<ContentRow>(sql`
    with ${authorized(database)}
    select ${columns} from ${chosen} left join ${dataKey}`);
  // SQLite copies all that `substr` looks at, so there a content has one piece.
  const integer = (name: string) => sql`cast(${sql.placeholder(name)} as integer)`;
  const piece =
    bulk.dialect === "postgres" ? sql`substr(${c.sealed}, ${integer("from")}, ${integer("length")})` : sql`${c.sealed}`;
  const pieces = bulk.query<ContentPiece>(sql`
    with ${authorized(bulk)}
    select ${columns}, ${c.generation} as generation,
      octet_length(${c.sealed}) as "sealedBytes",
      case when octet_length(${c.sealed}) <= ${sql.raw(String(sealedBytesMax))} then ${piece} end as bytes,
      ${bounded(d.rootId, 64)} as "rootId", ${bounded(d.wrapped, 128)} as wrapped
    from ${chosen}
    left join ${dataKey}`);
  return {
    hasRowVersions: database.dialect === "postgres",
    /** How many sealed bytes one statement should fetch. PostgreSQL's are hex text, decoded on the event loop. */
    pieceBytes: bulk.dialect === "postgres" ? 512 * 1024 : 16 * 1024 * 1024,
    /** Which of these contents the project has. At least one row, unless the key is gone. */
    find: (at: Authorized, ids: readonly string[]) => find({ ...at, ids: JSON.stringify(ids) }),
    /** The same with `length` sealed bytes of each from `from` on, counted from 1. */
    pieces: (at: Authorized, ids: readonly string[], from: number, length: number) =>
      pieces({ ...at, ids: JSON.stringify(ids), from, length }),
  };
}

/** A content of the largest size in its envelope, with room to spare. */
const sealedBytesMax = contentBytesMax + 1024;
