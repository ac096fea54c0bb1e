import { describe, expect, test } from "bun:test";
import { createProject } from "../../src/people/projects/projects.ts";
import { expectTooMany, firstOf, headersOf, usualHeaders } from "../support/answer.ts";
import { connectAgent, mcpClient } from "../support/mcp.ts";
import { deleteProject } from "../support/plans.ts";
import { insertProjects, numbered } from "../support/rows.ts";
import { describeBoth, everything } from "../support/world.ts";

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

  // A key may list projects that it does not reach any more, in any number.
  test.each(
    [999, 1000, 1001, 1300].flatMap((reached) => [
      { reached, renamed: 0, exchanged: 0, deleted: 0, elsewhere: 0 },
      { reached, renamed: 300, exchanged: 100, deleted: 100, elsewhere: 100 },
    ]),
  )("$reached of $renamed + $exchanged + $deleted + $elsewhere more are all there or refused", async (one) => {
    const [organization, other] = [await w.organization(), await w.organization()];
    const slugs = numbered("p", one.reached);
    const lost = (["renamed", "exchanged", "deleted", "elsewhere"] as const).map((how) => numbered(how, one[how]));
    // Those that the key reaches come last, wherever the database begins.
    await insertProjects(w, organization, [...lost.flat(), ...slugs]);
    const listed = await w.key(organization, { projects: [...lost.flat(), ...slugs] });
    const mcp = await w.key(organization, { projects: [...lost.flat(), ...slugs], ...everything });
    const of = organization.id;
    const change = (what: string, slug: string) =>
      w.run(`${what} where organization_id = ? and slug like ?`, [of, slug]);
    await w.sql`update projects set organization_id = ${other.id} where organization_id = ${of} and slug like 'elsewhere%'`;
    await change("delete from projects", "deleted%");
    for (const how of ["renamed%", "exchanged%"]) await change("update projects set slug = 'n' || slug", how);
    const swapped = "'exchanged' || substr(cast(10099 - cast(substr(slug, 11) as integer) as text), 2)";
    await change(`update projects set slug = ${swapped}`, "nexchanged%");
    const every = await w.key(organization);
    const here = [...slugs, ...numbered("exchanged", one.exchanged), ...numbered("nrenamed", one.renamed)].sort();
    for (const [key, expected] of [
      [listed, slugs],
      [every, here],
    ] as const) {
      const answer = await w.ask("/projects", { key });
      if (expected.length > 1000) expectTooMany(answer);
      else expect([answer.status, slugsOf(answer.json)]).toEqual([200, expected]);
    }
    const agent = await connectAgent(mcpClient(w), mcp);
    const { isError, found } = await agent.call("list_projects");
    expect([isError, isError || slugsOf(found)]).toEqual(one.reached > 1000 ? [true, true] : [false, slugs]);
    await agent.client.close();
  });
});

type Listed = { readonly slug: string; readonly variableCount: number; readonly accountCount: number };

function slugsOf(json: unknown): string[] {
  return (json as { projects: Listed[] }).projects.map(({ slug }) => slug);
}
