import { sql } from "drizzle-orm";
import { contentBytesMax } from "../core/names.ts";
import { type Database, integerValue, literal } from "./database.ts";
import { grouped } from "./grouped.ts";
import {
  type Authorized,
  authorized,
  dataKeyColumns,
  rowVersionOf,
  type Standing,
  standingColumns,
  withDataKey,
} from "./reach.ts";

/** A content without its bytes; nulls if there is none. */
export type ContentRow = Standing & {
  readonly id: string | null;
  readonly size: number;
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

/** Prepares the reads of contents. Pieces are read from `bulk`, a pool of their own, so that they delay no lookup. */
export function contentQueries(database: Database, bulk: Database) {
  const { fileContents: c } = database.tables;
  // `|| ''` keeps the planner off the index of projects: the ids lead to fewer rows.
  const chosen = sql`standing
    left join ${c} on ${c.projectId} || '' = standing.reached and ${database.isMember(c.id, sql.placeholder("ids"))}
    ${withDataKey(database, c)}`;
  const columns = sql`${standingColumns}, ${c.id} as id, ${c.size} as size,
    ${rowVersionOf(database, c)} as "rowVersion"`;
  const find = database.query<ContentRow>(sql`with ${authorized(database)} select ${columns} from ${chosen}`);
  const findTogether = database.dialect === "postgres" ? groupedFind(database) : undefined;
  // SQLite copies all that `substr` looks at, so there a content has one piece.
  const piece =
    bulk.dialect === "postgres"
      ? sql`substr(${c.sealed}, ${integerValue("from")}, ${integerValue("length")})`
      : sql`${c.sealed}`;
  const pieces = bulk.query<ContentPiece>(sql`
    with ${authorized(bulk)}
    select ${columns}, ${c.generation} as generation, octet_length(${c.sealed}) as "sealedBytes",
      case when octet_length(${c.sealed}) <= ${literal(sealedBytesMax)} then ${piece} end as bytes,
      ${dataKeyColumns(bulk)}
    from ${chosen}`);
  const idsOf = (at: Authorized, ids: readonly string[]) => ({ ...at, ids: JSON.stringify(ids) });
  return {
    hasRowVersions: database.dialect === "postgres",
    /** How many sealed bytes one statement should fetch. PostgreSQL's are hex text, decoded on the event loop. */
    pieceBytes: bulk.dialect === "postgres" ? 512 * 1024 : 16 * 1024 * 1024,
    /** Which of these contents the project has. At least one row, unless the key is gone. */
    find: (at: Authorized, ids: readonly string[]) =>
      findTogether !== undefined && ids.length <= groupedIdsMax ? findTogether({ at, ids }) : find(idsOf(at, ids)),
    /** The same with `length` sealed bytes of each from `from` on, counted from 1. */
    pieces: (at: Authorized, ids: readonly string[], from: number, length: number) =>
      pieces({ ...idsOf(at, ids), from, length }),
  };
}

/** Requests for more contents have a statement of their own, so that others do not wait for it. */
const groupedIdsMax = 32;

/** The rows of contents on PostgreSQL. Requests that wait at the same moment share a statement, as with lookups. */
function groupedFind(database: Database) {
  const { fileContents: c } = database.tables;
  const asks = sql`jsonb_to_recordset(${sql.placeholder("asks")}::text::jsonb)
    as ask(n integer, key_id text, slug text, project_id text, ids text)`;
  const find = database.query<Standing & { readonly n: number; readonly contents: string | null }>(sql`
    with ${authorized(database, asks, sql`ask.n as n, ask.ids as ids,`)}
    select standing.n as n, ${standingColumns}, (
      select string_agg(concat_ws(' ', ${c.id}, ${c.size}, ${rowVersionOf(database, c)}), ';')
      from ${c} ${withDataKey(database, c)}
      where ${c.projectId} || '' = standing.reached and ${database.isMember(c.id, sql`standing.ids`)}) as contents
    from standing`);
  return grouped(async (asked: readonly { readonly at: Authorized; readonly ids: readonly string[] }[]) => {
    const found: ContentRow[][] = asked.map(() => []);
    const asks = asked.map(({ at: { keyId, slug, projectId }, ids }, n) => {
      return { n, key_id: keyId, slug, project_id: projectId, ids: JSON.stringify(ids) };
    });
    for (const { n, contents, ...standing } of await find({ asks: JSON.stringify(asks) })) {
      found[n] = (contents ?? "").split(";").map((content) => {
        const [id = "", size = ""] = content.split(" ", 2);
        return { ...standing, id, size: Number(size), rowVersion: content.slice(id.length + size.length + 2) };
      });
    }
    return found;
  });
}

/** A content of the largest size in its envelope, with room to spare. */
const sealedBytesMax = contentBytesMax + 1024;
