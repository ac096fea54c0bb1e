/**
 * A form, a draft or a plan is for the project that it showed, and for no later one of the same name: that has versions
 * of its own, which count from 1 again.
 */

import { expect, test } from "bun:test";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { rowOf } from "../../src/cli/terminal/draw.ts";
import { edited } from "../../src/kinds/variables/operations.ts";
import { revealVariables } from "../../src/kinds/variables/reveal.ts";
import { buildProgram } from "../../src/main.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import type { Operation, Planned } from "../../src/people/desk/operation.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import { applying } from "../../src/people/desk/plan.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { beforeTransaction } from "../support/before-transaction.ts";
import { deleteAccount } from "../support/delete.ts";
import { type Fields, type Visitor, visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import {
  deleteOrganization,
  deleteProject,
  planRollback,
  removePerson,
  rollBack,
  setVariables,
} from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { type Content, describeBoth, type Place, type World } from "../support/world.ts";

const content: Content = {
  variables: { staging: { A: "one", B: "two" }, production: { A: "other" } },
  accounts: [{ name: "stripe", environments: ["staging"], values: { user: "ci" } }],
  files: [{ path: "a.pem", environments: ["staging"], content: "pem" }],
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
  ["edit in rows", "variables", "variables/edit", { "value.staging.A": "STALE" }],
  ["delete", "variables/set?name=A", "variables/delete", { from: "staging" }],
  ["go back", "undo?kind=variables&environment=staging&to=1", "undo", {}],
  ["undo a change", "undo?kind=variables&environment=staging&version=2", "undo", {}],
  ["put back", "undo?kind=variables&environment=staging&to=2&name=A", "undo", {}],
  ["set an account", "accounts/set?name=stripe", "accounts/set", { field: "user", "value.staging": "x" }],
  ["delete an account", "accounts/set?name=stripe", "accounts/delete", { from: ["staging"] }],
  ["reveal", "variables/item?name=A", "variables/reveal", { environment: "staging" }],
];

/** A project, and ids of what is made for a question. */
type Asked = { readonly where: string; readonly organization: Organization; readonly id: string };
/** What becomes of what a row names, while its question stands or right before its transaction. */
type Meanwhile = (w: World, asked: Asked) => Promise<unknown>;
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
const keyRevoked: Meanwhile = (w, { id }) => revokeKey(w.admin, id);
const personGone: Meanwhile = (w, { id }) => removePerson(w.admin, id);
const anotherPerson: Meanwhile = (w, { organization }) => person(w, { organization });
const otherReason: Meanwhile = (w, { id }) => w.run("update variable_requests set reason = 'x' where id = ?", [id]);

/** What a question is about, made before it. @returns its id, or the name of a person */
type Make = (w: World, place: Place) => Promise<string>;
const key: Make = async (w, { organization }) => (await w.key(organization)).id;
const person = async (w: World, { organization }: Pick<Asked, "organization">) => {
  const name = `p${Bun.randomUUIDv7().slice(-12)}`;
  await addPerson(w.admin, { name, organization: organization.slug, signIn: null });
  return name;
};
const request: Make = async (w, { organization, project }) => {
  const { id } = await w.key(organization, { surfaces: ["mcp_server"], resources: ["requests"] });
  return w.request(organization.id, id, project, { environment: "staging", name: "NEW", reason: "for a test" });
};

const oneField = { read: async () => Buffer.from('{"user":"stale"}') };
const oneText = { name: "-", read: async () => Buffer.from("A=stale") };
const otherProject = "The project has changed since it was shown";
const staging = { environment: "staging", environments: ["staging"], kind: "variables" };
const account = { name: "stripe", values: oneField, environments: ["production"] };
const everywhere = { allProjects: true, allEnvironments: true };
/** Each row with a plan. One that asks nothing is tried right before its transaction alone. */
const questions: readonly (readonly [path: string, given: object, meanwhile: Meanwhile, error: string, make?: Make])[] =
  [
    ["project delete", {}, anotherProject, otherProject],
    ["project delete", {}, moreVariables, "variables: 2 when this was shown, and 3 now"],
    ["project rename", { slug: "shop" }, anotherProject, otherProject],
    ["history purge", staging, anotherProject, otherProject],
    ["history purge", staging, moreVariables, "2 when this was shown, and 3 now"],
    ["rollback", { ...staging, to: 1 }, anotherProject, otherProject],
    ["rollback", { ...staging, to: 1 }, moreVariables, "are at version 3 now, not 2"],
    ["undo", { ...staging, version: 2 }, anotherProject, otherProject],
    ["undo", { ...staging, version: 2 }, moreVariables, "are at version 3 now, not 2"],
    ...(["project delete", "project rename", "org plan"] as const).map(
      (path) =>
        [path, { slug: "shop", plan: "free" }, moreKeys, "The keys have changed since they were shown"] as const,
    ),
    ["org plan", { plan: "free" }, anotherOrganization, "The organization has changed since it was shown"],
    ["org delete", {}, anotherOrganization, "The organization has changed since it was shown"],
    ["org delete", {}, moreProjects, "projects: 1 when this was shown, and 2 now"],
    ["var set", { ...staging, name: "A", value: oneText }, anotherProject, otherProject],
    ["var mark", { ...staging, names: ["A"], note: "stale" }, anotherProject, otherProject],
    ["var delete", { ...staging, names: ["A"] }, anotherProject, otherProject],
    ["var copy", { ...staging, toEnvironment: "production" }, anotherProject, otherProject],
    ["var import", { ...staging, file: oneText, prune: true }, anotherProject, otherProject],
    ["account set", account, accountGone, "deleted stripe"],
    ["account set", account, anotherProject, otherProject],
    ["account delete", { names: ["stripe"] }, anotherProject, otherProject],
    ["file delete", { ...staging, names: ["a.pem"] }, anotherProject, otherProject],
    ["key rotate", {}, keyRevoked, "is revoked: create a new key", key],
    ["person grant", { rights: ["see"], ...everywhere }, personGone, "There is no person", person],
    ["person grant", { ...staging, rights: ["see"], projects: ["web"] }, anotherProject, otherProject, person],
    ["person revoke", { keepGiven: true }, anotherPerson, "when this was shown, and", person],
    ["person revoke", {}, personGone, "That was not so when it was shown", person],
    ["request approve", { value: oneText }, otherReason, "The request has changed since it was shown", request],
    ["request reject", {}, otherReason, "The request has changed since it was shown", request],
  ];

/** What is done whatever else has changed: nobody needs a key or a trust that was to be revoked. */
const revocations = ["key revoke", "trust revoke"];

const nowhere = { env: {}, terminal: process, json: false, say: () => {}, flush: async () => {}, inherited: [] };
const all = (command: CommandUnknownOpts): CommandUnknownOpts[] => [command, ...command.commands.flatMap(all)];
const rows = all(await buildProgram(nowhere)).flatMap((command) => {
  const row = rowOf(command);
  return row !== undefined && "plan" in row && row.plan !== undefined && !row.isLong ? [row] : [];
});

test("each row with a plan is tried below, unless it only revokes", () => {
  const tried = new Set([...questions.map(([path]) => path), ...revocations]);
  expect([...tried].sort()).toEqual(rows.map(({ path }) => path).sort());
});

describeBoth("what somebody agreed to", (w) => {
  const moments = ["while the question stands", "right before the transaction"] as const;
  const each = questions.flatMap(([path, given, meanwhile, error, make]) =>
    moments.map((moment) => ({ path, given, meanwhile, error, make, moment })),
  );

  test.each(each)(
    "is done to nothing else: $path, $moment",
    async ({ path, given: more, meanwhile, error, make, moment }) => {
      const place = await w.place(content);
      const { organization, where } = place;
      const id = (await make?.(w, place)) ?? "";
      let after: string | undefined;
      const change = async () => {
        await meanwhile(w, { where, organization, id });
        after = await stored(w);
      };
      const row = rows.find((one) => one.path === path) as Planned;
      const given = { project: where, organization: organization.slug, ...(make && { id, name: id }), ...more };
      const isAsked = moment === "while the question stands";
      const isBefore = !isAsked || (row.asks === undefined && !row.showsFirst);
      const admin = isBefore ? beforeTransaction(w.admin, change) : w.admin;
      const refused = {
        kind: expect.stringMatching(/^(?:conflict|not_found)$/),
        message: expect.stringContaining(error),
      };
      await expect(performed(row as Operation, admin, given, isBefore ? undefined : change)).rejects.toMatchObject(
        refused,
      );
      expect(await stored(w)).toBe(after as string);
    },
  );
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
    const given = {
      project: where,
      environment: "staging",
      text: "A=edited\n",
      literal: undefined,
      base: undefined,
      saw: begun.seen.variables,
    } as const;
    const plan = (admin: AdminContext) => edited.plan(admin, given, { env: {}, report: () => {} });
    const refused = { kind: "conflict", message: expect.stringContaining(otherProject) };
    await expect(applying(w.admin, plan, seen)).rejects.toMatchObject(refused);
    await expect(
      rollBack(w.admin, { where, environment: "staging", kind: "variables" }, begun.plan),
    ).rejects.toMatchObject(refused);
    expect(await stored(w)).toBe(untouched);
  });
});
