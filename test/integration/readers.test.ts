/** Who can get a value: what `keyhole access`, its page and an item's page say is what a server and the doors do. */
import { expect, test } from "bun:test";
import { everyKind } from "../../src/kinds/kind.ts";
import { resources } from "../../src/kinds/people.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listAccess, revokeKey } from "../../src/people/keys/keys.ts";
import { personGets } from "../../src/people/keys/readers.ts";
import { addPerson, personsWithAccess } from "../../src/people/persons/persons.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { surfaces } from "../../src/serve/access/grant.ts";
import { everyRight } from "../../src/serve/access/rights.ts";
import { visitorOf } from "../support/pages.ts";
import { personIn } from "../support/persons.ts";
import { grantRights } from "../support/plans.ts";
import { describeOnce, type World } from "../support/world.ts";

/** All lists that can be made of these words, the empty one left out. */
function choices<T>(of: readonly T[]): T[][] {
  return Array.from({ length: 2 ** of.length - 1 }, (_, at) => of.filter((_, bit) => (at + 1) & (1 << bit)));
}

/** A project with an item of each kind in production, and how a machine reads each. */
async function place(w: World) {
  const { organization, where } = await w.place({
    variables: { staging: { TOKEN: "canary-staging" }, production: { TOKEN: "canary-variable" } },
    accounts: [{ name: "stripe", environments: ["production"], values: { user: "canary-account" } }],
    files: [{ path: "key.pem", content: "canary-file-content", environments: ["production"] }],
  });
  const reads = {
    variables: ["/projects/web/variables?environment=production", "/secrets?project=web&environment=production"],
    accounts: ["/projects/web/accounts?environment=production"],
    files: ["/files?project=web&environment=production"],
  } as const;
  return { organization, where, reads };
}

describeOnce("who can read a project", (w) => {
  test("is said of each key as the server answers it", async () => {
    const { organization, where, reads } = await place(w);
    const wanted = resources.filter((name) => name !== "requests");
    for (const [at, asked] of choices(surfaces).entries()) {
      for (const of of choices(wanted)) {
        const key = await w.key(organization, { surfaces: asked, resources: of, name: `key ${at}` });
        const gets = (await listAccess(w.admin, where, "production")).find(({ id }) => id === key.id)?.gets ?? {};
        const { ask } = w.client();
        for (const { kind } of everyKind) {
          const answers = await Promise.all(reads[kind as keyof typeof reads].map((path) => ask(path, { key })));
          const isRead = answers.some(({ status, text }) => status === 200 && /canary|Y2FuYXJ5/.test(text));
          expect([asked, of, kind, gets[kind] === "values"]).toEqual([asked, of, kind, isRead]);
        }
        await revokeKey(w.admin, key.id);
      }
    }
    expect(await listAccess(w.admin, where)).toEqual([]);
    const key = await w.key(organization);
    await setPlan(w.admin, organization.slug, "free");
    const [path] = reads.variables;
    expect((await w.ask(path, { key })).status).toBe(403);
    expect((await listAccess(w.admin, where))[0]?.gets).toEqual({});
  });

  test("is said of each person as the doors answer them", async () => {
    const { organization, where } = await place(w);
    for (const [at, rights] of [...everyRight.map((right) => [right]), everyRight].entries()) {
      await addPerson(w.admin, { name: `p${at}`, organization: organization.slug, signIn: null });
      await grantRights(w.admin, `p${at}`, { rights, projects: ["web"], environments: ["production"] });
      const ana = await personIn(w.admin, where, rights, 4).catch(() => undefined);
      const isRead = ana && (await revealVariable(ana, where, "production", "TOKEN").catch(() => undefined));
      const found = (await personsWithAccess(w.admin, where)).find(({ name }) => name === `p${at}`);
      expect([rights, personGets(found?.rightsIn.production)]).toEqual([
        rights,
        isRead === "canary-variable" ? "values" : rights.includes("see") ? "names" : undefined,
      ]);
      expect(personGets(found?.rightsIn.staging)).toBeUndefined();
    }
  });

  test("is on the item's page by environment, development first: persons, keys, and below them who sees names", async () => {
    const { organization, where } = await place(w);
    const reach = { projects: ["web"], environments: ["production"] };
    for (const [name, rights] of Object.entries({ ana: ["see", "reveal"], ben: ["see"], carla: ["audit"] })) {
      await addPerson(w.admin, { name: name, organization: organization.slug, signIn: null });
      await grantRights(w.admin, name, { ...reach, rights });
    }
    const agent = { surfaces: ["mcp_server"], resources: ["projects", "variables", "requests"] };
    await w.key(organization, { name: "claude", ...agent });
    await w.key(organization, { name: "old-action", surfaces: ["ci_action"], resources: ["projects"] });
    await w.key(organization, { name: "deploy", environments: ["staging"] });
    await w.key(organization, { name: "files only", resources: ["files"] });
    const { id } = await w.key(organization, { name: "gone" });
    await revokeKey(w.admin, id);
    const visitor = await visitorOf(w);
    const { html } = await visitor.page(`/p/${where}/variables/item?name=TOKEN`);
    const said = html.split("<section>").flatMap((part) => {
      const [environment] = /(?<=class="env \w+">)\w+/.exec(part) ?? [];
      const [, text] = /<dt>(Who can read it.*)<div><dt>Who read it last/.exec(part) ?? [];
      return text === undefined ? [] : [`${environment}: ${text.replace(/<[^>]+>/g, "")}`];
    });
    expect(said).toEqual([
      "staging: Who can read itkey old-action; key deployOnly see its namekey claude",
      `production: Who can read itana; key old-actionOnly see its nameben; key claude`,
    ]);
    const access = (await visitor.page(`/p/${where}/access`)).html;
    const row = (name: string) =>
      new RegExp(`<bdi>${name}</bdi></a>.*?</th>(.*?)</tr>`).exec(access)?.[1]?.replace(/<time.*?<\/time>/g, "TIME");
    const cells = (name: string) =>
      row(name)
        ?.split("</td>")
        .map((cell) => cell.replace(/<[^>]+>/g, ""));
    expect(cells("claude")?.slice(1, 5)).toEqual(["○ names", "○ names", "○ names", ""]);
    expect(cells("old-action")?.slice(1, 5)).toEqual(["● values", "● values", "● values", "variables"]);
    expect(cells("deploy")?.slice(1, 5)).toEqual(["", "● values", "", "variables"]);
  });
});
