import { afterAll, expect, test } from "bun:test";
import { allOfRole, type Opened, openDashboard, spokenText } from "../support/browser.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* The search of everything, as people use it. */

withPrograms(["chromium"], "the search, in Chromium", (chromium) => {
  const site = siteOf("sqlite", {
    staging: { WAREHOUSE_URL: "canary-of-find", OTHER: "x" },
    production: { WAREHOUSE_URL: "canary-of-find" },
  });
  let { dashboard, page, said } = {} as Opened;
  const visit = (path: string) => page.goto(`${dashboard.origin}${path}`);
  const focused = () => page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent");
  const opened = () => page.evaluate("location.pathname + location.search");

  const prepare = async () => {
    await site.json(["project", "create", "acme/billing"]);
    await site.json(["var", "set", "acme/billing", "production", "OLD_WAREHOUSE", "--value", "x"]);
    await site.json(["key", "create", "--name", "Warehouse CI", "--project", "billing", "--all-environments"]);
    await site.json(["person", "add", "warehouse-team"]);
    await site.json(["person", "grant", "warehouse-team", "see", "--project", "billing", "--all-environments"]);
  };
  openDashboard(chromium, site, (opened) => ({ dashboard, page, said } = opened), prepare);
  afterAll(() => expect(said).toEqual([]));

  test("says in the accessibility tree what was found, and where it is", async () => {
    await page.setViewport({ width: 1280, height: 900 });
    await visit("/find?q=warehouse");
    const tree = await page.accessibility.snapshot({ interestingOnly: false });
    expect(allOfRole(tree, "heading").map(spokenText)).toEqual(["Find warehouse"]);
    expect(allOfRole(tree, "searchbox").map(spokenText)).toEqual(["Find a name everywhere"]);
    expect(allOfRole(tree, "row").map(({ children }) => children.map(spokenText).join(" | "))).toEqual([
      "Name | Project | Where it is | What",
      "WAREHOUSE_URL | acme/web | staging production | variable",
      "Warehouse CI | acme |  | key, active",
      "warehouse-team | acme | acme/billing | person",
      "OLD_WAREHOUSE | acme/billing | production | variable",
    ]);
    expect(allOfRole(tree, "table").map(spokenText)).toEqual(["What has it in its name or its note, the best first"]);
  });

  test("by keyboard alone, the key / on a page without a filter leads to it, and on to a hit", async () => {
    await visit("/");
    await page.keyboard.press("/");
    expect(await focused()).toBe("Find a name everywhere");
    await page.keyboard.type("old_w/");
    await page.keyboard.press("Backspace");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/find?q=old_w");
    await page.focus("tbody a");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/p/acme/billing/variables/item?name=OLD_WAREHOUSE");
  });

  test("the key / goes to a page's filter first, and from the empty filter to the search", async () => {
    await visit("/p/acme/web/variables");
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.matches('[data-filter]')")).toBe(true);
    await page.keyboard.type("a/");
    expect(await page.evaluate("document.activeElement.value")).toBe("a/");
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    expect(await focused()).toBe("Find a name everywhere");
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.value")).toBe("/");
  });

  test("a filter that leaves no row leads to the search of everything, with Enter too", async () => {
    await visit("/p/acme/web/variables");
    const leads = () =>
      page.$$eval(
        "main a",
        (all) => all.filter((one) => /^Find /.test(one.textContent ?? "") && one.checkVisibility()).length,
      );
    await page.keyboard.press("/");
    await page.keyboard.type("ware");
    expect(await leads()).toBe(0);
    await page.keyboard.type(" old & co");
    expect(await leads()).toBe(1);
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("Find ware old & co everywhere");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/find?q=ware%20old%20%26%20co");
    expect(await page.$eval("main", (one) => one.textContent)).toContain("Try a shorter part");
  });

  test("works without the script", async () => {
    await page.setJavaScriptEnabled(false);
    await visit("/");
    await page.type("header input", "warehouse_u");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    await page.setJavaScriptEnabled(true);
    expect(await page.$$eval("tbody a", (all) => all.map((one) => one.textContent))).toEqual(["WAREHOUSE_URL"]);
  });

  test("on a phone, its field is on the first line of the header", async () => {
    await page.setViewport({ width: 390, height: 800 });
    await visit("/");
    const middles = await page.$$eval(".brand, header input, .who button", (all) =>
      all.map((one) => Math.round(one.getBoundingClientRect().top + one.getBoundingClientRect().height / 2)),
    );
    await page.setViewport({ width: 1280, height: 900 });
    expect(middles).toEqual(Array.from({ length: 3 }, () => middles[0] as number));
  });
});
