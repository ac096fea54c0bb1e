import { Database as SqliteFile } from "bun:sqlite";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { Fault } from "../core/fault.ts";
import { compile, type Database, type Db, type Use, unavailable } from "./database.ts";
import { isSameDatabase } from "./sqlite-file.ts";
import { sqliteTables } from "./tables.ts";

/** Runs one piece of work after the other. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * Lets the transactions of one process take turns, also those on different connections. Two at once would stop the
 * event loop: the second waits for a lock that the first cannot release while the second waits.
 */
export function turns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
}

/**
 * Opens the embedded database file. If it is absent, that is an error: an empty one would hide that it is gone.
 * @param inTurn - shared by the connections of this process; without it, only this connection's transactions take turns
 */
export function openSqlite(path: string, use: Use, inTurn = turns()): Database {
  const file = openFile(path, use);
  const requireFiles = filesGuard(path);
  const db = drizzle(file, { schema: sqliteTables }) as unknown as Db;
  return {
    dialect: "sqlite",
    db,
    tables: sqliteTables,
    nowMs: sql`cast(unixepoch('subsec') * 1000 as integer)`,
    indexOf: (text, part) => sql`instr(${text}, ${part})`,
    isMember: (column, json) => sql`${column} in (select value from json_each(${json}))`,
    query: (query) => {
      const { text, parametersOf } = compile(db, query);
      const statement = file.query(text);
      return async (values) => {
        try {
          requireFiles();
          const rows = statement.all(...(parametersOf(values) as never[]));
          return rows.map((row) => withBuffers(row as Record<string, unknown>)) as never;
        } catch (error) {
          throw unavailable(error);
        }
      };
    },
    transaction: (work) =>
      inTurn(async () => {
        file.run("BEGIN IMMEDIATE");
        try {
          const result = await work(db);
          file.run("COMMIT");
          return result;
        } catch (error) {
          if (file.inTransaction) file.run("ROLLBACK");
          throw error;
        }
      }),
    lockProject: async () => {}, // BEGIN IMMEDIATE keeps every other writer out already
    pool: { underWay: 0, connectionsMax: 1 },
    close: async () => {
      // `false`: the file is closed with its last prepared statement, where `true` would throw and leave it open.
      file.close(false);
    },
  };
}

function openFile(path: string, use: Use): SqliteFile {
  const file = new SqliteFile(path, { create: false, readwrite: true, strict: true });
  // Last uses of keys can wait: the event loop must not stop for another process's lock.
  file.run(`PRAGMA busy_timeout = ${use === "journal" ? 0 : 5000}`);
  file.run("PRAGMA journal_mode = WAL");
  file.run("select 1 from sqlite_schema"); // so that -wal and -shm are there
  file.run("PRAGMA synchronous = FULL");
  file.run("PRAGMA foreign_keys = ON");
  file.run("PRAGMA trusted_schema = OFF");
  if (use === "look-up" || use === "serve" || use === "files") file.run("PRAGMA query_only = ON");
  return file;
}

/** Throws a Fault while the files are not in their place. Once they were, it looks again after 200 ms. */
function filesGuard(path: string): () => void {
  const isSame = isSameDatabase(path);
  let seenAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs - seenAtMs < 200) return;
    if (!isSame()) throw new Fault("unavailable", `${path} was deleted or replaced while it was open`);
    seenAtMs = nowMs;
  };
}

/** Small bytes are copied, which costs 0.1 µs. Asking the driver's arrays for their `buffer` costs 0.5 µs. */
function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  for (const name in row) {
    const value = row[name];
    if (typeof value !== "object" || value === null) continue;
    const bytes = value as Uint8Array;
    row[name] = bytes.length > 1024 ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) : Buffer.from(bytes);
  }
  return row;
}
