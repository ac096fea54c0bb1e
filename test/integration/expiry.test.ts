import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createKey, listExpiring, revokeKey } from "../../src/people/keys/keys.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { daysLeft, summed } from "../../src/serve/process/metrics.ts";
import { setBytesMax } from "../../src/serve/sets/kind.ts";
import type { Database } from "../../src/store/database.ts";
import { nextExpiry } from "../../src/store/expiry.ts";
import { inDays } from "../support/clock.ts";
import { setVariables } from "../support/plans.ts";
import { insertProjects, numbered } from "../support/rows.ts";
import { describeBoth, type Placed, type World } from "../support/world.ts";

const dayMs = 86_400_000;

function mark({ admin }: World, { where }: Placed, name: string, rotateBy: string, environment = "staging") {
  return setVariables(admin, where, environment, [{ name, value: "1", rotateBy }]);
}

async function keyOf(w: World, { organization }: Placed, expiresInMs?: number) {
  return createKey(w.admin, { organization, projects: null, environments: null, expiresInMs });
}

describeBoth("the days until something expires", (w) => {
  let database: Database;
  let project: Placed;
  beforeAll(async () => {
    database = w.installation.open("journal");
    project = await w.project(await w.organization(), "web", { variables: { staging: { PLAIN: "1" } } });
  });
  afterAll(() => database.close());
  const next = () => nextExpiry(database, setBytesMax)();

  test("have no end where nothing expires: neither revoked, expired and endless keys nor plain variables", async () => {
    expect(await next()).toEqual({ key: null, variable: null });
    await keyOf(w, project);
    await revokeKey(w.admin, (await keyOf(w, project, dayMs)).id);
    await w.regrant(await keyOf(w, project, dayMs), { expiresAt: Date.now() - 1000 });
    expect(await next()).toEqual({ key: null, variable: null });
    expect(await daysLeft(next, Date.now)()).toEqual({});
  });

  test("are those of the soonest live key and of the first day that a variable is marked with", async () => {
    await keyOf(w, project, 20 * dayMs);
    const { expiresAt } = await keyOf(w, project, 2 * dayMs);
    await mark(w, project, "LATE", inDays(90));
    expect(await next()).toEqual({ key: expiresAt, variable: inDays(90) });
    await mark(w, project, "SOON", inDays(9));
    await mark(w, await w.project(await w.organization(), "api"), "MIDDLE", inDays(30), "production");
    expect(await next()).toEqual({ key: expiresAt, variable: inDays(9) });
    expect((await listExpiring(w.admin, 3 * dayMs)).map(({ expiresAt: at }) => at)).toEqual([expiresAt]);
  });

  test("count down between questions, and below zero once a rotation is overdue", async () => {
    const expiresAt = Date.parse("2027-01-10");
    let now = Date.parse("2027-01-09T12:00Z");
    let asked = 0;
    const left = daysLeft(
      async () => {
        asked += 1;
        return { key: expiresAt, variable: "2027-01-08" };
      },
      () => now,
    );
    expect(await left()).toEqual({ key: 0.5, variable: -0.5 });
    now += 59_999;
    expect(await left()).toEqual({ key: (expiresAt - now) / dayMs, variable: expect.closeTo(-0.5007, 4) });
    expect(asked).toBe(1);
    now = expiresAt;
    expect(await left()).toEqual({ variable: -1 });
    expect(asked).toBe(2);
    // A clock that was put back.
    now -= 30 * dayMs;
    await Promise.all([left(), left()]);
    expect(asked).toBe(3);
  });

  test("are left out while the database fails, which is not asked more often for that", async () => {
    let asked = 0;
    const left = daysLeft(
      async () => {
        asked += 1;
        throw new Error("away");
      },
      () => 1_800_000_000_000,
    );
    expect(await left()).toEqual({});
    expect(await left()).toEqual({});
    expect(asked).toBe(1);
    expect(await daysLeft(async () => ({ key: null, variable: "2026-99-99" }), Date.now)()).toEqual({});
  });

  test("are found whatever SQL wrote into other listings", async () => {
    const { variable } = await next();
    const { project: other } = await w.place({ slug: "malformed" });
    await mark(w, other, "MARKED", inDays(1));
    for (const listing of [
      '[{"rotateBy":"2000-01-0',
      '"rotateBy":"',
      '{"rotateBy":"no day"}',
      '[1,"rotateBy",null,{"rotateBy":7,"x":"\\"rotateBy\\":\\"2000-01-01\\""},{"rotateBy":""}]',
      `[${'{"rotateBy":"2000-01-01"},'.repeat(400_000)}{}]`,
      "",
    ]) {
      const ofOther = "project_id = ? and environment = 'staging' and kind = 'variables'";
      await w.run(`update sets set listing = ? where ${ofOther}`, [listing, other.id]);
      expect((await next()).variable).toBe(variable);
    }
    await w.sql`delete from sets where project_id = ${other.id}`;
  });

  test("are found by two indexes: no table is read through", async () => {
    await insertProjects(w, await w.organization(), numbered("p", 300));
    if (w.dialect === "postgres") await w.run("analyze"); // or it is by chance that this was done by itself
    const explain = sql.raw(w.dialect === "postgres" ? "explain " : "explain query plan ");
    let plan = "";
    const explaining = {
      ...database,
      query: ((text) => async (values: object) => {
        plan = JSON.stringify(await database.query(sql`${explain}${text}`)(values));
        return [];
      }) as Database["query"],
    };
    await nextExpiry(explaining, setBytesMax)();
    expect(plan).toContain("sets_marked");
    expect(plan).toContain("api_keys_expiry");
    expect(plan).not.toMatch(/_pk|Seq Scan|SCAN (?:sets|api_keys)\b/);
    expect(plan).toMatch(/Cond: \(expires_at > |\(expires_at>\?\)/);
  });

  test("are a metric", async () => {
    const keyhole = await openKeyhole(w.installation, () => {}, { metered: true });
    const text = await summed([(await keyhole.metrics?.scrape()) ?? []], await keyhole.readiness());
    const days = (kind: string) =>
      Number(new RegExp(`^keyhole_next_expiry_days\\{kind="${kind}"\\} (\\S+)$`, "m").exec(text)?.[1]);
    expect(days("key")).toBeCloseTo(2, 1);
    expect(days("variable")).toBeGreaterThan(8.9);
    expect(days("variable")).toBeLessThanOrEqual(10);
    await keyhole.close();
  });
});
