import { describe, expect, test } from "bun:test";
import { deleteAccount, setAccount } from "../../src/admin/accounts.ts";
import { createProject, deleteProject } from "../../src/admin/projects.ts";
import { deleteVariable, setVariables } from "../../src/admin/variables.ts";
import {
  describeBoth,
  expectRefusal,
  firstOf,
  headersOf,
  insertProjects,
  leaksIn,
  numbered,
  usualHeaders,
} from "../world.ts";

describeBoth("GET /projects", (world) => {
  describe("200", () => {
    test("has id, name, slug, variableCount and accountCount, in this order and without spaces", async () => {
      const w = world();
      const organization = await w.organization();
      const web = await w.project(organization, "web", {
        name: 'The "Web"',
        variables: { development: { A: "1", B: "2" }, production: { B: "3", C: "4" } },
        accounts: [{ name: "ci", environments: ["staging", "production"], values: { password: "hunter22" } }],
        files: [{ path: "a", environments: ["staging"], content: "x" }],
      });
      const api = await w.project(organization, "api");
      const answer = await w.ask("/projects", { key: await w.key(organization) });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        `{"projects":[{"id":"${api.id}","name":"api","slug":"api","variableCount":0,"accountCount":0},` +
          `{"id":"${web.id}","name":"The \\"Web\\"","slug":"web","variableCount":3,"accountCount":1}]}`,
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
    });

    test("is an empty list if there is no project, or none of the key's is left", async () => {
      const w = world();
      const organization = await w.organization();
      expect(await w.ask("/projects", { key: await w.key(organization) })).toMatchObject({ text: '{"projects":[]}' });
      const web = await w.project(organization, "web");
      const key = await w.key(organization, { projects: ["web"] });
      await deleteProject(w.admin, web.where);
      expect(await w.ask("/projects", { key })).toMatchObject({ status: 200, text: '{"projects":[]}' });
    });

    test.each([false, true])("is in byte order of slug; for a key that lists its projects: %p", async (listed) => {
      const w = world();
      const organization = await w.organization();
      const ordered = ["0", "0-", "0a", "10", "9", "a", "a-", "a--b", "a-b", "a0", "a1", "aa", "ab", "b", "z-", "z0"];
      for (const slug of [...ordered].sort((a, b) => Bun.hash.crc32(a) - Bun.hash.crc32(b))) {
        await createProject(w.admin, `${organization.slug}/${slug}`, {});
      }
      const key = await w.key(organization, { projects: listed ? [...ordered].reverse() : undefined });
      expect(slugsOf((await w.ask("/projects", { key })).json)).toEqual(ordered);
    });

    test("has the key's projects and no other, without telling of others", async () => {
      const w = world();
      const [organization, other] = [await w.organization(), await w.organization()];
      for (const slug of ["api", "web", "worker"]) await w.project(organization, slug);
      await w.project(other, "elsewhere");
      await w.project(other, "web");
      const key = await w.key(organization, { projects: ["worker", "api"] });
      expect(slugsOf((await w.ask("/projects", { key })).json)).toEqual(["api", "worker"]);
      expect(slugsOf((await w.ask("/projects", { key: await w.key(organization) })).json)).toEqual([
        "api",
        "web",
        "worker",
      ]);
    });

    test("never has a project that took the slug of one that the key lists", async () => {
      const w = world();
      const organization = await w.organization();
      const web = await w.project(organization, "web");
      const key = await w.key(organization, { projects: ["web"] });
      await deleteProject(w.admin, web.where);
      await w.project(organization, "web");
      expect(await w.ask("/projects", { key })).toMatchObject({ text: '{"projects":[]}' });
    });

    test("counts what is in the environments that the key reaches, each name once", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web", {
        variables: {
          development: { ALL: "1", DEV: "1", DEV_STAGING: "1" },
          staging: { ALL: "1", DEV_STAGING: "1", STAGING: "1" },
          production: { ALL: "1", PRODUCTION: "1" },
        },
        accounts: [
          { name: "everywhere", environments: ["development", "staging", "production"], values: { a: "1" } },
          { name: "dev and staging", environments: ["development", "staging"], values: { a: "1" } },
          { name: "production", environments: ["production"], values: { a: "1" } },
        ],
      });
      const counts = async (...environments: string[]) => {
        const key = await w.key(organization, { environments });
        const { projects } = (await w.ask("/projects", { key })).json as { projects: Listed[] };
        return projects.map(({ variableCount, accountCount }) => [variableCount, accountCount]);
      };
      expect(await counts("development", "staging", "production")).toEqual([[5, 3]]);
      expect(await counts("development")).toEqual([[3, 2]]);
      expect(await counts("staging")).toEqual([[3, 2]]);
      expect(await counts("production")).toEqual([[2, 2]]);
      expect(await counts("development", "staging")).toEqual([[4, 2]]);
      expect(await counts("staging", "production")).toEqual([[4, 3]]);
      // After deletions, and after an account moved.
      await deleteVariable(w.admin, where, "staging", "ALL");
      await deleteVariable(w.admin, where, "staging", "STAGING");
      await setVariables(w.admin, where, "production", [{ name: "DEV", value: "2" }]);
      await setAccount(w.admin, where, "dev and staging", ["production"], { a: "2" });
      await deleteAccount(w.admin, where, "everywhere");
      expect(await counts("development")).toEqual([[3, 0]]);
      expect(await counts("staging")).toEqual([[1, 0]]);
      expect(await counts("production")).toEqual([[3, 2]]);
      expect(await counts("development", "staging", "production")).toEqual([[4, 2]]);
    });

    test("leaves no audit entry, because no value left", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization);
      await w.ask("/projects", { key });
      expect(await w.audit(key)).toEqual([]);
    });
  });

  describe("400", () => {
    test.each([
      ["environment=production", "The query parameter 'environment' is not known here."],
      ["cursor=1", "The query parameter 'cursor' is not known here."],
      ["page", "The query parameter 'page' is not known here."],
      ["%zz=1", "The query parameter with an unusual name is not known here."],
    ])("?%s is refused", async (query, error) => {
      const w = world();
      const answer = await w.ask(`/projects?${query}`, { key: await w.key(await w.organization()) });
      expectRefusal(answer, 400, "invalid_request", error);
    });
  });

  describe("422", () => {
    test("1000 projects are listed and 1001 refused, for a key of all projects and for one that lists them", async () => {
      const w = world();
      const organization = await w.organization();
      const slugs = numbered("p", 1000);
      await insertProjects(w, organization, slugs);
      const key = await w.key(organization);
      const answer = await w.ask("/projects", { key });
      expect(answer.status).toBe(200);
      expect(slugsOf(answer.json)).toEqual(slugs);

      const listed = await w.key(organization, { projects: slugs });
      expect(slugsOf((await w.ask("/projects", { key: listed })).json)).toEqual(slugs);

      const last = await w.project(organization, "one-too-many");
      const refused = await w.ask("/projects", { key });
      expectRefusal(refused, 422, "too_many_items", tooMany);
      expect(slugsOf((await w.ask("/projects", { key: listed })).json)).toEqual(slugs);
      const ids = await w.sql`select slug, id from projects where organization_id = ${organization.id}`;
      await w.regrant(listed, { projects: Object.fromEntries(ids.map(({ slug, id }) => [slug, id])) });
      expectRefusal(await w.ask("/projects", { key: listed }), 422, "too_many_items", tooMany);

      const narrow = await w.key(organization, { projects: ["one-too-many", "p0000"] });
      expect(slugsOf((await w.ask("/projects", { key: narrow })).json)).toEqual([last.slug, "p0000"]);
    });
  });

  test("neither key nor value was logged", () => {
    const w = world();
    expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
  });
});

const tooMany = "The answer would hold more than 1000 items; narrow the request or use a narrower key.";

type Listed = { readonly slug: string; readonly variableCount: number; readonly accountCount: number };

function slugsOf(json: unknown): string[] {
  return (json as { projects: Listed[] }).projects.map(({ slug }) => slug);
}
