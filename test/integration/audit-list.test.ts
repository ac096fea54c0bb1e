import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Refused } from "../../src/core/refused.ts";
import {
  type AuditFilter,
  type AuditRecord,
  AuditTail,
  NamesFound,
  namesWith,
  showAudit,
} from "../../src/people/audit/audit.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { auditPages, listAudit } from "../support/audit.ts";
import { deleteOrganization, deleteProject, renameProject, setAccount } from "../support/plans.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

/** Two organizations with projects web and api. A key of each has read a variable of both and web's account. */
async function recorded(w: World) {
  const make = async () => {
    const organization = await w.organization();
    const [web, api] = [
      await w.project(organization, "web", {
        variables: { staging: { TOKEN: "1" } },
        accounts: [{ name: "ci", environments: ["staging"], values: { password: "2" } }],
      }),
      await w.project(organization, "api", { variables: { staging: { TOKEN: "3" } } }),
    ];
    const key = await w.key(organization, everything);
    for (const path of ["web/variables", "web/accounts", "api/variables"]) {
      const { status } = await w.client().ask(`/projects/${path}?environment=staging`, { key });
      expect(status).toBe(200);
    }
    return { organization, slug: organization.slug, web, api, key };
  };
  const [mine, other] = [await make(), await make()];
  /** What machines read that a filter finds, as `ORG/PROJECT ACTION`; or the refusal. */
  const find = async (filter: AuditFilter) => {
    try {
      const found = await listAudit(w.admin, filter);
      const exported: unknown[] = [];
      for await (const page of auditPages(w.admin, filter)) exported.push(...page);
      expect(exported).toEqual(found);
      return found
        .filter(({ actor }) => actor.type === "key")
        .map(({ organization, project, action }) => `${organization}/${project} ${action}`);
    } catch (error) {
      return `${(error as { kind?: string }).kind}: ${(error as Error).message}`;
    }
  };
  const { slug } = mine;
  const all = [`${slug}/web variables.read`, `${slug}/web accounts.read`, `${slug}/api variables.read`];
  return { mine, other, find, slug, all, web: all.slice(0, 2), api: all.slice(2) };
}

describeBoth("a filter of audit entries", (w) => {
  test("finds what it names and nothing else, alone or with others", async () => {
    const { mine, other, find, slug, all, web, api } = await recorded(w);
    expect(await find({ organization: slug })).toEqual(all);
    expect(await find({ keyId: mine.key.id })).toEqual(all);
    expect(await find({ project: `${slug}/web` })).toEqual(web);
    expect(await find({ project: "api", organization: slug })).toEqual(api);
    expect(await find({ project: `${slug}/web`, organization: slug, actions: ["accounts.read"] })).toEqual([
      `${slug}/web accounts.read`,
    ]);
    const values = await find({ organization: slug, actions: ["variables.read", "file.read"] });
    expect(values).toEqual([...web.slice(0, 1), ...api]);
    expect(await find({ organization: slug, keyId: other.key.id })).toEqual([]);
    expect(await find({ organization: slug, actions: ["secrets.read"] })).toEqual([]);
  });

  test("that names what never was is refused, whatever its form", async () => {
    const { mine, find, slug } = await recorded(w);
    expect(await find({ organization: "nobody" })).toStartWith("not_found: There is no organization");
    await addPerson(w.admin, { name: `of-${slug}`, organization: slug, signIn: null });
    expect(await find({ organization: "" })).toStartWith("not_found: There is no organization");
    expect(await find({ project: `${slug}/none` })).toStartWith("not_found: There is no project");
    expect(await find({ project: "nobody/web" })).toStartWith("not_found: There is no organization");
    // TOKEN and staging are texts of these segments, and name no project.
    expect(await find({ project: `${slug}/staging` })).toStartWith("not_found: There is no project");
    expect(await find({ keyId: mine.organization.id })).toStartWith("not_found: There is no key");
    expect(await find({ keyId: mine.key.id.slice(0, 7) })).toStartWith("not_found: There is no key");
    expect(await find({ project: "web" })).toStartWith("ambiguous: There are several organizations");
    expect(await find({ project: `${slug}/web`, organization: "other" })).toStartWith("not_found: ");
    expect(await find({ project: `${slug}/a/b` })).toStartWith("invalid: ");
  });

  test("by a part of a name finds each name that has it, in any case, and an id as a whole only", async () => {
    const organization = await w.organization();
    const names = ["Stripe 100%_mail", 'STRIPE \\ "key"', "Größe", "entries", "stripe", "],[", "a_b", "aXb"];
    const { where } = await w.project(organization, "parts");
    for (const name of names) await setAccount(w.admin, where, name, ["staging"], { password: "x" });
    const { id } = await w.key(organization, { name: "stripe" });
    const find = async (name: string) => {
      const filter = { organization: organization.slug, name };
      const found = await listAudit(w.admin, filter).catch(({ kind }: Refused) => kind);
      return typeof found === "string" ? found : found.flatMap((one) => one.names);
    };
    expect(await find("sTRIPE")).toEqual(["Stripe 100%_mail", 'STRIPE \\ "key"', "stripe"]);
    expect(await find("mail 100%")).toEqual(["Stripe 100%_mail"]);
    expect(await find("%_")).toEqual(["Stripe 100%_mail"]);
    expect(await find("_B")).toEqual(["a_b"]);
    expect(await find('"KEY"')).toEqual(['STRIPE \\ "key"']);
    expect(await find("\\")).toEqual(['STRIPE \\ "key"']);
    expect(await find("GRÖß")).toEqual(["Größe"]);
    expect(await find("ENTRIES")).toEqual(["entries"]);
    expect(await find("],[")).toEqual(["],["]);
    for (const name of ["names", '"names":[', '],"entries":[', '","', "curl", id.slice(0, 13)]) {
      expect([name, await find(name)]).toEqual([name, "not_found"]);
    }
    expect(await find(id)).toEqual([id]);
    expect(await find(" ")).toBe("invalid");
  });

  test("by a part of a name says which names it found, unless it is the only one", () => {
    const entries = [{ names: ["stripe", "STRIPE_KEY", "OTHER"] }, { names: ["STRIPE_KEY"] }];
    expect(new NamesFound("Stripe").add(entries).sentence).toBe('"Stripe" is in 2 names: STRIPE_KEY, stripe.');
    expect(new NamesFound("OTHER").add(entries).sentence).toBe("");
    expect(new NamesFound("none").add(entries).sentence).toBe("");
    const many = Array.from({ length: 1200 }, (_, at) => `N_${at}`);
    expect(new NamesFound("n_").add([{ names: many }]).sentence).toEndWith(" and 990 more.");
    expect(new NamesFound("n_").add([{ names: many }]).count).toBe("at least 1000 names");
  });

  test("by a part of a name finds what a search without the database's help does", async () => {
    const all = await listAudit(w.admin, { limit: 10_000 });
    const letters = fc.string({ unit: fc.constantFrom(...'aeinrstAEINRST_-.%\\"[]:,0 ß'), minLength: 1, maxLength: 3 });
    const part = letters.filter((text) => text.trim() !== "");
    await fc.assert(
      fc.asyncProperty(part, async (name) => {
        const fits = namesWith(name);
        const expected = all.filter(({ names }) => names.some(fits));
        const found = await listAudit(w.admin, { name, limit: 10_000 }).catch(({ kind }: Refused) => kind);
        expect(found).toEqual(expected.length === 0 ? "not_found" : expected);
      }),
      { numRuns: 200 },
    );
  });

  test("that names two organizations is refused", async () => {
    const { other, find, slug } = await recorded(w);
    expect(await find({ project: `${slug}/web`, organization: other.slug })).toStartWith("invalid: ");
  });

  test("finds a project that took another slug under the new one, and under the old one what was recorded so", async () => {
    const { mine, find, slug, web } = await recorded(w);
    await renameProject(w.admin, mine.web.where, { slug: "shop" });
    await w.client().ask("/projects/shop/variables?environment=staging", { key: mine.key });
    expect(await find({ project: `${slug}/shop` })).toEqual([...web, `${slug}/shop variables.read`]);
    expect(await find({ project: `${slug}/web` })).toEqual(web);
  });

  test("finds a deleted project by slug and id, and a deleted organization and its keys", async () => {
    const { mine, find, slug, all, web } = await recorded(w);
    await deleteProject(w.admin, mine.web.where);
    expect(await find({ project: mine.web.where })).toEqual(web);
    expect(await find({ project: `${slug}/${mine.web.id}` })).toEqual(web);
    await deleteOrganization(w.admin, slug);
    expect(await find({ project: mine.web.where })).toEqual(web);
    expect(await find({ organization: slug })).toEqual(all);
    expect(await find({ organization: mine.organization.id })).toEqual(all);
    expect(await find({ keyId: mine.key.id })).toEqual(all);
    expect(await find({ keyId: mine.key.id.slice(0, -1) })).toStartWith("not_found: There is no key");
  });

  test("is followed through a failover that gave other entries the numbers of lost ones", async () => {
    const [one, two] = [await w.organization(), await w.organization()];
    const tail = new AuditTail(w.admin, { actions: ["organization.plan"] }, () => {});
    await setPlan(w.admin, one.slug, "free");
    expect((await tail.newest(10)).with("")[0].map(({ organization }) => organization)).toEqual([one.slug]);
    const [head] = await w.sql`select last_seq - 1 as seq, mac from audit_segments where lane = 'commands'
      and last_seq < (select seq from audit_heads) order by last_seq desc limit 1`;
    expect(head).toBeDefined();
    await w.sql`delete from audit_segments where lane = 'commands' and first_seq = (select seq from audit_heads)`;
    await w.sql`update audit_heads set seq = seq - 1, mac = ${head?.["mac"]}`;
    w.clock.nowMs = Date.now() + 1000;
    await setPlan(w.admin, two.slug, "free");
    const news = async () => (await Array.fromAsync(tail.news())).flat().map(({ organization }) => organization);
    tail.goOnWith({ ...w.admin });
    expect(await news()).toEqual([two.slug]);
    expect(await news()).toEqual([]);
    w.clock.nowMs = undefined;
  });

  test("holds for entries that come later, even of what was deleted meanwhile", async () => {
    const { mine, other } = await recorded(w);
    const filter = { project: mine.web.where };
    const tail = new AuditTail(w.admin, filter, () => {});
    await tail.newest(100);
    const news = async () => {
      const found: string[] = [];
      for await (const page of tail.news()) found.push(...page.map(({ project, action }) => `${project} ${action}`));
      return found;
    };
    expect(await news()).toEqual([]);
    for (const { key } of [mine, other]) {
      await w.client().ask("/projects/api/variables?environment=staging", { key });
      await w.client().ask("/projects/web/variables?environment=staging", { key });
    }
    await deleteProject(w.admin, mine.web.where);
    expect(await news()).toEqual(["web variables.read", "web project.delete"]);
  });

  test("is not needed for one entry, by its name, the lane shortened or not, whatever other lanes SQL adds", async () => {
    const { mine } = await recorded(w);
    const [entry] = (await listAudit(w.admin, { actor: mine.key.name, keyId: mine.key.id })) as [AuditRecord];
    const show = (lane: string) => showAudit(w.admin, `${lane}:${entry.seq}`);
    const begun = entry.lane.slice(0, 13);
    expect([await show(entry.lane), await show(begun)]).toEqual([entry, entry]);
    const columns = "first_seq, last_seq, at, texts, entries, mac";
    const copy = `select ?, ${columns} from audit_segments where lane = ? and first_seq = ?`;
    const more = `${entry.lane}-more`;
    await w.run(`insert into audit_segments (lane, ${columns}) ${copy}`, [more, entry.lane, entry.seq]);
    expect(await show(entry.lane)).toEqual(entry);
    await expect(show(begun)).rejects.toMatchObject({ kind: "not_found" });
    await w.run("delete from audit_segments where lane = ?", [more]);
  });
});
