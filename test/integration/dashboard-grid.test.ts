/**
 * The grid's parts: what each chip counts, and for whom. A model of each person says which cells they may see, and
 * which of them they may compare.
 */

import { expect, test } from "bun:test";
import { addPerson } from "../../src/people/persons/persons.ts";
import type { Right } from "../../src/serve/access/rights.ts";
import { listAudit } from "../support/audit.ts";
import { inDays } from "../support/clock.ts";
import { personsVisitor, visitorOf } from "../support/pages.ts";
import { grantRights, setAccount, setVariables } from "../support/plans.ts";
import { describeBoth, describeOnce, type World } from "../support/world.ts";

const dayMs = 86_400_000;

async function place(w: World) {
  const { organization, where, id } = await w.place({
    variables: {
      development: { SAME: "canary-1", DIFFERS: "canary-2", NEW: "canary-3" },
      staging: { SAME: "canary-1", DIFFERS: "canary-4", NEWER: "canary-5" },
      production: { SAME: "canary-1", DIFFERS: "canary-4" },
    },
  });
  await setVariables(w.admin, where, "staging", [
    { name: "SOON", value: "canary-6", rotateBy: inDays(20) },
    { name: "LATER", value: "canary-7", rotateBy: inDays(40) },
  ]);
  return { organization, where, id };
}

/** The chips of a page: their words, where they lead, and whether the page is that one. */
function chipsOf(html: string): string[] {
  const [, nav = ""] = /<nav class="chips".*?>(.*?)<\/nav>/s.exec(html) ?? [];
  return [...nav.matchAll(/<a href="[^"?]*([^"]*)"( aria-current="page")?>(.*?)<\/a>/g)].map(
    ([, query, isHere, words = ""]) => `${words.replace(/<.*?>/g, "")}${query && ` ${query}`}${isHere ? " here" : ""}`,
  );
}

function namesOf(html: string): string[] {
  return [...html.matchAll(/<th scope="row">.*?<bdi>(.*?)<\/bdi>/g)].map(([, name = ""]) => name);
}

describeOnce("the groups of a long grid", (w) => {
  test("have at least a 200th of all names, so small groups of a very long grid are none", async () => {
    const { where } = await w.place({ variables: {} });
    const names = (group: string, count: number) => Array.from({ length: count }, (_, at) => `${group}_${at}`);
    const many = Array.from({ length: 200 }, (_, at) => names(`M${at}`, 4)).flat();
    const write = (all: readonly string[]) =>
      setVariables(w.admin, where, "staging", [...all.map((name) => ({ name, value: "" }))]);
    const groups = async () => {
      const { html } = await (await visitorOf(w)).page(`/p/${where}/variables`);
      return [...html.matchAll(/<tr class="group">.*?>(\w+)…/g)].map(([, name = ""]) => name);
    };
    await write([...names("L", 5), ...names("S", 3), ...many.slice(0, 32)]);
    expect(await groups()).toEqual(["L_", ...Array.from({ length: 8 }, (_, at) => `M${at}_`), "S_"]);
    await write(many.slice(32));
    expect(await groups()).toEqual(["L_"]);
  });
});

describeBoth("the parts of a grid", (w) => {
  test("are links with counts, and each shows the items that it counts", async () => {
    const { where } = await place(w);
    const visitor = await visitorOf(w);
    const { html } = await visitor.page(`/p/${where}/variables`);
    expect(chipsOf(html)).toEqual([
      "All 6 here",
      "Missing in production 4 ?only=missing-production",
      "Due for rotation 1 ?only=due",
    ]);
    const shown = {
      "missing-production": ["LATER", "NEW", "NEWER", "SOON"],
      due: ["SOON"],
    };
    for (const [only, names] of Object.entries(shown)) {
      const part = (await visitor.page(`/p/${where}/variables?only=${only}`)).html;
      expect([only, namesOf(part)]).toEqual([only, names]);
      const shown = chipsOf(part).filter((chip) => chip.endsWith(" here"));
      expect(shown).toEqual([expect.stringContaining(`?only=${only} here`)]);
    }
    for (const only of ["nothing", "different"]) {
      expect((await visitor.page(`/p/${where}/variables?only=${only}`)).status).toBe(404);
    }
  });

  test("open values only for somebody who asks which differ: on record, those that differ first", async () => {
    const { where, id } = await place(w);
    const visitor = await visitorOf(w);
    const asked = { project: id };
    expect((await visitor.page(`/p/${where}/variables`)).html).toContain("Which values differ?");
    const html = await (await visitor.submit(`/p/${where}/variables/compare`, asked)).text();
    expect(namesOf(html)).toEqual(["DIFFERS", "LATER", "NEW", "NEWER", "SAME", "SOON"]);
    expect([...html.matchAll(/<td class="([abc])"/g)].map(([, letter]) => letter).join("")).toBe("abbaaa");
    const searches = await listAudit(w.admin, { project: where, actions: ["values.search"] });
    expect(searches.map(({ environment }) => environment)).toEqual(["development", "staging", "production"]);
    // It is asked of the project that the page showed, and of no later one.
    expect((await visitor.submit(`/p/${where}/variables/compare`, { project: "other" })).status).toBe(409);
    expect(await listAudit(w.admin, { project: where, actions: ["values.search"] })).toHaveLength(3);
  });

  test("begin on the page of projects, which counts what is missing in production", async () => {
    const { where } = await place(w);
    const { html } = await (await visitorOf(w)).page("/projects");
    expect(html).toContain(`<a href="/p/${where}/variables?only=missing-production">4</a>`);
  });

  test("are left out if they are empty, and say so at their link", async () => {
    const { where } = await w.place({ slug: "whole" });
    await setAccount(w.admin, where, "stripe", ["production"], { user: "canary-8" });
    const visitor = await visitorOf(w);
    expect(chipsOf((await visitor.page(`/p/${where}/accounts`)).html)).toEqual(["All 1 here"]);
    const { html } = await visitor.page(`/p/${where}/accounts?only=due`);
    expect(html).toContain(`Due for rotation: nothing. <a href="/p/${where}/accounts">Show all</a>`);
    expect(chipsOf((await visitor.page(`/p/${where}/variables`)).html)).toEqual([]);
  });

  test("mark what is overdue, and an overdue value is due", async () => {
    const { where } = await place(w);
    w.clock.nowMs = Date.now() + 60 * dayMs;
    const { html } = await (await visitorOf(w)).page(`/p/${where}/variables?only=due`);
    w.clock.nowMs = undefined;
    expect(namesOf(html)).toEqual(["LATER", "SOON"]);
    expect(html.match(/<b class="missing"> overdue<\/b>/g)).toHaveLength(2);
  });
});

describeBoth("the grid of somebody who may not see or compare everything", (w) => {
  test("counts, compares and copies only what their rights reach", async () => {
    const { where, organization, id } = await place(w);
    const [all, missing, due] = [
      "All 6 here",
      "Missing in production 4 ?only=missing-production",
      "Due for rotation 1",
    ];
    const rows: readonly (readonly [Grants, chips: string[], letters: string, copy: string | undefined])[] = [
      [{ see: null }, [all, missing, `${due} ?only=due`], "", undefined],
      [{ see: null, reveal: ["staging"] }, [all, missing, `${due} ?only=due`], "", "staging"],
      [
        { see: null, reveal: ["development", "staging"] },
        [all, missing, `${due} ?only=due`],
        "aab",
        "development staging",
      ],
      // The same in both, and what development has says nothing.
      [
        { see: null, reveal: ["staging", "production"] },
        [all, missing, `${due} ?only=due`],
        "aa",
        "staging production",
      ],
      [{ see: ["staging"], reveal: null }, ["All 5 here", `${due} ?only=due`], "", "staging"],
      [{ see: ["development"], write: null }, ["All 3 here"], "", undefined],
    ];
    for (const [grants, chips, letters, copy] of rows) {
      const visitor = await visitorWith(w, organization.slug, grants);
      const { html } = await visitor.page(`/p/${where}/variables`);
      expect(html).not.toMatch(/<td class="[abc]"/);
      const compared = await (await visitor.submit(`/p/${where}/variables/compare`, { project: id })).text();
      const cells = [...compared.matchAll(/<td class="([abc])"[^>]*>/g)].map(([, letter]) => letter);
      const found = [chipsOf(html), [...new Set(cells)].join(""), /data-copy="(.*?)"/.exec(html)?.[1]];
      expect([grants, ...found]).toEqual([grants, chips, [...new Set(letters)].join(""), copy]);
      const isSeen = grants.see === null;
      const { status } = await visitor.page(`/p/${where}/variables?only=missing-production`);
      const leads = (await visitor.page("/projects")).html.includes(`${where}/variables?only=missing-production`);
      expect([grants, status, leads]).toEqual([grants, isSeen ? 200 : 404, isSeen]);
    }
  });

  test("offers no copy of what pages do not show, and no first thing to do", async () => {
    const { where } = await w.place({
      slug: "tls",
      files: [{ path: "tls/key.pem", name: "key", content: "canary-9", environments: ["staging"] }],
    });
    const { html } = await (await visitorOf(w)).page(`/p/${where}/files`);
    expect(html).not.toContain("data-copy");
    // Nothing on that page is what people come for.
    expect(html).toContain('<a class="button quiet" href');
    expect(html).not.toContain('<a class="button" href');
  });
});

/** By right, the environments; null is all. */
type Grants = Partial<Record<Right, string[] | null>>;

/** Somebody with these rights in the project. */
async function visitorWith(w: World, organization: string, grants: Grants) {
  const signIn = { issuer: "https://id.example", subject: crypto.randomUUID() };
  const name = `p-${signIn.subject}`;
  await addPerson(w.admin, { name, organization, signIn });
  for (const [right, environments] of Object.entries(grants)) {
    await grantRights(w.admin, name, { rights: [right], projects: ["web"], environments });
  }
  return personsVisitor(w, signIn);
}
