import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "puppeteer-core";
import { inWords } from "../../src/core/words/ago.ts";
import { type Opened, openDashboard, signIn, startDashboard } from "../support/browser.ts";
import { withPrograms } from "../support/programs.ts";
import { type Row, siteOf } from "../support/server.ts";

/* The rules of the dashboard, as somebody would break them: in Chromium, from other origins, and with plain sockets. */

const canary = "canary-value-8c1f";
const hostile = `"><img src=x onerror="document.title='stolen'">\u202E<script>document.title='stolen'</script>`;

withPrograms(["chromium"], "the dashboard's rules, in Chromium", (chromium) => {
  const site = siteOf("sqlite", { staging: { TOKEN: canary }, production: { TOKEN: "another-8c1f" } });
  let { dashboard, context, page } = {} as Opened;
  const { fresh } = openDashboard(chromium, site, (opened) => ({ dashboard, context, page } = opened));

  /** A request that no browser made, with the session of the one that is signed in. */
  const raw = async (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: string) => {
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
    return fetch(`http://127.0.0.1:${dashboard.port}${path}`, {
      method,
      headers: { host: new URL(dashboard.origin).host, cookie, ...headers },
      redirect: "manual",
      ...(body !== undefined && { body }),
    });
  };
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const ours = () => ({ ...form, "sec-fetch-site": "same-origin", origin: dashboard.origin });

  /** What deletes TOKEN from staging, if it is believed. */
  const deletion = async () => {
    const rows = await site.sql("select environment, version, project_id from sets where kind = 'variables'");
    const versions = rows.map(({ environment, version }) => [`version.${environment}`, String(version)]);
    const project = String(rows[0]?.["project_id"]);
    const fields = { name: "TOKEN", from: "staging", again: "TOKEN", ...Object.fromEntries(versions), project };
    return new URLSearchParams(fields).toString();
  };
  const reveals = async () => ((await site.json(["audit", "list", "--action", "variables.reveal"])) as Row[]).length;
  const item = "/p/acme/web/variables/item?name=TOKEN";
  const secretOn = (tab: Page) => tab.$$eval("output", (all) => all.map((one) => one.textContent).join(""));
  /** Opens a page in a tab of its own. @param script - runs before those of the page */
  const open = async (path: string, script = "") => {
    const tab = await context.newPage();
    if (script !== "") await tab.evaluateOnNewDocument(script);
    await tab.goto(`${dashboard.origin}${path}`);
    return tab;
  };
  const evilSite = (html: string) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(`<!doctype html>${html}`, { headers: { "content-type": "text/html" } }),
    });
  const isThere = async () => (await site.here(["var", "list", "acme/web", "staging"])).stdout.includes("TOKEN");

  test("moments are shown in the reader's zone, in UTC on hover, and in UTC without the script", async () => {
    const tab = await context.newPage();
    await tab.emulateTimezone("Asia/Tokyo");
    await tab.goto(`${dashboard.origin}/audit`);
    // Each day stands above its entries, which have the time of day.
    const rows = await tab.$$eval("main > table tbody tr", (rows) => {
      return rows.map(
        ({ cells: [cell] }) => [cell?.textContent ?? "", cell?.querySelector("time")?.dateTime ?? ""] as const,
      );
    });
    const days = rows.flatMap(([text, utc]) => (utc === "" ? text : []));
    expect([rows[0]?.[0], ...days]).toEqual([days[0], ...new Set(days)]);
    for (const [at, [clock, utc]] of rows.entries()) {
      const [, day, zone] =
        rows
          .slice(0, at)
          .findLast(([, utc]) => utc === "")?.[0]
          .split(" ") ?? [];
      if (utc !== "") expect(Date.parse(`${day} ${clock} ${zone}`)).toBe(Date.parse(utc));
    }
    const entry = await tab.$eval('a[href^="/audit/entry/"]', (one) => one.getAttribute("href"));
    const shown = async () => {
      await tab.goto(dashboard.origin + entry);
      await tab.hover("time");
      return tab.$eval("time", (time) => {
        const { textContent, dateTime, title } = time as unknown as Record<string, string>;
        return [textContent, dateTime, title] as [string, string, string];
      });
    };
    const [text, utc, title] = await shown();
    expect([/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/.test(utc), title]).toEqual([true, `${text}, ${utc}`]);
    expect(text).toMatch(/^\d{4}-\d\d-\d\d [\d:]{8} GMT\+9$/);
    expect(Date.parse(text)).toBe(Date.parse(utc));
    await tab.setViewport({ width: 390, height: 800, hasTouch: true });
    await tab.tap("time");
    const toast = await tab.waitForSelector("body > [role=status]:not(:empty)");
    expect(await toast?.evaluate((one) => [one.role, one.textContent])).toEqual(["status", title]);
    await tab.setJavaScriptEnabled(false);
    expect((await shown())[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/);
    await tab.close();
  });

  test("what says how long ago something was grows older while one looks", async () => {
    const tab = await context.newPage();
    await tab.evaluateOnNewDocument("window.setInterval = (tick) => { window.tick = tick; }");
    await tab.goto(`${dashboard.origin}/p/acme/web/variables`);
    const grown = (ms: number) =>
      tab.evaluate(`(() => {
        const time = document.querySelector("td time");
        Date.now = () => Date.parse(time.dateTime) + ${ms};
        tick();
        return time.textContent;
      })()`);
    for (const ms of [60_000, 59 * 60_000, 3_600_000, 47 * 3_600_000, 48 * 3_600_000, 400 * 86_400_000]) {
      expect([ms, await grown(ms)]).toEqual([ms, inWords(-ms)]);
    }
    await tab.close();
  });

  test("another host name for this address is refused, whatever the path", async () => {
    const { host: own } = new URL(dashboard.origin);
    for (const host of ["evil.example", "localhost", `127.0.0.1:${dashboard.port}`, `${own}.`]) {
      for (const path of ["/", "/style.css", "/nothing", "/p/acme/web/variables"]) {
        const answer = await raw("GET", path, { host });
        expect([host, path, answer.status]).toEqual([host, path, 421]);
        expect(await answer.text()).not.toContain(new URL(dashboard.origin).hostname);
      }
    }
    const other = await fresh();
    const rebound = await other.newPage();
    const answer = await rebound.goto(`http://rebound.localhost:${dashboard.port}/`);
    expect(answer?.status()).toBe(421);
    await other.close();
  });

  test("a change that no page of the dashboard made is refused, with a session too", async () => {
    const body = await deletion();
    const path = "/p/acme/web/variables/delete";
    const { origin } = dashboard;
    for (const headers of [
      {},
      { origin },
      { "sec-fetch-site": "same-origin" },
      { origin, "sec-fetch-site": "same-site" },
      { origin, "sec-fetch-site": "cross-site" },
      { origin, "sec-fetch-site": "none" },
      { origin: "null", "sec-fetch-site": "same-origin" },
      { origin: origin.replace(/:\d+$/, ":1"), "sec-fetch-site": "same-origin" },
      { origin: "http://evil.localhost", "sec-fetch-site": "same-origin" },
    ]) {
      expect([headers, (await raw("POST", path, { ...form, ...headers }, body)).status]).toEqual([headers, 403]);
    }
    expect(await isThere()).toBe(true);
    // The same request, as its own page sends it, is carried out: the refusals above are not for another reason.
    const { status } = await raw("POST", "/p/acme/web/variables/delete", ours(), body.replace("again=TOKEN", "again="));
    expect(status).toBe(303);
    await site.json(["var", "set", "acme/web", "staging", "TOKEN"], canary);
  });

  test("a page of another origin changes nothing by a form, by fetch or from a frame", async () => {
    const body = await deletion();
    const action = `${dashboard.origin}/p/acme/web/variables/delete`;
    const inputs = [...new URLSearchParams(body)]
      .map(([name, value]) => `<input name="${name}" value="${value}">`)
      .join("");
    const attack = `<title>attack</title><form method="post" action="${action}">${inputs}</form>
      <iframe name="frame"></iframe><iframe sandbox="allow-forms" srcdoc='<form method="post" action="${action}"></form>'></iframe>`;
    using evil = evilSite(attack);
    for (const host of ["evil.localhost", new URL(dashboard.origin).hostname]) {
      const tab = await context.newPage();
      const arrive = () => tab.goto(`http://${host}:${evil.port}/`);
      await arrive();
      const asked = await tab.evaluate(
        `(async () => {
          const post = { method: "POST", credentials: "include", body: new URLSearchParams(${JSON.stringify(body)}) };
          await fetch(${JSON.stringify(action)}, { ...post, mode: "no-cors" }).catch(() => {});
          return fetch(${JSON.stringify(action)}, post).then(() => "read", () => "refused");
        })()`,
      );
      expect([host, asked]).toEqual([host, "refused"]);
      const sent = tab.waitForResponse((response) => response.url() === action);
      await tab.evaluate(`document.forms[0].target = "frame"; document.forms[0].submit()`);
      expect([host, (await sent).status()]).toEqual([host, 403]);
      await arrive();
      const submit = `document.forms[0].target = ""; document.forms[0].submit()`;
      const [answer] = await Promise.all([tab.waitForNavigation(), tab.evaluate(submit)]);
      expect([host, answer?.status()]).toEqual([host, 403]);
      expect([host, await isThere()]).toEqual([host, true]);
      await tab.close();
    }
  });

  test("no other origin frames a page, or keeps hold of its window", async () => {
    using evil = evilSite(`<iframe src="${dashboard.origin}/"></iframe>`);
    const tab = await context.newPage();
    await tab.goto(`http://evil.localhost:${evil.port}/`);
    const frame = tab.frames().find((one) => one !== tab.mainFrame());
    expect(frame?.url()).toBe("chrome-error://chromewebdata/");
    const opened = new Promise<Page | null>((resolve) => tab.once("popup", resolve));
    await tab.evaluate(`window.held = open(${JSON.stringify(dashboard.origin)})`);
    const popup = await opened;
    await popup?.waitForSelector("main");
    expect(await popup?.evaluate("window.opener")).toBeNull();
    await tab.waitForFunction("window.held.closed");
    await popup?.close();
    await tab.close();
  });

  test("every answer has the headers, whatever its status", async () => {
    const reveal = "/p/acme/web/variables/reveal";
    const paths = ["/style.css", "/script.js", "/icon.svg", "/nothing", "/p/acme/web/variables", "/p/no/no/variables"];
    const asked: [method: string, path: string, headers?: Readonly<Record<string, string>>, body?: string][] = [
      ...["/", ...paths].map((path): [string, string] => ["GET", path]),
      ["GET", "/", { cookie: "" }],
      ["GET", "/", { host: "evil.example" }],
      ["GET", "/audit/export"],
      ["POST", "/unlock", ours(), "code=wrong"],
      ["POST", reveal, { ...ours(), accept: "application/json" }, "name=TOKEN&environment=staging"],
      ["POST", reveal, form],
      ...["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"].map((method): [string, string] => [method, "/"]),
    ];
    for (const [method, path, headers, body] of asked) {
      const answer = await raw(method, path, headers, body);
      const found = Object.fromEntries(answer.headers);
      expect({ method, path, ...found }).toMatchObject({
        ...{ method, path, "cache-control": "no-store", "x-content-type-options": "nosniff" },
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "same-origin",
        "content-security-policy": expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
      });
      expect(found["content-security-policy"]).not.toMatch(/unsafe|\*|https?:/);
      expect(Object.keys(found).filter((name) => name.startsWith("access-control"))).toEqual([]);
      if (!["GET", "POST"].includes(method)) expect([method, answer.status]).toEqual([method, 405]);
    }
  });

  test("a page is compressed if the browser takes it, and a value never is", async () => {
    const page = async (encodings: string) => {
      const { headers } = await raw("GET", "/p/acme/web/variables", { "accept-encoding": encodings });
      return headers.get("content-encoding");
    };
    const asked = ["gzip, deflate, br", "br, gzip;q=0.5", "gzip;q=0"];
    expect(await Promise.all(asked.map(page))).toEqual(["gzip", "gzip", null]);
    const headers = { ...ours(), accept: "application/json", "accept-encoding": "gzip" };
    const revealed = await raw("POST", "/p/acme/web/variables/reveal", headers, "name=TOKEN&environment=staging");
    expect([revealed.status, revealed.headers.get("content-encoding")]).toEqual([200, null]);
    const tab = await context.newPage();
    const shown = await tab.goto(`${dashboard.origin}/projects`);
    const heading = await tab.$eval("h1", (one) => one.textContent);
    expect([shown?.headers()["content-encoding"], heading]).toEqual(["gzip", "Projects"]);
    await tab.close();
  });

  test("what is stored is text, never markup or script, and nothing else runs", async () => {
    const [name, script] = [hostile.replaceAll("\u202E", "").slice(0, 100), "<script>document.title='stolen'</script>"];
    await site.json(["project", "create", "acme/hostile", "--name", name]);
    await site.json(["account", "set", "acme/hostile", script, "--env", "staging"], '{"a":"b"}');
    await site.key("--name", name);
    const tab = await context.newPage();
    const said: string[] = [];
    tab.on("console", (message) => said.push(message.text()));
    tab.on("dialog", (dialog) => void dialog.dismiss().then(() => said.push("a dialog")));
    for (const path of ["/", "/projects", "/keys", "/p/acme/hostile/accounts", "/p/acme/hostile/access", "/audit"]) {
      await tab.goto(`${dashboard.origin}${path}`);
      expect([path, await tab.title()]).not.toEqual([path, "stolen"]);
      expect([path, await tab.$$eval("main img, main script", (all) => all.length)]).toEqual([path, 0]);
    }
    await tab.goto(
      `${dashboard.origin}/audit?${new URLSearchParams({ person: hostile, item: hostile, project: hostile })}`,
    );
    expect(await tab.title()).not.toContain("stolen");
    expect(said.filter((line) => !line.includes("status of 4"))).toEqual([]);
    // The policy itself: an attacker who could insert something gains nothing.
    expect(
      await tab.evaluate(`(() => {
        const script = document.createElement("script");
        try { script.textContent = "document.title = 'stolen'"; document.head.append(script); } catch {}
        try { document.body.innerHTML = "<b>x</b>"; return "inserted"; } catch (error) { return error.name; }
      })()`),
    ).toBe("TypeError");
    expect(await tab.title()).not.toContain("stolen");
    await tab.close();
  });

  test("the link opens one session, and its code is in no request's URL and in no history", async () => {
    const another = await startDashboard(site);
    const code = new URL(another.link).hash.slice(1);
    const first = await fresh();
    const tab = await first.newPage();
    const urls: string[] = [];
    const headers: string[] = [];
    tab.on("request", (request) => {
      urls.push(request.url().replace(/#.*$/, ""));
      headers.push(JSON.stringify(request.headers()));
    });
    await tab.goto(another.link);
    await tab.waitForSelector("header");
    const client = await tab.createCDPSession();
    const { entries } = await client.send("Page.getNavigationHistory");
    expect(JSON.stringify([urls, headers, entries])).not.toContain(code);
    const second = await fresh();
    const late = await second.newPage();
    await late.goto(another.link);
    await late.waitForFunction(`document.querySelector("main [role=alert]").textContent !== ""`);
    expect(await late.$eval("main [role=alert]", (one) => one.textContent)).toContain("This code is not valid.");
    expect(await second.cookies()).toEqual([]);
    await Promise.all([first.close(), second.close()]);
    expect(await another.stop()).toBe(0);
  });

  test("the session is a cookie that no script, no other site and no other host gets, and Lock ends it", async () => {
    const [cookie, ...others] = await context.cookies();
    expect(others).toEqual([]);
    const kept = { httpOnly: true, secure: true, sameSite: "Strict", path: "/", session: true };
    expect(cookie).toMatchObject({ name: "__Host-keyhole", domain: new URL(dashboard.origin).hostname, ...kept });
    expect(Buffer.from(cookie?.value ?? "", "base64url")).toHaveLength(32);
    expect(await page.evaluate("document.cookie")).toBe("");
    const another = await startDashboard(site);
    const own = await fresh();
    const tab = await signIn(own, another.link);
    const [before] = await own.cookies();
    await Promise.all([tab.waitForNavigation(), tab.click("header > form button")]);
    expect(await tab.title()).toBe("Locked · the demo · Keyhole");
    const answer = await fetch(`http://127.0.0.1:${another.port}/projects`, {
      headers: { host: new URL(another.origin).host, cookie: `${before?.name}=${before?.value}` },
    });
    expect(answer.status).toBe(401);
    expect(await own.cookies()).toEqual([]);
    await own.close();
    await another.stop();
  });

  test("a value is shown after it is on record, for 30 seconds, and is gone when the person leaves", async () => {
    const path = "/p/acme/web/variables/reveal";
    const fields = "name=TOKEN&environment=staging";
    expect((await raw("GET", `${path}?${fields}`)).status).toBe(404);
    const asPage = await raw("POST", path, ours(), fields);
    expect([asPage.status, (await asPage.text()).includes(canary)]).toEqual([400, false]);
    const before = await reveals();
    // The page's timers are kept, to be run when the test says so; those that say that an answer is slow are not.
    const tab = await open(
      item,
      "window.timers = []; window.setTimeout = (run, ms) => (ms === 1000 ? 0 : timers.push({ run, ms }));",
    );
    expect(await tab.content()).not.toContain(canary);
    const shown = () => secretOn(tab);
    const reveal = async () => {
      await tab.click(`button[aria-label="Reveal the value in staging"]`);
      await tab.waitForSelector("output:not(:empty)");
    };
    await reveal();
    expect(await shown()).toBe(canary);
    expect(await reveals()).toBe(before + 1);
    expect(await tab.evaluate("window.timers.map(({ ms }) => ms)")).toEqual([30_000]);
    await tab.evaluate("window.timers.forEach(({ run }) => run())");
    expect(await shown()).toBe("");
    await reveal();
    await tab.goto(`${dashboard.origin}/projects`);
    await tab.goBack();
    expect(await shown()).toBe("");
    // A browser may keep the page as it is for going back.
    await reveal();
    expect(await shown()).toBe(canary);
    await tab.evaluate(`dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }))`);
    expect(await shown()).toBe("");
    await tab.close();
  });

  test("revealing moves no button and counts down, hides at a second press, and a later reveal has its own 30 seconds", async () => {
    // The page's clock stands, and the timers that take a value away are kept, until the test moves them.
    const tab = await open(
      item,
      `window.nowMs = 0;
      performance.now = () => nowMs;
      window.timers = [];
      const later = window.setTimeout;
      window.setTimeout = (run, ms) => (ms === 30_000 ? -timers.push(run) : later(run, ms));
      const end = window.clearTimeout;
      window.clearTimeout = (id) => { if (id < 0) timers[-id - 1] = () => {}; else end(id); };
      window.setInterval = (run) => { window.tick = run; };`,
    );
    const shown = () => secretOn(tab);
    const focused = () => tab.evaluate("[document.activeElement.textContent, document.activeElement.ariaLabel]");
    const placeOf = (words: string) =>
      tab.evaluate(`(() => {
        const { left, top } = document.querySelector('button[aria-label="${words}"]').getBoundingClientRect();
        return [left, top + scrollY];
      })()`);
    const [reveal, hide, copy] = (["Reveal", "Hide", "Copy"] as const).map(
      (word) => `${word} the value in staging`,
    ) as [string, string, string];
    const before = [await placeOf(reveal), await placeOf(copy)];
    const press = async (words: string) => {
      await tab.click(`button[aria-label="${words}"]`);
      await tab.waitForSelector(`button[aria-label="${words === hide ? reveal : hide}"]:not([aria-disabled])`);
    };
    await press(reveal);
    expect([await placeOf(hide), await placeOf(copy)]).toEqual(before);
    expect([await shown(), await focused()]).toEqual([canary, ["Hide (30 s)", hide]]);
    // The words of the button have no label of their own, and the value is not said aloud.
    expect(await tab.$$eval("output", (all) => all.map((one) => one.ariaLive))).not.toContain("polite");
    await tab.evaluate("nowMs = 2900; tick()");
    expect(await focused()).toEqual(["Hide (28 s)", hide]);
    expect([await placeOf(hide), await placeOf(copy)]).toEqual(before);
    await press(hide);
    expect([await shown(), await focused()]).toEqual(["", ["Reveal", reveal]]);
    await press(reveal);
    await tab.evaluate("timers[0]()");
    expect([await shown(), await focused()]).toEqual([canary, ["Hide (30 s)", hide]]);
    await tab.evaluate("timers[1]()");
    expect([await shown(), await focused()]).toEqual(["", ["Reveal", reveal]]);
    expect([await placeOf(reveal), await placeOf(copy)]).toEqual(before);
    await tab.close();
  });

  test("copying that the browser forbids is said to be that", async () => {
    await context.setPermission(dashboard.origin, { permission: { name: "clipboard-write" }, state: "denied" });
    const tab = await open(item);
    await tab.bringToFront();
    await tab.click(`button[aria-label="Copy the value in staging"]`);
    await tab.waitForSelector("[role=alert]:not(:empty)");
    const said = await tab.$$eval("[role=alert]", (all) => all.map((one) => one.textContent).join(""));
    expect(said).toBe("The browser did not let the page copy. Show the text, or allow the clipboard.");
    await tab.close();
  });
  test("copying a value is on record, too, and shows nothing", async () => {
    await context.setPermission(dashboard.origin, { permission: { name: "clipboard-write" }, state: "granted" });
    await context.setPermission(dashboard.origin, { permission: { name: "clipboard-read" }, state: "granted" });
    const tab = await open(item);
    await tab.bringToFront();
    const before = await reveals();
    await tab.click(`button[aria-label="Copy the value in staging"]`);
    await tab.waitForFunction(`[...document.querySelectorAll("button")].some((one) => one.textContent === "Copied")`);
    expect(await tab.evaluate("navigator.clipboard.readText()")).toBe(canary);
    expect(await tab.content()).not.toContain(canary);
    expect(await reveals()).toBe(before + 1);
    await tab.close();
  });

  test("it listens on loopback only", () => {
    const hex = dashboard.port.toString(16).toUpperCase().padStart(4, "0");
    const listening = ["tcp", "tcp6"].flatMap((table) =>
      readFileSync(`/proc/net/${table}`, "utf8")
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local = "", , state]) => local.endsWith(`:${hex}`) && state === "0A")
        .map(([, local]) => local),
    );
    expect(listening).toEqual([`0100007F:${hex}`]);
  });

  test("it starts no other program: a list of processes would show the link", () => {
    const { pid } = dashboard;
    expect(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim()).toBe("");
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toContain(new URL(dashboard.link).hash.slice(1));
  });

  test("Enter in a filter sends no form", async () => {
    const tab = await open("/p/acme/web/variables/promote?from=staging&to=development");
    const sent: string[] = [];
    tab.on("request", (request) => {
      if (request.isNavigationRequest() || request.method() === "POST") sent.push(request.url());
    });
    await tab.click("tbody input");
    await tab.keyboard.press("/");
    await tab.type("[data-filter]", "tok");
    await tab.keyboard.press("Enter");
    expect(await tab.$eval("[data-filter]", (one) => (one as unknown as { value: string }).value)).toBe("tok");
    expect(sent).toEqual([]);
    await tab.close();
  });

  test("a key whose text did not arrive is called one that nobody has", async () => {
    const tab = await open("/keys/new");
    await tab.type("#name", "lost");
    await tab.click("input[name=reach][value=all]");
    await tab.click("input[name=environments][value=staging]");
    await tab.setRequestInterception(true);
    // The server makes the key, and the answer is lost.
    tab.on("request", async (request) => {
      if (request.method() !== "POST") return request.continue();
      await raw("POST", new URL(request.url()).pathname, { ...ours(), accept: "application/json" }, request.postData());
      return request.abort();
    });
    await tab.click("form[data-secret=once] [type=submit]");
    await tab.waitForFunction(`document.querySelector("form[data-secret=once] [role=alert]").textContent !== ""`);
    const refusal = await tab.$eval("form[data-secret=once] [role=alert]", (one) => one.textContent);
    expect(refusal).toContain("nobody has its text");
    expect(await site.json(["key", "list"])).toContainEqual(expect.objectContaining({ name: "lost" }));
    await tab.close();
  });

  test("neither a value nor a code is in what the process said", () => {
    expect(dashboard.said()).not.toContain(canary);
    expect(dashboard.said()).toBe(`${dashboard.link}\n`);
  });
});
