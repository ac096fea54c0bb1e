import { afterAll, beforeAll, expect, test } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import { Attempts } from "../../src/dashboard/attempts.ts";
import { Sessions } from "../../src/dashboard/sessions.ts";
import { SignIn } from "../../src/dashboard/sign-in.ts";
import { listKeys } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { type Claims, clientId, startProvider } from "../support/identity-provider.ts";
import { grantRights, removePerson, revokeRights, setVariables } from "../support/plans.ts";
import { describeBoth } from "../support/world.ts";

/* Signing in, attacked: a provider whose every answer a test can change, and browsers that are only their cookies. */

const origin = "https://secrets.example";
/** A proxy with TLS hands requests on without it. */
const behindProxy = "http://secrets.example";
/** A browser: its cookies, and what it is answered. */
function browserOn(handle: (request: Request) => Response | Promise<Response>) {
  const cookies = new Map<string, string>();
  const strict = new Set<string>();
  const ask = async (path: string, init: RequestInit = {}, isFromElsewhere = false) => {
    const sent = [...cookies].filter(([name]) => !(isFromElsewhere && strict.has(name)));
    const cookie = sent.map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { host: new URL(origin).host, cookie, ...(init.headers as Record<string, string>) };
    const answer = await handle(new Request(`${behindProxy}${path}`, { ...init, headers }));
    for (const line of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes("SameSite=Strict")) strict.add(name);
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const [text, location] = [await answer.text(), answer.headers.get("location")];
    // A value leaves as the answer to the form that reveals it, alone.
    if (!path.endsWith("/variables/reveal") || answer.status !== 200) expect(text).not.toContain("parrot");
    return { status: answer.status, text, location, cookies: answer.headers.getSetCookie() };
  };
  const sendAll = (path: string, body: URLSearchParams | ReadableStream) => {
    const type = "application/x-www-form-urlencoded";
    const headers = { origin, "sec-fetch-site": "same-origin", accept: "application/json", "content-type": type };
    return ask(path, { method: "POST", headers, body });
  };
  const send = (path: string, fields: Record<string, string>) => sendAll(path, new URLSearchParams(fields));
  const get = (path: string, headers: Record<string, string> = {}) => ask(path, { headers });
  /** By a redirect of another site. */
  const come = (path: string) => ask(path, {}, true);
  return { cookies, get, come, send, sendAll };
}

describeBoth("signing in to a team's dashboard", (w, dialect) => {
  let provider: ReturnType<typeof startProvider>;
  let app: ReturnType<typeof createDashboard>;
  let signIn: SignIn;
  let where = "";
  const reported: unknown[] = [];
  const now = () => w.clock.nowMs ?? Date.now();
  const newSignIn = (issuer = provider.url) =>
    new SignIn({ issuer, clientId, clientSecret: undefined }, origin, now, (error) => reported.push(error));
  beforeAll(async () => {
    provider = startProvider();
    signIn = newSignIn();
    const door = {
      installation: w.installation,
      sessions: new Sessions(now),
      entrance: { signIn },
      origin,
      now,
      used: () => {},
      report: (error: unknown) => reported.push(error),
    };
    app = createDashboard(door);
    const values = { staging: { API_TOKEN: "parrot-staging" }, production: { API_TOKEN: "parrot-live" } };
    where = (await w.place({ variables: values })).where;
    await add("ana", ["see", "reveal"]);
    const organization = where.split("/")[0] as string;
    await addPerson(w.admin, { name: "leads", organization, signIn: { issuer: null, group: "leads" } });
    await grantRights(w.admin, "leads", { rights: ["see", "audit"], projects: null, environments: null });
  });
  afterAll(() => provider.stop());

  const inWeb = (rights: readonly string[]) => ({ rights, projects: ["web"], environments: null });
  /** Adds a person with these rights in the project, whom the provider knows as NAME-1. */
  const add = async (name: string, rights: readonly string[], issuer = provider.url) => {
    const signIn = { issuer, subject: `${name}-1` };
    await addPerson(w.admin, { name, organization: where.split("/")[0] as string, signIn });
    await grantRights(w.admin, name, inWeb(rights));
    return signIn;
  };
  const browser = () => browserOn((request) => app.handle(request));
  type Browser = ReturnType<typeof browser>;

  /** Begins to sign in. @returns what the provider was asked for */
  const begin = async (one: Browser, path = "/sign-in", referer?: string) => {
    const { status, location } = await one.get(path, referer === undefined ? {} : { referer });
    expect(status).toBe(303);
    const asked = new URL(location ?? "").searchParams;
    provider.nonce = asked.get("nonce") ?? "";
    return asked;
  };
  const back = (one: Browser, asked: URLSearchParams, changed: Record<string, string> = {}) =>
    one.come(
      `/signed-in?${new URLSearchParams({ code: "c", state: asked.get("state") ?? "", iss: provider.url, ...changed })}`,
    );
  const withClaims = async <T>(
    change: Partial<Pick<typeof provider, "claims" | "header" | "signedBy" | "isAway">>,
    work: () => Promise<T>,
  ) => {
    const { claims, header, signedBy, isAway } = provider;
    Object.assign(provider, change);
    try {
      return await work();
    } finally {
      Object.assign(provider, { claims, header, signedBy, isAway });
    }
  };
  const signedIn = async (claims: Claims = {}, path = "/sign-in") => {
    const one = browser();
    await withClaims({ claims }, async () => expect((await back(one, await begin(one, path))).status).toBe(200));
    return one;
  };
  const reveal = (one: Browser, environment: string) =>
    one.send(`/p/${where}/variables/reveal`, { name: "API_TOKEN", environment });

  test("asks for what protects it, and gives a strict cookie with a page that goes on by itself", async () => {
    const one = browser();
    expect((await one.get("/")).text).toContain('href="/sign-in"');
    const asked = await begin(one);
    expect(Object.fromEntries(asked)).toMatchObject({
      client_id: clientId,
      response_type: "code",
      redirect_uri: `${origin}/signed-in`,
      code_challenge_method: "S256",
    });
    const answer = await back(one, asked);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('content="0;url=/"');
    expect(answer.cookies.find((line) => line.startsWith("__Host-keyhole="))).toMatch(
      /; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    );
    expect((await one.get(`/p/${where}/variables`)).text).toContain("API_TOKEN");
    expect(JSON.parse((await reveal(one, "production")).text)).toEqual({ secret: "parrot-live" });
    const [entry] = await w.sql`select * from audit_entries where action = ${"variables.reveal"} order by seq desc`;
    expect(entry).toMatchObject({ actor: "ana" });
    expect(JSON.parse(String(entry?.["actor_from"]))).toEqual({ issuer: provider.url, subject: "ana-1" });
  });

  test("takes rights away at the next request", async () => {
    await add("cyd", ["see", "reveal"]);
    const cyd = await signedIn({ sub: "cyd-1" });
    expect((await reveal(cyd, "staging")).status).toBe(200);
    await revokeRights(w.admin, "cyd", inWeb(["reveal"]));
    expect((await reveal(cyd, "staging")).status).toBe(404);
    expect((await cyd.get(`/p/${where}/variables`)).status).toBe(200);
    await removePerson(w.admin, "cyd");
    expect((await cyd.get(`/p/${where}/variables`)).status).toBe(403);
  });

  test("makes no change that waited until rights were taken", async () => {
    const eli = { ...(await add("eli", ["see", "write"])), label: "eli", groups: [], provedAt: now() };
    const asked = { ...w.admin, ...(await newSignIn().whoIs(w.admin, eli)) };
    const write = () => setVariables(asked, where, "staging", [{ name: "LATE", value: "1" }]);
    await revokeRights(w.admin, "eli", inWeb(["write"]));
    await expect(write()).rejects.toMatchObject({ kind: "conflict" });
    await grantRights(w.admin, "eli", inWeb(["write"]));
    await write();
  });

  test("answers 503 while the list of people fails verification", async () => {
    const ana = await signedIn();
    await grantRights(w.admin, "ana", inWeb(["audit"]));
    await w.run("delete from rosters where version = (select max(version) from rosters)");
    const answer = await ana.get("/");
    expect(answer.status).toBe(503);
    expect(answer.text).toContain("failed verification");
    expect((await reveal(ana, "staging")).status).toBe(503);
    await grantRights(w.admin, "ana", inWeb(["see"]), { asTheyAre: true });
    expect((await ana.get("/")).status).toBe(200);
  });

  // Whatever signing in asks the database, that is in the above.
  if (dialect === "postgres") return;

  test("returns to the page that was asked for, and only to one of our own", async () => {
    const deep = `/p/${where}/variables/item?name=A%26B&x=%22%3E`;
    const pages = [
      [`${origin}${deep}`, deep],
      [`${origin}/audit?name=API_TOKEN`, "/audit?name=API_TOKEN"],
      [`${origin}/`, "/"],
      [undefined, "/"],
      // Another site, or one that looks like ours.
      [`https://evil.example${deep}`, "/"],
      [`${origin}.evil.example${deep}`, "/"],
      [`${behindProxy}${deep}`, "/"],
      // A path that a browser would take for a host, and paths that are no page.
      [`${origin}//evil.example/audit`, "/"],
      [`${origin}/\\evil.example/audit`, "/"],
      [`${origin}/signed-in?code=c`, "/"],
      [`${origin}/p/${where}/variables/reveal`, "/"],
      // What no cookie holds.
      [`${origin}/audit?name=${"x".repeat(4000)}`, "/"],
    ] as const;
    for (const [referer, page] of pages) {
      const one = browser();
      const asked = await begin(one, "/sign-in", referer);
      expect(one.cookies.get("__Host-keyhole-sign-in")?.length).toBeLessThan(4000);
      const { status, text } = await back(one, asked);
      const to = /content="0;url=([^"]*)"/.exec(text)?.[1]?.replaceAll("&amp;", "&").replaceAll("&quot;", '"');
      expect([referer, status, to]).toEqual([referer, 200, page]);
      expect(decodeURIComponent(asked.toString())).not.toContain("/audit");
      expect(asked.get("redirect_uri")).toBe(`${origin}/signed-in`);
    }
  });

  test("goes on by itself to a page that another site links to, once, and then shows how to sign in", async () => {
    const ana = await signedIn();
    const page = `/p/${where}/variables?x=1&y`;
    const onwards = async (headers: Record<string, string>, path = page, one: Browser = browser()) => {
      const { status, text, cookies } = await one.get(path, headers);
      expect([text.includes("API_TOKEN"), cookies]).toEqual([false, []]);
      return [status, /content="0;url=([^"]*)"/.exec(text)?.[1]];
    };
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    const goesOn = [200, page.replace("&", "&amp;")];
    expect(await onwards(link)).toEqual(goesOn);
    expect(await onwards(link, "/")).toEqual([200, "/"]);
    // The request of that page: with the cookie it is answered, without one nothing goes on again.
    const own = { ...link, "sec-fetch-site": "same-origin" };
    expect((await ana.get(page, own)).text).toContain("API_TOKEN");
    for (const headers of [
      ...[{}, own, { ...link, "sec-fetch-mode": "no-cors" }],
      ...["same-site", "none"].map((site) => ({ ...link, "sec-fetch-site": site })),
      ...["iframe", "embed", "image", "empty"].map((dest) => ({ ...link, "sec-fetch-dest": dest })),
    ]) {
      expect([headers, await onwards(headers)]).toEqual([headers, [401, undefined]]);
    }
    for (const path of ["//evil.example/audit", "/nothing", "/p/a/b/variables/reveal"]) {
      expect([path, await onwards(link, path)]).toEqual([path, [401, undefined]]);
    }
    const headers = { ...link, host: "secrets.example" };
    const post = new Request(`${behindProxy}/projects`, { method: "POST", headers });
    expect((await app.handle(post)).status).toBe(403);
  });

  const told = (error_description: string) => ({ error: "access_denied", error_description });
  test.each<[string, Record<string, string>]>([
    ["another state", { state: "x" }],
    ["another issuer", { iss: "https://evil.example" }],
    // CVE-2026-33758: nothing of it is on the page. No page may have a parrot.
    ["an error of the provider", told("<script>parrot</script>")],
    ["an error that is markup", { error: "<script>parrot</script>", error_uri: "javascript:parrot" }],
    ["an error with line breaks", { error: "parrot\r\nSet-Cookie: parrot=1", error_description: "\r\n\r\nparrot" }],
    ["an error of 14 KiB", told("parrot<b>".repeat(1600))],
  ])("signs nobody in with %s in the answer", async (_, changed) => {
    const one = browser();
    const answer = await back(one, await begin(one), changed);
    expect([answer.status, one.cookies.size, answer.location]).toEqual([403, 0, null]);
    expect(answer.text).toContain("The identity provider did not sign you in.");
    expect(JSON.stringify(answer.cookies)).not.toContain("parrot");
    expect((await one.get("/")).status).toBe(401);
  });

  test("finds a person by issuer and subject alone: an equal address, name or group of other spelling is nobody", async () => {
    // CVE-2026-47164. In its provider's eyes, whoever comes may call themselves anything.
    const labels = ["email", "preferred_username", "name", "nickname", "upn", "unique_name"];
    const asAna = Object.fromEntries(labels.map((one) => [one, "ana-1"]));
    for (const claims of [
      { sub: "eve-9", ...asAna, email_verified: true },
      ...["Ana-1", "ana-1 ", "ANA-1", "аna-1"].map((sub) => ({ sub, ...asAna })),
      ...["Leads", "leads ", "ｌｅａｄｓ", "LEADS"].map((one) => ({
        sub: "eve-9",
        groups: [one, [one], { leads: true }],
      })),
    ]) {
      const eve = await signedIn(claims);
      const { status, text } = await eve.get(`/p/${where}/variables`);
      expect([claims, status, text.includes("API_TOKEN")]).toEqual([claims, 403, false]);
    }
    // The subject of another issuer of the same host.
    await add("fay", ["see"], `${provider.url}/other`);
    expect((await (await signedIn({ sub: "fay-1" })).get(`/p/${where}/variables`)).status).toBe(403);
  });

  test("signs nobody in without the issuer in the answer, which this provider promises", async () => {
    const one = browser();
    const asked = await begin(one);
    const answer = await one.get(`/signed-in?${new URLSearchParams({ code: "c", state: asked.get("state") ?? "" })}`);
    expect([answer.status, one.cookies.size]).toEqual([403, 0]);
  });

  test.each([
    ["of another issuer", { claims: { iss: "https://evil.example" } }],
    ["for another client", { claims: { aud: "another" } }],
    ["with another nonce", { claims: { nonce: "x" } }],
    ["without a nonce", { claims: { nonce: undefined } }],
    ["that has expired", { claims: { exp: 1 } }],
    ["without a subject", { claims: { sub: undefined } }],
    ["signed by another key", { signedBy: "other" }],
    ["that is not signed", { header: { alg: "none" } }],
    ["signed with the client's id as a secret", { header: { alg: "HS256" } }],
  ])("signs nobody in with an ID token %s", async (_, change) => {
    const one = browser();
    const asked = await begin(one);
    const changed = "signedBy" in change ? { signedBy: provider.other } : change;
    const answer = await withClaims(changed as never, () => back(one, asked));
    expect([answer.status, one.cookies.size]).toEqual([403, 0]);
    expect((await one.get("/")).status).toBe(401);
  });

  test("takes an answer once, in the browser that asked, within ten minutes", async () => {
    const one = browser();
    const asked = await begin(one);
    const cookie = one.cookies.get("__Host-keyhole-sign-in") as string;
    const foreign = browser();
    expect((await back(foreign, asked)).status).toBe(403);
    expect((await back(one, asked)).status).toBe(200);
    one.cookies.set("__Host-keyhole-sign-in", cookie);
    expect((await back(one, asked)).status).toBe(403);
    // Somebody else's attempt, begun in this browser: what CSRF against a sign-in needs.
    const victim = browser();
    await begin(victim);
    const attacker = browser();
    const theirs = await begin(attacker);
    expect((await back(victim, theirs)).status).toBe(403);
    const clock = { nowMs: 1_800_000_000_000 };
    const attempts = new Attempts(() => clock.nowMs);
    const random = { state: "a", nonce: "b", verifier: "c" };
    const attempt = { ...random, again: false, session: "d", page: "/", startedAt: clock.nowMs };
    const sealed = await attempts.seal(attempt);
    clock.nowMs += 10 * 60_000 - 1;
    expect(await attempts.open(sealed)).toEqual(attempt);
    clock.nowMs += 1;
    expect(await attempts.open(sealed)).toBeUndefined();
  });

  test("lets nobody be pushed out by strangers who begin to sign in", async () => {
    const one = browser();
    const asked = await begin(one);
    const { nonce } = provider;
    for (
      let n = 0;
      n < 10_100;
      n++ // CVE-2026-5807
    )
      await signIn.begin(false, undefined, "/");
    provider.nonce = nonce;
    expect((await back(one, asked)).status).toBe(200);
  });

  test("takes no attempt that a browser made up, changed or began at another process", async () => {
    const one = browser();
    const asked = await begin(one);
    const cookie = one.cookies.get("__Host-keyhole-sign-in") as string;
    const { cookie: ofAnother } = await newSignIn().begin(false, undefined, "/");
    const [header = "", , nonce = "", text = "", tag = ""] = cookie.split(".");
    const made = Buffer.from(JSON.stringify({ state: asked.get("state"), startedAt: now() })).toString("base64url");
    const changed = (text.startsWith("A") ? "B" : "A") + text.slice(1);
    const wrongs = ["", made, ofAnother, cookie.slice(0, -2), [header, "", nonce, changed, tag].join(".")];
    for (const wrong of wrongs) {
      const eve = browser();
      eve.cookies.set("__Host-keyhole-sign-in", wrong);
      expect([wrong, (await back(eve, asked)).status]).toEqual([wrong, 403]);
    }
    expect(Buffer.from(text, "base64url").toString("latin1")).not.toContain(asked.get("state") as string);
    expect((await back(one, asked)).status).toBe(200);
  });

  test("gives a new session at each sign-in, and ends the one before", async () => {
    const one = browser();
    one.cookies.set("__Host-keyhole", "planted-by-somebody-else-0000000000000000000");
    await back(one, await begin(one));
    const first = one.cookies.get("__Host-keyhole") as string;
    expect(first).not.toContain("planted");
    await back(one, await begin(one));
    const second = one.cookies.get("__Host-keyhole") as string;
    expect(second).not.toBe(first);
    const old = browser();
    old.cookies.set("__Host-keyhole", first);
    expect((await old.get("/")).status).toBe(401);
  });

  test("gives whoever is in a group its rights, as long as the provider says so, and nobody more", async () => {
    const lead = await signedIn({ sub: "lee-7", groups: ["leads", "everybody"], email: "lee@example.com" });
    const audit = await lead.get("/audit");
    expect([audit.status, audit.text.includes("lee@example.com")]).toEqual([200, true]);
    expect((await reveal(lead, "staging")).status).toBe(404);
    const former = await signedIn({ sub: "lee-7", groups: ["everybody"] });
    expect((await former.get("/audit")).status).toBe(403); // without any right
    const both = await signedIn({ sub: "ana-1", groups: ["leads"] });
    expect((await both.get("/audit")).status).toBe(200);
    // One text is one name, and never several: some providers send it for a single group.
    for (const [groups, status] of [
      ["leads", 200],
      ["leads,staff", 404],
      ["leads staff", 404],
      ["my-leads", 404],
    ] as const) {
      const ana = await signedIn({ sub: "ana-1", groups });
      expect([groups, (await ana.get("/audit")).status]).toEqual([groups, status]);
    }
  });

  test("shows who has no rights who they are and what to send to an operator, and nothing else", async () => {
    // The provider lets whoever comes choose this text: it is Ana's subject.
    const eve = await signedIn({ sub: "e'v$e", email: "ana-1" });
    for (const path of ["/", "/projects", "/keys", "/requests", "/audit", `/p/${where}/variables`, "/audit/export"]) {
      const answer = await eve.get(path);
      expect([path, answer.status]).toEqual([path, 403]);
      expect(answer.text).toContain("keyhole person add NAME --issuer");
      expect(answer.text).not.toContain("API_TOKEN");
    }
    expect((await reveal(eve, "staging")).status).toBe(403);
  });

  test("judges a slow form when all of it is there", async () => {
    await add("dee", ["see", "reveal", "keys"]);
    const dee = await signedIn({ sub: "dee-1" });
    const [begun, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const reach = { reach: "some", projects: "web", environments: "staging", resources: "variables" };
    const own = { org: where.split("/")[0] as string, name: "too-late", surfaces: "rest_api", expires: "never" };
    const body = new ReadableStream(
      {
        pull: async (controller) => {
          begun.resolve();
          await rest.promise;
          controller.enqueue(Buffer.from(new URLSearchParams({ ...own, ...reach }).toString()));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const answer = dee.sendAll("/keys", body);
    await begun.promise;
    await removePerson(w.admin, "dee");
    rest.resolve();
    expect((await answer).status).toBe(403);
    expect((await listKeys(w.admin)).map(({ name }) => name)).not.toContain("too-late");
  });

  test("asks for a new sign-in before a value of production is shown, and believes only the provider's word", async () => {
    const old = Math.floor(Date.now() / 1000) - 11 * 60;
    const ana = await signedIn({ auth_time: old });
    expect((await reveal(ana, "staging")).status).toBe(200);
    const refused = await reveal(ana, "production");
    expect(refused.status).toBe(401);
    expect(JSON.parse(refused.text)).toMatchObject({ again: "/sign-in?again" });
    const entries = () =>
      w.run("select * from audit_entries where action = 'variables.reveal' and environment = 'production'");
    const before = (await entries()).length;
    const asked = await begin(ana, "/sign-in?again");
    expect(Object.fromEntries(asked)).toMatchObject({ prompt: "login", max_age: "0" });
    // A provider that ignores max_age does not pass.
    expect((await withClaims({ claims: { auth_time: old } }, () => back(ana, asked))).status).toBe(403);
    const again = await begin(ana, "/sign-in?again");
    expect((await back(ana, again)).status).toBe(200);
    expect((await reveal(ana, "production")).status).toBe(200);
    const silent = await signedIn({ auth_time: undefined });
    expect((await reveal(silent, "production")).status).toBe(401);
    expect(await entries()).toHaveLength(before + 1);
  });

  test.each([
    ["an hour", (now: number) => ({ auth_time: now + 3600 })],
    ["62 seconds", (now: number) => ({ auth_time: now + 62 })],
    ["milliseconds in place of seconds", (now: number) => ({ auth_time: now * 1000 })],
    ["for ever", () => ({ auth_time: 1e18 })],
    ["issued in an hour", (now: number) => ({ iat: now + 3600, exp: now + 7200 })],
  ])("takes a sign-in that is ahead of the clock for an old one: %s", async (_, claimsAt) => {
    const claims = claimsAt(Math.floor(Date.now() / 1000));
    const ahead = await signedIn(claims);
    expect((await reveal(ahead, "staging")).status).toBe(200);
    expect((await reveal(ahead, "production")).status).toBe(401);
    const one = browser();
    const asked = await begin(one, "/sign-in?again");
    expect((await withClaims({ claims }, () => back(one, asked))).status).toBe(403);
    const said = reported.filter((error) => String((error as Error).message).includes("ahead of this machine's clock"));
    expect(said).toHaveLength(1);
  });

  test("takes a sign-in that is less than a minute ahead of the clock, for ten minutes from now", async () => {
    const soon = Math.floor(Date.now() / 1000) + 50;
    const ana = await signedIn({ auth_time: soon, iat: soon });
    expect((await reveal(ana, "production")).status).toBe(200);
    w.clock.nowMs = Date.now() + 10 * 60_000;
    try {
      expect((await reveal(ana, "production")).status).toBe(401);
    } finally {
      w.clock.nowMs = undefined;
    }
  });

  test("says so if the provider is away, and goes on for whoever is signed in", async () => {
    const ana = await signedIn();
    const one = browser();
    const asked = await begin(one);
    await withClaims({ isAway: true }, async () => {
      const answer = await back(one, asked);
      expect([answer.status, one.cookies.size]).toEqual([503, 0]);
      expect((await ana.get(`/p/${where}/variables`)).status).toBe(200);
      const fresh = newSignIn();
      await expect(fresh.begin(false, undefined, "/")).rejects.toMatchObject({ kind: "unavailable" });
    });
    const wrong = newSignIn(`${provider.url}/`);
    await expect(wrong.begin(false, undefined, "/")).rejects.toMatchObject({ kind: "forbidden" });
  });
});
