import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { environments } from "../../src/core/names.ts";
import { createDashboard } from "../../src/dashboard/app.ts";
import type { Route } from "../../src/dashboard/parts/route.ts";
import { routes } from "../../src/dashboard/routes.ts";
import { Sessions } from "../../src/dashboard/sessions.ts";
import type { Identity, SignIn } from "../../src/dashboard/sign-in.ts";
import { createKey } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { bitsOf } from "../../src/serve/access/grant.ts";
import { everyRight, type Holding, type Right } from "../../src/serve/access/rights.ts";
import { notarize } from "../support/notarize.ts";
import { grantRights, setVariables } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth } from "../support/world.ts";

/*
 * Every route of the dashboard's table, for somebody with each right, where they have it and where they do not. Without
 * the right nothing is shown and nothing changes; what is there and forbidden is answered like what is not there.
 */

const root = join(import.meta.dir, "../..");
const origin = "http://secrets.example";
const canary = "canary-of-the-rights";
const value = "value-of-the-rights";

describeBoth("each route", (w, _, once) => {
  let held: readonly Holding[] = [];
  let handle: (request: Request) => Response | Promise<Response>;
  let cookie = "";
  let ids: Record<string, string> = {};
  const failures: unknown[] = [];

  beforeAll(async () => {
    const signIn = {
      whoIs: async (_: unknown, { issuer, subject }: Identity) => ({
        actor: { type: "person", name: "ana", from: { issuer, subject } } as const,
        rights: held,
        entries: ["ana"],
        freshUntil: Number.POSITIVE_INFINITY,
      }),
    } as unknown as SignIn;
    const sessions = new Sessions(Date.now);
    handle = createDashboard({
      installation: w.installation,
      sessions,
      entrance: { signIn },
      origin,
      now: Date.now,
      used: () => {},
      report: (error) => failures.push(error),
    }).handle;
    const identity = { issuer: "https://id.example", subject: "ana-1", label: "ana", groups: [], provedAt: Date.now() };
    cookie = `__Host-keyhole=${sessions.begin(identity)}`;
    const values = { staging: { [canary.toUpperCase().replaceAll("-", "_")]: value } };
    const { organization, project: web } = await w.place({ variables: values });
    const api = await w.project(organization, "api");
    const inWeb = { organization: organization.slug, projects: ["web"], environments: null };
    const { id: key } = await createKey(w.admin, { ...inWeb, name: canary });
    const asked = { environment: "staging", name: "WANTED", reason: canary } as const;
    const request = await w.request(organization.id, key, web, asked);
    await addPerson(w.admin, { name: "lea", organization: organization.slug, signIn: null });
    await grantRights(w.admin, "lea", { rights: ["see"], projects: ["web"], environments: null });
    await notarize(w);
    ids = { organization: organization.id, org: organization.slug, web: web.id, api: api.id, key, request };
  });

  const fill = (path: string, project: string) =>
    path
      .replace(":org", ids["org"] as string)
      .replace(":project", project)
      .replace(":kind", "variables")
      .replace(":id", ids[path.startsWith("/keys") ? "key" : "request"] as string)
      .replace(":name", "lea")
      .replace(":draft", "none")
      .replace(":entry", "commands:1");
  const ask = async ({ method, path }: Route, project: string, own: Readonly<Record<string, string>> = {}) => {
    const name = canary.toUpperCase().replaceAll("-", "_");
    const staged = { environment: "staging", from: "staging", to: "development", "value.staging": "x" };
    const versions = { version: "1", "version.development": "1", "version.staging": "2", "version.production": "1" };
    const asked = { name, again: name, kind: "variables", q: "canary", project: ids[project] ?? "" };
    const right = { deed: "give", rights: "see", place: `${ids["org"]}/${project}`, environments: "staging" };
    const given = { ...right, lasts: "for good", person: "lea", people: "2" };
    const fields = { ...staged, ...versions, ...asked, ...given, ...own };
    const to = `${origin}${fill(path, project)}`;
    if (method === "GET") return answerTo(`${to}?${new URLSearchParams(fields)}`);
    const headers = { origin, "sec-fetch-site": "same-origin", accept: "application/json" };
    return answerTo(to, { method, headers, body: new URLSearchParams(fields) });
  };
  const answerTo = async (url: string, asked: RequestInit = {}) => {
    const headers = { ...asked.headers, host: new URL(origin).host, cookie };
    const answer = await handle(new Request(url, { ...asked, headers }));
    return { status: answer.status, text: await answer.text() };
  };
  /** Where a page leads: the paths of its links, and of the forms that change something. */
  const leadsOf = async (route: Route) => {
    const { status, text } = await ask(route, "web");
    const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, to = ""]) => to.replaceAll("&amp;", "&"));
    if (status !== 200) return { links: [], forms: [] };
    const choosers = [...text.matchAll(/<form class="actions".*?<\/form>/gs)].flatMap(([chooser]) =>
      [...chooser.matchAll(/<select .*?name="(\w+)".*?<\/select>/gs)].flatMap(([select, name]) =>
        [...select.matchAll(/<option[^>]*>(\w+)</g)].map(([, value]) => `${fill(route.path, "web")}?${name}=${value}`),
      ),
    );
    const links = [...found(/<a [^>]*href="(\/[^"]*)"/g), ...choosers];
    return { links, forms: found(/<form method="post" action="([^"]*)"/g) };
  };
  const statusOf = async (link: string) => (await answerTo(`${origin}${link}`)).status;
  const isThere = (form: string, rights: readonly Right[]) =>
    form === "/lock" ||
    routes.some(
      ({ method, path, rights: needed }) =>
        method === "POST" &&
        new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`).test(form) &&
        needed.some((right) => rights.includes(right)),
    );
  const holding = (rights: readonly Right[], project: "web" | "api" | null): Holding => ({
    rights,
    organizationId: ids["organization"] as string,
    projectId: project && (ids[project] as string),
    environments: 7,
  });

  const everywhere = [
    ...everyRight.map((right) => [right]),
    ...everyRight.slice(1).map((right) => ["see", right] as const),
    everyRight,
  ].map((rights) => [rights.join(", "), environments, rights] as const);
  const inOne = environments.flatMap((one) =>
    [["see"] as const, everyRight].map((rights) => [rights.join(", "), [one], rights] as const),
  );
  const everyone = [...everywhere, ...inOne];
  once.each(everyone)("leads somebody with %s in %p only to what is there for them", async (_, where, rights) => {
    held = [{ ...holding(rights, "web"), environments: bitsOf(environments, where) }];
    const dead: string[] = [];
    const seen = new Set<string>();
    for (const route of routes.filter(({ method }) => method === "GET")) {
      const { links, forms } = await leadsOf(route);
      for (const link of links) {
        if (!seen.has(link) && (await statusOf(link)) === 404) dead.push(`${route.path} leads to ${link}`);
        seen.add(link);
      }
      for (const form of forms) if (!isThere(form, rights)) dead.push(`${route.path} sends a form to ${form}`);
    }
    expect(dead).toEqual([]);
    expect(seen.size).toBeGreaterThan(0);
  });

  once("after each step, sends somebody who may write but not see to a page that is there for them", async () => {
    const send = async (page: string, typed: Readonly<Record<string, string>>) => {
      const route = routes.find(({ method, path }) => method === "POST" && path.endsWith(page)) as Route;
      const { status, text } = await ask(route, "api", typed);
      expect(status, text).toBe(200);
      return (JSON.parse(text) as { to: string }).to;
    };
    held = [holding(["write"], "api")];
    const typed = { new: "yes", "version.staging": "1", "value.development": "", "value.production": "" };
    expect(await send("/:kind/set", typed)).toBe("/");
    const plan = await send("/variables/paste", { text: "PASTED=value" });
    expect(plan).toContain("/variables/paste/");
    expect(await statusOf(plan)).toBe(200);
  });

  const rows = routes.map((route) => [`${route.method} ${route.path}`, route] as const);
  const unfit = ({ rights }: Route) => everyRight.filter((right) => !rights.includes(right));
  const unfitting = rows.filter(([, route]) => unfit(route).length > 0);
  test.each(unfitting)("%s is not there for somebody without its right", async (_, route) => {
    held = [holding(unfit(route), null)];
    const before = await stored(w);
    const { status, text } = await ask(route, "web");
    expect(status).toBe(404);
    expect(text).not.toContain(canary);
    expect(await stored(w)).toBe(before);
  });

  test.each(rows)(
    "%s shows and changes nothing of a project in which they have no right, as if it did not exist",
    async (_, route) => {
      held = [holding(everyRight, "api")];
      const before = await stored(w);
      const there = await ask(route, "web");
      const absent = await ask(route, "none");
      expect(there.text.toLowerCase()).not.toContain(canary);
      if (route.path.includes(":project")) {
        const words = (text: string) => text.replaceAll(/web|none/g, "PROJECT");
        expect([there.status, words(there.text)]).toEqual([absent.status, words(absent.text)]);
      }
      expect(await stored(w)).toBe(before);
    },
  );

  once.each(rows)("%s does not fail for somebody with one right anywhere", async (_, route) => {
    for (const [right, environments] of everyRight.flatMap((one) => [7, 2].map((mask) => [one, mask] as const))) {
      held = [{ ...holding([right], "web"), environments }];
      const { status, text } = await ask(route, "web");
      expect([right, status < 500]).toEqual([right, true]);
      if (right !== "reveal") expect([right, text.includes(value)]).toEqual([right, false]);
    }
    expect(failures).toEqual([]);
  });

  const fields = new Set(
    Array.from(new Bun.Glob("src/{dashboard,people,kinds}/**/*.ts{,x}").scanSync(root), (file) => {
      const text = readFileSync(join(root, file), "utf8");
      return [...text.matchAll(/\.(?:read|find|all|touched|has|query|environment|number)\("([\w.-]+)"/g)];
    }).flatMap((found) => found.map(([, name = ""]) => name)),
  );
  once.each(rows)("%s takes no field for what every object has", async (_, route) => {
    held = [holding(everyRight, "web")];
    const sent = { names: canary.toUpperCase().replaceAll("-", "_"), deed: "delete" };
    const failed: string[] = [];
    // A row before this one may have deleted it.
    await setVariables(w.admin, `${ids["org"]}/web`, "staging", [{ name: sent.names, value }]);
    for (const name of fields) {
      for (const odd of ["constructor", "__proto__"]) {
        const { status } = await ask(route, "web", { ...sent, [name]: odd });
        if (status >= 500) failed.push(`${name}=${odd}`);
      }
    }
    expect([fields.size > 30, failed, failures]).toEqual([true, [], []]);
  });
});
