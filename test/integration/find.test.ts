import { beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { type Environment, environments } from "../../src/core/names.ts";
import { hasPart, partWithin } from "../../src/core/words/name-part.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { find, type Hit } from "../../src/people/projects/find.ts";
import { everyRight, type Holding, may, meets } from "../../src/serve/access/rights.ts";
import { counting } from "../support/counted.ts";
import { personsVisitor, visitorOf } from "../support/pages.ts";
import { grantRights, revokeRights } from "../support/plans.ts";
import { describeBoth, type Placed, type World } from "../support/world.ts";

/** A hit in one line: `acme/web TOKEN variable staging`. */
function lineOf({ organization, project, name, type, environments: places = [] }: Hit): string {
  return [[organization, project].filter(Boolean).join("/"), name, type, ...places].join(" ");
}

test("a part of a name is found in each name that has it, in any case, and in the JSON of that name", () => {
  const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(name, fc.nat(20), fc.nat(20), (whole, from, to) => {
      const part = [...whole].slice(Math.min(from, to), Math.max(from, to)).join("");
      expect(hasPart(part)(whole)).toBe(true);
      expect(partWithin(part)("").mayName(JSON.stringify([{ key: whole }]))).toBe(true);
    }),
  );
  expect(["ΟΔΟΣ", "οδος", "οδός"].filter(hasPart("δοσ"))).toEqual(["ΟΔΟΣ", "οδος"]);
  expect(["a.b", "axb", "a\\db", "A.B"].filter(hasPart("a.b"))).toEqual(["a.b", "A.B"]);
  const found = ["stripe_key", "KEY of Stripe", "strip", "key"].filter(hasPart(" key STRIPE\t"));
  expect(found).toEqual(["stripe_key", "KEY of Stripe"]);
});

describeBoth("a search", (w) => {
  test("finds names of every kind, keys, trusts, requests, persons and projects, the best first", async () => {
    const organization = await w.organization();
    const { slug } = organization;
    const web = await w.project(organization, "seek-web", {
      variables: { staging: { SEEK: "canary-1", A_SEEKER: "canary-2" }, production: { SEEK: "canary-3" } },
      accounts: [{ name: "seek mail", environments: ["staging"], values: { password: "canary-4" } }],
      files: [{ path: "tls/seek.pem", content: "canary-5", environments: ["production"] }],
    });
    await w.project(organization, "other", { variables: { staging: { VALUE: "seek-in-a-value" } } });
    const key = await w.key(organization, { name: "Seek CI", surfaces: ["mcp_server"], resources: ["requests"] });
    const asked = { environment: "staging", name: "SEEK_MORE", reason: "seek" } as const;
    const id = await w.request(organization.id, key.id, web, asked);
    await addPerson(w.admin, { name: "seeker", organization: slug, signIn: null });
    await grantRights(w.admin, "seeker", { rights: ["see"], projects: ["seek-web"], environments: null });
    const { found, count, warnings } = await find(w.admin, "sEEk", slug);
    expect(found.map(lineOf)).toEqual([
      `${slug}/seek-web SEEK variable staging production`,
      `${slug}/seek-web seek-web project`,
      `${slug}/seek-web seek mail account staging`,
      `${slug} Seek CI key`,
      `${slug}/seek-web SEEK_MORE request staging`,
      `${slug} seeker person`,
      `${slug}/seek-web A_SEEKER variable staging`,
      `${slug}/seek-web tls/seek.pem file production`,
    ]);
    expect([count, warnings]).toEqual([8, []]);
    expect(found.find(({ type }) => type === "key")).toMatchObject({ id: key.id, status: "active" });
    expect(found.find(({ type }) => type === "request")).toMatchObject({ id, status: "pending" });
    expect(found.find(({ type }) => type === "person")?.projects).toEqual([web.where]);
    // Whoever may give rights there finds them, and nobody else does.
    for (const right of ["see", "grant"] as const) {
      const holding = { organizationId: organization.id, projectId: null, environments: 7, rights: [right] };
      const some = await find({ ...w.admin, rights: [holding] }, "seeker");
      expect([right, some.found.some(({ type }) => type === "person")]).toEqual([right, right === "grant"]);
    }
    expect((await find(w.admin, "mail SEEK", slug)).found.map(({ name }) => name)).toEqual(["seek mail"]);
    for (const nothing of ["updatedAt", "canary", "version", '"', "in-a-value", "[{"]) {
      expect([nothing, (await find(w.admin, nothing, slug)).count]).toEqual([nothing, 0]);
    }
    expect(find(w.admin, " \t")).rejects.toMatchObject({ kind: "invalid" });
    expect(find(w.admin, "seek", "nobody")).rejects.toMatchObject({ kind: "not_found" });
  });

  test("takes words of the project and of the environment in any order, and one of the name", async () => {
    const organization = await w.organization();
    const { slug } = organization;
    const both = { staging: { STRIPE_KEY: "x", STRIPE_WEB_SECRET: "x", PORT: "x" }, production: { STRIPE_KEY: "x" } };
    await w.project(organization, "web", { variables: both });
    await w.project(organization, "billing", { variables: { staging: { STRIPE_KEY: "x" } } });
    const lines = async (part: string, lately: readonly string[] = []) =>
      (await find(w.admin, part, slug, { lately: lately.map((one) => `${slug}/${one}`) })).found.map(lineOf);
    const [web, billing] = [`${slug}/web STRIPE_KEY variable`, `${slug}/billing STRIPE_KEY variable`];
    const secret = `${slug}/web STRIPE_WEB_SECRET variable staging`;
    expect(await lines("stripe prod")).toEqual([`${web} production`]);
    for (const part of ["billing stripe", "stripe BILLING", `${slug}/billing stripe stag`]) {
      expect(await lines(part)).toEqual([`${billing} staging`]);
    }
    expect(await lines("web stripe")).toEqual([`${web} staging production`, secret]);
    expect(await lines("web prod")).toEqual([`${slug}/web web project`]);
    expect(await lines("bill prod")).toEqual([]);
    // A word of what is around alone finds no item.
    expect(await lines("billing")).toEqual([`${slug}/billing billing project`]);
    expect(await lines("stripe")).toEqual([`${billing} staging`, `${web} staging production`, secret]);
    expect(await lines("stripe", ["billing", "web"])).toEqual([
      `${web} staging production`,
      secret,
      `${billing} staging`,
    ]);
    expect(await lines("stripe_key", ["web", "billing"])).toEqual([`${billing} staging`, `${web} staging production`]);
  });

  test("looks for no part that is longer than any name, nor does the audit", async () => {
    await w.place();
    const visitor = await visitorOf(w);
    const paths = (part: string) => [`/find?q=${part}`, `/audit?name=${part}`];
    const pages = (part: string) => Promise.all(paths(part).map(async (path) => (await visitor.page(path)).html));
    const refused = "No name has more than 1,024 characters: give a part of one.";
    for (const html of await pages("a+".repeat(3000))) expect(html).toContain(refused);
    for (const html of await pages("a+".repeat(512))) expect(html).not.toContain(refused);
    expect(visitor.reported).toEqual([]);
  });

  test("shows 200 names, the best of them first, and counts the others", async () => {
    const organization = await w.organization();
    const names = Array.from({ length: 250 }, (_, at) => [`A_MANY_${at}`, "x"] as const);
    await w.project(organization, "a", { variables: { staging: Object.fromEntries(names) } });
    await w.project(organization, "z", { variables: { staging: { MANY: "x" } } });
    const { found, count } = await find(w.admin, "many", organization.slug);
    expect([found.length, count, found[0]?.project]).toEqual([200, 251, "z"]);
  });

  test("names each set that was changed, emptied or deleted in SQL, whatever the part", async () => {
    const variables = { staging: { LOST: "x" }, production: { KEPT: "x" } };
    const { organization, id, where } = await w.place({ variables });
    const is = "project_id = ? and kind = 'variables' and environment =";
    await w.run(`update sets set listing = '[]' where ${is} 'staging'`, [id]);
    await w.run(`delete from sets where ${is} 'development'`, [id]);
    for (const part of ["KEPT", "LOST"]) {
      const { found, warnings } = await find(w.admin, part, organization.slug);
      expect(found.map(({ name }) => name)).toEqual(part === "KEPT" ? ["KEPT"] : []);
      expect(warnings).toEqual([
        `The variables of ${where} in development were deleted or changed by other means than Keyhole.`,
        `The variables of ${where} in staging were deleted or changed by other means than Keyhole.`,
      ]);
    }
    const holding = { organizationId: organization.id, projectId: id, rights: ["see"] as const };
    const seen = await find({ ...w.admin, rights: [{ ...holding, environments: 4 }] }, "KEPT");
    expect(seen.warnings).toEqual([]);
  });
});

describeBoth("a search tells nobody a name that they may not see", (w, dialect) => {
  const projects: (Placed & { readonly organizationId: string })[] = [];
  /** What is there, each with whether somebody may see it. */
  const things: {
    readonly line: string;
    readonly isFor: (rights: readonly Holding[]) => readonly Environment[] | boolean;
  }[] = [];

  beforeAll(async () => {
    for (const _ of [0, 1]) {
      const organization = await w.organization();
      const { id: organizationId, slug } = organization;
      for (const name of ["one", "two"]) {
        const values = Object.fromEntries(environments.map((one) => [one, { SOUGHT: "x", [`SOUGHT_${one}`]: "x" }]));
        const project = await w.project(organization, name, { variables: values });
        projects.push({ ...project, organizationId });
        const place = { organizationId, projectId: project.id };
        const seen = (rights: readonly Holding[]) => environments.filter((one) => may(rights, "see", place, one));
        things.push({ line: `${slug}/${name} SOUGHT variable`, isFor: seen });
        for (const one of environments) {
          things.push({
            line: `${slug}/${name} SOUGHT_${one} variable`,
            isFor: (rights) => seen(rights).filter((other) => other === one),
          });
        }
        const key = await w.key(organization, {
          ...{ name: `sought ${name}`, projects: [name], environments: ["staging"] },
          ...{ surfaces: ["mcp_server"], resources: ["requests"] },
        });
        things.push({
          line: `${slug} sought ${name} key`,
          isFor: (rights) => (["see", "keys"] as const).some((right) => meets(rights, right, place, 2)),
        });
        const asked = { environment: "staging", name: "SOUGHT_TOO", reason: "x" } as const;
        await w.request(organizationId, key.id, project, asked);
        things.push({
          line: `${slug}/${name} SOUGHT_TOO request staging`,
          isFor: (rights) => (["see", "decide"] as const).some((right) => may(rights, right, place, "staging")),
        });
      }
      await addPerson(w.admin, { name: `sought-${slug}`, organization: slug, signIn: null });
      things.push({
        line: `${slug} sought-${slug} person`,
        isFor: (rights) => rights.some((one) => one.organizationId === organizationId && one.rights.includes("grant")),
      });
    }
  });

  test("in random rights: it finds and counts exactly what the model does", async () => {
    const holding: fc.Arbitrary<Holding> = fc
      .record({
        rights: fc.subarray([...everyRight], { minLength: 1 }),
        at: fc.nat(3),
        isAll: fc.boolean(),
        environments: fc.integer({ min: 1, max: 7 }),
      })
      .map(({ at, isAll, ...held }) => {
        const { organizationId, id } = projects[at] as Placed & { readonly organizationId: string };
        return { ...held, organizationId, projectId: isAll ? null : id };
      });
    const runs = dialect === "sqlite" ? 300 : 100;
    await fc.assert(
      fc.asyncProperty(fc.array(holding, { maxLength: 4 }), async (rights) => {
        const expected = things.flatMap(({ line, isFor }) => {
          const seen = isFor(rights);
          if (typeof seen === "boolean") return seen ? [line] : [];
          return seen.length > 0 ? [[line, ...seen].join(" ")] : [];
        });
        const { found, count, warnings } = await find({ ...w.admin, rights }, "sought");
        expect(found.map(lineOf).sort()).toEqual(expected.sort());
        expect([count, warnings]).toEqual([expected.length, []]);
      }),
      { numRuns: runs },
    );
  }, 120_000);

  test("and looks at no set beyond their rights: a damaged one is not noticed", async () => {
    const [mine, other] = projects as [Placed & { organizationId: string }, Placed];
    const rights: Holding[] = [
      { rights: ["see"], organizationId: mine.organizationId, projectId: mine.id, environments: 1 },
    ];
    const before = await find({ ...w.admin, rights }, "sought");
    await w.run("update sets set listing = 'no JSON' where project_id <> ? or environment <> 'development'", [mine.id]);
    expect(await find({ ...w.admin, rights }, "sought")).toEqual(before);
    expect((await find(w.admin, "sought")).warnings.join(" ")).toContain(other.where);
  });

  test("nor does the number of its statements tell how much is there", async () => {
    const organization = await w.organization();
    const rights: Holding[] = [];
    for (const slug of ["one", "two"]) {
      const { id: projectId } = await w.project(organization, slug);
      rights.push({ rights: ["see"], organizationId: organization.id, projectId, environments: 1 });
    }
    const statements = async () => {
      const { db } = w.admin.database;
      let count = 0;
      const counted = new Proxy(db, {
        get: (_, name) => {
          if (name === "select") count += 1;
          return Reflect.get(db, name) as unknown;
        },
      });
      await find({ ...w.admin, rights, database: { ...w.admin.database, db: counted } }, "sought");
      return count;
    };
    const before = await statements();
    for (const { projectId } of rights) {
      const isTheirs = "project_id = ? and environment = 'production'";
      await w.run(`update sets set listing = ? where ${isTheirs}`, ["x".repeat(1024 * 1024), projectId]);
    }
    expect(await statements()).toBe(before);
  });
});

describeBoth("the page that finds names", (w) => {
  const furnish = async (w: World) => {
    const { organization, project, where } = await w.place({ variables: { staging: { FOUND_IT: "canary-of-find" } } });
    const key = await w.key(organization, { name: "found key", projects: ["web"], environments: ["staging"] });
    return { organization, project, where, key };
  };

  test("leads to the page of each, and says what to do if there is none", async () => {
    const { where, key } = await furnish(w);
    const visitor = await visitorOf(w);
    const { status, html } = await visitor.page("/find?q=found");
    expect(status).toBe(200);
    expect(html).toContain(`href="/p/${where}/variables/item?name=FOUND_IT"`);
    expect(html).toContain(`href="/keys/${key.id}"`);
    expect(html).toContain('name="q" value="found"');
    expect((await visitor.page("/find?q=no+such+%3Cb%3E")).html).toContain("Try a shorter part");
    for (const path of ["/find", "/find?q=", "/find?q=+"]) {
      expect((await visitor.page(path)).html).toContain("Type a part of a name");
    }
  });

  test("tells whose a pasted key is, and puts no key into an address", async () => {
    const { organization, key } = await furnish(w);
    const visitor = await visitorOf(w);
    const paste = async (q: string, who = visitor) => (await who.submit("/find", { q })).headers.get("location") ?? "";
    expect(await paste("two words")).toBe("/find?q=two+words");
    const far = await visitor.page(await paste("x".repeat(20_000)));
    expect([far.status, far.html]).toEqual([400, expect.stringContaining("No name has more than 1,024 characters")]);
    expect((await paste("x".repeat(20_000))).length).toBeLessThan(2000);
    expect(await paste(` curl -H "Bearer ${key.key}" `)).toBe(`/keys/${key.id}`);
    const { html } = await visitor.page(`/keys/${key.id}`);
    expect(html).toContain("What you pasted is this key. It is active.");
    expect(html).toContain(">Revoke</button>");
    await revokeKey(w.admin, key.id);
    expect(await paste(key.key)).toBe(`/keys/${key.id}`);
    expect((await visitor.page(`/keys/${key.id}`)).html).toContain("It is revoked.");
    for (const text of [key.key.slice(0, 40), `${key.key.slice(0, -1)}${key.key.endsWith("0") ? "1" : "0"}`]) {
      expect(await paste(text)).toBe("/find");
      expect((await visitor.page("/find")).html).toContain("This looks like a key, and is none that you may see.");
    }
    // Of another organization's key, nobody is told more than of a text that is none.
    const other = await w.organization();
    const ben = { issuer: "https://id.example", subject: `ben-of-${organization.slug}` };
    await addPerson(w.admin, { name: `ben-${organization.slug}`, organization: other.slug, signIn: ben });
    await w.project(other, "api");
    const see = { rights: ["see" as const], projects: ["api"], environments: ["staging" as const] };
    await grantRights(w.admin, `ben-${organization.slug}`, see);
    expect(await paste(key.key, personsVisitor(w, ben))).toBe("/find");
  });

  test("and what is offered while one types is what it finds: the first eight, and how many there are", async () => {
    const names = Array.from({ length: 9 }, (_, at) => [`MANY_${at}`, "x"] as const);
    const { organization, where } = await w.place({ variables: { staging: Object.fromEntries(names) } });
    for (const _ of "12") await w.key(organization, { name: "one look" });
    const visitor = await visitorOf(w);
    const offered = async (q: string) => JSON.parse((await visitor.page(`/find/offers?q=${q}`)).html) as unknown;
    const about = `variable, ${where}`;
    const first = names.slice(0, 8).map(([name]) => ({ name, about, to: `/p/${where}/variables/item?name=${name}` }));
    expect(await offered("many")).toEqual({ offers: first, said: "9 names. Enter lists them." });
    const key = expect.stringMatching(new RegExp(`^key, active, id [0-9a-f-]{8,}…, ${organization.slug}$`)) as unknown;
    expect(await offered("one+look")).toMatchObject({ offers: [{ about: key }, { about: key }], said: "2 names." });
    expect(await offered("no+such")).toEqual({ offers: [], said: expect.any(String) });
  });

  test("and before the names, what people do there that is called so, with no statement more", async () => {
    const both = { staging: { STRIPE_KEY: "x", ONLY: "x" }, production: { STRIPE_KEY: "x" } };
    const { organization, where } = await w.place({ variables: both });
    const other = await w.project(organization, "api", { variables: { staging: { STRIPE_KEY: "x" } } });
    const { installation, take } = counting(w.installation);
    const visitor = await visitorOf({ ...w, installation });
    const offered = async (q: string) => {
      take();
      const { html } = await visitor.page(`/find/offers?${new URLSearchParams({ q, page: `/p/${where}/history` })}`);
      const { offers } = JSON.parse(html) as { offers: { name: string; about: string; to: string }[] };
      return { statements: take().statements, offers: offers.map(({ name, about }) => `${name} ${about}`.trim()) };
    };
    const { slug } = organization;
    await visitor.page(`/p/${other.where}/variables`);
    const inOrganization = await offered(`${slug} only`);
    expect(inOrganization.statements).toBeGreaterThan(0);
    expect(inOrganization.offers).toEqual([`ONLY variable, ${where}, staging`]);
    expect((await offered(`${slug} stripe`)).offers).toEqual([
      `STRIPE_KEY variable, ${where}`,
      `STRIPE_KEY variable, ${other.where}`,
    ]);
    for (const [q, deed] of [
      ["promote", `Promote in ${where}`],
      [`promote ${slug}/api`, `Promote in ${other.where}`],
      ["new var", `New variable in ${where}`],
      ["audit", "Search the audit"],
    ] as const) {
      const { offers, statements } = await offered(q);
      expect([q, offers[0], statements]).toEqual([q, deed, inOrganization.statements]);
    }
    // Each word costs time for each project.
    const wordy = async (count: number) => (await offered(`promote ${`${where} `.repeat(count - 1)}`)).offers.length;
    expect([await wordy(8), await wordy(9)]).toEqual([1, 0]);
    const { html } = await visitor.page(`/find?q=promote+${slug}/api`);
    expect(html).toContain(`href="/p/${other.where}/variables/promote"`);
    // What may only be read is not offered to be changed.
    const cas = { issuer: "https://id.example", subject: `cas-of-${slug}` };
    await addPerson(w.admin, { name: `cas-${slug}`, organization: slug, signIn: cas });
    await grantRights(w.admin, `cas-${slug}`, { projects: ["web"], environments: null, rights: ["see"] });
    const reader = personsVisitor(w, cas);
    for (const q of ["promote", "new+var", "audit", "access+api"]) {
      expect([q, (await reader.page(`/find/offers?q=${q}`)).html]).toEqual([q, expect.stringContaining('"offers":[]')]);
    }
    expect((await reader.page("/find/offers?q=access")).html).toContain(`/p/${where}/access`);
  });

  test("shows nothing any more of what somebody lost the right to, and is gone with the last right", async () => {
    const { organization } = await furnish(w);
    const { slug } = organization;
    const ana = { issuer: "https://id.example", subject: `ana-of-${slug}` };
    await addPerson(w.admin, { name: `ana-${slug}`, organization: slug, signIn: ana });
    const reach = { projects: ["web"], environments: ["staging"] };
    await grantRights(w.admin, `ana-${slug}`, { ...reach, rights: ["see", "audit", "reveal"] });
    const visitor = personsVisitor(w, ana);
    const pages = ["/find?q=found", "/find/offers?q=found"];
    for (const page of pages) expect((await visitor.page(page)).html).toContain("FOUND_IT");
    await visitor.page(`/p/${slug}/web/variables`);
    expect((await visitor.page("/find/offers")).html).toContain(`"${slug}/web"`);
    await grantRights(w.admin, `ana-${slug}`, { ...reach, rights: ["decide"] });
    await revokeRights(w.admin, `ana-${slug}`, { ...reach, rights: ["see"] });
    for (const page of [...pages, "/find/offers"]) {
      const { status, html } = await visitor.page(page);
      expect([page, status, new RegExp(`FOUND_IT|found key|${slug}/web`).test(html)]).toEqual([page, 200, false]);
    }
    await revokeRights(w.admin, `ana-${slug}`, { ...reach, rights: ["decide"] });
    for (const page of pages) {
      const { status, html } = await visitor.page(page);
      expect([page, status, html.includes("/find")]).toEqual([page, 404, false]);
    }
  });
});
