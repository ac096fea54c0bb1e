import { expect, test } from "bun:test";
import { listAccounts } from "../../src/kinds/accounts/write.ts";
import { listFiles, putFile } from "../../src/kinds/files/write.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import { diffVariables, revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { AuditTail, showAudit } from "../../src/people/audit/audit.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { type AdminContext, writing } from "../../src/people/desk/context.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { RosterWatch, whoIs } from "../../src/people/desk/roster.ts";
import { openSet } from "../../src/people/editing/open.ts";
import { createKey, revokeKey, rotateKey, shortKeyIds, showKey } from "../../src/people/keys/keys.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { addPerson, listPersons, ownRights, showPerson } from "../../src/people/persons/persons.ts";
import { listOrganizations } from "../../src/people/projects/organizations.ts";
import { everyRight, type Holding, type Right } from "../../src/serve/access/rights.ts";
import type { SignInAs } from "../../src/serve/access/roster.ts";
import { auditPages, listAudit } from "../support/audit.ts";
import { beforeTransaction } from "../support/before-transaction.ts";
import { deleteAccount } from "../support/delete.ts";
import { eventually } from "../support/eventually.ts";
import { asPerson, personIn } from "../support/persons.ts";
import {
  copyVariables,
  deleteOrganization,
  deleteProject,
  grantRights,
  planRollback,
  removePerson,
  renameProject,
  revokeRights,
  setAccount,
  setVariables,
  wouldSet,
} from "../support/plans.ts";
import { pruneAudit } from "../support/prune.ts";
import { withAdmins } from "../support/rows.ts";
import { describeBoth, describeOnce, type World } from "../support/world.ts";

const everywhere = { projects: null, environments: null };

/** An organization with a project, and a person who may write its production. */
async function withAna(w: World) {
  const { organization, where } = await w.place();
  const name = `ana${organization.slug.replace("org", "")}`;
  await addPerson(w.admin, { name, organization: organization.slug, signIn: null });
  await grantRights(w.admin, name, { rights: ["see", "write"], projects: ["web"], environments: ["production"] });
  return { organization, where, name };
}

const rightsOf = async (w: World, name: string) => (await showPerson(w.admin, name)).rights;

describeBoth("persons", (w) => {
  test("have the rights that an operator gave and did not take", async () => {
    const { organization, name } = await withAna(w);
    const place = { organization: organization.slug, project: "web", until: null, ended: false, by: null };
    expect(await rightsOf(w, name)).toEqual([{ ...place, rights: ["see", "write"], environments: ["production"] }]);
    await grantRights(w.admin, name, { rights: ["write"], projects: ["web"], environments: ["staging"] });
    await grantRights(w.admin, name, { rights: ["see"], ...everywhere });
    expect(await rightsOf(w, name)).toEqual([
      { ...place, rights: ["see"], environments: ["production"] },
      { ...place, rights: ["write"], environments: ["staging", "production"] },
      { ...place, project: null, rights: ["see"], environments: ["development", "staging", "production"] },
    ]);
    await revokeRights(w.admin, name, { rights: ["write"], projects: ["web"], environments: null });
    await revokeRights(w.admin, name, { rights: ["see"], projects: null, environments: ["production"] });
    expect(await rightsOf(w, name)).toEqual([
      { ...place, project: null, rights: ["see"], environments: ["development", "staging"] },
    ]);
    const fromOne = { rights: ["see"], projects: ["web"], environments: ["staging"] };
    await expect(revokeRights(w.admin, name, fromOne)).rejects.toThrow("in all projects");
    await removePerson(w.admin, name);
    await expect(showPerson(w.admin, name)).rejects.toMatchObject({ kind: "not_found" });
  });

  test("are refused with a sentence if they are not what they should be, and nothing changes", async () => {
    const { organization, name } = await withAna(w);
    const before = await listPersons(w.admin);
    const add = (asked: { name: string; signIn?: null }) =>
      addPerson(w.admin, { organization: organization.slug, signIn: null, ...asked });
    await expect(add({ name })).rejects.toMatchObject({ kind: "exists" });
    for (const wrong of ["ann@host", "", "Ana", "-a", "a".repeat(65)]) {
      await expect(add({ name: wrong })).rejects.toMatchObject({ kind: "invalid" });
    }
    for (const [kind, rights, projects, who = name] of [
      ["invalid", ["own"], null],
      ["invalid", [], null],
      ["not_found", ["see"], ["none"]],
      ["invalid", ["see"], []],
      ["not_found", ["see"], null, "nobody"],
    ] as const) {
      const granted = grantRights(w.admin, who, { rights, projects, environments: null });
      await expect(granted).rejects.toMatchObject({ kind });
    }
    expect(await listPersons(w.admin)).toEqual(before);
  });

  test("are changed by operators, and by nobody without `grant`: no other right changes rights", async () => {
    const { organization, name } = await withAna(w);
    const all = everyRight.filter((right) => right !== "grant");
    const everything = [{ rights: all, organizationId: organization.id, projectId: null, environments: 7 }];
    const ana = asPerson(w.admin, "eve", everything);
    const reach = { rights: ["see"], ...everywhere };
    const changes = [grantRights, revokeRights].map((change) => () => change(ana, name, reach));
    const add = (admin: AdminContext) => addPerson(admin, { name: "eve", signIn: null });
    for (const asked of [...changes, () => add(ana), () => removePerson(ana, name), () => listPersons(ana)]) {
      await expect(asked()).rejects.toMatchObject({ kind: "forbidden" });
    }
    const lead = asPerson(w.admin, "eve", [{ ...everything[0], rights: everyRight } as Holding]);
    for (const asked of [() => add(lead), () => removePerson(lead, name)]) {
      await expect(asked()).rejects.toMatchObject({ kind: "forbidden" });
    }
    await expect(grantRights(lead, name, reach, { asTheyAre: true })).rejects.toMatchObject({ kind: "forbidden" });
  });

  test("lose rights in what was deleted, by its id, and get none in another organization than is named", async () => {
    const { organization, where, name } = await withAna(w);
    const { id } = await findProject(w.admin, where, "see");
    await deleteProject(w.admin, where);
    const one = { rights: ["write"], projects: [id], environments: null };
    await expect(grantRights(w.admin, name, one)).rejects.toMatchObject({ kind: "not_found" });
    await revokeRights(w.admin, name, one);
    const left = { rights: ["see"], project: id, environments: ["production"] };
    expect(await rightsOf(w, name)).toMatchObject([{ ...left, organization: organization.slug }]);
    await deleteOrganization(w.admin, organization.slug);
    for (const other of await listOrganizations(w.admin)) await deleteOrganization(w.admin, other.slug);
    const only = await w.organization();
    const homeless = { kind: "invalid", message: expect.stringContaining("--org") };
    await expect(grantRights(w.admin, name, { rights: ["see"], ...everywhere })).rejects.toMatchObject(homeless);
    expect(await rightsOf(w, name)).toMatchObject([{ ...left, organization: organization.id }]);
    await revokeRights(w.admin, name, { ...one, rights: ["see"], projects: [`${organization.id}/${id}`] });
    expect(await rightsOf(w, name)).toEqual([]);
    await grantRights(w.admin, name, { rights: ["see"], ...everywhere, organization: only.slug });
    expect(await rightsOf(w, name)).toMatchObject([{ organization: only.slug, project: null }]);
  });

  test("do not get the name of somebody who was removed, unless an operator says so", async () => {
    const { organization, name } = await withAna(w);
    await removePerson(w.admin, name);
    const ana = { name, organization: organization.slug, signIn: null };
    // A line in authorized_keys may still let the other one in.
    const taken = { kind: "exists", message: expect.stringContaining("authorized_keys") };
    await expect(addPerson(w.admin, ana)).rejects.toMatchObject(taken);
    expect(await addPerson(w.admin, { ...ana, again: true })).toMatchObject({ name, rights: [] });
  });

  const issuers = ["https//id.example", "http://id.example", "https://id.example?x=1", "https://ana@id.example"];
  test.each(issuers)("sign in at an issuer that a dashboard can have, which %s is not", async (issuer) => {
    const { organization, name } = await withAna(w);
    const signIn = { issuer, subject: name };
    const added = addPerson(w.admin, { name: `${name}-a`, organization: organization.slug, signIn });
    await expect(added).rejects.toMatchObject({ kind: "invalid", message: expect.stringContaining("https URL") });
  });

  test("are never two whom one sign-in is: removing one would leave the other's rights", async () => {
    const { organization, name } = await withAna(w);
    const add = (more: string, signIn: SignInAs) =>
      addPerson(w.admin, { name: `${name}-${more}`, organization: organization.slug, signIn });
    const [issuer, subject] = ["https://id.example", name];
    await add("a", { issuer, subject });
    const taken = { kind: "exists", message: expect.stringContaining(`${name}-a`) };
    await expect(add("b", { issuer, subject })).rejects.toMatchObject(taken);
    await add("c", { issuer: "https://other.example", subject });
    await add("d", { issuer, group: name });
    await expect(add("e", { issuer, group: name })).rejects.toMatchObject({ kind: "exists" });
    // Without an issuer, a group is of whichever the dashboard asks.
    await expect(add("e", { issuer: null, group: name })).rejects.toMatchObject({ kind: "exists" });
    await add("f", { issuer: null, group: `${name}-all` });
    await expect(add("g", { issuer, group: `${name}-all` })).rejects.toMatchObject({ kind: "exists" });
  });

  test("are on record with what was given and taken", async () => {
    const { organization, name } = await withAna(w);
    await revokeRights(w.admin, name, { rights: ["write"], projects: ["web"], environments: null });
    const [last] = await w.run("select * from audit_entries where lane = 'commands' order by seq desc limit 1");
    expect(last).toMatchObject({ action: "people.write", actor: "ann@host", actor_from: '"os"', added: "[]" });
    expect(JSON.parse(String(last?.["deleted"]))).toEqual([`${name} write ${organization.slug}/web production`]);
  });

  test("who are changed by two operators at once lose nothing", async () => {
    const { name } = await withAna(w);
    const rights = ["see", "reveal", "write", "keys", "decide", "audit"];
    await withAdmins(w, rights.length, async (admins) => {
      const all = () =>
        Promise.all(
          rights.map((right, n) => grantRights(admins[n] as AdminContext, name, { rights: [right], ...everywhere })),
        );
      await (w.dialect === "postgres" ? whileHeadIsLocked(w, rights.length, all) : all());
    });
    expect((await rightsOf(w, name)).find(({ project }) => project === null)?.rights).toEqual(rights as never);
  });
});

describeOnce("code that forgot to ask", (w) => {
  test("opens no set and makes no change", async () => {
    const { where } = await withAna(w);
    await setVariables(w.admin, where, "production", [{ name: "A", value: "1" }]);
    const seen = await findProject(w.admin, where, "see", ["production"]);
    const of = { project: { ...seen, db: w.admin.database.db }, descriptor: variables, environment: "production" };
    await expect(openSet(w.admin, of as never)).rejects.toThrow("a set was opened where nobody asked for the right");
    const { id, organization } = seen;
    const before = await w.run("select * from audit_heads where lane = 'commands'");
    const { permit } = await findProject(w.admin, where, "write", ["production"]);
    const here = { project: { id, slug: "web" }, environment: "production" } as const;
    for (const [held, different] of [
      [permit, { environment: "staging" }],
      [permit, { project: { id: "another", slug: "web" } }],
      [permit, { action: "variables.reveal" }],
      [permit, { action: "key.create" }],
      [seen.permit, {}],
    ] as const) {
      const change = { action: "variables.write", organization, names: [], ...here, ...different } as const;
      const made = writing(w.admin, held, async () => [undefined, [change]]);
      await expect(made).rejects.toThrow("was done where nobody asked whether it is permitted");
    }
    expect(await w.run("select * from audit_heads where lane = 'commands'")).toEqual(before);
  });
});

/** Begins changes while the lane of commands is locked, and lets them go on when all of them wait. PostgreSQL only. */
async function whileHeadIsLocked<T>(w: World, count: number, begin: () => Promise<T>): Promise<T> {
  await w.run("begin");
  await w.run("select seq from audit_heads where lane = 'commands' for update");
  const begun = begin();
  begun.catch(() => {}); // whoever calls this is told
  const waiting = async () => {
    const [row] = await w.run(`select count(distinct pid)::int as count from pg_locks where not granted and pid in
      (select pid from pg_locks where database = (select oid from pg_database where datname = current_database()))`);
    return row?.["count"] as number;
  };
  await eventually(async () => (await waiting()) >= count);
  expect(await waiting()).toBe(count);
  await w.run("commit");
  return begun;
}

const distrust = { kind: "conflict", message: expect.stringContaining("failed verification") };

describeBoth("the roster in the database", (w) => {
  const write = (where: string) => setVariables(w.admin, where, "production", [{ name: "A", value: "1" }]);
  const last = "(select max(version) from rosters)";

  test.each([
    ["made wider", `update rosters set listing = replace(listing, '"see"', '"reveal"') where version = ${last}`],
    ["without its seal", `update rosters set mac = substr(mac, 1, 31) where version = ${last}`],
    ["under another id", `update rosters set id = 'x' where version = ${last}`],
    ["deleted", `delete from rosters where version = ${last}`],
  ])("is refused if SQL left it %s", async (_, edit) => {
    const { where, name } = await withAna(w);
    await write(where);
    const kept = await w.run(`select * from rosters where version = ${last}`);
    await w.run(edit);
    await expect(new RosterWatch().current(w.admin)).rejects.toMatchObject(distrust);
    await expect(listPersons(w.admin)).rejects.toMatchObject(distrust);
    await expect(removePerson(w.admin, name)).rejects.toMatchObject(distrust);
    await w.run(`delete from rosters where version >= ?`, [kept[0]?.["version"]]);
    const { id, version, listing, mac } = kept[0] ?? {};
    await w.run("insert into rosters (id, version, listing, mac) values (?, ?, ?, ?)", [id, version, listing, mac]);
    expect((await showPerson(w.admin, name)).name).toBe(name);
  });

  test("is taken as it is by an operator who says so, and is in force again", async () => {
    const { organization, where, name } = await withAna(w);
    await removePerson(w.admin, name);
    await write(where);
    await w.run(`delete from rosters where version = ${last}`);
    const ben = { name: "ben", organization: organization.slug, signIn: null };
    await expect(addPerson(w.admin, ben)).rejects.toMatchObject(distrust);
    await addPerson(w.admin, ben, { asTheyAre: true });
    const names = (await listPersons(w.admin)).map((one) => one.name);
    expect(names).toEqual(expect.arrayContaining([name, "ben"]));
    await removePerson(w.admin, "ben");
  });

  test("stays in force when the audit entry that names it is pruned", async () => {
    const { name } = await withAna(w);
    const now = Date.now();
    w.clock.nowMs = now + 100 * 86_400_000;
    try {
      await pruneAudit(w.admin, 30 * 86_400_000, true);
      expect((await showPerson(w.admin, name)).name).toBe(name);
      expect((await new RosterWatch().current(w.admin)).persons.map((one) => one.name)).toContain(name);
    } finally {
      w.clock.nowMs = undefined;
    }
  });

  test("is read once while nothing changes", async () => {
    await withAna(w);
    const watch = new RosterWatch();
    const { persons } = await watch.current(w.admin);
    expect((await watch.current(w.admin)).persons).toBe(persons);
    await setVariables(w.admin, (await withAna(w)).where, "production", [{ name: "A", value: "1" }]);
    expect((await watch.current(w.admin)).persons).not.toEqual(persons);
  });
});

describeBoth("persons with some rights", (w) => {
  const web = async (variables: Record<string, string> = { A: "1" }) => {
    const { organization, project } = await w.place({ variables: { staging: variables } });
    return { ...project, organization };
  };

  test("without `reveal` learn nothing from a write, a dry run or a rollback", async () => {
    const { where } = await web({ A: "stored", B: "kept" });
    const ana = await personIn(w.admin, where, ["see", "write"]);
    const guess = (admin: AdminContext, value: string) => wouldSet(admin, where, "staging", [{ name: "A", value }]);
    const [right, wrong] = [await guess(ana, "stored"), await guess(ana, "a guess")];
    expect(right).toEqual(wrong);
    expect(right.changed).toEqual(["A"]);
    expect((await guess(w.admin, "stored")).changed).toEqual([]);
    // A day of rotation stays if the value is the same: it would tell, too.
    await setVariables(w.admin, where, "staging", [{ name: "A", value: "stored", rotateBy: "2099-01-31" }]);
    await setVariables(ana, where, "staging", [{ name: "A", value: "stored" }]);
    expect((await listVariables(w.admin, where, "staging"))[0]).not.toHaveProperty("rotateBy");
    const { changed } = await planRollback(ana, { where, environment: "staging", kind: "variables" }, 2);
    // What nobody has written since is not named: the history says so, too.
    expect(changed).toEqual(["A"]);
    const byOperator = await planRollback(w.admin, { where, environment: "staging", kind: "variables" }, 2);
    expect(byOperator.changed).toEqual([]);
    const at = (environment: string) => ({ project: where, environment });
    for (const refused of [
      () => diffVariables(ana, where, "staging", "production"),
      () => revealVariable(ana, where, "staging", "A"),
      () => copyVariables(ana, at("staging"), at("development")),
    ]) {
      await expect(refused()).rejects.toMatchObject({ kind: "not_found" });
    }
  });

  test("without `reveal` see no checksum of a file", async () => {
    const { where } = await web();
    await putFile(w.admin, where, { content: Buffer.from("yes"), path: "p", environments: ["staging"] });
    const [unseen] = await listFiles(await personIn(w.admin, where, ["see"]), where);
    expect(unseen).toMatchObject({ path: "p", sha256: null });
    const [shown] = await listFiles(await personIn(w.admin, where, ["see", "reveal"]), where);
    expect(shown?.sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  test("make, rotate and revoke keys that reach no further than their own rights", async () => {
    const { organization, where } = await web();
    await w.project(organization, "api");
    const ana = await personIn(w.admin, where, ["see", "keys", "reveal"], 3);
    const asked = { organization: organization.slug, projects: ["web"], environments: ["staging"] };
    const { id } = await createKey(ana, asked);
    const { successor } = await rotateKey(ana, id, 1000);
    await revokeKey(ana, successor.id);
    const beyond = { kind: "not_found" };
    for (const further of [
      ...[["production"], null].map((environments) => ({ environments })),
      ...[["web", "api"], ["api"], null, ["none"]].map((projects) => ({ projects })),
    ] as { environments?: string[] | null; projects?: string[] | null }[]) {
      await expect(createKey(ana, { ...asked, ...further })).rejects.toMatchObject(beyond);
      if (further.projects?.includes("none")) continue;
      const { id: others } = await createKey(w.admin, { ...asked, ...further });
      await expect(rotateKey(ana, others, 1000)).rejects.toMatchObject(beyond);
      await expect(revokeKey(ana, others)).rejects.toMatchObject(beyond);
    }
    const noReveal = await personIn(w.admin, where, ["see", "keys"]);
    await expect(createKey(noReveal, asked)).rejects.toMatchObject(beyond);
    // Of a key of several projects they see what they know anyway.
    const { id: both } = await createKey(w.admin, { ...asked, projects: ["web", "api"] });
    expect((await showKey(ana, both)).projects).toEqual(["web"]);
  });

  test("rotate no wider key, though SQL shows a narrow one until it is sealed again", async () => {
    const { organization, where } = await web();
    const ana = await personIn(w.admin, where, ["see", "keys", "reveal"], 2);
    const { id } = await createKey(w.admin, { organization: organization.slug, projects: null, environments: null });
    const narrow = await w.key(organization, { projects: ["web"], environments: ["staging"] });
    const wider = "environments = 2, projects = (select projects from api_keys where id = ?)";
    await w.run(`update api_keys set ${wider} where id = ?`, [narrow.id, id]);
    const putBack = () => w.run("update api_keys set environments = 7, projects = null where id = ?", [id]);
    await expect(rotateKey(beforeTransaction(ana, putBack), id, 1000)).rejects.toMatchObject({ kind: "not_found" });
    expect((await showKey(w.admin, id)).status).toBe("active");
  });

  test("make no trust that would shut out another beyond their own rights", async () => {
    const { organization, where } = await web();
    const reach = { organization: organization.slug, projects: ["web"] };
    const issuer = "https://token.actions.githubusercontent.com";
    const terms = (...claims: [string, string][]) => ({ issuer, audience: where, claims: new Map(claims) });
    const of = (admin: AdminContext, environment: string, asked: ReturnType<typeof terms>) =>
      createTrust(admin, { ...reach, environments: [environment], ...asked });
    const live = await of(w.admin, "production", terms(["repository_id", "5"], ["ref", "refs/heads/main"]));
    const ana = await personIn(w.admin, where, ["keys", "reveal"], 1);
    // A token that fits two trusts is refused.
    for (const claims of [terms(["repository_owner_id", "1"]), terms(["repository_id", "5"])]) {
      await expect(of(ana, "development", claims)).rejects.toMatchObject({ kind: "conflict" });
    }
    const own = await of(ana, "development", terms(["repository_id", "5"], ["ref", "refs/heads/dev"]));
    const twice = await of(ana, "development", terms(["repository_id", "5"], ["ref", "refs/heads/dev"]));
    expect(twice.warnings.join()).toContain(own.trust.id);
    // Every object has a `constructor`, and a token need not.
    const odd = terms(["repository_id", "5"], ["ref", "refs/heads/main"], ["constructor", "x"]);
    await expect(of(ana, "development", odd)).rejects.toMatchObject({ kind: "conflict" });
    const both = await of(w.admin, "production", terms(["repository_id", "5"]));
    expect(both.warnings.join()).toContain(live.trust.id);
  });

  test("find out by nothing that they type which keys there are elsewhere", async () => {
    const { where } = await web();
    const other = await w.organization();
    await createKey(w.admin, { organization: other.slug, name: "hidden", projects: null, environments: null });
    const ana = await personIn(w.admin, where, ["see", "audit"]);
    const answerTo = (actor: string) => listAudit(ana, { actor }).catch((error: Error) => error.message);
    expect(await answerTo("hidden")).toBe(((await answerTo("absent")) as string).replace("absent", "hidden"));
    expect(await listAudit(w.admin, { actor: "hidden" })).toEqual([]);
    // Of a key that was made in the same minute, more of the id would be shown.
    const { id } = await createKey(w.admin, { ...everywhere, organization: where.split("/")[0], projects: ["web"] });
    expect((await shortKeyIds(ana))(id)).toHaveLength(8);
    expect(await showKey(ana, id.slice(0, 8))).toMatchObject({ id });
  });

  test("who may write and not see are told no name of a file", async () => {
    const { where } = await web();
    const at = (path: string) => ({ content: Buffer.from("x"), path, environments: ["staging"] });
    await putFile(w.admin, where, at("tls/live/payments.p12"));
    const refusalOf = (admin: AdminContext) => putFile(admin, where, at("tls")).catch((error: Error) => error.message);
    expect(await refusalOf(await personIn(w.admin, where, ["write"]))).not.toContain("payments");
    expect(await refusalOf(await personIn(w.admin, where, ["see", "write"]))).toContain("payments");
  });

  test("rename and delete a project if they see all of it", async () => {
    const { organization, where } = await web();
    const holding = (rights: readonly Right[], environments: number) =>
      ({ rights, organizationId: organization.id, projectId: null, environments }) as const;
    const some = asPerson(w.admin, "ana", [holding(["write"], 7), holding(["see"], 1)]);
    await expect(renameProject(some, where, { slug: "shop" })).rejects.toMatchObject({ kind: "not_found" });
    await expect(deleteProject(some, where)).rejects.toMatchObject({ kind: "not_found" });
    await deleteProject(asPerson(w.admin, "ana", [holding(["write", "see"], 7)]), where);
  });

  test("change and see nothing by a command that waited until their rights were taken", async () => {
    const { where, name } = await withAna(w);
    const began = { ...w.admin, ...(await whoIs(w.installation, name)) };
    const write = () => setVariables(began, where, "production", [{ name: "LATE", value: "1" }]);
    await setVariables(began, where, "production", [{ name: "IN_TIME", value: "1" }]);
    await revokeRights(w.admin, name, { rights: ["write"], ...everywhere });
    await expect(write()).rejects.toMatchObject({ kind: "conflict" });
    await expect(revealVariable(began, where, "production", "IN_TIME")).rejects.toMatchObject({ kind: "not_found" });
    await removePerson(w.admin, name);
    await expect(write()).rejects.toMatchObject({ kind: "forbidden" });
    expect((await listVariables(w.admin, where, "production")).map((one) => one.name)).toEqual(["IN_TIME"]);
  });

  test("with `audit` see the entries of their places alone", async () => {
    const { organization, where } = await web();
    const other = await w.project(organization, "api");
    await setVariables(w.admin, other.where, "staging", [{ name: "ELSEWHERE", value: "1" }]);
    await setVariables(w.admin, where, "production", [{ name: "LIVE", value: "1" }]);
    await setVariables(w.admin, where, "staging", [{ name: "HERE", value: "1" }]);
    await createKey(w.admin, { organization: organization.slug, projects: null, environments: null });
    const ana = await personIn(w.admin, where, ["audit"], 2);
    const entries = await listAudit(ana, { limit: 1000 });
    expect(entries.length).toBeGreaterThan(0);
    expect(entries.every(({ project, environment }) => project === "web" && environment === "staging")).toBe(true);
    expect(JSON.stringify(entries)).not.toMatch(/ELSEWHERE|LIVE/);
    await expect(listAudit(ana, { name: "ELSEWHERE" })).rejects.toMatchObject({ kind: "not_found" });
    await expect(listAudit(ana, { name: "NEVER_WAS" })).rejects.toMatchObject({ kind: "not_found" });
    const everywhere = asPerson(w.admin, "lee", [
      { rights: ["audit"], organizationId: organization.id, projectId: null, environments: 7 },
    ]);
    expect((await listAudit(everywhere, { limit: 1000 })).map(({ action }) => action)).toContain("key.create");
  });

  test("without the right `audit` are refused the audit, and told apart from an empty one", async () => {
    const { organization, where } = await web();
    const other = await w.organization();
    const forbidden = { kind: "forbidden", message: expect.stringContaining("keyhole whoami") };
    for (const admin of [asPerson(w.admin, "eve", []), await personIn(w.admin, where, ["see", "reveal", "write"])]) {
      for (const asked of [
        ...[
          () => listAudit(admin, {}),
          () => auditPages(admin, {}).next(),
          () => new AuditTail(admin, {}, () => {}).newest(1),
        ],
        ...[() => showAudit(admin, "commands:1"), () => verifyAudit(admin)],
      ]) {
        await expect(asked()).rejects.toMatchObject(forbidden);
      }
    }
    const ana = await personIn(w.admin, where, ["audit"], 2);
    await expect(listAudit(ana, { environment: "production" })).rejects.toMatchObject(forbidden);
    await expect(listAudit(ana, { project: where, environment: "production" })).rejects.toMatchObject(forbidden);
    const elsewhere = { rights: ["see"], organizationId: other.id, projectId: null, environments: 7 } as const;
    const both = asPerson(w.admin, "ana", [...(ana.rights as readonly Holding[]), elsewhere]);
    await expect(listAudit(both, { organization: other.slug })).rejects.toMatchObject(forbidden);
    expect(await listAudit(both, { organization: organization.slug })).toHaveLength(1);
  });

  test("export the audit of before, and nothing more once they are removed", async () => {
    const { where, name } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["audit"], ...everywhere });
    const change = (key: string) => setVariables(w.admin, where, "production", [{ name: key, value: "1" }]);
    for (let n = 0; n < 20; n++) await change(`BEFORE_${n}`);
    const began = { ...w.admin, ...(await whoIs(w.installation, name)) };
    const pagesOf = (admin: AdminContext) => auditPages(admin, { project: where });
    const [theirs, operators] = [pagesOf(began), pagesOf(w.admin)];
    const isDone = async (pages: ReturnType<typeof pagesOf>) => (await pages.next()).done;
    expect([await isDone(theirs), await isDone(operators)]).toEqual([false, false]);
    w.clock.nowMs = Date.now() + 1; // what is made in the millisecond of the newest entry is taken for older
    await change("LATER");
    await removePerson(w.admin, name);
    await expect(Array.fromAsync(theirs)).rejects.toMatchObject({ kind: "forbidden" });
    const rest = JSON.stringify(await Array.fromAsync(operators));
    expect([rest.includes("BEFORE_19"), rest.includes("LATER")]).toEqual([true, false]);
    w.clock.nowMs = undefined;
  });

  test("see their own rights, those of all their entries together", async () => {
    const { organization, where } = await web();
    const place = { organization: organization.slug, project: "web", until: null, ended: false, by: null };
    const [only] = (await personIn(w.admin, where, ["see"], 2)).rights as readonly Holding[];
    const group = { ...only, rights: ["write"], environments: 6 } as Holding;
    expect(await ownRights(asPerson(w.admin, "ana", [only as Holding, group]))).toEqual({
      name: "ana",
      from: "ssh",
      rights: [
        { ...place, rights: ["see"], environments: ["staging"] },
        { ...place, rights: ["write"], environments: ["staging", "production"] },
      ],
    });
    expect(await ownRights(w.admin)).toMatchObject({ from: "os", rights: "operator" });
  });

  test("write an account where they may, and leave it where they may not", async () => {
    const { where } = await web();
    await setAccount(w.admin, where, "mail", ["staging", "production"], { user: "first" });
    const ana = await personIn(w.admin, where, ["see", "write"], 3);
    const second = await setAccount(ana, where, "mail", ["development"], { user: "second" });
    expect(second).toMatchObject({ dropped: ["staging"] });
    const third = setAccount(ana, where, "mail", ["production"], { user: "third" });
    await expect(third).rejects.toMatchObject({ kind: "not_found" });
    expect(await listAccounts(w.admin, where)).toMatchObject([{ environments: ["development", "production"] }]);
    await deleteAccount(ana, where, "mail");
    expect(await listAccounts(w.admin, where)).toMatchObject([{ environments: ["production"] }]);
  });
});
