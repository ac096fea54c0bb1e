import { Database as SqliteFile } from "bun:sqlite";
import { refuseAdditions } from "./guard.ts";

/** An object of a schema, as `sqlite_schema` has it. */
type SchemaRow = { readonly type: string; readonly name: string; readonly table: string; readonly sql: string };

/** The tables and indexes that migrations make: the text of each by its name. */
export type Schema = ReadonlyMap<string, string>;

/** @param statements - of all migrations, in order */
export function schemaOf(statements: readonly string[]): Schema {
  const file = new SqliteFile(":memory:");
  for (const statement of statements) file.run(statement);
  const rows = file.query<SchemaRow, []>(schemaQuery).all();
  file.close();
  return new Map(rows.flatMap(({ type, name, sql }) => (type === "view" ? [] : [[name, quotesAlike(sql)] as const])));
}

/**
 * Prepares the question whether a database has additions. It is answered by the texts of the schema, since SQLite acts
 * on them alone. Tables and indexes run no code when a row is written, and nothing of Keyhole reads its view.
 * @param made - our tables are exactly these. A server does without: a newer program may migrate beside it.
 * @returns a function that throws Refused `unavailable`
 */
export function sqliteGuard(file: SqliteFile, made: Schema = new Map()): () => void {
  const query = file.query<SchemaRow, []>(schemaQuery);
  return () => {
    const rows = query.all();
    const isMade = ({ name, sql }: SchemaRow) => made.get(name) === quotesAlike(sql);
    const isHarmless = ({ table, sql }: SchemaRow) =>
      harmless.test(sql) && (made.size > 0 ? !made.has(table.toLowerCase()) : !/\bon\s+conflict\b/i.test(sql));
    const added = rows.filter((row) => !isMade(row) && !isHarmless(row));
    const present = new Set(rows.filter(isMade).map(({ name }) => name));
    refuseAdditions([
      ...added.map(({ type, name, table }) => (name === table ? `${type} ${name}` : `${type} ${name} on ${table}`)),
      ...[...made.keys()].filter((name) => !present.has(name)).map((name) => `something in place of ${name}`),
    ]);
  };
}

const harmless = /^CREATE (?:TABLE|(?:UNIQUE )?INDEX|VIEW .audit_entries.) /i;
// An index that a constraint makes has no text.
const schemaQuery =
  "select type, name, tbl_name as 'table', sql from sqlite_schema where sql is not null order by name";

/** A table that was renamed, and renamed back, has its name in other quotes. */
function quotesAlike(sql: string): string {
  return sql.replaceAll('"', "`");
}
