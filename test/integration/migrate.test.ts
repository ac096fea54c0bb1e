import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateDrizzleJson, generateSQLiteDrizzleJson } from "drizzle-kit/api";
import { getTableColumns, getTableName } from "drizzle-orm";
import type postgres from "postgres";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { newKey } from "../../src/seal/keyring.ts";
import { migrations } from "../../src/store/migrate.ts";
import { exclusively } from "../../src/store/sqlite-file.ts";
import { postgresTables, sqliteTables, type Tables } from "../../src/store/tables.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { connectTo, createDatabase, postgresUrl, type TestDatabase, withPostgres } from "../support/postgres.ts";
import { sha256 } from "../support/rows.ts";

const root = join(import.meta.dir, "../..");

describe("the list of migrations", () => {
  const dialects = ["postgres", "sqlite"] as const;
  test.each(dialects)("of %s is that of drizzle/: its journal, its files and text", (dialect) => {
    const folder = join(root, "drizzle", dialect);
    const { entries } = JSON.parse(readFileSync(join(folder, "meta/_journal.json"), "utf8")) as {
      entries: { idx: number; tag: string; when: number }[];
    };
    const files = readdirSync(folder).filter((name) => name.endsWith(".sql"));
    expect(files.sort()).toEqual(entries.map(({ tag }) => `${tag}.sql`).sort());
    expect(migrations[dialect].map(({ folderMillis, hash, sql }) => ({ folderMillis, hash, sql }))).toEqual(
      entries.map(({ tag, when }) => {
        const text = readFileSync(join(folder, `${tag}.sql`), "utf8");
        return { folderMillis: when, hash: sha256(text), sql: text.split("--> statement-breakpoint") };
      }),
    );
    expect(entries.map(({ idx }) => idx)).toEqual(entries.map((_, index) => index));
    const moments = entries.map(({ when }) => when);
    expect(moments).toEqual([...new Set(moments)].sort((a, b) => a - b));
    const snapshots = readdirSync(join(folder, "meta")).filter((name) => name.endsWith("_snapshot.json"));
    expect(snapshots.sort()).toEqual(entries.map(({ tag }) => `${tag.slice(0, 4)}_snapshot.json`));
  });

  test.each(dialects)("of %s ends at the tables in src/store/tables.ts", async (dialect) => {
    const folder = join(root, "drizzle", dialect, "meta");
    const newest = readdirSync(folder)
      .sort()
      .findLast((name) => name.endsWith("_snapshot.json")) as string;
    const snapshot = JSON.parse(readFileSync(join(folder, newest), "utf8"));
    const described =
      dialect === "postgres" ? generateDrizzleJson(postgresTables) : await generateSQLiteDrizzleJson(sqliteTables);
    const { id, prevId, _meta } = snapshot; // of no table
    // A difference needs a new migration: `bun run generate`.
    expect({ ...JSON.parse(JSON.stringify(described)), id, prevId, _meta }).toEqual(snapshot);
  });
});

/** Compares the columns of a database, `table.column` with `?` if it may be null, with those in the source. */
function expectColumns(found: readonly { readonly column: string }[], tables: Tables): void {
  const described = Object.values(tables).flatMap((table) => {
    const columns = Object.values(getTableColumns(table));
    return columns.map(({ name, notNull }) => `${getTableName(table)}.${name}${notNull ? "" : "?"}`);
  });
  expect(found.map(({ column }) => column).sort()).toEqual(described.sort());
}

describe("on SQLite", () => {
  let folder: string;
  beforeAll(() => {
    folder = newFolder();
  });

  test("several processes that open a fresh folder at once share one database and one root key", async () => {
    const data = join(folder, "fresh");
    const opened = await openAtOnce(4, { KEYHOLE_DATA: data });
    const said = opened.flatMap((one) => one.said);
    expect(said.filter((line) => line.startsWith("A NEW ROOT KEY"))).not.toEqual([]);
    expect(readdirSync(data).filter((name) => name.startsWith("root.key"))).toEqual(["root.key"]);
    const again = await openAtOnce(2, { KEYHOLE_DATA: data });
    const { keys } = opened[0] as Opened;
    expect(again.map(({ keys, said }) => ({ keys, said }))).toEqual(Array(2).fill({ keys, said: [] }));
  });

  test("the migrations make the columns that the source describes", async () => {
    const config = readConfig({ KEYHOLE_DATA: join(folder, "columns") });
    await openInstallation(config, () => {});
    const file = new Database(join(config.dataFolder, "keyhole.db"));
    const columns = file
      .query<{ column: string }, []>(
        `select t.name || '.' || c.name || iif(c."notnull", '', '?') as "column"
        from sqlite_schema as t, pragma_table_info(t.name) as c
        where t.type = 'table' and t.name not like 'sqlite_%' and t.name <> 'keyhole_migrations'`,
      )
      .all();
    file.close();
    expectColumns(columns, sqliteTables);
  });

  test("a database that a newer version migrated is refused, and stays as it is", async () => {
    const config = readConfig({ KEYHOLE_DATA: join(folder, "newer") });
    await openInstallation(config, () => {});
    const path = join(config.dataFolder, "keyhole.db");
    const file = new Database(path);
    file.run("insert into keyhole_migrations (hash, created_at) values ('x', 4102444800000)");
    file.close();
    const refused = await openInstallation(config, () => {}).catch((error: Error) => error.message);
    expect(refused).toBe("This database is of a newer Keyhole: use that version, or a newer one.");
  });

  test("the program of one migration before refuses the tables of the newest", async () => {
    const config = readConfig({ KEYHOLE_DATA: join(folder, "of-before") });
    await openInstallation(config, () => {});
    const newest = migrations.sqlite.pop() as (typeof migrations.sqlite)[number];
    const refused = await openInstallation(config, () => {}).catch((error: Error) => error.message);
    migrations.sqlite.push(newest);
    expect(refused).toBe("This database is of a newer Keyhole: use that version, or a newer one.");
    await openInstallation(config, () => {});
  });

  test("a lock between processes is held though nothing refers to it, and free once its holder was killed", async () => {
    const paths = Array.from({ length: 50 }, (_, n) => join(folder, `lock-${n}`));
    const module = JSON.stringify(join(root, "src/store/sqlite-file.ts"));
    const script = `const { exclusively } = await import(${module});
      const asks = (path) => exclusively(path, 0) && !exclusively(path, 0);
      const held = ${JSON.stringify(paths)}.filter(asks).length;
      for (let n = 0; n < 5; n++) { await new Promise(setImmediate); Bun.gc(true); }
      process.stdout.write(String(held)); process.stdin.resume();`;
    const holder = Bun.spawn([process.execPath, "--no-env-file", "--no-install", "-e", script], {
      ...{ cwd: folder, stdin: "pipe", stdout: "pipe", stderr: "inherit" },
    });
    const isFree = (path: string) => {
      const lock = exclusively(path, 0);
      lock?.release();
      return lock !== undefined;
    };
    try {
      const { value } = await holder.stdout.getReader().read();
      expect(Buffer.from(value ?? []).toString()).toBe(String(paths.length));
      expect(paths.filter(isFree)).toEqual([]);
    } finally {
      holder.kill("SIGKILL");
      await holder.exited;
    }
    expect(paths.filter(isFree)).toEqual(paths);
    // Asked twice by the process that holds it, it stays held.
    const [path = ""] = paths;
    const lock = exclusively(path, 0);
    expect(isFree(path)).toBe(false);
    const asked = `const { exclusively } = await import(${module}); process.exit(exclusively(process.argv[1], 0) ? 0 : 9)`;
    const other = [process.execPath, "--no-env-file", "--no-install", "-e", asked, path];
    expect(Bun.spawnSync(other, { cwd: folder }).exitCode).toBe(9);
    lock?.release();
    expect(Bun.spawnSync(other, { cwd: folder }).exitCode).toBe(0);
  });

  test("an installation that another process begins or upgrades is not opened beside it", async () => {
    const config = readConfig({ KEYHOLE_DATA: join(folder, "beside") });
    await openInstallation(config, () => {});
    const beginning = exclusively(join(config.dataFolder, "keyhole.db.migrating"), 0);
    const refused = { kind: "unavailable", message: `Another Keyhole begins or upgrades ${config.dataFolder}.` };
    await expect(openInstallation(config, () => {})).rejects.toMatchObject(refused);
    beginning?.release();
    await openInstallation(config, () => {});
  });
});

withPostgres("on PostgreSQL", () => {
  let database: TestDatabase;
  let sql: postgres.Sql;
  const key = Buffer.from(newKey()).toString("base64");
  beforeAll(async () => {
    database = await createDatabase(postgresUrl as string);
    sql = connectTo(database.url);
  });
  afterAll(async () => {
    await sql.end({ timeout: 1 });
    await database.drop();
  });

  test("several processes that open an empty database at once share its tables and keys", async () => {
    await openAtOnce(4, { DATABASE_URL: database.url, KEYHOLE_ROOT_KEY: key });
    const applied = await sql`select hash from keyhole_migrations order by created_at`;
    expect(applied.map((row) => row["hash"])).toEqual(migrations.postgres.map(({ hash }) => hash));
    const locks = async () => {
      const [row] = await sql`select count(*)::int as count from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())`;
      return row?.["count"] as number;
    };
    await eventually(async () => (await locks()) === 0); // once PostgreSQL has noticed that the processes have ended
  });

  test("the migrations make the columns that the source describes", async () => {
    await openInstallation(readConfig({ DATABASE_URL: database.url, KEYHOLE_ROOT_KEY: key }), () => {});
    const columns = await sql<{ column: string }[]>`
      select attrelid::regclass || '.' || attname || case when attnotnull then '' else '?' end as "column"
      from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
        and relname <> 'keyhole_migrations'
        and attnum > 0 and not attisdropped`;
    expectColumns(columns, postgresTables);
  });

  test("a database that a newer version migrated is refused, and stays as it is", async () => {
    const config = readConfig({ DATABASE_URL: database.url, KEYHOLE_ROOT_KEY: key });
    await openInstallation(config, () => {});
    await sql`insert into keyhole_migrations (hash, created_at) values ('x', 4102444800000)`;
    const refused = await openInstallation(config, () => {}).catch((error: Error) => error.message);
    await sql`delete from keyhole_migrations where hash = 'x'`;
    expect(refused).toBe("This database is of a newer Keyhole: use that version, or a newer one.");
    await openInstallation(config, () => {});
  });

  test("the program of one migration before refuses the tables of the newest", async () => {
    const config = readConfig({ DATABASE_URL: database.url, KEYHOLE_ROOT_KEY: key });
    await openInstallation(config, () => {});
    const newest = migrations.postgres.pop() as (typeof migrations.postgres)[number];
    const refused = await openInstallation(config, () => {}).catch((error: Error) => error.message);
    migrations.postgres.push(newest);
    expect(refused).toBe("This database is of a newer Keyhole: use that version, or a newer one.");
    await openInstallation(config, () => {});
  });
});

type Opened = { said: string[]; keys: string };

/** Processes that wait for each other before they open the installation of these settings. All find the same keys. */
async function openAtOnce(count: number, settings: Record<string, string>): Promise<Opened[]> {
  const program = `
    const { openInstallation } = await import(${JSON.stringify(join(root, "src/installation/installation.ts"))});
    const { readConfig } = await import(${JSON.stringify(join(root, "src/core/settings/settings.ts"))});
    process.stderr.write("ready\\n");
    await Bun.stdin.text();
    const said = [];
    const { systemKeys } = await openInstallation(readConfig(process.env), (line) => said.push(line));
    const hash = new Bun.CryptoHasher("sha256");
    for (const key of Object.values(systemKeys)) hash.update(key);
    process.stdout.write(JSON.stringify({ said, keys: hash.digest("hex") }));
    process.exit(0);`;
  const command = [process.execPath, "--no-env-file", "--no-install", "-e", program];
  const env = { PATH: process.env["PATH"] ?? "", HOME: tmpdir(), ...settings };
  const pipes = { stdin: "pipe", stdout: "pipe", stderr: "pipe" } as const;
  const processes = Array.from({ length: count }, () => Bun.spawn(command, { cwd: root, env, ...pipes }));
  const errors = processes.map(({ stderr }) => stderr.getReader());
  const decoded = ({ value }: { readonly value?: Uint8Array | undefined }) => Buffer.from(value ?? []).toString();
  for (const error of errors) expect(decoded(await error.read())).toBe("ready\n");
  for (const { stdin } of processes) await stdin.end();
  const opened = processes.map(async ({ exited, stdout }, at) => {
    const [exitCode, text, words] = await Promise.all([exited, stdout.text(), errors[at]?.read()]);
    expect([exitCode, decoded(words ?? {})]).toEqual([0, ""]);
    return JSON.parse(text) as Opened;
  });
  const all = await Promise.all(opened);
  expect(new Set(all.map(({ keys }) => keys)).size).toBe(1);
  return all;
}
