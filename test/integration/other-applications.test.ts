/** A database that is another application's too, or its alone. */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { migrations } from "../../src/store/migrate.ts";
import { newFolder } from "../support/folder.ts";
import { connectTo, createDatabase, postgresUrl, runOn, withPostgres } from "../support/postgres.ts";

type Row = Readonly<Record<string, unknown>>;
type Place = {
  readonly dialect: "postgres" | "sqlite";
  readonly shared: string;
  readonly run: (text: string) => Promise<Row[]>;
  readonly open: (consent?: { begin?: boolean; upgrade?: boolean }) => ReturnType<typeof openInstallation>;
};

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const places = {
  sqlite: async (): Promise<Place> => {
    const data = join(newFolder(), "data");
    mkdirSync(data, { mode: 0o700 });
    const config = readConfig({ KEYHOLE_DATA: data });
    const run = async (text: string) => {
      const file = new Database(join(data, "keyhole.db"), { create: true });
      try {
        return file.query<Row, []>(text).all();
      } finally {
        file.close();
      }
    };
    const open: Place["open"] = (consent) => openInstallation(config, () => {}, consent);
    return { dialect: "sqlite", shared: "__drizzle_migrations", run, open };
  },
  postgres: async (): Promise<Place & { url: string }> => {
    const database = await createDatabase(postgresUrl as string);
    const sql = connectTo(database.url);
    ends.push(async () => {
      await sql.end({ timeout: 1 });
      await database.drop();
    });
    const config = readConfig({ DATABASE_URL: database.url, KEYHOLE_ROOT_KEY: Buffer.alloc(32, 3).toString("base64") });
    const run = async (text: string) => [...(await sql.unsafe(text))] as Row[];
    const open: Place["open"] = (consent) => openInstallation(config, () => {}, consent);
    return { dialect: "postgres", shared: "drizzle.__drizzle_migrations", run, open, url: database.url };
  },
};

function both(about: string, run: (start: () => Promise<Place>) => void): void {
  describe(`${about}, on SQLite`, () => run(places.sqlite));
  withPostgres(`${about}, on PostgreSQL`, () => run(places.postgres));
}

/** Makes the journal of another application that has drizzle. */
async function share({ dialect, shared, run }: Place, ...moments: number[]): Promise<void> {
  if (dialect === "postgres") await run("create schema if not exists drizzle");
  await run(`create table if not exists ${shared} (id serial primary key, hash text not null, created_at bigint)`);
  for (const at of moments) await run(`insert into ${shared} (hash, created_at) values ('theirs-${at}', ${at})`);
}

const theirs = async ({ shared, run }: Place) =>
  (await run(`select hash, created_at as at from ${shared} order by created_at`)).map(({ hash, at }) => [
    hash,
    Number(at),
  ]);
const ours = async ({ run }: Place) =>
  (await run("select hash from keyhole_migrations order by created_at")).map(({ hash }) => hash);
const hashesOf = ({ dialect }: Place) => migrations[dialect].map(({ hash }) => hash);

/** Puts the journal where programs before `0010_journal` have it, and undoes what later ones made. */
async function putBack(place: Place): Promise<void> {
  await share(place);
  for (const { hash, folderMillis } of migrations[place.dialect].slice(0, 10)) {
    await place.run(`insert into ${place.shared} (hash, created_at) values ('${hash}', ${folderMillis})`);
  }
  await place.run("drop table keyhole_migrations");
  await place.run("alter table audit_leaves drop column first_seq");
  await place.run("alter table api_keys drop column ranges");
  await place.run("alter table api_keys drop column rate");
  await place.run("drop index api_keys_found_by");
  await place.run("alter table api_keys drop column found_by");
  await place.run('CREATE INDEX "api_keys_trusts" ON "api_keys" ("id") WHERE trust is not null');
}

const [early, late] = [1_500_000_000_000, 1_999_999_999_999];

both("another application's migrations", (start) => {
  test.each([[[]], [[early]], [[late]], [[early, late]]])(
    "do not count as Keyhole's, nor Keyhole's as theirs: %j",
    async (moments) => {
      const place = await start();
      await share(place, ...moments);
      await place.open();
      const kept = moments.map((at) => [`theirs-${at}`, at]);
      expect(await theirs(place)).toEqual(kept);
      expect(await ours(place)).toEqual(hashesOf(place));
      await share(place, late + 1); // it migrates
      expect((await place.open({})).tables).toEqual({ from: hashesOf(place).length, to: hashesOf(place).length });
      expect(await theirs(place)).toEqual([...kept, [`theirs-${late + 1}`, late + 1]]);
    },
  );

  test.each([[[early]], [[late]], [[early, late]]])(
    "stay where they are as an earlier Keyhole is upgraded: %j",
    async (moments) => {
      const place = await start();
      await place.open();
      await putBack(place);
      await share(place, ...moments);
      await expect(place.open({})).rejects.toMatchObject({ message: expect.stringContaining("of an older Keyhole") });
      expect((await place.open({ upgrade: true })).tables).toEqual({ from: 10, to: hashesOf(place).length });
      expect(await theirs(place)).toEqual(moments.map((at) => [`theirs-${at}`, at]));
      expect(await ours(place)).toEqual(hashesOf(place));
      await place.open({});
    },
  );

  test("are none if there is no other application: a row stays, for which an older program calls the database newer", async () => {
    const place = await start();
    await place.open();
    await putBack(place);
    await place.open({ upgrade: true });
    const [before, newest] = migrations[place.dialect].slice(-2);
    expect(await theirs(place)).toEqual([[newest?.hash, newest?.folderMillis]]);
    expect(newest?.folderMillis).toBeGreaterThan(before?.folderMillis ?? 0);
    expect(await ours(place)).toEqual(hashesOf(place));
    await place.open({});
  });
});

both("a database with a table of another application that has a name of Keyhole's", (start) => {
  test.each([
    ["projects", "create table projects (mine text)"],
    ["organizations", "create view organizations as select 1 as mine"],
    ["keyhole_migrations", "create view keyhole_migrations as select 'x' as hash, 1 as created_at where 1 = 0"],
  ])("is refused by its name, and nothing is made in it: %s", async (name, made) => {
    const place = await start();
    await place.run(made);
    const tables = () =>
      place.run(
        place.dialect === "sqlite"
          ? "select name from sqlite_schema"
          : "select relname from pg_class where relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)",
      );
    const before = await tables();
    await expect(place.open()).rejects.toThrow(
      `The database has a table or view ${name} that is not Keyhole's, so nothing was made: give Keyhole a database of its own.`,
    );
    expect(await tables()).toEqual(before);
  });
});

withPostgres("a PostgreSQL database that is closed to Keyhole's role", () => {
  test("is refused with the line to run: no schema public", async () => {
    const place = await places.postgres();
    await place.run("drop schema public cascade");
    const { username } = new URL(place.url);
    await expect(place.open()).rejects.toThrow(
      `has no schema public, where Keyhole makes its tables: create schema public authorization ${username};`,
    );
    await place.run(`create schema public authorization ${username}`);
    await place.open();
  });

  test("is refused with the line to run: no right to create in it, as PostgreSQL has it for all but the owner", async () => {
    const place = await places.postgres();
    const name = new URL(place.url).pathname.slice(1);
    const role = `${name}_app`;
    await place.run(`create role ${role} login password 'made-up'`);
    ends.unshift(() => runOn(postgresUrl as string, `drop role ${role}`));
    ends.unshift(() => runOn(place.url, `drop owned by ${role} cascade`));
    const url = Object.assign(new URL(place.url), { username: role, password: "made-up" });
    const config = readConfig({ DATABASE_URL: url.href, KEYHOLE_ROOT_KEY: Buffer.alloc(32, 3).toString("base64") });
    const open = () => openInstallation(config, () => {});
    await expect(open()).rejects.toThrow(
      `lets the role ${role} make no tables in the schema public: alter database ${name} owner to ${role}; or grant create on schema public to ${role};`,
    );
    await place.run(`grant create on schema public to ${role}`);
    await open();
  });
});
