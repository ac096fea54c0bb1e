/** What a person writes after looking: it is refused if somebody else wrote what they looked at. */

import { expect, test } from "bun:test";
import { type Environment, environments } from "../../src/core/names.ts";
import { listAccounts } from "../../src/kinds/accounts/write.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import type { Seen } from "../../src/people/desk/plan.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { listAudit } from "../support/audit.ts";
import { deleteAccount } from "../support/delete.ts";
import { copyVariables, setAccount, setVariables, writeVariables } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, describeOnce, type World } from "../support/world.ts";

function changedBySomebodyElse(did: string, what: string) {
  const words = `ann@host ${did} just now, in version 3 of the ${what}. Nothing was written: look at it again.`;
  return { kind: "conflict", message: words };
}

async function versionOf(w: World, where: string, environment: Environment, kind = "variables"): Promise<number> {
  const [newest] = (await listHistory(w.admin, { where, environment, kind })).versions;
  return newest?.version as number;
}

const one = (name: string, value: string) => [{ name, value }];

describeBoth("a write of several environments", (w) => {
  const project = async () =>
    w.project(await w.organization(), "web", {
      variables: { development: { A: "d", OLD: "1" }, staging: { A: "s", OLD: "1" }, production: { A: "p" } },
    });

  test("gives each its own values, deletions and days of rotation, in one transaction", async () => {
    const { where } = await project();
    const written = await writeVariables(
      w.admin,
      where,
      new Map([
        ["production", { entries: [{ name: "A", value: "new p", rotateBy: "2099-01-31" }] }],
        ["development", { entries: one("B", "new d"), remove: ["OLD", "NEVER"] }],
        ["staging", { entries: one("A", "s"), prune: true }],
      ]),
      { seen: { "version.production": 2, "version.development": 2 } },
    );
    const nothing = { added: [], updated: 0, changed: [], same: [], deleted: [], warnings: [] };
    expect([...written]).toEqual([
      ["production", { ...nothing, updated: 1, changed: ["A"] }],
      ["development", { ...nothing, added: ["B"], deleted: ["OLD"] }],
      ["staging", { ...nothing, updated: 1, same: ["A"], deleted: ["OLD"] }],
    ]);
    expect(await revealVariable(w.admin, where, "production", "A")).toBe("new p");
    expect(await revealVariable(w.admin, where, "development", "A")).toBe("d");
    const names = async (environment: string) =>
      (await listVariables(w.admin, where, environment)).map(({ name, rotateBy }) => `${name} ${rotateBy ?? "never"}`);
    expect(await names("development")).toEqual(["A never", "B never"]);
    expect(await names("staging")).toEqual(["A never"]);
    expect(await names("production")).toEqual(["A 2099-01-31"]);
    const entries = await listAudit(w.admin, { project: where, actions: ["variables.write"], limit: 3 });
    expect(entries.map(({ environment, names }) => [environment, names])).toEqual([
      ["production", ["A"]],
      ["development", ["B", "OLD"]],
      ["staging", ["A", "OLD"]],
    ]);
    // One segment: one transaction.
    expect(new Set(entries.map(({ time }) => time)).size).toBe(1);
  });

  test("writes nowhere if one of them is refused", async () => {
    const { where, slug } = await project();
    const organization = where.split("/")[0];
    await setVariables(w.admin, where, "staging", one("A", "theirs"));
    const untouched = await stored(w);
    const fine = { entries: one("A", "mine") };
    const bad: [object, object, number?][] = [
      [fine, changedBySomebodyElse("changed A", `variables of ${organization}/${slug} in staging`), 2],
      [fine, { kind: "conflict" }, 4],
      [{ entries: one("A", "mine"), remove: ["A"] }, { kind: "invalid" }],
      [{ entries: one("not a name", "mine") }, { kind: "invalid" }],
      [{ entries: one("A", "x".repeat(64 * 1024 + 1)) }, { kind: "bound" }],
    ];
    for (const [staging, refusal, version = 3] of bad) {
      const changes = new Map(Object.entries({ development: fine, staging: staging as typeof fine }));
      const seen = { "version.development": 2, "version.staging": version };
      await expect(writeVariables(w.admin, where, changes, { seen })).rejects.toMatchObject(refusal);
    }
    const nowhere = writeVariables(w.admin, where, new Map([["nowhere", fine]]));
    await expect(nowhere).rejects.toMatchObject({ kind: "invalid" });
    expect(await stored(w)).toBe(untouched);
  });

  test("by several people at once: of those who saw one version, one writes", async () => {
    const { where } = await project();
    const version = await versionOf(w, where, "production");
    const write = (value: string) => {
      const change = { entries: one("A", value) };
      const places = ["staging", "production"] as const;
      const seen = Object.fromEntries(places.map((place) => [`version.${place}`, version]));
      return writeVariables(w.admin, where, new Map(places.map((place) => [place, change])), { seen });
    };
    const outcomes = await Promise.allSettled(["1", "2", "3", "4"].map(write));
    const won = outcomes.findIndex(({ status }) => status === "fulfilled");
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await revealVariable(w.admin, where, "staging", "A")).toBe(`${won + 1}`);
    expect(await revealVariable(w.admin, where, "production", "A")).toBe(`${won + 1}`);
    expect(await versionOf(w, where, "staging")).toBe(version + 1);
  });
});

describeOnce("a copy", (w) => {
  test("is refused if its source or its target was written after the person looked", async () => {
    const variables = { staging: { A: "1", B: "2" }, production: { C: "3" } };
    const { where: project } = await w.place({ variables });
    const web = project;
    const [from, to] = [{ project, environment: "staging" } as const, { project, environment: "production" } as const];
    const seen = (of: { from: number; to: number }) => {
      return { seen: { "version.staging": of.from, "version.production": of.to } };
    };
    const versions = { from: await versionOf(w, web, "staging"), to: await versionOf(w, web, "production") };
    await setVariables(w.admin, web, "staging", [], { remove: ["B"] });
    // Also if what was chosen is gone.
    await expect(copyVariables(w.admin, from, to, ["B"], seen(versions))).rejects.toMatchObject({ kind: "not_found" });
    const looked = { ...versions, from: versions.from + 1 };
    await setVariables(w.admin, web, "production", one("A", "theirs"));
    const untouched = await stored(w);
    await expect(copyVariables(w.admin, from, to, ["A"], seen(looked))).rejects.toMatchObject(
      changedBySomebodyElse("added A", `variables of ${web} in production`),
    );
    expect(await stored(w)).toBe(untouched);
    const again = { ...looked, to: looked.to + 1 };
    const copied = await copyVariables(w.admin, from, to, ["A"], seen(again));
    expect(copied).toMatchObject({ added: [], changed: ["A"], same: [] });
    expect(await revealVariable(w.admin, web, "production", "A")).toBe("1");
  });
});

describeOnce("an account", (w) => {
  test("is written and deleted only as the person saw every environment that they looked at", async () => {
    const { where } = await w.place();
    await setAccount(w.admin, where, "ci", ["staging", "production"], { user: "first" });
    const versions = environments.map((one) =>
      versionOf(w, where, one, "accounts").then((n) => [`version.${one}`, n] as const),
    );
    const seen = Object.fromEntries(await Promise.all(versions));
    const write = (user: string, seen: Seen) => setAccount(w.admin, where, "ci", ["staging"], { user }, { seen });
    await setAccount(w.admin, where, "mail", ["production"], { user: "theirs" });
    await setAccount(w.admin, where, "ci", ["production", "staging"], { user: "theirs" });
    const untouched = await stored(w);
    const changed = (version: number, environment: string) =>
      `ann@host changed ci just now, in version ${version} of the accounts of ${where} in ${environment}.`;
    const words = `${changed(3, "staging")} ${changed(4, "production")} Nothing was written: look at it again.`;
    const refusal = { kind: "conflict", message: words };
    await expect(write("second", seen)).rejects.toMatchObject(refusal);
    await expect(deleteAccount(w.admin, where, "ci", { seen })).rejects.toMatchObject(refusal);
    await expect(deleteAccount(w.admin, where, "never", { seen })).rejects.toMatchObject({ kind: "not_found" });
    expect(await stored(w)).toBe(untouched);
    await setAccount(w.admin, where, "mail", ["staging"], { user: "theirs" });
    expect(await write("second", { ...seen, "version.staging": 3, "version.production": 4 })).toMatchObject({
      created: false,
      dropped: ["production"],
    });
    // Who names no version of an environment has not looked at it.
    const { "version.development": version = 0 } = seen;
    await deleteAccount(w.admin, where, "ci", { seen: { "version.development": version } });
    expect((await listAccounts(w.admin, where)).map(({ name }) => name)).toEqual(["mail"]);
  });
});
