/** What the roles of PostgreSQL beside that of `serve` may do, and what not. */
import { beforeAll, expect, test } from "bun:test";
import { putFile } from "../../src/kinds/files/write.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listDueVariables } from "../../src/kinds/variables/write.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { type AdminContext, adminContextOf } from "../../src/people/desk/context.ts";
import { whoIs } from "../../src/people/desk/roster.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { createKey, listAccess, listExpiring, revokeKey, rotateKey } from "../../src/people/keys/keys.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { addPerson, personsWithAccess } from "../../src/people/persons/persons.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { createProject, listProjects } from "../../src/people/projects/projects.ts";
import { showRequest } from "../../src/people/requests/requests.ts";
import { everyRight } from "../../src/serve/access/rights.ts";
import { listAudit } from "../support/audit.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import { notaryOf } from "../support/notarize.ts";
import {
  approveRequest,
  copyVariables,
  deleteProject,
  grantRights,
  planRollback,
  rejectRequest,
  renameProject,
  rollBack,
  setAccount,
  setVariables,
} from "../support/plans.ts";
import { withPostgres } from "../support/postgres.ts";
import { forbidden, roleOf } from "../support/role.ts";

withPostgres("the role of the notary", () => {
  const { w, installation, run, rights } = roleOf("notary");
  beforeAll(async () => {
    const variables = { production: { TOKEN: "a-token-that-no-notary-reads" } };
    await w.project(await w.organization(), "web", { variables });
  });

  test("does all that a notary does", async () => {
    const database = installation.open("notary");
    const events: unknown[] = [];
    const log = ({ event }: { event?: unknown }) => events.push(event);
    const notary = await notaryOf(w, { database, checkpoint: installation.checkpoint, log });
    await notary.round();
    const organization = await w.organization();
    const { id } = await w.project(organization, "api", { variables: { production: { TOKEN: "another-token" } } });
    const key = await w.key(organization, {});
    await w.ask("/projects/api/variables?environment=production&keys=TOKEN", { key });
    await notary.round();
    await database.close();
    expect(await w.run("select name from last_reads where project_id = ?", [id])).toEqual([{ name: "TOKEN" }]);
    expect(events).toEqual(["signed_checkpoint", "signed_checkpoint"]);
    expect(notary.flaws).toBe(0);
  });

  test("has exactly these rights in the database", async () => {
    expect(await rights()).toEqual({
      // Of these four only what it compares with the record: see the next tests.
      api_keys: "SELECT",
      audit_checkpoints: "SELECT",
      audit_checkpoints_signed: "INSERT SELECT",
      audit_cosignatures: "INSERT SELECT",
      audit_exceptions: "INSERT SELECT",
      audit_heads: "SELECT",
      audit_leaves: "INSERT SELECT",
      audit_segments: "SELECT",
      audit_signers: "INSERT SELECT",
      last_reads: "INSERT SELECT UPDATE",
      last_reads_known: "INSERT SELECT UPDATE",
      organizations: "SELECT",
      projects: "SELECT",
      sets: "SELECT",
      system_keys: "SELECT",
      keyhole_migrations: "SELECT",
    });
  });

  test.each([
    ["read a secret", "select * from sets"],
    ["read a key", "select * from api_keys"],
    ["read a value that is sealed", "select sealed from sets"],
    ["read the names of a set", "select listing from sets"],
    ["read a key's digest", "select digest from api_keys"],
    ["read what a key may do", "select projects from api_keys"],
    ["make a table", "create table more (a int)"],
  ])("may not %s", (_, statement) => expect(run(statement)).rejects.toMatchObject(forbidden));
});

withPostgres("the role of people who are no operators", () => {
  let ana: AdminContext & { close(): Promise<void> };
  let org = "";
  let organizationId = "";
  const { w, installation, run } = roleOf("people", () => ana?.close());

  beforeAll(async () => {
    ({ slug: org, id: organizationId } = await w.organization());
    await addPerson(w.admin, { name: "ana", organization: org, signIn: null });
    await grantRights(w.admin, "ana", { rights: everyRight, projects: null, environments: null });
    ana = adminContextOf(installation, await whoIs(installation, "ana"));
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
    const at = (environment: string) => ({ project: where, environment }) as never;
    await copyVariables(ana, at("staging"), at("production"), ["ASKED"]);
    await revokeKey(ana, successor.id);
    expect(await listExpiring(ana, 1000)).toEqual([]);
    expect(await listDueVariables(ana, 1000)).toEqual([]);
    expect(await listAccess(ana, where)).toEqual([]);
    expect((await personsWithAccess(ana, where)).map(({ name }) => name)).toEqual(["ana"]);
    expect((await compareEnvironments(ana, where, "variables")).items.map(({ name }) => name)).toEqual(["ASKED"]);
    await renameProject(ana, where, { slug: "other" });
    await deleteProject(ana, `${org}/other`);
    await addPerson(w.admin, { name: "ben", organization: org, signIn: null });
    await grantRights(ana, "ben", { rights: ["see"], projects: null, environments: null });
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
  ])("may not %s", (_, statement) => expect(run(statement)).rejects.toMatchObject(forbidden));

  test("may not give its rights to others, of which PostgreSQL only warns", async () => {
    await run("grant select on sets to public");
    const [row] = await w.run("select has_table_privilege('public', 'sets', 'select') as may");
    expect(row?.["may"]).toBe(false);
  });
});
