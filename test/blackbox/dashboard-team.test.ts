import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";
import Provider from "oidc-provider";
import type { BrowserContext, Page } from "puppeteer-core";
import { browserOf } from "../support/browser.ts";
import { binary } from "../support/keyhole.ts";
import { freePort } from "../support/port.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* A team's dashboard, the built program, with a real identity provider and a real browser. */

const canary = "canary-of-the-team";

/** An identity provider whose sign-in page takes any name. */
async function startProvider(redirectUri: string): Promise<{ url: string; server: HttpServer }> {
  const port = freePort();
  const url = `http://localhost:${port}`;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwk = { ...privateKey.export({ format: "jwk" }), kid: "provider", alg: "RS256", use: "sig" };
  const provider = new Provider(url, {
    jwks: { keys: [jwk] },
    clients: [
      {
        client_id: "keyhole",
        redirect_uris: [redirectUri],
        response_types: ["code"],
        grant_types: ["authorization_code"],
        token_endpoint_auth_method: "none",
        require_auth_time: true,
      },
    ],
    claims: { openid: ["sub", "groups"], email: ["email"] },
    conformIdTokenClaims: false,
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, groups: id === "lee" ? ["leads"] : [] }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ["of a test"] },
    features: { devInteractions: { enabled: true } },
  });
  const server = createServer(provider.callback());
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { url, server };
}

withPrograms(["chromium"], "a team's dashboard, in Chromium", (chromium) => {
  const site = siteOf("sqlite", { staging: { TOKEN: canary }, production: { TOKEN: `${canary}-live` } });
  const { fresh } = browserOf(chromium);
  const port = freePort();
  const origin = `http://localhost:${port}`;
  let provider: Awaited<ReturnType<typeof startProvider>>;
  let dashboard: Bun.Subprocess<"ignore", "pipe", "pipe">;
  let said = "";

  const keyhole = async (...words: string[]) => expect([words, (await site.here(words)).exitCode]).toEqual([words, 0]);
  beforeAll(async () => {
    provider = await startProvider(`${origin}/signed-in`);
    await keyhole("person", "add", "ana", "--issuer", provider.url, "--subject", "ana");
    await keyhole("person", "grant", "ana", "see,reveal", "--project", "web", "--all-environments");
    await keyhole("person", "add", "leads", "--group", "leads");
    await keyhole("person", "grant", "leads", "see,audit", "--all-projects", "--all-environments");
    const words = ["--origin", origin, "--issuer", provider.url, "--client-id", "keyhole", "--port", String(port)];
    dashboard = Bun.spawn([binary, "dashboard", ...words], {
      cwd: site.folder,
      env: site.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const listening = Promise.withResolvers<void>();
    void (async () => {
      for await (const bytes of dashboard.stderr) {
        said += Buffer.from(bytes).toString();
        if (said.includes("Serving")) listening.resolve();
      }
      listening.reject(new Error(`It ended: ${said}`));
    })();
    await listening.promise;
  }, 60_000);
  afterAll(async () => {
    dashboard?.kill();
    await dashboard?.exited;
    provider?.server.closeAllConnections();
    provider?.server.close();
  });

  /** Signs in on the provider's own pages. */
  const prove = async (page: Page, name: string, to = "/") => {
    await page.waitForSelector('input[name="login"]');
    await page.type('input[name="login"]', name);
    await page.type('input[name="password"]', "any");
    await page.click('button[type="submit"]');
    // The provider asks whether the client may know who it is.
    await page.waitForFunction(`!document.querySelector('input[name="login"]')`);
    if (new URL(page.url()).origin !== origin) await page.click('button[type="submit"]').catch(() => {});
    await page.waitForFunction(`location.href === "${origin}${to}"`);
  };
  const signIn = async (context: BrowserContext, name: string) => {
    const page = await context.newPage();
    await page.goto(origin);
    await page.click('a[href="/sign-in"]');
    await prove(page, name);
    return page;
  };
  const textOf = (page: Page) => page.$eval("body", (body) => (body as unknown as { textContent: string }).textContent);

  test("signs a person in, who sees and reveals what their rights allow, on record with their subject", async () => {
    const page = await signIn(await fresh(), "ana");
    expect(await textOf(page)).toContain("ana@example.com");
    await page.goto(`${origin}/p/acme/web/variables/item?name=TOKEN`);
    await page.click('[aria-label="Reveal the value in production"]');
    await page.waitForFunction(`document.body.textContent.includes("${canary}-live")`);
    const [entry] = (await site.json(["audit", "list", "--actor", "ana", "--limit", "1"])) as { actor: object }[];
    expect(entry?.actor).toEqual({ type: "person", name: "ana", from: { issuer: provider.url, subject: "ana" } });
    expect((await page.goto(`${origin}/audit`))?.status()).toBe(404);
    expect((await page.goto(`${origin}/p/acme/web/variables/set?name=TOKEN`))?.status()).toBe(404);
  }, 60_000);

  test("opens a link on another site: at once with a session, and without one after signing in", async () => {
    const path = "/p/acme/web/variables/item?name=TOKEN";
    using chat = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(`<a href="${origin}${path}">look</a>`, { headers: { "content-type": "text/html" } }),
    });
    const context = await fresh();
    const page = await context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.isNavigationRequest() && request.url() === origin + path) asked.push(request.url());
    });
    const follow = async (words: string) => {
      await page.goto(`http://chat.localhost:${chat.port}/`);
      await page.click("a");
      await page.waitForFunction(
        `document.querySelector("h1")?.nextSibling && document.body.innerText.includes("${words}")`,
      );
    };
    await follow("Sign in");
    expect([page.url(), asked.length]).toEqual([origin + path, 2]);
    await page.click('a[href="/sign-in"]');
    await prove(page, "ana", path);
    await page.waitForSelector('[aria-label="Reveal the value in production"]');
    asked.length = 0;
    await follow("ana@example.com");
    expect([page.url(), asked.length]).toEqual([origin + path, 2]);
    expect((await page.reload())?.status()).toBe(200);
    expect(await textOf(page)).toContain("ana@example.com");
    await context.close();
  }, 60_000);

  test("gives whoever is in a group what the group may, and no value", async () => {
    const page = await signIn(await fresh(), "lee");
    expect((await page.goto(`${origin}/audit`))?.status()).toBe(200);
    await page.goto(`${origin}/p/acme/web/variables/item?name=TOKEN`);
    expect(await page.$$('[aria-label^="Reveal"]')).toEqual([]);
    expect(await page.content()).not.toContain(canary);
  }, 60_000);

  test("shows somebody without rights who they are and what to send, and takes rights that an operator gives at once", async () => {
    const page = await signIn(await fresh(), "eve");
    expect(await textOf(page)).toContain(`keyhole person add NAME --issuer '${provider.url}' --subject 'eve'`);
    await keyhole("person", "add", "eve", "--issuer", provider.url, "--subject", "eve");
    await keyhole("person", "grant", "eve", "see", "--all-projects", "--env", "staging");
    await page.goto(`${origin}/p/acme/web/variables`);
    expect(await textOf(page)).toContain("TOKEN");
    expect(await textOf(page)).not.toContain("production");
    await keyhole("person", "revoke", "eve");
    expect((await page.goto(`${origin}/p/acme/web/variables`))?.status()).toBe(403);
  }, 60_000);

  test("keeps the session in a strict cookie, and ends it with Sign out", async () => {
    const context = await fresh();
    const page = await signIn(context, "ana");
    const ours = (await context.cookies()).filter(({ name }) => name.startsWith("__Host-"));
    expect(ours[0]).toMatchObject({
      name: "__Host-keyhole",
      httpOnly: true,
      secure: true,
      sameSite: "Strict",
      path: "/",
    });
    expect(ours).toHaveLength(1);
    await page.click('form[action="/lock"] button');
    await page.waitForSelector('a[href="/sign-in"]');
    expect((await page.goto(`${origin}/projects`))?.status()).toBe(401);
  }, 60_000);

  test("answers to its own name alone, and takes no change that its own page did not make", async () => {
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(421);
    const headers = { host: new URL(origin).host, origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    expect((await fetch(`http://127.0.0.1:${port}/lock`, { method: "POST", headers })).status).toBe(403);
    expect((await fetch(`http://127.0.0.1:${port}/unlock`, { headers: { host: headers.host } })).status).toBe(401);
    expect(said).not.toContain(canary);
  });
});
