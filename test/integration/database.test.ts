import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { sql } from "drizzle-orm";
import type postgres from "postgres";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { isConnectionFailure } from "../../src/store/database.ts";
import { openPostgres, Servers } from "../../src/store/postgres.ts";
import { moment } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";
import { connectTo, createDatabase, postgresUrl, runOn, urlOn, withPostgres } from "../support/postgres.ts";
import { parts } from "../support/seed.ts";

withPostgres("a PostgreSQL whose connections are lost while they open", () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let killer: postgres.Sql;
  beforeAll(async () => {
    database = await createDatabase(postgresUrl as string);
    killer = connectTo(database.url);
  });
  afterAll(async () => {
    await killer.end({ timeout: 5 });
    await database.drop();
  });

  test.each(parts(4))("answers or refuses every query, and leaves no unhandled rejection, part %i", async (part) => {
    await withoutStrays(async () => {
      for (let times = 5 * part - 5; times < 5 * part; times++) {
        const opened = openPostgres(new Servers(parsePostgresUrl(database.url, {}).servers), "serve");
        const one = opened.query<{ one: number }>(sql`select 1 as one`, { retry: times % 3 !== 0 });
        const asked = Array.from({ length: 20 }, () => one({}).catch((error: Error) => error));
        await moment(times * 1.3);
        if (times % 2 === 0) {
          await killer`select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name like 'keyhole %'`;
        }
        const closed = opened.close();
        for (const answer of await Promise.all(asked)) {
          if (answer instanceof Error) expect(answer).toMatchObject({ name: "Fault", code: "unavailable" });
          else expect(answer).toMatchObject([{ one: 1 }]);
        }
        await closed;
      }
    });
  });

  test("ends no command: its transactions move to the client that took the place of a doubtful one", async () => {
    const opened = openPostgres(new Servers(parsePostgresUrl(database.url, {}).servers), "admin");
    const transact = () => opened.transaction((db) => db.execute(sql`select 1 as one`));
    await transact();
    await expect(opened.query(sql`select no_such_thing`)({})).rejects.toThrow();
    await opened.query(sql`select 1 as one`)({});
    // The doubtful client is ended 2 s later.
    const connections = () => killer`select pid from pg_stat_activity
      where datname = current_database() and application_name like 'keyhole admin %'`;
    while ((await connections()).length > 1);
    await transact();
    await opened.close();
  });

  test("is asked for transactions without an end: since PostgreSQL 17 a database can give them one", async () => {
    const isTold = sql`select setting from pg_settings where name = 'transaction_timeout'`;
    const [since17] = await killer`select from pg_settings where name = 'transaction_timeout'`;
    const name = new URL(database.url).pathname.slice(1);
    if (since17) await runOn(database.url, `alter database ${name} set transaction_timeout = '1h'`);
    const opened = openPostgres(new Servers(parsePostgresUrl(database.url, {}).servers), "admin");
    expect([...(await opened.transaction((db) => db.execute(isTold)))]).toEqual(since17 ? [{ setting: "0" }] : []);
    await opened.close();
  });

  test("that stands still is left by what waits for it, once another pool has an answer from another server", async () => {
    const relay = await startRelay(database.url);
    const { servers: both } = parsePostgresUrl(urlOn(database.url, [relay, database]), {});
    const servers = new Servers(both);
    const opened = openPostgres(servers, "serve");
    const one = opened.query<{ one: number }>(sql`select 1 as one`);
    await one({});
    relay.standStill();
    const waiting = one({});
    servers.answered(both[1] as (typeof both)[number]);
    expect([...(await waiting)]).toEqual([{ one: 1 }]);
    await opened.close();
    relay.stop();
  });

  test("refuses the rest of a transaction, and ends no process", async () => {
    const opened = openPostgres(new Servers(parsePostgresUrl(database.url, {}).servers), "admin");
    await withoutStrays(async () => {
      const cut = opened.transaction(async (db) => {
        const [self] = (await db.execute(sql`select pg_backend_pid() as pid`)) as unknown as [{ pid: number }];
        await killer`select pg_terminate_backend(${self.pid})`;
        await db.execute(sql`select 1`);
      });
      expect(await cut.catch(isConnectionFailure)).toBe(true);
      expect([...(await opened.transaction((db) => db.execute(sql`select 1 as one`)))]).toEqual([{ one: 1 }]);
    });
    await opened.close();
  });

  test("runs no statement of a dead transaction on the connection that follows, wherever it was cut", async () => {
    await killer`create table kept (who text, at integer)`;
    const statements = 5;
    await withoutStrays(async () => {
      // Cut as the statement is sent, or in the turn after the one before was answered.
      for (const isSent of [true, false]) {
        for (let at = 0; at < statements; at++) {
          const opened = openPostgres(new Servers(parsePostgresUrl(database.url, {}).servers), "admin");
          const begun = Promise.withResolvers<void>();
          const dead = opened.transaction(async (db) => {
            const [self] = (await db.execute(sql`select pg_backend_pid() as pid`)) as unknown as [{ pid: number }];
            begun.resolve();
            const statement = (number: number) => db.execute(sql`insert into kept values ('dead', ${number})`);
            for (let number = 0; number < statements; number++) {
              const sent = number === at && isSent ? statement(number).catch(() => {}) : undefined;
              if (number === at) {
                await killer`select pg_terminate_backend(${self.pid}, 60000)`;
                await eventually(() => other.length > 0);
              }
              await sent;
              await statement(number).catch(() => {}); // it goes on, whatever happened
            }
          });
          await begun.promise;
          const other: string[] = [];
          const waits = opened
            .transaction(async (db) => {
              for (let number = 0; number < statements; number++) {
                await db.execute(sql`insert into kept values ('other', ${number})`);
                other.push("did");
              }
            })
            .catch(() => other.push("failed"));
          expect(await dead.catch(isConnectionFailure)).toBe(true);
          await waits;
          await opened.close();
        }
      }
    });
    const kept = await killer`select who, count(*)::integer as times from kept group by who`;
    expect([...kept]).toEqual([{ who: "other", times: 2 * statements * statements }]);
  });

  test("is not taken for one that refuses a statement", async () => {
    const lost = connectTo(database.url);
    const pid = (await lost`select pg_backend_pid() as pid`)[0]?.["pid"];
    const cut = lost`select pg_sleep(30)`.catch((error: unknown) => error);
    await killer`select pg_terminate_backend(${pid})`;
    expect(isConnectionFailure(await cut)).toBe(true);
    expect(isConnectionFailure(await killer`select no_such_thing`.catch((error: unknown) => error))).toBe(false);
    await lost.end({ timeout: 0 });
  });
});

/** A server of PostgreSQL at an address of its own. */
async function startRelay(url: string) {
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  const server = createServer((client) => {
    const behind = connect(Number(port), hostname);
    sockets.push(client, behind);
    for (const socket of [client, behind]) socket.on("error", () => {});
    client.pipe(behind).pipe(client);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    url: `postgres://127.0.0.1:${(server.address() as AddressInfo).port}`,
    standStill: () => {
      for (const socket of sockets) socket.unpipe();
    },
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Fails if an error comes from outside every await meanwhile. */
async function withoutStrays(work: () => Promise<void>): Promise<void> {
  const strays: unknown[] = [];
  const note = (error: unknown) => void strays.push(error);
  for (const event of ["unhandledRejection", "uncaughtException"] as const) process.on(event, note);
  try {
    await work();
  } finally {
    for (const event of ["unhandledRejection", "uncaughtException"] as const) process.off(event, note);
  }
  expect(strays).toEqual([]);
}
