import { afterAll, beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";
import Provider from "oidc-provider";
import type { BrowserContext, Page } from "puppeteer-core";
import { browserOf } from "../support/browser.ts";
import { binary } from "../support/keyhole.ts";
import { freePort } from "../support/port.ts";
import { type Running, startProgram } from "../support/program.ts";
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
    claims: { openid: ["sub"], email: ["email"] },
    conformIdTokenClaims: false,
    findAccount: (_: unknown, id: string) => {
      return { accountId: id, claims: () => ({ sub: id, email: `${id}@example.com` }) };
    },
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
  let dashboard: Running;

  const keyhole = async (...words: string[]) => expect([words, (await site.here(words)).exitCode]).toEqual([words, 0]);
  beforeAll(async () => {
    provider = await startProvider(`${origin}/signed-in`);
    await keyhole("person", "add", "ana", "--issuer", provider.url, "--subject", "ana");
    await keyhole("person", "grant", "ana", "see,reveal", "--project", "web", "--all-environments");
    const words = ["--origin", origin, "--issuer", provider.url, "--client-id", "keyhole", "--port", String(port)];
    dashboard = startProgram([binary, "dashboard", ...words], { cwd: site.folder, env: site.env });
    await dashboard.says("Serving");
  }, 60_000);
  afterAll(async () => {
    await dashboard?.stop();
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
      const isThere = `document.body.innerText.includes("${words}")`;
      await page.waitForFunction(`document.readyState === "complete" && ${isThere}`);
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
});
