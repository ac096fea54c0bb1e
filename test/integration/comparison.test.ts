/** Which environments of a project have an item, and which of them have the same. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Environment, environments } from "../../src/core/names.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { everyKind } from "../../src/kinds/kind.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { findLeaks, findReuse } from "../../src/people/leaks/values.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { canary } from "../support/canary.ts";
import { deleteAccount, deleteFile } from "../support/delete.ts";
import { personIn } from "../support/persons.ts";
import { setAccount, setVariables, writeVariables } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, type World } from "../support/world.ts";

/** What a comparison says, as `development:1 production:2` by name. */
async function groups(w: World, where: string, kind: string): Promise<Record<string, string>> {
  const { items } = await compareEnvironments(w.admin, where, kind, true);
  return Object.fromEntries(
    items.map(({ name, environments }) => {
      const found = Object.entries(environments).map(([environment, { group }]) => `${environment}:${group}`);
      return [name, found.join(" ")];
    }),
  );
}

describeBoth("a comparison of environments", (w, _, once) => {
  test("of variables tells the same values apart from others, whatever their times and days of rotation", async () => {
    const { where } = await w.place();
    w.clock.nowMs = 1_700_000_000_000;
    const set = (environment: string, values: Readonly<Record<string, string>>) => {
      const entries = Object.entries(values).map(([name, value]) => ({ name, value }));
      return setVariables(w.admin, where, environment, entries);
    };
    await set("development", { SAME: canary, TWO: "x", ORDER: "a", ALONE: "1" });
    w.clock.nowMs += 1;
    await set("staging", { SAME: canary, TWO: "y", ORDER: "b", _LAST: "" });
    w.clock.nowMs = 1_000;
    await set("production", { TWO: "x", ORDER: "c", _LAST: " " });
    await setVariables(w.admin, where, "production", [{ name: "SAME", value: canary, rotateBy: "2099-01-31" }]);
    w.clock.nowMs = undefined;
    expect(await groups(w, where, "variables")).toEqual({
      ALONE: "development:1",
      ORDER: "development:1 staging:2 production:3",
      SAME: "development:1 staging:1 production:1",
      TWO: "development:1 staging:2 production:1",
      _LAST: "staging:1 production:2",
    });
    const { items } = await compareEnvironments(w.admin, where, "variables", true);
    expect(items[2]?.environments).toEqual({
      development: { updatedAt: 1_700_000_000_000, group: 1 },
      staging: { updatedAt: 1_700_000_000_001, group: 1 },
      production: { updatedAt: 1_000, group: 1, dueAt: Date.parse("2099-02-01") },
    });
    expect(JSON.stringify(items)).not.toContain(canary);
  });

  test("of accounts compares their fields, and of files everything that is listed of them", async () => {
    const { where } = await w.place();
    await setAccount(w.admin, where, "ci", ["development", "production"], { user: "x" });
    await setAccount(w.admin, where, "mail", ["staging"], { user: "x" });
    expect(await groups(w, where, "accounts")).toEqual({ ci: "development:1 production:1", mail: "staging:1" });
    const put = (path: string, environment: string, text: string, more: object = {}) =>
      putFile(w.admin, where, { path, environments: [environment], content: Buffer.from(text), ...more });
    for (const environment of environments) await put("same", environment, "text");
    await put("text", "development", "text");
    await put("text", "staging", "test");
    const ways = { mode: "0400", type: "text/plain", name: "other" };
    for (const path of Object.keys(ways)) await put(path, "development", "text", { name: path });
    await put("mode", "staging", "text", { mode: ways.mode });
    await put("type", "staging", "text", { contentType: ways.type });
    await put("name", "staging", "text", { name: ways.name });
    expect(await groups(w, where, "files")).toEqual({
      mode: "development:1 staging:2",
      name: "development:1 staging:2",
      same: "development:1 staging:1 production:1",
      text: "development:1 staging:2",
      type: "development:1 staging:2",
    });
    // What no reveal records does not leave either.
    expect(JSON.stringify(await compareEnvironments(w.admin, where, "files"))).not.toMatch(/[0-9a-f]{64}/);
  });

  once("opens no value unless it is asked for, and puts nothing on record without it", async () => {
    const { where } = await w.place({ variables: { staging: { A: "1" }, production: { A: "1" } } });
    const before = await stored(w);
    for (const { kind } of everyKind) await compareEnvironments(w.admin, where, kind);
    expect(await stored(w)).toBe(before);
    const { items } = await compareEnvironments(w.admin, where, "variables");
    expect(items).toMatchObject([{ environments: { staging: { group: null }, production: { group: null } } }]);
  });

  test("is refused if a set was edited with SQL; for who may not see values, none is opened", async () => {
    const { where, id } = await w.place({ variables: { staging: { A: "1" } } });
    await w.sql`update sets set sealed = ${Buffer.from("no envelope")} where project_id = ${id}
      and kind = 'variables' and environment = 'staging'`;
    await expect(compareEnvironments(w.admin, where, "variables", true)).rejects.toMatchObject({ kind: "conflict" });
    const seer = await personIn(w.admin, where, ["see"]);
    const { items } = await compareEnvironments(seer, where, "variables", true);
    expect(items).toMatchObject([{ name: "A", environments: { staging: { group: null } } }]);
    await w.sql`update sets set listing = '[]' where project_id = ${id} and environment = 'staging'`;
    for (const admin of [w.admin, seer]) {
      await expect(compareEnvironments(admin, where, "variables", true)).rejects.toMatchObject({ kind: "conflict" });
    }
  });

  once("agrees with a model in memory, for every kind and after any writes", async () => {
    const { where } = await w.place();
    const seer = await personIn(w.admin, where, ["see"]);
    const name = fc.constantFrom("A", "B", "c", "_d", "Z9");
    const step = fc.record({
      kind: fc.constantFrom(...everyKind.map(({ kind }) => kind)),
      name,
      places: fc.uniqueArray(fc.constantFrom(...environments), { minLength: 1 }),
      value: fc.constantFrom(null, "1", "2", "é\n", '{"updatedAt":0}'),
    });
    type Items = Map<string, Map<Environment, string>>;
    const model = new Map<string, Items>(everyKind.map(({ kind }) => [kind, new Map()]));
    const held = (kind: string, name: string) => {
      const items = model.get(kind) as Items;
      if (!items.has(name)) items.set(name, new Map());
      return items.get(name) as Map<Environment, string>;
    };
    const write: Record<string, (name: string, places: Environment[], value: string) => Promise<unknown>> = {
      variables: (name, places, value) => {
        const change = { entries: [{ name, value }] };
        return writeVariables(w.admin, where, new Map(places.map((place) => [place, change])));
      },
      accounts: (name, places, value) => setAccount(w.admin, where, name, places, { value }),
      files: (path, environments, value) =>
        putFile(w.admin, where, { path, environments, content: Buffer.from(value) }),
    };
    const remove: Record<string, (name: string, places: Environment[]) => Promise<unknown>> = {
      variables: (name, places) => {
        const change = { entries: [], remove: [name] };
        return writeVariables(w.admin, where, new Map(places.map((place) => [place, change])));
      },
      accounts: (name) => deleteAccount(w.admin, where, name),
      files: (path, places) => deleteFile(w.admin, where, path, places),
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
        for (const { kind, name, places, value } of steps) {
          const at = held(kind, name);
          const isWhole = kind === "accounts";
          if (value !== null) {
            await write[kind]?.(name, places, value);
            if (isWhole) at.clear();
            for (const place of places) at.set(place, value);
          } else if (isWhole ? at.size > 0 : places.every((place) => at.has(place))) {
            await remove[kind]?.(name, places);
            for (const place of isWhole ? environments : places) at.delete(place);
          }
        }
        for (const [kind, items] of model) {
          const compared = await compareEnvironments(w.admin, where, kind, true);
          const listed = await compareEnvironments(seer, where, kind, true);
          const names = [...items].flatMap(([name, at]) => (at.size > 0 ? [name] : [])).toSorted();
          expect(compared.items.map((item) => item.name)).toEqual(names);
          for (const { name, environments: shown } of compared.items) {
            const at = held(kind, name);
            const present = environments.filter((environment) => at.has(environment));
            expect(Object.keys(shown)).toEqual(present);
            const values = [...new Set(present.map((environment) => at.get(environment)))];
            for (const environment of present) {
              expect(shown[environment]?.group).toBe(values.indexOf(at.get(environment)) + 1);
            }
          }
          const ungrouped = compared.items.map(({ name, environments }) => {
            const dated = Object.entries(environments).map(([place, one]) => [place, { ...one, group: null }]);
            return { name, environments: Object.fromEntries(dated) };
          });
          expect(listed).toEqual({ environments, sets: expect.any(Array), items: ungrouped });
        }
      }),
      { numRuns: 30 },
    );
  });
});

describeBoth("values that are stored twice", (w) => {
  test("are found by those who may read them, files by their checksum, and production after a fresh sign-in", async () => {
    const { organization, project } = await w.place({
      variables: { production: { TOKEN: canary, MODE: "true" }, staging: { TOKEN: `${canary}\n`, MODE: "true" } },
      files: [
        { path: "a.pem", content: "the-same-file", environments: ["staging"] },
        { path: "b.pem", content: "the-same-file", environments: ["staging"] },
      ],
    });
    const operators = await findReuse(w.admin, organization.slug);
    expect(
      operators.map(({ isBeyondProduction, places }) => [isBeyondProduction, places.map(({ name }) => name)]),
    ).toEqual([
      [true, ["TOKEN", "TOKEN"]],
      [false, ["a.pem", "b.pem"]],
    ]);
    const count = async (admin: AdminContext) => (await findReuse(admin, organization.slug)).length;
    expect(await count({ ...w.admin, freshUntil: 0 })).toBe(1);
    const log = (async function* () {})();
    const among = { organization: organization.slug, bytesMax: 20 };
    await expect(findLeaks(w.admin, log, () => {}, among)).rejects.toMatchObject({
      kind: "bound",
      message: expect.stringContaining("Nothing was compared."),
    });
    const seeing = await personIn(w.admin, project.where, ["see"]);
    await expect(findReuse(seeing)).rejects.toThrow("takes the right `reveal`");
  });
});
