import { expect, test } from "bun:test";
import { type Opened, openDashboard } from "../support/browser.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* What people do most, in the other engine: the rest is in Chromium. */

const value = "canary-in-firefox";

withPrograms(["firefox-esr|firefox"], "the dashboard, in Firefox", (firefox) => {
  const site = siteOf("sqlite", { staging: { TOKEN: value } });
  let { dashboard, page } = {} as Opened;
  openDashboard(firefox, site, (opened) => ({ dashboard, page } = opened));

  test("the printed link signs in", async () => {
    expect([await page.title(), new URL(page.url()).hash]).toEqual(["Today · the demo · Keyhole", ""]);
  });

  test("a value is shown and copied", async () => {
    await page.goto(`${dashboard.origin}/p/acme/web/variables/item?name=TOKEN`);
    await page.click('button[aria-label="Copy the value in staging"]');
    await page.waitForSelector('xpath///button[.="Copied"]');
    expect(await page.$$eval("output", (all) => all.map((one) => one.textContent).join(""))).toBe("");
    await page.click('button[aria-label="Reveal the value in staging"]');
    const shown = await page.waitForSelector("output:not(:empty)");
    expect(await shown?.evaluate((one) => one.textContent)).toBe(value);
  });

  test("a value that was copied is pasted into a form, and saved", async () => {
    await page.goto(`${dashboard.origin}/p/acme/web/variables/set`);
    await page.type("[name=name]", "ANOTHER");
    await page.focus('[name="value.staging"]');
    await page.keyboard.down("Control");
    await page.keyboard.press("v");
    await page.keyboard.up("Control");
    await Promise.all([page.waitForNavigation(), page.click("main button[type=submit]")]);
    expect(await page.$eval("main [role=status]", (one) => one.textContent)).toContain("ANOTHER");
    const { stdout } = await site.keyhole(["var", "get", "acme/web", "staging", "ANOTHER"]);
    expect(stdout.trim()).toBe(value);
  });
});
