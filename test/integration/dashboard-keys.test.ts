import { expect, test } from "bun:test";
import { parse } from "yaml";
import { listKeys, revokeKey, showKey } from "../../src/people/keys/keys.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { listAudit } from "../support/audit.ts";
import { personsVisitor, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights } from "../support/plans.ts";
import { describeBoth, describeOnce, everything, type World } from "../support/world.ts";

const dayMs = 86_400_000;

/** What a person chooses in the form for a new key. */
const chosen = {
  name: "ci",
  projects: ["web"],
  environments: ["staging"],
  resources: ["projects", "variables"],
  surfaces: ["rest_api"],
  expires: "90 days",
} as const;

const furnish = async (w: World) => {
  const { organization } = await w.place();
  return { organization, org: organization.slug, visitor: await visitorOf(w) };
};

const actionsOn = async (w: World, keyId: string) =>
  (await listAudit(w.admin, { keyId })).map(({ action, actor }) => [action, actor.type === "person" && actor.name]);

/** Makes a key through the form. @returns its text and its id */
async function make(w: World, visitor: Visitor, org: string, more: Partial<Record<keyof typeof chosen, string>> = {}) {
  const { status, secret = "", to = "", notice } = await visitor.send("/keys", { ...chosen, ...more, org });
  expect(status).toBe(200);
  w.secrets.add(secret);
  return { key: secret, id: to.replace("/keys/", ""), notice };
}

/** What a form for a new key is refused with, and how. */
const refused = [
  ["all projects and one", { reach: "all" }, "Choose either every project or some of them."],
  ["no project", { projects: [] }, "Choose which projects the key reaches."],
  ["a project that is not there", { projects: ["app"] }, '/app".'],
  ["no environment", { environments: [] }, "Choose an environment."],
  ["no resource", { resources: [] }, "Choose what the key may read."],
  ["no surface", { surfaces: [] }, "Choose what the key is for."],
  ["a lifetime that is not offered", { expires: "toString" }, "is not one of the choices"],
] as const;

describeBoth("a key that is made on a page", (w) => {
  test("may do what was chosen, and is on record", async () => {
    const { org, visitor } = await furnish(w);
    const before = w.admin.now();
    const { id, key, notice } = await make(w, visitor, org);
    expect(notice).toStartWith(`Created key ${id} (ci) for ${org}; it expires `);
    expect(notice).toEndWith("The key is shown only once: store it now.");
    expect(notice).not.toContain("rest_api");
    const record = await showKey(w.admin, id);
    expect(record).toMatchObject({
      ...{ name: "ci", organization: org, projects: ["web"], environments: ["staging"], status: "active" },
      ...{ resources: ["projects", "variables"], surfaces: ["rest_api"] },
    });
    expect(record.expiresAt).toBeGreaterThanOrEqual(before + 90 * dayMs);
    expect(record.expiresAt).toBeLessThanOrEqual(w.admin.now() + 90 * dayMs);
    expect(await actionsOn(w, id)).toEqual([["key.create", "ann@host"]]);
    expect((await w.ask("/projects/web/variables?environment=staging", { key })).status).toBe(200);
    expect((await w.ask("/projects/web/variables?environment=production", { key })).status).toBe(403);
  });
  test("reaches every project and never ends if that was chosen", async () => {
    const { org, visitor } = await furnish(w);
    const asked = { ...chosen, org, reach: "all", projects: [], expires: "never" };
    const { to = "", secret = "" } = await visitor.send("/keys", asked);
    w.secrets.add(secret);
    expect(await showKey(w.admin, to.replace("/keys/", ""))).toMatchObject({ projects: null, expiresAt: null });
    // Its page begins with what it may do, and leaves out that it was not revoked.
    const { html } = await visitor.page(to);
    const facts = [...html.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)].map(([, fact, said]) => [fact, said]);
    expect(facts.map(([fact]) => fact).join(", ")).toBe(
      "Status, Projects, Environments, Resources, Surfaces, From, Expires, Last used, Created, Organization, Id",
    );
    expect(Object.fromEntries(facts)).toMatchObject({ Expires: "never", "Last used": "never" });
  });
  test("is not made without the page's script, which alone may have its text", async () => {
    const { org, visitor } = await furnish(w);
    expect((await visitor.submit("/keys", { ...chosen, org })).status).toBe(400);
    expect(await listKeys(w.admin, org)).toEqual([]);
  });
  test("has its text on no page", async () => {
    const { org, visitor } = await furnish(w);
    const { id, key } = await make(w, visitor, org);
    // The visitor looks for it in all that they get.
    for (const path of ["/keys", `/keys/${id}`, "/keys/new", `/p/${org}/web/access`, "/"]) {
      expect((await visitor.page(path)).status).toBe(200);
    }
    expect(key).toMatch(/^kh_/);
  });
  test.each(refused)("is refused with %s", async (_, wrong, words) => {
    const { org, visitor } = await furnish(w);
    const { error, secret } = await visitor.send("/keys", { ...chosen, org, ...wrong });
    expect(error).toContain(words);
    expect(secret).toBeUndefined();
    expect(await listKeys(w.admin, org)).toEqual([]);
  });
});

describeOnce("the form for a new key", (w) => {
  test("offers the projects of the organization that was chosen, and nothing by default", async () => {
    const { org, visitor } = await furnish(w);
    await w.place({ slug: "app" });
    const { html } = await visitor.page(`/keys/new?org=${org}`);
    expect(await visitor.hidden(`/keys/new?org=${org}`, "/keys")).toEqual({ org });
    expect(html).toContain('name="projects" value="web/');
    expect(html).not.toContain('name="projects" value="app/');
    const checked = [...html.matchAll(/name="(\w+)" value="(\w+)" checked/g)].map(([, name, value]) => [name, value]);
    expect(checked.join(" ")).toBe("surfaces,rest_api resources,projects resources,variables");
    expect(html).toContain('<option value="90 days" selected>');
    // One click leads to those of another organization.
    await w.organization();
    const other = (await visitor.page(`/keys/new?org=${org}`)).html;
    expect(other).toMatch(new RegExp(`<a href="/keys/new\\?org=${org}" aria-current="page">`));
  });
});

describeOnce("the lines with which machines use a project", (w) => {
  test.each(["web", "secrets", "123", "null", "true", "1e3", "007"])(
    "are YAML for a project called %s",
    async (slug) => {
      const { where } = await w.project(await w.organization(), slug);
      const { html } = await (await visitorOf(w)).page(`/p/${where}/run`);
      const text = html.replaceAll("&quot;", '"');
      const [compose, pod] = [...text.matchAll(/<pre[^>]*>((?:# In the shell|spec:).*?)<\/pre>/gs)].map(
        ([, one = ""]) => parse(one),
      );
      expect(text).toMatch(/# In the shell that runs Compose: export KEYHOLE_URL=\S+ KEYHOLE_API_KEY_FILE=\S+\.key\n/);
      expect(Object.keys(compose.services).sort()).toEqual(["keyhole_secrets", slug].sort());
      expect(compose.services[slug]).toEqual({ image: slug, depends_on: ["keyhole_secrets"] });
      expect(compose.services.keyhole_secrets.provider.options.project).toBe(slug);
      const { serviceAccountName, containers } = pod.spec;
      const { name, image, env } = containers[0];
      const project = env.find((one: { name: string }) => one.name === "KEYHOLE_PROJECT").value;
      expect([serviceAccountName, name, image, project]).toEqual([slug, slug, `registry.example.com/${slug}`, slug]);
      expect(text).toContain(`KEYHOLE_API_KEY_FILE=${slug}.key\nexport KEYHOLE_PROJECT=${slug}`);
    },
  );
});

describeOnce("the page that says how to run a project", (w) => {
  test("leads to a new key where somebody can make one", async () => {
    const { organization, where } = await w.place();
    const person = `ana-${organization.slug}`;
    const signIn = { issuer: "https://id.example", subject: person };
    await addPerson(w.admin, { name: person, organization: organization.slug, signIn });
    const held = { projects: ["web"], environments: null };
    await grantRights(w.admin, person, { rights: ["see", "keys"], ...held });
    await grantRights(w.admin, person, { rights: ["reveal"], ...held, environments: ["staging"] });
    const visitor = personsVisitor(w, signIn);
    const leads = async (environment: string) =>
      (await visitor.page(`/p/${where}/run?environment=${environment}`)).html.includes("Create a key for it");
    expect([await leads("staging"), await leads("production")]).toEqual([true, false]);
  });
});

describeOnce("the command beside the form for a new key", (w) => {
  const commandFor = async (visitor: Visitor, fields: Readonly<Record<string, string | readonly string[]>>) => {
    const query = new URLSearchParams({ command: "yes" });
    for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) query.append(name, one);
    const { html } = await visitor.page(`/keys/new?${query}`);
    const [, tag, text = ""] = /<(pre|p)[^>]* id="command">(.*?)<\/\1>/s.exec(html) ?? [];
    return { tag, html, line: text.replaceAll("&amp;", "&").replaceAll("&lt;", "<") };
  };

  test("makes the same key, and the form keeps what was chosen", async () => {
    const { org, visitor } = await furnish(w);
    const { html, line } = await commandFor(visitor, { ...chosen, projects: `web/x`, org, name: "it's <ci> & co" });
    const create = `keyhole key create --org ${org} --name`;
    expect(line).toBe(String.raw`${create} 'it'\''s <ci> & co' --project web --env staging --expires-in 90d`);
    expect(html).not.toContain('value="all" checked');
    expect(html).toContain('name="environments" value="staging" checked');
    const all = { reach: "all", projects: [], expires: "never" };
    const wide = { ...all, surfaces: ["rest_api", "ci_action"], resources: ["files"] };
    const wider = await commandFor(visitor, { ...chosen, org, ...wide });
    expect(wider.line).toBe(`${create} ci --all-projects --env staging --surface rest_api,ci_action --resource files`);
    expect(await listKeys(w.admin, org)).toEqual([]);
  });
  test.each(refused)("is refused with %s, as the form is", async (_, wrong, words) => {
    const { org, visitor } = await furnish(w);
    const { tag, line } = await commandFor(visitor, { ...chosen, org, ...wrong });
    if (words === '/app".') return expect(tag).toBe("pre");
    expect(line).toContain(words);
  });
});

describeOnce("the lines that use a new key", (w) => {
  const useOf = async (more: Partial<Record<keyof typeof chosen | "reach", string | readonly string[]>>) => {
    const { org, visitor } = await furnish(w);
    const { secret = "", use } = await visitor.send("/keys", { ...chosen, org, ...more });
    w.secrets.add(secret);
    return { ...use, lines: use?.lines.replace(secret, "KEY") };
  };
  const url = "export KEYHOLE_URL=https://keyhole.example KEYHOLE_API_KEY=KEY";
  test("run a program with its project and environment, or the tools of an agent", async () => {
    const words =
      "To use it, put your server's address in place of https://keyhole.example and your program in place of";
    const lines = `${url}\nkeyhole run -p web -e staging -- ./start`;
    expect(await useOf({})).toEqual({ words: `${words} ./start:`, lines });
    expect((await useOf({ reach: "all", projects: [] })).lines).toBe(lines.replace("-p web", "-p PROJECT"));
    expect((await useOf({ surfaces: ["mcp_server"] })).lines).toBe(`${url}\nkeyhole mcp`);
    expect((await useOf({ surfaces: ["ci_action"] })).lines).toBeUndefined();
    expect((await useOf({ resources: ["files"] })).lines).toBeUndefined();
  });
});

describeOnce("what a key is for", (w) => {
  test("is in words on every page, and not in the words that commands take", async () => {
    const { organization, org, visitor } = await furnish(w);
    const { id } = await w.key(organization, { ...everything, name: "all" });
    const pages = ["/keys", `/keys/${id}`, `/keys/new?org=${org}`, `/p/${org}/web/access`];
    const html = await Promise.all(pages.map(async (path) => (await visitor.page(path)).html));
    for (const words of [
      "Programs and CI: <code>run</code>",
      "Agents: names only",
      "Only the older path <code>/secrets</code>",
    ]) {
      expect(html.map((page) => page.includes(words))).toEqual([false, true, true, false]);
    }
    const text = html.join().replaceAll(/value="\w+"/g, "");
    expect(text).not.toMatch(/rest_api|mcp_server|ci_action/);
  });
});

describeOnce("a key that is rotated on a page", (w) => {
  test("gets a successor with the same rights, and ends after the overlap", async () => {
    const { org, visitor } = await furnish(w);
    const { id, key } = await make(w, visitor, org);
    const shown = await visitor.hidden(`/keys/${id}`, `/keys/${id}/rotate`);
    const before = w.admin.now();
    const [, until = ""] =
      /Made now, it expires <time datetime="(.*?)"/.exec((await visitor.page(`/keys/${id}`)).html) ?? [];
    expect(Date.parse(until)).toBeWithin(before + 90 * dayMs - 1000, w.admin.now() + 90 * dayMs + 1);
    const rotated = await visitor.send(`/keys/${id}/rotate`, { ...shown, overlap: "1 hour" });
    const { secret = "", to = "", notice } = rotated;
    w.secrets.add(secret);
    expect(notice).toContain(`The old key ${id} expires `);
    const successor = await showKey(w.admin, to.replace("/keys/", ""));
    expect(successor).toMatchObject({ name: "ci", projects: ["web"], environments: ["staging"], status: "active" });
    expect((await showKey(w.admin, id)).expiresAt).toBeLessThanOrEqual(w.admin.now() + 3_600_000);
    expect((await showKey(w.admin, id)).expiresAt).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(secret).not.toBe(key);
    expect(await actionsOn(w, id)).toEqual(["key.create", "key.rotate"].map((action) => [action, "ann@host"]));
  });
  test("is not rotated without the page's script", async () => {
    const { org, visitor } = await furnish(w);
    const { id } = await make(w, visitor, org);
    const shown = await visitor.hidden(`/keys/${id}`, `/keys/${id}/rotate`);
    expect((await visitor.submit(`/keys/${id}/rotate`, { ...shown, overlap: "1 hour" })).status).toBe(400);
    expect(await listKeys(w.admin, org)).toHaveLength(1);
  });
  test("is rotated once by two people who saw the same page", async () => {
    const { org, visitor } = await furnish(w);
    const { id } = await make(w, visitor, org);
    const shown = await visitor.hidden(`/keys/${id}`, `/keys/${id}/rotate`);
    const rotate = () => visitor.send(`/keys/${id}/rotate`, { ...shown, overlap: "24 hours" });
    const [first, second] = (await Promise.all([rotate(), rotate()])).sort((a, b) => a.status - b.status);
    w.secrets.add(first?.secret ?? "");
    expect(second).toMatchObject({ status: 409, error: expect.stringContaining("was rotated since it was shown") });
    expect(await listKeys(w.admin, org)).toHaveLength(2);
  });
});

describeOnce("a key or a trust that is revoked on a page", (w) => {
  test("is refused from the next request on, and that is on record", async () => {
    const { org, visitor } = await furnish(w);
    const { id, key } = await make(w, visitor, org);
    // Whoever comes at night looks for this one.
    const before = (await visitor.page(`/keys/${id}`)).html;
    expect(before.indexOf("Revoke it")).toBeLessThan(before.indexOf("Rotate it"));
    const { to } = await visitor.send(`/keys/${id}/revoke`, { key: id, again: "ci" });
    expect(to).toBe(`/keys/${id}/read`);
    expect((await w.ask("/projects", { key })).status).toBe(401);
    expect((await actionsOn(w, id)).at(-1)).toEqual(["key.revoke", "ann@host"]);
    const next = (await visitor.page(to ?? "")).html;
    expect(next).toContain(`Revoked key ${id} (ci) of ${org}.`);
    expect(next).toContain("It has read nothing.");
    const { html } = await visitor.page(`/keys/${id}`);
    expect(html).not.toContain(`/keys/${id}/revoke`);
    expect(html).not.toContain(`/keys/${id}/rotate`);
  });
  test("stays without its name", async () => {
    const { org, visitor } = await furnish(w);
    const { id } = await make(w, visitor, org);
    for (const again of ["", "cI", "ci2"]) {
      const { status, error } = await visitor.send(`/keys/${id}/revoke`, { key: id, again });
      expect([status, error]).toEqual([400, "To revoke it, type ci again. Nothing was changed."]);
    }
    expect((await showKey(w.admin, id)).status).toBe("active");
  });
  test("may have a name that nobody can type: it is typed as the page shows it", async () => {
    const { organization, visitor } = await furnish(w);
    const { id } = await w.key(organization, { name: "safe" });
    await w.sql`update api_keys set name = ${"a\u202eb\u0007"} where id = ${id}`;
    expect((await visitor.page(`/keys/${id}`)).html).toContain("a\\u202eb\\u0007");
    expect((await visitor.send(`/keys/${id}/revoke`, { key: id, again: "a\\u202eb\\u0007" })).status).toBe(200);
    expect((await showKey(w.admin, id)).status).toBe("revoked");
  });
  test("leads to all names that it read in its life, which are due for rotation after one button", async () => {
    const names = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`NAME_${at + 10}`, `canary-${at}`]));
    const { organization, where, key } = await w.place({
      variables: { staging: names, production: { OTHER: "canary" } },
      accounts: [{ name: "stripe", environments: ["staging"], values: { user: "canary" } }],
      key: { ...everything, name: "leaked", resources: ["projects", "variables", "accounts"] },
    });
    w.clock.nowMs = Date.now() + 1000; // it stands: at midnight today would become a day that is past
    const visitor = await visitorOf(w);
    for (const path of ["variables?environment=staging", "variables?environment=production&keys=OTHER", "accounts"]) {
      expect((await w.ask(`/projects/web/${path}`, { key })).status).toBe(200);
    }
    await w.ask("/projects/web/variables?environment=staging", { key: await w.key(organization, everything) });
    const { to = "" } = await visitor.send(`/keys/${key.id}/revoke`, { key: key.id, again: "leaked" });
    const { html } = await visitor.page(to);
    const text = html.replace(/<[^>]+>/g, "");
    expect(text).toContain(`30 variables of ${where} staging`);
    expect(text).toContain(`1 variables of ${where} production`);
    expect(text).toMatch(new RegExp(`1 accounts of ${where} \\w+stripe`));
    for (const name of Object.keys(names)) expect(html).toContain(`<bdi>${name}</bdi>`);
    const day = new Date(w.admin.now()).toISOString().slice(0, 10);
    const due = { deed: "rotate by", rotateBy: day, environment: "staging", names: Object.keys(names) };
    expect(html).toContain(`name="rotateBy" value="${day}"`);
    const plan = (await visitor.send(`/p/${where}/variables/several`, due)).to ?? "";
    expect((await visitor.page(plan)).html).toContain("NAME_39");
    expect((await visitor.send(plan, await visitor.hidden(plan))).status).toBe(200);
    expect((await visitor.page(`/p/${where}/variables?only=due`)).html).toContain("NAME_39");
    for (const page of [`/keys/${key.id}`, "/keys"]) expect((await visitor.page(page)).status).toBe(200);
    expect((await visitor.page(`/keys/${key.id}`)).html).toContain(`href="/keys/${key.id}/read"`);
    w.clock.nowMs = undefined;
  });
  test("is a trust, too", async () => {
    const { org, visitor } = await furnish(w);
    const terms = { issuer: "https://issuer.example", audience: "keyhole", claims: new Map([["sub", "<b>x</b>"]]) };
    const reach = { organization: org, name: "deploy", projects: ["web"], environments: ["production"] };
    const { trust } = await createTrust(w.admin, { ...reach, ...terms, jwks: undefined });
    const { html } = await visitor.page(`/keys/${trust.id}`);
    expect(html).toContain("https://issuer.example");
    expect(html).toContain("sub=&lt;b>x&lt;/b>");
    expect(html).not.toContain("Rotate it");
    expect((await visitor.send(`/keys/${trust.id}/revoke`, { trust: trust.id, again: "deploy" })).status).toBe(200);
    expect((await showKey(w.admin, trust.id, "trust")).status).toBe("revoked");
    expect((await visitor.page(`/keys/${trust.id}/read`)).html).toContain(
      `Revoked trust ${trust.id} (deploy) of ${org}.`,
    );
    expect((await actionsOn(w, trust.id)).at(-1)).toEqual(["trust.revoke", "ann@host"]);
  });
});

describeBoth("the list of keys and trusts", (w, _, once) => {
  test("shows those in use, and by a link those that never end, were never used, or have ended", async () => {
    const { organization, visitor } = await furnish(w);
    const make = async (name: string, expiresInMs?: number) => (await w.key(organization, { name, expiresInMs })).id;
    await make("endless");
    await make("ending", dayMs);
    const used = await make("used", dayMs);
    await w.sql`insert into key_uses (key_id, last_used_at) values (${used}, ${w.admin.now()})`;
    await revokeKey(w.admin, await make("gone"));
    const damaged = await make("changed", dayMs);
    await w.sql`update api_keys set environments = 1 where id = ${damaged}`;
    const named = async (path: string) => {
      const { html } = await visitor.page(path);
      const [, body = ""] = html.split("<tbody>");
      return ["endless", "ending", "used", "gone", "changed"].filter((name) => body.includes(`<bdi>${name}</bdi>`));
    };
    expect(await named("/keys")).toEqual(["endless", "ending", "used", "changed"]);
    expect(await named("/keys?show=endless")).toEqual(["endless"]);
    expect(await named("/keys?show=unused")).toEqual(["endless", "ending"]);
    expect(await named("/keys?show=ended")).toEqual(["gone"]);
    expect((await visitor.page("/keys?show=toString")).status).toBe(404);
    expect((await visitor.page(`/keys/${damaged}`)).html).toContain("Somebody changed this key with SQL");
  });
  once("has pages of 200 rows, whose filter and order work over all of them", async () => {
    const { org, organization, visitor } = await furnish(w);
    for (let at = 0; at < 203; at++) {
      await w.key(organization, { name: `key ${(at * 7) % 203}` });
    }
    const all = (await listKeys(w.admin)).filter(({ status }) => /active|damaged/.test(status));
    const shown = (html: string) => [
      ...html.matchAll(/<tr data-name="[^"]*"><th scope="row"><a href="\/keys\/([^"]+)"/g),
    ];
    const nextOf = (html: string) => /href="([^"]*)">Next page</.exec(html)?.[1]?.replaceAll("&amp;", "&");
    const walk = async (from: string) => {
      const pages: string[][] = [];
      for (let path: string | undefined = from; path !== undefined; ) {
        const { html } = await visitor.page(path);
        pages.push(shown(html).map(([, id = ""]) => id));
        path = nextOf(html);
      }
      return pages;
    };
    const newest = await walk("/keys");
    expect(newest.map(({ length }) => length)).toEqual([200, all.length - 200]);
    expect(newest.flat()).toEqual(all.map(({ id }) => id).reverse());
    const byName = (await walk("/keys?sort=Name")).flat();
    const names = new Map(all.map(({ id, name }) => [id, name]));
    expect(byName.map((id) => names.get(id) ?? "")).toEqual([...names.values()].sort());
    // The oldest one is on the last page, and found from the first.
    const [oldest] = all.filter(({ organization }) => organization === org);
    const { html } = await visitor.page(`/keys?part=${encodeURIComponent(oldest?.name ?? "")}`);
    expect(shown(html).map(([, id]) => id)).toContain(oldest?.id ?? "");
    expect(html).toContain(`with that in the name, of ${all.length} in all`);
    // A page begins after a key, whatever was made since.
    const after = newest[0]?.at(-1) ?? "";
    await w.key(organization, { name: "newer" });
    const { html: second } = await visitor.page(`/keys?after=${after}`);
    expect(shown(second).map(([, id = ""]) => id)).toEqual(newest[1] ?? []);
    for (const path of ["/keys?after=gone", "/keys?sort=constructor"])
      expect((await visitor.page(path)).status).toBe(404);
  });
  test("knows no key that is not there", async () => {
    const { visitor } = await furnish(w);
    expect((await visitor.page("/keys/0199a3c4-0000-7000-8000-000000000000")).status).toBe(404);
    expect((await visitor.page("/keys/x")).status).toBe(404);
  });
});

describeOnce("the access page", (w) => {
  test("says what to do if nothing reaches the project", async () => {
    const { org, visitor } = await furnish(w);
    const { html } = await visitor.page(`/p/${org}/web/access?environment=production`);
    expect(html).toContain(`No valid key or trust reaches ${org}/web in production.`);
    expect((await visitor.page(`/p/${org}/web/access?environment=qa`)).status).toBe(400);
    const link = /<a href="(\/keys\/new[^"]*)">Create a key</.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect((await visitor.page(link)).html).toMatch(/name="projects" value="web\/[^"]*" checked/);
  });
});
