/** The first steps: from an empty installation to the first read, each a link to the page for it. */
import { expect, test } from "bun:test";
import { addPerson } from "../../src/people/persons/persons.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { listProjects } from "../../src/people/projects/projects.ts";
import { type Fields, personsVisitor, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights } from "../support/plans.ts";
import { describeBoth, everything } from "../support/world.ts";

const headingOf = (html: string) => /<h1>(.*?)<\/h1>/.exec(html)?.[1];
const doneOf = (html: string) => /First steps: (\d) of 5 done/.exec(html)?.[1];

describeBoth("the first steps", (w) => {
  test("lead an operator from nothing to the first read, and are gone then", async () => {
    const visitor = await visitorOf(w);
    const step = async () => [doneOf((await visitor.page("/")).html), headingOf((await visitor.page("/start")).html)];
    const take = async (page: string, action: string, typed: Fields) => {
      expect((await visitor.page("/start")).html).toContain(`href="${page.replaceAll("&", "&amp;")}"`);
      const { status, secret } = await visitor.send(action, { ...(await visitor.form(page, action)), ...typed });
      expect([action, status]).toEqual([action, 200]);
      return secret ?? "";
    };
    expect(await step()).toEqual(["0", "Create an organization"]);
    await take("/projects", "/organizations", { slug: "acme" });
    expect(await step()).toEqual(["1", "Create a project"]);
    await take("/projects", "/projects", { org: "acme", slug: "web" });
    expect(await step()).toEqual(["2", "Write the first variable"]);
    const set = "/p/acme/web/variables/set";
    await take(set, set, { name: "GREETING", "value.development": "hello" });
    expect(await step()).toEqual(["3", "Make the first key"]);
    const [{ id: project = "" } = {}] = await listProjects(w.admin);
    const projects = `web/${project}`;
    const given = { name: "my machine", projects, environments: "development", expires: "90 days" };
    const chosen = { surfaces: ["rest_api"], resources: ["projects", "variables"] };
    const page = `/keys/new?org=acme&projects=${encodeURIComponent(projects)}`;
    const key = await take(page, "/keys", { ...given, ...chosen });
    w.secrets.add(key);
    expect(await step()).toEqual(["4", "Read it with the key"]);
    const waiting = (await visitor.page("/start")).html;
    expect(waiting).toContain("data-awaits");
    expect((await w.ask("/projects/web/variables?environment=development", { key })).status).toBe(200);
    const [, id = ""] = /\/keys\/([0-9a-f-]{36})/.exec(waiting) ?? [];
    await w.sql`insert into key_uses (key_id, last_used_at) values (${id}, ${Date.now()}) on conflict do nothing`;
    expect(await step()).toEqual([undefined, "The first read has arrived"]);
    const { html } = await visitor.page("/start");
    expect(html).toContain("<bdi>my machine</bdi></a> read <time");
    expect(html).not.toContain("data-awaits");
  });
});

describeBoth("the first steps of an installation that has begun", (w) => {
  const person = async (rights: readonly ("see" | "write" | "keys" | "reveal" | "decide")[]): Promise<Visitor> => {
    const signIn = { issuer: "https://id.example", subject: crypto.randomUUID() };
    const name = `ana-${signIn.subject.slice(0, 8)}`;
    const org = `org-${signIn.subject.slice(0, 8)}`;
    await createOrganization(w.admin, { slug: org });
    await addPerson(w.admin, { name, organization: org, signIn });
    await grantRights(w.admin, name, { rights, organization: org, projects: null, environments: null });
    return personsVisitor(w, signIn);
  };

  test("are left out for the rest of the session by whoever wants no help", async () => {
    await createOrganization(w.admin, { slug: "acme" });
    const visitor = await visitorOf(w);
    expect(doneOf((await visitor.page("/")).html)).toBe("1");
    expect(await visitor.send("/start/leave", {})).toEqual({ status: 200, to: "/" });
    expect(doneOf((await visitor.page("/")).html)).toBeUndefined();
    expect(doneOf((await (await visitorOf(w)).page("/")).html)).toBe("1");
  });

  test("are for people who may see, write and make keys, and nobody else's progress is in them", async () => {
    const { key } = await w.place({ variables: { staging: { A: "1" } }, key: {} });
    await w.sql`insert into key_uses (key_id, last_used_at) values (${key.id}, ${Date.now()})`;
    const able = await person(["see", "write", "keys", "reveal"]);
    expect(doneOf((await able.page("/")).html)).toBe("1");
    expect(headingOf((await able.page("/start")).html)).toBe("Create a project");
    const apart = await person(["see", "keys"]);
    expect(doneOf((await apart.page("/")).html)).toBeUndefined();
    const other = await person(["see", "write"]);
    expect(doneOf((await other.page("/")).html)).toBeUndefined();
    const { html } = await other.page("/start");
    expect(html).toContain("Your rights are not enough");
    expect((await able.send("/organizations", { slug: "mine" })).status).toBe(404);
  });

  test("begin in a project in which somebody may write", async () => {
    const organization = await w.organization();
    for (const slug of ["a", "b"]) await w.project(organization, slug);
    const signIn = { issuer: "https://id.example", subject: crypto.randomUUID() };
    await addPerson(w.admin, { name: "bo", organization: organization.slug, signIn });
    const grant = (rights: readonly string[], projects: readonly string[] | null) => {
      return grantRights(w.admin, "bo", { rights, organization: organization.slug, projects, environments: null });
    };
    await grant(["see", "keys"], null);
    await grant(["write"], ["b"]);
    const { html } = await personsVisitor(w, signIn).page("/start");
    expect(html).toContain(`href="/p/${organization.slug}/b/variables/set"`);
  });

  test("stand under a header that counts only requests that somebody can decide", async () => {
    const { organization, project, key } = await w.place({ key: everything });
    await w.request(organization.id, key.id, project, { environment: "staging", name: "WANTED", reason: "" });
    expect((await (await visitorOf(w)).page("/")).html).toContain('class="badge"');
    // One may not decide, and one decides elsewhere.
    for (const rights of [["see"], ["see", "write", "decide"]] as const) {
      expect((await (await person(rights)).page("/")).html).not.toContain('class="badge"');
    }
  });
});
