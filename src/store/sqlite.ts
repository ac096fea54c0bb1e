import { Database as SqliteFile } from "bun:sqlite";
import { chmodSync } from "node:fs";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { Fault } from "../core/fault.ts";
import { makeIfAbsent } from "../core/whole-file.ts";
import { compile, type Database, type Db, type Use, unavailable } from "./database.ts";
import { migrations } from "./migrate.ts";
import { isSameDatabase } from "./sqlite-file.ts";
import { type Schema, schemaOf, sqliteGuard } from "./sqlite-guard.ts";
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
  let requireMade: (() => void) | undefined;
  const requireSound = soundness(path, use === "admin" ? undefined : sqliteGuard(file));
  const [begin, commit] = [file.query("BEGIN"), file.query("COMMIT")];
  const db = drizzle(file, { schema: sqliteTables }) as unknown as Db;
  // `false`: the file is closed with its last prepared statement, where `true` would throw and leave it open.
  const close = async () => file.close(false);
  return {
    dialect: "sqlite",
    db,
    tables: sqliteTables,
    nowMs: sql`cast(unixepoch('subsec') * 1000 as integer)`,
    server: sql`''`,
    indexOf: (text, part) => sql`instr(${text}, ${part})`,
    isMember: (column, json) => sql`${column} in (select value from json_each(${json}))`,
    query: (query) => {
      const { text, parametersOf } = compile(db, query);
      const statement = file.query(text);
      return async (values) => {
        try {
          requireSound();
          const rows = statement.all(...(parametersOf(values) as never[]));
          return rows.map((row) => withBuffers(row as Record<string, unknown>)) as never;
        } catch (error) {
          throw unavailable(error);
        }
      };
    },
    inOneRead: (work) => {
      const run = (statement: typeof begin) => {
        try {
          statement.run();
        } catch (error) {
          throw unavailable(error);
        }
      };
      run(begin);
      try {
        return work();
      } finally {
        if (file.inTransaction) run(commit);
      }
    },
    transaction: (work, tables) =>
      inTurn(async () => {
        file.run("BEGIN IMMEDIATE");
        try {
          // Nobody else can write to the schema before the transaction ends.
          requireMade ??= sqliteGuard(file, madeSchema());
          if (tables === undefined) requireMade();
          else sqliteGuard(file, madeSchema(tables))();
          const result = await work(db);
          file.run("COMMIT");
          return result;
        } catch (error) {
          if (file.inTransaction) file.run("ROLLBACK");
          throw error;
        }
      }),
    // BEGIN IMMEDIATE keeps every other writer out already.
    locked: (query) => query,
    lockProject: async () => {},
    pool: { underWay: 0, connectionsMax: 1 },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Makes an empty file for the embedded database if there is none. Its mode is 0600 from then on. A file that is there is
 * not opened: closing it would free SQLite's own locks of this process.
 */
export function makeFile(path: string): void {
  makeIfAbsent(path);
  chmodSync(path, 0o600);
}

const schemas = new Map<number, Schema>();

/** What the first migrations make of an empty database. @param count - by default all of them */
function madeSchema(count = migrations.sqlite.length): Schema {
  return schemas.getOrInsertComputed(count, () =>
    schemaOf(migrations.sqlite.slice(0, count).flatMap(({ sql }) => sql)),
  );
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
  if (use === "look-up" || use === "serve" || use === "files" || use === "watch") file.run("PRAGMA query_only = ON");
  return file;
}

/**
 * Throws while the files are not in their place, or the tables are not as Keyhole made them. After both were right, it
 * looks again after 200 ms.
 */
function soundness(path: string, requireUntouched?: () => void): () => void {
  const isSame = isSameDatabase(path);
  let seenAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs - seenAtMs < 200) return;
    if (!isSame()) throw new Fault("unavailable", `${path} was deleted or replaced while it was open`);
    requireUntouched?.();
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
