/** The audit's pages: which entries a filter finds, what a wrong one says, and what was done to the journal. */
import { expect, test } from "bun:test";
import { jsonLine } from "../../src/core/visible.ts";
import { auditActions } from "../../src/kinds/people.ts";
import { auditKeys } from "../../src/people/audit/audit-proof.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { parseVerifier, type Verifier } from "../../src/record/note.ts";
import { auditPages } from "../support/audit.ts";
import { checkProof } from "../support/check-proof.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notarize } from "../support/notarize.ts";
import { personsVisitor, tableOf, visitorOf } from "../support/pages.ts";
import { grantRights, setVariables } from "../support/plans.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

/** A project with these many changes of its variables, each an entry. */
async function place(w: World, changes = 2) {
  const { where } = await w.place();
  for (let at = 0; at < changes; at += 1) {
    await setVariables(w.admin, where, "staging", [{ name: `NAME_${at}`, value: "x" }]);
  }
  const project = encodeURIComponent(where);
  return { where, project, visitor: await visitorOf(w) };
}

const entriesOf = (html: string) => [...html.matchAll(/href="\/audit\/entry\/([^"]+)"/g)].map(([, name]) => name);
const refusalIn = (html: string) => /<p role="alert" class="refusal">(.*?)<\/p>/s.exec(html)?.[1];

describeBoth("the audit", (w) => {
  test("says until when it is proved, and an entry leads to its proof", async () => {
    const { project, visitor } = await place(w, 1);
    const [name = ""] = entriesOf((await visitor.page(`/audit?project=${project}`)).html);
    const early = await visitor.page(`/audit/proof/${name}`);
    expect([early.status, early.html.includes("in no signed head yet")]).toEqual([503, true]);
    expect((await visitor.page(`/audit/entry/${name}`)).html).toContain("It can be proved when the notary");
    await notarize(w);
    expect((await visitor.page("/audit")).html).toContain("Proved until ");
    const entry = (await visitor.page(`/audit/entry/${name}`)).html;
    expect(entry).toContain(`href="/audit/proof/${name}"`);
    const { status, html } = await visitor.page(`/audit/proof/${name}`);
    expect(status).toBe(200);
    const log = (await auditKeys(w.admin)).map((key) => parseVerifier(key) as Verifier);
    expect(checkProof(JSON.parse(html), log)).toHaveProperty("receipt", decodeURIComponent(name));
    expect((await visitor.page("/audit/proof/never:1")).status).toBe(404);
  });

  test("shows what the filter finds, newest first, and each entry whole", async () => {
    const { project, visitor } = await place(w);
    const { html } = await visitor.page(`/audit?project=${project}&action=variables.write`);
    expect(html.indexOf("NAME_1")).toBeLessThan(html.indexOf("NAME_0"));
    expect(entriesOf(html)).toHaveLength(2);
    const one = (await visitor.page(`/audit?project=${project}&name=NAME_0&environment=staging`)).html;
    const [name] = entriesOf(one);
    expect(entriesOf(one)).toHaveLength(1);
    expect((await visitor.page(`/audit/entry/${name}`)).html).toContain("NAME_0");
    expect((await visitor.page("/audit/entry/never:1")).status).toBe(404);
  });

  test("finds an account of a machine without its host, and calls keys by their names", async () => {
    const { organization, project, where } = await w.place({ variables: { staging: { A: "1" } } });
    const { id } = await w.key(organization, { name: "backup-job" });
    const visitor = await visitorOf(w);
    await (await visitorOf(w, "ben@laptop")).send(`/p/${where}/variables/reveal`, {
      name: "A",
      environment: "staging",
      project: project.id,
    });
    const of = (name: string) => visitor.page(`/audit?project=${encodeURIComponent(where)}&name=${name}`);
    for (const actor of ["ben", "ben@laptop"]) expect((await of(actor)).html).toContain("<bdi>ben@laptop</bdi>");
    for (const actor of ["be", "laptop", "ben@lap"]) expect((await of(actor)).html).not.toContain("<bdi>ben@laptop");
    const { html } = await visitor.page("/audit?action=key.create");
    const [entry] = entriesOf(html);
    for (const page of [html, (await visitor.page(`/audit/entry/${entry}`)).html]) {
      expect([page.includes("<bdi>backup-job</bdi>"), page.includes(`<bdi>${id}</bdi>`)]).toEqual([true, false]);
      expect(page).toContain('<span title="key.create">created the key</span>');
    }
  });

  test("one field finds a part of a name, a person, and what a key did or what was done to it", async () => {
    const { organization, where, key } = await w.place({
      variables: { staging: { BENCH: "1", OTHER: "2" } },
      key: { ...everything, name: "backup-job" },
    });
    expect((await w.ask(`/projects/${where.split("/")[1]}/variables?environment=staging`, { key })).status).toBe(200);
    const value = { name: "OTHER", environment: "staging" };
    await (await visitorOf(w, "ben@laptop")).send(`/p/${where}/variables/reveal`, value);
    const visitor = await visitorOf(w);
    const found = async (text: string, more = "") => {
      const query = `project=${encodeURIComponent(where)}&name=${encodeURIComponent(text)}${more}`;
      const { html } = await visitor.page(`/audit?${more === "" ? query : `name=${encodeURIComponent(text)}${more}`}`);
      return [...html.matchAll(/<span title="([a-z_.]+)">/g)].map(([, action]) => action);
    };
    expect(await found("bench")).toEqual(["variables.read", "variables.write"]);
    expect(await found("ben")).toEqual(["variables.reveal", "variables.read", "variables.write"]);
    expect(await found("ben@laptop")).toEqual(["variables.reveal"]);
    expect(await found("backup-job")).toEqual(["variables.read"]);
    expect(await found("backup-job", "&action=key.create")).toContain("key.create");
    expect(await found(key.id, "&action=key.create")).toEqual(["key.create"]);
    const { html } = await visitor.page(`/audit?project=${encodeURIComponent(where)}&name=backup-job`);
    expect(html).toContain('<input id="name" name="name" value="backup-job"');
    // Who did it is what was found, so all that they read is listed.
    expect(tableOf(html, /^Who, what/)).toMatchObject([{ Names: "BENCH , OTHER", Times: "1" }]);
    expect(await found("ΣΊΓΜΑ")).toEqual([]);
    // A part of who did it finds nothing, although one segment holds both entries and one of them has it in a name.
    const ben = await visitorOf(w, "ben@laptop");
    const shown = await ben.hidden(`/p/${where}/variables`, `/p/${where}/variables/edit`);
    const typed = { "value.staging.OVERLAP": "3", "value.production.ELSE": "4", again: where };
    expect(await ben.send(`/p/${where}/variables/edit`, { ...shown, ...typed })).toHaveProperty("to");
    expect([await found("lap"), await found("else")]).toEqual([["variables.write"], ["variables.write"]]);
    const issuer = "https://id.example";
    await addPerson(w.admin, { name: "eve", organization: organization.slug, signIn: { issuer, subject: "eve" } });
    await grantRights(w.admin, "eve", { rights: ["audit"], projects: ["web"], environments: ["staging"] });
    const eve = personsVisitor(w, { issuer, subject: "eve" });
    expect(entriesOf((await eve.page("/audit?name=backup-job")).html)).toHaveLength(1);
    expect(refusalIn((await eve.page("/audit?name=nobody")).html)).toBe(
      "No entry that you may read has &quot;nobody&quot; in a name, or is by it.",
    );
    // The id of a key of another organization tells nobody its name.
    const { key: foreign } = await w.place({ key: { ...everything, name: "foreign-job" } });
    for (const field of ["key", "person", "item"]) {
      expect((await eve.page(`/audit?${field}=${foreign.id}`)).html).not.toContain("foreign-job");
    }
  });

  test("is exact by a link: a person, an account, a key, and a variable of one name are told apart", async () => {
    const { organization, project, where, key } = await w.place({ key: { ...everything, name: "ana" } });
    const issuer = "https://id.example";
    await addPerson(w.admin, { name: "ana", organization: organization.slug, signIn: { issuer, subject: "ana" } });
    await grantRights(w.admin, "ana", { rights: ["see", "reveal"], projects: [where], environments: ["staging"] });
    await setVariables(w.admin, where, "staging", [{ name: "ana", value: "1" }]);
    await setVariables(w.admin, where, "staging", [{ name: "anagram", value: "2" }]);
    expect((await w.ask(`/projects/${project.slug}/variables?environment=staging`, { key })).status).toBe(200);
    const [account, visitor] = [await visitorOf(w, "ana"), await visitorOf(w)];
    const path = `/p/${where}/variables/reveal`;
    for (const by of [personsVisitor(w, { issuer, subject: "ana" }), account])
      expect(await by.send(path, { name: "anagram", environment: "staging" })).toMatchObject({ status: 200 });
    const linksOn = async (path: string, words: RegExp) => {
      const { html } = await visitor.page(path);
      const links = [...html.matchAll(/<a href="(\/audit\?[^"]*)"[^>]*>([^<]*)</g)];
      return links.flatMap(([, to = "", said = ""]) => (words.test(said) ? [to.replaceAll("&amp;", "&")] : []));
    };
    const foundBy = async (links: readonly string[]) => {
      const found = await Array.fromAsync(links, async (link) => (await visitor.page(link)).html);
      return found.map((html) => [...html.matchAll(/<span title="([a-z_.]+)">/g)].map(([, action]) => action));
    };
    expect(await foundBy(await linksOn("/persons/ana", /audit$/))).toEqual([
      ["variables.reveal"],
      ["variables.reveal"],
    ]);
    expect(await foundBy(await linksOn(`/keys/${key.id}`, /audit$/))).toEqual([["variables.read", "key.create"]]);
    expect(await foundBy(await linksOn(`/p/${where}/variables/item?name=ana`, /audit$/))).toEqual([
      ["variables.read", "variables.write"],
    ]);
    // The counts of who did what lead to one of them each.
    const counted = await linksOn(`/audit?project=${encodeURIComponent(where)}&action=all+reads`, /^1$/);
    const all = await foundBy(counted);
    expect([all.length, all.flat().sort()]).toEqual([3, ["variables.read", "variables.reveal", "variables.reveal"]]);
  });

  test("says in words what was done, and keeps the code in the address; and whom a link has chosen", async () => {
    const { where, key } = await w.place({ variables: { staging: { A: "1" } }, key: everything });
    const visitor = await visitorOf(w);
    await visitor.send(`/p/${where}/variables/reveal`, { name: "A", environment: "staging" });
    const { html } = await visitor.page(`/audit?project=${encodeURIComponent(where)}&action=variables.reveal`);
    expect(html).toContain('<option value="variables.reveal" title="variables.reveal" selected>saw variables</option>');
    expect(html).toContain('<span title="variables.reveal">saw</span>');
    const options = [...html.matchAll(/<option value="([a-z_.-]+)" title="\1"[^>]*>([^<]+)</g)];
    expect(options).toHaveLength(auditActions.length);
    expect(new Set(options.map(([, , words]) => words)).size).toBe(auditActions.length);
    expect(options.filter(([, , words]) => /[{}|]/.test(words ?? ""))).toEqual([]);
    const chosen = (await visitor.page(`/audit?key=${key.id}&login=ann%40host`)).html;
    expect(chosen).toContain(`Only what <bdi>${key.name}</bdi> did, and what was done to it.`);
    expect(chosen).toContain('Only what the account <bdi>ann@host</bdi> did. <a href="/audit?key=');
    expect(chosen).toContain(`<input type="hidden" name="key" value="${key.id}"/>`);
  });

  test("leads to all reads, to all changes and to the last days, beside what is filtered already", async () => {
    const { where, key } = await w.place({ variables: { staging: { A: "1" } }, key: everything });
    const path = `/projects/${where.split("/")[1]}/variables?environment=staging`;
    expect((await w.ask(path, { key })).status).toBe(200);
    await (await visitorOf(w)).send(`/p/${where}/variables/reveal`, { name: "A", environment: "staging" });
    w.clock.nowMs = Date.now() + 10 * 86_400_000;
    const visitor = await visitorOf(w);
    const all = (await visitor.page(`/audit?project=${encodeURIComponent(where)}`)).html;
    const actionsAt = async (words: string, html = all) => {
      const link = new RegExp(`href="([^"]+)">${words}<`).exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
      expect(link).toContain(encodeURIComponent(where));
      const found = (await visitor.page(link)).html;
      return { found, actions: [...found.matchAll(/<span title="([a-z]+\.[a-z]+)">/g)].map(([, action]) => action) };
    };
    const reads = await actionsAt("all reads");
    expect(reads.actions.toSorted()).toEqual(["variables.read", "variables.reveal"]);
    expect(reads.found).toContain('<option value="all reads" selected>');
    const changes = (await actionsAt("all changes")).actions;
    expect([changes.includes("variables.write"), changes.includes("variables.read")]).toEqual([true, false]);
    expect((await actionsAt("last 24 hours", reads.found)).actions).toEqual([]);
    expect((await actionsAt("last 7 days", reads.found)).actions).toEqual([]);
    expect((await actionsAt("last 30 days", reads.found)).actions).toHaveLength(2);
    w.clock.nowMs = undefined;
  });

  test("marks the name that was looked for, and says who read it how often, over which days", async () => {
    const { where, key, organization } = await w.place({
      variables: { staging: { A: "1", B: "2", C: "3", STRIPE_KEY: "4", Z: "5" } },
      key: everything,
    });
    const twin = await w.key(organization, { ...everything, name: key.name });
    const path = `/projects/${where.split("/")[1]}/variables?environment=staging`;
    for (const one of [key, key, twin]) expect((await w.ask(path, { key: one })).status).toBe(200);
    const query = `project=${encodeURIComponent(where)}&action=all+reads`;
    const { html } = await (await visitorOf(w)).page(`/audit?${query}&name=STRIPE_KEY`);
    const tables = [...html.matchAll(/<caption class="unseen">(.*?)<\/caption>.*?<tbody>(.*?)<\/tbody>/gs)];
    const rowsOf = (caption: string) => {
      const body = tables.find(([, one]) => one?.startsWith(caption))?.[2] ?? "";
      const words = (row: string) => row.replace(/<time.*?<\/time>/g, "TIME").replace(/<(?!\/?mark)[^>]*>/g, " ");
      return body.split("</tr>").flatMap((row) => words(row).replace(/\s+/g, " ").trim() || []);
    };
    const name = "<mark> STRIPE_KEY </mark>";
    for (const row of rowsOf("Entries")) expect(row).toContain(`${name}, A , B and 2 others`);
    expect(rowsOf("Who")).toEqual([
      expect.stringMatching(
        new RegExp(`^key ${key.name} \\(id ${key.id.slice(0, 8)}\\S*… \\) web staging ${name} 2 TIME$`),
      ),
      expect.stringMatching(
        new RegExp(`^key ${key.name} \\(id ${twin.id.slice(0, 8)}\\S*… \\) web staging ${name} 1 TIME$`),
      ),
    ]);
    expect(html.replace(/<[^>]*>/g, "")).toMatch(/Counted: 3 entries, from 20\S+Z to 20\S+Z\./);
    const counted = /href="([^"]*key=[^"]*)">2</.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const followed = (await (await visitorOf(w)).page(counted)).html;
    expect(entriesOf(followed)).toHaveLength(2);
    expect(followed).toContain("2 reads by machines from");
    const changes = (await (await visitorOf(w)).page(`/audit?project=${encodeURIComponent(where)}&action=all+changes`))
      .html;
    expect([changes.includes("<svg"), changes.includes("No reads by machines")]).toEqual([false, false]);
    const past = (await (await visitorOf(w)).page("/audit?until=2020-01-02T12:00&since=2019-12-30T12:00")).html;
    expect(past).toContain("No entry that you may read fits this filter");
  });

  test("takes a part of a name in any case, and says which names it found, unless it is a whole one", async () => {
    const { where } = await w.place({ variables: { staging: { A_PART: "x", PARTS: "x", OTHER: "x" } } });
    const textOf = async (name: string) => {
      const { html } = await (await visitorOf(w)).page(`/audit?project=${encodeURIComponent(where)}&name=${name}`);
      return html.replace(/<[^>]*>/g, "");
    };
    expect(await textOf("part")).toContain("part is in 2 names: A_PART, PARTS.");
    expect(await textOf("OTHER")).not.toContain("OTHER is in");
  });

  test("says what is wrong with a filter, which is no failure, and shows what was typed as text", async () => {
    const { project, visitor } = await place(w);
    const typed = "<img src=x>";
    const refused = [
      [`item=${encodeURIComponent(typed)}`, "No entry names"],
      [`name=${encodeURIComponent(typed)}`, "No entry has"],
      [`since=${encodeURIComponent(typed)}`, "is not a time"],
      [`action=${encodeURIComponent(typed)}`, "There is no action"],
      [`environment=${encodeURIComponent(typed)}`, "is not an environment"],
    ] as const;
    for (const [query, sentence] of refused) {
      const { status, html } = await visitor.page(`/audit?${query}`);
      expect([query, status, refusalIn(html)]).toEqual([query, 200, expect.stringContaining(sentence)]);
      expect(refusalIn(html)).toContain("&lt;img src=x>");
      expect(html).not.toContain(typed);
    }
    for (const before of ["Infinity", "1e400", "0x10", "-1", "never"]) {
      const { status, html } = await visitor.page(`/audit?before=${before}`);
      expect([before, status, html.includes("before is not a number")]).toEqual([before, 200, true]);
    }
    for (const since of ["2030-02-30T12:00", "2030-13-01T12:00"]) {
      const { html } = await visitor.page(`/audit?since=${since}`);
      expect([since, html.includes("is not a time, such as 2030-01-31T12:00 in UTC.")]).toEqual([since, true]);
    }
    expect((await visitor.page("/audit?project=a%00b")).status).toBeLessThan(500);
    expect(visitor.reported).toEqual([]);
    const swapped = `/audit?project=${project}&since=2030-01-02T00:00&until=2030-01-01T00:00`;
    expect(refusalIn((await visitor.page(swapped)).html)).toContain("Until is not after From");
  });

  test("shows what a stranger's client calls itself, and the name of a key, as text", async () => {
    const asked = { ...everything, name: "<b>key</b>" };
    const { where, key } = await w.place({ variables: { staging: { A: "1" } }, key: asked });
    const visitor = await visitorOf(w);
    const path = `/projects/${where.split("/")[1]}/variables?environment=staging`;
    const headers = { "user-agent": "<img src=x>" };
    expect((await w.ask(path, { key, headers })).status).toBe(200);
    const list = (await visitor.page(`/audit?project=${encodeURIComponent(where)}&action=variables.read`)).html;
    const [name] = entriesOf(list);
    const whole = (await visitor.page(`/audit/entry/${name}`)).html;
    expect(whole).toContain("&lt;img src=x>");
    for (const html of [list, whole]) {
      expect(html).toContain("&lt;b>key&lt;/b>");
      expect(html).not.toContain("<img");
      expect(html).not.toContain("<b>");
    }
    expect(list).toContain('aria-label="Reads per hour. 1 read from 20');
  });

  test("leads to older entries, without a gap and with none twice", async () => {
    const { organization, project: of, where } = await w.place();
    const visitor = await visitorOf(w);
    const project = encodeURIComponent(where);
    const own = { organizationId: organization.id, projectId: of.id, project: of.slug };
    const batch = Array.from({ length: 23 }, () => ({ ...entry, ...own }));
    const first = Date.now();
    await writeLane(w, Array(10).fill(batch), (n) => first + n);
    const seen: (string | undefined)[] = [];
    let path: string | undefined = `/audit?project=${project}`;
    let pages = 0;
    while (path !== undefined) {
      const { html } = await visitor.page(path);
      seen.push(...entriesOf(html));
      pages += 1;
      path = /href="([^"]+)">Older entries/.exec(html)?.[1]?.replaceAll("&amp;", "&");
    }
    const all: string[] = [];
    for await (const page of auditPages(w.admin, { project: where })) {
      all.push(...page.map(({ lane, seq }) => encodeURIComponent(`${lane}:${seq}`)));
    }
    expect(pages).toBe(2);
    expect([...new Set(seen)]).toHaveLength(seen.length);
    expect(seen.toSorted() as string[]).toEqual(all.toSorted());
  });

  test("exports what the filter finds, as the command does", async () => {
    const { where, project, visitor } = await place(w);
    const { html } = await visitor.page(`/audit/export?project=${project}`);
    let text = "";
    for await (const page of auditPages(w.admin, { project: where })) text += page.map((one) => jsonLine(one)).join("");
    expect(text).toContain("NAME_1");
    expect(html).toBe(text);
    // Refused before the file begins, not in the middle of it.
    expect((await visitor.page("/audit/export?name=NEVER")).status).toBe(404);
    expect((await visitor.page(`/audit/export?project=${project}&name=NEVER`)).status).toBe(404);
    expect((await visitor.page("/audit/export?since=never")).status).toBe(400);
  });

  test("names an entry that was changed, and shows a damaged one as unreadable", async () => {
    const { visitor } = await place(w);
    expect((await visitor.page("/audit?verify=yes")).html).toContain("Every entry is unchanged");
    for (const path of ["/audit/export", "/audit", "/keys"]) await visitor.page(path);
    // Never while it is read, and after 75 s if a browser takes no more of what was read.
    const turns = (path: string) => visitor.cutAfter.filter((one) => one.startsWith(`${path} `));
    for (const path of ["/audit/export", "/audit"]) {
      const inTurn = turns(path).map((_, at) => `${path} ${at % 2 === 0 ? 0 : 75}`);
      expect([turns(path), turns(path).at(-1)]).toEqual([inTurn, `${path} 75`]);
    }
    // A short page only waits for its turn.
    const waited = ["/keys 0", "/keys 75"];
    expect([turns("/audit").length, turns("/audit/export").length > 4, turns("/keys")]).toEqual([8, true, waited]);
    expect((await visitor.page("/audit")).html).not.toContain("is damaged");
    const [last] = await w.sql`select lane, first_seq from audit_segments order by at desc, first_seq desc limit 1`;
    const { lane, first_seq: seq } = last as { lane: string; first_seq: number };
    await w.sql`update audit_segments set entries = ${"{"} where lane = ${lane} and first_seq = ${seq}`;
    const { html } = await visitor.page("/audit?verify=yes");
    expect(html).toContain("The audit does not verify");
    expect(html).toContain(`Lane ${lane}: the chain breaks at entry ${seq}.`);
    const list = (await visitor.page("/audit")).html;
    expect(list).toContain("<code>unreadable</code>");
    expect(list).toContain("A part of the audit is damaged and cannot be read");
    expect(list).toContain(`/audit/entry/${encodeURIComponent(`${lane}:${seq}`)}`);
  });
});
