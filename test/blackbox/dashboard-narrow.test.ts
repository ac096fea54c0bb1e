import { expect, test } from "bun:test";
import type { Page } from "puppeteer-core";
import { type Dashboard, openDashboard } from "../support/browser.ts";
import { fillHostile } from "../support/looks.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* What is seen at once: the entries of the audit on a wide page, and lists on narrow ones. */

withPrograms(["chromium"], "what is seen at once, in Chromium", (chromium) => {
  const site = siteOf("sqlite", { staging: { TOKEN: "first" } });
  let dashboard: Dashboard;
  let page: Page;
  openDashboard(
    chromium,
    site,
    (opened) => {
      dashboard = opened.dashboard;
      page = opened.page;
    },
    async () => {
      await Bun.write(`${site.folder}/secret.pem`, "x");
      await fillHostile(site);
      await site.json(["project", "create", `acme/${"o".repeat(64)}`]);
      await site.key("--name", "ci", "--project", "web", "--env", "staging,production");
      await site.json(["person", "add", "dev"]);
      const inWeb = ["--project", "web", "--all-environments"];
      await site.json(["person", "grant", "dev", "see", ...inWeb]);
      await site.json(["person", "grant", "dev", "reveal", ...inWeb, "--until", "4h"]);
    },
  );
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

  test("the values of an item are at one height, however long what stands above one of them is", async () => {
    await page.goto(`${dashboard.origin}/p/acme/hostile/variables/item?name=STAYS_SHORT`);
    const below = await page.$$eval(".values > section > p:has(time)", (all) =>
      all.map((one) => one.offsetTop > (one.closest("section")?.querySelector("h2")?.offsetTop ?? 0) + 10),
    );
    expect(below).toEqual([true, true]);
    expect(new Set(await page.$$eval("[data-secret=shown]", (all) => all.map((one) => one.offsetTop))).size).toBe(1);
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
    // In Berlin, 02:30 of this night comes twice.
    await page.emulateTimezone("Europe/Berlin");
    await page.goto(`${dashboard.origin}/audit?since=2026-10-25T01:30`);
    expect(await field()).toEqual(["2026-10-25T02:30", "From"]);
    await Promise.all([page.waitForNavigation(), page.click(".filters button")]);
    expect(new URL(page.url()).searchParams.get("since")).toBe("2026-10-25T01:30");
    await page.emulateTimezone("");
  });

  test("one long name breaks no short one, and no page is wider than its window", async () => {
    for (const path of ["/projects", "/keys", "/audit"]) {
      await page.goto(`${dashboard.origin}${path}`);
      for (const width of [320, 390, 900, 1024, 1280]) {
        await page.setViewport({ width, height: 800 });
        const { wide, short, broken } = (await page.evaluate(`(() => {
          const names = [...document.querySelectorAll("main table :is(code, bdi)")];
          const short = names.filter((one) => /^[^\\s-]{1,16}$/.test(one.textContent));
          const { scrollWidth, clientWidth } = document.documentElement;
          const broken = short.filter((one) => one.getClientRects().length > 1).map((one) => one.textContent);
          return { wide: Math.max(0, scrollWidth - clientWidth), short: short.length, broken };
        })()`)) as { wide: number; short: number; broken: string[] };
        expect([path, width, wide, broken]).toEqual([path, width, 0, []]);
        expect(short).toBeGreaterThan(0);
      }
    }
  }, 60_000);

  test("a row on a phone has its time at the right, and does not say what there is none of", async () => {
    await page.setViewport({ width: 390, height: 844, hasTouch: true });
    await page.goto(`${dashboard.origin}/projects`);
    const row = (await page.evaluate(`(() => {
      const row = document.querySelector("[href^='/p/acme/web']").closest("tr");
      const [name, ...cells] = [...row.cells].filter((one) => one.checkVisibility());
      const box = (one) => one.getBoundingClientRect();
      const time = cells.find((one) => one.querySelector("time"));
      const said = cells.map((one) => getComputedStyle(one, "::before").content + one.innerText);
      const before = cells.filter((one) => one !== time).map((one) => box(one).left - box(row).left);
      return {
        height: box(row).height, toEnd: box(row).right - box(time).right, below: Math.abs(box(time).top - box(name).top),
        said, starts: before.map(Math.round), overflow: getComputedStyle(row).overflowX,
      };
    })()`)) as Record<string, unknown>;
    expect(row).toMatchObject({ toEnd: 4, overflow: "clip", starts: [4, expect.any(Number)] });
    expect(row["height"]).toBeLessThan(60);
    expect(row["below"]).toBeLessThan(8);
    expect(row["said"]).toEqual(['"variables "1', '"missing "1', expect.stringMatching(/^none(?:just now|.* ago)$/)]);
    await page.goto(`${dashboard.origin}/keys`);
    expect(String(await page.evaluate("document.querySelector('main').innerText"))).not.toMatch(/never$/m);
    await page.goto(`${dashboard.origin}/p/acme/web/access`);
    const tabs = await page.evaluate(`[getComputedStyle(document.querySelector(".tabs")).maskImage !== "none",
      document.querySelector(".tabs [aria-current]").getBoundingClientRect().right <= 390]`);
    expect(tabs).toEqual([true, true]);
    // A right that ends is no time of its row, and is cut off nowhere.
    const ends = await page.$$eval(".brief:has(time)", (all) =>
      all.map((one) => [one.textContent.replace(/ until .*/, ""), one.scrollWidth <= one.clientWidth]),
    );
    expect(ends).toEqual([["○ names, everywhere; ● reads, everywhere", true]]);
  });

  test("a row of Access has two lines on a phone, and a row that is edited has its fields one below the other", async () => {
    for (const width of [390, 320]) {
      await page.setViewport({ width, height: 844 });
      await page.goto(`${dashboard.origin}/p/acme/web/access`);
      const ci = await page.waitForSelector(`xpath///tr[contains(., "ci")]`);
      expect(await ci?.$eval(".brief", (one) => one.textContent)).toBe("● variables in staging production");
      expect((await ci?.boundingBox())?.height).toBeLessThan(60);
      await page.goto(`${dashboard.origin}/p/acme/web/variables`);
      await page.focus("tbody a");
      await (await page.waitForSelector("button[aria-label='Edit TOKEN here']"))?.click();
      const fields = (await page.evaluate(`[...document.querySelectorAll("tbody textarea")].map((one) => {
        const { left, top, width } = one.getBoundingClientRect();
        const { content } = getComputedStyle(one.parentElement, "::after");
        return { left, top, isWide: width > innerWidth - 50, content };
      })`)) as { left: number; top: number; isWide: boolean; content: string }[];
      expect(fields.map(({ content, isWide }) => [content, isWide])).toEqual([
        ...[`"development"`, `"staging"`, `"production"`].map((content) => [content, true]),
      ]);
      expect(new Set(fields.map(({ left }) => left)).size).toBe(1);
      expect(new Set(fields.map(({ top }) => top)).size).toBe(3);
    }
  });
});
