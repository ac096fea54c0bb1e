import { expect, test } from "bun:test";
import { openInstallation } from "../../src/installation/installation.ts";
import { openEverything } from "../../src/people/backup/verify.ts";
import { createKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { createProject, listProjects } from "../../src/people/projects/projects.ts";
import { migrations } from "../../src/store/migrate.ts";
import { deleteOrganization, setVariables, showProject } from "../support/plans.ts";
import { describeBoth, type World } from "../support/world.ts";

/** Two organizations, each with a project of the same slug. */
async function pair(w: World) {
  const [one, other] = [await w.organization(), await w.organization()];
  const where = `${one.slug}/p1`;
  await w.project(one, "p1");
  await w.project(other, "p1");
  return { one, other, where };
}

function exchangeSlugs({ run }: World, one: { id: string; slug: string }, other: { id: string; slug: string }) {
  const rename = (id: string, slug: string) => run("update organizations set slug = ? where id = ?", [slug, id]);
  return rename(one.id, "moved")
    .then(() => rename(other.id, one.slug))
    .then(() => rename(one.id, other.slug));
}

describeBoth("the row of an organization that SQL changed", (w) => {
  const conflict = { kind: "conflict", message: expect.stringContaining("was changed by other means than Keyhole") };

  test("is refused by whatever resolves its slug, and nothing is written into another organization", async () => {
    const { one, other, where } = await pair(w);
    const sets = () => w.sql`select * from sets order by project_id, kind, environment`;
    const before = await sets();
    await exchangeSlugs(w, one, other);
    const attempts = [
      () => setVariables(w.admin, where, "production", [{ name: "A", value: "1" }]),
      () => createProject(w.admin, `${one.slug}/p2`, {}),
      () => showProject(w.admin, where),
      () => listProjects(w.admin, one.slug),
      () => setPlan(w.admin, one.slug, "free"),
      () => deleteOrganization(w.admin, one.slug),
      () => createKey(w.admin, { organization: one.slug, name: "k", environments: ["staging"] } as never),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject(conflict);
    expect(await sets()).toEqual(before);
    await expect(openEverything(w.admin)).rejects.toThrow("The organization ");
    await w.sql`update organizations set slug = 'moved' where id = ${one.id}`;
    await w.sql`update organizations set slug = ${other.slug} where id = ${other.id}`;
    await w.sql`update organizations set slug = ${one.slug} where id = ${one.id}`;
    await setVariables(w.admin, where, "production", [{ name: "A", value: "1" }]);
    await openEverything(w.admin);
  });

  const seals = ["null", "''", "of another"];
  test.each(seals)("is refused with a seal that is %s, also after the next start", async (seal) => {
    const { one, other, where } = await pair(w);
    const [kept] = await w.sql`select seal from organizations where id = ${one.id}`;
    const [foreign] = await w.sql`select seal from organizations where id = ${other.id}`;
    const value = { null: null, "''": Buffer.alloc(0), "of another": foreign?.["seal"] }[seal];
    await w.run("update organizations set seal = ? where id = ?", [value, one.id]);
    await expect(setVariables(w.admin, where, "production", [])).rejects.toMatchObject(conflict);
    await openInstallation(w.config, () => {});
    await expect(showProject(w.admin, where)).rejects.toMatchObject(conflict);
    await w.run("update organizations set seal = ? where id = ?", [kept?.["seal"], one.id]);
    await showProject(w.admin, where);
  });

  test("stays refused if SQL undoes the migrations that brought its seal and what came after", async () => {
    const { where } = await pair(w);
    const all = migrations[w.dialect].flatMap(({ sql }) => sql).map((statement) => statement.trim());
    const later = migrations[w.dialect].slice(1).flatMap(({ sql }) => sql);
    for (const statement of later.toReversed()) {
      const [, made] = /CREATE TABLE ["`](\w+)/.exec(statement) ?? [];
      const [, table, column] = /ALTER TABLE ["`](\w+)["`] ADD (?:COLUMN )?["`](\w+)/.exec(statement) ?? [];
      const [, index] = /CREATE INDEX ["`](\w+)/.exec(statement) ?? [];
      const [, dropped] = /DROP INDEX ["`](\w+)/.exec(statement) ?? [];
      if (index !== undefined) await w.run(`drop index if exists ${index}`);
      if (dropped !== undefined)
        await w.run(all.find((one) => one.startsWith("CREATE INDEX") && one.includes(dropped)) ?? "");
      if (made !== undefined) await w.run(`drop table ${made}`);
      if (column !== undefined) await w.run(`alter table ${table} drop column ${column}`);
    }
    const done = "keyhole_migrations";
    await w.run(`delete from ${done} where created_at > (select min(created_at) from ${done})`);
    await openInstallation(w.config, () => {}, { upgrade: true });
    await expect(showProject(w.admin, where)).rejects.toMatchObject(conflict);
  });
});
