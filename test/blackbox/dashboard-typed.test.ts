/**
 * What somebody typed in a page stays until something was done with it, whatever else happens: another person, another
 * tab, a session that ends. The dashboard runs in this process, so a test makes links and moves the clock.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { BrowserContext, Dialog, Page } from "puppeteer-core";
import { startDashboard } from "../../src/dashboard/serve.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { createKey } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { browserOf, Person, signIn } from "../support/browser.ts";
import { grantRights, setVariables } from "../support/plans.ts";
import { withPrograms } from "../support/programs.ts";
import { describeOnce } from "../support/world.ts";

withPrograms(["chromium"], "what was typed, in Chromium", (chromium) => {
  describeOnce("what was typed", (w) => {
    const { fresh } = browserOf(chromium);
    const dashboards: ReturnType<typeof startDashboard>[] = [];
    let where = "";
    /** A person with a dashboard and a browser of their own. */
    const person = async (actor: string) => {
      const now = () => w.clock.nowMs ?? Date.now();
      const dashboard = startDashboard(w.installation, { port: 0, actor, report: () => {}, now });
      dashboards.push(dashboard);
      const context = await fresh();
      const page = await signIn(context, dashboard.link());
      return { dashboard, context, page, at: (path: string) => `${dashboard.origin}/p/${where}/${path}` };
    };
    let ana: Awaited<ReturnType<typeof person>>;
    let ben: typeof ana;

    beforeAll(async () => {
      const variables = Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`NAME_${at}`, `${at}`]));
      ({ where } = await w.place({ variables: { staging: variables, production: { NAME_1: "1" } } }));
      ana = await person("ana@laptop");
      ben = await person("ben@desk");
    }, 60_000);
    afterAll(() => {
      for (const { stop } of dashboards) stop();
    });

    /** A tab of one of them, at a page of the project. */
    const tab = async (context: BrowserContext, path: string) => {
      const page = await context.newPage();
      await page.goto(path);
      return page;
    };
    const press = async (page: Page, words: string) => {
      await page.bringToFront(); // Chromium draws no other tab
      await new Person(page).press(words);
    };
    const said = async (page: Page, words: string) =>
      page.waitForFunction(`document.querySelector("[role=alert]").textContent.includes(${JSON.stringify(words)})`);
    const saved = async (page: Page, words: string) => {
      await Promise.all([page.waitForNavigation(), press(page, words)]);
      return page.$eval("main [role=status]", (one) => one.textContent);
    };
    const value = (name: string) => revealVariable(w.admin, where, "staging", name);
    const field = (name: string) => `main [name="${name}"]`;
    const focused = (page: Page) => page.evaluate("[document.activeElement.name, document.activeElement.ariaInvalid]");

    test("is saved beside what somebody else saved, and over it only if that is said", async () => {
      const [mine, theirs] = [await tab(ana.context, ana.at("variables/set?name=NAME_1")), ben.page];
      await mine.type(field("value.staging"), "mine");
      for (const name of ["NAME_2", "NAME_1"]) {
        await theirs.goto(ben.at(`variables/set?name=${name}`));
        await theirs.type(field("value.staging"), "theirs");
        await saved(theirs, "Save");
        const other = await tab(ana.context, ana.at("variables/set?name=NAME_3"));
        await other.type(field("value.staging"), `beside ${name}`);
        await setVariables(w.admin, where, "staging", [{ name: "NAME_4", value: name }]);
        expect(await saved(other, "Save")).toContain("Updated NAME_3");
      }
      await press(mine, "Save");
      await said(mine, "ben@desk changed NAME_1 just now, in version");
      expect([await value("NAME_1"), await value("NAME_2")]).toEqual(["theirs", "theirs"]);
      expect(await mine.$eval(field("value.staging"), (one) => one.value)).toBe("mine");
      expect(await saved(mine, "Save over it")).toContain("Updated NAME_1");
      expect(await value("NAME_1")).toBe("mine");
    }, 60_000);

    test("in an environment as one text, is planned as a pasted text is, and the values go when one leaves", async () => {
      const page = await tab(ana.context, ana.at("variables/text?environment=staging"));
      const text = () => page.$eval(field("text"), (one) => one.value);
      expect(await text()).toBe("");
      await press(page, "Show all values");
      await page.waitForFunction(`document.querySelector('main [name="text"]').value.includes("NAME_7=")`);
      expect(await focused(page)).toEqual(["text", null]);
      expect(await page.evaluate("document.documentElement.outerHTML")).not.toContain("NAME_7=");
      const line = "NAME_7=7\n";
      expect(await text()).toContain(line);
      await page.$eval(field("text"), (one) => (one.value = one.value.replace("NAME_7=7\n", "NAME_7=seven\n")));
      await page.$eval(field("text"), (one) => (one.value = one.value.replace("NAME_8=8\n", "")));
      await page.keyboard.type("# typed\n");
      const asked: string[] = [];
      page.on("dialog", async (dialog) => {
        asked.push(dialog.type());
        await dialog.dismiss();
      });
      await page.click('header a[href="/projects"]');
      await page.waitForFunction("performance.now() > 0");
      expect([asked, (await text()).includes("NAME_7=seven")]).toEqual([["beforeunload"], true]);
      await Promise.all([page.waitForNavigation(), press(page, "See what it would do")]);
      const main = () => page.$eval("main", (one) => one.textContent);
      expect(await main()).toContain("changed: NAME_7deleted: NAME_8");
      await Promise.all([page.waitForNavigation(), page.goBack()]);
      expect(await text()).toBe("");
      await Promise.all([page.waitForNavigation(), page.goForward()]);
      expect(await saved(page, "Apply exactly that")).toContain("0 added, 1 changed, 1 deleted");
      expect(await value("NAME_7")).toBe("seven");
      await page.close();
    }, 60_000);

    test("in such a text is not replaced by a second press, and goes with the values when nobody types or is signed in", async () => {
      const eve = await person("eve@desk");
      const page = await tab(eve.context, eve.at("variables/text?environment=staging"));
      page.on("dialog", (dialog) => void dialog.accept());
      const fields = () => page.$$eval(`${field("text")}, ${field("base")}`, (all) => all.map(({ value }) => value));
      const shown = `document.querySelector('main [name="text"]').value.includes("NAME_9=")`;
      await page.evaluate(`{
        const set = window.setTimeout;
        window.setTimeout = (run, ms) => (ms === 300000 ? ((window.late = run), 0) : set(run, ms));
      }`);
      for (const end of ["late", "session"]) {
        await press(page, "Show all values");
        await page.waitForFunction(shown);
        await page.keyboard.type("# typed\n");
        await press(page, "Show all values");
        await said(page, "That would replace what you typed.");
        expect((await fields()).map((one) => /^(# typed|\d+$)/.test(one))).toEqual([true, true]);
        if (end === "late") await page.evaluate("late()");
        else {
          w.clock.nowMs = Date.now() + 16 * 60_000;
          await press(page, "See what it would do");
        }
        await said(page, end === "late" ? "no key was pressed for five minutes" : "then press Show all values here");
        expect([end, ...(await fields())]).toEqual([end, "", ""]);
      }
      w.clock.nowMs = undefined;
      await page.close();
    }, 60_000);

    test("is asked about before one leaves, unless it was saved", async () => {
      const page = await tab(ana.context, ana.at("variables/set?name=NAME_5"));
      const asked: string[] = [];
      const stay = async (dialog: Dialog) => {
        asked.push(dialog.type());
        await dialog.dismiss();
      };
      page.on("dialog", stay);
      await page.type(field("value.staging"), "typed");
      await page.click('header a[href="/projects"]');
      await page.waitForFunction("performance.now() > 0");
      expect([asked, new URL(page.url()).searchParams.get("name")]).toEqual([["beforeunload"], "NAME_5"]);
      expect(await page.$eval(field("value.staging"), (one) => one.value)).toBe("typed");
      await saved(page, "Save");
      await Promise.all([page.waitForNavigation(), page.click('header a[href="/projects"]')]);
      expect(asked).toHaveLength(1);
      // In a row of the grid, too, whose filter is no such text. It comes back to where it was.
      await page.goto(ana.at("variables"));
      await page.type("[data-filter]", "name_50");
      await Promise.all([page.waitForNavigation(), page.click('header a[href="/projects"]')]);
      await page.goto(ana.at("variables?filter=name_50"));
      await page.hover("tbody tr:not([hidden])");
      await page.click("[aria-label='Edit NAME_50 here']");
      await page.keyboard.type("typed");
      await page.click('header a[href="/projects"]');
      await page.waitForFunction("performance.now() > 0");
      expect(asked).toHaveLength(2);
      expect(await saved(page, "Save")).toContain("NAME_50");
      expect(new URL(page.url()).search).toBe("?filter=name_50");
    }, 60_000);

    test("is kept by no browser: each field says so itself, which is where Firefox looks", async () => {
      const page = await tab(ana.context, ana.at("variables"));
      const kept = () =>
        page.$$eval("form[data-change] :is(textarea, input:not([type=hidden], [type=checkbox]))", (all) => [
          all.length > 0,
          all.filter((one) => one.getAttribute("autocomplete") !== "off").map((one) => one.getAttribute("name")),
        ]);
      await page.hover("tbody tr");
      await page.click("tbody .offered[type=button]");
      expect(["the grid", ...(await kept())]).toEqual(["the grid", true, []]);
      for (const path of ["variables/set", "variables/paste", "variables/text", "accounts/set"]) {
        await page.goto(ana.at(path));
        expect([path, ...(await kept())]).toEqual([path, true, []]);
      }
    }, 60_000);

    test("is masked unless one is in its field or wants to see it, and what was generated there is asked about, too", async () => {
      const page = await tab(ana.context, ana.at("accounts/set"));
      const isMasked = (one: string) =>
        page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(one)})).webkitTextSecurity === "disc"`);
      const asked: string[] = [];
      for (const path of ["accounts/set", "variables/set?name=NAME_30"]) {
        await page.goto(ana.at(path));
        const one = path.startsWith("accounts") ? "#value-0-staging" : field("value.staging");
        const before = await isMasked(one);
        await page.focus(one);
        const here = await isMasked(one);
        await page.focus("[name=show]");
        const left = await isMasked(one);
        await page.click("[name=show]");
        expect([path, before, here, left, await isMasked(one)]).toEqual([path, true, false, true, false]);
      }
      const texts = await Array.fromAsync([1, 2], async () => {
        await page.click(`${field("value.staging")} + button`);
        return page.$eval(field("value.staging"), (one) => one.value);
      });
      expect(texts).toEqual([expect.stringMatching(/^[\w-]{32}$/), expect.stringMatching(/^[\w-]{32}$/)]);
      page.on("dialog", async (dialog) => {
        asked.push(dialog.type());
        await dialog.dismiss();
      });
      await page.click('header a[href="/projects"]');
      await page.waitForFunction("performance.now() > 0");
      expect(asked).toEqual(["beforeunload"]);
      expect(await saved(page, "Save")).toContain("Updated NAME_30");
      expect(await value("NAME_30")).toBe(texts[1] as string);
    }, 60_000);

    test("is there after the session ended, which says how to go on", async () => {
      const page = await tab(ana.context, ana.at("variables/set?name=NAME_6"));
      await page.type(field("value.staging"), "after the end");
      w.clock.nowMs = Date.now() + 16 * 60_000;
      await press(page, "Save");
      await said(page, "Sign in in a new tab, then press Save here.");
      const opened = new Promise<Page>((resolve) => page.once("popup", (popup) => resolve(popup as Page)));
      await page.click("[role=alert] a");
      const other = await opened;
      // The whole link may be pasted, and a code that is no longer the newest is none.
      const old = ana.dashboard.link();
      for (const link of [old, ana.dashboard.link()]) {
        await other.waitForSelector("form[data-unlock]");
        await other.$eval("[name=code]", (one) => (one.value = ""));
        await other.type("[name=code]", link === old ? `${old}x` : link);
        await Promise.all([other.waitForNavigation(), press(other, "Open")]);
      }
      await other.waitForSelector("header");
      expect(await saved(page, "Save")).toContain("Updated NAME_6");
      expect(await value("NAME_6")).toBe("after the end");
      w.clock.nowMs = undefined;
    }, 60_000);

    test("is followed by a link that opens a locked tab, which goes on where it was", async () => {
      const context = await fresh();
      const page = await tab(context, ana.at("variables/item?name=NAME_7"));
      await page.waitForSelector("form[data-unlock]");
      await page.goto(`${ana.dashboard.origin}/`);
      const [first, second] = [ana.dashboard.link(), ana.dashboard.link()];
      // The same address but for the fragment: no page is loaded.
      await page.evaluate(`location.href = ${JSON.stringify(first)}`);
      await page.waitForFunction(`document.querySelector("[role=alert]").textContent.includes("not valid")`);
      await Promise.all([page.waitForNavigation(), page.evaluate(`location.href = ${JSON.stringify(second)}`)]);
      await page.waitForSelector("header nav");
      expect(page.url()).toBe(ana.at("variables/item?name=NAME_7"));
    }, 60_000);

    test("is led to where it is wrong, and nowhere else", async () => {
      const page = await tab(ana.context, ana.at("variables/set"));
      page.on("dialog", (dialog) => void dialog.accept());
      const tries = [
        ["two words", "1", "", "is not a variable name", ["name", "true"]],
        ["NAME_1", "1", "", "is in staging already", ["name", "true"]],
        ["NEW", "", "", "No field has a value", ["value.development", "true"]],
        ["NEW", "1", "1", "For production, type NEW again", ["again", "true"]],
      ] as const;
      for (const [name, staging, production, words, wanted] of tries) {
        await page.reload();
        await page.type(field("name"), name);
        await page.type(field("value.staging"), staging);
        await page.type(field("value.production"), production);
        await press(page, "Save");
        await said(page, words);
        expect([words, await focused(page)]).toEqual([words, [...wanted]]);
      }
      await page.keyboard.type("NEW");
      expect(await page.$$("[aria-invalid]")).toEqual([]);
    }, 60_000);

    test("is a plan in each tab, which is applied although another one was", async () => {
      const plans: Page[] = [];
      for (const name of ["NAME_8", "NAME_9"]) {
        const page = await tab(ana.context, ana.at("variables/paste"));
        await page.type(field("text"), `${name}=pasted`);
        await Promise.all([page.waitForNavigation(), press(page, "See what it would do in staging")]);
        plans.push(page);
      }
      for (const page of plans) expect(await saved(page, "Apply exactly that")).toContain("Imported 1 variable");
      expect([await value("NAME_8"), await value("NAME_9")]).toEqual(["pasted", "pasted"]);
    }, 60_000);

    test("is selected where it is wrong, at the first line of a text that is refused", async () => {
      const page = await tab(ana.context, ana.at("variables/paste"));
      const lines = Array.from({ length: 60 }, (_, at) => (at === 12 || at === 40 ? `NO LINE ${at}` : `NAME_${at}=x`));
      await page.$eval(field("text"), (one, text) => Object.assign(one, { value: text }), lines.join("\n"));
      await press(page, "See what it would do in staging");
      await said(page, "line 41: ");
      const seen = await page.evaluate(`(() => {
        const { value, selectionStart, selectionEnd, scrollTop, clientHeight, scrollHeight } = document.activeElement;
        const y = (scrollHeight * 12.5) / 60 - scrollTop;
        return [value.slice(selectionStart, selectionEnd), y > 0 && y < clientHeight];
      })()`);
      expect(seen).toEqual(["NO LINE 12", true]);
    });

    test("is said to be on its way while the answer takes long", async () => {
      const page = await tab(ana.context, ana.at("variables/set?name=NAME_30"));
      await page.evaluate(`
        window.setTimeout = (run, ms) => void (ms === 1000 && run());
        window.fetch = () => new Promise(() => {});`);
      await page.type(field("value.staging"), "slow");
      await press(page, "Save");
      await page.waitForSelector(`xpath///*[@role="status"][. = "Saving …"]`);
    });

    test("is shown with its length and what nobody sees, in a box, and copied with a word about it", async () => {
      await setVariables(w.admin, where, "staging", [{ name: "NAME_20", value: `${"pem\n".repeat(99)}\u202eabc\n` }]);
      const page = await tab(ana.context, ana.at("variables/item?name=NAME_20"));
      await page.setViewport({ width: 1280, height: 900 });
      await page.click('[aria-label="Reveal the value in staging"]');
      const note = await page.waitForSelector("output:not(:empty) + small");
      const said = "401 characters, ends in a newline, with what cannot be seen: U+202E";
      expect(await note?.evaluate((one) => one.textContent)).toBe(said);
      const heights = () => page.$eval("output:not(:empty)", (one) => [one.clientHeight, one.scrollHeight] as const);
      expect((await heights())[0]).toBeLessThan(300);
      await page.emulateMediaType("print");
      const [printed, whole] = await heights();
      expect(printed).toBe(whole);
      await page.emulateMediaType();
      await page.goto(ana.at("variables"));
      const row = await page.waitForSelector(`xpath///tr[contains(., "NAME_20")]`);
      await row?.hover();
      await page.click('tr button[aria-label="Copy NAME_20 in staging"]');
      await page.hover("tbody tr:first-child");
      await page.waitForSelector(`xpath///*[@role="status"][. = "NAME_20 in staging is on the clipboard."]`);
    }, 60_000);

    test("fits, however long a name is and however wide the window", async () => {
      const [organization = ""] = where.split("/");
      const [long, word] = ["A".repeat(255), "k".repeat(200)];
      await setVariables(w.admin, where, "production", [{ name: long, value: "1" }]);
      const scope = { projects: ["web"], environments: ["production" as const] };
      const { id } = await createKey(w.admin, { organization, name: word, ...scope });
      await addPerson(w.admin, { name: "p".repeat(60), organization, signIn: null });
      await grantRights(w.admin, "p".repeat(60), { rights: ["see", "reveal", "audit", "decide"], ...scope });
      const page = await tab(ana.context, ana.at("variables"));
      const project = [
        "variables",
        "variables?choose=yes",
        `variables/item?name=${long}`,
        `variables/set?name=${long}`,
        "history",
        "access",
      ];
      const paths = [
        ...project.map(ana.at),
        ...["/", "/projects", "/keys", `/keys/${id}`, "/audit", `/find?q=${long}`],
      ];
      const wide: string[] = [];
      for (const path of paths) {
        await page.goto(new URL(path, ana.dashboard.origin).href);
        for (const width of [320, 390, 720, 768, 853, 960, 1280]) {
          await page.setViewport({ width, height: 900 });
          const over = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
          if (over > 0) wide.push(`${path.slice(-40)} at ${width}: ${over}`);
        }
      }
      expect(wide).toEqual([]);
    }, 60_000);

    test("is the filter, the order and the place to which one comes back", async () => {
      const page = await tab(ana.context, ana.at("variables"));
      await page.setViewport({ width: 1280, height: 500 });
      const shown = () => page.$$eval("tbody tr:not([hidden]) th a", (all) => all.map((one) => one.textContent));
      await page.type("[data-filter]", "name_1");
      for (let times = 0; times < 2; times += 1) await page.click("thead button");
      const before = await shown();
      expect(before.slice(0, 2)).toEqual(["NAME_119", "NAME_118"]);
      await page.evaluate("scrollTo(0, 600)");
      await Promise.all([page.waitForNavigation(), page.click('a[href$="name=NAME_10"]')]);
      await page.goBack();
      await page.waitForFunction("scrollY > 300");
      expect([await shown(), new URL(page.url()).search]).toEqual([before, "?filter=name_1&sort=-Name"]);
    }, 60_000);
  });
});
