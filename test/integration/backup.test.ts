import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Config } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { backUp, restore, verifyBackup } from "../../src/people/backup/backup.ts";
import { adminContextOf, operator } from "../../src/people/desk/context.ts";
import { addRootKey, dropOlderRootKeys, lockKeyFile } from "../../src/people/rotation/root-keys.ts";
import { takeOutOfUse } from "../../src/store/backup.ts";
import { exclusively } from "../../src/store/sqlite-file.ts";
import { leaksIn } from "../support/answer.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { numbered } from "../support/rows.ts";
import { openWorld, type World } from "../support/world.ts";

setDefaultTimeout(120_000);

/** A hundred projects take a minute to write: only long runs do. */
const projects = process.env["KEYHOLE_TEST_LONG"] === "1" ? 100 : 5;
const perProject = 1000;
const silent = () => {};

/**
 * Waits until the database is really closed: Bun's statements hold it open until they are collected, and any collection
 * may be the one that finds them.
 */
const closed = async ({ dataFolder }: Config) => {
  for (let round = 0; round < 1000; round++) {
    Bun.gc(true);
    await nextTurn();
    if (takeOutOfUse(join(dataFolder, "keyhole.db"))) return;
  }
};
const canary = "canary-of-the-backup-test";

let w: World;
let folder: string;
let backup: string;
let changes = 0;

beforeAll(async () => {
  w = await openWorld("sqlite");
  folder = join(w.config.dataFolder, "..");
  const organization = await w.organization();
  for (let at = 0; at < projects; at++) {
    const entries = numbered("NAME_", perProject).map((name) => ({ name, value: `${canary}-${at}-${name}` }));
    const { where } = await w.project(organization, `project-${at}`);
    await setVariables(w.admin, where, "production", entries);
  }
  // Something of every kind, and more variables in one environment than the API gives in one answer.
  const { where } = await w.project(organization, "mixed", {
    variables: { staging: { TOKEN: canary, EMPTY: "" } },
    files: [
      { path: "tls/key.pem", environments: ["production"], content: `-----BEGIN ${canary}` },
      { path: "tls/key.pem", environments: ["staging"], content: Buffer.alloc(2_000_000, 7) },
      { path: "empty", environments: ["production", "staging"], content: "" },
    ],
  });
  const many = numbered("MANY_", 1001).map((name) => ({ name, value: "x" }));
  await setVariables(w.admin, where, "development", many);
  await setAccount(w.admin, where, "admin", ["staging", "production"], { user: "root", password: canary });
  w.secrets.add(canary);
  const key = await w.key(organization, { projects: ["mixed"], resources: ["variables", "accounts"] });
  for (let at = 0; at < 5; at++) await w.ask("/projects/mixed/variables?environment=staging", { key });
  backup = join(folder, "backup.db");
  writeFileSync(backup, "", { mode: 0o600 });
  backUp(w.config, backup);
  const [counted] = await w.run("select count(*) as changes from audit_entries where actor_type = 'person'");
  changes = Number(counted?.["changes"]);
});
afterAll(() => w.close());

const opened = () => ({
  projects: projects + 1,
  items: { variables: projects * perProject + 1003, accounts: 2, files: 4 },
  sets: 9 * (projects + 1),
  versions: projects + 8,
  keys: 1,
  auditEntries: 5 + changes,
});

/** A copy of the backup that was changed by SQL. */
function altered(name: string, ...statements: readonly string[]): string {
  const path = join(folder, `${name}.db`);
  copyFileSync(backup, path);
  const file = new SqliteFile(path);
  for (const statement of statements) file.run(statement);
  file.close();
  return path;
}

const place = (name: string): Config => ({ ...w.config, dataFolder: join(folder, name) });

describe("backup", () => {
  test("is one file, closed to others, in which every item opens with the root key", async () => {
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    expect(existsSync(`${backup}-wal`)).toBe(false);
    const seen: [number, number][] = [];
    expect(await verifyBackup(w.config, backup, silent, (...progress) => seen.push(progress))).toEqual(opened());
    const total = opened().projects + opened().auditEntries;
    expect(seen.at(-1)).toEqual([total, total]);
    expect(leaksIn(w.secrets, readFileSync(backup, "latin1"))).toEqual([]);
  });

  test("is one moment of a database that is written meanwhile", async () => {
    const where = (await w.project(await w.organization(), "busy")).where;
    let going = true;
    const writing = (async () => {
      for (let at = 0; going; at++) {
        const both = ["ONE", "OTHER"].map((name) => ({ name, value: String(at) }));
        await setVariables(w.admin, where, "production", both);
        await nextTurn(); // SQLite answers without ever giving others a turn
      }
    })();
    try {
      for (let at = 0; at < 3; at++) {
        const path = join(folder, `busy-${at}.db`);
        backUp(w.config, path);
        await verifyBackup(w.config, path, silent);
      }
    } finally {
      going = false;
      await writing;
    }
  });

  test("needs its root key, and never makes one", async () => {
    const none = { ...place("nobody"), rootKey: { from: "folder" } } as const;
    await expect(verifyBackup(none, backup, silent)).rejects.toThrow("The root key of the backup is needed");
    expect(existsSync(none.dataFolder)).toBe(false);
  });

  const project = "(select id from projects where slug = 'mixed')";
  const own = `project_id = ${project}`;
  const sets = (kind: string, environment: string, change: string) =>
    [
      `${change.startsWith("delete") ? change : `update sets set ${change}`} where kind = '${kind}'
        and environment = '${environment}' and ${own}`,
      `The set of ${kind} of org-1/mixed, ${environment}, does not open.`,
    ] as const;
  const damages: Readonly<Record<string, readonly [statement: string, words: string]>> = {
    "the values of a set": sets("variables", "staging", "sealed = substr(sealed, 2)"),
    "the listing of a set": sets("accounts", "staging", "listing = '[]'"),
    "a file's mode": sets("files", "production", "listing = replace(listing, '0600', '0400')"),
    "an empty set, deleted": sets("files", "development", "delete from sets"),
    "a content, deleted": [
      `delete from file_contents where size = 2000000 and ${own}`,
      'The file "tls/key.pem" of org-1/mixed does not open.',
    ],
    "a content's bytes": [
      `update file_contents set sealed = substr(sealed, 2) where size = 0 and ${own}`,
      'The file "empty" of org-1/mixed does not open.',
    ],
    "a project's counts": [
      `update projects set account_counts = '[0,0,0,0,0,0,0]' where id = ${project}`,
      "The count of accounts of org-1/mixed does not open.",
    ],
    "a key's grant": ["update api_keys set resources = 31", "The grant of key "],
    "a data key": [`update data_keys set wrapped = zeroblob(66) where ${own}`, "Data key 1 of org-1/mixed"],
    "an audit segment": [
      "update audit_segments set entries = '{}' where first_seq = 3",
      "The audit does not verify. Lane ",
    ],
    "a project's slug": [
      "update projects set slug = 'moved' where slug = 'project-0'",
      "The set of variables of org-1/moved, development, does not open.",
    ],
  };
  test.each(Object.entries(damages))("with another value of %s is refused by its name", async (what, [sql, words]) => {
    const failure = await verifyBackup(w.config, altered(what.replaceAll(" ", "-"), sql), silent).catch((e) => e);
    expect(failure).toMatchObject({ name: "Problem", code: "backup_damaged" });
    expect(failure.message).toStartWith(words);
  });

  test("that is cut off, empty, of another program or of a newer Keyhole is refused in one sentence", async () => {
    const cut = join(folder, "cut.db");
    writeFileSync(cut, readFileSync(backup).subarray(0, 500_000));
    const text = join(folder, "text.db");
    writeFileSync(text, "not a database at all, and long enough to be looked at".repeat(20));
    const empty = join(folder, "empty.db");
    writeFileSync(empty, "");
    const newer = altered("newer", "update keyhole_migrations set created_at = created_at + 1");
    const refused = (path: string) => verifyBackup(w.config, path, silent).catch((error: Error) => error.message);
    expect(await refused(cut)).toBe(`${cut} is damaged.`);
    expect(await refused(text)).toBe(`${text} is not a backup of Keyhole.`);
    expect(await refused(empty)).toBe(`${empty} is not a backup of Keyhole.`);
    expect(await refused(newer)).toBe(`${newer} was made by a newer Keyhole: use that version, or a newer one.`);
  });
});

describe("restore", () => {
  const restored = (config: Config, from = backup, force = true) =>
    restore(config, from, { force, actor: "ann@host", say: silent });
  const reads = async (config: Config) => {
    const installation = await openInstallation(config, silent);
    const admin = adminContextOf(installation, operator("ann@host"));
    const [row] = await admin.database.db.select().from(admin.database.tables.organizations);
    await admin.close();
    return row?.slug;
  };

  test("puts everything into an empty folder", async () => {
    const config = place("fresh");
    expect(await restored(config, backup, false)).toEqual({ bytes: expect.any(Number), hasRootKey: true });
    const path = join(config.dataFolder, "keyhole.db");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(config.dataFolder).mode & 0o777).toBe(0o700);
    expect(await reads(config)).toBe("org-1");
    expect(existsSync(`${path}.restoring`)).toBe(false);
  });

  test("refuses a backup of another root key before it touches anything", async () => {
    const config = { ...place("other"), rootKey: { from: "folder" } } as const;
    await openInstallation(config, silent);
    await closed(config);
    const before = readFileSync(join(config.dataFolder, "keyhole.db"));
    const another = /The backup was made under the root key \w+: put that one in place first/;
    await expect(restored(config)).rejects.toThrow(another);
    expect(readFileSync(join(config.dataFolder, "keyhole.db")).equals(before)).toBe(true);
  });

  test("replaces a database that holds something only with force, and removes the files beside it", async () => {
    const config = place("used");
    const first = adminContextOf(await openInstallation(config, silent), operator("ann@host"));
    await first.close();
    await closed(config);
    await restored(config, backup, false);
    const held = "holds a database that is not empty: --force replaces it.";
    await expect(restored(config, backup, false)).rejects.toThrow(held);
    // What a crash leaves: a database, and changes that are in the -wal alone.
    const path = join(config.dataFolder, "keyhole.db");
    const writer = new SqliteFile(path);
    writer.run("PRAGMA journal_mode = WAL");
    writer.run("PRAGMA wal_autocheckpoint = 0");
    writer.run("update organizations set slug = 'never-again'");
    const crashed = place("crashed");
    mkdirSync(crashed.dataFolder, { mode: 0o700 });
    for (const side of ["", "-wal"]) copyFileSync(`${path}${side}`, join(crashed.dataFolder, `keyhole.db${side}`));
    writer.close();
    await restored(crashed);
    expect(await reads(crashed)).toBe("org-1");
    // A -wal without its database, as after `rm keyhole.db`.
    const orphaned = place("orphaned");
    mkdirSync(orphaned.dataFolder, { mode: 0o700 });
    writeFileSync(join(orphaned.dataFolder, "keyhole.db"), "");
    copyFileSync(join(crashed.dataFolder, "keyhole.db"), join(orphaned.dataFolder, "keyhole.db-wal"));
    await restored(orphaned);
    expect(await reads(orphaned)).toBe("org-1");
  });

  test.if(process.getuid?.() === 0)("keeps the owner of the folder, as all that root does there", async () => {
    const config: Config = { ...place("owned"), rootKey: { from: "folder" } };
    const owners = () =>
      readdirSync(config.dataFolder).map((name) => [name, statSync(join(config.dataFolder, name)).uid]);
    const expectOwned = (...names: string[]) => {
      expect(owners().filter(([, uid]) => uid !== 1001)).toEqual([]);
      expect(owners().map(([name]) => name)).toEqual(expect.arrayContaining([".gitignore", "keyhole.db", ...names]));
    };
    mkdirSync(config.dataFolder, { mode: 0o700 });
    chownSync(config.dataFolder, 1001, 1001);
    const begun = await openInstallation(config, silent);
    expectOwned("root.key", "keyhole.db.migrating");
    await begun.open("admin").close();
    await closed(config);
    lockKeyFile(config).release();
    addRootKey(config);
    dropOlderRootKeys(config, true);
    await restored(place("owned"));
    expectOwned("serve.lock", "rotate.lock");
  });

  test("refuses while a server serves the folder, and while a program has the database open", async () => {
    const config = place("served");
    await restored(config, backup, false);
    const lock = exclusively(join(config.dataFolder, "serve.lock"), 0);
    await expect(restored(config)).rejects.toThrow("stop it, and restore again");
    lock?.release();
    const reader = new SqliteFile(join(config.dataFolder, "keyhole.db"));
    reader.run("PRAGMA journal_mode = WAL");
    reader.run("begin");
    reader.query("select * from organizations").all();
    await expect(restored(config)).rejects.toThrow("A command uses the database");
    reader.run("rollback");
    reader.close();
  });

  test("leaves the old database as it was if the backup is damaged", async () => {
    const config = place("kept");
    await restored(config, backup, false);
    const damaged = join(folder, "half.db");
    writeFileSync(damaged, readFileSync(backup).subarray(0, 300_000));
    await expect(restored(config, damaged)).rejects.toThrow(`${damaged} is damaged.`);
    expect(await reads(config)).toBe("org-1");
  });
});
