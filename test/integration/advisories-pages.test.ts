/**
 * Faults that were found in other projects, tried on this one by people. docs/maintainers/proofs-advisories.md lists the
 * advisories with their tests.
 */
import { beforeAll, expect, test } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import { routes } from "../../src/dashboard/routes.ts";
import { startDashboard } from "../../src/dashboard/serve.ts";
import { Sessions } from "../../src/dashboard/sessions.ts";
import { SignIn } from "../../src/dashboard/sign-in.ts";
import { AuditTail } from "../../src/people/audit/audit.ts";
import { createKey } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { everyRight, type Right } from "../../src/serve/access/rights.ts";
import { startOps } from "../../src/serve/process/ops.ts";
import { kinds } from "../support/kinds.ts";
import { type Fields, personsVisitor, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights, removePerson, setAccount, setVariables } from "../support/plans.ts";
import { rawAnswer } from "../support/raw.ts";
import { insertAccounts, stored } from "../support/rows.ts";
import { describeBoth, describeOnce, type World } from "../support/world.ts";

const issuer = "https://id.example";

/** What the port for health answers. */
const readiness = async () => ({ ready: true, draining: false, checks: {}, away: {} });
const answers = { readiness, metrics: async () => "m 1\n" };

/** A person with every right in an organization. */
async function member(w: World, organization: string, name: string) {
  const signIn = { issuer, subject: name };
  await addPerson(w.admin, { name, organization, signIn });
  await grantRights(w.admin, name, { rights: everyRight, projects: null, environments: null });
  return signIn;
}

describeBoth("the faults of others, tried by a person", (w, _, once) => {
  once("CVE-2025-66456: no field of any form reaches a prototype of this process", async () => {
    const { where } = await w.place({ variables: { staging: { A: "1" } } });
    const visitor = await visitorOf(w);
    const prototypes = [Object, Array, Function, String, Map].map(({ prototype }) => prototype);
    const before = prototypes.map((one) => Reflect.ownKeys(one).map(String));
    for (const odd of ["__proto__", "constructor", "prototype", "__proto__[kh]", "constructor[prototype][kh]"]) {
      const named = { name: odd, environment: odd, project: odd, kind: odd, q: odd };
      const fields = { ...named, [odd]: "kh", [`value.${odd}`]: "kh" };
      for (const { method, path } of routes) {
        const filled = path.replace(":org/:project", where).replace(":kind", "variables").replace(/:\w+/, odd);
        if (method === "POST") expect((await visitor.submit(filled, fields)).status).toBeLessThan(500);
        else expect((await visitor.page(`${filled}?${new URLSearchParams(fields)}`)).status).toBeLessThan(500);
      }
    }
    expect(visitor.reported).toEqual([]);
    expect(prototypes.map((one) => Reflect.ownKeys(one).map(String))).toEqual(before);
  });

  once("CVE-2026-31865: a session is in exactly one cookie of its name, whatever else is sent", async () => {
    const { organization, where } = await w.place({ variables: { staging: { NAMED: "1" } } });
    const { subject } = await member(w, organization.slug, "cookie");
    const [sessions, now] = [new Sessions(Date.now), Date.now()];
    const origin = "http://secrets.example";
    const provider = { issuer, clientId: "keyhole", clientSecret: undefined };
    const entrance = { signIn: new SignIn(provider, origin, Date.now, () => {}) };
    const rest = { origin, now: Date.now, used: () => {}, report: () => {} };
    const { handle } = createDashboard({ installation: w.installation, sessions, entrance, ...rest });
    const good = sessions.begin({ issuer, subject, label: subject, groups: [], provedAt: now });
    const ours = `__Host-keyhole=${good}`;
    const alone = [
      ours,
      `__proto__=x; ${ours}`,
      `constructor=x; ${ours}; __proto__=y`,
      `keyhole=x; ${ours}`,
      `a="; ${ours}`,
      `__Host-keyhole-sign-in=${good}; ${ours}`,
    ];
    const twice = [`${ours}; ${ours}`, `${ours}; __Host-keyhole=x`, `__Host-keyhole=x; ${ours}`];
    const others = ["__host-keyhole=", " __Host-keyhole =", "__Host-keyhole-sign-in=", "__Host%2Dkeyhole="];
    const odd = [`__Host-keyhole="${good}"`, `__proto__=${ours}`, `${ours},a=b`, `${ours};a=b`, ""];
    const none = [...twice, ...odd, ...[...others, "__Host-keyhole[0]="].map((name) => `${name}${good}`)];
    for (const cookie of [...alone, ...none]) {
      const isIn = alone.includes(cookie);
      const headers = { host: new URL(origin).host, cookie };
      const answer = await handle(new Request(`${origin}/p/${where}/variables`, { headers }));
      const told = [cookie, answer.status, (await answer.text()).includes("NAMED")];
      expect(told).toEqual([cookie, isIn ? 200 : 401, isIn]);
    }
  });

  test("CVE-2026-43911: whoever follows the audit gets no entry after they were removed", async () => {
    const { organization } = await w.place();
    const name = "follower";
    const signIn = await member(w, organization.slug, name);
    const entrance = new SignIn({ issuer, clientId: "keyhole", clientSecret: undefined }, issuer, Date.now, () => {});
    const identity = { ...signIn, label: name, groups: [], provedAt: 0 };
    const admin = { ...w.admin, ...(await entrance.whoIs(w.admin, identity)) };
    const tail = new AuditTail(admin, {}, () => {});
    await tail.newest(10);
    await createProject(w.admin, `${organization.slug}/one`, {});
    expect((await Array.fromAsync(tail.news())).flat().map(({ action }) => action)).toContain("project.create");
    await removePerson(w.admin, name);
    await createProject(w.admin, `${organization.slug}/two`, {});
    await expect(Array.fromAsync(tail.news())).rejects.toMatchObject({ name: "Refused" });
  });

  once("CVE-2025-64761, CVE-2025-5999: names that look alike are different names, or none", async () => {
    const alike = "Root|ROOT|root | root|root\u00a0|ｒｏｏｔ|rооt|root\u200b|ro\u0301ot|root.".split("|");
    const organization = (await w.organization()).slug;
    const signIn = { issuer, subject: "root" };
    await addPerson(w.admin, { name: "root", organization, signIn });
    await createOrganization(w.admin, { slug: "root", plan: "pro" });
    const { where } = await w.project(await w.organization(), "root");
    for (const name of alike) {
      const invalid = { kind: "invalid" };
      if (name !== "root.")
        await expect(addPerson(w.admin, { name, organization, signIn: null })).rejects.toMatchObject(invalid);
      await expect(createOrganization(w.admin, { slug: name, plan: "pro" })).rejects.toMatchObject(invalid);
      await expect(createProject(w.admin, `${organization}/${name}`, {})).rejects.toMatchObject(invalid);
      // Another subject is another person, who has no rights.
      const visitor = personsVisitor(w, { issuer, subject: name });
      expect((await visitor.page("/")).html).toContain("keyhole person add NAME");
      // Accounts may have any name: each its own.
      await setAccount(w.admin, where, name, ["staging"], { of: name });
    }
    const visitor = await visitorOf(w);
    for (const name of alike) {
      const shown = await visitor.send(`/p/${where}/accounts/reveal`, { name, environment: "staging" });
      expect([name, shown.secret]).toEqual([name, expect.stringContaining(name)]);
    }
    const none = await visitor.send(`/p/${where}/accounts/reveal`, { name: "root", environment: "staging" });
    expect(none.status).toBe(404);
  });

  once("CVE-2026-44902: no request to the pages or to the port for health ends the process or fails", async () => {
    const failures: unknown[] = [];
    const report = (error: unknown) => failures.push(error);
    const dashboard = startDashboard(w.installation, { port: 0, actor: "ann@host", report });
    const ops = startOps({ host: "127.0.0.1", port: 0 }, answers);
    const odd = "//[ //[::1 http://[ http:// // * % /% /%zz /%ff /\\ ? /?% :80 /# http://x:99999/metrics";
    const targets = odd.split(" ");
    targets.push("http://user@x/metrics", `/${"a".repeat(14_000)}`, `/?${"%".repeat(14_000)}`, "metrics");
    for (const { port } of [new URL(dashboard.origin), new URL(ops.origin)]) {
      for (const target of targets) {
        for (const host of ["Host: x", "Host: [", "Host:", "Host: a b", "X: y", "Host: x\r\nHost: y"]) {
          for (const method of ["GET", "POST", "OPTIONS", "TRACE"]) {
            const text = `${method} ${target} HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`;
            const answer = await rawAnswer(Number(port), text);
            expect([target, host, answer]).toEqual([target, host, expect.stringMatching(/^(HTTP\/1\.1 [24]\d\d |$)/)]);
          }
        }
      }
    }
    expect((await fetch(`${ops.origin}/metrics`)).status).toBe(200);
    expect((await fetch(`${dashboard.origin}/`)).status).toBe(401);
    expect(failures).toEqual([]);
    dashboard.stop();
    await dashboard.stopped;
    await ops.stop();
  });

  once("GHSA-w48q-cv73-mx4w: the port for health answers to no name that was rebound to this machine", async () => {
    const asked = async (host: string, name: string) => {
      const ops = startOps({ host, port: 0 }, answers);
      const text = `GET /metrics HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`;
      const answer = await rawAnswer(Number(new URL(ops.origin).port), text);
      await ops.stop();
      return answer.split(" ")[1];
    };
    const rebound = ["evil.example", "evil.example:9100", "127.0.0.1.evil.example", "localhost@evil.example"];
    for (const name of [...rebound, "localhost.evil.example"]) {
      expect([name, await asked("127.0.0.1", name)]).toEqual([name, "421"]);
    }
    for (const name of ["127.0.0.1:9100", "localhost", "LOCALHOST:9100", "10.0.0.7:9100", "[::1]:9100"]) {
      expect([name, await asked("127.0.0.1", name)]).toEqual([name, "200"]);
    }
    // On a network, Prometheus asks by name.
    expect(await asked("0.0.0.0", "keyhole.internal:9100")).toBe("200");
  });
});

// In a world of its own, so that the rows are those of its pages.
describeOnce("CVE-2026-22028: an object from the database is text on a page, or the page refuses", (w) => {
  const odd = { type: "pwned", key: null, ref: null, props: { children: "x" }, constructor: null };
  const node = JSON.stringify({ ...odd, __k: null, __v: 1 });
  let pages: readonly string[];
  beforeAll(async () => {
    const { organization, where, project } = await w.place({ variables: { staging: { A: "1", B: "2" } } });
    await member(w, organization.slug, "of-the-roster");
    const key = await w.key(organization);
    const asked = { environment: "staging", name: "WANTED", reason: "r" } as const;
    const request = await w.request(organization.id, key.id, project, asked);
    pages = [
      ...["/", "/audit", "/keys", `/keys/${key.id}`, "/requests", `/requests/${request}`, "/projects", "/find?q=a"],
      ...["/persons", "/persons/of-the-roster"],
      ...["", "/variables", "/variables/item?name=A", "/history", "/access"].map((page) => `/p/${where}${page}`),
    ];
  });
  /** A JSON text with an object in the place of each text in it, one after the other. */
  const poisoned = (text: string) =>
    [...text.matchAll(/"(?:[^"\\]|\\.)*"(?!\s*:)/g)].map(({ index, 0: found }) => {
      return text.slice(0, index) + node + text.slice(index + found.length);
    });
  test.each([
    ...["audit_segments.entries", "sets.listing", "set_versions.actor", "set_versions.names"],
    ...["variable_requests.reason", "variable_requests.name", "api_keys.name", "projects.name"],
    ...["organizations.name", "projects.variable_counts", "projects.changed_at", "rosters.listing"],
  ])("in %s", async (place) => {
    const [table = "", column = ""] = place.split(".");
    const visitor = await visitorOf(w);
    // The longest text: it has names in it.
    const longest = `select cast(${column} as text) as text from ${table} order by length(cast(${column} as text)) desc, 1`;
    const text = (await w.run(`${longest} limit 1`))[0]?.["text"] as string;
    expect(text).toBeString();
    for (const bad of [node, ...(/^[[{]/.test(text) ? poisoned(text).slice(0, 9) : [])]) {
      await w.run(`update ${table} set ${column} = ? where ${column} = ?`, [bad, text]);
      const found = await Promise.all(pages.map((page) => visitor.page(page)));
      const told = found.map(({ status, html }) => [status === 500, html.includes("<pwned")]);
      expect(told).toEqual(pages.map(() => [false, false]));
      await w.run(`update ${table} set ${column} = ? where ${column} = ?`, [text, bad]);
    }
  });
});

describeOnce("the incident at Vercel of April 2026: a stolen session, half an hour after its sign-in", (w) => {
  const freshMs = 30 * 60_000;
  /** Without use, it would be ten minutes. */
  const keepAtWork = async (signedInAt: number, ...visitors: readonly Visitor[]) => {
    for (const minutes of [9, 18, 26]) {
      w.clock.nowMs = signedInAt + minutes * 60_000;
      for (const visitor of visitors) await visitor.page("/me");
    }
  };
  /** Two projects that differ only in a value of production, which in the first is the same as in staging. */
  const furnish = async () => {
    w.clock.nowMs = Date.now();
    const organization = await w.organization();
    for (const [slug, live] of [
      ["twin-a", "canary-one"],
      ["twin-b", "canary-two"],
    ] as const) {
      const variables = { staging: { A: "canary-one", B: "canary-three" }, production: { A: live } };
      const placed = await w.project(organization, slug, { variables });
      await insertAccounts(w, placed, ["A"], ["staging"], () => "canary-one");
      await insertAccounts(w, placed, ["A"], ["production"], () => live);
      const entries = Object.entries({ A: live, C: "canary-four" }).map(([name, value]) => ({ name, value }));
      await setVariables(w.admin, placed.where, "production", entries);
    }
    const signIn = await member(w, organization.slug, `thief-${organization.slug}`);
    await member(w, organization.slug, `other-${organization.slug}`);
    const signedInAt = Date.now();
    w.clock.nowMs = signedInAt;
    const [visitor, another] = [personsVisitor(w, signIn), personsVisitor(w, signIn)];
    return { org: organization.slug, visitor, another, signedInAt };
  };
  test("learns from no page what a value of production is, or what it is the same as", async () => {
    const { org, visitor, signedInAt } = await furnish();
    const asked = { name: "A", environment: "production", from: "staging", version: "2", q: "a" };
    const pages = routes
      .filter(({ method, path }) => method === "GET" && path.includes(":project"))
      .flatMap(({ path }) => (path.includes(":kind") ? kinds : ["variables"]).map((kind) => [path, kind] as const));
    const read = async (path: string, kind: string, project: string) => {
      const named = path.replace(":org", org).replace(":project", project);
      const filled = named.replace(":kind", kind).replace(":draft", "x");
      const to = path.endsWith("undo") ? "1" : "production";
      const { status, html } = await visitor.page(`${filled}?${new URLSearchParams({ ...asked, kind, to })}`);
      return `${status} ${html.replaceAll(project, "twin").replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "id")}`;
    };
    /** The pages that differ between the twins. */
    const telling = async () => {
      const found: string[] = [];
      for (const [path, kind] of pages) {
        if ((await read(path, kind, "twin-a")) !== (await read(path, kind, "twin-b"))) found.push(`${path} ${kind}`);
      }
      return found;
    };
    await keepAtWork(signedInAt, visitor);
    w.clock.nowMs = signedInAt + freshMs - 1;
    const comparing = ["/p/:org/:project/variables/promote variables"];
    expect(await telling()).toEqual(comparing); // so this test sees what tells
    w.clock.nowMs = signedInAt + freshMs;
    expect(await telling()).toEqual([]);
    w.clock.nowMs = undefined;
  });

  test("uses no value of production, and changes no key for it and no right in it", async () => {
    const { org, visitor, another, signedInAt } = await furnish();
    const asked = { organization: org, name: "ci", projects: null, environments: null };
    const { id, expiresAt } = await createKey(w.admin, asked);
    const [a, b] = [`/p/${org}/twin-a`, `/p/${org}/twin-b`];
    const copyFrom = "variables/promote?from=production&to=staging";
    const formOf = async (page: string) => (await visitor.form(page, page.split("?")[0] ?? "")) as Fields;
    const copied = { ...(await formOf(`${a}/${copyFrom}`)), names: "C" };
    const back = "undo?kind=variables&environment=production&to=2";
    const undone = { ...(await formOf(`${a}/${back}`)), again: `${org}/twin-a` };
    const pasting = { environment: "production", text: "A=canary-two" };
    const reach = { reach: "all", environments: "production", resources: "variables", surfaces: "rest_api" };
    const key = { ...reach, org, name: "new", expires: "never" };
    const other = `/persons/other-${org}`;
    const right = { deed: "give", rights: "see", place: org, environments: "production", lasts: "for 1 hour" };
    const shown = await visitor.form(`${other}?${new URLSearchParams(right)}`, `${other}/rights`);
    const given = { ...shown, again: `other-${org}` };
    // A plan lives for five minutes.
    await keepAtWork(signedInAt, visitor, another);
    const planned = { ...(await formOf(`${b}/${copyFrom}`)), names: "C" };
    const { to: copyPlan = "" } = await visitor.send(`${b}/variables/promote`, planned);
    const copyForm = await visitor.hidden(copyPlan);
    const { to: pastePlan = "" } = await another.send(`${b}/variables/paste`, pasting);
    const uses: Readonly<Record<string, () => Promise<{ readonly status: number }>>> = {
      "POST /p/:org/:project/:kind/reveal": () =>
        visitor.send(`${a}/variables/reveal`, { name: "A", environment: "production" }),
      "POST /p/:org/:project/:kind/compare": () => visitor.submit(`${a}/variables/compare`, {}),
      "GET /p/:org/:project/variables/promote": () => visitor.page(`${a}/${copyFrom}`),
      "GET /p/:org/:project/variables/promote/:draft": () => visitor.page(copyPlan),
      "POST /p/:org/:project/variables/promote/:draft": () => visitor.send(copyPlan, copyForm),
      "POST /p/:org/:project/variables/promote": () => visitor.send(`${a}/variables/promote`, copied),
      "GET /p/:org/:project/variables/paste/:draft": () => another.page(pastePlan),
      "POST /p/:org/:project/variables/paste": () => another.send(`${b}/variables/paste`, pasting),
      "GET /p/:org/:project/variables/text": () => visitor.page(`${a}/variables/text?environment=production`),
      "POST /p/:org/:project/variables/text": () => visitor.send(`${a}/variables/text`, { environment: "production" }),
      "GET /p/:org/:project/undo": () => visitor.page(`${a}/${back}`),
      "POST /p/:org/:project/undo": () => visitor.send(`${a}/undo`, undone),
      "POST /persons/:name/rights": () => visitor.send(`${other}/rights`, given),
      "POST /keys": () => visitor.send("/keys", key),
      "POST /keys/:id/rotate": () =>
        visitor.send(`/keys/${id}/rotate`, { key: id, overlap: "24 hours", expiresAt: expiresAt ?? 0 }),
      "POST /keys/:id/revoke": () => visitor.send(`/keys/${id}/revoke`, { key: id, again: "ci" }),
    };
    // A new page that may show a value, or change a key or a right, needs a line above. Find posts only so that no key that is
    // typed there is in an address.
    const mayUse = routes.filter(({ isSecret, method, path, rights }) => {
      const isFor = (right: Right) => rights !== everyRight && rights.includes(right);
      const mayChange = isFor("keys") || isFor("grant");
      return isSecret || isFor("reveal") || (method === "POST" && path !== "/find" && mayChange);
    });
    expect(mayUse.map(({ method, path }) => `${method} ${path}`).filter((one) => uses[one] === undefined)).toEqual([]);
    const statusesAt = async (now: number) => {
      w.clock.nowMs = now;
      const used = await Array.fromAsync(Object.entries(uses), async ([route, use]) => [route, (await use()).status]);
      return Object.fromEntries(used);
    };
    const all = (status: number) => Object.fromEntries(Object.keys(uses).map((route) => [route, status]));
    const before = await stored(w);
    expect(await statusesAt(signedInAt + freshMs)).toEqual(all(401));
    expect(await stored(w)).toBe(before);
    expect(await statusesAt(signedInAt + freshMs - 1)).toEqual(all(200));
    w.clock.nowMs = undefined;
  });
});
