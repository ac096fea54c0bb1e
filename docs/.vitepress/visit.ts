import axe, { type RunOnly, type RunOptions } from "axe-core";
import puppeteer, { type Browser, type Page } from "puppeteer-core";
import type { Search, Seen, Visit } from "./seen.ts";

/*
 * Opens every page of a site in headless Chromium and prints what it saw, as JSON, for the test of the site to judge:
 *
 *     bun visit.ts CHROMIUM ORIGIN SEARCH...
 *
 * axe judges each page that shows an element or a class that no earlier page had, in light and dark. That is most of
 * the time, so `KEYHOLE_TEST_LONG=1` alone has it judge every page.
 */

const [chromium = "", origin = "", ...searches] = process.argv.slice(2);

/** What of VitePress's own search axe would have otherwise. */
const rules = {
  // The button shows its shortcut beside its name.
  "label-content-name-mismatch": { enabled: false },
  // The list gives each link the role of an option.
  "nested-interactive": { enabled: false },
};

/** What axe has seen, such as `table` and `div.warning`. */
const judged = new Set<string>();

const browser = await puppeteer.launch({
  executablePath: chromium,
  // CI runs as root, where Chromium has no sandbox. The site is our own.
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const visit: Visit = { search: await search(browser, searches), pages: await visitAll(browser) };
  process.stdout.write(JSON.stringify(visit));
} finally {
  await browser.close();
}

/** Two pages at a time, each once. */
async function visitAll(browser: Browser): Promise<Seen[]> {
  const seen: Seen[] = [];
  const known = new Set(["/"]);
  const waiting = ["/"];
  const underWay = new Set<Promise<void>>();
  const visitNext = async (path: string) => {
    const found = await look(browser, path);
    seen.push(found);
    for (const link of found.links) {
      const { origin: of, pathname } = new URL(link);
      if (of !== origin || !/(\.html|\/)$/.test(pathname) || known.has(pathname)) continue;
      known.add(pathname);
      waiting.push(pathname);
    }
  };
  while (waiting.length > 0 || underWay.size > 0) {
    while (waiting.length > 0 && underWay.size < 2) {
      const visit = visitNext(waiting.shift() as string).finally(() => underWay.delete(visit));
      underWay.add(visit);
    }
    await Promise.race(underWay);
  }
  return seen.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function look(browser: Browser, path: string): Promise<Seen> {
  const page = await browser.newPage();
  const errors = listen(page);
  const status = await open(page, path, 360);
  if (status !== 200)
    return { path, status, errors, width: 0, cut: [], bright: [], links: [], ids: [], violations: [] };
  const { width, links, ids } = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth,
    links: [...document.querySelectorAll("a[href]")].map((link) => (link as HTMLAnchorElement).href),
    ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
  }));
  const violations: string[] = [];
  if (path === "/") {
    await page.click(".VPNavBarHamburger");
    violations.push(...(await judge(page, "menu")));
  }
  await page.setViewport({ width: 1280, height: 900 });
  const isJudged = await showsNew(page);
  if (isJudged) violations.push(...(await judge(page, "light")));
  const cut = await page.$$eval(".vp-doc table", (tables) =>
    tables
      .filter((table) => table.scrollWidth > table.clientWidth)
      .map((table) => `${table.scrollWidth - table.clientWidth} px: ${table.textContent?.slice(0, 40)}`),
  );
  await page.evaluate(() => document.documentElement.classList.add("dark"));
  if (isJudged) violations.push(...(await judge(page, "dark", { type: "rule", values: ["color-contrast"] })));
  const bright = await brightPictures(page);
  await page.close();
  return { path, status, errors, width, cut, bright, links, ids, violations };
}

async function showsNew(page: Page): Promise<boolean> {
  const shown = await page.$$eval(".vp-doc > div *", (all) =>
    all.flatMap(({ localName, classList }) => [localName, ...[...classList].map((name) => `${localName}.${name}`)]),
  );
  const before = judged.size;
  for (const one of shown) judged.add(one);
  return judged.size > before || process.env["KEYHOLE_TEST_LONG"] === "1";
}

/** Pictures whose pixels are bright on average, as the page shows them now. */
async function brightPictures(page: Page): Promise<string[]> {
  const bright: string[] = [];
  for (const picture of await page.$$(".vp-doc img")) {
    const shown = await picture.screenshot({ encoding: "base64" });
    const brightness = await page.evaluate(async (shown) => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${shown}`)).blob());
      const context = new OffscreenCanvas(1, 1).getContext("2d");
      if (!context) throw new Error("no canvas");
      context.imageSmoothingQuality = "high";
      context.drawImage(image, 0, 0, 1, 1);
      const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
      return (red + green + blue) / 3;
    }, shown);
    if (brightness > 100) bright.push(await picture.evaluate((image) => (image as HTMLImageElement).alt));
  }
  return bright;
}

/** What each search finds, each on a page of its own, so that no search sees what an earlier one found. */
async function search(browser: Browser, searches: readonly string[]): Promise<Search> {
  const found: Record<string, string[]> = {};
  const violations: string[] = [];
  for (const words of searches) {
    const page = await browser.newPage();
    await open(page, "/", 1280);
    await page.click("#local-search button");
    await page.waitForSelector("#localsearch-input");
    // All at once: a busy machine would show what the first letters find.
    await page.focus("#localsearch-input");
    await page.keyboard.sendCharacter(words);
    await page.waitForSelector("#localsearch-list a, .no-results");
    found[words] = await page.$$eval("#localsearch-list a", (links) =>
      links.map((link) => (link as HTMLAnchorElement).href),
    );
    if (Object.keys(found).length === 1) violations.push(...(await judge(page, "search")));
    await page.close();
  }
  return { found, violations };
}

/** Opens a page and waits until its scripts have taken over. Nothing moves, so colours are final at once. */
async function open(page: Page, path: string, width: number): Promise<number> {
  page.setDefaultTimeout(120_000); // of each step, on a machine that is busy
  await page.setViewport({ width, height: 800 });
  const response = await page.goto(`${origin}${path}`, { waitUntil: "load" });
  if (response?.status() !== 200) return response?.status() ?? 0;
  await page.addStyleTag({
    content: "*, ::before, ::after { transition: none !important; animation: none !important; }",
  });
  await page.waitForFunction(() => "__vue_app__" in (document.querySelector("#app") ?? {}));
  return 200;
}

function listen(page: Page): string[] {
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("response", (response) => response.status() >= 400 && errors.push(`${response.status()} ${response.url()}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin && !request.url().startsWith("data:")) errors.push(request.url());
  });
  return errors;
}

/** @returns each rule that is broken, with where; all rules are judged unless `only` names some */
async function judge(page: Page, when: string, only?: RunOnly): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const options: RunOptions = { ...(only ? { runOnly: only } : { rules }), resultTypes: ["violations"] };
  const violations = await page.evaluate(async (options) => (await axe.run(document, options)).violations, options);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${when}: ${id}: ${target.join(" ")}`));
}
