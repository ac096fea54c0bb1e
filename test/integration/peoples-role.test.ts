import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { type AdminContext, adminContextOf } from "../../src/desk/context.ts";
import { whoIs } from "../../src/desk/roster.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { setAccount } from "../../src/kinds/accounts/write.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { copyVariables, listDueVariables, setVariables } from "../../src/kinds/variables/write.ts";
import { listAudit } from "../../src/people/audit.ts";
import { verifyAudit } from "../../src/people/audit-chain.ts";
import { compareEnvironments } from "../../src/people/comparison.ts";
import { applyGrants } from "../../src/people/grants.ts";
import { listHistory } from "../../src/people/history.ts";
import { createKey, listAccess, listExpiring, revokeKey, rotateKey } from "../../src/people/keys.ts";
import { addPerson, grantRights, personsWithAccess } from "../../src/people/persons.ts";
import { createProject, deleteProject, listProjects, renameProject } from "../../src/people/projects.ts";
import { approveRequest, rejectRequest, showRequest } from "../../src/people/requests.ts";
import { planRollback, rollBack } from "../../src/people/rollback.ts";
import { createTrust } from "../../src/people/trusts.ts";
import { parsePostgresUrl } from "../../src/settings/postgres-url.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import { withPostgres } from "../support/postgres.ts";
import { openWorld, type World } from "../support/world.ts";

setDefaultTimeout(60_000);

withPostgres("the role of people who are no operators", () => {
  let w: World;
  let ana: AdminContext & { close(): Promise<void> };
  let raw: postgres.Sql;
  let org = "";
  let organizationId = "";
  const role = `keyhole people ${randomBytes(4).toString("hex")}`;

  beforeAll(async () => {
    w = await openWorld("postgres");
    const organization = await w.organization();
    org = organization.slug;
    organizationId = organization.id;
    await w.run(`create role "${role}" login password 'of-a-test'`);
    await applyGrants(w.admin, role, "people");
    await addPerson(w.admin, { name: "ana", organization: org, signIn: null });
    const rights = ["see", "reveal", "write", "keys", "decide", "audit"];
    await grantRights(w.admin, "ana", { rights, projects: null, environments: null });
    const url = new URL(w.databaseUrl as string);
    url.username = encodeURIComponent(role);
    url.password = "of-a-test";
    const installation = await openInstallation({ ...w.config, postgres: parsePostgresUrl(url.href, {}) }, () => {});
    ana = adminContextOf(installation, await whoIs(installation, "ana"));
    raw = postgres(url.href, { max: 1, fetch_types: false, onnotice: () => {} });
  });
  afterAll(async () => {
    await raw?.end({ timeout: 1 });
    await ana?.close();
    await w?.run(`drop owned by "${role}"`);
    await w?.run(`drop role "${role}"`);
    await w?.close();
  });

  test("does all that people do", async () => {
    const where = `${org}/own`;
    await createProject(ana, where, {});
    for (const value of ["1", "2"]) await setVariables(ana, where, "staging", [{ name: "A", value }]);
    expect(await revealVariable(ana, where, "staging", "A")).toBe("2");
    const plan = await planRollback(ana, { where, environment: "staging", kind: "variables" }, 2);
    await rollBack(ana, { where, environment: "staging", kind: "variables" }, plan);
    expect(await revealVariable(ana, where, "staging", "A")).toBe("1");
    await deleteVariable(ana, where, "staging", "A");
    await setAccount(ana, where, "mail", ["staging"], { user: "u" });
    await deleteAccount(ana, where, "mail");
    await putFile(ana, where, { content: Buffer.from("x"), path: "p", environments: ["staging"] });
    await deleteFile(ana, where, "p", ["staging"]);
    expect((await listHistory(ana, { where, environment: "staging", kind: "variables" })).versions.length).toBe(5);
    const { id } = await createKey(ana, { organization: org, projects: ["own"], environments: null });
    const { successor } = await rotateKey(ana, id, 0);
    const { trust } = await createTrust(ana, {
      ...{ organization: org, projects: ["own"], environments: null },
      ...{ issuer: "https://id.example", audience: "keyhole", claims: new Map([["sub", "a"]]) },
    });
    await revokeKey(ana, trust.id);
    const [project] = await listProjects(ana);
    if (project === undefined) throw new Error("the project is not listed");
    for (const name of ["ASKED", "REFUSED"]) {
      const asked = { environment: "staging", name, reason: "for a test" } as const;
      const request = await w.request(organizationId, successor.id, project, asked);
      if (name === "ASKED") await approveRequest(ana, await showRequest(ana, request), "value");
      else await rejectRequest(ana, request, "no");
    }
    const [from, to] = ["staging", "production"].map((environment) => ({ project: where, environment })) as [
      never,
      never,
    ];
    await copyVariables(ana, from, to, ["ASKED"]);
    await revokeKey(ana, successor.id);
    expect(await listExpiring(ana, 1000)).toEqual([]);
    expect(await listDueVariables(ana, 1000)).toEqual([]);
    expect(await listAccess(ana, where)).toEqual([]);
    expect((await personsWithAccess(ana, where)).map(({ name }) => name)).toEqual(["ana"]);
    expect((await compareEnvironments(ana, where, "variables")).items.map(({ name }) => name)).toEqual(["ASKED"]);
    await renameProject(ana, where, { slug: "other" });
    await deleteProject(ana, `${org}/other`);
    const entries = await listAudit(ana, { actor: "ana", limit: 1000 });
    expect(entries.map(({ action }) => action)).toContain("project.delete");
    expect((await verifyAudit(ana)).flaws).toEqual([]);
  });

  test.each([
    ["make a table", "create table mine (id int)"],
    ["change a table", "alter table projects add column mine int"],
    ["change what is on record", "update audit_segments set at = 0"],
    ["delete what is on record", "delete from audit_segments"],
    ["drop what is on record", "drop table audit_segments_default"],
    ["forget where the record was cut", "delete from audit_checkpoints"],
    ["delete the record's head", "delete from audit_heads"],
    ["make persons", "insert into rosters values ('x', 99, '[]', '')"],
    ["change persons", "update rosters set listing = '[]'"],
    ["delete persons", "delete from rosters"],
    ["change the installation's keys", "update system_keys set root_id = 'x'"],
    ["change an organization", "update organizations set plan = 'free'"],
    ["delete an organization", "delete from organizations"],
    ["change a data key", "update data_keys set root_id = 'x'"],
    ["delete a data key", "delete from data_keys"],
    ["delete a key's row", "delete from api_keys"],
    ["pretend that a key was used", "insert into key_uses values ('x', 1)"],
    ["file a request", "insert into variable_requests (id) values ('x')"],
    ["empty a table", "truncate sets"],
    ["give its rights to others", `grant select on sets to public`],
  ])("may not %s", async (_, statement) => {
    const failure = await raw.unsafe(statement).then(
      () => "done",
      (error: { code: string }) => error.code,
    );
    // Of a GRANT by somebody who may not, PostgreSQL only warns.
    if (statement.startsWith("grant")) {
      const [row] = await w.run("select has_table_privilege('public', 'sets', 'select') as may");
      expect(row?.["may"]).toBe(false);
    } else expect(failure).toBe("42501");
  });
});
