import { expect, test } from "bun:test";
import { appendFileSync, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Page } from "puppeteer-core";
import { type Opened, openDashboard, signIn, startWorkshop } from "../support/browser.ts";
import { copySource } from "../support/from-source.ts";
import { crawl, faultsOf, fillPages, rulesOfColors, shapeOf } from "../support/looks.ts";
import { withPrograms } from "../support/programs.ts";
import { type Row, type Site, siteOf } from "../support/server.ts";

/* Every page of the dashboard as people see it. Links lead to it, so a new page is tested without being named. */

const canaries = ["canary-of-staging", "canary-of-production", "canary-of-an-account", "canary-of-a-file"];

/**
 * How people look at a page. The sheet has two layouts, for wide and for narrow windows, and two palettes, in which
 * nothing but colours differs. At 200 % a window of 1280 px shows as much as one of 640 px.
 */
const looks = [
  { name: "light", width: 1280, scheme: "light", rules: {} },
  { name: "dark", width: 1280, scheme: "dark", rules: rulesOfColors },
  { name: "at 200 % zoom", width: 640, scheme: "dark" },
  { name: "on a small phone", width: 320, scheme: "light" },
  { name: "on a phone", width: 390, scheme: "light", rules: {} },
] as const;

/** What there was to see on a page. */
type Visit = {
  readonly status: number | undefined;
  readonly html: string;
  /** What was wrong in a look. */
  readonly faults: readonly string[];
  /** How many links, fields and buttons there are, and what the Tab key reached: which of them, and whether it showed. */
  readonly stops: number;
  readonly reached: readonly Stop[];
};
type Stop = { readonly at: number; readonly seen: boolean; readonly isOffered: boolean };

withPrograms(["chromium"], "the dashboard's pages, in Chromium", (chromium) => {
  const site = siteOf("sqlite", {
    staging: { TOKEN: canaries[0] as string, ONLY_HERE: "x" },
    production: { TOKEN: canaries[1] as string },
  });
  let { dashboard, context, page, said } = {} as Opened;
  let paths: readonly string[] = [];
  let before: string;
  const headers: string[] = [];
  const visits = new Map<string, Visit>();
  /** Each page is opened once, whichever test asks first. */
  const visited = async (path: string) => {
    const visit = visits.get(path) ?? (await look(page, dashboard.origin, path));
    visits.set(path, visit);
    return visit;
  };

  const ready = async (opened: Opened) => {
    ({ dashboard, context, page, said } = opened);
    before = await dumpOf(site);
    page.on("response", (response) => headers.push(JSON.stringify(response.headers())));
    await page.evaluateOnNewDocument(axe.source);
    // The field in the frame leads to the search.
    paths = [...(await crawl(page)), "/find", "/find?q=tok", "/find?q=none", "/audit?verify=yes"];
    const asked = { rights: "see", place: "acme/web", environments: "production", lasts: "for 4 hours" };
    const of = (one: string, deed: string) => `/persons/${one}?${new URLSearchParams({ deed, ...asked })}`;
    paths = [...paths, ...["give", "take", "remove"].map((deed) => of("lea", deed))];
  };
  const { fresh } = openDashboard(chromium, site, ready, () =>
    fillPages(site, { account: canaries[2] as string, file: canaries[3] as string }),
  );

  test("there are the twelve pages and those that lead on from them", () => {
    const wanted = [
      ...[/^\/$/, /^\/projects$/, /^\/p\/acme\/web\/variables$/, /\/accounts$/, /\/files$/, /\/variables\/item\?/],
      ...[/\/variables\/set/, /\/variables\/paste$/, /\/variables\/promote/, /\/history/, /\/undo\?/, /^\/requests$/],
      ...[
        /^\/requests\/N$/,
        /^\/keys$/,
        /^\/keys\/N$/,
        /^\/keys\/new$/,
        /\/access$/,
        /^\/persons\/lea$/,
        /^\/audit$/,
        /^\/persons$/,
      ],
    ];
    const shapes = paths.map(shapeOf);
    expect(wanted.filter((path) => !shapes.some((shape) => path.test(shape)))).toEqual([]);
  });

  test("there are three layouts and two palettes to look at", async () => {
    const files = [...new Bun.Glob("src/dashboard/**/*.{css,js}").scanSync()];
    expect(files).toHaveLength(6);
    const sources = files.map((file) => Bun.file(file).text());
    const conditions = /(?<=(?:@media |@container |matchMedia\(["'`]))[^"'`{]+/g;
    const asked = (await Promise.all(sources)).join("").match(conditions);
    // In forced colours, the reader's own stand in for ours.
    const known = [
      "(forced-colors: active)",
      "(scripting: none)",
      "(width < 42rem)",
      "(width < 56rem)",
      "(width >= 42rem)",
    ];
    expect([...new Set(asked?.map((one) => one.trim()))].sort()).toEqual([...known, "print"]);
  });

  test.each([
    ["everything but projects and the audit", /^\/(?!p\/|audit)/],
    ["the audit", /^\/audit/],
    ["a project's variables", /^\/p\/.*\/variables/],
    ["the rest of a project", /^\/p\/(?!.*\/variables)/],
  ])("axe finds nothing, no page scrolls sideways, and no page says anything, in every look: %s", async (_, part) => {
    const found: string[] = [];
    for (const path of paths.filter((path) => part.test(path))) found.push(...(await visited(path)).faults);
    expect([...found, ...said]).toEqual([]);
  });

  test("by keyboard alone, every link, field and button is reached, in order, and shows that it has the focus", async () => {
    for (const path of paths) {
      const { stops, reached } = await visited(path);
      // The buttons of a row come with the focus.
      const others = reached.filter(({ isOffered, seen }) => !(isOffered && seen));
      const wanted = Array.from({ length: stops }, (_, at) => ({ at, seen: true, isOffered: false }));
      expect([path, others]).toEqual([path, wanted]);
    }
  });

  test("a GET changes nothing: every link of every page is followed, and the database stays as it was", async () => {
    for (const path of paths) expect([path, (await visited(path)).status]).toEqual([path, 200]);
    expect(paths.length).toBeGreaterThan(40);
    expect(await page.evaluate(`fetch("/audit/export").then(({ status }) => status)`)).toBe(200);
    expect(await dumpOf(site)).toEqual(before);
  });

  test("/ goes to the filter, which narrows while one types, and Escape shows everything again", async () => {
    await page.goto(`${dashboard.origin}/p/acme/web/variables`);
    const shown = () => page.$$eval("tbody tr", (rows) => rows.filter((row) => !row.hidden).length);
    expect(await shown()).toBe(2);
    await page.keyboard.press("/");
    await page.keyboard.type("only");
    expect(await shown()).toBe(1);
    expect(await page.$eval("main output", (one) => one.textContent)).toBe("1 of 2");
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

  test("a checkout has /parts, its style comes from the disk, and a restart keeps who is signed in, until Lock", async () => {
    const folder = copySource("test/support");
    const own = await fresh();
    const first = await startWorkshop(site, folder);
    const tab = await signIn(own, first.link);
    await tab.evaluateOnNewDocument(axe.source);
    const { status, faults, stops, reached } = await look(tab, first.origin, "/parts");
    expect([status, faults, reached.filter(({ seen }) => !seen)]).toEqual([200, [], []]);
    expect(new Set(reached.map(({ at }) => at).filter((at) => at >= 0)).size).toBe(stops);
    expect(await page.evaluate(`fetch("/parts").then(({ status }) => status)`)).toBe(404);

    const style = () => tab.evaluate(`fetch("/style.css").then((answer) => answer.text())`);
    expect(await style()).toBe(readFileSync("src/dashboard/style.css", "utf8"));
    appendFileSync(join(folder, "src/dashboard/style.css"), "h1 { color: red }");
    expect(await style()).toContain("h1 { color: red }");

    const kept = join(site.data, "workshop-sessions.json");
    const token = (await own.cookies()).map(({ value }) => value).join();
    expect([statSync(kept).mode & 0o777, readFileSync(kept, "utf8").includes(token)]).toEqual([0o600, false]);
    await first.stop();
    const second = await startWorkshop(site, folder);
    await tab.goto(`${second.origin}/parts`);
    expect(await tab.$eval("h1", (one) => one.textContent)).toBe("Parts");
    await Promise.all([tab.waitForNavigation(), tab.click("header > form button")]);
    expect(existsSync(kept)).toBe(false);
    await own.close();
    await second.stop();
    rmSync(folder, { recursive: true });
  }, 60_000);

  test("no value is in any page, header, output of the process, or in the browser's history", async () => {
    const client = await page.createCDPSession();
    const { entries } = await client.send("Page.getNavigationHistory");
    const html = [];
    for (const path of paths) html.push((await visited(path)).html);
    const everything = JSON.stringify([html, headers, entries, dashboard.said()]);
    expect(canaries.filter((canary) => everything.includes(canary))).toEqual([]);
  });

  test("an empty installation, and a project without anything, say what to do next", async () => {
    const tab = await context.newPage();
    await site.json(["project", "create", "acme/empty"]);
    for (const kind of ["variables", "accounts", "files"]) {
      await tab.goto(`${dashboard.origin}/p/acme/empty/${kind}`);
      expect(await tab.$eval("main", (one) => one.textContent)).toContain(`acme/empty has no ${kind} yet`);
    }
    await tab.close();
  });
});

/** Opens a page, looks at it in each way, and goes through it by keyboard. */
async function look(page: Page, origin: string, path: string): Promise<Visit> {
  const answer = await page.goto(`${origin}${path}`);
  const html = await page.content();
  const faults: string[] = [];
  for (const { name, scheme, ...one } of looks) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    faults.push(...(await faultsOf(page, one)).map((fault) => `${path}, ${name}: ${fault}`));
  }
  await page.setViewport({ width: 1280, height: 900 });
  return { status: answer?.status(), html, faults, ...(await goThrough(page)) };
}

/** Goes from the first to the last stop of a page by the Tab key. */
async function goThrough(page: Page): Promise<Pick<Visit, "stops" | "reached">> {
  const stops = Number(
    await page.evaluate(`
      window.stops = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
        .filter((one) => !one.disabled && one.checkVisibility())
        // Of choices that exclude each other, Tab reaches the chosen one, or else the first.
        .filter((one, _, all) => {
          const group = all.filter((other) => other.type === "radio" && other.name === one.name);
          return one.type !== "radio" || one === (group.find(({ checked }) => checked) ?? group[0]);
        });
      window.reached = [];
      addEventListener("focusin", ({ target }) => {
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        const seen = outlineStyle !== "none" && outlineWidth !== "0px";
        reached.push({ at: stops.indexOf(target), seen, isOffered: target.matches('.offered') });
      });
      window.stops.length`),
  );
  let reached: Stop[] = [];
  let last = -1;
  // A date has up to four fields inside, between which the focus stays on it, and a row its buttons: the key once more.
  for (let more = 0; last < stops - 1 && more < 5; ) {
    const keys = Array.from({ length: stops - 1 - last }, () => [page.keyboard.down("Tab"), page.keyboard.up("Tab")]);
    await Promise.all(keys.flat());
    reached = (await page.evaluate("reached")) as Stop[];
    const furthest = Math.max(-1, ...reached.map(({ at }) => at));
    more = furthest > last ? 0 : more + 1;
    last = furthest;
  }
  return { stops, reached };
}

/** Every row of the database. */
async function dumpOf(site: Site): Promise<string> {
  const tables = await site.sql("select name from sqlite_master where type = 'table' order by name");
  const rows: Record<string, readonly Row[]> = {};
  for (const { name } of tables) rows[String(name)] = await site.sql(`select * from "${name}"`);
  return JSON.stringify(rows);
}
