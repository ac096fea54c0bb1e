import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { deleteAccount, listAccounts, setAccount } from "../../src/admin/accounts.ts";
import { type Desk, deskOf } from "../../src/admin/desk.ts";
import { listFiles } from "../../src/admin/files.ts";
import { type Installation, openInstallation } from "../../src/admin/installation.ts";
import { revokeKey, rotateKey, showKey } from "../../src/admin/keys.ts";
import { createProject, listProjects } from "../../src/admin/projects.ts";
import { rotateData, rotateRoot } from "../../src/admin/rotation.ts";
import { listVariables, setVariables } from "../../src/admin/variables.ts";
import type { Config, RootKeySource } from "../../src/config.ts";
import { environments } from "../../src/names.ts";
import { Keyring, newKey, parseRootKeys } from "../../src/seal/keyring.ts";
import { openKeyhole } from "../../src/server/compose.ts";
import { type Client, clientOf, describeBoth, everything, type Key, openWorld, type World } from "../world.ts";

const spelled = (key: Uint8Array) => Buffer.from(key).toString("base64");
const idOf = (spelling: string) => new Keyring(parseRootKeys(spelling)).rootId;

/** A project with something of every kind in it, and a key that reads all of it. */
async function furnished(w: World, slug = "web"): Promise<{ where: string; id: string; key: Key }> {
  const organization = await w.organization();
  const { where, id } = await w.project(organization, slug, {
    variables: {
      development: { ONLY_HERE: "a value of development" },
      production: { URL: "postgres://somewhere", TOKEN: "a token of production", EMPTY: "" },
    },
    accounts: [
      { name: "ci", environments: ["staging", "production"], values: { username: "ci", password: "a password" } },
    ],
    files: [
      { path: "config/app.json", environments: ["production"], content: '{"a":"file"}' },
      { path: "large.bin", environments: [...environments], content: Buffer.alloc(600 * 1024, "large") },
    ],
  });
  return { where, id, key: await w.key(organization, everything) };
}

const reads = [
  "/projects/web",
  "/projects/web/variables?environment=production",
  "/projects/web/variables?environment=development",
  "/projects/web/variables?environment=staging",
  "/projects/web/variables?environment=production&keys=URL,TOKEN",
  "/projects/web/variables?environment=production&metadata_only=true",
  "/projects/web/accounts?environment=production",
  "/files?project=web&environment=production&metadataOnly=false",
];

/** Everything that the key reads, as text; each answer must be a 200. */
async function readAll(client: Client, key: Key): Promise<string[]> {
  const texts: string[] = [];
  for (const path of reads) {
    const { status, text } = await client.ask(path, { key });
    expect({ path, status, text: status === 200 ? "" : text }).toEqual({ path, status: 200, text: "" });
    texts.push(text);
  }
  return texts;
}

/** Another process on the world's database: its own keyring, its own connections. */
async function beside(
  w: World,
  rootKey: RootKeySource,
): Promise<{ installation: Installation; config: Config; client: Client; desk: Desk; close: () => Promise<void> }> {
  const config = { ...w.config, rootKey };
  const installation = await openInstallation(config, () => {});
  const keyhole = await openKeyhole(installation, () => {});
  const desk = deskOf(installation);
  const close = async () => {
    await keyhole.close();
    await desk.close();
  };
  return { installation, config, client: clientOf(keyhole), desk, close };
}

const text = (...keys: string[]): RootKeySource => ({ from: "text", text: keys.join(",") });

async function rootIds(w: World): Promise<unknown[]> {
  const rows = await w.run("select root_id from system_keys union select root_id from data_keys order by 1");
  return rows.map((row) => row["root_id"]);
}

/** Runs the rotation until it has reported so often, and then as if it were killed. */
async function interrupted(
  desk: Desk,
  where: string | undefined,
  reports: number,
  bytesAtOnce: number | undefined = 1, // a transaction for each item
): Promise<void> {
  let left = reports;
  const killed = new Error("killed");
  const report = () => {
    left -= 1;
    if (left === 0) throw killed;
  };
  const run = rotateData(desk, where, report, bytesAtOnce);
  expect(await run.catch((error: unknown) => error)).toBe(killed);
}

describeBoth("rotate root", (_, dialect) => {
  test("servers with the new and the old root key, in either order, read the same before and after", async () => {
    const w = await openWorld(dialect);
    const older = (w.config.rootKey as { text: string }).text;
    const newer = spelled(newKey());
    const { key } = await furnished(w);
    const servers = [await beside(w, text(older, newer)), await beside(w, text(newer, older))];
    const [first, second] = servers as [(typeof servers)[0], (typeof servers)[0]];
    const before = await readAll(first.client, key);
    expect(await readAll(second.client, key)).toEqual(before);

    const done = await rotateRoot(second.desk, second.config, false);
    expect(done).toEqual({
      rootId: idOf(newer),
      olderRootIds: [idOf(older)],
      systemKeys: 3,
      dataKeys: 1,
      source: "KEYHOLE_ROOT_KEY",
      dropped: false,
    });
    expect(await rootIds(w)).toEqual([idOf(newer)]);
    for (const { client } of servers) expect(await readAll(client, key)).toEqual(before);

    // The older one is not needed any more, and a second run finds nothing to do.
    const alone = await beside(w, text(newer));
    expect(await readAll(alone.client, key)).toEqual(before);
    expect(await rotateRoot(second.desk, second.config, false)).toMatchObject({ systemKeys: 0, dataKeys: 0 });
    for (const server of [...servers, alone]) await server.close();
    await w.close();
  });

  test("is refused where one root key is configured and everything is under it, and changes nothing", async () => {
    const w = await openWorld(dialect);
    await furnished(w);
    const stored = () => w.run("select project_id, generation, root_id, wrapped from data_keys order by 1, 2");
    const before = await stored();
    await expect(rotateRoot(w.desk, w.config, false)).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("KEYHOLE_ROOT_KEY holds one root key"),
    });
    await expect(rotateRoot(w.desk, w.config, true)).rejects.toMatchObject({ kind: "invalid" });
    expect(await stored()).toEqual(before);
    await w.close();
  });

  test("moves nothing while any key is under a root key that is not configured", async () => {
    const w = await openWorld(dialect);
    const { id } = await furnished(w);
    const both = await beside(w, text(spelled(newKey()), (w.config.rootKey as { text: string }).text));
    const before = await rootIds(w);
    await w.sql`update data_keys set root_id = 'feedfacefeedface' where project_id = ${id}`;
    await expect(rotateRoot(both.desk, both.config, false)).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("feedfacefeedface, which KEYHOLE_ROOT_KEY does not hold"),
    });
    expect(await rootIds(w)).toEqual([...before, "feedfacefeedface"].sort());
    await both.close();
    await w.close();
  });

  test("names a data key that does not open, leaves it, and moves all others", async () => {
    const w = await openWorld(dialect);
    const { id } = await furnished(w);
    const { key } = await furnished(w);
    const both = await beside(w, text(spelled(newKey()), (w.config.rootKey as { text: string }).text));
    const [row] = await w.sql`select wrapped from data_keys where project_id = ${id}`;
    const damaged = Buffer.from(row?.["wrapped"] as Buffer);
    damaged.writeUInt8(damaged.readUInt8(50) ^ 1, 50);
    await w.sql`update data_keys set wrapped = ${damaged} where project_id = ${id}`;
    const failure = rotateRoot(both.desk, both.config, false);
    await expect(failure).rejects.toMatchObject({ message: expect.stringContaining(`data key 1 of project ${id}`) });
    expect(await w.sql`select wrapped from data_keys where project_id = ${id}`).toEqual([{ wrapped: damaged }]);
    expect(await w.sql`select distinct root_id from data_keys where project_id <> ${id}`).toEqual([
      { root_id: both.installation.keyring.rootId },
    ]);
    await readAll(both.client, key);
    await both.close();
    await w.close();
  });

  test("goes through more keys than one transaction takes", async () => {
    const w = await openWorld(dialect);
    const organization = await w.organization();
    for (let count = 0; count < 205; count++) await w.project(organization, `project-${count}`);
    const both = await beside(w, text(spelled(newKey()), (w.config.rootKey as { text: string }).text));
    const reports: [number, number][] = [];
    const done = await rotateRoot(both.desk, both.config, false, (...report) => reports.push(report));
    expect(done).toMatchObject({ systemKeys: 3, dataKeys: 205 });
    expect(reports).toEqual([
      [103, 208],
      [203, 208],
      [208, 208],
    ]);
    await both.close();
    await w.close();
  });

  test("whoever has the older root key in front still wraps new data keys under the newer one", async () => {
    const w = await openWorld(dialect);
    const older = (w.config.rootKey as { text: string }).text;
    const newer = spelled(newKey());
    const { where } = await furnished(w);
    const [late, rotating] = [await beside(w, text(older, newer)), await beside(w, text(newer, older))];
    await rotateRoot(rotating.desk, rotating.config, false);
    await createProject(late.desk, where.replace("web", "late"), {});
    await rotateData(late.desk, where);
    expect(await rootIds(w)).toEqual([idOf(newer)]);
    // One that has the older alone can make no project, since nobody could read it once that one is gone.
    await expect(createProject(w.desk, where.replace("web", "later"), {})).rejects.toMatchObject({
      code: "decryption_failed",
    });
    await late.close();
    await rotating.close();
    await w.close();
  });

  test("a server whose root key comes from a file finds a new one there by itself", async () => {
    const w = await openWorld(dialect);
    const older = (w.config.rootKey as { text: string }).text;
    const newer = spelled(newKey());
    const { key } = await furnished(w);
    const folder = mkdtempSync(join(tmpdir(), "keyhole-root-"));
    const path = join(folder, "root.key");
    writeFileSync(path, `${older}\n`, { mode: 0o600 });
    const server = await beside(w, { from: "file", path });
    const before = await readAll(server.client, key);
    writeFileSync(path, `${newer}\n${older}\n`);
    const rotating = await beside(w, { from: "file", path });
    await rotateRoot(rotating.desk, rotating.config, false);
    expect(await readAll(server.client, key)).toEqual(before);
    await rotating.close();
    await server.close();
    await w.close();
    rmSync(folder, { recursive: true });
  });
});

describeBoth("rotate root with a generated root.key", () => {
  const generated = { from: "folder" } as const;
  const linesOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");

  async function opened() {
    const w = await openWorld("sqlite");
    const path = join(w.config.dataFolder, "root.key");
    writeFileSync(path, `${(w.config.rootKey as { text: string }).text}\n`, { mode: 0o600 });
    return { w, path, ...(await furnished(w)) };
  }

  test("puts a new one in front, closed to others, while a running server reads on, and drops the older by --finish", async () => {
    const { w, path, key } = await opened();
    const [older] = linesOf(path);
    const server = await beside(w, generated);
    const before = await readAll(server.client, key);
    expect(await rotateRoot(server.desk, server.config, false)).toMatchObject({ systemKeys: 3, dataKeys: 1 });
    const [newer, ...rest] = linesOf(path);
    expect(rest).toEqual([older as string]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await rootIds(w)).toEqual([idOf(newer as string)]);
    const fresh = w.client(); // its keyring never hears of the file
    expect((await fresh.ask(reads[1] as string, { key })).status).toBe(503);
    expect(await readAll(server.client, key)).toEqual(before);

    // Once more makes no third key.
    await rotateRoot(server.desk, server.config, false);
    expect(linesOf(path)).toEqual([newer as string, older as string]);
    expect(await rotateRoot(server.desk, server.config, true)).toMatchObject({ dropped: true });
    expect(linesOf(path)).toEqual([newer as string]);
    expect(await readAll(server.client, key)).toEqual(before);
    const late = await beside(w, generated);
    expect(await readAll(late.client, key)).toEqual(before);
    await expect(rotateRoot(server.desk, server.config, true)).rejects.toMatchObject({ kind: "conflict" });
    await late.close();
    await server.close();
    await w.close();
  });

  test("after a kill between the file and the keys, goes on with the key that was made, and --finish does all the rest", async () => {
    const { w, path, key } = await opened();
    const [older] = linesOf(path);
    const made = spelled(newKey());
    writeFileSync(path, `${made}\n${older}\n`);
    const server = await beside(w, generated);
    expect(await rotateRoot(server.desk, server.config, true)).toMatchObject({ systemKeys: 3, dataKeys: 1 });
    expect(linesOf(path)).toEqual([made]);
    expect(await rootIds(w)).toEqual([idOf(made)]);
    await readAll(server.client, key);
    await server.close();
    await w.close();
  });

  test("does not make a key twice when two begin at once", async () => {
    const { w, path } = await opened();
    const [older] = linesOf(path);
    const two = await beside(w, generated);
    const outcomes = await Promise.allSettled([
      rotateRoot(two.desk, two.config, false),
      rotateRoot(two.desk, two.config, false),
    ]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(linesOf(path)).toHaveLength(2);
    expect(linesOf(path)[1]).toBe(older as string);
    await two.close();
    await w.close();
  });

  test("says loudly where others may read the file, and goes on", async () => {
    const { w, path } = await opened();
    for (const [mode, words] of [
      [0o600, []],
      [0o400, []],
      [0o440, [expect.stringMatching(/^WARNING: .*\(mode 0440\)/)]],
      [0o644, [expect.stringMatching(/^WARNING: .*\(mode 0644\)/)]],
    ] as const) {
      chmodSync(path, mode);
      const said: string[] = [];
      await openInstallation({ ...w.config, rootKey: { from: "file", path } }, (line) => said.push(line));
      expect(said).toEqual([...words]);
    }
    await w.close();
  });
}, ["sqlite"]);

describeBoth("rotate data", (world, dialect) => {
  const tables = ["variables", "variable_sets", "accounts", "files", "item_sets"] as const;
  const generationsOf = async (w: World, id: string) => {
    const found: Record<string, unknown> = {};
    for (const table of [...tables, "data_keys"]) {
      const rows = await w.run(`select distinct generation from ${table} where project_id = ? order by generation`, [
        id,
      ]);
      found[table] = rows.map((row) => row["generation"]);
    }
    return found;
  };
  const allOf = (generation: number) =>
    Object.fromEntries([...tables, "data_keys"].map((table) => [table, [generation]]));

  test("seals everything anew under a new data key, with the next version, and nothing else changes", async () => {
    const w = world();
    w.clock.nowMs = 1_700_000_000_000;
    const { where, id, key } = await furnished(w);
    w.clock.nowMs = undefined;
    const listings = async () => ({
      variables: await listVariables(w.desk, where, "production"),
      accounts: await listAccounts(w.desk, where),
      files: await listFiles(w.desk, where),
    });
    const before = { answers: await readAll(w, key), listings: await listings(), projects: await listProjects(w.desk) };
    const done = await rotateData(w.desk, where);
    expect(done).toEqual({
      projects: 1,
      resumed: 0,
      variables: 4,
      accounts: 1,
      files: 2,
      deletedKeys: 1,
      broken: [],
    });
    expect(await generationsOf(w, id)).toEqual(allOf(2));
    const raised = (rows: readonly { version: number }[]) => rows.map((row) => ({ ...row, version: row.version + 1 }));
    expect(await listings()).toEqual({
      variables: raised(before.listings.variables),
      accounts: raised(before.listings.accounts),
      files: raised(before.listings.files),
    } as never);
    expect(await listProjects(w.desk)).toEqual(before.projects);
    expect(await readAll(w.client(), key)).toEqual(before.answers);
    // The sets are current: whole reads need no rows.
    const current = await w.sql`select s.environment from variable_sets s join project_environments e
      on e.project_id = s.project_id and e.environment = s.environment and e.revision = s.revision
      where s.project_id = ${id}`;
    expect(current).toHaveLength(3);
  });

  test("what is written next is under the new data key, and an item that was read before can be deleted", async () => {
    const w = world();
    const { where, id, key } = await furnished(w);
    await rotateData(w.desk, where);
    await rotateData(w.desk, where);
    await setVariables(w.desk, where, "production", [{ name: "URL", value: "another" }]);
    await deleteAccount(w.desk, where, "ci");
    expect(await generationsOf(w, id)).toEqual({ ...allOf(3), accounts: [] });
    expect((await w.ask(reads[1] as string, { key })).text).toContain('"value":"another"');
  });

  test("makes nothing good that SQL did to accounts or files, and names a set that it could not go on from", async () => {
    const w = world();
    const { where, id, key } = await furnished(w);
    const accounts = async (environment: string) =>
      (await w.ask(`/projects/web/accounts?environment=${environment}`, { key })).status;
    const files = async (environment: string) =>
      (await w.ask(`/files?project=web&environment=${environment}`, { key })).status;
    const [before] = await w.sql`select * from accounts where project_id = ${id}`;
    await setAccount(w.desk, where, "ci", ["staging", "production"], { username: "newer" });
    await w.sql`update accounts set version = ${before?.["version"]}, sealed = ${before?.["sealed"]},
      updated_at = ${before?.["updated_at"]} where project_id = ${id}`;
    await w.sql`delete from files where project_id = ${id} and path = 'config/app.json'`;
    await w.sql`delete from item_sets where project_id = ${id} and kind = 'files' and environment = 'staging'`;
    const asked = async () => [await accounts("staging"), await accounts("production"), await files("production")];
    expect(await asked()).toEqual([503, 503, 503]);
    expect(await rotateData(w.desk, where, undefined, 1)).toMatchObject({
      accounts: 1,
      files: 1,
      deletedKeys: 1,
      broken: [`the set of files of ${where} staging`],
    });
    expect(await asked()).toEqual([503, 503, 503]);
    expect([await accounts("development"), await files("development"), await files("staging")]).toEqual([
      200, 200, 503,
    ]);
    await setAccount(w.desk, where, "ci", ["staging", "production"], { username: "newest" });
    expect(await asked()).toEqual([200, 200, 503]);
  });

  test.each([
    ["is gone", "delete from variable_sets where project_id = ? and environment = 'production'"],
    [
      "does not open",
      "update variable_sets set sealed = substr(sealed, 2) where project_id = ? and environment = 'production'",
    ],
  ])(
    "names a set of variables that %s and makes none in its place, also where no revision shows it",
    async (_, edit) => {
      const w = world();
      const { where, id, key } = await furnished(w);
      const [before] = await w.sql`select revision from project_environments where project_id = ${id}
      and environment = 'production'`;
      await w.run(edit, [id]);
      await w.sql`update project_environments set revision = ${before?.["revision"]} where project_id = ${id}
      and environment = 'production'`;
      const sets = () => w.sql`select * from variable_sets where project_id = ${id} and environment = 'production'`;
      const left = await sets();
      for (let run = 0; run < 2; run++) {
        expect(await rotateData(w.desk, where)).toMatchObject({ broken: [`the set of ${where} production`] });
        expect((await w.client().ask(reads[1] as string, { key })).status).toBe(503);
        expect((await w.client().ask(reads[2] as string, { key })).status).toBe(200);
      }
      expect(await sets()).toEqual(left);
    },
  );

  test("leaves the older data key where a set is still under it", async () => {
    const w = world();
    const { where, id } = await furnished(w);
    await w.sql`update item_sets set listing = '[]' where project_id = ${id} and kind = 'accounts'`;
    expect(await rotateData(w.desk, where)).toMatchObject({
      deletedKeys: 0,
      broken: [`the set of accounts of ${where} staging`, `the set of accounts of ${where} production`],
    });
    expect(await generationsOf(w, id)).toMatchObject({ item_sets: [1, 2], data_keys: [1, 2] });
  });

  test("one that was killed half way is finished by the next run, which begins no third data key", async () => {
    const w = world();
    const { where, id, key } = await furnished(w);
    const before = await readAll(w, key);
    for (const reports of [1, 2, 1, 1]) {
      await interrupted(w.desk, where, reports);
      expect((await generationsOf(w, id))["data_keys"]).toEqual([1, 2]);
      expect(await readAll(w.client(), key)).toEqual(before);
    }
    const done = await rotateData(w.desk, where);
    expect(done).toMatchObject({ projects: 1, resumed: 1, deletedKeys: 1 });
    expect(await generationsOf(w, id)).toEqual(allOf(2));
    expect(await readAll(w.client(), key)).toEqual(before);
  });

  test("of every project: a second run leaves alone what the killed one had finished", async () => {
    const w = await openWorld(dialect);
    const projects = [await furnished(w), await furnished(w), await furnished(w)];
    const before = await Promise.all(projects.map(({ key }) => readAll(w.client(), key)));
    await rotateData(w.desk, projects[2]?.where); // an earlier one, of its own
    await interrupted(w.desk, undefined, 7);
    const generations = async () =>
      Promise.all(projects.map(async ({ id }) => (await generationsOf(w, id))["data_keys"]));
    expect(await generations()).toEqual([[2], [1, 2], [2, 3]]);
    const done = await rotateData(w.desk, undefined);
    expect(done).toMatchObject({ projects: 2, resumed: 2, deletedKeys: 2 });
    expect(await generations()).toEqual([[2], [2], [3]]);
    const after = await Promise.all(projects.map(({ key }) => readAll(w.client(), key)));
    expect(after).toEqual(before);
    // With nothing left to finish, the next one is a new one for all.
    expect(await rotateData(w.desk, undefined)).toMatchObject({ projects: 3, resumed: 0, deletedKeys: 3 });
    expect(await generations()).toEqual([[3], [3], [4]]);
    await w.close();
  });

  test("two at once, with a writer and readers beside them, lose nothing and end under one data key", async () => {
    const w = world();
    const { where, id, key } = await furnished(w);
    const many = Array.from({ length: 300 }, (_, n) => ({ name: `MANY_${n}`, value: `value ${n}` }));
    await setVariables(w.desk, where, "production", many);
    // The embedded database's two writers would be two processes; in one, they share a connection.
    const other = dialect === "postgres" ? deskOf(w.installation) : undefined;
    let over = false;
    const write = async () => {
      let count = 0;
      for (; !over; count++) {
        await setVariables(w.desk, where, "production", [{ name: "COUNT", value: String(count) }]);
        await Bun.sleep(0); // the embedded database answers without ever giving others a turn
      }
      return String(count - 1);
    };
    const read = async () => {
      while (!over) {
        const { status, json } = await w.client().ask(reads[1] as string, { key });
        const { variables } = json as { variables: { key: string; value: string }[] };
        expect(status).toBe(200);
        const said = variables.filter((one) => one.key.startsWith("MANY_"));
        expect(said.every((one) => one.value === `value ${one.key.slice(5)}`)).toBe(true);
        expect(said).toHaveLength(300);
        await Bun.sleep(0);
      }
    };
    const [writing, reading] = [write(), read()];
    const done = await Promise.all([rotateData(w.desk, where), rotateData(other ?? w.desk, where)]);
    over = true;
    await reading;
    const last = await writing;
    expect(done.flatMap(({ broken }) => broken)).toEqual([]);
    const { data_keys, ...items } = await generationsOf(w, id);
    expect(data_keys).toHaveLength(1);
    expect(items).toEqual(Object.fromEntries(tables.map((table) => [table, data_keys])));
    const { json } = await w.client().ask("/projects/web/variables?environment=production&keys=COUNT", { key });
    expect(json).toMatchObject({ variables: [{ key: "COUNT", value: last }] });
    await (other as (Desk & { close(): Promise<void> }) | undefined)?.close();
  });

  test("an environment of more than a response holds is resealed too", async () => {
    const w = world();
    const organization = await w.organization();
    const variables = Object.fromEntries(Array.from({ length: 2100 }, (_, n) => [`NAME_${n}`, "v"]));
    const { where, id } = await w.project(organization, "web", { variables: { staging: variables } });
    const reports: number[] = [];
    const done = await rotateData(w.desk, where, (at) => reports.push(at));
    expect(done).toMatchObject({ variables: 2100, broken: [] });
    expect(reports).toContain(1000);
    expect((await generationsOf(w, id))["variables"]).toEqual([2]);
    const key = await w.key(organization);
    const { json } = await w.ask("/projects/web/variables?environment=staging&keys=NAME_2099", { key });
    expect(json).toMatchObject({ variables: [{ key: "NAME_2099", value: "v" }] });
  });

  test("an item that does not open is named and stays, with the data key it is under; all else is sealed anew", async () => {
    const w = world();
    const { where, id, key } = await furnished(w);
    const [row] = await w.sql`select id, sealed from variables where project_id = ${id} and name = 'TOKEN'`;
    const damaged = Buffer.from(row?.["sealed"] as Buffer);
    damaged.writeUInt8(damaged.readUInt8(20) ^ 1, 20);
    await w.sql`update variables set sealed = ${damaged} where id = ${row?.["id"]}`;
    for (let run = 0; run < 2; run++) {
      const { broken, deletedKeys } = await rotateData(w.desk, where);
      expect({ broken, deletedKeys }).toEqual({ broken: [`TOKEN of ${where} production`], deletedKeys: 0 });
    }
    expect(await w.sql`select sealed from variables where id = ${row?.["id"]}`).toEqual([{ sealed: damaged }]);
    expect(await generationsOf(w, id)).toMatchObject({
      variables: [1, 2],
      accounts: [2],
      files: [2],
      data_keys: [1, 2],
    });
    expect((await w.ask(reads[1] as string, { key })).status).toBe(503);
    expect((await w.ask(reads[2] as string, { key })).status).toBe(200);
    // Set anew, it opens, and the rotation can be finished.
    await setVariables(w.desk, where, "production", [{ name: "TOKEN", value: "new" }]);
    expect(await rotateData(w.desk, where)).toMatchObject({ broken: [], deletedKeys: 1 });
    expect((await w.client().ask(reads[1] as string, { key })).status).toBe(200);
  });

  test("a row that was deleted by SQL is not made good: the set still refuses", async () => {
    const w = world();
    const { where, id, key } = await furnished(w);
    await w.sql`delete from variables where project_id = ${id} and name = 'TOKEN'`;
    expect((await w.ask(reads[1] as string, { key })).status).toBe(503);
    expect(await rotateData(w.desk, where)).toMatchObject({ broken: [], deletedKeys: 1 });
    expect((await w.ask(reads[1] as string, { key })).status).toBe(503);
  });

  test("an envelope whose column lies about its data key does not lose that key", async () => {
    const w = world();
    const { where, id } = await furnished(w);
    await interrupted(w.desk, where, 1); // there is a second data key now
    await w.sql`update files set generation = 2 where project_id = ${id}`;
    expect(await rotateData(w.desk, where)).toMatchObject({ files: 2, broken: [], deletedKeys: 1 });
    expect(await generationsOf(w, id)).toEqual(allOf(2));
  });

  test("files whose pieces are read around the end of a rotation open", async () => {
    const w = world();
    const organization = await w.organization();
    const file = (path: string, bytes: number) =>
      ({ path, environments: ["staging"], content: Buffer.alloc(bytes, path) }) as const;
    // The first transaction takes all but the last file.
    const { where } = await w.project(organization, "web", {
      files: [file("c", 3.3 * 1024 * 1024), file("b", 500 * 1024), file("a", 500 * 1024)],
    });
    await interrupted(w.desk, where, 1, 4 * 1024 * 1024);
    const key = await w.key(organization, everything);
    const [b] = await w.sql`select id from files where path = 'b' and generation = 2`;
    let finished = false;
    const client = w.client((keyhole) => ({
      source: {
        ...keyhole.source,
        files: {
          ...keyhole.source.files,
          contents: async (place, ids, from, length) => {
            if (!finished && ids.includes(b?.["id"] as string)) {
              finished = true;
              expect(await rotateData(w.desk, where)).toMatchObject({ files: 1, deletedKeys: 1 });
            }
            return keyhole.source.files.contents(place, ids, from, length);
          },
        },
      },
    }));
    const { status } = await client.ask("/files?project=web&environment=staging&path=a&path=b&metadataOnly=false", {
      key,
    });
    expect({ status, finished }).toEqual({ status: 200, finished: true });
  });
});

describeBoth("a rotation beside a writer", () => {
  /** Has a project to itself, as a writer does, until `done`. */
  const writer = async (w: World, projectId: string) => {
    const client = postgres(w.config.databaseUrl as string, { max: 1, onnotice: () => {} });
    await client`begin`;
    await client`select id from projects where id = ${projectId} for update`;
    await client`update variables set updated_at = updated_at where project_id = ${projectId}`;
    const done = async () => {
      await client`commit`;
      await client.end();
    };
    return { client, done };
  };
  const someoneWaits = async (w: World) => {
    for (;;) {
      const waiting = await w.sql`select pid from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`;
      if (waiting.length > 0) return;
    }
  };

  test("of roots waits for the writer before it touches a data key of the project, so that neither waits in a circle", async () => {
    const w = await openWorld("postgres");
    const { id, key } = await furnished(w);
    const both = await beside(w, text(spelled(newKey()), (w.config.rootKey as { text: string }).text));
    const { client, done } = await writer(w, id);
    const rotated = rotateRoot(both.desk, both.config, false);
    await someoneWaits(w);
    const held = client`select generation from data_keys where project_id = ${id} for update nowait`;
    expect(await held.then((rows) => rows.length)).toBe(1);
    await done();
    expect(await rotated).toMatchObject({ dataKeys: 1 });
    await readAll(both.client, key);
    await both.close();
    await w.close();
  });

  test("of all data takes projects by id, whatever they are called", async () => {
    const w = await openWorld("postgres");
    const organization = await w.organization();
    const first = await w.project(organization, "z", { variables: { staging: { A: "1" } } });
    const second = await w.project(organization, "a", { variables: { staging: { A: "2" } } });
    expect(first.id < second.id).toBe(true);
    const { client, done } = await writer(w, first.id);
    const rotated = rotateData(w.desk, undefined);
    await someoneWaits(w);
    const free = client`select id from projects where id = ${second.id} for update nowait`;
    expect(await free.then((rows) => rows.length)).toBe(1);
    await done();
    expect(await rotated).toMatchObject({ projects: 2, variables: 2, broken: [] });
    await w.close();
  });
}, ["postgres"]);

describeBoth("key rotate", (world) => {
  const dayMs = 86_400_000;

  test("gives a successor of the same grant; both are good until the old one's overlap is over", async () => {
    const w = world();
    const organization = await w.organization();
    const { id: projectId } = await w.project(organization, "web", { variables: { staging: { A: "1" } } });
    const old = await w.key(organization, {
      name: "deploy",
      surfaces: ["rest_api", "ci_action"],
      resources: ["variables"],
      projects: ["web"],
      environments: ["staging"],
    });
    const { successor, predecessor } = await rotateKey(w.desk, old.id, dayMs);
    const { id, key, createdAt, ...grant } = successor;
    const { id: _id, key: _key, createdAt: _createdAt, ...oldGrant } = old;
    expect(grant).toEqual(oldGrant);
    expect(id).not.toBe(old.id);
    expect(key).not.toBe(old.key);
    expect(predecessor.expiresAt).toBe(createdAt + dayMs);
    expect(predecessor.id).toBe(old.id);
    const path = "/projects/web/variables?environment=staging";
    for (const one of [old, successor]) expect((await w.ask(path, { key: one })).status).toBe(200);
    expect((await w.ask("/projects/web/variables?environment=production", { key })).status).toBe(403);
    expect(await w.sql`select projects from api_keys where id = ${id}`).toEqual([
      { projects: JSON.stringify({ web: projectId }) },
    ]);
    // What the overlap's end does, without waiting for it.
    await w.regrant(old, { expiresAt: Date.now() - 1 });
    expect((await w.ask(path, { key: old })).status).toBe(401);
    expect((await w.ask(path, { key: successor })).status).toBe(200);
  });

  test("the successor lives as long as the old one was to, and the old one never longer than it would have", async () => {
    const w = world();
    const organization = await w.organization();
    w.clock.nowMs = Date.now() - 80 * dayMs;
    const old = await w.key(organization, { expiresInMs: 90 * dayMs });
    w.clock.nowMs = Date.now();
    const { successor, predecessor } = await rotateKey(w.desk, old.id, 30 * dayMs);
    expect(predecessor.expiresAt).toBe(old.expiresAt);
    expect(successor.expiresAt).toBe(w.clock.nowMs + 90 * dayMs);
    w.clock.nowMs = undefined;
  });

  test("a key that is revoked, expired or changed by SQL, or is none, is refused and nothing is made", async () => {
    const w = world();
    const organization = await w.organization();
    const count = async () => (await w.run("select count(*) as n from api_keys"))[0]?.["n"];
    const [revoked, expired, widened] = [
      await w.key(organization),
      await w.key(organization),
      await w.key(organization),
    ];
    await revokeKey(w.desk, revoked.id);
    await w.regrant(expired, { expiresAt: Date.now() - 1 });
    await w.sql`update api_keys set resources = 31 where id = ${widened.id}`;
    const before = await count();
    for (const [key, words] of [
      [revoked, "is revoked"],
      [expired, "has expired"],
      [widened, "changed by other means"],
    ] as const) {
      const asked = rotateKey(w.desk, key.id, dayMs);
      await expect(asked).rejects.toMatchObject({ kind: "conflict", message: expect.stringContaining(words) });
    }
    await expect(rotateKey(w.desk, "none", dayMs)).rejects.toMatchObject({ kind: "not_found" });
    expect(await count()).toEqual(before);
    expect((await showKey(w.desk, widened.id)).expiresAt).toBeNull();
  });
});
