/**
 * A form, a draft or a plan is for the project that it showed, and for no later one of the same name: that has versions
 * of its own, which count from 1 again.
 */

import { expect, test } from "bun:test";
import type { Operation } from "../../src/desk/operation.ts";
import type { Organization } from "../../src/desk/organizations.ts";
import { accountOperations } from "../../src/kinds/accounts/operations.ts";
import { variableOperations } from "../../src/kinds/variables/operations.ts";
import { revealVariables } from "../../src/kinds/variables/reveal.ts";
import { setVariables } from "../../src/kinds/variables/write.ts";
import { history } from "../../src/operations/history.ts";
import { organizations } from "../../src/operations/organizations.ts";
import { projects } from "../../src/operations/projects.ts";
import { createOrganization, deleteOrganization } from "../../src/people/organizations.ts";
import { deleteProject } from "../../src/people/projects.ts";
import { beforeTransaction } from "../support/before-transaction.ts";
import { deleteAccount } from "../support/delete.ts";
import { type Fields, type Visitor, visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { planRollback, rollBack } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { type Content, describeBoth, type World } from "../support/world.ts";

const content: Content = {
  variables: { staging: { A: "one", B: "two" }, production: { A: "other" } },
  accounts: [{ name: "stripe", environments: ["staging"], values: { user: "ci" } }],
};

/** A project, what `begin` found in it, and then another one in its place, at the same versions. */
async function replaced<T>(w: World, begin: (where: string, visitor: Visitor) => Promise<T>) {
  const { organization, where } = await w.place(content);
  const change = () => setVariables(w.admin, where, "staging", [{ name: "A", value: "changed" }]);
  await change();
  const visitor = await visitorOf(w);
  const begun = await begin(where, visitor);
  await deleteProject(w.admin, where);
  await w.project(organization, "web", content);
  await change();
  return { where, visitor, begun, untouched: await stored(w) };
}

/** By page: the form's path below the project, and what a person puts into it. */
const forms: readonly (readonly [what: string, page: string, action: string, fields: Fields])[] = [
  ["set", "variables/set?name=A", "variables/set", { "value.staging": "STALE", "value.production": "" }],
  ["delete", "variables/set?name=A", "variables/delete", { from: "staging" }],
  ["go back", "undo?kind=variables&environment=staging&to=1", "undo", {}],
  ["undo a change", "undo?kind=variables&environment=staging&version=2", "undo", {}],
  ["put back", "undo?kind=variables&environment=staging&to=2&name=A", "undo", {}],
  ["set an account", "accounts/set?name=stripe", "accounts/set", { field: "user", value: "x", environment: "staging" }],
  ["delete an account", "accounts/set?name=stripe", "accounts/delete", {}],
  ["reveal", "variables/item?name=A", "variables/reveal", { environment: "staging" }],
];

/** What a row asks about, what becomes of it while the question stands, and the refusal. */
type Meanwhile = (w: World, place: { readonly where: string; readonly organization: Organization }) => Promise<unknown>;
const anotherProject: Meanwhile = async (w, { where, organization }) => {
  await deleteProject(w.admin, where);
  await w.project(organization, "web", content);
};
const anotherOrganization: Meanwhile = async (w, { organization: { slug } }) => {
  await deleteOrganization(w.admin, slug);
  await createOrganization(w.admin, { slug });
};
const moreVariables: Meanwhile = (w, { where }) =>
  setVariables(w.admin, where, "staging", [{ name: "LATER", value: "unseen" }]);
const moreKeys: Meanwhile = (w, { organization }) => w.key(organization, { projects: ["web"] });
const moreProjects: Meanwhile = (w, { organization }) => w.project(organization, "later", {});
const accountGone: Meanwhile = (w, { where }) => deleteAccount(w.admin, where, "stripe");

const groups = [projects, organizations, history, variableOperations, accountOperations];
const rows = groups.flatMap((group) => group.rows as Operation[]);
const rowAt = (path: string) => rows.find((one) => one.path === path) as Operation;
const oneField = { read: async () => Buffer.from('{"user":"stale"}') };
const oneText = { name: "-", read: async () => Buffer.from("A=stale") };
const otherProject = "The project has changed since it was shown";
const questions: readonly (readonly [path: string, given: object, meanwhile: Meanwhile, error: string])[] = [
  ["project delete", {}, anotherProject, otherProject],
  ["project delete", {}, moreVariables, "variables: 2 when this was shown, and 3 now"],
  ["project rename", { slug: "shop" }, anotherProject, otherProject],
  ["history purge", { environment: "staging", kind: "variables" }, anotherProject, otherProject],
  ["history purge", { environment: "staging", kind: "variables" }, moreVariables, "2 when this was shown, and 3 now"],
  ...(["project delete", "project rename", "org plan"] as const).map(
    (path) => [path, { slug: "shop", plan: "free" }, moreKeys, "The keys have changed since they were shown"] as const,
  ),
  ["org plan", { plan: "free" }, anotherOrganization, "The organization has changed since it was shown"],
  ["org delete", {}, anotherOrganization, "The organization has changed since it was shown"],
  ["org delete", {}, moreProjects, "projects: 1 when this was shown, and 2 now"],
  ["var import", { environment: "staging", file: oneText, prune: true }, anotherProject, otherProject],
  ["account set", { name: "stripe", values: oneField, environments: ["production"] }, accountGone, "deleted stripe"],
  ["account set", { name: "stripe", values: oneField, environments: ["production"] }, anotherProject, otherProject],
];

describeBoth("what somebody agreed to", (w) => {
  const moments = ["while the question stands", "right before the transaction"] as const;
  const each = questions.flatMap((question) => moments.map((moment) => [...question, moment] as const));

  test.each(each)("is done to nothing else: %s", async (path, more, meanwhile, error, moment) => {
    const { organization, where } = await w.place(content);
    let after = "";
    const change = async () => {
      await meanwhile(w, { where, organization });
      after = await stored(w);
    };
    const row = rowAt(path);
    const given = { project: where, organization: organization.slug, ...more };
    const refused = { kind: "conflict", message: expect.stringContaining(error) };
    const isAsked = moment === "while the question stands";
    const admin = isAsked ? w.admin : beforeTransaction(w.admin, change);
    await expect(performed(row, admin, given, isAsked ? change : undefined)).rejects.toMatchObject(refused);
    expect(await stored(w)).toBe(after);
  });
});

describeBoth("what was shown of one project", (w) => {
  test.each(forms)("is not done to another of its name: %s", async (_, page, action, fields) => {
    const { where, visitor, begun, untouched } = await replaced(w, async (where, visitor) => {
      const at = (path: string) => `/p/${where}/${path}`;
      const form = await visitor.form(at(page), at(action));
      expect(form).toBeDefined();
      return { ...form, ...fields };
    });
    const reply = await visitor.send(`/p/${where}/${action}`, begun);
    expect(reply.status).toBe(409);
    expect(await stored(w)).toBe(untouched);
  });

  test("is not done to another of its name: copy what was chosen", async () => {
    const { visitor, begun, untouched } = await replaced(w, async (where, visitor) => {
      const path = `/p/${where}/variables/promote`;
      const form = await visitor.form(`${path}?from=production&to=staging`, path);
      const { to = "" } = await visitor.send(path, { ...form, names: "A" });
      return { to, shown: await visitor.hidden(to) };
    });
    expect((await visitor.send(begun.to, begun.shown)).status).toBe(409);
    expect(await stored(w)).toBe(untouched);
  });

  test("is not done to another of its name: apply a pasted text", async () => {
    const { visitor, begun, untouched } = await replaced(w, async (where, visitor) => {
      const path = `/p/${where}/variables/paste`;
      const { to = "" } = await visitor.send(path, { environment: "staging", text: "A=pasted" });
      return { to, shown: await visitor.hidden(to) };
    });
    expect((await visitor.send(begun.to, begun.shown)).status).toBe(409);
    expect(await stored(w)).toBe(untouched);
  });

  test("is not done to another of its name: make a key", async () => {
    const { organization, where, id } = await w.place(content);
    const visitor = await visitorOf(w);
    const { html } = await visitor.page(`/keys/new?org=${organization.slug}`);
    expect(html).toContain(`value="web/${id}"`);
    await deleteProject(w.admin, where);
    await w.project(organization, "web", content);
    const untouched = await stored(w);
    const fields = { org: organization.slug, name: "ci", reach: "some", projects: `web/${id}`, expires: "1 day" };
    const chosen = { environments: "staging", resources: "variables", surfaces: "rest_api" };
    expect((await visitor.send("/keys", { ...fields, ...chosen })).status).toBe(409);
    expect(await stored(w)).toBe(untouched);
  });

  test("is not done to another of its name: by `var edit` and `rollback`, whose person looks for a while", async () => {
    const { where, begun, untouched } = await replaced(w, async (where) => ({
      seen: await revealVariables(w.admin, where, "staging", () => ""),
      plan: await planRollback(w.admin, { where, environment: "staging", kind: "variables" }, 1),
    }));
    const { seen } = begun.seen;
    const entries = [{ name: "A", value: "edited" }];
    const refused = { kind: "conflict", message: expect.stringContaining(otherProject) };
    await expect(setVariables(w.admin, where, "staging", entries, { seen })).rejects.toMatchObject(refused);
    await expect(
      rollBack(w.admin, { where, environment: "staging", kind: "variables" }, begun.plan),
    ).rejects.toMatchObject(refused);
    expect(await stored(w)).toBe(untouched);
  });
});
