/** What a page costs: how many statements it takes, whatever is stored, and which values it opens. */
import { expect, test } from "bun:test";
import { routes } from "../../src/dashboard/routes.ts";
import { counting } from "../support/counted.ts";
import { notarize } from "../support/notarize.ts";
import { visitorOf } from "../support/pages.ts";
import { setVariables } from "../support/plans.ts";
import { describeBoth, everything } from "../support/world.ts";

const dayMs = 86_400_000;

describeBoth("a page", (w) => {
  /** An organization with so many projects, each with something for every list of Today. */
  const furnish = async (count: number) => {
    const organization = await w.organization();
    const all = { ...everything, projects: ["p0"] };
    const project = await w.project(organization, "p0");
    const first = await w.key(organization, { ...all, name: "soon", expiresInMs: 2 * dayMs });
    for (let n = 0; n < count; n++) {
      const { where } = n === 0 ? project : await w.project(organization, `p${n}`);
      const rotateBy = new Date(Date.now() + (n % 6) * dayMs).toISOString().slice(0, 10);
      await setVariables(w.admin, where, "staging", [{ name: "DUE", value: "stored-many-times", rotateBy }]);
      const bait = await w.key(organization, { ...all, name: `bait ${n}`, canary: true });
      await w.ask("/organization", { key: bait });
      const key = await w.key(organization, { ...all, name: `soon ${n}`, expiresInMs: 2 * dayMs });
      await w.request(organization.id, key.id, project, { environment: "staging", name: `R${n}`, reason: "" });
    }
    return { organization, key: first.id };
  };
  const visit = async () => {
    const { installation, take } = counting(w.installation);
    const visitor = await visitorOf({ ...w, installation });
    return async (path: string) => {
      take();
      const { status, html } = await visitor.page(path);
      return { status, html, ...take() };
    };
  };

  test("that comes first takes at most 30 statements, however much is stored, and its lists say that there is more", async () => {
    const page = await visit();
    await furnish(1);
    await notarize(w);
    const few = await page("/");
    await furnish(30);
    const many = await page("/");
    expect([few.status, many.status, many.openings]).toEqual([200, 200, 0]);
    expect(few.statements).toBeLessThanOrEqual(30);
    expect(many.statements).toBeLessThanOrEqual(30);
    for (const { html } of [few, many]) {
      const isCut = html === many.html;
      for (const more of [
        "All requests",
        "There are more: <code>keyhole expiring</code> lists them.",
        "All projects",
      ]) {
        expect([more, html.includes(more)]).toEqual([more, isCut]);
      }
    }
    // The one that is due first is there, and so many lines at most are in each list.
    const lists = many.html.match(/<ul>.*?<\/ul>/gs) ?? [];
    expect(lists.map((list) => list.match(/<li>/g)?.length)).toEqual([12, 12, 12, 12]);
  });

  test("opens no value unless somebody asks for it: with a form, or for what would be undone or promoted", async () => {
    const { organization, key } = await furnish(2);
    await notarize(w);
    const page = await visit();
    const opening = new Set<string>();
    for (const { path, method } of routes) {
      if (method !== "GET") continue;
      for (const kind of path.includes(":kind") ? ["variables", "accounts", "files"] : [""]) {
        const filled = path
          .replace(":org", organization.slug)
          .replace(":project", "p1")
          .replace(":kind", kind)
          .replace(":id", key)
          .replace(":entry", "commands:1");
        const asked = { name: "DUE", kind: "variables", environment: "staging", q: "DUE" };
        for (const more of [{}, { to: "1" }, { from: "staging", to: "production" }]) {
          const query = new URLSearchParams({ ...asked, ...more });
          if ((await page(`${filled}?${query}`)).openings > 0) opening.add([path, ...Object.keys(more)].join(" "));
        }
      }
    }
    const comparing = ["/p/:org/:project/variables/promote from to", "/p/:org/:project/undo to"];
    expect([...opening]).toEqual(comparing);
  });
});
