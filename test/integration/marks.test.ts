import { describe, expect, test } from "bun:test";
import { Unfit } from "../../src/core/words/parse.ts";
import { parseComingDay } from "../../src/core/words/times.ts";
import { listDueVariables, listVariables, type WriteOptions } from "../../src/kinds/variables/write.ts";
import { inDays } from "../support/clock.ts";
import { copyVariables, planRollback, rollBack, setVariables, wouldSet } from "../support/plans.ts";

import { describeBoth, type Placed, type World } from "../support/world.ts";

const dayMs = 86_400_000;

function mark({ admin }: World, { where }: Placed, name: string, rotateBy: string, environment = "staging") {
  return setVariables(admin, where, environment, [{ name, value: "1", rotateBy }]);
}

/** Writes variables as an import does. */
function load(
  { admin }: Pick<World, "admin">,
  { where }: Placed,
  values: Readonly<Record<string, string>>,
  options: WriteOptions = {},
) {
  const entries = Object.entries(values).map(([name, value]) => ({ name, value }));
  return setVariables(admin, where, "staging", entries, options);
}

describeBoth("a variable that is marked for rotation", (w) => {
  const marked = async (w: World) => {
    const { project: web } = await w.place({ variables: { staging: { PLAIN: "1" } } });
    await setVariables(w.admin, web.where, "staging", [{ name: "MARKED", value: "1", rotateBy: "2099-01-31" }]);
    const mark = async () =>
      (await listVariables(w.admin, web.where, "staging")).find(({ name }) => name === "MARKED")?.rotateBy;
    expect(await mark()).toBe("2099-01-31");
    return { web, mark };
  };

  test("keeps its mark through an import that leaves its value, and loses it with its value", async () => {
    const { web, mark } = await marked(w);
    await load(w, web, { MARKED: "1", OTHER: "2" });
    expect(await mark()).toBe("2099-01-31");
    await load(w, web, { OTHER: "3" });
    expect(await mark()).toBe("2099-01-31");
    await wouldSet(w.admin, web.where, "staging", [{ name: "MARKED", value: "2" }]);
    expect(await mark()).toBe("2099-01-31");
    await load(w, web, { MARKED: "2" });
    expect(await mark()).toBeUndefined();
  });

  test("loses its mark when it is set without one, and takes another", async () => {
    const { web, mark } = await marked(w);
    const set = (value: string, rotateBy: string | null) =>
      setVariables(w.admin, web.where, "staging", [{ name: "MARKED", value, rotateBy }]);
    await set("1", "2099-02-28");
    expect(await mark()).toBe("2099-02-28");
    await set("1", null);
    expect(await mark()).toBeUndefined();
  });

  test("loses no mark in silence, whatever writes it", async () => {
    const { web, mark } = await marked(w);
    const { where } = web;
    const gone = ["In staging, this day to rotate by is gone: MARKED (2099-01-31)."];
    const again = (value: string) =>
      setVariables(w.admin, where, "staging", [{ name: "MARKED", value, rotateBy: "2099-01-31" }]);
    const set = await setVariables(w.admin, where, "staging", [{ name: "MARKED", value: "1", rotateBy: null }]);
    await again("1");
    const imported = await load(w, web, { MARKED: "2" });
    await again("2");
    expect((await load(w, web, { MARKED: "2" })).warnings).toEqual([]);
    await setVariables(w.admin, where, "production", [{ name: "MARKED", value: "3" }]);
    const [from, to] = [
      { project: where, environment: "production" },
      { project: where, environment: "staging" },
    ];
    const copied = await copyVariables(w.admin, from, to);
    await again("3");
    // What is the same is not written, so the target keeps its day.
    expect(await copyVariables(w.admin, from, to)).toMatchObject({ same: ["MARKED"], warnings: [] });
    expect(await mark()).toBe("2099-01-31");
    const plan = await planRollback(w.admin, { where, environment: "staging", kind: "variables" }, 4);
    const rolledBack = await rollBack(w.admin, { where, environment: "staging", kind: "variables" }, plan);
    for (const { warnings } of [set, imported, copied, rolledBack]) expect(warnings).toEqual(gone);
  });

  test("is answered by the API like any other: with exactly the members of the contract", async () => {
    const { web } = await marked(w);
    await setVariables(w.admin, web.where, "production", [{ name: "MARKED", value: "1", rotateBy: "2099-01-31" }]);
    const key = await w.key({ slug: web.organization } as never, { projects: ["web"] });
    const path = "/projects/web/variables?";
    const of = ["metadata_only=true", "metadata_only=true&prefix=M", "keys=MARKED"].map(
      (one) => `environment=staging&${one}`,
    );
    for (const query of ["metadata_only=true", "environment=staging", ...of]) {
      const members = query.includes("metadata_only") ? ["key", "updatedAt"] : ["key", "value", "updatedAt"];
      // Twice: the second time the set is remembered.
      for (const _ of [1, 2]) {
        const answer = await w.ask(`${path}${query}`, { key });
        const { variables } = answer.json as { variables: object[] };
        expect(variables.length).toBeGreaterThan(0);
        for (const variable of variables) expect(Object.keys(variable)).toEqual([...members]);
      }
    }
    const both = (await w.ask(`${path}environment=staging&metadata_only=true`, { key })).text;
    expect(both).toMatch(
      /^\{"environment":"staging","variables":\[\{"key":"MARKED","updatedAt":\d+\},\{"key":"PLAIN","updatedAt":\d+\}\]\}$/,
    );
  });

  test("does not verify with a mark that SQL changed", async () => {
    const { web } = await marked(w);
    await w.sql`update sets set listing = replace(listing, '2099-01-31', '2099-12-31') where project_id = ${web.id}`;
    await expect(listVariables(w.admin, web.where, "staging")).rejects.toMatchObject({ kind: "conflict" });
  });
});

describeBoth("what is to be rotated", (w) => {
  test("is listed for every project, overdue or within the time, and nothing else is", async () => {
    w.clock.nowMs = Date.parse(`${inDays(0)}T12:00Z`); // or midnight makes today overdue
    const [web, api] = [
      await w.project(await w.organization(), "web", { variables: { staging: { PLAIN: "1" } } }),
      await w.project(await w.organization(), "api"),
    ];
    await mark(w, web, "TODAY", inDays(0));
    await mark(w, web, "LATER", inDays(40));
    await mark(w, api, "SOON", inDays(10), "production");
    await mark(w, api, "PAST", inDays(-3), "development");
    const listed = async (days: number) =>
      (await listDueVariables(w.admin, days * dayMs)).map(({ name }) => name).sort();
    expect(await listed(30)).toEqual(["PAST", "SOON", "TODAY"]);
    expect(await listed(50)).toEqual(["LATER", "PAST", "SOON", "TODAY"]);
    const found = await listDueVariables(w.admin, 30 * dayMs);
    expect(found.find(({ name }) => name === "PAST")).toEqual({
      organization: api.organization,
      project: "api",
      environment: "development",
      name: "PAST",
      rotateBy: inDays(-3),
      dueAt: Date.parse(inDays(-2)),
      status: "overdue",
    });
    // Its own day is the last one on which it is in time.
    expect(found.find(({ name }) => name === "TODAY")).toMatchObject({ status: "due", dueAt: Date.parse(inDays(1)) });
    w.clock.nowMs = undefined;
  });

  test("is not read from a listing that SQL changed", async () => {
    const { project } = await w.place({ slug: "damaged" });
    await mark(w, project, "MARKED", inDays(1));
    await w.sql`update sets set listing = replace(listing, 'MARKED', 'FORGED') where project_id = ${project.id}`;
    await expect(listDueVariables(w.admin, dayMs)).rejects.toMatchObject({ kind: "conflict" });
    await w.sql`delete from sets where project_id = ${project.id}`;
  });
});

describe("a day to rotate by", () => {
  const noon = Date.UTC(2026, 1, 15, 12);
  test.each(["2026-02-15", "2026-02-16", "2028-02-29", "9999-12-31"])("%s is taken", (day) => {
    expect(parseComingDay(day, noon)).toBe(day);
  });
  const days = ["2026-02-14", "2026-02-30", "2027-02-29", "2026-13-01", "26-02-16", "2026-2-16", "30d", "", "never"];
  test.each(days)("%j is refused: past, not a day of the calendar, or written otherwise", (text) => {
    expect(() => parseComingDay(text, noon)).toThrow(Unfit);
  });
  test("ends at midnight in UTC", () => {
    const midnight = Date.UTC(2026, 1, 16);
    expect(parseComingDay("2026-02-15", midnight - 1)).toBe("2026-02-15");
    expect(() => parseComingDay("2026-02-15", midnight)).toThrow(Unfit);
  });
});
