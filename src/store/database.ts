import { Database as SqliteFile } from "bun:sqlite";
import { is, Param, Placeholder, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { drizzle as drizzleSqlite } from "drizzle-orm/bun-sqlite";
import { drizzle as drizzlePostgres } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { Deadline } from "../deadline.ts";
import { Fault } from "../fault.ts";
import { postgresTables, sqliteTables, type Tables } from "./tables.ts";

/*
 * One face for two databases. Queries are written once, against PostgreSQL's types; the casts below, and the suites
 * that run on both, are what makes that honest. What truly differs stands side by side in this file.
 */

export type { Tables };
export type Db = ReturnType<typeof drizzlePostgres<Tables>>;

/** A prepared query: SQL text made once, run with values by name. Rows are plain; bytes are Buffers, moments numbers. */
export type Query<Row> = (values: Record<string, unknown>) => Promise<Row[]>;

export type Database = {
  readonly dialect: "postgres" | "sqlite";
  readonly db: Db;
  readonly tables: Tables;
  /** The database's clock in epoch milliseconds, as an SQL expression. */
  readonly nowMs: SQL<number>;
  /** Whether a text column is one of the JSON array that a parameter holds: as many look-ups in its index. */
  readonly isMember: (column: SQLWrapper, json: SQLWrapper) => SQL;
  /**
   * Prepares a query that runs on every request.
   * @throws Fault `unavailable` from each run that the database does not answer within 2 s, or at all
   */
  readonly query: <Row>(text: SQL, options?: { retry?: boolean }) => Query<Row>;
  /** Runs `work` in one write transaction that no other writer interleaves with; any throw rolls all of it back. */
  readonly transaction: <T>(work: (db: Db) => Promise<T>) => Promise<T>;
  /** Inside a transaction: keeps other writers of this project out until it ends. */
  readonly lockProject: (db: Db, projectId: string) => Promise<void>;
  /** How many statements are under way now, and how many connections carry them at most. */
  readonly pool: { readonly underWay: number; readonly connectionsMax: number };
  readonly close: () => Promise<void>;
};

/** What a connection is for: its deadlines and what the database lets it do. */
export type Use = "look-up" | "serve" | "files" | "journal" | "admin";

export const queryDeadlineMs = 2000;
const renewEveryMs = 100;
const attemptsMax = 3;

/** Opens PostgreSQL. Connections are made when first used; see {@link warm}. */
export function openPostgres(url: string, use: Use): Database {
  const clients = new Clients((closed) =>
    postgres(url, {
      ...poolOf[use],
      onclose: closed,
      connect_timeout: 2,
      // A database that comes back is noticed within a fraction of a second, however long it was away.
      backoff: () => 0.2,
      idle_timeout: 0,
      max_lifetime: null,
      // Nothing here is an array; and a connection lost while the driver asks for types is a rejection that reaches nobody.
      fetch_types: false,
      onnotice: () => {},
      connection: { application_name: `keyhole ${use}`, ...sessionOf[use] },
      types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    } as postgres.Options<{ bigint: postgres.PostgresType<number> }>),
  );
  const pool = { underWay: 0, connectionsMax: poolOf[use].max };
  const deadline = new Deadline(
    queryDeadlineMs,
    () => new Fault("unavailable", "the database did not answer within 2 s"),
  );
  const db = drizzlePostgres(clients.client as unknown as postgres.Sql, { schema: postgresTables });
  const dialect = (db as unknown as { dialect: SqlDialect }).dialect;
  return {
    dialect: "postgres",
    db,
    tables: postgresTables,
    // Without floor the cast rounds, and the last half millisecond of a key would be gone.
    nowMs: sql`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`,
    // Through text: told that a parameter is jsonb, postgres.js would make JSON of the JSON.
    isMember: (column, json) => sql`${column} = any(array(select jsonb_array_elements_text(${json}::text::jsonb)))`,
    query: (text, options) => {
      const compiled = dialect.sqlToQuery(text);
      const parametersOf = parametersFor(compiled.params);
      const attempts = options?.retry === false ? 1 : attemptsMax;
      return async (values) => {
        const parameters = parametersOf(values) as never[];
        pool.underWay += 1;
        const { answer, giveUp } = clients.ask(attempts, (client) =>
          client.unsafe(compiled.sql, parameters, { prepare: true }),
        );
        try {
          return (await deadline.of(answer, giveUp)) as never;
        } catch (error) {
          throw refused(error);
        } finally {
          pool.underWay -= 1;
        }
      };
    },
    transaction: (work) => db.transaction((inner) => work(inner as unknown as Db)),
    lockProject: async (inner, projectId) => {
      const { projects } = postgresTables;
      await inner.select({ id: projects.id }).from(projects).where(sql`${projects.id} = ${projectId}`).for("update");
    },
    pool,
    close: () => clients.close(),
  };
}

/**
 * The driver's client for one use, made anew once one of its connections has closed or has not answered in time.
 *
 * With postgres.js 3.4.9 a connection that closes in the middle of an answer keeps what it had of it, rows included, and
 * opens again under the queries that wait: these may then be given rows of another query. One that broke with bytes
 * unsent never sends any again, and one whose other end vanished without a word stays. So no answer of a client counts
 * that arrives after any of its connections has closed: what it was asked is asked of the next one.
 */
export class Clients<Client extends { end(options: { timeout: number }): Promise<void> }> {
  readonly #connect: (closed: () => void) => Client;
  #client: Client;
  #distrusted = false;
  #closed = false;
  #madeAt = performance.now();

  /** @param connect - makes a client that calls `closed` at once when a connection of its closes */
  constructor(connect: (closed: () => void) => Client) {
    this.#connect = connect;
    this.#client = this.#make();
  }

  /** The client itself, for what is not asked again: a command's transactions. */
  get client(): Client {
    return this.#client;
  }

  /**
   * Asks, and asks again where a connection failed meanwhile.
   * @returns the answer, and how to give it up: its client is not trusted any more then, and nobody is asked again
   * @throws into the answer: whatever the query throws; Fault `unavailable` where connections fail time after time, it was
   *   closed, or given up
   */
  ask<T>(
    attempts: number,
    query: (client: Client) => PromiseLike<T>,
  ): { readonly answer: Promise<T>; readonly giveUp: () => void } {
    const asked: Asked<Client> = { client: undefined, givenUp: false };
    const giveUp = () => {
      asked.givenUp = true;
      if (asked.client === this.#client) this.#distrusted = true;
    };
    return { answer: this.#ask(attempts, query, asked), giveUp };
  }

  async #ask<T>(attempts: number, query: (client: Client) => PromiseLike<T>, asked: Asked<Client>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const client = this.#distrusted ? await this.#next() : this.#client;
      if (asked.givenUp) throw new Fault("unavailable", "nobody waits for it any more");
      asked.client = client;
      try {
        const answer = await query(client);
        if (client === this.#client && !this.#distrusted) return answer;
        if (attempt >= attempts) throw new Fault("unavailable", "a connection to the database closed meanwhile");
      } catch (error) {
        const before = client !== this.#client || this.#distrusted;
        // After an error of the database's, too: the driver goes on counting rows where the answer broke off, and the
        // next one on that connection begins with as many holes.
        if (!(error instanceof Fault) && client === this.#client) this.#distrusted = true;
        // What another query's connection left behind looks like an answer of the database's, or like a defect.
        const doubtful = before || isConnectionFailure(error);
        if (error instanceof Fault || !doubtful || attempt >= attempts) throw error;
      }
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#client.end({ timeout: 1 });
  }

  /** While the database is away every connection fails, and not each of them is worth a new client: some wait. */
  async #next(): Promise<Client> {
    // Timers may wake a little early, so the clock is asked again.
    while (this.#distrusted) {
      if (this.#closed) throw new Fault("unavailable", "the database was closed meanwhile");
      const youngMs = renewEveryMs - (performance.now() - this.#madeAt);
      if (youngMs > 0) {
        await Bun.sleep(Math.ceil(youngMs));
        continue;
      }
      const old = this.#client;
      // Not at once: what waits on it in vain would be asked again late, and its caller wait twice as long.
      setTimeout(() => void old.end({ timeout: 0 }).catch(() => {}), queryDeadlineMs).unref();
      this.#client = this.#make();
    }
    return this.#client;
  }

  #make(): Client {
    this.#distrusted = false;
    this.#madeAt = performance.now();
    const client: Client = this.#connect(() => {
      if (client === this.#client) this.#distrusted = true;
    });
    return client;
  }
}

type Asked<Client> = { client: Client | undefined; givenUp: boolean };

/** Opens the embedded database file, which is made if absent. */
export function openSqlite(path: string, use: Use): Database {
  const file = new SqliteFile(path, { create: true, readwrite: true, strict: true });
  // The journal waits by its own clock, off the event loop's back: a lock that another process holds must not stop reads.
  file.run(`PRAGMA busy_timeout = ${use === "journal" ? 0 : 5000}`);
  file.run("PRAGMA journal_mode = WAL");
  file.run("PRAGMA synchronous = FULL");
  file.run("PRAGMA foreign_keys = ON");
  file.run("PRAGMA trusted_schema = OFF");
  if (use === "look-up" || use === "serve" || use === "files") file.run("PRAGMA query_only = ON");
  const db = drizzleSqlite(file, { schema: sqliteTables }) as unknown as Db;
  const dialect = (db as unknown as { dialect: SqlDialect }).dialect;
  const pool = { underWay: 0, connectionsMax: 1 };
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };
  return {
    dialect: "sqlite",
    db,
    tables: sqliteTables,
    nowMs: sql`cast(unixepoch('subsec') * 1000 as integer)`,
    isMember: (column, json) => sql`${column} in (select value from json_each(${json}))`,
    query: (text) => {
      const compiled = dialect.sqlToQuery(text);
      const statement = file.query(compiled.sql);
      const parametersOf = parametersFor(compiled.params);
      return async (values) => {
        try {
          const rows = statement.all(...(parametersOf(values) as never[]));
          return rows.map((row) => withBuffers(row as Record<string, unknown>)) as never;
        } catch (error) {
          throw refused(error);
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
    pool,
    close: async () => {
      // Without the prepared statements gone the file stays open, and its -wal and -shm beside it.
      file.close(false);
    },
  };
}

/** Makes one connection, so that the first request does not wait for it. @throws Fault `unavailable` */
export async function warm(database: Database): Promise<void> {
  await database.query(sql`select 1 as one`)({});
}

type SqlDialect = { sqlToQuery(text: SQL): { sql: string; params: unknown[] } };

// A pipeline of 2: deeper ones queue fast queries behind a slow one while other connections idle (measured: 39 of 40).
const poolOf = {
  // Few, so that those in use stay warm: with ten in turn a look-up took a fifth more of PostgreSQL's time (measured).
  "look-up": { max: 4, max_pipeline: 2 },
  serve: { max: 6, max_pipeline: 2 },
  files: { max: 3, max_pipeline: 1 },
  journal: { max: 1, max_pipeline: 1 },
  admin: { max: 1 },
} as const;

// Every statement of a request is an index look-up by design; a plan made while the tables were small must not say
// otherwise later, and no statistics need to have been gathered for it.
const lookupsOnly = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_material: "off",
  jit: "off",
  max_parallel_workers_per_gather: 0,
  plan_cache_mode: "force_generic_plan",
};
// Ours is the deadline. PostgreSQL's own ends what nobody waits for any more; it counts on while this process stands still.
const readsOnly = { statement_timeout: queryDeadlineMs + 1000, default_transaction_read_only: true, ...lookupsOnly };
const sessionOf = {
  "look-up": readsOnly,
  serve: readsOnly,
  files: readsOnly,
  journal: { statement_timeout: queryDeadlineMs, lock_timeout: queryDeadlineMs, synchronous_commit: "on" },
  admin: {},
};

/** A database's failure; its own words never travel on. */
function refused(error: unknown): Fault {
  if (error instanceof Fault) return error;
  return new Fault("unavailable", `the database refused: ${databaseErrorCode(error)}`);
}

/**
 * Fills a compiled statement's placeholders by name, as drizzle's own function does. That one asks of each what it is,
 * whenever the statement runs; this asks once.
 */
function parametersFor(compiled: readonly unknown[]): (values: Record<string, unknown>) => unknown[] {
  const names = compiled.map((parameter) => {
    if (is(parameter, Placeholder)) return parameter.name;
    if (is(parameter, Param)) throw new TypeError("a prepared query takes its values by placeholder");
    return undefined;
  });
  return (values) =>
    names.map((name, at) => {
      if (name === undefined) return compiled[at];
      const value = values[name];
      if (value === undefined) throw new TypeError(`a prepared query was given no ${name}`);
      return value;
    });
}

/** SQLSTATE, SQLite's or the driver's code: the one part of a database error that quotes no input. */
export function databaseErrorCode(error: unknown): string {
  const source = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = (source as { code?: unknown } | null)?.code;
  return typeof code === "string" || typeof code === "number" ? String(code) : "no code";
}

/** Whether a connection failed or was ended, rather than a statement: no SQLSTATE, or one of classes 08 and 57P. */
export function isConnectionFailure(error: unknown): boolean {
  const code = databaseErrorCode(error);
  return !/^(?=.*\d)[0-9A-Z]{5}$/.test(code) || /^(?:08|57P)/.test(code); // EPIPE has five letters too, and no digit
}

/**
 * Whether an error that reached nobody is that of a connection. postgres.js lets some of those out beside what it tells
 * the queries they happened to: a socket's last one, once it listens no more.
 */
export function isStrayConnectionFailure(error: unknown): boolean {
  return strayCodes.test(databaseErrorCode(error));
}

const strayCodes =
  /^(?:08\w{3}|57P\d\d|E(?:CONNRESET|CONNREFUSED|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH)|CONNECTION_\w+|CONNECT_TIMEOUT)$/;

function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  for (const name in row) {
    const value = row[name];
    if (value instanceof Uint8Array) row[name] = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  return row;
}
