import { afterEach, expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import postgres from "postgres";
import { environments } from "../../src/core/names.ts";
import type { RootKeySource } from "../../src/core/settings/settings.ts";
import { type Installation, openInstallation } from "../../src/installation/installation.ts";
import { listAccounts } from "../../src/kinds/accounts/write.ts";
import { listFiles } from "../../src/kinds/files/write.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { type AdminContext, adminContextOf, operator } from "../../src/people/desk/context.ts";
import { revokeKey, rotateKey, showKey } from "../../src/people/keys/keys.ts";
import { createProject, listProjects } from "../../src/people/projects/projects.ts";
import { planFinish, rotateData, rotateRoot } from "../../src/people/rotation/rotation.ts";
import { openSigners } from "../../src/record/notary/signers.ts";
import { Keyring, newKey, parseRootKeys } from "../../src/seal/keyring.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { below } from "../support/answer.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { purgeHistory } from "../support/plans.ts";
import { insertProjects, numbered, randomContent } from "../support/rows.ts";
import {
  type Client,
  clientOf,
  describeBoth,
  describeOnce,
  describePostgres,
  everything,
  type Key,
  openWorld,
  type World,
} from "../support/world.ts";

const spelled = (key: Uint8Array) => Buffer.from(key).toString("base64");
const finish = { deletesOld: false };
const idOf = (spelling: string) => new Keyring(parseRootKeys(spelling)).rootId;

/** A project with something of every kind in it, and a key that reads all of it. */
async function furnished(w: World, slug = "web"): Promise<{ where: string; id: string; key: Key }> {
  return w.place({
    slug,
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
    key: everything,
  });
}

const inProduction = "/projects/web/variables?environment=production";
const reads = [
  ...["/projects/web", inProduction],
  ...below("/projects/web/variables?environment=", "development", "staging"),
  ...below(inProduction, "&keys=URL,TOKEN", "&metadata_only=true"),
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

/** Ends what a test opened, the last first. */
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A world for one test. */
async function ownWorld(dialect: World["dialect"]): Promise<World> {
  const w = await openWorld(dialect);
  closing.push(w.close);
  return w;
}

const rootOf = (w: World) => (w.config.rootKey as { text: string }).text;

/** Another process on the world's database: its own keyring, its own connections. */
async function beside(w: World, rootKey: RootKeySource) {
  const config = { ...w.config, rootKey };
  const installation = await openInstallation(config, () => {});
  const keyhole = await openKeyhole(installation, () => {});
  const admin = adminContextOf(installation, operator("ann@host"));
  closing.push(admin.close, keyhole.close);
  return { installation, config, client: clientOf(keyhole), admin };
}

const text = (...keys: string[]): RootKeySource => ({ from: "text", text: keys.join(",") });

async function rootIds(w: World): Promise<unknown[]> {
  const rows = await w.run("select root_id from system_keys union select root_id from data_keys order by 1");
  return rows.map((row) => row["root_id"]);
}

/** Runs a rotation and stops it after that many transactions, as if it had been killed. */
async function interrupted(admin: AdminContext, where: string | undefined, transactions: number): Promise<void> {
  let left = transactions;
  const killed = new Error("killed");
  const transaction: AdminContext["database"]["transaction"] = async (work) => {
    if (left === 0) throw killed;
    left -= 1;
    return admin.database.transaction(work);
  };
  const run = rotateData({ ...admin, database: { ...admin.database, transaction } }, where);
  expect(await run.catch((error: unknown) => error)).toBe(killed);
}

/** A rotation of one project begins a generation, and goes through its six sealed sets, its contents and data keys. */
const [beginning, rest] = [1, 9];

describeBoth("rotate root", (_, dialect, once) => {
  /** A world of its own, and processes beside it with a new root key and the old one, in this order. */
  const rotating = async () => {
    const w = await ownWorld(dialect);
    const [older, newer] = [rootOf(w), spelled(newKey())];
    return { w, older, newer, both: await beside(w, text(newer, older)) };
  };

  once("wraps the keys that sign the audit's tree again, and they stay the same", async () => {
    const { w, newer, both } = await rotating();
    const signed = ({ keyring, systemKeys }: Installation) =>
      openSigners(w.admin.database, keyring, systemKeys.audit).then(({ signers: [{ publicKey }] }) => publicKey);
    const before = await signed(w.installation);
    expect(await rotateRoot(both.admin, both.config, false)).toMatchObject({ systemKeys: 5 });
    expect(await signed((await beside(w, text(newer))).installation)).toEqual(before);
    const { flaws } = await openSigners(w.admin.database, w.installation.keyring, w.admin.systemKeys.audit);
    expect(flaws).toMatchObject([
      { sentence: expect.stringMatching(/^Row 1 of audit_signers is under the root key /) },
    ]);
  });

  test("servers with the new and the old root key, in either order, read the same before and after", async () => {
    const { w, older, newer, both: second } = await rotating();
    const { key } = await furnished(w);
    const first = await beside(w, text(older, newer));
    const before = await readAll(first.client, key);
    expect(await readAll(second.client, key)).toEqual(before);

    const done = await rotateRoot(second.admin, second.config, false);
    const told = { rootId: idOf(newer), olderRootIds: [idOf(older)], source: "KEYHOLE_ROOT_KEY" };
    expect(done).toEqual({ ...told, systemKeys: 4, dataKeys: 1, dropped: false, kept: [] });
    expect(await rootIds(w)).toEqual([idOf(newer)]);
    for (const { client } of [first, second]) expect(await readAll(client, key)).toEqual(before);

    // The older one is not needed any more, and a second run finds nothing to do.
    const alone = await beside(w, text(newer));
    expect(await readAll(alone.client, key)).toEqual(before);
    expect(await rotateRoot(second.admin, second.config, false)).toMatchObject({ systemKeys: 0, dataKeys: 0 });
  });

  once("is refused and changes nothing if everything is under the only root key already", async () => {
    const w = await ownWorld(dialect);
    await furnished(w);
    const stored = () => w.run("select project_id, generation, root_id, wrapped from data_keys order by 1, 2");
    const before = await stored();
    await expect(rotateRoot(w.admin, w.config, false)).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("KEYHOLE_ROOT_KEY holds one root key"),
    });
    await expect(rotateRoot(w.admin, w.config, finish)).rejects.toMatchObject({ kind: "invalid" });
    expect(await stored()).toEqual(before);
  });

  once("moves nothing while any key is under a root key that is not configured", async () => {
    const { w, both } = await rotating();
    const { id } = await furnished(w);
    const before = await rootIds(w);
    await w.sql`update data_keys set root_id = 'feedfacefeedface' where project_id = ${id}`;
    await expect(rotateRoot(both.admin, both.config, false)).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining("feedfacefeedface, which KEYHOLE_ROOT_KEY does not hold"),
    });
    expect(await rootIds(w)).toEqual([...before, "feedfacefeedface"].sort());
  });

  once("moves nothing while a row of the notary's keys is damaged, says which, and goes on without it", async () => {
    const { w, both } = await rotating();
    await openSigners(w.admin.database, w.admin.keyring, w.admin.systemKeys.audit);
    const copy = `insert into audit_signers (generation, public_key, root_id, wrapped, created_at)
      select 2, public_key, root_id, wrapped, created_at from audit_signers`;
    const harms = [
      ["update audit_signers set wrapped = public_key", "Row 1 of audit_signers was changed or made up"],
      [copy, "Row 2 of audit_signers was changed or made up"],
    ] as const;
    const before = await rootIds(w);
    for (const [harm, words] of harms) {
      await w.run(harm);
      await expect(rotateRoot(both.admin, both.config, false)).rejects.toMatchObject({
        kind: "conflict",
        message: expect.stringContaining(words),
      });
      await w.run("delete from audit_signers");
      await openSigners(w.admin.database, w.admin.keyring, w.admin.systemKeys.audit);
    }
    expect(await rootIds(w)).toEqual(before);
    await w.run("delete from audit_signers");
    expect(await rotateRoot(both.admin, both.config, false)).toMatchObject({ systemKeys: 4 });
  });

  once("names a data key that does not open, leaves it, and moves all others", async () => {
    const { w, both } = await rotating();
    const [{ id }, { key }] = [await furnished(w), await furnished(w)];
    const [row] = await w.sql`select wrapped from data_keys where project_id = ${id}`;
    const damaged = Buffer.from(row?.["wrapped"] as Buffer);
    damaged.writeUInt8(damaged.readUInt8(50) ^ 1, 50);
    await w.sql`update data_keys set wrapped = ${damaged} where project_id = ${id}`;
    const failure = rotateRoot(both.admin, both.config, false);
    await expect(failure).rejects.toMatchObject({ message: expect.stringContaining(`data key 1 of project ${id}`) });
    expect(await w.sql`select wrapped from data_keys where project_id = ${id}`).toEqual([{ wrapped: damaged }]);
    expect(await w.sql`select distinct root_id from data_keys where project_id <> ${id}`).toEqual([
      { root_id: both.installation.keyring.rootId },
    ]);
    await readAll(both.client, key);
  });

  once("goes through more keys than one transaction takes", async () => {
    const { w, both } = await rotating();
    await insertProjects(w, await w.organization(), numbered("p", 105));
    for (const { id } of await w.run("select id from projects")) {
      const { rootId, wrapped } = w.admin.keyring.wrapDataKey(String(id), 1, newKey());
      await w.sql`insert into data_keys (project_id, generation, root_id, wrapped, created_at)
        values (${id}, 1, ${rootId}, ${wrapped}, 1)`;
    }
    const reports: [number, number][] = [];
    const done = await rotateRoot(both.admin, both.config, false, (...report) => reports.push(report));
    expect(done).toMatchObject({ systemKeys: 4, dataKeys: 105 });
    expect(reports.join(" ")).toBe("104,109 109,109");
  });

  once("a process with the older root key in front still wraps new data keys under the newer one", async () => {
    const { w, older, newer, both } = await rotating();
    const { where } = await furnished(w);
    const late = await beside(w, text(older, newer));
    await rotateRoot(both.admin, both.config, false);
    await createProject(late.admin, where.replace("web", "late"), {});
    await rotateData(late.admin, where);
    expect(await rootIds(w)).toEqual([idOf(newer)]);
    // A process with the older one alone makes no project: nobody could read it once that root key is gone.
    const later = createProject(w.admin, where.replace("web", "later"), {});
    await expect(later).rejects.toMatchObject({ code: "decryption_failed" });
  });

  once("a server that takes its root key from a file finds a new one there by itself", async () => {
    const { w, older, newer } = await rotating();
    const { key } = await furnished(w);
    const folder = newFolder();
    const path = join(folder, "root.key");
    writeFileSync(path, `${older}\n`, { mode: 0o600 });
    const server = await beside(w, { from: "file", path });
    const before = await readAll(server.client, key);
    writeFileSync(path, `${newer}\n${older}\n`);
    const another = await beside(w, { from: "file", path });
    await rotateRoot(another.admin, another.config, false);
    expect(await readAll(server.client, key)).toEqual(before);
  });
});

describeOnce("rotate root with a generated root.key", () => {
  const generated = { from: "folder" } as const;
  const linesOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");

  async function opened() {
    const w = await ownWorld("sqlite");
    const path = join(w.config.dataFolder, "root.key");
    writeFileSync(path, `${rootOf(w)}\n`, { mode: 0o600 });
    const { key } = await furnished(w);
    return { w, path, key, older: rootOf(w), server: await beside(w, generated) };
  }

  test("puts a new one in front of the file while a server reads on, and --finish drops the older one", async () => {
    const { w, path, key, older, server } = await opened();
    const before = await readAll(server.client, key);
    expect(await rotateRoot(server.admin, server.config, false)).toMatchObject({ systemKeys: 4, dataKeys: 1 });
    const [newer, ...rest] = linesOf(path);
    expect(rest).toEqual([older]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await rootIds(w)).toEqual([idOf(newer as string)]);
    const fresh = w.client(); // its keyring does not read the file
    expect((await fresh.ask(reads[1] as string, { key })).status).toBe(503);
    expect(await readAll(server.client, key)).toEqual(before);

    // A second run makes no third key.
    await rotateRoot(server.admin, server.config, false);
    expect(linesOf(path)).toEqual([newer as string, older]);
    expect(await rotateRoot(server.admin, server.config, finish)).toMatchObject({ dropped: true });
    expect(linesOf(path)).toEqual([newer as string]);
    expect(await readAll(server.client, key)).toEqual(before);
    const late = await beside(w, generated);
    expect(await readAll(late.client, key)).toEqual(before);
    await expect(rotateRoot(server.admin, server.config, finish)).rejects.toMatchObject({ kind: "conflict" });
  });

  test("goes on with the new root key after a kill between the file and the keys, and --finish does the rest", async () => {
    const { w, path, key, older } = await opened();
    const made = spelled(newKey());
    writeFileSync(path, `${made}\n${older}\n`);
    const server = await beside(w, generated);
    expect(await rotateRoot(server.admin, server.config, finish)).toMatchObject({ systemKeys: 4, dataKeys: 1 });
    expect(linesOf(path)).toEqual([made]);
    expect(await rootIds(w)).toEqual([idOf(made)]);
    await readAll(server.client, key);
  });

  test("asks nobody to drop a root key that something still needs", async () => {
    const { w, path, older } = await opened();
    writeFileSync(path, `${spelled(newKey())}\n${older}\n`);
    await w.run("update data_keys set wrapped = zeroblob(length(wrapped))");
    const server = await beside(w, generated);
    await expect(planFinish(server.admin, server.config)).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringMatching(/^Does not open: data key 1 of project/),
    });
    expect(await rootIds(w)).toEqual([idOf(older)]);
  });

  test("removes the drafts that a killed rotation left, those of 0.2.0 too", async () => {
    const { path, server } = await opened();
    const folder = dirname(path);
    const random = "0123456789abcdef01234567";
    for (const name of [`.keyhole-${random}.part`, `.keyhole-root-key-${random}.part`]) {
      writeFileSync(join(folder, name), linesOf(path).join(""));
    }
    const other = `.keyhole-backup-${random}.part`;
    writeFileSync(join(folder, other), "");
    await rotateRoot(server.admin, server.config, false);
    expect(readdirSync(folder).filter((name) => name.startsWith(".keyhole-"))).toEqual([other]);
  });

  test("makes one new root key if two runs begin at once", async () => {
    const { path, older, server } = await opened();
    const rotate = () => rotateRoot(server.admin, server.config, false);
    const outcomes = await Promise.allSettled([rotate(), rotate()]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(linesOf(path)).toEqual([expect.anything(), older]);
  });

  test("warns if others may read the file, and goes on", async () => {
    const { w, path } = await opened();
    for (const [mode, words] of [
      [0o600, []],
      [0o400, []],
      [0o440, [expect.stringMatching(/^WARNING: .*\(mode 0440\)/)]],
      [0o644, [expect.stringMatching(/^WARNING: .*\(mode 0644\)/)]],
    ] as const) {
      chmodSync(path, mode);
      const warnings: string[] = [];
      await openInstallation({ ...w.config, rootKey: { from: "file", path } }, (line) => warnings.push(line));
      expect(warnings).toEqual([...words]);
    }
  });
});

describeBoth("rotate data", (w, dialect, once) => {
  /** Which generations of a project's data keys there are, and which are in use. */
  const generationsOf = async (w: World, id: string) => {
    const distinct = async (from: string) => {
      const rows = await w.run(`select distinct generation from ${from} and project_id = ? order by generation`, [id]);
      return rows.map((row) => row["generation"]);
    };
    return {
      sets: await distinct("sets where sealed is not null"),
      versions: await distinct("set_versions where sealed is not null"),
      contents: await distinct("file_contents where true"),
      dataKeys: await distinct("data_keys where true"),
    };
  };
  const allOf = (at: number) => ({ sets: [at], versions: [at], contents: [at], dataKeys: [at] });

  test("reseals every set, its kept versions and every content; nothing else changes, version numbers included", async () => {
    w.clock.nowMs = 1_700_000_000_000;
    const { where, id, key } = await furnished(w);
    w.clock.nowMs = undefined;
    const versions = async () => {
      const rows = await w.sql`select kind, environment, version from sets where project_id = ${id} order by 1, 2`;
      return rows.map(({ kind, version }) => [kind, Number(version)] as const);
    };
    const state = async () => ({
      answers: await readAll(w.client(), key),
      variables: await listVariables(w.admin, where, "production"),
      accounts: await listAccounts(w.admin, where),
      files: await listFiles(w.admin, where),
      projects: await listProjects(w.admin),
    });
    const [before, versionsBefore] = [await state(), await versions()];
    const sealed = { sets: 6, versions: 4, contents: 2 };
    const whole = { projects: 1, resumed: 0, ...sealed, deletedKeys: 1, broken: [] };
    expect(await rotateData(w.admin, where)).toEqual(whole);
    expect(await generationsOf(w, id)).toEqual(allOf(2));
    expect(await state()).toEqual(before);
    expect(await versions()).toEqual(versionsBefore);
  });

  once("names a damaged set of files, and keeps every content that may be its own", async () => {
    const { where, id, key } = await furnished(w);
    await purgeHistory(w.admin, { where, environment: "production", kind: "files" }); // an earlier version names the same content
    const at = `project_id = '${id}' and kind = 'files' and environment = 'production'`;
    const [set] = await w.run(`select listing from sets where ${at}`);
    await w.run(`update sets set listing = '[]' where ${at}`);
    const broken = [`the files in production of ${where}`];
    expect(await rotateData(w.admin, where)).toMatchObject({ contents: 1, deletedKeys: 0, broken });
    // Put back, it finds its contents, and the rotation is finished.
    await w.run(`update sets set listing = ? where ${at}`, [set?.["listing"]]);
    await readAll(w.client(), key);
    expect(await rotateData(w.admin, where)).toMatchObject({ resumed: 1, contents: 1, deletedKeys: 1, broken: [] });
    expect(await generationsOf(w, id)).toEqual(allOf(2));
    await readAll(w.client(), key);
  });

  once("names a content that does not open, or is under another data key than its row says, and keeps it", async () => {
    const { where, id, key } = await furnished(w);
    const [row] = await w.sql`select id, sealed from file_contents where project_id = ${id} and size < 100`;
    const sealed = row?.["sealed"] as Buffer;
    const flipped = Buffer.from(sealed);
    flipped[20] = flipped.readUInt8(20) ^ 1;
    const beyond = Buffer.from(sealed);
    beyond.writeUInt32BE(0x8000_0001, 2);
    await interrupted(w.admin, where, beginning);
    for (const [generation, bytes] of [
      [1, flipped],
      [1, beyond],
      [2, sealed],
    ] as const) {
      await w.sql`update file_contents set sealed = ${bytes}, generation = ${generation} where id = ${row?.["id"]}`;
      const broken = [`the file config/app.json of ${where}`];
      expect(await rotateData(w.admin, where)).toMatchObject({ resumed: 1, deletedKeys: 0, broken });
      expect((await generationsOf(w, id)).dataKeys).toEqual([1, 2]);
    }
    await w.sql`update file_contents set generation = 1 where id = ${row?.["id"]}`;
    expect(await rotateData(w.admin, where)).toMatchObject({ contents: 1, deletedKeys: 1, broken: [] });
    expect(await generationsOf(w, id)).toEqual(allOf(2));
    await readAll(w.client(), key);
  });

  once("deletes a content that no listing names", async () => {
    const { where, id, key } = await furnished(w);
    await w.sql`insert into file_contents (id, project_id, size, generation, sealed)
      select 'of nothing', project_id, size, generation, sealed from file_contents
      where project_id = ${id} and size < 100`;
    expect(await rotateData(w.admin, where)).toMatchObject({ contents: 2, deletedKeys: 1, broken: [] });
    expect(await w.sql`select id from file_contents where project_id = ${id}`).toHaveLength(2);
    await readAll(w.client(), key);
  });

  once("names a project whose data key does not open or is missing, and rotates all others", async () => {
    const w = await ownWorld(dialect);
    const [damaged, missing, whole] = [await furnished(w), await furnished(w), await furnished(w)];
    await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${damaged.id}`;
    await w.sql`delete from file_contents where project_id = ${missing.id}`;
    await w.sql`delete from data_keys where project_id = ${missing.id}`;
    const { broken, deletedKeys } = await rotateData(w.admin, undefined);
    // A new data key is made for the first, which does not open what is under the older one.
    expect(broken.filter((one) => one.includes(damaged.where)).length).toBeGreaterThan(0);
    expect(broken).toContain(`the data key of ${missing.where}`);
    expect(broken.filter((one) => one.includes(whole.where))).toEqual([]);
    expect(deletedKeys).toBe(1);
    expect(await generationsOf(w, whole.id)).toEqual(allOf(2));
    await readAll(w.client(), whole.key);
  });

  once("finishes a run that was killed, wherever that was, and begins no third data key", async () => {
    const { where, id, key } = await furnished(w);
    const before = await readAll(w, key);
    await interrupted(w.admin, where, beginning);
    for (let transactions = 0; transactions < rest; transactions++) {
      await interrupted(w.admin, where, transactions);
      expect((await generationsOf(w, id)).dataKeys).toEqual([1, 2]);
      expect(await readAll(w.client(), key)).toEqual(before);
    }
    expect(await rotateData(w.admin, where)).toMatchObject({ projects: 1, resumed: 1, deletedKeys: 1 });
    expect(await generationsOf(w, id)).toEqual(allOf(2));
    expect(await readAll(w.client(), key)).toEqual(before);
  });

  once("of every project leaves alone what a killed run had finished", async () => {
    const w = await ownWorld(dialect);
    const projects = [await furnished(w), await furnished(w), await furnished(w)];
    const before = await Promise.all(projects.map(({ key }) => readAll(w.client(), key)));
    await rotateData(w.admin, projects[2]?.where); // an earlier one, of its own
    await interrupted(w.admin, undefined, beginning + rest + 3);
    const generations = () => Promise.all(projects.map(async ({ id }) => (await generationsOf(w, id)).dataKeys));
    expect(await generations()).toEqual([[2], [1, 2], [2, 3]]);
    const done = await rotateData(w.admin, undefined);
    expect(done).toMatchObject({ projects: 2, resumed: 2, deletedKeys: 2 });
    expect(await generations()).toEqual([[2], [2], [3]]);
    const after = await Promise.all(projects.map(({ key }) => readAll(w.client(), key)));
    expect(after).toEqual(before);
    // With nothing left to finish, the next run rotates all of them.
    expect(await rotateData(w.admin, undefined)).toMatchObject({ projects: 3, resumed: 0, deletedKeys: 3 });
    expect(await generations()).toEqual([[3], [3], [4]]);
  });

  test("never mixes pieces of two generations, and a file that was resealed between two pieces is read again", async () => {
    const contents = ["a", "b", "c"].map((path) => ({ path, content: randomContent(1_100_000) }));
    const stored = contents.map((file) => ({ ...file, environments: ["staging"] as const }));
    const { where, key } = await w.place({ files: stored, key: everything });
    let [asked, rotated] = [0, 0];
    const client = w.client(({ source }) => {
      const pieces: typeof source.contents.pieces = async (...range) => {
        asked += 1;
        const rows = await source.contents.pieces(...range);
        // SQLite reads each content as one piece.
        if ((dialect === "sqlite" || asked % 2 === 0) && rotated < 3) {
          rotated += 1;
          expect(await rotateData(w.admin, where)).toMatchObject({ contents: 3, deletedKeys: 1, broken: [] });
        }
        return rows;
      };
      return { source: { ...source, contents: { ...source.contents, pieces } } };
    });
    const { status, json } = await client.ask("/files?project=web&environment=staging", { key });
    expect(status).toBe(200);
    const { files } = json as { files: { content: string }[] };
    expect(files.map(({ content }) => content)).toEqual(contents.map(({ content }) => content.toString("base64")));
    expect(rotated).toBe(dialect === "sqlite" ? 1 : 3);
  });
});

describePostgres("a rotation beside a writer", (w) => {
  /** Has a project to itself, as a writer does, until `done`. */
  const writer = async (w: World, projectId: string) => {
    const client = postgres(w.databaseUrl as string, { max: 1, onnotice: () => {} });
    await client`begin`;
    await client`select id from projects where id = ${projectId} for update`;
    await client`update sets set version = version where project_id = ${projectId}`;
    const done = async () => {
      await client`commit`;
      await client.end();
    };
    return { client, done };
  };
  const someoneWaits = (w: World) =>
    eventually(async () => {
      const waiting = await w.sql`select pid from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });

  test("of roots does not wait for the writer", async () => {
    const { id, key } = await furnished(w);
    const both = await beside(w, text(spelled(newKey()), rootOf(w)));
    const { done } = await writer(w, id);
    expect(await rotateRoot(both.admin, both.config, false)).toMatchObject({ dataKeys: 1 });
    await readAll(both.client, key);
    await done();
  });

  test("of all data takes projects by id, whatever they are called", async () => {
    const w = await ownWorld("postgres");
    const { organization, project: first } = await w.place({ slug: "z", variables: { staging: { A: "1" } } });
    const second = await w.project(organization, "a", { variables: { staging: { A: "2" } } });
    expect(first.id < second.id).toBe(true);
    const { client, done } = await writer(w, first.id);
    const rotated = rotateData(w.admin, undefined);
    await someoneWaits(w);
    const free = client`select id from projects where id = ${second.id} for update nowait`;
    expect(await free.then((rows) => rows.length)).toBe(1);
    await done();
    expect(await rotated).toMatchObject({ projects: 2, sets: 12, broken: [] });
  });
});

describeBoth("key rotate", (w) => {
  const dayMs = 86_400_000;

  test("makes a successor with the same grant, and both are good until the overlap ends", async () => {
    const reach = { projects: ["web"], environments: ["staging"], resources: ["variables"] };
    const asked = { ...reach, name: "deploy", surfaces: ["rest_api", "ci_action"] } as const;
    const { id: projectId, key: old } = await w.place({ variables: { staging: { A: "1" } }, key: asked });
    const { successor, predecessor } = await rotateKey(w.admin, old.id, dayMs);
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
    const [row] = await w.sql`select projects from api_keys where id = ${id}`;
    expect(row).toEqual({ projects: JSON.stringify({ web: projectId }) });
    // The overlap ends, without waiting for it.
    await w.regrant(old, { expiresAt: Date.now() - 1 });
    expect((await w.ask(path, { key: old })).status).toBe(401);
    expect((await w.ask(path, { key: successor })).status).toBe(200);
  });

  test("gives the successor the lifetime of the old key, and never makes the old key live longer", async () => {
    const organization = await w.organization();
    w.clock.nowMs = Date.now() - 80 * dayMs;
    const old = await w.key(organization, { expiresInMs: 90 * dayMs });
    w.clock.nowMs = Date.now();
    const { successor, predecessor } = await rotateKey(w.admin, old.id, 30 * dayMs);
    expect(predecessor.expiresAt).toBe(old.expiresAt);
    expect(successor.expiresAt).toBe(w.clock.nowMs + 90 * dayMs);
    w.clock.nowMs = undefined;
  });

  test("refuses a key that is revoked, expired, changed by SQL or unknown, and makes nothing", async () => {
    const organization = await w.organization();
    const count = async () => (await w.run("select count(*) as n from api_keys"))[0]?.["n"];
    const make = () => w.key(organization);
    const [revoked, expired, widened] = [await make(), await make(), await make()];
    await revokeKey(w.admin, revoked.id);
    await w.regrant(expired, { expiresAt: Date.now() - 1 });
    await w.sql`update api_keys set resources = 31 where id = ${widened.id}`;
    const before = await count();
    const unfit = { "is revoked": revoked, "has expired": expired, "changed outside Keyhole": widened };
    for (const [words, key] of Object.entries(unfit)) {
      const asked = rotateKey(w.admin, key.id, dayMs);
      await expect(asked).rejects.toMatchObject({ kind: "conflict", message: expect.stringContaining(words) });
    }
    await expect(rotateKey(w.admin, "none", dayMs)).rejects.toMatchObject({ kind: "not_found" });
    expect(await count()).toEqual(before);
    expect((await showKey(w.admin, widened.id)).expiresAt).toBeNull();
  });
});
