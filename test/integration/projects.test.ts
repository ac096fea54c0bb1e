import { describe, expect, test } from "bun:test";
import { createProject, deleteProject } from "../../src/people/projects.ts";
import {
  describeBoth,
  expectTooMany,
  firstOf,
  headersOf,
  insertProjects,
  numbered,
  usualHeaders,
} from "../support/world.ts";

describeBoth("GET /projects", (w) => {
  describe("200", () => {
    test("has id, name, slug, variableCount and accountCount, in this order and without spaces", async () => {
      const { organization, id, key } = await w.place({
        name: 'The "Web"',
        variables: { development: { A: "1", B: "2" }, production: { B: "3", C: "4" } },
        accounts: [{ name: "ci", environments: ["staging", "production"], values: { password: "hunter22" } }],
        files: [{ path: "a", environments: ["staging"], content: "x" }],
        key: {},
      });
      const api = await w.project(organization, "api");
      const answer = await w.ask("/projects", { key });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        `{"projects":[{"id":"${api.id}","name":"api","slug":"api","variableCount":0,"accountCount":0},` +
          `{"id":"${id}","name":"The \\"Web\\"","slug":"web","variableCount":3,"accountCount":1}]}`,
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
    });

    test("is an empty list if there is no project, or none of the key's is left", async () => {
      const organization = await w.organization();
      expect(await w.ask("/projects", { key: await w.key(organization) })).toMatchObject({ text: '{"projects":[]}' });
      const web = await w.project(organization, "web");
      const key = await w.key(organization, { projects: ["web"] });
      await deleteProject(w.admin, web.where);
      expect(await w.ask("/projects", { key })).toMatchObject({ status: 200, text: '{"projects":[]}' });
      await w.project(organization, "web"); // another one that took its slug
      expect(await w.ask("/projects", { key })).toMatchObject({ status: 200, text: '{"projects":[]}' });
    });

    test.each([false, true])("is in byte order of slug; for a key that lists its projects: %p", async (listed) => {
      const organization = await w.organization();
      const ordered = ["0", "0-", "0a", "10", "9", "a", "a-", "a--b", "a-b", "a0", "a1", "aa", "ab", "b", "z-", "z0"];
      for (const slug of [...ordered].sort((a, b) => Bun.hash.crc32(a) - Bun.hash.crc32(b))) {
        await createProject(w.admin, `${organization.slug}/${slug}`, {});
      }
      const key = await w.key(organization, { projects: listed ? [...ordered].reverse() : undefined });
      expect(slugsOf((await w.ask("/projects", { key })).json)).toEqual(ordered);
    });
  });

  describe("422", () => {
    test("1000 projects are listed and 1001 refused, for a key of all projects and for one that lists them", async () => {
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
      expectTooMany(refused);
      expect(slugsOf((await w.ask("/projects", { key: listed })).json)).toEqual(slugs);
      const ids = await w.sql`select slug, id from projects where organization_id = ${organization.id}`;
      await w.regrant(listed, { projects: Object.fromEntries(ids.map(({ slug, id }) => [slug, id])) });
      expectTooMany(await w.ask("/projects", { key: listed }));

      const narrow = await w.key(organization, { projects: ["one-too-many", "p0000"] });
      expect(slugsOf((await w.ask("/projects", { key: narrow })).json)).toEqual([last.slug, "p0000"]);
    });
  });
});

type Listed = { readonly slug: string; readonly variableCount: number; readonly accountCount: number };

function slugsOf(json: unknown): string[] {
  return (json as { projects: Listed[] }).projects.map(({ slug }) => slug);
}
