import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "puppeteer-core";
import { browserOf, signIn, startDashboard, startWorkshop } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { runBinary } from "../support/keyhole.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/*
 * A first visit, from `keyhole demo` to a value, as the pictures of docs/dashboard.md show it. A picture holds the text
 * of its page, so one that is old fails. TRANSCRIBE=1 takes them again.
 */

const pictures = join(import.meta.dir, "../../docs/dashboard");
const [width, height] = [1120, 700];

withPrograms(["chromium"], "a first visit to the dashboard, in Chromium", (chromium) => {
  const site = siteOf("sqlite");
  const { fresh } = browserOf(chromium);

  test("goes from the demo to a value that is shown, and on record, as the five pictures have it", async () => {
    expect(
      (await runBinary(["demo", "--once"], { cwd: site.folder, env: { ...site.env, KEYHOLE_ACTOR: "ana@laptop" } }))
        .exitCode,
    ).toBe(0);
    const env = { KEYHOLE_DATA: join(site.data, "demo") };
    await notarizeReads(env);
    const dashboard = await startDashboard(site, [], env);
    const context = await fresh();
    const page = await signIn(context, dashboard.link);
    await page.emulateTimezone("UTC"); // or the pictures say another zone
    await page.setViewport({ width, height });
    const follow = async (words: string) => {
      const link = await page.waitForSelector(`xpath///a[normalize-space() = "${words}"]`);
      await Promise.all([page.waitForNavigation(), link?.click()]);
    };

    await picture(page, "1-today", "Today: what waits, what expires, what changed");
    await follow("Projects");
    await follow("demo/web");
    await Promise.all([page.waitForNavigation(), page.click("form[action$='/compare'] button")]);
    await picture(page, "2-grid", "The variables of a project by environment: there, missing, the same, different");
    await follow("Projects");
    await page.type("header input[type=search]", "greet");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    await follow("GREETING");
    await picture(page, "3-item", "One variable: where it is, who read it, who can");
    await page.click(`button[aria-label="Reveal the value in staging"]`);
    await page.waitForSelector("output:not(:empty)");
    await picture(page, "4-value", "Its value in staging, shown for 30 seconds");
    await follow("history");
    await follow("Audit");
    await picture(page, "5-audit", "The audit, in which the newest entry is that somebody saw the value");

    await context.close();
    await dashboard.stop();
  }, 60_000);

  test("the parts fit a wide page and a phone, with a value shown and a form refused", async () => {
    const workshop = await startWorkshop(site);
    const context = await fresh();
    const page = await signIn(context, workshop.link);
    for (const width of [1280, 390]) {
      await page.setViewport({ width, height });
      await page.goto(`${workshop.origin}/parts`);
      await page.type("#name", "TAKEN");
      for (const words of ["Reveal", "Save", "Make a key"]) {
        const button = await page.waitForSelector(`xpath///button[. = "${words}"]`);
        await button?.evaluate((one) => (one as unknown as { click: () => void }).click());
      }
      await page.waitForSelector("main [role=alert] a");
      await page.waitForFunction(`document.querySelectorAll("output:not(:empty)").length === 3`);
      expect(await page.$eval("html", (one) => one.scrollWidth)).toBeLessThanOrEqual(width);
      await page.evaluate("unsaved.clear()");
    }
    await context.overridePermissions(workshop.origin, []);
    const copy = await page.$("[data-copies]");
    await copy?.evaluate((one) => (one as unknown as { click: () => void }).click());
    await page.waitForSelector(`xpath///*[@role="status"][starts-with(., "The browser did not let the page copy.")]`);
    expect(await copy?.evaluate((one) => one.textContent)).toBe("Copy");
    await context.close();
    await workshop.stop();
  }, 60_000);

  /** Serves until the notary has taken in what the demo read: it may have ended before. */
  async function notarizeReads(env: { readonly KEYHOLE_DATA: string }): Promise<void> {
    const server = await site.serve({ env });
    const list = ["var", "list", "demo/web", "staging", "--unread", "1s", "--json"];
    await eventually(async () => {
      const { exitCode, stdout } = await runBinary(list, { cwd: site.folder, env: { ...site.env, ...env } });
      return exitCode === 0 && JSON.parse(stdout)[0]?.readWithAllAt > 0;
    });
    await server.stop();
  }
});

/** Compares what a page says with the picture of it, or takes the picture. */
async function picture(page: Page, name: string, title: string): Promise<void> {
  const file = join(pictures, `${name}.svg`);
  await page.mouse.move(0, 0); // away from rows, which have buttons under the pointer
  const text = String(await page.evaluate("document.body.innerText"))
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID")
    .replace(/\b\d{4}-\d\d-\d\d [\d:]{8} \S+?(?=[\s,.]|$)/g, "TIME")
    .replace(/\b([A-Z][a-z]+day )?\d{4}-\d\d-\d\d\b/g, "DAY")
    .replace(/\b\d\d:\d\d:\d\d\b/g, "TIME")
    .replace(/(?<=\bDAY UTC\b.*)\s+DAY UTC\b/gs, "") // around midnight, a page has two days
    .replace(/\b(just now|\d+ minutes? ago)\b/g, "just now")
    .replace(/Hide \(\d+ s\)/g, "Hide (30 s)")
    .replace(/\s+/g, " ");
  if (process.env["TRANSCRIBE"] === "1") writeFileSync(file, await drawn(page, title, text));
  expect([name, descriptionOf(readFileSync(file, "utf8"))]).toEqual([name, text]);
}

/** Both looks of a page in one picture: whoever shows it in the dark gets the dark one. */
async function drawn(page: Page, title: string, text: string): Promise<string> {
  const { width, height } = page.viewport() as { width: number; height: number };
  const shots: string[] = [];
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    const bytes = await page.screenshot({ type: "webp", quality: 85, encoding: "base64" });
    shots.push(`<image class="${value}" width="${width}" height="${height}" href="data:image/webp;base64,${bytes}"/>`);
  }
  await page.emulateMediaFeatures([]);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">
<title>${escaped(title)}</title>
<desc>${escaped(text)}</desc>
<style>.dark { display: none } @media (prefers-color-scheme: dark) { .dark { display: inline } .light { display: none } }</style>
${shots.join("\n")}
</svg>
`;
}

function descriptionOf(svg: string): string {
  const [, text = ""] = /<desc>(.*)<\/desc>/s.exec(svg) ?? [];
  return text.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
