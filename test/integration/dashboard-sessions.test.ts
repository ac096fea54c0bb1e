import { describe, expect, test } from "bun:test";
import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { createDashboard } from "../../src/dashboard/app.ts";
import { Slots } from "../../src/dashboard/lending.ts";
import { startDashboard } from "../../src/dashboard/serve.ts";
import { Sessions, SignInCode, turnOf } from "../../src/dashboard/sessions.ts";
import { visitorOf } from "../support/pages.ts";
import { setVariables } from "../support/plans.ts";
import { describeBoth, type World } from "../support/world.ts";

const minuteMs = 60_000;
const origin = "http://keyhole-test.localhost:4300";

describe("a session", () => {
  test("ends after 15 minutes without use, and each use begins them again", () => {
    let now = 0;
    const sessions = new Sessions(() => now);
    const token = sessions.begin();
    for (let uses = 0; uses < 5; uses++) {
      now += 15 * minuteMs - 1;
      expect(sessions.use(token)).toBeDefined();
    }
    now += 15 * minuteMs;
    expect(sessions.use(token)).toBeUndefined();
    now -= 1;
    expect(sessions.use(token)).toBeUndefined();
  });
  test("ends after eight hours, whatever its use", () => {
    let now = 0;
    const sessions = new Sessions(() => now);
    const token = sessions.begin();
    for (; now < 8 * 60 * minuteMs; now += 10 * minuteMs) expect(sessions.use(token)).toBeDefined();
    expect(sessions.use(token)).toBeUndefined();
  });
  test("is 256 random bits, and no other text opens it", () => {
    const sessions = new Sessions(Date.now);
    const [token, other] = [sessions.begin(), sessions.begin()];
    expect(Buffer.from(token, "base64url")).toHaveLength(32);
    expect(other).not.toBe(token);
    for (const text of [undefined, "", token.slice(1), `${token}A`, token.toLowerCase()]) {
      expect(sessions.use(text)).toBeUndefined();
    }
  });

  test("is not held up for ever by a request that hangs", async () => {
    const session = { turn: Promise.resolve() };
    await turnOf(session, 1);
    await turnOf(session);
  });

  test("a page that waits for its turn too long is refused with a reason, and the next one has its turn", async () => {
    const slots = new Slots(1, "Try again.", 1);
    const giveBack = await slots.take();
    await expect(slots.take()).rejects.toThrow("Try again.");
    const next = new Slots(1, "Try again.");
    const [first, second] = [await next.take(), next.take()];
    first();
    (await second)();
    giveBack();
    await slots.take();
  });
});

describe("the code in the link", () => {
  test("opens once, and not after five minutes", () => {
    let now = 0;
    const code = new SignInCode(() => now);
    const first = code.make();
    now = 5 * minuteMs;
    expect(code.take(first)).toBe(false);
    const second = code.make();
    expect(code.take(first)).toBe(false);
    now += 5 * minuteMs - 1;
    expect(code.take(second)).toBe(true);
    expect(code.take(second)).toBe(false);
  });
  test("is of no use after ten wrong tries, and a new one is", () => {
    const code = new SignInCode(() => 0);
    const first = code.make();
    for (let tries = 0; tries < 10; tries++) expect(code.take("wrong")).toBe(false);
    expect(code.take(first)).toBe(false);
    expect(code.take(code.make())).toBe(true);
  });
});

describeBoth("the dashboard's sessions", (w) => {
  test("a page of a session that has ended is the locked page, and a change is not made", async () => {
    const { where } = await w.place();
    w.clock.nowMs = Date.now();
    const visitor = await visitorOf(w);
    expect((await visitor.page("/projects")).html).toContain(where);
    const set = `/p/${where}/variables/set`;
    const form = await visitor.form(set, set);
    w.clock.nowMs += 15 * minuteMs;
    const sent = await visitor.send(set, { ...form, name: "LATE", "value.staging": "x" });
    expect(sent).toMatchObject({ status: 401, error: expect.stringContaining("Nothing was done") });
    const late = await visitor.page("/projects");
    expect([late.status, late.html.includes(where)]).toEqual([401, false]);
    w.clock.nowMs = undefined;
  });

  test("the printed link opens from another site's page, too: the page with its code does not go on", async () => {
    const { where } = await w.place();
    const origin = "http://keyhole-test.localhost:4300";
    const { handle } = createDashboard({
      installation: w.installation,
      sessions: new Sessions(Date.now),
      entrance: { code: new SignInCode(Date.now), operator: "ann@host" },
      origin,
      now: Date.now,
      used: () => {},
      report: () => {},
    });
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    const headers = { host: new URL(origin).host, ...link };
    const answers = ["/", `/p/${where}/variables`].map(async (path) => {
      const answer = await handle(new Request(`${origin}${path}`, { headers }));
      return [answer.status, (await answer.text()).includes("refresh")];
    });
    expect(await Promise.all(answers)).toEqual([
      [401, false],
      [200, true],
    ]);
  });

  test("a notice goes to the page that the change leads to, whatever other tabs load or change meanwhile", async () => {
    const { organization } = await w.place();
    const visitor = await visitorOf(w);
    const make = async (slug: string) => {
      return (await visitor.send("/projects", { org: organization.slug, slug, name: "" })).to ?? "";
    };
    const [first, second] = [await make("first"), await make("second")];
    const says = async (path: string) => /class="notice">(.*?)</.exec((await visitor.page(path)).html)?.[1];
    expect(await says("/")).toBeUndefined();
    expect(await says(first)).toBe(`Created project ${organization.slug}/first.`);
    expect(await says(second)).toBe(`Created project ${organization.slug}/second.`);
    expect([await says(first), await says(second)]).toEqual([undefined, undefined]);
  });

  test("it ends after a time without use, and use puts that off", async () => {
    const options = { port: 0, actor: "ana@host", report: () => {} };
    const unused = startDashboard(w.installation, { ...options, unusedMs: 1 });
    expect(await unused.stopped).toEqual({ unused: true });
    await expect(fetch(unused.origin.replace(/\/\/[^:]+/, "//127.0.0.1"))).rejects.toThrow();
    const stopped = startDashboard(w.installation, options);
    stopped.stop();
    expect(await stopped.stopped).toEqual({ unused: false });
  });

  test("each request has a database to itself, given back at its end, refused or not", async () => {
    const contexts = { opened: 0, closed: 0 };
    const open: typeof w.installation.open = (use) => {
      contexts.opened += 1;
      const database = w.installation.open(use);
      const close = async () => {
        contexts.closed += 1;
        await database.close();
      };
      return { ...database, close };
    };
    const visitor = await visitorOf({ ...w, installation: { ...w.installation, open } });
    const paths = ["/", "/projects", "/nothing", "/p/no/no/variables", "/audit/export", "/audit?since=wrong"];
    for (const path of paths) await visitor.page(path);
    await visitor.send("/projects", { org: "none", slug: "!" });
    // On PostgreSQL the next request takes the connection of the one before: one for short pages, one for long ones.
    const isKept = w.admin.database.dialect === "postgres";
    expect(contexts).toEqual(isKept ? { opened: 2, closed: 0 } : { opened: paths.length, closed: paths.length });
  });

  test("many pages at once take six connections at most, and the long ones of a session one", async () => {
    const { where } = await w.place();
    const open = new Set<object>();
    let most = 0;
    const counted: typeof w.installation.open = (use) => {
      const database = w.installation.open(use);
      const one = { ...database, close: () => database.close().finally(() => open.delete(one)) };
      most = Math.max(most, open.add(one).size);
      return one;
    };
    const sessions = new Sessions(Date.now);
    const { handle } = createDashboard({ ...partsOf(w, sessions), installation: { ...w.installation, open: counted } });
    const ask = async (token: string, path: string) => {
      const headers = { host: new URL(origin).host, cookie: `__Host-keyhole=${token}` };
      const answer = await handle(new Request(`${origin}${path}`, { headers }));
      await answer.text();
      return answer.status;
    };
    const tokens = Array.from({ length: 8 }, () => sessions.begin());
    const long = ["/audit", "/audit/export", "/audit?verify=yes"];
    const alone = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(tokens[0] ?? "", long[at % 3] ?? "")));
    expect([alone, most]).toEqual([alone.map(() => 200), 1]);
    const paths = [...long, "/", `/p/${where}/variables`];
    const all = await Promise.all(tokens.flatMap((token) => paths.map((path) => ask(token, path))));
    expect(all).toEqual(all.map(() => 200));
    expect(most).toBeLessThanOrEqual(6);
  });

  test("the pages of one session are made in turn, and keep nobody else's waiting", async () => {
    const { where } = await w.place();
    const sessions = new Sessions(Date.now);
    const [ann, ben, cal] = [sessions.begin(), sessions.begin(), sessions.begin()];
    const asking = new AsyncLocalStorage<string>();
    const began: (string | undefined)[] = [];
    const open: typeof w.installation.open = (use) => {
      began.push(asking.getStore());
      if (asking.getStore() === "cal's") sessions.end(cal);
      return w.installation.open(use);
    };
    const cuts = new Map<Request, number[]>();
    const { handle } = createDashboard({
      ...partsOf(w, sessions),
      installation: { ...w.installation, open },
      cutAfter: (request, seconds) => cuts.set(request, [...(cuts.get(request) ?? []), seconds]),
    });
    const ask = (name: string, token: string, path = `/p/${where}/variables`, signal?: AbortSignal) =>
      asking.run(name, async () => {
        const headers = { host: new URL(origin).host, cookie: `__Host-keyhole=${token}` };
        const { status } = await handle(new Request(`${origin}${path}`, { headers, ...(signal && { signal }) }));
        return [name, status] as const;
      });
    const leaves = new AbortController();
    const grids = Array.from({ length: 10 }, () => ask("ann's", ann));
    const left = ask("left", ann, undefined, leaves.signal);
    leaves.abort();
    // A long page waits for no other, and no other for it. A request may arrive only while a page is made.
    const bens = new Promise(setImmediate).then(() => ask("ben's", ben));
    const others = [ask("long", ann, "/audit?verify=yes"), bens, ask("cal's", cal), ask("cal's", cal)];
    expect(await Promise.all(grids)).toEqual(Array.from({ length: 10 }, () => ["ann's", 200] as const));
    // A connection is not cut while its turn is waited for.
    expect([...cuts.values()].filter((seconds) => seconds.join() === "0,75").length).toBeGreaterThanOrEqual(10);
    const answers = Object.groupBy(await Promise.all(others), ([name]) => name);
    expect(Object.values(answers).flatMap((all) => all?.map((one) => one.join()))).toEqual([
      "long,200",
      "ben's,200",
      "cal's,401",
      "cal's,401",
    ]);
    await left;
    if (w.admin.database.dialect === "postgres") return; // there a connection goes from one to the next
    expect(began.slice(0, 4).sort()).toEqual(["ann's", "ben's", "cal's", "long"]);
    expect(began.slice(4)).toEqual(Array.from({ length: 9 }, () => "ann's"));
  });

  test("a form whose browser leaves opens no database, and is no failure", async () => {
    let opened = 0;
    const open: typeof w.installation.open = (use) => {
      opened += 1;
      return w.installation.open(use);
    };
    let looked = () => {};
    const now = () => {
      looked();
      return Date.now();
    };
    const reported: unknown[] = [];
    const report = (error: unknown) => reported.push(error);
    const dashboard = startDashboard({ ...w.installation, open }, { port: 0, actor: "ana@host", report, now });
    const { host, port, hash } = new URL(dashboard.link());
    const send = async (path: string, body: string, more: string) => {
      const answer = Promise.withResolvers<string>();
      const closed = Promise.withResolvers<void>();
      const socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: Number(port),
        socket: { data: (_, chunk) => answer.resolve(chunk.toString()), close: () => closed.resolve() },
      });
      const own = `Host: ${host}\r\nOrigin: ${dashboard.origin}\r\nSec-Fetch-Site: same-origin\r\n`;
      const type = "Content-Type: application/x-www-form-urlencoded\r\n";
      socket.write(`POST ${path} HTTP/1.1\r\n${own}${type}${more}\r\n${body}`);
      return { answer: answer.promise, closed: closed.promise, socket };
    };
    const code = `code=${hash.slice(1)}`;
    const unlocked = await send("/unlock", code, `Content-Length: ${code.length}\r\n`);
    const cookie = /__Host-keyhole=[^;]+/.exec(await unlocked.answer)?.[0];
    const begun = Promise.withResolvers<void>();
    looked = begun.resolve;
    const left = await send("/projects", "slug=", `Content-Length: 1000\r\nCookie: ${cookie}\r\n`);
    await begun.promise;
    left.socket.end();
    await left.closed;
    unlocked.socket.end();
    dashboard.stop();
    await dashboard.stopped;
    expect(reported).toEqual([]);
    expect(opened).toBe(0);
  });

  test("a failure in the middle of an export is reported once, and what was sent does not look whole", async () => {
    const { where } = await w.place();
    for (let change = 0; change < 20; change++) {
      await setVariables(w.admin, where, "staging", [{ name: "A", value: String(change) }]);
    }
    for (let failing = 1; ; failing++) {
      let left = failing;
      const open: typeof w.installation.open = (use) => {
        const database = w.installation.open(use);
        const db = new Proxy(database.db, {
          get: (target, name) => {
            left -= name === "select" ? 1 : 0;
            if (left === 0 && name === "select") throw new Error("made to fail");
            return Reflect.get(target, name, target);
          },
        });
        return { ...database, db };
      };
      // A dashboard that compared over 10 s ago compares again, and that may fail without failing a page.
      await w.installation.checkpoint.look(w.admin.database);
      const visitor = await visitorOf({ ...w, installation: { ...w.installation, open } });
      const ended = await visitor.page("/audit/export").then(
        ({ status }) => status,
        () => "cut off",
      );
      if (left > 0) {
        expect([failing > 2, ended]).toEqual([true, 200]);
        break;
      }
      expect([failing, [500, "cut off"].includes(ended), visitor.reported.length]).toEqual([failing, true, 1]);
    }
  });

  test("a database that is gone is refused, not made anew", async () => {
    if (w.dialect === "postgres") return;
    const visitor = await visitorOf(w);
    const files = ["", "-wal", "-shm"].map((side) => join(w.config.dataFolder, `keyhole.db${side}`));
    for (const file of files) renameSync(file, `${file}.away`);
    const answers = [await visitor.page("/projects"), await visitor.send("/projects", { org: "none", slug: "new" })];
    expect(files.filter((file) => existsSync(file))).toEqual([]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    for (const file of files) renameSync(`${file}.away`, file);
    expect((await visitor.page("/projects")).status).toBe(200);
  });

  test("no value is shown, copied or exported that is not on record", async () => {
    const canary = "canary-of-the-journal";
    const { where } = await w.place({ variables: { staging: { TOKEN: canary } } });
    const visitor = await visitorOf(w);
    const promote = `/p/${where}/variables/promote`;
    const form = await visitor.form(`${promote}?from=staging&to=development`, promote);
    const { to: plan = "" } = await visitor.send(promote, { ...form, names: "TOKEN" });
    const shown = await visitor.hidden(plan);
    const [stop, go] =
      w.dialect === "sqlite"
        ? [
            "create trigger full before insert on audit_segments begin select raise(abort, 'full'); end",
            "drop trigger full",
          ]
        : [
            "alter table audit_segments add constraint is_full check (lane = '') not valid",
            "alter table audit_segments drop constraint is_full",
          ];
    await w.run(stop);
    const revealed = await visitor.send(`/p/${where}/variables/reveal`, { name: "TOKEN", environment: "staging" });
    const copied = await visitor.send(plan, shown);
    await w.run(go);
    for (const answer of [revealed, copied]) {
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(JSON.stringify(answer)).not.toContain(canary);
    }
    expect((await visitor.page(`/p/${where}/variables`)).html).toContain("Missing in production <b>1</b>");
  });
});

function partsOf({ installation }: World, sessions: Sessions) {
  const entrance = { code: new SignInCode(Date.now), operator: "ann@host" };
  return { installation, sessions, entrance, origin, now: Date.now, used: () => {}, report: () => {} };
}
