/**
 * The pages that people look at first: today, projects, the grid and one item. They show names and times, and a value
 * only to who asks for it, on record.
 */

import { expect, test } from "bun:test";
import { routes } from "../../src/dashboard/routes.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { listAudit } from "../support/audit.ts";
import { inDays } from "../support/clock.ts";
import { deleteVariable } from "../support/delete.ts";
import { callTool, connectAgent, mcpClient } from "../support/mcp.ts";
import { cardsOf, personsVisitor, visitorOf } from "../support/pages.ts";
import { grantRights, removePerson, revokeRights, setAccount, setVariables } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, describeOnce, everything, type World } from "../support/world.ts";

const newCanary = () => `canary-${crypto.randomUUID()}`;

/** A project whose variables are all that a comparison can say, and somebody who is signed in. */
async function place(w: World) {
  const [same, other] = [newCanary(), newCanary()];
  const { organization, where } = await w.place({
    variables: {
      development: { SAME: same, ODD: other, TWO: same, ALONE: same },
      staging: { SAME: same, ODD: same, TWO: other, ALL: same },
      production: { SAME: same, ODD: same, ALL: `${other}-2` },
    },
    accounts: [{ name: "stripe", environments: ["staging"], values: { user: same, password: other } }],
    files: [{ path: "tls/key.pem", name: "the key", content: other, environments: ["production"] }],
  });
  return { organization, where, same, other, visitor: await visitorOf(w), at: (page: string) => `/p/${where}/${page}` };
}

/** The text of a table's rows, cell by cell, with the letters of the dots. */
function rowsOf(html: string): string[] {
  const body = /<tbody>(.*)<\/tbody>/s.exec(html)?.[1] ?? "";
  const text = (row: string) =>
    row
      .replace(/<time.*?<\/time>/g, "TIME")
      .replace(/<td class="([abc])"[^>]*>/g, " $1:")
      .replace(/<.*?>/g, " ")
      .replace(/\s+/g, " ");
  return body.split("</tr>").flatMap((row) => text(row).trim() || []);
}

describeOnce("the grid", (w) => {
  test("shows each name by environment: there, missing, the same, different", async () => {
    const { visitor, at } = await place(w);
    const compared = await (await visitor.submit(at("variables/compare"), {})).text();
    expect(rowsOf(compared)).toEqual([
      "ALL missing a:TIME b:TIME",
      "ODD a:TIME b:TIME b:TIME",
      "TWO a:TIME b:TIME missing",
      "ALONE TIME missing missing",
      "SAME a:TIME a:TIME a:TIME",
    ]);
    const listed = rowsOf((await visitor.page(at("variables"))).html);
    expect(listed).toEqual(
      rowsOf(compared)
        .map((row) => row.replaceAll(/[ab]:/g, ""))
        .sort(),
    );
    expect(rowsOf((await visitor.page(at("accounts"))).html)).toEqual(["stripe missing TIME missing"]);
    expect(rowsOf((await visitor.page(at("files"))).html)).toEqual(["tls/key.pem missing missing TIME"]);
    expect((await visitor.page(at("nothing"))).status).toBe(404);
    expect((await visitor.page("/p/never/web/variables")).status).toBe(404);
  });

  test("says what to do next if it is empty", async () => {
    const { where } = await w.place({ slug: "empty" });
    const visitor = await visitorOf(w);
    for (const kind of ["variables", "accounts", "files"]) {
      const { html } = await visitor.page(`/p/${where}/${kind}`);
      expect(html).toMatch(new RegExp(`class="empty">${where} has no ${kind} yet\\. [A-Z][^<]+\\.`));
    }
  });
});

describeOnce("no page", (w) => {
  test("is translated by a browser, or has what is typed begin with a capital, but for notes and reasons", async () => {
    const { organization, where, visitor } = await place(w);
    const key = await w.key(organization, { surfaces: ["mcp_server"], resources: ["requests"] });
    const asked = { project: "web", environment: "production", name: "ASKED", reason: "r" };
    const request = await callTool((await connectAgent(mcpClient(w), key)).client, "request_variable", asked);
    const ids = { key: key.id, request: String(request.found["id"]) };
    const questions = ["", `org=${organization.slug}&environment=staging&name=SAME&kind=variables&choose=yes`];
    const shown = new Set<string>();
    const prose = new Set<string>();
    for (const { method, path } of routes) {
      if (method !== "GET") continue;
      const id = path.startsWith("/requests") ? ids.request : ids.key;
      const page = path.replace(":org/:project", where).replace(":kind", "variables").replace(/:id\b/, id);
      for (const question of questions) {
        const { html, status } = await visitor.page(`${page}?${question}`);
        if (!html.startsWith("<!doctype")) continue;
        expect([page, /<html[^>]*>/.exec(html)?.[0]]).toEqual([page, expect.stringContaining('translate="no"')]);
        if (status === 200) shown.add(path);
        for (const [typed] of html.matchAll(/<(?:textarea|input)\b[^>]*>/g)) {
          if (/type="(?:hidden|checkbox|radio|date|datetime-local)"/.test(typed)) continue;
          const name = /name="(\w+)/.exec(typed)?.[1] ?? "";
          if (typed.includes('autocapitalize="sentences"')) prose.add(name);
          else expect([page, typed]).toEqual([page, expect.stringContaining('autocapitalize="none"')]);
        }
      }
    }
    expect([...prose].sort()).toEqual(["note", "reason"]);
    expect(shown.size).toBeGreaterThan(15);
  });
});

describeOnce("names that look like others", (w) => {
  test("are told apart: two alphabets, equal keys, variables that steer programs", async () => {
    const { organization, project, where } = await w.place({
      variables: { staging: { LD_PRELOAD: "1", PLAIN: "2" } },
      accounts: ["stripe", "stri\u0440e", "\u043f\u043e\u0447\u0442\u0430"].map((name) => {
        return { name, environments: ["staging"] as const, values: { user: "ci" } };
      }),
    });
    const visitor = await visitorOf(w);
    const accounts = rowsOf((await visitor.page(`/p/${where}/accounts`)).html);
    const isMixed = (row: string) => row.includes("letters of two alphabets");
    expect(accounts.filter(isMixed)).toEqual([expect.stringMatching(/^stri\u0440e /)]);
    expect(accounts.map((row) => row.includes("looks like another"))).toEqual([true, true, false]);
    const variables = rowsOf((await visitor.page(`/p/${where}/variables`)).html);
    expect(variables.map((row) => row.includes("steers programs"))).toEqual([true, false]);
    const keys: { id: string }[] = [];
    for (const name of ["web-prod", " web-prod", "w\u0435b-prod", "other"])
      keys.push(await w.key(organization, { name }));
    const rows = rowsOf((await visitor.page("/keys")).html);
    // Ids of one minute begin alike: as many letters are shown as tell them apart.
    const shown = keys.map(({ id }) => rows.find((row) => row.includes(`(id ${id.slice(0, 8)}`)));
    const ids = rows.flatMap((row) => /\(id (\S+?)… \)/.exec(row)?.[1] ?? []);
    const alike = keys.slice(0, 3);
    expect(ids.map((id) => alike.filter((key) => key.id.startsWith(id)).length)).toEqual([1, 1, 1]);
    expect(shown.filter((row) => row?.includes("other"))).toEqual([]);
    expect(rows.filter(isMixed)).toHaveLength(1);
    const asked = { environment: "staging", name: "ASKED", reason: "" } as const;
    for (const { id } of keys) await w.request(organization.id, id, project, asked);
    const requests = rowsOf((await visitor.page("/requests")).html);
    expect(requests.map((row) => row.includes("(id "))).toEqual([false, true, true, true]);
  });
});

describeBoth("the page of one item", (w, _, once) => {
  test("shows where it is, who read it last and who can, and no value", async () => {
    const { organization, where, visitor, at } = await place(w);
    const reader = await w.key(organization, { ...everything, name: "reader", environments: ["production"] });
    await w.key(organization, { ...everything, name: "elsewhere", environments: ["development"] });
    await w.key(organization, { name: "other kind", resources: ["files"] });
    const path = `/projects/${where.split("/")[1]}/variables?environment=production`;
    expect((await w.ask(path, { key: reader })).status).toBe(200);
    const { html } = await visitor.page(at("variables/item?name=ALL"));
    expect(html.match(/class="quiet">missing/g)).toHaveLength(1);
    const cards = cardsOf(html);
    expect(cards.map(({ environment }) => environment)).toEqual(["development", "staging", "production"]);
    expect(cards[2]).toMatchObject({ "Who can read it": "key reader", "Who read it last": "key reader, TIME" });
    const nobody = "Nobody, as far as the audit goes back.";
    expect(cards[1]).toMatchObject({ "Who can read it": "Nobody but operators.", "Who read it last": nobody });
    expect(cards[0]).toEqual({ environment: "development" });
    expect((await visitor.page(at("files/item?name=tls%2Fkey.pem"))).html).not.toContain("data-secret");
    expect((await visitor.page(at("variables/item?name=NEVER"))).status).toBe(404);
    expect((await visitor.page(at("variables/item?name=ALONE"))).html).toContain(nobody);
  });

  test("says a note once if its environments agree, gives them letters if they were compared, and has values first", async () => {
    const { where, visitor, at } = await place(w);
    const note = async (environment: string, note: string) =>
      setVariables(w.admin, where, environment, [{ name: "ODD", value: newCanary(), note }]);
    const shown = async () => (await visitor.page(at("variables/item?name=ODD"))).html;
    for (const environment of ["development", "staging", "production"]) await note(environment, "of all");
    const html = await shown();
    expect(html.match(/of all/g)).toHaveLength(1);
    expect(html.indexOf("Reveal the value in production")).toBeLessThan(html.indexOf("Who can read it"));
    await note("staging", "of staging");
    expect(cardsOf(await shown()).map((card) => card["Note"])).toEqual(["of all", "of staging", "of all"]);
    for (const [environment, content] of Object.entries({ development: "a", staging: "b", production: "b" })) {
      const file = { path: "compared", environments: [environment as "staging"], content: Buffer.from(content) };
      await putFile(w.admin, where, file);
    }
    const files = (await visitor.page(at("files/item?name=compared"))).html;
    expect(files.match(/(?<=<h2 class=")\w/g)).toEqual(["a", "b", "b"]);
    expect(html).not.toContain("<h2 class=");
  });

  test("says who read it last in an environment, however much was read and changed in another since", async () => {
    const { where, visitor, at } = await place(w);
    await visitor.send(at("variables/reveal"), { name: "SAME", environment: "production" });
    for (let count = 0; count < 25; count++) {
      await setVariables(w.admin, where, "staging", [{ name: "SAME", value: `changed ${count}` }]);
    }
    await Promise.all(Array.from({ length: 101 }, () => revealVariable(w.admin, where, "staging", "SAME")));
    const { html } = await visitor.page(at("variables/item?name=SAME"));
    const [, staging, production] = cardsOf(html);
    expect(production?.["Who read it last"]).toBe("ann@host, TIME");
    expect(staging?.["Who read it last"]).toBe("ann@host: 101 times in 30 days, last TIME");
  });

  once("counts who read it in 30 days, whoever looks at it then, and tells keys of one look apart", async () => {
    const { organization, where, visitor, at } = await place(w);
    const keys = await Promise.all(
      ["web-prod", "web\u2011prod"].map((name) =>
        w.key(organization, { ...everything, name, environments: ["production"] }),
      ),
    );
    const path = `/projects/${where.split("/")[1]}/variables?environment=production`;
    for (const key of [...keys, ...keys.slice(0, 1)]) expect((await w.ask(path, { key })).status).toBe(200);
    const shown = async (reader = visitor) =>
      cardsOf((await reader.page(at("variables/item?name=SAME"))).html)[2] ?? {};
    const machines = ({ "Who read it last": last = "" }: Record<string, string>) =>
      last.split("; ").filter((one) => one.startsWith("key"));
    const before = machines(await shown());
    const said = before.map((one) => one.replace(/ \(id [\w-]+…\)/, " ID")).sort();
    expect(said).toEqual(["key web-prod ID: 2 times in 30 days, last TIME", "key web\u2011prod ID, TIME"]);
    for (let count = 0; count < 101; count += 1) {
      await visitor.send(at("variables/reveal"), { name: "SAME", environment: "production" });
    }
    const after = await shown();
    expect(machines(after)).toEqual(before);
    expect(after["Who read it last"]).toContain("ann@host: 101 times in 30 days, last TIME");
    expect(after["Who can read it"]?.match(/key \S+ \(id [\w-]+…\)/g)).toHaveLength(2);
    w.clock.nowMs = Date.now() + 31 * 86_400_000;
    expect((await shown(await visitorOf(w)))["Who read it last"]).toBe("ann@host, TIME");
    w.clock.nowMs = undefined;
  });

  test("tells keys from persons of their name, and each key from another", async () => {
    const { organization, where, visitor, at } = await place(w);
    const path = `/projects/${where.split("/")[1]}/variables?environment=production`;
    await visitor.send(at("variables/reveal"), { name: "ALL", environment: "production" });
    for (const name of ["ann@host", "ci", "ci"]) {
      const key = await w.key(organization, { ...everything, name });
      expect((await w.ask(path, { key })).status).toBe(200);
    }
    const [, , production] = cardsOf((await visitor.page(at("variables/item?name=ALL"))).html);
    const readers = ["ann@host looks like another", "key ann@host", "key ci", "key ci"].map(
      (reader) => `${reader}, TIME`,
    );
    const said = production?.["Who read it last"]?.replace(/ \(id [\w-]+…\)/g, "").split("; ");
    expect(said?.sort()).toEqual(readers);
  });

  test("folds equal reads of this very name: who, how often, and when last", async () => {
    const { where, visitor, at } = await place(w);
    const other = await visitorOf(w, "ben@host");
    const asked = { name: "SAME", environment: "production" };
    const others = ["NOT_THE_SAME", "same"];
    for (const name of others) await setVariables(w.admin, where, "production", [{ name, value: "" }]);
    for (const reader of [visitor, visitor, other, visitor]) await reader.send(at("variables/reveal"), asked);
    for (const name of others) await other.send(at("variables/reveal"), { ...asked, name });
    const [, , production] = cardsOf((await visitor.page(at("variables/item?name=SAME"))).html);
    expect(production?.["Who read it last"]).toBe("ann@host: 3 times in 30 days, last TIME; ben@host, TIME");
  });

  test("lists its earlier values, each to reveal, on record, and to put back", async () => {
    const { where, visitor, at, other } = await place(w);
    const secrets = [newCanary(), newCanary()];
    for (const value of secrets) {
      w.secrets.add(value);
      await setVariables(w.admin, where, "production", [{ name: "ALL", value }]);
    }
    await setVariables(w.admin, where, "production", [{ name: "BESIDE", value: "" }]);
    await deleteVariable(w.admin, where, "staging", "ALL");
    const item = at("variables/item?name=ALL");
    const { html } = await visitor.page(item);
    const [development, staging, production] = cardsOf(html);
    const version = (of: number, end = "RevealPut back") => `Version ${of}, TIME, by ann@host${end}`;
    expect(production?.["Earlier values"]).toBe(`2 versions${version(3)}${version(2)}`);
    expect(staging?.["Earlier values"]).toBe(`2 versions${version(3, " deleted")}${version(2)}`);
    expect(development?.["Earlier values"]).toBeUndefined();
    const back = `/p/${where}/undo?kind=variables&environment=production&to=2&name=ALL`;
    expect(html).toContain(`href="${back.replaceAll("&", "&amp;")}"`);
    const asked = { name: "ALL", environment: "production" };
    for (const [index, secret] of [`${other}-2`, secrets[0], secrets[1], secrets[1]].entries()) {
      const reply = await visitor.send(at("variables/reveal"), { ...asked, version: index + 2 });
      expect(reply).toEqual({ status: 200, secret: secret as string });
    }
    for (const [version, status] of Object.entries({ 1: 404, 99: 404, x: 400, "": 400 })) {
      expect((await visitor.send(at("variables/reveal"), { ...asked, version })).status).toBe(status);
    }
    const entries = await listAudit(w.admin, { project: where, actions: ["variables.reveal"], limit: 100 });
    const read = entries.map(({ names, environment }) => [names, environment]);
    expect(read).toEqual(Array(4).fill([["ALL"], "production"]));
  });

  test("lists the value from before the versions that are kept, and that of an item with any name", async () => {
    const { where, visitor, at } = await place(w);
    const name = String.raw`a"b\%_'`;
    for (const user of ["first", "second"]) await setAccount(w.admin, where, name, ["staging"], { user });
    // The record of the version that wrote the first value is gone, and the next one is kept.
    await setAccount(w.admin, where, "beside", ["staging"], { user: "x" });
    await setAccount(w.admin, where, name, ["staging"], { user: "third" });
    const { id } = await findProject(w.admin, where, "see");
    await w.sql`delete from set_versions where project_id = ${id} and kind = 'accounts' and environment = 'staging'
      and version <= 4`;
    const page = `${at("accounts/item")}?${new URLSearchParams({ name })}`;
    await visitor.send(at("accounts/reveal"), { name, environment: "staging" });
    const staging = cardsOf((await visitor.page(page)).html).find(({ environment }) => environment === "staging");
    expect(staging?.["Who read it last"]).toBe("ann@host, TIME");
    expect(staging?.["Earlier values"]).toBe("1 versionVersion 5, from before what is keptRevealPut back");
    const asked = { name, environment: "staging", version: 5 };
    expect((await visitor.send(at("accounts/reveal"), asked)).secret).toBe("user: second");
  });

  test("gives a value to who asks for it, and puts that on record", async () => {
    const { where, visitor, at, same, other } = await place(w);
    const asked = { name: "SAME", environment: "production" };
    expect(await visitor.send(at("variables/reveal"), asked)).toEqual({ status: 200, secret: same });
    const account = await visitor.send(at("accounts/reveal"), { name: "stripe", environment: "staging" });
    expect(account).toEqual({ status: 200, secret: `user: ${same}\npassword: ${other}` });
    const entries = await listAudit(w.admin, { project: where, limit: 2 });
    expect(entries).toMatchObject([
      { actor: { name: "ann@host" }, action: "variables.reveal", environment: "production", names: ["SAME"] },
      { actor: { name: "ann@host" }, action: "accounts.reveal", environment: "staging", names: ["stripe"] },
    ]);
    const before = await listAudit(w.admin, { limit: 500 });
    const refused = [
      ["variables/reveal", { ...asked, name: "NEVER" }, 404],
      ["variables/reveal", { ...asked, environment: "nowhere" }, 400],
      ["variables/reveal", { name: "SAME" }, 400],
      ["accounts/reveal", { name: "stripe", environment: "production" }, 404],
      ["files/reveal", { name: "tls/key.pem", environment: "production" }, 404],
      ["nothing/reveal", asked, 404],
    ] as const;
    for (const [page, fields, status] of refused) {
      const reply = await visitor.send(at(page), fields);
      expect([page, fields, reply]).toEqual([page, fields, { status, error: expect.any(String) }]);
    }
    // A browser without the script gets no value, and nothing is on record.
    const plain = await visitor.submit(at("variables/reveal"), asked);
    expect([plain.status, (await plain.text()).includes(same)]).toEqual([400, false]);
    expect(await listAudit(w.admin, { limit: 500 })).toEqual(before);
  });
});

describeBoth("the page of a person", (w) => {
  /** A person with rights in two projects, one who may see and audit one of them, and one who may see neither. */
  const furnish = async () => {
    const { organization, where } = await w.place({ variables: { staging: { SEEN: newCanary() } } });
    const { slug } = organization;
    await w.project(organization, "api");
    const [name, lead, stranger] = ["ana", "lea", "max"].map((one) => `${one}-of-${slug}`) as [string, string, string];
    const may = (one: string, rights: string[], project: string, environments: string[] | null) =>
      grantRights(w.admin, one, { rights, projects: [project], environments });
    for (const one of [name, lead, stranger]) {
      const signIn = { issuer: "https://id.example", subject: one };
      await addPerson(w.admin, { name: one, organization: slug, signIn });
    }
    await may(name, ["see", "reveal"], "web", ["staging", "production"]);
    await may(name, ["see"], "api", null);
    await may(lead, ["see", "audit"], "web", ["staging"]);
    await may(stranger, ["audit"], "api", null);
    const visitorAs = (subject: string) => personsVisitor(w, { issuer: "https://id.example", subject });
    await visitorAs(name).send(`/p/${where}/variables/reveal`, { name: "SEEN", environment: "staging" });
    return { name, lead, stranger, slug, where, visitorAs };
  };
  /** The lines of a part of the page, without tags. */
  const linesOf = (html: string, heading: string) => {
    const part = html.split(`<h2>${heading}</h2>`)[1]?.split(/<h2>|<p /)[0] ?? "";
    return [...part.matchAll(/<li>(.*?)<\/li>/gs)].map(([, line = ""]) => line.replace(/<[^>]+>/g, ""));
  };

  test("says an operator their rights now and before, and what they did", async () => {
    const { name, slug } = await furnish();
    await revokeRights(w.admin, name, { rights: ["reveal"], projects: ["web"], environments: ["production"] });
    const { html } = await (await visitorOf(w)).page(`/persons/${name}`);
    expect(linesOf(html, "What they can see and do").sort()).toEqual([
      `${slug}/api: ○ names, everywhere`,
      `${slug}/web: ○ names in production`,
      `${slug}/web: ● reads in staging`,
    ]);
    const text = html.replace(/<[^>]+>/g, "");
    expect(text).toContain(`${name} at https://id.example`);
    expect(text).toContain(`, by ann@hostdeleted ${slug}/web: reveal in production`);
    expect(text).toContain(`added ${slug}/api: ○ names, everywhere`);
    expect(text).toContain(`just now${name}saw the variable SEEN in staging of ${slug}/web`);
    expect(text).toContain(
      "Rights that come from groups are not listed: the provider says at sign-in who is in a group.",
    );
    const found = await (await visitorOf(w)).page(`/find?q=${name}`);
    expect(found.html).toContain(`href="/persons/${name}"`);
  });

  test("says others what `access` and the audit say them, and is not there for who may see none of their rights", async () => {
    const { name, lead, stranger, slug, where, visitorAs } = await furnish();
    const { html } = await visitorAs(lead).page(`/persons/${name}`);
    expect(linesOf(html, "What they can see and do")).toEqual([`${slug}/web: ● reads in staging`]);
    expect(html).toContain("Rights in places that you may not see are not listed.");
    expect(html).toContain("SEEN");
    for (const unknown of [`${slug}/api`, "How their rights changed", "Signs in as"])
      expect(html).not.toContain(unknown);
    expect((await visitorAs(lead).page(`/p/${where}/access`)).html).toContain(`href="/persons/${name}"`);
    const said = ["You need the right reveal to see its value in staging.", "<noscript>You need JavaScript to"];
    const saysOf = async (one: string) => {
      const { html } = await visitorAs(one).page(`/p/${where}/variables/item?name=SEEN`);
      return said.map((words) => html.includes(words));
    };
    expect([await saysOf(lead), await saysOf(name)]).toEqual([
      [true, false],
      [false, true],
    ]);
    await setVariables(w.admin, where, "staging", [{ name: "SEEN", value: "hidden", machinesOnly: true }]);
    expect([await saysOf(lead), await saysOf(name)]).toEqual(Array(2).fill([false, false]));
    const [there, absent] = await Promise.all(
      [name, "nobody"].map((one) => visitorAs(stranger).page(`/persons/${one}`)),
    );
    expect([there?.status, there?.html]).toEqual([404, absent?.html.replaceAll("nobody", name)]);
    const fromAna = await Promise.all([lead, "nobody"].map((one) => visitorAs(name).page(`/persons/${one}`)));
    expect(fromAna.map(({ status, html }) => [status, html.includes("What they did")])).toEqual([
      [200, false],
      [404, false],
    ]);
  });

  test("is there after they were removed, for an operator alone", async () => {
    const { name, lead, slug, visitorAs } = await furnish();
    await removePerson(w.admin, name);
    const { status, html } = await (await visitorOf(w)).page(`/persons/${name}`);
    expect([status, html.includes("This person was removed")]).toEqual([200, true]);
    expect(html.replace(/<[^>]+>/g, "")).toContain(`deleted ${name} ${name} at https://id.exampledeleted ${slug}/`);
    expect((await visitorAs(lead).page(`/persons/${name}`)).status).toBe(404);
    expect((await (await visitorOf(w)).page("/persons/nobody")).status).toBe(404);
  });
});

describeBoth("the first page", (w) => {
  test("shows what waits for a person, and what changed last", async () => {
    const { organization, where, visitor, at } = await place(w);
    const hidden = await visitor.hidden(at("variables/set"));
    const day = inDays(2);
    const fields = { name: "DUE", "value.development": "", "value.staging": "1", "value.production": "" };
    await visitor.send(at("variables/set"), { ...hidden, ...fields, rotateBy: day });
    const ends = { soon: 10, idle: 3, used: 3 };
    for (const [name, days] of Object.entries(ends)) {
      const { id } = await w.key(organization, { ...everything, name, expiresInMs: days * 86_400_000 });
      if (name !== "idle") await w.sql`insert into key_uses (key_id, last_used_at) values (${id}, ${Date.now()})`;
    }
    await visitor.page(at("variables/item?name=DUE"));
    const { html } = await visitor.page("/");
    expect(html).toContain("No machine asks for anything.");
    const words = html.replace(/<[^>]+>/g, "");
    expect(words).toMatch(new RegExp(`soon key of ${organization.slug}in (?:9|10) days`));
    expect(html).toContain(`href="/p/${where}/variables/item?name=DUE"`);
    expect(words).toContain(`DUE staging of web${day}`);
    const headings = [...html.matchAll(/<h2>(.*?)<\/h2>/g)].map(([, heading]) => heading);
    expect(headings).toEqual([
      "Projects",
      "Requests",
      "Expires within 30 days",
      "To rotate within 30 days",
      "Last changes",
    ]);
    // Red is what ends within a week and was used in the last one, as far as anybody knows.
    const red = html.split("<li>").filter((row) => row.includes('<span class="missing">'));
    expect(red.map((row) => /<bdi>(.*?)</.exec(row)?.[1])).toEqual(["used", "DUE"]);
    const list = /<ol class="changes">(.*?)<\/ol>/s.exec(html)?.[1] ?? "";
    const rows = [...list.matchAll(/<li>(<time.*?)<\/li>/gs)].map(([, row = ""]) => row.replace(/<time.*?\/time>/, ""));
    const said = rows.map((row) => row.replace(/<[^>]+>/g, " ").replace(/\s+/g, " "));
    expect(said).toContain(` ann@host added the variable DUE in staging of ${where} `);
    expect(said).toContain(" ann@host created the key soon ");
    expect(said).toContain(` ann@host created the project ${where} `);
  });

  test("lists open requests as their own page does, counts them in the header, and warns of their names", async () => {
    const { organization, project, key } = await w.place({ key: everything });
    const ask = (name: string) => {
      return w.request(organization.id, key.id, project, { environment: "staging", name, reason: "" });
    };
    const visitor = await visitorOf(w);
    expect((await visitor.page("/")).html).not.toContain('class="badge"');
    const ids: string[] = [];
    for (const name of ["FIRST", "LD_PRELOAD", "LAST"]) ids.push(await ask(name));
    const asked = (html: string) => [...html.matchAll(/<a href="\/requests\/([^"]+)">/g)].map(([, id]) => id);
    const htmlOf = async (path: string) => (await visitor.page(path)).html;
    const pages = await Promise.all(["/", "/requests", "/projects"].map(htmlOf));
    expect(pages.slice(0, 2).map(asked)).toEqual([ids.toReversed(), ids.toReversed()] as never);
    for (const html of pages) expect(html).toContain('<span class="badge">3<span class="unseen"> open</span></span>');
    for (const html of pages.slice(0, 2)) expect(html.match(/ steers programs/g)).toHaveLength(1);
    // A request begins with its reason, and says nothing of what has not happened.
    const [, reason = "", facts = ""] = (await htmlOf(`/requests/${ids[0]}`)).split(/<blockquote>|<dl class="facts">/);
    expect(reason).toContain("</blockquote>");
    expect([...facts.matchAll(/<dt>(.*?)<\/dt>/g)].map(([, fact]) => fact)).toEqual(
      "Status Project Environment Key Filed Expires Id".split(" "),
    );
    expect(facts).toContain(`<dt>Key</dt><dd><a href="/keys/${key.id}"><bdi>${key.name}</bdi></a></dd>`);
    expect(facts).not.toContain('class="danger"');
    // Nothing waits for somebody who cannot decide, though they may see it and decide elsewhere.
    const [slug, rights] = [organization.slug, { projects: ["web"], environments: ["staging"] }];
    const ana = { issuer: "https://id.example", subject: `sees-${slug}` };
    await addPerson(w.admin, { name: `sees-${slug}`, organization: slug, signIn: ana });
    await grantRights(w.admin, `sees-${slug}`, { ...rights, rights: ["see"] });
    const elsewhere = { ...rights, environments: ["development"] };
    await grantRights(w.admin, `sees-${slug}`, { ...elsewhere, rights: ["see", "write", "decide"] });
    const theirs = (await personsVisitor(w, ana).page("/")).html;
    expect([theirs.includes("badge"), theirs.includes(`/requests/${ids[0]}`)]).toEqual([false, false]);
    const shown = await visitor.hidden(`/requests/${ids[0]}`, `/requests/${ids[0]}/reject`);
    await visitor.send(`/requests/${ids[0]}/reject`, { ...shown, reason: "" });
    expect((await visitor.page("/")).html).toContain('<span class="badge">2<');
    w.clock.nowMs = Date.now() + 8 * 86_400_000;
    expect((await (await visitorOf(w)).page("/")).html).not.toContain('class="badge"');
    w.clock.nowMs = undefined;
  });
});

test("the contract of the script names every data-* that pages have", async () => {
  const contract = await Bun.file("src/dashboard/script/page.js").text();
  const files = [...new Bun.Glob("src/{dashboard,kinds,people}/**/*.tsx").scanSync()];
  const pages = (await Promise.all(files.map((file) => Bun.file(file).text()))).join("");
  const all = (text: string, pattern: RegExp) => [...new Set(text.match(pattern))].sort();
  expect(all(pages, /(?<=\s)data-[a-z]+/g)).toEqual(all(contract, /(?<=^ \* )data-[a-z]+/gm));
});

test("every part of pages is shown on /parts, for whoever restyles it", async () => {
  const [parts = "", shown = ""] = await Promise.all(
    ["src/dashboard/parts/parts.tsx", "test/support/parts.tsx"].map((file) => Bun.file(file).text()),
  );
  const names = parts.match(/(?<=^export function )[A-Z]\w+/gm) ?? [];
  expect(names.length).toBeGreaterThan(30);
  expect(names.filter((name) => !new RegExp(`<${name}\\b`).test(shown))).toEqual([]);
});

describeOnce("the first page with one damaged set", (w) => {
  test("says which, in place of what is due, and shows all else", async () => {
    const { organization, where, visitor, at } = await place(w);
    const rotateBy = inDays(2);
    await setVariables(w.admin, where, "staging", [{ name: "DUE", value: "canary-due", rotateBy }]);
    await w.key(organization, { ...everything, name: "soon", expiresInMs: 10 * 86_400_000 });
    expect((await visitor.page("/")).html).toContain(`href="${at("variables/item")}?name=DUE"`);
    await w.sql`update sets set version = version + 1 where kind = 'variables' and environment = 'staging'`;
    const { status, html } = await visitor.page("/");
    expect(status).toBe(200);
    expect(html).toContain(`<li>The variables of ${where} in staging were deleted or changed`);
    expect(html).not.toContain("No value.");
    expect(html).toContain("<bdi>soon</bdi></a>");
    expect(html).toContain("<code><bdi>DUE</bdi></code>");
  });
});

describeOnce("the page of projects", (w) => {
  test("leads nowhere from the path of a project that does not exist, whatever is in it", async () => {
    const { where, visitor } = await place(w);
    const answers = ["/p/a/%E2%82%AC", "/p/%0d%0aX:y/web", "/p/a/%00", "/p/%2F%2Fevil.example/x"].map(visitor.page);
    for (const { status } of await Promise.all(answers)) expect([400, 404]).toContain(status);
    expect((await visitor.page(`/p/${where}`)).status).toBe(303);
    expect(visitor.reported).toEqual([]);
  });

  test("shows what each project has, creates one, and goes there", async () => {
    const { organization, where, visitor } = await place(w);
    const { html } = await visitor.page("/projects");
    expect(rowsOf(html).find((row) => row.startsWith(where))).toContain(" 5 1 1 ");
    const fields = { org: organization.slug, slug: "new", name: "" };
    const to = `/p/${organization.slug}/new/variables`;
    expect(await visitor.send("/projects", fields)).toEqual({ status: 200, to });
    expect((await visitor.page(to)).html).toContain(`Created project ${organization.slug}/new.`);
    const before = await stored(w);
    expect((await visitor.send("/projects", fields)).status).toBe(409);
    for (const slug of ["../x", "a/b"]) expect((await visitor.send("/projects", { ...fields, slug })).status).toBe(400);
    expect((await visitor.send("/projects", { ...fields, org: "never" })).status).toBe(404);
    expect(await stored(w)).toBe(before);
  });
});
