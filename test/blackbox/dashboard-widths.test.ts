import { expect, test } from "bun:test";
import axe from "axe-core";
import { type Opened, openDashboard } from "../support/browser.ts";
import { crawl, faultsOf, fillHostile, fillPages, type Look, rulesOfColors, widths } from "../support/looks.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* Every page in every width, with names as hostile as they may be: `dashboard-pages` looks in a few, in one browser. */

const screens = [1280, 390];

for (const [name, program] of [
  ["Chromium", "chromium"],
  ["Firefox", "firefox-esr|firefox"],
] as const) {
  for (const scheme of ["light", "dark"] as const) {
    withPrograms([program], `the dashboard in ${name}, ${scheme}`, (found) => {
      const site = siteOf("sqlite", { staging: { TOKEN: "a" }, production: { TOKEN: "b" } });
      let { dashboard, page, said } = {} as Opened;
      let more: readonly string[] = [];
      const fill = async () => {
        await fillPages(site, { account: "of-an-account", file: "of-a-file" });
        more = await fillHostile(site);
      };
      const ready = async (opened: Opened) => {
        ({ dashboard, page, said } = opened);
        await page.evaluateOnNewDocument(axe.source);
        if (name === "Chromium") await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      };
      openDashboard(found, site, ready, fill, { isDark: scheme === "dark" });

      test("no page scrolls sideways in any width, axe finds nothing with all unfolded, and the console stays empty", async () => {
        const paths = [...(await crawl(page)), ...more, "/find?q=tok"];
        expect(paths.length).toBeGreaterThan(60);
        // In the dark nothing but colours differs.
        const looks: readonly Look[] =
          scheme === "light"
            ? widths.map((width) => ({ width, ...(screens.includes(width) && { rules: {} }) }))
            : screens.map((width) => ({ width, rules: rulesOfColors }));
        const found: string[] = [];
        for (const path of paths) {
          await page.goto(`${dashboard.origin}${path}`);
          expect(await page.evaluate(`matchMedia("(prefers-color-scheme: dark)").matches`)).toBe(scheme === "dark");
          for (const look of looks) {
            for (const fault of await faultsOf(page, look)) found.push(`${path} at ${look.width}: ${fault}`);
          }
        }
        expect([...found, ...said]).toEqual([]);
      }, 600_000);
    });
  }
}
