import { expect, test } from "bun:test";
import { files } from "../../src/kinds/files/entry.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { diffVariables, revealVariable } from "../../src/kinds/variables/reveal.ts";
import { openEverything } from "../../src/people/backup/verify.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { openSet } from "../../src/people/editing/open.ts";
import { writeSets } from "../../src/people/editing/write.ts";
import { writingProject } from "../../src/people/editing/write-project.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { listAudit } from "../support/audit.ts";
import { deleteVariable } from "../support/delete.ts";
import { personIn } from "../support/persons.ts";
import {
  deleteProject,
  planRollback,
  purgeHistory,
  renameProject,
  rollBack,
  setAccount,
  setVariables,
} from "../support/plans.ts";
import { insertFiles, numbered } from "../support/rows.ts";
import { describeBoth, describeOnce, type Placed, type Row, type World } from "../support/world.ts";

const dayMs = 86_400_000;
const production = (where: string, kind = "variables") => ({ where, environment: "production", kind }) as const;

/** A project whose variables in production had A=1 (version 2), then B=1 (3), then A=2 (4). */
async function written(w: World) {
  const { organization, project } = await w.place();
  const { where } = project;
  const set = (name: string, value: string) => setVariables(w.admin, where, "production", [{ name, value }]);
  await set("A", "1");
  await set("B", "1");
  await set("A", "2");
  return { w, organization, project, where, set, ...rollbacks(w, where) };
}

function rollbacks(w: World, where: string) {
  const back = async (to: number, kind?: string) => {
    const set = production(where, kind);
    return rollBack(w.admin, set, await planRollback(w.admin, set, to));
  };
  const history = async (kind?: string) => {
    const { versions, warnings } = await listHistory(w.admin, production(where, kind));
    return { versions: versions.map(({ version }) => version), warnings };
  };
  return { back, history };
}

/** Everything that a rollback or a purge could change. */
async function rowsOf(w: World, { id }: Placed): Promise<Row[][]> {
  return Promise.all([
    w.sql`select * from projects where id = ${id}`,
    w.sql`select * from sets where project_id = ${id} order by kind, environment`,
    w.sql`select * from set_versions where project_id = ${id} order by kind, environment, version`,
    w.sql`select id from file_contents where project_id = ${id} order by id`,
    w.sql`select id from projects order by id`,
  ]);
}

const at = "kind = 'variables' and environment = 'production'";

/** Makes an earlier version the current one again, with SQL. */
const putBack = (w: World, { id }: Placed, version: number) =>
  w.run(
    `update sets set version = v.version, listing_mac = v.listing_mac, listing = v.listing, sealed = v.sealed
      from set_versions v where v.project_id = sets.project_id and v.kind = sets.kind and v.version = ?
      and v.environment = sets.environment and sets.project_id = ? and sets.${at.replace(" and ", " and sets.")}`,
    [version, id],
  );

describeBoth("history", (w) => {
  test("keeps a version for 90 days after it was replaced, and always the last 20", async () => {
    const begin = 1_700_000_000_000;
    w.clock.nowMs = begin;
    const { set, history } = await written(w);
    for (let version = 5; version <= 30; version++) await set("A", `${version}`);
    // Version 30 is current. It is replaced, after which 1 to 29 were replaced 90 days ago, less a moment.
    w.clock.nowMs = begin + 90 * dayMs - 1;
    await set("A", "31");
    expect((await history()).versions).toHaveLength(31);
    w.clock.nowMs += 1;
    await set("A", "32");
    expect((await history()).versions).toEqual(Array.from({ length: 21 }, (_, index) => 32 - index));
    w.clock.nowMs += 1000 * dayMs;
    await set("A", "33");
    expect((await history()).versions.at(-1)).toBe(13);
    w.clock.nowMs = undefined;
  });

  test("keeps a version for 90 days although one write was dated too early", async () => {
    const { where } = await w.place();
    const now = Date.now();
    for (let at = 0; at <= 30; at++) {
      w.clock.nowMs = at === 28 ? now - 100 * dayMs : now + at;
      await setVariables(w.admin, where, "production", [{ name: "A", value: `${at}` }]);
    }
    w.clock.nowMs = undefined;
    expect((await listHistory(w.admin, production(where))).versions).toHaveLength(32);
  });

  test("keeps as many bytes as the setting allows, and always the last two versions", async () => {
    const { where } = await w.place();
    const write = async (historyBytesMax: number, value: string) =>
      setVariables({ ...w.admin, historyBytesMax }, where, "production", [{ name: "A", value }]);
    const listed = () => listHistory(w.admin, production(where));
    const bytes = 10_000;
    for (let version = 2; version <= 10; version++) await write(4.5 * bytes, `${version}`.padEnd(bytes));
    expect((await listed()).versions.map(({ version }) => version)).toEqual([10, 9, 8, 7, 6]);
    const { kept } = await listed();
    expect([kept.versions, Math.floor(kept.bytes / bytes)]).toEqual([4, 4]);
    await write(0, "small");
    const { versions, warnings } = await listed();
    expect([versions.map(({ version }) => version), warnings]).toEqual([[11, 10, 9], []]);
    await rollbacks(w, where).back(9);
    expect(await revealVariable(w.admin, where, "production", "A")).toBe("9".padEnd(bytes));
    await openEverything(w.admin);
  });

  test("keeps what was in force within the last day from whoever may write, and an operator may remove it", async () => {
    const { where } = await w.place();
    const bytes = 10_000;
    w.clock.nowMs = Date.now() - 400 * dayMs;
    const of = (admin: AdminContext) => (value: string) =>
      setVariables({ ...admin, historyBytesMax: 4.5 * bytes }, where, "production", [{ name: "A", value }]);
    const [operators, anas] = [of(w.admin), of(await personIn(w.admin, where, ["see", "write"]))];
    await operators("precious".padEnd(bytes));
    w.clock.nowMs = Date.now();
    for (let n = 3; n <= 6; n++) await anas(`${n}`.padEnd(bytes));
    const versions = async () => (await rollbacks(w, where).history()).versions;
    const before = await versions();
    const full = { kind: "bound", message: expect.not.stringContaining("KEYHOLE_") };
    await expect(anas("7".padEnd(bytes))).rejects.toMatchObject(full);
    const writer = { ...(await personIn(w.admin, where, ["write"])), historyBytesMax: 2.5 * bytes };
    const put = (n: number) => {
      const content = Buffer.from(`${n}`.padEnd(bytes));
      return putFile(writer, where, { path: "f", environments: ["production"], content });
    };
    for (let n = 1; n <= 3; n++) await put(n);
    await expect(put(4)).rejects.toMatchObject(full);
    expect(await versions()).toEqual(before);
    expect(await revealVariable(w.admin, where, "production", "A")).toBe("6".padEnd(bytes));
    w.clock.nowMs += dayMs;
    for (const n of [7, 8]) await anas(`${n}`.padEnd(bytes));
    w.clock.nowMs += 1;
    for (let n = 9; n <= 12; n++) await operators(`${n}`.padEnd(bytes));
    w.clock.nowMs = undefined;
    expect((await versions())[0]).toBe(12);
    await openEverything(w.admin);
  });

  test("of files counts the contents that only earlier versions name, once, and deletes those of versions that go", async () => {
    const { where, id } = await w.place();
    const bytes = 10_000;
    const put = (path: string, content: string) =>
      putFile({ ...w.admin, historyBytesMax: 4.5 * bytes }, where, {
        ...{ path, environments: ["production"], content: Buffer.from(content.padEnd(bytes)) },
      });
    for (let version = 2; version <= 12; version++) await put("stays", "the same");
    await purgeHistory(w.admin, production(where, "files"));
    for (let version = 13; version <= 22; version++) await put("f", `${version}`);
    const { versions, kept } = await listHistory(w.admin, production(where, "files"));
    // 22 is current; 21 to 18 have contents of their own.
    expect(versions.map(({ version }) => version)).toEqual([22, 21, 20, 19, 18]);
    expect([kept.versions, Math.floor(kept.bytes / bytes)]).toEqual([4, 4]);
    expect(await w.sql`select id from file_contents where project_id = ${id}`).toHaveLength(6);
    await openEverything(w.admin);
  });

  test("shows that SQL put a set back; the next write takes a number that was never given", async () => {
    const { project, set, history, back } = await written(w);
    await putBack(w, project, 2);
    const warning = expect.stringMatching(/^Somebody put the variables of .* back .* Version 4 was lost\.$/);
    expect(await history()).toEqual({ versions: [4, 3, 2, 1], warnings: [warning] });
    await expect(openEverything(w.admin)).rejects.toThrow("back to an earlier version with SQL: version 4 was written");
    await set("C", "3");
    expect(await history()).toEqual({ versions: [5, 4, 3, 2, 1], warnings: [warning] });
    await openEverything(w.admin);
    await expect(back(4)).rejects.toMatchObject({ kind: "not_found" });
    await back(3);
    await purgeHistory(w.admin, production(project.where));
    expect(await history()).toEqual({ versions: [6], warnings: [] });
  });

  const edits = ["actor = 'eve@host'", "at = at - 1", "names = replace(names, 'A', 'Z')", "mac = ''"];
  test.each(edits)("does not show a record that SQL changed: %s", async (change) => {
    const { project, where, history } = await written(w);
    const mac = w.dialect === "sqlite" ? change.replace("''", "x''") : change;
    await w.run(`update set_versions set ${mac} where project_id = ? and version = 2 and ${at}`, [project.id]);
    const warnings = ["Version 2 is not listed: its record was changed with SQL."];
    expect(await history()).toEqual({ versions: [4, 3, 1], warnings });
    await expect(openEverything(w.admin)).rejects.toThrow("Who wrote version 2 of the set of variables of");
    await deleteProject(w.admin, where);
  });

  test.each([5, 9007199254740990])(
    "goes on although SQL made up a record of version %d, which is shown as such",
    async (version) => {
      const { project, where, set, back, history } = await written(w);
      const columns = "project_id, kind, environment, at, actor, names, mac, generation, listing_mac, listing, sealed";
      await w.run(
        `insert into set_versions (version, ${columns}) select ${version}, ${columns} from set_versions
          where project_id = ? and version = 3 and ${at}`,
        [project.id],
      );
      const madeUp = `Version ${version} is not listed: its record was changed with SQL.`;
      expect(await history()).toEqual({ versions: [4, 3, 2, 1], warnings: [madeUp] });
      await set("A", "3");
      const replaced = version === 5;
      expect(await history()).toEqual({ versions: [5, 4, 3, 2, 1], warnings: replaced ? [] : [madeUp] });
      await w.run(`delete from set_versions where project_id = ? and version > 5 and ${at}`, [project.id]);
      await back(3);
      expect((await history()).versions).toEqual([6, 5, 4, 3, 2, 1]);
      await openEverything(w.admin);
      await deleteProject(w.admin, where);
    },
  );

  test("does not show one person's record beside another's content", async () => {
    const { w: _, project, where, set, history } = await written(w);
    const columns = "project_id, kind, environment, version, at, actor, names, mac, listing_mac";
    const of = (version: number) => `project_id = ? and version = ${version} and ${at}`;
    const [record] = await w.run(`select ${columns} from set_versions where ${of(4)}`, [project.id]);
    // Back to version 3, as if version 4 had never been.
    await putBack(w, project, 3);
    await w.run(`delete from set_versions where ${of(4)}`, [project.id]);
    await set("A", "another person's");
    expect((await history()).versions).toEqual([4, 3, 2, 1]);
    const put = async (names: readonly string[]) => {
      const changes = names.map((name) => `${name} = ?`).join(", ");
      const values = names.map((name) => record?.[name]);
      await w.run(`update set_versions set ${changes} where ${of(4)}`, [...values, project.id]);
    };
    const warnings = ["Version 4 is not listed: its record was changed with SQL."];
    await put(["at", "actor", "names", "mac"]);
    expect(await history()).toEqual({ versions: [3, 2, 1], warnings });
    await put(["listing_mac"]);
    expect(await history()).toEqual({ versions: [3, 2, 1], warnings });
    await expect(openEverything(w.admin)).rejects.toThrow("Who wrote version 4 of the set of variables of");
    // Nor does sealing again make it one: the record stays that of the other content.
    await renameProject(w.admin, where, { slug: "shop" });
    const { versions } = await listHistory(w.admin, production(where.replace("/web", "/shop")));
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
    await deleteProject(w.admin, where.replace("/web", "/shop"));
  });

  test("can be looked at and purged although the set itself was changed with SQL", async () => {
    const { project, where, history } = await written(w);
    await w.run(`update sets set listing = '[]' where project_id = ? and ${at}`, [project.id]);
    const warnings = [`The variables of ${where} in production were deleted or changed with SQL.`];
    expect(await history()).toEqual({ versions: [4, 3, 2, 1], warnings });
    expect(await purgeHistory(w.admin, production(where))).toEqual({ removed: 3, warnings: [] });
    expect((await history()).versions).toEqual([4]);
    await deleteProject(w.admin, where);
  });
});

describeOnce("a rollback", (w) => {
  test("is on record, by name, like a purge", async () => {
    const { where, back } = await written(w);
    await back(2);
    await purgeHistory(w.admin, production(where));
    expect((await listAudit(w.admin, { project: where, limit: 100 })).slice(-2)).toMatchObject([
      {
        ...{ action: "variables.rollback", environment: "production", actor: { type: "person", name: "ann@host" } },
        ...{ names: ["A", "B"], added: [], changed: ["A"], deleted: ["B"] },
      },
      { action: "history.purge", environment: "production", names: ["variables"] },
    ]);
  });

  test("to the current version, to one that is not kept or to none is refused, and changes nothing", async () => {
    const { project, back } = await written(w);
    const before = await rowsOf(w, project);
    await expect(back(4)).rejects.toMatchObject({ kind: "invalid" });
    for (const version of [0, 5, 1e9]) await expect(back(version)).rejects.toMatchObject({ kind: "not_found" });
    expect(await rowsOf(w, project)).toEqual(before);
  });

  test("is refused if somebody wrote since it was shown what it would do", async () => {
    const { project, where, set } = await written(w);
    const plan = await planRollback(w.admin, production(where), 2);
    await set("C", "3");
    const before = await rowsOf(w, project);
    const refused = rollBack(w.admin, production(where), plan);
    const message = expect.stringContaining("version 5 now, not 4");
    await expect(refused).rejects.toMatchObject({ kind: "conflict", message });
    expect(await rowsOf(w, project)).toEqual(before);
  });

  test("that would take a project past 1000 files is refused; one that takes variables past 1000 warns", async () => {
    const { project } = await w.place();
    const { where } = project;
    const { back } = rollbacks(w, where);
    const paths = numbered("f/", 2);
    await insertFiles(w, project, paths, ["production"]);
    await writingProject(w.admin, await findProject(w.admin, where, "write"), files, async (admin, locked) => {
      const gone = new Map(paths.map((path) => [path, null]));
      const set = await openSet(admin, { project: locked, descriptor: files, environment: "production" });
      return [undefined, await writeSets(admin, locked, files, new Map([[set, gone]]))];
    });
    await insertFiles(w, project, numbered("g/", 999), ["staging"]);
    const before = await rowsOf(w, project);
    await expect(back(2, "files")).rejects.toMatchObject({ kind: "bound" });
    expect(await rowsOf(w, project)).toEqual(before);

    const many = numbered("N", 1001).map((name) => ({ name, value: "" }));
    await setVariables(w.admin, where, "production", many);
    await back(1);
    expect((await back(2)).warnings).toEqual([expect.stringContaining("has 1001 variables in production")]);
  });

  test("var diff names what differs from an earlier version", async () => {
    const { where } = await written(w);
    const diff = (version: number) => diffVariables(w.admin, where, "production", version);
    const differing = (status: string) =>
      [
        { name: "A", status: "differs" },
        { name: "B", status },
      ] as never;
    expect(await diff(2)).toEqual(differing("only"));
    expect(await diff(4)).toEqual([]);
    await deleteVariable(w.admin, where, "production", "B");
    expect(await diff(3)).toEqual(differing("missing"));
    await expect(diff(9)).rejects.toMatchObject({ kind: "not_found" });
  });
});

describeOnce("a kept version that SQL changed", (w) => {
  const version = (number: number) => `project_id = ? and version = ${number} and ${at}`;
  const copied = (from: string, columns = "listing_mac, generation, listing, sealed") =>
    `(${columns}) = (select ${columns} from set_versions f where f.project_id = set_versions.project_id and ${from})`;
  const ofSet = "f.kind = set_versions.kind and f.environment = set_versions.environment";
  const damages: readonly (readonly [what: string, change: string])[] = [
    ["its listing", "listing = replace(listing, 'updatedAt', 'updatedat')"],
    ["its mac", "listing_mac = substr(listing_mac, 2)"],
    ["its generation", "generation = generation + 1"],
    ["its values, cut", "sealed = substr(sealed, 1, 40)"],
    ["its values, gone", "sealed = null"],
    ["all of another version", copied(`f.version = 3 and ${ofSet}`)],
    ["all of another environment's", copied("f.version = 2 and f.kind = 'variables' and f.environment = 'staging'")],
    ["all of another kind's", copied("f.version = 2 and f.kind = 'accounts' and f.environment = 'production'")],
    ["the values of another version", copied(`f.version = 3 and ${ofSet}`, "sealed")],
  ];
  test.each(damages)("is not rolled back to, and backup verify names it: %s", async (_, change) => {
    const { project, where, back } = await written(w);
    for (const value of ["s", "t"]) {
      await setVariables(w.admin, where, "staging", [{ name: "A", value }]);
      await setAccount(w.admin, where, "A", ["production"], { value });
    }
    await openEverything(w.admin);
    await w.run(`update set_versions set ${change} where ${version(2)}`, [project.id]);
    const before = await rowsOf(w, project);
    const conflict = { kind: "conflict", message: expect.stringContaining("Version 2 of the variables of") };
    await expect(back(2)).rejects.toMatchObject(conflict);
    expect(await rowsOf(w, project)).toEqual(before);
    const closed = `Version 2 of the set of variables of ${where}, production, does not open.`;
    await expect(openEverything(w.admin)).rejects.toThrow(closed);
    // The others are as good as before.
    await back(3);
    await deleteProject(w.admin, where);
  });

  test("stops a rename, and is named by a rotation, which keeps the older data key until it is purged", async () => {
    const { project, where } = await written(w);
    await w.run(`update set_versions set sealed = substr(sealed, 1, 40) where ${version(2)}`, [project.id]);
    const before = await rowsOf(w, project);
    await expect(renameProject(w.admin, where, { slug: "shop" })).rejects.toThrow(`history purge ${where} production`);
    expect(await rowsOf(w, project)).toEqual(before);
    const broken = [`version 2 of the variables in production of ${where}`];
    expect(await rotateData(w.admin, where)).toMatchObject({ sets: 6, versions: 2, deletedKeys: 0, broken });
    await purgeHistory(w.admin, production(where));
    expect(await rotateData(w.admin, where)).toMatchObject({ resumed: 1, deletedKeys: 1, broken: [] });
    await renameProject(w.admin, where, { slug: "shop" });
    await openEverything(w.admin);
  });

  test("of files is not rolled back to if a content is gone, and contents stay while a listing is damaged", async () => {
    const { where, id } = await w.place();
    const { back } = rollbacks(w, where);
    for (const content of ["first", "second", "third"]) {
      await putFile(w.admin, where, { path: "f", environments: ["production"], content: Buffer.from(content) });
    }
    const [row] = await w.sql`select listing from set_versions where project_id = ${id} and version = 2
      and kind = 'files' and environment = 'production'`;
    const [first] = JSON.parse(row?.["listing"] as string) as { id: string }[];
    const count = async () => (await w.sql`select id from file_contents where project_id = ${id}`).length;
    await w.sql`update set_versions set listing = '[]' where project_id = ${id} and version = 3
      and kind = 'files' and environment = 'production'`;
    const { warnings } = await purgeHistory(w.admin, { ...production(where, "files"), environment: "staging" });
    expect(warnings).toEqual([expect.stringContaining("version 3 of the files in production may name any")]);
    expect(await count()).toBe(3);
    await w.sql`delete from file_contents where id = ${first?.id}`;
    await expect(back(2, "files")).rejects.toMatchObject({ kind: "conflict" });
    await purgeHistory(w.admin, production(where, "files"));
    expect(await count()).toBe(1);
    await openEverything(w.admin);
  });
});
