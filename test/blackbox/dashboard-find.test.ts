import { afterAll, expect, test } from "bun:test";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { allOfRole, type Opened, openDashboard, spokenText } from "../support/browser.ts";
import { newFolder } from "../support/folder.ts";
import { binary } from "../support/keyhole.ts";
import { makeBin } from "../support/page.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

type Pod = { readonly command: readonly string[]; readonly env: readonly { readonly value: string }[] };

/* The search of everything, as people use it. */

withPrograms(["chromium"], "the search, in Chromium", (chromium) => {
  const site = siteOf("sqlite", {
    staging: { WAREHOUSE_URL: "canary-of-find", OTHER: "x" },
    production: { WAREHOUSE_URL: "canary-of-find" },
  });
  let { dashboard, page, said } = {} as Opened;
  const visit = (path: string) => page.goto(`${dashboard.origin}${path}`);
  const focused = () => page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent");
  const opened = () => page.evaluate("location.pathname + location.search");
  /** What is offered below the field, once the last answer is there. */
  const offered = async () => {
    await page.waitForSelector("[role=listbox]:not([aria-busy]) > [role=option]", { visible: true });
    return page.$$eval("[role=option]", (all) => all.map((one) => one.textContent));
  };
  /** The option on which the arrows stand, as a screen reader finds it. */
  const chosen = () =>
    page.evaluate("document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.textContent");

  const prepare = async () => {
    await site.json(["project", "create", "acme/billing"]);
    await site.json(["var", "set", "acme/billing", "production", "OLD_WAREHOUSE", "--value", "x"]);
    await site.json(["key", "create", "--name", "Warehouse CI", "--project", "billing", "--all-environments"]);
    await site.json(["person", "add", "warehouse-team"]);
    await site.json(["person", "grant", "warehouse-team", "see", "--project", "billing", "--all-environments"]);
  };
  openDashboard(chromium, site, (opened) => ({ dashboard, page, said } = opened), prepare);
  // The console also names the addresses that one test has refused on purpose.
  afterAll(() => expect(said.filter((one) => !/x{1025}|no\+such: .* 400 /.test(one))).toEqual([]));

  test("says in the accessibility tree what was found, and where it is", async () => {
    await page.setViewport({ width: 1280, height: 900 });
    await visit("/find?q=warehouse");
    const tree = await page.accessibility.snapshot({ interestingOnly: false });
    expect(allOfRole(tree, "heading").map(spokenText)).toEqual(["Find warehouse"]);
    expect(allOfRole(tree, "combobox").map(spokenText)).toEqual(["Find a name everywhere"]);
    expect(allOfRole(tree, "row").map(({ children }) => children.map(spokenText).join(" | "))).toEqual([
      "Name | Project | Where it is | What",
      "WAREHOUSE_URL | acme/web | staging production | variable",
      "Warehouse CI | acme |  | key, active",
      "warehouse-team | acme | acme/billing | person",
      "OLD_WAREHOUSE | acme/billing | production | variable",
    ]);
    expect(allOfRole(tree, "table").map(spokenText)).toEqual(["What has it in its name or its note, the best first"]);
  });

  test("by keyboard alone, the key / on a page without a filter leads to it, and on to a hit", async () => {
    await visit("/");
    await page.keyboard.press("/");
    expect(await focused()).toBe("Find a name everywhere");
    await page.keyboard.type("old_w/");
    await page.keyboard.press("Backspace");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/find?q=old_w");
    await page.focus("tbody a");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/p/acme/billing/variables/item?name=OLD_WAREHOUSE");
  });

  test("the key / goes to a page's filter first, and from the empty filter to the search", async () => {
    await visit("/p/acme/web/variables");
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.matches('[data-filter]')")).toBe(true);
    await page.keyboard.type("a/");
    expect(await page.evaluate("document.activeElement.value")).toBe("a/");
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    expect(await focused()).toBe("Find a name everywhere");
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.value")).toBe("/");
  });

  test("a filter that leaves no row leads to the search of everything, with Enter too", async () => {
    await visit("/p/acme/web/variables");
    const leads = () =>
      page.$$eval(
        "main a",
        (all) => all.filter((one) => /^Find /.test(one.textContent ?? "") && one.checkVisibility()).length,
      );
    await page.keyboard.press("/");
    await page.keyboard.type("ware");
    expect(await leads()).toBe(0);
    await page.keyboard.type(" old & co");
    expect(await leads()).toBe(1);
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("Find ware old & co everywhere");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/find?q=ware%20old%20%26%20co");
    expect(await page.$eval("main", (one) => one.textContent)).toContain("Try a shorter part");
  });

  test("Ctrl-K leads from any field to the last projects and to what people do there, by arrows and Enter", async () => {
    await visit("/p/acme/billing/variables");
    await visit("/p/acme/web/variables/set");
    await page.focus("main [name=name]");
    await page.keyboard.down("Control");
    await page.keyboard.press("k");
    await page.keyboard.up("Control");
    const all = ["New variable", "Paste", "Edit as text", "Promote"];
    const actions = all.map((one) => `${one} in acme/web`);
    const destinations = ["acme/web project", "acme/billing project", ...actions, "Create a key ", "Search the audit "];
    expect(await offered()).toEqual(destinations);
    expect([await focused(), await chosen()]).toEqual(["Find a name everywhere", undefined]);
    for (const _ of destinations) await page.keyboard.press("ArrowDown");
    expect(await chosen()).toBe("Search the audit ");
    // After the last one is the field again, and before it the last one.
    await page.keyboard.press("ArrowDown");
    expect(await chosen()).toBeUndefined();
    for (const _ of "123") await page.keyboard.press("ArrowUp");
    expect(await chosen()).toBe("Promote in acme/web");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/p/acme/web/variables/promote");
  });

  test("offers the best names while one types; Enter goes to the chosen one or, with none, lists them all", async () => {
    await visit("/");
    await page.keyboard.press("/");
    await page.keyboard.type("warehouse");
    expect(await offered()).toEqual([
      // Both were looked at.
      "WAREHOUSE_URL variable, acme/web",
      "OLD_WAREHOUSE variable, acme/billing",
      "Warehouse CI key, active, acme",
      "warehouse-team person, acme, acme/billing",
    ]);
    expect(await page.$eval("search [role=status]", (one) => one.textContent)).toBe("4 names.");
    await page.keyboard.press("Escape");
    expect(await page.$eval("[role=listbox]", (one) => one.checkVisibility())).toBe(false);
    await page.keyboard.press("ArrowDown");
    await offered();
    for (const _ of "1234") await page.keyboard.press("ArrowDown");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/persons/warehouse-team");
    await page.keyboard.press("/");
    await page.keyboard.type("no such");
    await page.waitForFunction(`document.querySelector("search [role=status]").textContent.startsWith("Nothing that")`);
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/find?q=no+such");
    // A long text, such as one that was pasted by mistake.
    await page.$eval("search [name=q]", (field) => {
      field.value = "x".repeat(20_000);
      field.focus();
      field.dispatchEvent(new Event("input"));
    });
    await page.waitForFunction(
      `document.querySelector("search [role=status]").textContent.startsWith("No name has more")`,
    );
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await page.$eval("main", (one) => one.textContent)).toContain("No name has more than 1,024 characters");
  });

  test("leads to what one wants to do, in the project that one names", async () => {
    await visit("/");
    await page.keyboard.press("/");
    await page.keyboard.type("promote bill");
    expect(await offered()).toEqual(["Promote in acme/billing"]);
    await page.keyboard.press("ArrowDown");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    expect(await opened()).toBe("/p/acme/billing/variables/promote");
  });

  test("the page that says how to run it prints lines that do, for everybody who may see the project", async () => {
    const server = await site.serve();
    const { key } = await site.key("--project", "web", "--env", "staging");
    await visit("/p/acme/web/variables");
    await Promise.all([page.waitForNavigation(), page.click("main a[href$='/run']")]);
    await Promise.all([page.waitForNavigation(), page.click("nav.chips a[href$='=staging']")]);
    const printed = await page.$$eval("main pre", (all) => all.map((one) => one.textContent ?? ""));
    const [program = "", file = "", job = "", compose = "", pod = ""] = printed;
    const folder = newFolder();
    writeFileSync(join(folder, "web.key"), key, { mode: 0o600 });
    for (const name of ["start", "deploy.sh"]) {
      writeFileSync(join(folder, name), '#!/bin/sh\necho "$WAREHOUSE_URL"\n', { mode: 0o700 });
    }
    const env = { PATH: makeBin(folder), HOME: folder };
    symlinkSync(binary, join(env.PATH, "keyhole"));
    const ran = async (lines: string) => {
      const script = lines.replace("https://keyhole.example", server.origin);
      const child = Bun.spawn(["/bin/sh", "-ec", script], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
      return [await child.stdout.text(), await child.stderr.text(), await child.exited];
    };
    const value = "canary-of-find\n";
    expect(await ran(program)).toEqual([value, "", 0]);
    // As the page of a new key has it.
    const typed = program.replace("_FILE=web.key", `=${key}`);
    expect(await ran(typed)).toEqual([value, "", 0]);
    expect((await ran(file))[2]).toBe(0);
    expect(readFileSync(join(folder, "web.env"), "utf8")).toContain("WAREHOUSE_URL=canary-of-find");
    expect(await ran(job)).toEqual([value, "", 0]);
    const options = { project: "web", env: "staging", wait: "60s" };
    expect(Bun.YAML.parse(compose)).toMatchObject({
      services: { keyhole_secrets: { provider: { type: "keyhole", options } } },
    });
    const [{ command, env: set }] = (Bun.YAML.parse(pod) as { spec: { containers: [Pod] } }).spec.containers;
    expect([command.slice(0, 2), set.map(({ value }) => value).slice(2)]).toEqual([
      ["keyhole", "run"],
      ["web", "staging"],
    ]);
    await server.stop();
  }, 60_000);

  test.each([1280, 640, 390])("what is offered lies over the page at %i px, and axe finds nothing", async (width) => {
    await page.setViewport({ width, height: 900 });
    await visit("/p/acme/web/variables");
    await page.evaluate(axe.source);
    await page.focus("header input");
    await page.keyboard.type("ware");
    await offered();
    await page.keyboard.press("ArrowDown");
    const found = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as axe.AxeResults;
    expect(found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    const { left, right } = await page.$eval("search div", (one) => one.getBoundingClientRect().toJSON());
    const isOnTop = await page.evaluate(`(() => {
      const chosen = document.querySelector("[aria-selected=true]");
      const { left, top } = chosen.getBoundingClientRect();
      return chosen.contains(document.elementFromPoint(left + 9, top + 9));
    })()`);
    expect([left >= 0, right <= width, isOnTop]).toEqual([true, true, true]);
    await page.setViewport({ width: 1280, height: 900 });
  });

  test("works without the script, and no page shows what only the script makes work", async () => {
    await page.setJavaScriptEnabled(false);
    const only =
      "kbd, button[type=button], [data-filter], [data-all], [aria-keyshortcuts], [role=combobox], [role=listbox]";
    const grid = "/p/acme/web/variables";
    const command =
      "/keys/new?command=yes&reach=all&environments=staging&surfaces=rest_api&resources=variables&expires=never";
    for (const path of [
      grid,
      `${grid}/promote?from=staging&to=development`,
      `${command}&org=acme&name=ci`,
      "/find",
      "/",
    ]) {
      await visit(path);
      const dead = await page.$$eval(only, (all) =>
        all.filter((one) => one.checkVisibility()).map((one) => one.outerHTML),
      );
      expect([path, dead]).toEqual([path, []]);
    }
    await page.type("header input", "warehouse_u");
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    await page.setJavaScriptEnabled(true);
    expect(await page.$$eval("tbody a", (all) => all.map((one) => one.textContent))).toEqual(["WAREHOUSE_URL"]);
  });

  test("on a phone, its field is on the first line of the header", async () => {
    await page.setViewport({ width: 390, height: 800 });
    await visit("/");
    const middles = await page.$$eval('header > [href="/"], header input, header > form button', (all) =>
      all.map((one) => Math.round(one.getBoundingClientRect().top + one.getBoundingClientRect().height / 2)),
    );
    await page.setViewport({ width: 1280, height: 900 });
    expect(middles).toEqual(Array.from({ length: 3 }, () => middles[0] as number));
  });
});
