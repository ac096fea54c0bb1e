/** The list of persons, and the page that gives and takes rights: what it would do, then exactly that. */
import { expect, test } from "bun:test";
import { addPerson, showPerson } from "../../src/people/persons/persons.ts";
import { clockOf } from "../../src/store/database.ts";
import { listAudit } from "../support/audit.ts";
import { type Fields, personsVisitor, tableOf, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, type World } from "../support/world.ts";

const issuer = "https://id.example";
const hourMs = 3_600_000;

/** An organization with somebody who may give rights in `web`, somebody who gets them, and somebody who only sees. */
async function furnish(w: World) {
  const { organization, where } = await w.place();
  const { slug } = organization;
  await w.project(organization, "api");
  const [lead, ben, eve] = ["lead", "ben", "eve"].map((one) => `${one}-${slug}`) as [string, string, string];
  for (const one of [lead, ben, eve]) {
    await addPerson(w.admin, { name: one, organization: slug, signIn: { issuer, subject: one } });
  }
  const inWeb = { projects: ["web"], environments: null };
  await grantRights(w.admin, lead, { rights: ["see", "write", "grant"], ...inWeb });
  await grantRights(w.admin, eve, { rights: ["see"], ...inWeb });
  const as = (subject: string) => personsVisitor(w, { issuer, subject });
  return { slug, where, lead, ben, eve, as };
}

type Asked = Readonly<Record<"deed", string>> & Fields;

/** The page that shows what a change would do, the form on it, and the text of both. */
async function shownTo(visitor: Visitor, name: string, asked: Asked) {
  const pairs = Object.entries(asked).flatMap(([field, values]) =>
    [values].flat().map((one): [string, string] => [field, String(one)]),
  );
  const { status, html } = await visitor.page(`/persons/${name}?${new URLSearchParams(pairs)}`);
  const then = html.slice(html.indexOf('<div id="then">'));
  const hidden = [...then.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)];
  const named = Map.groupBy(hidden, ([, field = ""]) => field);
  const fields = Object.fromEntries([...named].map(([field, all]) => [field, all.map(([, , value = ""]) => value)]));
  const text = then.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");
  const send = (more: Fields = {}) => visitor.send(`/persons/${name}/rights`, { ...fields, ...more });
  return { status, text, fields, send, isForm: then.includes(`action="/persons/${name}/rights"`) };
}

const rightsOf = async (w: World, name: string) =>
  (await showPerson(w.admin, name)).rights.map(({ rights, environments, by }) => [
    rights.join(),
    environments.join(),
    by,
  ]);

describeBoth("the page of people", (w) => {
  test("lists the persons with what each can do, for whoever may give rights", async () => {
    const { slug, where, lead, eve, as } = await furnish(w);
    const caption = /^The persons and their rights/;
    const of = async (visitor: Visitor) => tableOf((await visitor.page("/persons")).html, caption) ?? [];
    const seen = { Name: eve, Organization: slug, Rights: `${where} : ○ names, everywhere` };
    for (const visitor of [await visitorOf(w), as(lead)]) {
      expect((await of(visitor)).find(({ Name }) => Name === eve)).toMatchObject(seen);
      expect((await visitor.page("/")).html).toContain('href="/persons"');
    }
    expect((await of(as(lead))).map(({ Name }) => Name).sort()).toEqual([`ben-${slug}`, eve, lead]);
    expect([(await as(eve).page("/persons")).status, (await as(eve).page("/")).html.includes('"/persons"')]).toEqual([
      404,
      false,
    ]);
  });

  test("says rights once, in words, with the groups that may give more; so does the entry of the audit", async () => {
    const { slug, where, ben } = await furnish(w);
    const leads = `leads-${slug}`;
    const visitor = await visitorOf(w);
    const textOf = async (path: string) => (await visitor.page(path)).html.replace(/<[^>]+>/g, "");
    expect(await textOf(`/persons/${ben}`)).toContain(`group. ${slug} has no groups.`);
    await addPerson(w.admin, { name: leads, organization: slug, signIn: { issuer: null, group: leads } });
    expect(await textOf(`/persons/${ben}`)).not.toContain(`${leads} ·`);
    await grantRights(w.admin, leads, { rights: ["see", "audit"], projects: null, environments: null });
    const reads = { rights: ["see", "reveal"], environments: null };
    await grantRights(w.admin, ben, { ...reads, projects: ["web", "api"] });
    await grantRights(w.admin, ben, { ...reads, rights: ["write"], projects: ["web"], environments: ["staging"] });
    const words = `${slug}/api: ● reads, everywhere`;
    const page = await textOf(`/persons/${ben}`);
    expect(page).toContain(
      "Rights that come from groups are not listed: the provider says at sign-in who is in a group.",
    );
    expect(page).toContain(`group. ${slug} has these:`);
    expect(page).toContain(`${leads} · all projects of ${slug}: ○ names, audit, everywhere`);
    expect(page.split("How their rights changed")[0]?.match(new RegExp(words, "g"))).toHaveLength(1);
    expect(page).toContain(`${where}: ● reads and writes in staging`);
    expect(page).toContain(`added ${slug}/web, ${slug}/api: ● reads, everywhere`);
    const [entry] = await listAudit(w.admin, { actions: ["people.write"], limit: 2 });
    const entries = [entry?.lane, entry?.seq].join(":");
    expect(await textOf(`/audit/entry/${entries}`)).toContain(
      `Changedadded ${slug}/web, ${slug}/api: ● reads, everywhereEntry`,
    );
    // Who sees for good and reveals for a while reads for that while, on their page and where the project says who can.
    const until = Date.parse("2100-01-02T03:04:05Z");
    await grantRights(w.admin, leads, {
      rights: ["reveal"],
      projects: ["web"],
      environments: ["staging"],
      endFrom: () => until,
    });
    for (const path of [`/persons/${leads}`, `/p/${where}/access`]) {
      const text = await textOf(path);
      expect([path, text.includes("● reads"), text.includes("reveal until")]).toEqual([path, true, false]);
      expect(text).toMatch(/● reads(?: in staging)? until 2100-01-02T03:04:05Z/);
    }
    // A group is in no group.
    expect(await textOf(`/persons/${leads}`)).not.toContain("Rights that come from groups");
  });

  test("says what somebody could do then, and gives exactly that, for hours and on record", async () => {
    const { where, lead, ben, as } = await furnish(w);
    const visitor = as(lead);
    const asked = { deed: "give", place: where, lasts: "for 4 hours" };
    const reach = { rights: ["see", "write"], environments: ["staging", "production"] };
    const shown = await shownTo(visitor, ben, { ...asked, ...reach });
    const lines = new RegExp(
      `${ben} could then: ${where} : ○ names, write in staging production until 20\\S+ , given by ${lead} `,
    );
    expect(shown.text).toMatch(lines);
    const before = await stored(w);
    const unsure = await shown.send();
    expect([unsure.status, unsure.field, await stored(w)]).toEqual([400, "again", before]);
    const earliest = await clockOf(w.admin.database);
    const done = await shown.send({ again: ben });
    expect(done).toEqual({ status: 200, to: `/persons/${ben}` });
    expect((await visitor.page(`/persons/${ben}`)).html).toContain(
      `Given to ${ben}: ○ names, write in ${where}, staging, production, for 4 hours.`,
    );
    expect(await rightsOf(w, ben)).toEqual([["see,write", "staging,production", lead]]);
    const began = ((await showPerson(w.admin, ben)).rights[0]?.until ?? 0) - 4 * hourMs;
    expect([began >= earliest, began <= (await clockOf(w.admin.database))]).toEqual([true, true]);
    const [entry] = await listAudit(w.admin, { actions: ["people.write"], limit: 1 });
    expect(entry).toMatchObject({ actor: { name: lead, from: { issuer } }, names: [expect.any(String), ben] });
    // Without the script, too.
    const taking = await shownTo(visitor, ben, { ...asked, ...reach, deed: "take", environments: "staging" });
    const plain = await visitor.submit(`/persons/${ben}/rights`, taking.fields);
    expect([plain.status, plain.headers.get("location")]).toEqual([303, `/persons/${ben}`]);
    expect(await rightsOf(w, ben)).toEqual([["see,write", "production", lead]]);
  });

  test("gives nothing if the list has changed since, and takes all the same", async () => {
    const { where, lead, ben, eve, as } = await furnish(w);
    await grantRights(w.admin, ben, { rights: ["see"], projects: ["web"], environments: ["staging"] });
    const asked = { deed: "give", rights: "write", place: where, environments: "staging", lasts: "for good" };
    const giving = await shownTo(as(lead), ben, asked);
    const taking = await shownTo(as(lead), ben, { ...asked, deed: "take", rights: "see" });
    await grantRights(w.admin, eve, { rights: ["write"], projects: ["web"], environments: null });
    const refused = await giving.send();
    expect(refused).toMatchObject({
      status: 409,
      error: expect.stringContaining("Nothing was done: look at it again"),
    });
    expect((await taking.send()).status).toBe(200);
    expect(await rightsOf(w, ben)).toEqual([]);
  });

  test("refuses what is not theirs to give, and has the filled-in command for somebody else", async () => {
    const { slug, where, lead, ben, eve, as } = await furnish(w);
    const asked = { deed: "give", rights: "reveal", place: where, environments: "staging", lasts: "for 1 hour" };
    const beyond = await shownTo(as(lead), ben, asked);
    const command = `keyhole person grant ${ben} reveal --project ${where} --env staging --until 1h`;
    expect([beyond.text.includes("You do not have the right to reveal there"), beyond.isForm]).toEqual([true, false]);
    expect(beyond.text).toContain(command);
    const more = await shownTo(as(lead), ben, { ...asked, rights: "see", place: slug });
    expect([more.text.includes(`--org ${slug} --all-projects --env staging`), more.isForm]).toEqual([true, false]);
    const none = await shownTo(as(lead), ben, { ...asked, rights: [] });
    expect([none.text.includes("Choose at least one right"), none.isForm]).toEqual([true, false]);
    // Who may not give any sees the persons that their places have.
    const ask = await shownTo(as(eve), lead, { ...asked, rights: "write" });
    expect([ask.status, ask.isForm, ask.text.includes(`person grant ${lead} write --project ${where}`)]).toEqual([
      200,
      false,
      true,
    ]);
    const before = await stored(w);
    const fields = { ...asked, rights: "write", person: lead, people: 1, project: "x" };
    expect((await as(eve).send(`/persons/${lead}/rights`, fields)).status).toBe(404);
    expect((await as(lead).send(`/persons/${ben}/rights`, { deed: "remove", again: ben })).status).toBe(403);
    expect(await stored(w)).toBe(before);
  });

  test("whose page is not there gives the command to ask for, the same whether there is anything", async () => {
    const { slug, where, lead, eve, as } = await furnish(w);
    const command = (project: string, rights = "see") =>
      `keyhole person grant ${eve} ${rights} --project ${project} --all-environments --until 4h`;
    const asked = async (visitor: Visitor, path: string) => {
      const { status, html } = await visitor.page(path);
      return [status, /<pre id="ask">(.*?)<\/pre>/s.exec(html)?.[1]];
    };
    expect(await asked(as(eve), `/p/${slug}/api/variables`)).toEqual([404, command(`${slug}/api`)]);
    expect(await asked(as(eve), `/p/${slug}/none/variables`)).toEqual([404, command(`${slug}/none`)]);
    expect(await asked(as(eve), "/audit")).toEqual([404, command("ORG/PROJECT", "see,audit")]);
    expect(await asked(as(eve), `/p/${where}/variables`)).toEqual([200, undefined]);
    expect(await asked(await visitorOf(w), `/p/${slug}/none/variables`)).toEqual([404, undefined]);
    // Whoever has rights by a group alone is added first: the command must not give the whole group more.
    const leads = `leads-${slug}`;
    await addPerson(w.admin, { name: leads, organization: slug, signIn: { issuer: null, group: leads } });
    await grantRights(w.admin, leads, { rights: ["see"], projects: ["web"], environments: null });
    const ofGroup = personsVisitor(w, { issuer, subject: "gil", groups: [leads] });
    expect(await asked(ofGroup, `/p/${slug}/api/history`)).toEqual([
      404,
      `keyhole person add NAME --issuer '${issuer}' --subject 'gil'\n${command(`${slug}/api`).replace(eve, "NAME")}`,
    ]);
    // No right would help: a draft is gone, or they have the rights wherever they have any.
    const all = `all-${slug}`;
    await addPerson(w.admin, { name: all, organization: slug, signIn: { issuer, subject: all } });
    await grantRights(w.admin, all, { rights: ["see", "write"], projects: null, environments: null });
    expect(await asked(as(all), `/p/${slug}/none/variables/paste/gone`)).toEqual([404, undefined]);
    expect(await asked(as(all), `/p/${slug}/none/variables`)).toEqual([404, undefined]);
    expect(await asked(as(lead), `/p/${where}/variables/paste/gone`)).toEqual([404, undefined]);
    expect(await asked(as(all), `/p/${slug}/none/variables/promote`)).toEqual([
      404,
      command(`${slug}/none`, "see,reveal").replace(eve, all),
    ]);
    const pages = await Promise.all(["api", "none"].map((one) => as(eve).page(`/p/${slug}/${one}/variables`)));
    expect(pages[0]?.html.replaceAll("/api", "/none")).toBe(pages[1]?.html ?? "");
  });

  test("nothing leads to a page that takes a right which somebody has in another project, and its 404 asks for all", async () => {
    const { where, lead, as } = await furnish(w);
    await grantRights(w.admin, lead, { rights: ["see", "reveal"], projects: ["api"], environments: null });
    const pages = [`/p/${where}/variables/text`, `/p/${where}/variables/promote`];
    const led = async (visitor: Visitor) => {
      const { html } = await visitor.page(`/p/${where}/variables`);
      const queries = ["edit", "promote"].map(
        (q) => `/find/offers?${new URLSearchParams({ q, page: pages[0] ?? "" })}`,
      );
      const offers = await Promise.all(["/find/offers", ...queries].map(async (one) => (await visitor.page(one)).html));
      return [html, ...offers].map((text) => pages.filter((page) => text.includes(`"${page}"`)).length);
    };
    expect(await led(await visitorOf(w))).toEqual([2, expect.any(Number), 1, 1]);
    expect(await led(as(lead))).toEqual([0, 0, 0, 0]);
    const asked = await Promise.all(pages.map((page) => as(lead).page(page)));
    expect(asked.map(({ html }) => / (see\S+) --project/.exec(html)?.[1])).toEqual(["see,reveal,write", "see,reveal"]);
  });

  test("names no groups of an organization that is not known", async () => {
    const { slug, where, lead, as } = await furnish(w);
    for (const [name, of] of [
      ["guest", "subject"],
      ["guests", "group"],
    ] as const) {
      const { organization } = await w.place();
      const signIn = { issuer, [of]: `${name}-${slug}` };
      await addPerson(w.admin, { name: `${name}-${slug}`, organization: organization.slug, signIn } as never);
      await grantRights(w.admin, `${name}-${slug}`, { rights: ["see"], projects: [where], environments: null });
    }
    const { status, html } = await as(lead).page(`/persons/guest-${slug}`);
    expect([status, html.includes("has these:"), html.includes(`guests-${slug}`)]).toEqual([200, false, false]);
  });

  test("takes somebody's last right from whoever is then shown to nobody there, and offers no list with a gap", async () => {
    const { slug, where, ben, as } = await furnish(w);
    const guest = `guest-${slug}`;
    await addPerson(w.admin, { name: guest, organization: (await w.place()).organization.slug, signIn: null });
    await grantRights(w.admin, guest, { rights: ["write"], projects: [where], environments: ["staging"] });
    const giver = `mia-${slug}`;
    await addPerson(w.admin, { name: giver, organization: slug, signIn: { issuer, subject: giver } });
    await grantRights(w.admin, giver, { rights: ["write", "grant"], projects: ["web"], environments: null });
    const visitor = as(giver);
    expect((await visitor.page(`/persons/${ben}`)).html).toMatch(/<input [^>]*name="place"/);
    const asked = { deed: "take", rights: "write", place: where, environments: "staging", lasts: "for good" };
    const shown = await shownTo(visitor, guest, asked);
    expect(await shown.send()).toEqual({ status: 200, to: "/persons" });
    expect(await rightsOf(w, guest)).toEqual([]);
  });

  /** Somebody who gave `ben` a right, and is about to lose the right to give. */
  const given = async () => {
    const place = await furnish(w);
    const { where, lead, ben, as } = place;
    const asked = { rights: "see", place: where, environments: "staging", lasts: "for good" };
    expect((await (await shownTo(as(lead), ben, { deed: "give", ...asked })).send()).status).toBe(200);
    expect(await rightsOf(w, ben)).toEqual([["see", "staging", lead]]);
    return { ...place, visitor: await visitorOf(w), losing: { ...asked, deed: "take", rights: "grant" } };
  };
  const words = { keep: "leave it, as given by you", take: "take it away, too" };

  test.each([
    ["leaves it", words.keep, [["see", "staging", null]]],
    ["takes it away", words.take, []],
  ])("names what somebody gave who loses rights or is removed, and %s", async (_, choice, left) => {
    const { where, lead, ben, visitor, losing } = await given();
    const shown = await shownTo(visitor, lead, losing);
    expect(shown.text).toContain(`${lead} gave rights that nobody would answer for: ${ben} see ${where} staging`);
    for (const one of Object.values(words)) expect(shown.text).toContain(one);
    const before = await stored(w);
    expect([(await shown.send()).status, await stored(w)]).toEqual([400, before]);
    expect((await shown.send({ given: choice })).status).toBe(200);
    expect(await rightsOf(w, ben)).toEqual(left);
    expect(await rightsOf(w, lead)).toContainEqual(["see,write", "development,staging,production", null]);

    const again = await given();
    const leaving = await shownTo(again.visitor, again.lead, { deed: "remove" });
    expect(leaving.text).toContain(`${again.lead} gave rights that nobody would answer for`);
    expect((await leaving.send({ given: choice })).field).toBe("again");
    expect(await leaving.send({ given: choice, again: again.lead })).toEqual({ status: 200, to: "/persons" });
    expect(await rightsOf(w, again.ben)).toEqual(left);
    await expect(showPerson(w.admin, again.lead)).rejects.toMatchObject({ kind: "not_found" });
  });

  test("leaves what somebody gave only as it was shown", async () => {
    const { where, lead, ben, eve, visitor, as, losing } = await given();
    const shown = await shownTo(visitor, lead, losing);
    const asked = { rights: "write", place: where, environments: "staging", lasts: "for good" };
    expect((await (await shownTo(as(lead), eve, { deed: "give", ...asked })).send()).status).toBe(200);
    expect((await shown.send({ given: words.keep })).status).toBe(409);
    expect((await shown.send({ given: words.take })).status).toBe(200);
    expect([await rightsOf(w, ben), await rightsOf(w, eve)]).toEqual([
      [],
      [["see", "development,staging,production", null]],
    ]);
  });
});
