import { type SQL, sql } from "drizzle-orm";
import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { Deadline } from "../core/deadline.ts";
import { Fault } from "../core/fault.ts";
import type { Log } from "../core/log.ts";
import { Refused } from "../core/refused.ts";
import { isVerified, type PostgresServer } from "../core/settings/postgres-url.ts";
import { excerpt } from "../core/visible.ts";
import {
  compile,
  type Database,
  type Db,
  databaseErrorCode,
  isSqlState,
  malformed,
  queryDeadlineMs,
  type Use,
  unavailable,
} from "./database.ts";
import { refuseAdditions } from "./guard.ts";
import { Clients } from "./postgres-clients.ts";
import { postgresAdditions, searchPath } from "./postgres-guard.ts";
import { type Wait, watched } from "./postgres-waits.ts";
import { PostgresSignIn, signInFailures } from "./sign-in.ts";
import { postgresTables } from "./tables.ts";

/** The servers that DATABASE_URL names. All pools of a process use the same one, and follow each other to the next. */
export class Servers {
  readonly all: readonly PostgresServer[];
  readonly #pools: ((server: PostgresServer) => void)[] = [];
  readonly #refusals: Map<PostgresServer, Refusal>;
  #at = 0;
  /** Whether a pooler is between that refuses the settings of a session. Then commands do without them. */
  isPooled = false;
  /** Receives what becomes of connections, as events of the log. */
  tell: Log = () => {};
  /** Receives what a command waits for, as a line for a person. */
  say: (line: string) => void = () => {};

  /** @param servers - at least one */
  constructor(servers: readonly PostgresServer[], refusals = new Map<PostgresServer, Refusal>()) {
    this.all = servers;
    this.#refusals = refusals;
  }

  /** One of them, which shares what is known of refused sign-ins. */
  alone(server: PostgresServer): Servers {
    return new Servers([server], this.#refusals);
  }

  /** The server to ask. */
  get current(): PostgresServer {
    return this.all[this.#at] as PostgresServer;
  }

  /** Why no connection is made now; undefined if the last sign-in was not refused. */
  get refusal(): string | undefined {
    return this.#refusals.get(this.current)?.reason;
  }

  /** Goes on to the next server that may be asked, unless another pool did so since `server` was current. */
  leave(server: PostgresServer, nowMs = performance.now()): void {
    if (server !== this.current) return;
    for (let tried = 0; tried < this.all.length; tried++) {
      this.#at = (this.#at + 1) % this.all.length;
      if ((this.#refusals.get(this.current)?.againAtMs ?? 0) <= nowMs) return;
    }
  }

  /** Calls `follow` whenever a pool had a first answer from a server, with that server. */
  watch(follow: (server: PostgresServer) => void): void {
    this.#pools.push(follow);
  }

  /** This server answers: it is the one to ask, and no pool waits any longer for another. */
  answered(server: PostgresServer): void {
    this.#at = this.all.indexOf(server);
    this.#refusals.clear();
    for (const follow of this.#pools) follow(server);
  }

  /**
   * What to sign in to the current server with. After a refusal that is again and again the same for all pools: they
   * try it once in ten seconds together, because a server may lock an account after some failures.
   * @throws Fault `unavailable`
   */
  signIn(nowMs = performance.now()): PostgresServer["connect"] {
    const server = this.current;
    const { connect } = server;
    const refused = this.#refusals.get(server);
    if (refused === undefined || refused.with !== JSON.stringify(connect)) return connect;
    if (nowMs < refused.againAtMs) throw new Fault("unavailable", refused.reason);
    refused.againAtMs = nowMs + signInAgainMs;
    return connect;
  }

  /** The server refused to let somebody in with this, or asked for what it is not given. */
  refused(server: PostgresServer, connect: PostgresServer["connect"], code: string): void {
    const tried = JSON.stringify(connect);
    // A client that was made before the files changed says nothing about what they hold now.
    if (tried !== JSON.stringify(server.connect)) return;
    if (this.#refusals.get(server)?.with === tried) return;
    const words = Object.entries(signInFailures).find(([failure]) => failure === code)?.[1];
    const reason = `${server.name} ${words ?? `refuses the user or the password (${code}): ${server.advice}`}`;
    this.#refusals.set(server, { with: tried, reason, againAtMs: performance.now() + signInAgainMs });
    this.tell({ event: "database_refused", reason });
  }
}

/** A sign-in that a server refused, and when it may be tried again. */
type Refusal = {
  readonly with: string;
  readonly reason: string;
  againAtMs: number;
};

const signInAgainMs = 10_000;
const noticeEveryMs = 60_000;
const noticesMax = 64;

/**
 * Opens PostgreSQL. Connections are made when first used; see `warm`. Every statement has a deadline and goes to a
 * primary, whichever way it comes; only a command's may take as long as they need.
 */
export function openPostgres(servers: Servers, use: Use): Database {
  // A command's sessions have a name of their own, by which another session finds them.
  const name = use === "admin" ? `keyhole ${use} ${crypto.randomUUID().slice(0, 8)}` : `keyhole ${use}`;
  const clients = connect(servers, use, undefined, name);
  type Client = typeof clients.client;
  const pool = { underWay: 0, connectionsMax: poolOf[use].max };
  const deadlineOf = (ms: number) => {
    return new Deadline(ms, () => new Fault("unavailable", `the database did not answer within ${ms / 1000} s`));
  };
  const deadline = deadlineOf(queryDeadlineMs);
  const ofBuilder = use === "notary" ? deadlineOf(notaryDeadlineMs) : deadline;
  const ask = async <T>(attempts: number, work: (client: Client) => PromiseLike<T>, within = deadline): Promise<T> => {
    pool.underWay += 1;
    const { answer, giveUp } = clients.ask(attempts, work);
    return within.of(answer, giveUp).finally(() => {
      pool.underWay -= 1;
    });
  };
  const dbs = new WeakMap<Client, Driven>();
  const dbOf = (client: Client) =>
    dbs.getOrInsertComputed(client, () => drizzle(client as unknown as postgres.Sql, { schema: postgresTables }));
  /** A command's work is never repeated or moved, since nobody would know what became of it. */
  const watch = <T>(work: (client: Client) => PromiseLike<T>): Promise<T> => {
    const server = servers.current;
    const giveUp = () => {
      servers.leave(server);
      clients.leave();
    };
    return watched(Promise.resolve(work(clients.client)), () => waitOf(server, name), servers.say, giveUp);
  };
  const asked = drizzle(statementsBy(), { schema: postgresTables }) as unknown as Db;
  function statementsBy(): postgres.Sql {
    const unsafe = (text: string, parameters: never[]) => {
      const attempts = /^\s*(?:\(|select\b|with\b)/i.test(text) ? attemptsMax : 1;
      const { promise, resolve } = Promise.withResolvers<unknown>();
      let asArrays = false;
      // Of a client whose connections all work: one that broke may never recover.
      const run = (client: Client) => {
        const query = dbOf(client).$client.unsafe(use === "admin" ? text : onPrimary(text), parameters);
        return (asArrays ? query.values() : query) as PromiseLike<Rows>;
      };
      const answer = () => (use === "admin" ? watch(run) : ask(attempts, run, ofBuilder));
      queueMicrotask(() => resolve(answer().then(requireWhole)));
      const values = () => {
        asArrays = true;
        return promise;
      };
      return Object.assign(promise, { values });
    };
    return { options: { parsers: {}, serializers: {} }, unsafe } as unknown as postgres.Sql;
  }
  return {
    dialect: "postgres",
    db: asked,
    tables: postgresTables,
    // Without floor the cast would round, and a key would end up to half a millisecond early.
    nowMs: sql`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`,
    server: sql.raw(serverStart) as SQL<string>,
    indexOf: (text, part) => sql`strpos(${text}, ${part})`,
    // Through text: told that a parameter is jsonb, postgres.js would make JSON of the JSON.
    isMember: (column, json) => sql`${column} = any(array(select jsonb_array_elements_text(${json}::text::jsonb)))`,
    query: (text, options) => {
      const compiled = compile(asked, text);
      const statement = onPrimary(compiled.text);
      const attempts = options?.retry === false ? 1 : attemptsMax;
      return async (values) => {
        const parameters = compiled.parametersOf(values) as never[];
        const run = (client: Client) => client.unsafe(statement, parameters, { prepare: true });
        try {
          return requireWhole(await ask(attempts, run)) as never;
        } catch (error) {
          throw unavailable(error);
        }
      };
    },
    inOneRead: (work) => work(),
    // At this level alone, a statement sees what others committed before it: additions to our tables included.
    transaction: (work) => {
      const run = (client: Client) =>
        dbOf(client).transaction((inner) => guarded(inner as unknown as Db, use, work), {
          isolationLevel: "read committed",
        });
      return use === "admin" ? watch(run) : ask(1, run, ofBuilder);
    },
    locked: (query, how = "update", of) => query.for(how, of && { of }),
    lockProject: async (inner, projectId) => {
      const { projects } = postgresTables;
      await inner.select({ id: projects.id }).from(projects).where(sql`${projects.id} = ${projectId}`).for("update");
    },
    pool,
    close: () => clients.close(),
    [Symbol.asyncDispose]: () => clients.close(),
  };
}

/**
 * Runs `work`, and refuses it if there is an addition to our tables, whatever it returned or threw. The tables that it
 * wrote to get none before the transaction ends.
 */
async function guarded<T>(db: Db, use: Use, work: (db: Db) => Promise<T>): Promise<T> {
  const look = () => requireNoAdditions(() => db.execute(sql.raw(postgresAdditions(use))));
  await db.execute(sql.raw(ofTransaction));
  const result = await work(db).catch(async (error: unknown) => {
    await look().catch((found: unknown) => {
      throw found instanceof Refused ? found : error; // a transaction in which a statement failed answers nothing
    });
    throw error;
  });
  await look();
  return result;
}

// A session cannot ask for `transaction_timeout` as it begins: PostgreSQL before 17 does not know it.
const ofTransaction = `select pg_catalog.set_config('search_path', '${searchPath}', true),
  case when pg_catalog.current_setting('transaction_timeout', true) is not null
    then pg_catalog.set_config('transaction_timeout', '0', true) end`;

async function requireNoAdditions(look: () => PromiseLike<readonly Readonly<Record<string, unknown>>[]>) {
  refuseAdditions((await look()).map(({ what }) => String(what)));
}

type Driven = PostgresJsDatabase<typeof postgresTables> & { readonly $client: postgres.Sql };

type Rows = { readonly command: string; readonly count: number; readonly length: number };

/** A row whose first byte was damaged is passed over by the driver. @throws Fault `unavailable` */
function requireWhole<T extends Rows>(rows: T): T {
  if (rows.command === "SELECT" && rows.length !== rows.count) throw malformed();
  return rows;
}

/**
 * The clients of one use, each on one server.
 * @param noticed - called at each notice or warning of a server, which is logged as well
 */
export function connect(servers: Servers, use: Use, noticed = () => {}, name = `keyhole ${use}`) {
  const toldAtMs = new Map<string, number>();
  const onnotice = ({ severity = "", code = "" }: postgres.Notice) => {
    noticed();
    // Once a minute for each code. Its text is the server's, and may quote what was sent.
    if (performance.now() - (toldAtMs.get(code) ?? Number.NEGATIVE_INFINITY) < noticeEveryMs) return;
    if (toldAtMs.size >= noticesMax) toldAtMs.clear();
    toldAtMs.set(code, performance.now());
    servers.tell({ event: "database_notice", pool: use, severity: excerpt(severity), code: excerpt(code) });
  };
  let server = servers.current;
  let signIn: PostgresServer["connect"];
  const make = (closed: () => void, elsewhere: boolean) => {
    if (elsewhere) servers.leave(server);
    signIn = servers.signIn();
    server = servers.current;
    const { user, pass: password } = signIn;
    const login = { user, password, isVerified: isVerified(signIn) };
    return postgres({
      ...signIn,
      ...poolOf[use],
      // The patched driver calls it for each connection.
      pass: () => new PostgresSignIn(login),
      onclose: closed,
      // Of several servers, one that accepts connections and stands still costs a second. Then another is asked.
      connect_timeout: servers.all.length > 1 ? 1 : 2,
      // However long the database was away, its return is noticed within a fraction of a second. What still waits for a
      // connection that may not sign in must not try the same again and again.
      backoff: () => (servers.refusal === undefined ? 0.2 : signInAgainMs / 1000),
      idle_timeout: "0",
      max_lifetime: null,
      // No column is an array, and a connection that is lost while the driver fetches types rejects unhandled.
      fetch_types: false,
      onnotice,
      connection: {
        ...signIn.connection,
        application_name: name,
        ...(use === "admin" && servers.isPooled ? {} : sessionOf[use]),
      },
      types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    } as unknown as postgres.Options<{ bigint: postgres.PostgresType<number> }>);
  };
  const check = (client: ReturnType<typeof make>) =>
    requireNoAdditions(() => client.unsafe(postgresAdditions(use), [], { prepare: true }));
  const clients = new Clients(make, () => servers.answered(server), use === "admin" ? undefined : check, {
    refused: (code) => servers.refused(server, signIn, code),
    lost: () => servers.tell({ event: "connection_lost", pool: use }),
  });
  // A command's transaction is never repeated, so nothing may end it.
  if (use !== "admin") servers.watch((answering) => answering !== server && clients.leave());
  return clients;
}

/**
 * What the session of this name waits for on a server: a lock that others hold, a standby, or the server itself. The
 * question goes through a session of its own, and waits for no lock.
 */
async function waitOf(server: PostgresServer, name: string): Promise<Wait | undefined> {
  await using database = openPostgres(new Servers([server]), "admin");
  const ask = database.query<{ event: string; holders: string | null }>(
    sql`select wait_event as event, (select string_agg(concat(held.pid, ' (', held.usename, ', ', held.application_name, ')'), ', ')
        from pg_stat_activity as held where held.pid = any(pg_blocking_pids(waits.pid))) as holders
      from pg_stat_activity as waits where application_name = ${sql.placeholder("name")}
        and (wait_event = 'SyncRep' or wait_event_type = 'Lock')`,
    { retry: false },
  );
  try {
    const [found] = await ask({ name });
    if (found === undefined) return undefined;
    if (found.event !== "SyncRep")
      return { says: `Waits for a lock on ${server.name}, held by process ${found.holders}.` };
    const says = `Waits for the commit on ${server.name}: a synchronous standby may be away.`;
    return { says, ends: `${server.name} did not confirm the commit within 30 s: a synchronous standby may be away.` };
  } catch (error) {
    // Another refusal, such as of too many connections, says nothing about the session that waits.
    if (error instanceof Fault && error.cause !== undefined && isSqlState(databaseErrorCode(error.cause)))
      return undefined;
    return {
      says: `Waits for ${server.name}, which does not answer.`,
      ends: `${server.name} has not answered for 30 s.`,
    };
  }
}

/**
 * The statement, made to fail on a standby (see `isStandby`). PostgreSQL evaluates OFFSET even without rows, and has an
 * error of its own for a negative one. Every statement is checked, because a pooler may change the server behind its
 * connection. What writes fails on a standby by itself.
 */
export function onPrimary(statement: string): string {
  // On a line of its own, so that no comment at the end of a statement hides it.
  return /^\s*(?:insert|update|delete)\b/i.test(statement)
    ? statement
    : `${statement}\noffset -pg_is_in_recovery()::integer`;
}

/**
 * Whether a pooler such as PgBouncer stands before PostgreSQL. It refuses or drops the settings of a session, and then
 * nothing ends a slow statement or keeps a read from writing.
 * @param use - what the database was opened for
 */
export async function isPooled(database: Database, use: "look-up" | "notary"): Promise<boolean> {
  try {
    const setting = sql`select setting from pg_settings where name = 'statement_timeout'`;
    const [row] = await database.query<{ setting: string }>(setting)({});
    return row?.setting !== String(sessionOf[use].statement_timeout);
  } catch (error) {
    if (databaseErrorCode(error) === protocolViolation) return true;
    throw error;
  }
}

/** SQLSTATE of PgBouncer's refusal. PostgreSQL itself has another for a setting that it does not know. */
export const protocolViolation = "08P01";

/**
 * Settings of a session that a text of Keyhole depends on, with the one value that each may have. All but the last are
 * asked for as a connection begins, and a pooler may drop them. The last one is a superuser's alone: it can only be
 * looked at. It turns foreign keys off.
 */
export const requiredSettings: Readonly<Record<string, string>> = {
  bytea_output: "hex",
  standard_conforming_strings: "on",
  default_transaction_read_only: "off",
  session_replication_role: "origin",
};

/** When the server started. No two do at the same microsecond. */
export const serverStart = "extract(epoch from pg_catalog.pg_postmaster_start_time())::text";

const attemptsMax = 3;

/** PostgreSQL's own deadline comes first, but it does not end a commit that waits for a standby. */
const notaryDeadlineMs = 65_000;

// A pipeline of 2: deeper ones queue fast queries behind a slow one while other connections idle (measured: 39 of 40).
const poolOf = {
  // Few, so that those in use stay warm: with ten in turn a lookup took a fifth more of PostgreSQL's time (measured).
  "look-up": { max: 4, max_pipeline: 2 },
  serve: { max: 6, max_pipeline: 2 },
  files: { max: 3, max_pipeline: 1 },
  watch: { max: 1 },
  journal: { max: 1, max_pipeline: 1 },
  notary: { max: 1 },
  admin: { max: 1 },
} as const;

// Every statement of a request consists of index lookups, whatever the statistics say and however small the tables were
// when it was planned. Bitmap scans ignore an order that a limit could use; memoizing prefers half a key.
const lookupsOnly = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_material: "off",
  enable_bitmapscan: "off",
  enable_memoize: "off",
  jit: "off",
  max_parallel_workers_per_gather: "0",
  plan_cache_mode: "force_generic_plan",
};
// A database or a role may give its sessions other settings than PostgreSQL itself. What Keyhole depends on is asked for
// here, for every connection: what a text means, what a transaction is, and that no deadline but ours ends it.
// As text, because the driver leaves out a number that is zero.
const everySession = {
  // A role's own path could lead elsewhere. Commands set it in their transactions too, since a pooler may be between.
  search_path: searchPath,
  bytea_output: "hex",
  standard_conforming_strings: "on",
  datestyle: "ISO, MDY",
  intervalstyle: "postgres",
  timezone: "UTC",
  transform_null_equals: "off",
  array_nulls: "on",
  quote_all_identifiers: "off",
  row_security: "on",
  default_transaction_isolation: "read committed",
  default_transaction_read_only: "off",
  default_transaction_deferrable: "off",
  synchronous_commit: "on",
  // The journal learns from a warning that a commit did not wait for its standby. "error" hides it, and "debug5" adds
  // messages to every commit.
  client_min_messages: "warning",
  statement_timeout: "0",
  lock_timeout: "0",
  idle_session_timeout: "0",
  idle_in_transaction_session_timeout: "0",
};
// Our deadline comes first. PostgreSQL's ends statements that nobody waits for, even if this process was stopped.
const readsOnly = {
  ...everySession,
  statement_timeout: queryDeadlineMs + 1000,
  default_transaction_read_only: "on",
  ...lookupsOnly,
};
const sessionOf = {
  "look-up": readsOnly,
  serve: readsOnly,
  files: readsOnly,
  watch: readsOnly,
  // Here PostgreSQL's deadline comes first: a batch that waits too long for a lock is then known to be refused.
  // A lookup is a part of its statement if a caller is alone. `nextExpiry` runs here too, and finds its rows by index.
  journal: { ...everySession, statement_timeout: queryDeadlineMs - 200, ...lookupsOnly },
  // It waits for nobody for long, and its own lock goes if it stands still in a transaction.
  notary: {
    ...everySession,
    lock_timeout: 5000,
    statement_timeout: notaryDeadlineMs - 5000,
    idle_in_transaction_session_timeout: 30_000,
  },
  admin: { ...everySession, lock_timeout: 30_000 },
};

/** All settings that sessions ask for as they begin. */
export const startupSettings = Object.assign({}, ...Object.values(sessionOf)) as Readonly<Record<string, unknown>>;
