import { afterAll, expect, test } from "bun:test";
import { allOfRole, type Opened, openDashboard, spokenText } from "../support/browser.ts";
import { startNotary } from "../support/notary.ts";
import { withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

/* The grid as people use it: at a glance, by keyboard, by pointer, on a phone. */

const copied = "canary-that-is-copied";
/** Fifty names beside three that tests look for. */
const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`NAME_${String(at).padStart(2, "0")}`, "x"]));

withPrograms(["chromium"], "the grid, in Chromium", (chromium) => {
  const site = siteOf("sqlite", {
    staging: { ...many, SAME: "same", DIFFERS: "one", WAREHOUSE_TOKEN: copied },
    production: { ...many, SAME: "same", DIFFERS: "another" },
  });
  let { dashboard, page, said } = {} as Opened;
  const path = "/p/acme/web/variables";
  const visit = async (width: number, to = path) => {
    await page.setViewport({ width, height: 900 });
    await page.goto(`${dashboard.origin}${to}`);
  };
  const clipboard = () => page.evaluate("navigator.clipboard.readText()");
  const clear = () => page.evaluate("navigator.clipboard.writeText('')");
  const copyDone = () => page.waitForFunction("document.activeElement.textContent === 'Copied'");

  openDashboard(chromium, site, async (opened) => {
    ({ dashboard, page, said } = opened);
    const allowed = ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"] as const;
    await opened.context.overridePermissions(dashboard.origin, [...allowed]);
  });
  afterAll(() => expect(said).toEqual([]));

  test("says in the accessibility tree what is there, what is missing, and which values are the same", async () => {
    await visit(1280);
    await Promise.all([page.waitForNavigation(), page.click("form[action$='/compare'] button")]);
    const tree = await page.accessibility.snapshot({ interestingOnly: false });
    const found = allOfRole(tree, "row").map((row) => row.children.map(spokenText).join(" | "));
    expect(found.filter((row) => /^(Name|DIFFERS|SAME|WAREHOUSE)/.test(row))).toEqual([
      "Name | Development | Staging | Production",
      "DIFFERS | missing | value A, just now | value B, just now",
      "SAME | missing | value A, just now | value A, just now",
      "WAREHOUSE_TOKEN | missing | just now | missing",
    ]);
    expect(found).toHaveLength(54);
    const chips = allOfRole(tree, "link").filter(({ name = "" }) => / \d+$/.test(name));
    expect(chips.map(({ name }) => name)).toEqual(["All 53", "Missing in production 1"]);
  });

  test("folds names that begin alike, and the filter and an order find them all the same", async () => {
    await visit(1280);
    const rows = () =>
      page.$$eval("tbody tr", (all) =>
        all.filter((one) => one.checkVisibility()).map((one) => one.cells[0]?.textContent),
      );
    const group = "NAME_… 50";
    const others = ["DIFFERS", group, "SAME", "WAREHOUSE_TOKEN"];
    expect((await rows()).slice(0, 3)).toEqual(["DIFFERS", group, "NAME_00"]);
    expect(await rows()).toHaveLength(54);
    // What is in the group stands further in than what comes after it.
    const leftOf = (name: string) =>
      page.$eval(`tbody a[href$="name=${name}"]`, (link) => link.getBoundingClientRect().left);
    expect([(await leftOf("NAME_00")) > (await leftOf("SAME")), await leftOf("DIFFERS")]).toEqual([
      true,
      await leftOf("SAME"),
    ]);
    const tree = await page.accessibility.snapshot({ interestingOnly: false });
    expect(allOfRole(tree, "rowheader").map(spokenText).slice(0, 2)).toEqual(["DIFFERS", group]);
    await page.focus("tbody .fold");
    await page.keyboard.press("Enter");
    expect(await rows()).toEqual(others);
    expect(await page.$eval("tbody .fold", (one) => one.ariaExpanded)).toBe("false");
    // It is in the address, so it is there again.
    await page.reload();
    expect(await rows()).toEqual(others);
    await page.type("[data-filter]", "name_07");
    expect(await rows()).toEqual(["NAME_07"]);
    await page.keyboard.press("Escape");
    expect(await rows()).toEqual(others);
    const all = async () => page.click("button[aria-label$=' all groups']");
    await all();
    expect(await rows()).toHaveLength(54);
    await all();
    expect(await rows()).toEqual(others);
    await page.click("thead .sort");
    expect(await rows()).toHaveLength(53);
    expect((await rows())[1]).toBe("NAME_00");
    expect(await leftOf("NAME_00")).toBe(await leftOf("SAME"));
    expect(await page.$$("button[aria-label$=' all groups'], .group")).toEqual([]);
    // What is too long for an address is not kept in it: the server would refuse it.
    await page.$eval("[data-filter]", (field) => {
      field.value = "x".repeat(5000);
      for (const what of ["input", "change"]) field.dispatchEvent(new Event(what));
    });
    expect(new URL(page.url()).searchParams.has("filter")).toBe(false);
    // What is folded is not chosen with all that is shown.
    await visit(1280, `${path}?choose=yes&folded=NAME_`);
    await page.click("[data-all]");
    expect(await page.$$eval("[name=names]:checked", (some) => some.map(({ value }) => value))).toEqual([
      "DIFFERS",
      "SAME",
      "WAREHOUSE_TOKEN",
    ]);
  });

  test("by keyboard alone, the filter leads to the first match, and the keys after it copy the value", async () => {
    await visit(1280);
    await clear();
    await page.keyboard.press("/");
    await page.keyboard.type("house");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("WAREHOUSE_TOKEN");
    const next = async () => {
      await page.keyboard.press("Tab");
      return page.evaluate("document.activeElement.ariaLabel");
    };
    expect([await next(), await next()]).toEqual(["Edit WAREHOUSE_TOKEN here", "Copy WAREHOUSE_TOKEN in staging"]);
    await page.keyboard.press("Enter");
    await copyDone();
    expect(await clipboard()).toBe(copied);
    expect(await page.content()).not.toContain(copied);
    const [read] = (await site.json(["audit", "list", "--name", "WAREHOUSE_TOKEN", "--limit", "1"])) as object[];
    expect(read).toMatchObject({ action: "variables.reveal", environment: "staging", names: ["WAREHOUSE_TOKEN"] });
  });

  test("under the pointer, a row has a button for each value that is there", async () => {
    await visit(1280);
    await clear();
    const buttons = () => page.$$eval("td [aria-label^=Copy]", (all) => all.map(({ ariaLabel }) => ariaLabel));
    expect(await buttons()).toEqual([]);
    await page.hover("tbody tr:nth-child(3)");
    expect(await buttons()).toHaveLength(2);
    await page.hover("tbody:last-child tr:last-child th");
    expect(await buttons()).toEqual(["Copy WAREHOUSE_TOKEN in staging"]);
    await page.click("td [aria-label^=Copy]");
    await copyDone();
    expect(await clipboard()).toBe(copied);
  });

  test("a tap on an empty place of a row copies nothing", async () => {
    await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
    await page.goto(`${dashboard.origin}${path}`);
    const cell = await page.$("tbody tr:first-child td:nth-of-type(2)"); // it is in view
    const { x, y, width, height } = (await cell?.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.touchscreen.tap(x + width - 15, y + height / 2);
    expect(await page.$$("[aria-label^=Copy]")).toEqual([]);
    expect(await page.$eval(".toast", (one) => one.textContent)).not.toContain("clipboard");
  });

  test("a row is edited where it is, by keyboard or with a finger, and Escape closes what nobody typed in", async () => {
    const focused = () => page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent");
    const label = (where: string) => `New value of SAME in ${where}`;
    const isSaveThere = () => page.$eval("[data-rows] .send", (one) => one.checkVisibility());
    const isAgainThere = () => page.$eval("[name=again]", (one) => one.checkVisibility());
    for (const isPhone of [false, true]) {
      await page.setViewport({ width: isPhone ? 390 : 1280, height: 844, isMobile: isPhone, hasTouch: isPhone });
      await page.goto(`${dashboard.origin}${path}?filter=same`);
      const row = await page.waitForSelector("tbody:not([hidden]) tr:not([hidden], .group)");
      expect(await isSaveThere()).toBe(false);
      if (isPhone) await row?.tap();
      else {
        await page.focus("tbody:not([hidden]) tr:not([hidden], .group) a");
        await page.keyboard.press("Tab");
      }
      const edit = await page.waitForSelector("[aria-label='Edit SAME here']");
      await (isPhone ? edit?.tap() : page.keyboard.press("Enter"));
      expect(await focused()).toBe(label("development"));
      await page.keyboard.press("Tab");
      expect(await focused()).toBe(label("staging"));
      const placeholders = await page.$$eval("td textarea", (all) => all.map((one) => one.placeholder));
      expect([placeholders, await isSaveThere()]).toEqual([["none yet", "unchanged", "unchanged"], true]);
      await page.keyboard.press("Escape");
      expect([await focused(), await isSaveThere()]).toEqual(["SAME", false]);
      await page.click("[aria-label='Edit SAME here']");
      await page.keyboard.type("x");
      await page.keyboard.press("Escape");
      expect([await focused(), await isAgainThere()]).toEqual([label("development"), false]);
      await page.type(`[aria-label="${label("production")}"]`, "y");
      expect(await isAgainThere()).toBe(true);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      await page.evaluate("for (const one of document.querySelectorAll('td textarea')) one.value = ''");
      await page.$eval("td textarea", (one) => one.dispatchEvent(new Event("input", { bubbles: true })));
    }
  });

  test("the filter finds the words of cells whole, and parts of names", async () => {
    await visit(1280);
    const shown = async (text: string) => {
      await page.$eval("[data-filter]", (field) => Object.assign(field, { value: "" }));
      await page.type("[data-filter]", text);
      return page.$$eval("tbody tr", (rows) =>
        rows.flatMap((row) => (row.checkVisibility() ? [row.cells[0]?.textContent] : [])),
      );
    };
    expect(await shown("missing")).toHaveLength(53);
    expect(await shown("missin")).toEqual([]);
    expect(await shown("MISSING ware")).toEqual(["WAREHOUSE_TOKEN"]);
    expect(await shown("ago")).toEqual([]);
    expect(await shown("_4 name")).toHaveLength(10);
  });

  test("on a phone each row has two lines, below the headings of its columns, with the script and without it", async () => {
    const lines = `[...document.querySelectorAll("thead tr, thead + tbody tr:first-child")].map(({ cells: [name, ...others] }) => {
      const [top, ...tops] = [name, ...others].map((cell) => cell.getBoundingClientRect().top);
      return top < tops[0] && new Set(tops).size === 1 && others.every((cell) => cell.clientHeight < 32);
    })`;
    const cells = `[...document.querySelectorAll("thead + tbody tr:first-child > *")].map((one) => one.checkVisibility() && one.scrollWidth <= one.clientWidth)`;
    for (const hasScript of [true, false]) {
      await page.setJavaScriptEnabled(hasScript);
      await visit(390);
      await page.setJavaScriptEnabled(true);
      expect(await page.evaluate(lines)).toEqual([true, true]);
      expect(await page.evaluate(cells)).toEqual([true, true, true, true]);
    }
  });

  test("promote chooses only what is missing at once, says how much in a button that stays, and shows the plan", async () => {
    await visit(1280, `${path}/promote?from=staging&to=production`);
    const button = () => page.$eval("main [method=post] [type=submit]", (one) => one.textContent);
    expect(await button()).toBe("Copy what is chosen");
    await page.click("[data-all]");
    expect(await button()).toBe("Copy 1 new");
    await page.click("summary");
    await page.click("details tbody input");
    expect(await button()).toBe("Copy 1 new, overwrite 1");
    await page.click("details tbody input");
    expect(await button()).toBe("Copy 1 new");
    await visit(1280, `${path}/promote?from=staging&to=development`);
    const isInView =
      "document.querySelector('main [method=post] [type=submit]').getBoundingClientRect().bottom <= innerHeight";
    expect(await page.evaluate(isInView)).toBe(true);
    await page.type("[data-filter]", "diff");
    await page.click("[data-all]");
    expect(await button()).toBe("Copy 1 new");
    await Promise.all([page.waitForNavigation(), page.click("main [method=post] [type=submit]")]);
    expect(await page.$eval("main ul", (one) => one.textContent)).toBe("added: DIFFERS");
    await Promise.all([page.waitForNavigation(), page.click("main [method=post] [type=submit]")]);
    const notice = await page.$eval("main [role=status]", (one) => one.textContent);
    expect(notice).toContain("Copied 1 variable to acme/web, development");
  });

  test("several are chosen by keyboard alone, or all that are shown, and the plan is what is done", async () => {
    const { keyboard } = page;
    const go = (act: () => Promise<unknown>) => Promise.all([page.waitForNavigation(), act()]);
    const tabTo = async (words: string) => {
      const here = () => page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent.trim()");
      for (let tabs = 0; tabs < 40 && (await here()) !== words; tabs += 1) await keyboard.press("Tab");
      expect(await here()).toBe(words);
    };
    const plan = () => page.$eval("main ul", (one) => one.textContent);
    await visit(1280);
    await tabTo("Choose several");
    await go(() => keyboard.press("Enter"));
    await keyboard.press("/");
    await keyboard.type("name_49");
    await keyboard.press("Enter");
    await keyboard.press("Space");
    await tabTo("See what it would do in production");
    await go(() => keyboard.press("Enter"));
    expect(await plan()).toBe("deleted: NAME_49");
    await tabTo("Choose others");
    await go(() => keyboard.press("Enter"));
    await page.hover("tbody tr");
    expect(await page.$$("td [aria-label^=Copy]")).toEqual([]);
    await page.type("[data-filter]", "name_0");
    await page.click("[data-all]");
    await page.select("[name=deed]", "copy from");
    await page.select("[name=from]", "staging");
    await go(() => page.click('main [type=submit][value="development"]'));
    const ten = Array.from({ length: 10 }, (_, at) => `NAME_0${at}`);
    expect(await plan()).toBe(`added: ${ten.join(", ")}`);
    await go(() => page.click("main [method=post] [type=submit]"));
    expect(await page.$eval("main [role=status]", (one) => one.textContent)).toContain(
      "Copied 10 variables to acme/web, development",
    );
  });

  test("has the last reads in a column, once a notary has read the audit", async () => {
    const headings = `[...document.querySelectorAll("thead th")].filter((one) => one.checkVisibility()).map((one) => one.textContent)`;
    const environments = ["Name", "development", "staging", "production"];
    await visit(1280);
    expect(await page.evaluate(headings)).toEqual(environments);
    const notary = await startNotary(site);
    await notary.says("signed_checkpoint");
    await notary.stop();
    await visit(1280);
    expect(await page.evaluate(headings)).toEqual([...environments, "Last read"]);
    const cell = "tbody tr:first-child .reads";
    expect(await page.$eval(cell, (one) => one.textContent)).toMatch(/^never since [\d-]{10}$/);
    await page.click('nav a[href$="only=unread"]');
    await page.waitForFunction("location.search === '?only=unread'");
    await visit(390);
    expect(await page.$eval(cell, (one) => one.checkVisibility())).toBe(true);
    expect(await page.evaluate("document.documentElement.scrollWidth <= 390")).toBe(true);
    expect(await page.$eval(cell, (one) => one.scrollWidth <= one.clientWidth)).toBe(true);
  });
});
