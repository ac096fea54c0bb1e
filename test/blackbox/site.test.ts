import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Visit } from "../../docs/.vitepress/seen.ts";
import { outputOf } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";

/* The documentation as people see it: built by `bun run docs`, and opened in headless Chromium. */

const root = join(import.meta.dir, "../..");
const built = join(root, "dist/docs");

/** What people search for, and the page that answers it. */
const answers: Readonly<Record<string, string>> = {
  "replace the root key": "/rotation.html",
  rbac: "/review.html",
  gdpr: "/review.html",
  windows: "/review.html",
  "who read": "/audit.html",
  429: "/messages.html",
  steering_names: "/messages.html",
  helm: "/kubernetes.html",
  qa: "/concepts.html",
  whoami: "/team.html",
};

withPrograms(["chromium"], "the site that `bun run docs` builds", (chromium) => {
  let server: Bun.Server<undefined> | undefined;
  let visit: Visit;

  beforeAll(async () => {
    await run([process.execPath, "run", "--silent", "docs"]);
    server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
    visit = JSON.parse(
      await run([process.execPath, "docs/.vitepress/visit.ts", chromium, server.url.origin, ...Object.keys(answers)]),
    );
  }, 600_000);
  afterAll(() => server?.stop(true));

  test("has every page of docs/, reached by links from the first one", () => {
    const pages = [...new Bun.Glob("**/*.md").scanSync(join(root, "docs"))];
    const paths = pages.map((name) => `/${name.replace(/\.md$/, ".html")}`.replace("/index.html", "/"));
    expect(visit.pages.map(({ path }) => path)).toEqual(paths.toSorted());
    expect(visit.pages.filter(({ status }) => status !== 200)).toEqual([]);
  });

  test("has no link to a page, a heading or a file that is not there", async () => {
    const ids = new Map(visit.pages.map(({ path, ids }) => [path, ids]));
    const broken: string[] = [];
    for (const { path, links } of visit.pages) {
      for (const link of links) {
        const { origin, pathname, hash } = new URL(link);
        if (origin !== server?.url.origin) continue;
        const there = ids.get(pathname);
        const found = there
          ? hash === "" || there.includes(decodeURIComponent(hash.slice(1)))
          : (await fetch(link)).status === 200;
        if (!found) broken.push(`${path}: ${pathname}${hash}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test("has no error in a console, and asks nobody but itself", () => {
    expect(visit.pages.flatMap(({ path, errors }) => errors.map((error) => `${path}: ${error}`))).toEqual([]);
  });

  test("scrolls only down on a screen of 360 px", () => {
    expect(visit.pages.filter(({ width }) => width > 360).map(({ path, width }) => `${path}: ${width} px`)).toEqual([]);
  });

  test("cuts no table on a screen of 1280 px", () => {
    expect(visit.pages.flatMap(({ path, cut }) => cut.map((table) => `${path}: ${table}`))).toEqual([]);
  });

  test("has dark pictures on dark pages", () => {
    expect(visit.pages.flatMap(({ path, bright }) => bright.map((picture) => `${path}: ${picture}`))).toEqual([]);
  });

  test("says on its first page which version it is about, and under which licence", () => {
    const { version, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const page = readFileSync(join(built, "index.html"), "utf8").replaceAll(/<[^>]+>/g, "");
    expect(page).toContain(`Version ${version}, changes · licence ${license}`);
  });

  test("passes axe in contrast and headings too, in light and dark", () => {
    expect(visit.pages.flatMap(({ path, violations }) => violations.map((one) => `${path}: ${one}`))).toEqual([]);
  });

  test("finds the page that answers a question, among those for readers", () => {
    for (const [words, page] of Object.entries(answers)) {
      expect(visit.search.found[words]?.map((link) => new URL(link).pathname)).toContain(page);
    }
    const found = Object.values(visit.search.found).flat();
    expect(found.filter((link) => link.includes("/maintainers/"))).toEqual([]);
    expect(visit.search.violations).toEqual([]);
  });

  test("lists every endpoint of the API", () => {
    const { paths } = JSON.parse(readFileSync(join(root, "docs/openapi.json"), "utf8")) as { paths: object };
    const page = readFileSync(join(built, "api.html"), "utf8");
    for (const path of Object.keys(paths)) expect(page).toContain(`GET ${path}</code>`);
  });
});

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const file = Bun.file(join(built, pathname.endsWith("/") ? `${pathname}index.html` : pathname));
  return (await file.exists()) ? new Response(file) : new Response("Not found.", { status: 404 });
}

function run(command: string[]): Promise<string> {
  return outputOf(command, { cwd: root, env: process.env });
}
