import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Page } from "puppeteer-core";
import { callTool } from "./mcp.ts";
import type { Site } from "./server.ts";

/* Every page of a dashboard, and what is wrong with how one looks. Links lead to it, so a new page is found unnamed. */

/** Something of everything that pages show. The values are those of an account and of a file. */
export async function fillPages(
  site: Site,
  values: { readonly account: string; readonly file: string },
): Promise<void> {
  await site.json(["account", "set", "acme/web", "registry", "--env", "staging"], `{"password":"${values.account}"}`);
  await Bun.write(`${site.folder}/secret.pem`, values.file);
  await site.json(["file", "put", "acme/web", "secret.pem", "--path", "tls/key.pem", "--env", "production"]);
  await site.json(["var", "set", "acme/web", "staging", "ONLY_HERE", "--rotate-by", "2099-01-31"], "y");
  const may = ["--resource", "variables,projects,requests", "--surface", "rest_api,mcp_server"];
  const { key } = await site.key("--name", "ci", ...may);
  await site.key("--name", "short", "--expires-in", "5d");
  await site.json(["person", "add", "lea"]);
  await site.json(["person", "grant", "lea", "see", "--project", "web", "--all-environments"]);
  const server = await site.serve({ env: { KEYHOLE_MCP: "on" } });
  await server.get("/projects/web/variables?environment=staging", key);
  const agent = new Client({ name: "agent", version: "1" });
  const headers = { authorization: `Bearer ${key}` };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${server.origin}/mcp`), { requestInit: { headers } }));
  const wanted = { project: "web", environment: "staging", name: "WANTED", reason: "<b>it</b> needs it" };
  await callTool(agent, "request_variable", wanted);
  await agent.close();
  await server.stop();
}

/** Names as long as they may be, without a place to break, of everything that has one. @returns pages of such things */
export async function fillHostile(site: Site): Promise<string[]> {
  const long = (first: string, length: number) => `${first}${"W".repeat(length - 1)}`;
  const names = { project: long("P", 200), variable: long("V", 255), account: long("A", 128), file: long("F", 200) };
  await site.json(["project", "create", "acme/hostile", "--name", names.project]);
  const note = ["--note", `${long("N", 200)} https://example.com/${long("u", 200)}`];
  for (const name of [names.variable, "STAYS_SHORT"]) {
    await site.json(["var", "set", "acme/hostile", "staging,production", name, ...note], "value");
  }
  await site.json(
    ["account", "set", "acme/hostile", names.account, "--env", "staging"],
    `{"${long("f", 60)}":"value"}`,
  );
  await site.json(["file", "put", "acme/hostile", "secret.pem", "--path", names.file, "--env", "production"]);
  const { id } = await site.key("--name", long("K", 128), "--project", "hostile", "--env", "staging");
  const person = "p".repeat(64);
  await site.json(["person", "add", person]);
  await site.json(["person", "grant", person, "see,reveal,audit", "--project", "hostile", "--all-environments"]);
  return [`/keys/${id}`, `/persons/${person}`, `/find?q=${names.variable}`, "/p/acme/hostile/variables?choose=yes"];
}

/** What a path is, whatever the ids and numbers in it. */
export function shapeOf(path: string): string {
  // One filtered page is enough: the links of the audit's filter combine, and others choose among the same rows.
  return path.replace(/(?<=^\/audit\?|\?(?:only|show)=).*/, "").replace(/[0-9a-f]{8}-[0-9a-f-]{27}|%3A\d+|\d+/g, "N");
}

/** The first path of each shape that links lead to. */
export async function crawl(page: Page): Promise<string[]> {
  const found = ["/"];
  const seen = new Set(found);
  for (const path of found) {
    const html = String(await page.evaluate(`fetch(${JSON.stringify(path)}).then((page) => page.text())`));
    const add = (link: string) => {
      if (seen.has(shapeOf(link)) || !/^\/(?!audit\/(?:export|proof))/.test(link)) return;
      seen.add(shapeOf(link));
      found.push(link);
    };
    const links = new HTMLRewriter().on("a[href]", {
      element: (a) => add((a.getAttribute("href") ?? "").replaceAll("&amp;", "&").replace(/#.*/, "")),
    });
    links.transform(html);
  }
  return found;
}

/** The widths that pages are looked at in: of phones, around the breakpoints of the sheet, and of screens. */
export const widths = [320, 360, 390, 430, 520, 640, 700, 768, 860, 900, 1024, 1280, 1920] as const;

/** In the dark nothing but colours differs. */
export const rulesOfColors = { runOnly: ["color-contrast", "link-in-text-block"] };

/** How a page is looked at. */
export type Look = {
  readonly width: number;
  /** What axe looks for, in its own words; undefined for nothing. */
  readonly rules?: object | undefined;
};

/**
 * Looks at the page that is open, everything that folds unfolded: whether it scrolls sideways, and what axe finds. Where
 * axe is asked, the page has it.
 */
export async function faultsOf(page: Page, { width, rules }: Look): Promise<string[]> {
  if (width !== page.viewport()?.width) await page.setViewport({ width, height: 900 });
  const options = rules && JSON.stringify({ resultTypes: ["violations"], ...rules });
  return (await page.evaluate(`(async () => {
    const folded = [...document.querySelectorAll("main details:not([open])")];
    for (const one of folded) one.open = true;
    const { scrollWidth, clientWidth } = document.documentElement;
    const { violations } = ${options === undefined ? "{ violations: [] }" : `await axe.run(${options})`};
    const faults = violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)].join(" "));
    for (const one of folded) one.open = false;
    return scrollWidth > clientWidth ? ["scrolls by " + (scrollWidth - clientWidth), ...faults] : faults;
  })()`)) as string[];
}
