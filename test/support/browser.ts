import { afterAll, beforeAll } from "bun:test";
import { join } from "node:path";
import puppeteer, { type Browser, type BrowserContext, type Page } from "puppeteer-core";
import { eventually } from "./eventually.ts";
import { binary } from "./keyhole.ts";
import { type Running, startProgram } from "./program.ts";
import type { Site } from "./server.ts";

const root = join(import.meta.dir, "../..");

/** `keyhole dashboard`, the built program, on a site. */
export type Dashboard = {
  /** Such as `http://keyhole-3f9a.localhost:40123`. */
  readonly origin: string;
  readonly port: number;
  /** What it printed: it opens one session. */
  readonly link: string;
  readonly pid: number;
  readonly said: () => string;
  readonly stop: Running["stop"];
};

/** Starts the dashboard and waits for its link. @param args - beside `dashboard` */
export async function startDashboard(
  site: Site,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Dashboard> {
  const own = { ...site.env, KEYHOLE_ACTOR: "ana@laptop", KEYHOLE_DASHBOARD_NAME: "the demo", ...env };
  return opening(startProgram([binary, "dashboard", ...args], { cwd: site.folder, env: own }));
}

/** Starts the dashboard of a checkout, as `bun run dashboard` does. @param folder - of the checkout */
export function startWorkshop(site: Site, folder: string = root): Promise<Dashboard> {
  const command = [process.execPath, "--no-env-file", "--no-install", join(folder, "test/support/workshop.ts"), "0"];
  return opening(startProgram(command, { cwd: site.folder, env: site.env }));
}

/** Waits for the link. */
async function opening(running: Running): Promise<Dashboard> {
  const said = () => Object.values(running.said()).join("");
  const linkIn = (text: string) => /http:\/\/\S+\/#\S+(?=\n)/.exec(text)?.[0];
  await running.says("/#");
  const link = await eventually(() => linkIn(said()));
  const { origin, port } = new URL(link);
  return { origin, port: Number(port), link, pid: running.pid, said, stop: running.stop };
}

/** No name but those of this machine is looked up: pages of others, such as a provider's, link to the internet. */
const names = "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1";

/**
 * A browser for a suite, closed after it. Firefox takes its colours from a setting: nothing emulates them there.
 * @param program - of Chromium, unless its name is Firefox's
 */
export function browserOf(
  program: string,
  { isDark = false }: BrowserLook = {},
): {
  readonly browser: () => Browser;
  readonly fresh: () => Promise<BrowserContext>;
} {
  let browser: Browser | undefined;
  beforeAll(async () => {
    const options = /firefox[^/]*$/.test(program)
      ? ({ browser: "firefox", extraPrefsFirefox: { [schemeOfFirefox]: isDark ? 0 : 1 } } as const)
      : // CI runs as root, where Chromium has no sandbox. The pages are our own.
        { args: ["--no-sandbox", "--disable-dev-shm-usage", `--host-resolver-rules=${names}`] };
    browser = await puppeteer.launch({ executablePath: program, ...options });
  });
  afterAll(async () => void (await browser?.close()), 60_000);
  const opened = () => browser as Browser;
  return { browser: opened, fresh: () => opened().createBrowserContext() };
}

type BrowserLook = { readonly isDark?: boolean };
const schemeOfFirefox = "layout.css.prefers-color-scheme.content-override";

/** Opens a dashboard's link in a tab, and waits until it is signed in. */
export async function signIn(context: BrowserContext, link: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForSelector("header");
  return page;
}

/** A node of the accessibility tree. */
type AxNode = { readonly role: string; readonly name?: string; readonly children?: readonly AxNode[] };

/** The nodes of a role in a snapshot of the accessibility tree. */
export function allOfRole(node: unknown, role: string): (AxNode & { readonly children: readonly AxNode[] })[] {
  const one = node as AxNode;
  const { children = [] } = one;
  return [...(one.role === role ? [{ ...one, children }] : []), ...children.flatMap((child) => allOfRole(child, role))];
}

/** What a screen reader says of a node: its name, or the texts in it. */
export function spokenText({ name, children = [] }: AxNode): string {
  return name || children.map(spokenText).join(" ");
}

/** A person at a page, whose clicks are counted. */
export class Person {
  readonly page: Page;
  clicks = 0;

  constructor(page: Page) {
    this.page = page;
  }

  /** Presses what has these words: a link or a button that leads on. */
  async follow(words: string): Promise<void> {
    await Promise.all([this.page.waitForNavigation(), this.press(words)]);
  }

  /** Presses a link, a button, or a box by its label. */
  async press(words: string): Promise<void> {
    const what = `*[self::a or self::button or self::label][contains(normalize-space(), "${words}") or contains(@aria-label, "${words}")]`;
    const found = await this.page.waitForSelector(`xpath///${what}`);
    this.clicks += 1;
    await found?.click();
  }

  type(field: string, text: string): Promise<void> {
    return this.page.type(`main [name="${field}"]:not([type=hidden])`, text);
  }

  /** What is seen. */
  async text(selector = "main"): Promise<string> {
    return String(await this.page.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`));
  }
}

/** The dashboard of a suite, opened in a tab of a browser. */
export type Opened = {
  readonly dashboard: Dashboard;
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the page said in its console, and its errors. */
  readonly said: readonly string[];
};

/**
 * Opens a dashboard for a suite, which ends with it.
 * @param ready - gets it before the suite's first test
 * @param prepare - what comes before the dashboard is started
 */
export function openDashboard(
  program: string,
  site: Site,
  ready: (opened: Opened) => unknown,
  prepare: () => unknown = () => {},
  look: BrowserLook = {},
): { readonly fresh: () => Promise<BrowserContext> } {
  const { fresh } = browserOf(program, look);
  let dashboard: Dashboard | undefined;
  beforeAll(async () => {
    await prepare();
    dashboard = await startDashboard(site);
    const context = await fresh();
    const page = await signIn(context, dashboard.link);
    const said: string[] = [];
    page.on("console", (message) => said.push(`${page.url()}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`${page.url()}: ${error}`));
    await ready({ dashboard, context, page, said });
  }, 120_000);
  afterAll(async () => void (await dashboard?.stop()), 60_000);
  return { fresh };
}
