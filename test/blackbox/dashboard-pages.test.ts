import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import axe from "axe-core";
import type { BrowserContext, Page } from "puppeteer-core";
import { browserOf, type Dashboard, linksOn, signIn, startDashboard } from "../support/browser.ts";
import { callTool } from "../support/mcp.ts";
import { withPrograms } from "../support/programs.ts";
import { type Site, siteOf } from "../support/server.ts";

/* Every page of the dashboard as people see it. Links lead to it, so a new page is tested without being named. */

const canaries = ["canary-of-staging", "canary-of-production", "canary-of-an-account", "canary-of-a-file"];

/** How people look at a page. At 200 % a window of 1280 px shows as much as one of 640 px. */
const looks = [
  { name: "light", width: 1280, scheme: "light" },
  { name: "dark", width: 1280, scheme: "dark" },
  { name: "on a phone", width: 390, scheme: "light" },
  { name: "at 200 % zoom", width: 640, scheme: "light" },
] as const;

withPrograms(["chromium"], "the dashboard's pages, in Chromium", (chromium) => {
  const site = siteOf("sqlite", {
    staging: { TOKEN: canaries[0] as string, ONLY_HERE: "x" },
    production: { TOKEN: canaries[1] as string },
  });
  const { fresh } = browserOf(chromium);
  let dashboard: Dashboard;
  let context: BrowserContext;
  let page: Page;
  let paths: readonly string[] = [];
  const said: string[] = [];
  const html: string[] = [];
  const headers: string[] = [];

  beforeAll(async () => {
    await fill(site);
    dashboard = await startDashboard(site);
    context = await fresh();
    page = await signIn(context, dashboard.link);
    page.on("console", (message) => said.push(`${page.url()}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`${page.url()}: ${error}`));
    page.on("response", (response) => headers.push(JSON.stringify(response.headers())));
    // For axe alone, which is put into the page.
    await page.setBypassCSP(true);
    // The field in the frame leads to the search.
    paths = [...(await crawl(page, dashboard.origin)), "/find", "/find?q=tok", "/find?q=none"];
  }, 120_000);
  afterAll(async () => void (await dashboard?.stop()), 60_000);

  test("there are the twelve pages and those that lead on from them", () => {
    const wanted = [
      ...[/^\/$/, /^\/projects$/, /^\/p\/acme\/web\/variables$/, /\/accounts$/, /\/files$/, /\/variables\/item\?/],
      ...[/\/variables\/set/, /\/variables\/paste$/, /\/variables\/promote/, /\/history/, /\/undo\?/, /^\/requests$/],
      ...[/^\/requests\/N$/, /^\/keys$/, /^\/keys\/N$/, /^\/keys\/new$/, /\/access$/, /^\/audit$/, /^\/audit\/verify$/],
    ];
    const shapes = paths.map(shapeOf);
    expect(wanted.filter((path) => !shapes.some((shape) => path.test(shape)))).toEqual([]);
  });

  test("axe finds nothing, no page scrolls sideways, and no page says anything, in every look", async () => {
    const found: string[] = [];
    for (const path of paths) {
      await page.goto(`${dashboard.origin}${path}`);
      html.push(await page.content());
      await page.evaluate(axe.source);
      for (const { name, width, scheme } of looks) {
        await page.setViewport({ width, height: 900 });
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        if (await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
          found.push(`${path}, ${name}: scrolls`);
        const { violations } = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as axe.AxeResults;
        for (const { id, nodes } of violations)
          found.push(`${path}, ${name}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      }
    }
    expect([...found, ...said]).toEqual([]);
  }, 120_000);

  test("by keyboard alone, every link, field and button is reached, in order, and shows that it has the focus", async () => {
    await page.setViewport({ width: 1280, height: 900 });
    for (const path of paths) {
      await page.goto(`${dashboard.origin}${path}`);
      const count = Number(
        await page.evaluate(`
          window.stops = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
            .filter((one) => !one.disabled && one.checkVisibility())
            // Of choices that exclude each other, Tab reaches the chosen one, or else the first.
            .filter((one, _, all) => {
              const group = all.filter((other) => other.type === "radio" && other.name === one.name);
              return one.type !== "radio" || one === (group.find(({ checked }) => checked) ?? group[0]);
            });
          window.stops.length`),
      );
      const press = async () => {
        await page.keyboard.press("Tab");
        return (await page.evaluate(`(() => {
          const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
          const seen = outlineStyle !== "none" && outlineWidth !== "0px";
          const isCopy = document.activeElement.matches(".copy");
          return { at: window.stops.indexOf(document.activeElement), seen, isCopy };
        })()`)) as { readonly at: number; readonly seen: boolean; readonly isCopy: boolean };
      };
      for (let at = 0; at < count; at++) {
        let reached = await press();
        // A date has several fields inside: the focus stays on it for a while. The buttons of a row come with the focus.
        while (at > 0 && (reached.at === at - 1 || (reached.isCopy && reached.seen))) reached = await press();
        expect([path, reached]).toEqual([path, { at, seen: true, isCopy: false }]);
      }
    }
  }, 120_000);

  test("/ goes to the filter, which narrows while one types, and Escape shows everything again", async () => {
    await page.goto(`${dashboard.origin}/p/acme/web/variables`);
    const shown = () => page.$$eval("tbody tr", (rows) => rows.filter((row) => !row.hidden).length);
    expect(await shown()).toBe(2);
    await page.keyboard.press("/");
    await page.keyboard.type("only");
    expect(await shown()).toBe(1);
    expect(await page.$eval("output.count", (one) => one.textContent)).toBe("1 of 2");
    await page.keyboard.press("Escape");
    expect(await shown()).toBe(2);
  });

  test("a heading sorts by its column, and back", async () => {
    await page.goto(`${dashboard.origin}/p/acme/web/variables`);
    const names = () => page.$$eval("tbody th", (all) => all.map((one) => one.textContent));
    const before = await names();
    await page.click("thead button");
    await page.click("thead button");
    expect(await names()).toEqual(before.toReversed());
    expect(await page.$eval("thead th", (one) => one.ariaSort)).toBe("descending");
  });

  test("no value is in any page, header, output of the process, or in the browser's history", async () => {
    const client = await page.createCDPSession();
    const { entries } = await client.send("Page.getNavigationHistory");
    expect(html).toHaveLength(paths.length);
    const everything = JSON.stringify([html, headers, entries, dashboard.said()]);
    expect(canaries.filter((canary) => everything.includes(canary))).toEqual([]);
  });

  test("an empty installation, and a project without anything, say what to do next", async () => {
    const tab = await context.newPage();
    await site.json(["project", "create", "acme/empty"]);
    for (const kind of ["variables", "accounts", "files"]) {
      await tab.goto(`${dashboard.origin}/p/acme/empty/${kind}`);
      expect(await tab.$eval(".empty", (one) => one.textContent)).toContain(`acme/empty has no ${kind} yet`);
    }
    await tab.close();
  });
});

/** Something of everything that pages show. */
async function fill(site: Site): Promise<void> {
  await site.json(["account", "set", "acme/web", "registry", "--env", "staging"], `{"password":"${canaries[2]}"}`);
  await Bun.write(`${site.folder}/secret.pem`, canaries[3] as string);
  await site.json(["file", "put", "acme/web", "secret.pem", "--path", "tls/key.pem", "--env", "production"]);
  await site.json(["var", "set", "acme/web", "staging", "ONLY_HERE", "--rotate-by", "2030-01-31"], "y");
  const { key } = await site.key(
    "--name",
    "ci",
    "--resource",
    "variables,projects,requests",
    "--surface",
    "rest_api,mcp_server",
  );
  await site.key("--name", "short", "--expires-in", "5d");
  const server = await site.serve({ env: { KEYHOLE_MCP: "on" } });
  await server.get("/projects/web/variables?environment=staging", key);
  const agent = new Client({ name: "agent", version: "1" });
  const headers = { authorization: `Bearer ${key}` };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${server.origin}/mcp`), { requestInit: { headers } }));
  const wanted = { project: "web", environment: "staging", name: "WANTED", reason: "<b>it</b> needs it" };
  await callTool(agent, "request_variable", wanted);
  await agent.close();
  await server.stop();
}

/** What a path is, whatever the ids and numbers in it. */
function shapeOf(path: string): string {
  // The links of the audit's filter combine; one filtered page is enough.
  return path.replace(/(?<=^\/audit\?).*/, "").replace(/[0-9a-f]{8}-[0-9a-f-]{27}|%3A\d+|\d+/g, "N");
}

/** The first path of each shape that links lead to. */
async function crawl(page: Page, origin: string): Promise<string[]> {
  const found = ["/"];
  const seen = new Set(found);
  for (const path of found) {
    await page.goto(`${origin}${path}`);
    for (const link of await linksOn(page)) {
      if (seen.has(shapeOf(link)) || /^\/audit\/(?:export|proof)/.test(link)) continue;
      seen.add(shapeOf(link));
      found.push(link);
    }
  }
  return found;
}
