import { beforeAll, describe, expect, test } from "bun:test";
import { everyRight, type Holding, type Right } from "../../src/access/rights.ts";
import { createDashboard } from "../../src/dashboard/app.ts";
import { routes } from "../../src/dashboard/routes.ts";
import { Sessions } from "../../src/dashboard/sessions.ts";
import type { Identity, SignIn } from "../../src/dashboard/sign-in.ts";
import type { Route } from "../../src/pages/route.ts";
import { createKey } from "../../src/people/keys.ts";
import { describeBoth } from "../support/world.ts";

/*
 * Every route of the dashboard's table, for somebody with each right, where they have it and where they do not. Without
 * the right nothing is shown and nothing changes; what is there and forbidden is answered like what is not there.
 */

const origin = "http://secrets.example";
const canary = "canary-of-the-rights";
const value = "value-of-the-rights";

describeBoth("each route", (w) => {
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
    const organization = await w.organization();
    const values = { staging: { [canary.toUpperCase().replaceAll("-", "_")]: value } };
    const web = await w.project(organization, "web", { variables: values });
    const api = await w.project(organization, "api");
    const { id: key } = await createKey(w.admin, {
      organization: organization.slug,
      name: canary,
      projects: ["web"],
      environments: null,
    });
    ids = { organization: organization.id, org: organization.slug, web: web.id, api: api.id, key };
  });

  const ask = async ({ method, path }: Route, project: string) => {
    const filled = path
      .replace(":org", ids["org"] as string)
      .replace(":project", project)
      .replace(":kind", "variables")
      .replace(":id", path.startsWith("/keys") ? (ids["key"] as string) : "01900000-0000-7000-8000-000000000000")
      .replace(":draft", "none")
      .replace(":entry", "commands:1");
    const name = canary.toUpperCase().replaceAll("-", "_");
    const fields = {
      ...{ name, environment: "staging", from: "staging", to: "development", kind: "variables", version: "1" },
      ...{
        again: name,
        [`value.staging`]: "x",
        "version.staging": "2",
        "version.development": "1",
        "version.production": "1",
      },
    };
    const headers: Record<string, string> = { host: new URL(origin).host, cookie };
    if (method === "POST")
      Object.assign(headers, { origin, "sec-fetch-site": "same-origin", accept: "application/json" });
    const url = `${origin}${filled}${method === "GET" ? `?${new URLSearchParams(fields)}` : ""}`;
    const body = method === "POST" ? new URLSearchParams(fields) : undefined;
    const answer = await handle(new Request(url, { method, headers, ...(body && { body }) }));
    return { status: answer.status, text: await answer.text() };
  };
  const everything = async () =>
    JSON.stringify(
      await Promise.all(
        ["projects", "sets", "set_versions", "api_keys", "variable_requests", "audit_heads"].map((table) =>
          w.run(`select * from ${table} order by 1, 2, 3`),
        ),
      ),
    );
  const holding = (rights: readonly Right[], project: "web" | "api" | null): Holding => ({
    rights,
    organizationId: ids["organization"] as string,
    projectId: project && (ids[project] as string),
    environments: 7,
  });

  describe.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))("%s", (_, route) => {
    test("is not there for somebody without its right", async () => {
      if (route.right === "any") return;
      held = [
        holding(
          everyRight.filter((right) => right !== route.right),
          null,
        ),
      ];
      const before = await everything();
      const { status, text } = await ask(route, "web");
      expect(status).toBe(404);
      expect(text).not.toContain(canary);
      expect(await everything()).toBe(before);
    });

    test("shows and changes nothing of a project in which they have no right, as if it did not exist", async () => {
      held = [holding(everyRight, "api")];
      const before = await everything();
      const there = await ask(route, "web");
      const absent = await ask(route, "none");
      expect(there.text.toLowerCase()).not.toContain(canary);
      if (route.path.includes(":project")) {
        const words = (text: string) => text.replaceAll(/web|none/g, "PROJECT");
        expect([there.status, words(there.text)]).toEqual([absent.status, words(absent.text)]);
      }
      expect(await everything()).toBe(before);
    });

    test("does not fail for somebody with one right anywhere", async () => {
      for (const [right, environments] of everyRight.flatMap((one) => [7, 2].map((mask) => [one, mask] as const))) {
        held = [{ ...holding([right], "web"), environments }];
        const { status, text } = await ask(route, "web");
        expect([right, status < 500]).toEqual([right, true]);
        if (right !== "reveal") expect([right, text.includes(value)]).toEqual([right, false]);
      }
      expect(failures).toEqual([]);
    });
  });
});
