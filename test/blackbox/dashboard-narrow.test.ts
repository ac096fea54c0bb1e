import { expect, test } from "bun:test";
import type { Page } from "puppeteer-core";
import { type Dashboard, openDashboard } from "../support/browser.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* What is seen at once: the entries of the audit on a wide page, and lists on narrow ones. */

withPrograms(["chromium"], "what is seen at once, in Chromium", (chromium) => {
  const site = siteOf("sqlite", { staging: { TOKEN: "first" } });
  let dashboard: Dashboard;
  let page: Page;
  openDashboard(chromium, site, (opened) => {
    dashboard = opened.dashboard;
    page = opened.page;
  });
  const topOf = (selector: string) => page.$eval(selector, (one) => one.getBoundingClientRect().top);

  test("the entries of the audit are in the first screen, and its parts have headings", async () => {
    await page.setViewport({ width: 1280, height: 800 });
    for (const path of ["/audit", "/audit?name=TOKEN&action=all+changes"]) {
      await page.goto(`${dashboard.origin}${path}`);
      expect(await topOf("main > table")).toBeLessThanOrEqual(370);
      const headings = await page.$$eval("h1, h2", (all) => all.map((one) => one.textContent));
      expect(headings).toEqual(["Audit", "Filter", "Who, what and how often", "Entries"]);
    }
    const cell = await page.$eval("td[data-heading=Action] span", (one) => [one.textContent, one.title]);
    expect(cell).toEqual(["added", "variables.write"]);
    await page.click("summary:has(h2)");
    expect(await page.$eval(".views table caption", (one) => one.textContent)).toBe("Who, what and how often");
  });

  test("the filter takes times in the reader's zone, and the address has them in UTC", async () => {
    await page.emulateTimezone("Asia/Kolkata");
    await page.goto(`${dashboard.origin}/audit?since=2026-01-02T20:00`);
    const field = () => page.evaluate(`[since.value, since.labels[0].textContent]`);
    expect(await field()).toEqual(["2026-01-03T01:30", "From"]);
    await page.evaluate(`until.value = "2099-01-01T01:00"`);
    await Promise.all([page.waitForNavigation(), page.click(".filters button")]);
    const { searchParams } = new URL(page.url());
    expect(["since", "until"].map((name) => searchParams.get(name))).toEqual(["2026-01-02T20:00", "2098-12-31T19:30"]);
    expect(await field()).toEqual(["2026-01-03T01:30", "From"]);
    await page.emulateTimezone("");
  });
});
