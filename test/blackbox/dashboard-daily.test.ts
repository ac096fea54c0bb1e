import { expect, test } from "bun:test";
import { dirname } from "node:path";
import axe from "axe-core";
import type { Page } from "puppeteer-core";
import { type Dashboard, type Opened, openDashboard, Person } from "../support/browser.ts";
import { binary } from "../support/keyhole.ts";
import { outputOf } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";
import { type Site, serverOf, siteOf } from "../support/server.ts";

/* What people do every day, with their clicks counted, and what they do first. */

/** Runs lines in a shell, where `keyhole` is the built program. */
function inShell(site: Site, lines: string): Promise<string> {
  const env = { ...site.env, PATH: `${dirname(binary)}:/usr/bin:/bin`, KEYHOLE_ACTOR: "ana@laptop" };
  return outputOf(["/bin/sh", "-ec", lines], { cwd: site.folder, env });
}

withPrograms(["chromium"], "the dashboard every day, in Chromium", (chromium) => {
  const site = siteOf("sqlite", { staging: { TOKEN: "canary-of-staging" } });
  let dashboard: Dashboard;
  let ana: Person;
  // What she works in is not among the projects that she looked at last.
  const others = Array.from({ length: 6 }, (_, at) => `acme/other-${at}`);
  const ready = (opened: Opened) => {
    dashboard = opened.dashboard;
    ana = new Person(opened.page);
  };
  openDashboard(chromium, site, ready, async () => {
    await site.json(["org", "create", "another"]);
    for (const other of others) await site.json(["project", "create", other]);
  });
  const start = async () => {
    for (const other of others) await ana.page.goto(`${dashboard.origin}/p/${other}/variables`);
    await ana.page.goto(dashboard.origin);
    ana.clicks = 0;
  };

  test("who can read a value in production takes two clicks and the name", async () => {
    await start();
    await ana.follow("acme/web");
    await ana.page.type("[data-filter]", "token");
    await ana.page.waitForFunction(`location.search === "?filter=token"`);
    await ana.follow("TOKEN");
    expect(ana.clicks).toBe(2);
    expect(await ana.text()).toMatch(/Who can read it.*Nobody but operators/s);
  });

  test("copying a value takes two clicks", async () => {
    await start();
    await ana.follow("acme/web");
    const row = await ana.page.waitForSelector(`xpath///tr[contains(., "TOKEN")]`);
    await row?.hover();
    const reveals = async () =>
      ((await site.json(["audit", "list", "--action", "variables.reveal"])) as unknown[]).length;
    const before = await reveals();
    await ana.page.click(`tr button[aria-label*="staging"]`);
    ana.clicks += 1;
    await ana.page.waitForSelector(`xpath///*[contains(., "Copied")]`);
    expect([ana.clicks, await reveals()]).toEqual([2, before + 1]);
  });

  test("what is missing in production takes two clicks", async () => {
    await start();
    await ana.follow("acme/web");
    await ana.follow("Missing in production");
    expect(ana.clicks).toBe(2);
    expect(await ana.page.$$eval("tbody tr", (rows) => rows.length)).toBe(1);
  });

  test("changing one value in two environments takes four clicks, the values and the name", async () => {
    await start();
    await ana.follow("acme/web");
    await ana.follow("TOKEN");
    await ana.follow("Change");
    await ana.type("value.development", "in development");
    await ana.type("value.production", "in production");
    await ana.type("again", "TOKEN");
    await ana.follow("Save");
    expect(ana.clicks).toBe(4);
    const value = async (environment: string) =>
      (await site.here(["var", "get", "acme/web", environment, "TOKEN"])).stdout.trim();
    expect([await value("development"), await value("staging"), await value("production")]).toEqual([
      ...["in development", "canary-of-staging", "in production"],
    ]);
  });

  test("changing five variables, one of them in production, takes seven clicks, the values and the project's name", async () => {
    const names = ["ONE", "TWO", "THREE", "FOUR", "FIVE"];
    for (const name of names) await site.json(["var", "set", "acme/other-0", "staging", name, "--value", "before"]);
    await start();
    await ana.follow("acme/other-0");
    for (const name of names) {
      const row = await ana.page.waitForSelector(`xpath///tr[th//a[. = "${name}"]]`);
      await row?.hover();
      await ana.press(`Edit ${name} here`);
      await ana.type(`value.staging.${name}`, `after ${name}`);
    }
    await ana.type("value.production.FIVE", "in production");
    await ana.type("again", "acme/other-0");
    await ana.follow("Save");
    expect(ana.clicks).toBe(7);
    expect(await ana.text("main [role=status]")).toContain(
      "Created FIVE in acme/other-0, production. Updated FIVE, FOUR, ONE, THREE, TWO in acme/other-0, staging.",
    );
    for (const name of names) {
      expect((await site.here(["var", "get", "acme/other-0", "staging", name])).stdout.trim()).toBe(`after ${name}`);
    }
  });

  test("by keyboard, a value in production takes seven Tabs, and is in the first screen", async () => {
    const { page } = ana;
    await page.setViewport({ width: 1280, height: 800 });
    await page.goto(`${dashboard.origin}/p/acme/web/variables/item?name=TOKEN`);
    const reveal = '[aria-label="Reveal the value in production"]';
    expect(await page.$eval(reveal, (one) => one.getBoundingClientRect().bottom)).toBeLessThan(500);
    const press = async (key: "Tab" | "Enter") => {
      await page.keyboard.press(key);
      return page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent");
    };
    expect(await press("Tab")).toBe("Skip to the page");
    await press("Enter");
    let tabs = 1;
    while (tabs < 7 && (await press("Tab")) !== "Reveal the value in production") tabs += 1;
    expect(await page.evaluate("document.activeElement.ariaLabel")).toBe("Reveal the value in production");
  });

  test("pasting 40 lines takes four clicks and the name, with a plan in between", async () => {
    await start();
    await ana.follow("acme/web");
    await ana.follow("Paste");
    await ana.page.focus("main [name=text]");
    await ana.page.keyboard.sendCharacter(Array.from({ length: 40 }, (_, at) => `LINE_${at}=${at}`).join("\n"));
    await ana.follow("See what it would do in production");
    expect(await ana.text()).toContain("added: LINE_0");
    await ana.type("again", "acme/web");
    await ana.follow("Apply exactly that");
    expect(ana.clicks).toBe(4);
    expect(await ana.text("main [role=status]")).toContain("40");
  });

  test("promoting what is missing takes six clicks and the name, with a plan in between", async () => {
    for (const name of ["NEW_1", "NEW_2"]) await site.json(["var", "set", "acme/web", "staging", name, "--value", "x"]);
    await start();
    await ana.follow("acme/web");
    await ana.follow("Promote");
    await ana.follow("Compare");
    await ana.press("Choose all that are shown");
    await ana.follow("Copy 2 new");
    await ana.type("again", "acme/web");
    await ana.follow("Apply exactly that");
    expect(ana.clicks).toBe(6);
    const there = (await site.json(["var", "list", "acme/web", "production"])) as { key: string }[];
    expect(there.filter(({ key }) => key.startsWith("NEW_"))).toHaveLength(2);
    expect((await site.here(["var", "get", "acme/web", "production", "TOKEN"])).stdout.trim()).toBe("in production");
  });

  test("finding a name by a part takes two clicks, and the page is a link to hand on", async () => {
    await start();
    await ana.page.click("[role=search] input, header input[type=search]");
    ana.clicks += 1;
    await ana.page.keyboard.type("oke");
    await Promise.all([ana.page.waitForNavigation(), ana.page.keyboard.press("Enter")]);
    const link = ana.page.url();
    await ana.follow("TOKEN");
    expect(ana.clicks).toBe(2);
    await ana.page.goto(link);
    expect(await ana.text()).toContain("TOKEN");
  });

  test("a key for CI takes five clicks and its name; to revoke it takes two and its name", async () => {
    ana.clicks = 0;
    await ana.follow("Keys and trusts");
    await ana.follow("Create a key");
    await ana.type("name", "web ci");
    await ana.press("web");
    await ana.press("staging");
    await ana.press("Create");
    await ana.page.waitForSelector("output:not(:empty)");
    expect(ana.clicks).toBe(5);
    const [key] = (await site.json(["key", "list"])) as [{ id: string }];
    expect(key).toMatchObject({ name: "web ci", projects: ["web"], environments: ["staging"], surfaces: ["rest_api"] });
    ana.clicks = 0;
    await ana.follow("Go on");
    expect(await ana.text()).not.toMatch(/rest_api|mcp_server|ci_action/);
    await ana.type("again", "web ci");
    await ana.follow("Revoke");
    expect(ana.clicks).toBe(2);
    expect(await ana.text()).toContain("Revoked key");
    expect(await site.json(["key", "show", key.id])).toMatchObject({ status: "revoked" });
  });

  test("the command beside the form makes the same key as the form", async () => {
    await ana.page.goto(`${dashboard.origin}/keys/new`);
    await ana.type("name", `it's "$HOME" & co`);
    await ana.press("web");
    await ana.press("production");
    await ana.press("Agents: names only");
    await ana.follow("Show the command");
    const line = await ana.text("#command");
    const before = (await site.json(["key", "list"])) as unknown[];
    expect(await inShell(site, line)).toMatch(/^kh_/);
    await ana.press("Create");
    await ana.page.waitForSelector("output:not(:empty)");
    const made = ((await site.json(["key", "list"])) as Record<string, unknown>[]).slice(before.length);
    const [byCommand, byForm] = made.map(({ id, createdAt, expiresAt, ...rest }) => {
      return { ...rest, lifetime: Number(expiresAt) - Number(createdAt) };
    });
    expect(byForm).toEqual(byCommand as never);
    expect(byForm).toMatchObject({ name: `it's "$HOME" & co`, surfaces: ["rest_api", "mcp_server"] });
  });

  test("who read what last week takes three clicks", async () => {
    const server = await site.serve();
    const { key } = await site.key("--org", "acme", "--name", "reader", "--project", "web", "--env", "staging");
    const read = `keyhole run -p web -e staging -- true`;
    for (const _ of [1, 2]) {
      await inShell(site, `export KEYHOLE_URL=${server.origin} KEYHOLE_API_KEY=${key}\n${read}`);
    }
    await ana.page.goto(dashboard.origin);
    ana.clicks = 0;
    await ana.follow("Audit");
    await ana.follow("all reads");
    await ana.follow("7 days");
    expect(ana.clicks).toBe(3);
    expect(await ana.text("main > table")).toMatch(/reader.*TOKEN/s);
    await ana.page.click("summary:has(h2)"); // and how often
    const rows = (await ana.text("details[open] table tbody")).replaceAll(/\s+/g, " ");
    expect(rows).toMatch(/\breader web staging .*TOKEN 2 /);
    expect(await ana.text("figcaption")).toContain("2 reads by machines from");
    await server.stop();
  });
});

withPrograms(["chromium"], "the first hour, in Chromium", (chromium) => {
  const site = siteOf("sqlite");
  const server = serverOf(site);
  let page: Page;
  openDashboard(chromium, site, (opened) => ({ page } = opened));

  test("leads from an empty installation to a read that its last page sees arrive", async () => {
    const ana = new Person(page);
    await ana.page.setBypassCSP(true); // for axe alone, which is put into the page
    const heading = async () => {
      await ana.page.evaluate(axe.source);
      const { violations } = (await ana.page.evaluate('axe.run({ resultTypes: ["violations"] })')) as axe.AxeResults;
      expect(violations).toEqual([]);
      return ana.text("h1");
    };
    const begin = async (link: string) => {
      await ana.page.goto(new URL("/start", ana.page.url()).href);
      expect(await heading()).toBe(link);
      await ana.follow(link);
    };
    await begin("Create an organization");
    await ana.type("slug", "acme");
    await ana.follow("Create");
    await begin("Create a project");
    await ana.type("slug", "web");
    await ana.follow("Create");
    await begin("Write the first variable");
    await ana.type("name", "GREETING");
    await ana.type("value.development", "hello from the first hour");
    await ana.follow("Save");
    await begin("Make the first key");
    await ana.type("name", "my machine");
    await ana.page.click('[name=environments][value="development"]');
    await ana.press("Create");
    await ana.page.waitForSelector("output:not(:empty)");
    const [, lines = ""] = await ana.page.$$eval("output", (all) => all.map((one) => one.textContent ?? ""));
    await ana.page.goto(new URL("/start", ana.page.url()).href);
    expect(await heading()).toBe("Read it with the key");
    expect(await ana.text()).toContain("Waiting for the first read.");
    const own = lines.replace("https://keyhole.example", server.origin).replace("./start", "printenv GREETING");
    expect(own).not.toBe(lines);
    // Ten minutes of failures pass at once, and the page says that it has stopped. Loaded again, it survives one.
    const lost = "Promise.reject(new Error('lost'))";
    await ana.page.evaluate(`window.setTimeout = (f) => f(); window.fetch = () => ${lost}`);
    await ana.page.waitForFunction(
      `document.querySelector("main [role=status]").textContent.startsWith("No read came")`,
    );
    await ana.page.reload();
    await ana.page.evaluate(`const found = fetch; window.fetch = () => ((window.fetch = found), ${lost})`);
    expect(await inShell(site, own)).toBe("hello from the first hour\n");
    await ana.page.waitForFunction(`document.querySelector("h1").textContent === "The first read has arrived"`);
    expect(await ana.text()).toContain("my machine read");
    await ana.follow("Go to Today");
    expect(await ana.text()).not.toContain("First steps");
  }, 60_000);
});
