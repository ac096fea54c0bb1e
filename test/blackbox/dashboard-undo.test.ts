import { expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Dashboard, openDashboard, Person } from "../support/browser.ts";
import { runBinary } from "../support/keyhole.ts";
import { callTool } from "../support/mcp.ts";
import { withPrograms } from "../support/programs.ts";
import { type Row, type Site, siteOf } from "../support/server.ts";

/* Yesterday's mistake, and an earlier value: taken back in the browser, with the clicks counted. */

const many = Object.fromEntries(Array.from({ length: 39 }, (_, at) => [`NAME_${at + 10}`, `value ${at}`]));

withPrograms(["chromium"], "undoing, in Chromium", (chromium) => {
  const site = siteOf("sqlite", { production: { ...many, TOKEN: "first" } });
  let dashboard: Dashboard;
  let ana: Person;
  openDashboard(chromium, site, (opened) => {
    dashboard = opened.dashboard;
    ana = new Person(opened.page);
  });
  const run = async (actor: string, args: readonly string[], stdin = "") => {
    const env = { ...site.env, KEYHOLE_ACTOR: actor };
    const ran = await runBinary([...args], { cwd: site.folder, env, stdin });
    expect([args, ran.exitCode, ran.stderr]).toEqual([args, 0, expect.any(String)]);
    return ran.stdout;
  };
  const read = (name: string) => run("ana@laptop", ["var", "get", "acme/web", "production", name]);

  const followAt = async (selector: string) => {
    const link = await ana.page.waitForSelector(selector);
    ana.clicks += 1;
    await Promise.all([ana.page.waitForNavigation(), link?.click()]);
  };

  test("yesterday's mistake takes four clicks and the name, and the later good changes stay", async () => {
    await run("ben@laptop", ["var", "import", "acme/web", "production", "-", "--prune", "--yes"], "TOKEN=wrong\n");
    await run("ana@laptop", ["var", "set", "acme/web", "production", "TOKEN"], "good");
    const request = await asked(site, "WANTED");
    await run("ana@laptop", ["request", "approve", request], "wanted");

    await ana.page.goto(dashboard.origin);
    ana.clicks = 0;
    await followAt(".changes a[href^='/p/acme/web']");
    await ana.follow("history");
    await followAt(`xpath///li[contains(., "by ben@laptop")]//a[.="Undo this change"]`);
    const said = await ana.text();
    expect(said).toContain("added: NAME_10, NAME_11");
    expect(said).toContain("and 19 others");
    expect(said).toMatch(/Not undone, because written since: TOKEN \(version \d+, by ana@laptop\)\./);
    await ana.type("again", "acme/web");
    await ana.follow("Undo version");
    expect(ana.clicks).toBe(4);
    expect(await ana.text("main [role=status]")).toContain("of the variables of acme/web in production: added NAME_10");
    expect(await read("NAME_10")).toBe("value 0");
    expect(await read("TOKEN")).toBe("good");
    expect(await read("WANTED")).toBe("wanted");
    const there = (await site.json(["var", "list", "acme/web", "production"])) as Row[];
    expect(there).toHaveLength(41);
    const [entry] = (await site.json(["audit", "list", "--action", "variables.rollback"])) as Row[];
    expect(entry).toMatchObject({ actor: { name: "ana@laptop" }, count: 39, changed: [], deleted: [] });
  }, 60_000);

  test("an earlier value is put back by three clicks and the name, from the page of its item", async () => {
    await ana.page.goto(`${dashboard.origin}/p/acme/web/variables/item?name=TOKEN`);
    ana.clicks = 0;
    await ana.page.click("section summary");
    ana.clicks += 1;
    await followAt(`xpath///li[contains(., "by ann@host")]//a[.="Put back"]`);
    expect(await ana.text()).toMatch(/would put TOKEN, .* back to what it was in version \d+:\s+changed: TOKEN\n/);
    expect(await ana.text()).toMatch(/takes back version \d+ by ben@laptop, and version \d+ by ana@laptop/);
    await ana.type("again", "acme/web");
    await ana.follow("Put it back");
    expect(ana.clicks).toBe(3);
    expect(await ana.text("h1")).toBe("TOKEN");
    expect(await read("TOKEN")).toBe("first");
    expect(await read("WANTED")).toBe("wanted");
  }, 60_000);

  test("a save is taken back from its notice, with and without the script", async () => {
    for (const isScripted of [true, false]) {
      await ana.page.setJavaScriptEnabled(isScripted);
      await ana.page.goto(`${dashboard.origin}/p/acme/web/variables/set?name=TOKEN`);
      await ana.type("value.production", "typed over");
      await ana.type("again", "TOKEN");
      await ana.follow("Save");
      expect(await read("TOKEN")).toBe("typed over");
      ana.clicks = 0;
      await followAt("main [role=status] a");
      expect(await ana.text("h1")).toMatch(/^Undo version \d+ in production$/);
      await ana.type("again", "acme/web");
      await ana.follow("Undo version");
      expect(ana.clicks).toBe(2);
      expect(await read("TOKEN")).toBe("first");
      expect(await ana.text("main [role=status]")).toMatch(/changed TOKEN\. This is version \d+\. Undo$/);
    }
    await ana.page.setJavaScriptEnabled(true);
  }, 60_000);
});

/** The id of a request that an agent files for a variable in production. */
async function asked(site: Site, name: string): Promise<string> {
  const { key } = await site.key("--name", "agent", "--resource", "requests", "--surface", "mcp_server");
  const server = await site.serve({ env: { KEYHOLE_MCP: "on" } });
  const agent = new Client({ name: "agent", version: "1" });
  const headers = { authorization: `Bearer ${key}` };
  await agent.connect(new StreamableHTTPClientTransport(new URL(`${server.origin}/mcp`), { requestInit: { headers } }));
  const { found } = await callTool(agent, "request_variable", {
    ...{ project: "web", environment: "production", name, reason: "it needs it" },
  });
  await agent.close();
  await server.stop();
  return String(found["id"]);
}
