import { is, Param, Placeholder, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { drizzle } from "drizzle-orm/postgres-js";
import { Fault } from "../core/fault.ts";
import { Refused } from "../core/refused.ts";
import type { Tables } from "./tables.ts";

// Queries are written once, against PostgreSQL's types; `postgres.ts` and `sqlite.ts` make both databases fit.

export type { Tables };
export type Db = ReturnType<typeof drizzle<Tables>>;

/**
 * For a transaction that takes an exclusive lock, such as a migration. While a session waits for it, the journal waits too,
 * for 1.8 s at most.
 */
export const lockTimeout = sql`set local lock_timeout = 500`;

/** A prepared query, run with values by name. Rows are plain objects: bytes are Buffers, times numbers. */
export type Query<Row> = (values: Readonly<object>) => Promise<Row[]>;

export type Database = AsyncDisposable & {
  readonly dialect: "postgres" | "sqlite";
  readonly db: Db;
  readonly tables: Tables;
  /** The database's clock in epoch milliseconds, as an SQL expression. */
  readonly nowMs: SQL<number>;
  /** A text that is another one for each server, and after each start of it. */
  readonly server: SQL<string>;
  /** Where `part` begins in a text, from 1; 0 if it does not occur. */
  readonly indexOf: (text: SQLWrapper, part: SQLWrapper) => SQL;
  /** Whether a text column is one of the JSON array that a parameter holds: one index lookup for each element. */
  readonly isMember: (column: SQLWrapper, json: SQLWrapper) => SQL;
  /**
   * Prepares a query that runs on every request: an INSERT, or a SELECT that may be followed by OFFSET.
   * @throws Fault `unavailable` from each run that fails, takes over 2 s or meets a PostgreSQL standby
   */
  readonly query: <Row>(text: SQL, options?: { retry?: boolean }) => Query<Row>;
  /** Calls `work`. On SQLite, the queries that it begins before it returns share a read transaction. */
  readonly inOneRead: <T>(work: () => T) => T;
  /**
   * Runs `work` in one write transaction that no other writer interleaves with. If it throws, all is rolled back.
   * @param tables - their version before `work`, if it changes them
   * @throws Refused `unavailable` if somebody added to our tables what may hide or lose what is written
   */
  readonly transaction: <T>(work: (db: Db) => Promise<T>, tables?: number) => Promise<T>;
  /** Inside a transaction: the rows of a query, which no other writer changes until the transaction ends. */
  readonly locked: <Row>(query: Lockable<Row>, how?: "update" | "share", of?: PgTable) => PromiseLike<Row[]>;
  /** Inside a transaction: locks the project against other writers until the transaction ends. */
  readonly lockProject: (db: Db, projectId: string) => Promise<void>;
  /** How many statements run now, and how many connections there are at most. */
  readonly pool: { readonly underWay: number; readonly connectionsMax: number };
  readonly close: () => Promise<void>;
};

type Lockable<Row> = PromiseLike<Row[]> & {
  readonly for: (how: "update" | "share", config?: { of: PgTable }) => PromiseLike<Row[]>;
};

/** What a connection is for. It decides deadlines and rights. */
export type Use = "look-up" | "serve" | "files" | "watch" | "journal" | "notary" | "admin";

export const queryDeadlineMs = 2000;

/** A value of a prepared query by its name, as text. */
export const textValue = (name: string): SQL => sql`cast(${sql.placeholder(name)} as text)`;
/** A value of a prepared query by its name, as a whole number. */
export const integerValue = (name: string): SQL => sql`cast(${sql.placeholder(name)} as integer)`;
/** A number in the text of a statement. */
export const literal = (value: number): SQL => sql.raw(String(value));

/** Makes one connection, so that the first request does not wait for it. @throws Fault `unavailable` */
export async function warm(database: Database): Promise<void> {
  await database.query(sql`select 1 as one`)({});
}

/** What the database's clock says, in epoch milliseconds. */
export async function clockOf({ db, nowMs }: Pick<Database, "db" | "nowMs">): Promise<number> {
  const [row] = await db.select({ now: nowMs }).from(sql`(select 1) as one`);
  return Number(row?.now);
}

/** What drizzle's two dialects share, under their private types. */
type SqlDialect = { sqlToQuery(text: SQL): { sql: string; params: unknown[] } };

/** A statement's text, and its parameters for values by name. Drizzle's own way inspects them on each run. */
export function compile(db: Db, statement: SQL) {
  const { sql: text, params } = (db as unknown as { dialect: SqlDialect }).dialect.sqlToQuery(statement);
  const names = params.map((parameter) => {
    if (is(parameter, Placeholder)) return parameter.name;
    if (is(parameter, Param)) throw new TypeError("a prepared query takes its values by placeholder");
    return undefined;
  });
  const parametersOf = (values: Readonly<object>) =>
    names.map((name, at) => {
      if (name === undefined) return params[at];
      const value = (values as Readonly<Record<string, unknown>>)[name];
      if (value === undefined) throw new TypeError(`a prepared query was given no ${name}`);
      return value;
    });
  return { text, parametersOf };
}

/** The Fault for rows that were damaged on their way: they say nothing about a key. */
export function malformed(): Fault {
  return new Fault("unavailable", "the database's answer is not of the shape that was asked for");
}

/** The Fault for a database's failure. Its message has the code and nothing else of the error. */
export function unavailable(error: unknown): Fault {
  if (error instanceof Fault) return error;
  if (error instanceof Refused) return new Fault("unavailable", error.message, {}, { cause: error });
  const code = databaseErrorCode(error);
  const reason = code === standbyRefusal ? "it is a standby, and only a primary is served from" : code;
  return new Fault("unavailable", `the database refused: ${reason}`, {}, { cause: error });
}

/** Whether a query failed because PostgreSQL is a standby. With its old data, a revoked key may look live. */
export function isStandby(error: unknown): boolean {
  return databaseErrorCode(error) === standbyRefusal;
}

/** SQLSTATE, SQLite's code or the driver's. The rest of a database error may quote input, or be a stranger's text. */
export function databaseErrorCode(error: unknown): string {
  const source = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = (source as { code?: unknown } | null)?.code;
  return /^[\w-]{1,60}$/.test(String(code ?? "")) ? String(code) : "no code";
}

/** Whether the connection failed rather than the statement, or leads to a standby: another one may do better. */
export function isConnectionFailure(error: unknown): boolean {
  const code = databaseErrorCode(error);
  if (!isSqlState(code)) return true;
  return /^(?:08|57P)/.test(code) || code === standbyRefusal || code === "25006";
}

/** Whether it is PostgreSQL that gave this code. A SQLSTATE has a digit, EPIPE has none. */
export function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
}

/** SQLSTATE of a negative OFFSET: no statement has one, except for the check in `onPrimary`. */
const standbyRefusal = "2201X";

/** Whether an unhandled error comes from a connection: postgres.js throws some after it has rejected the queries. */
export function isStrayConnectionFailure(error: unknown): boolean {
  return strayCodes.test(databaseErrorCode(error));
}

const strayCodes =
  /^(?:08\w{3}|57P\d\d|E(?:CONNRESET|CONNREFUSED|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)|CONNECTION_\w+|CONNECT_TIMEOUT)$/;
