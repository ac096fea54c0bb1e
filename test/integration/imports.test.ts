import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Refused } from "../../src/core/refused.ts";
import { typedIn } from "../../src/dashboard/parts/carry-out.ts";
import { importAll } from "../../src/kinds/variables/operations.ts";
import {
  listVariables,
  type Place,
  planVariables,
  type WriteOptions,
  warningsIn,
} from "../../src/kinds/variables/write.ts";
import type { Seen } from "../../src/people/desk/plan.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { listAudit } from "../support/audit.ts";
import { entriesOf } from "../support/entries.ts";
import { performed } from "../support/perform.ts";
import { personIn } from "../support/persons.ts";
import {
  planUndo,
  setAccount,
  setVariables,
  wouldCopy,
  wouldSet,
  wouldSetAccount,
  writeVariables,
} from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, type Placed, type World } from "../support/world.ts";

type Values = Readonly<Record<string, string>>;

type Options = WriteOptions & { readonly seen?: Seen; readonly dryRun?: boolean };

function load(w: World, { where }: Placed, values: Values, { dryRun = false, ...options }: Options = {}) {
  return (dryRun ? wouldSet : setVariables)(w.admin, where, "staging", entriesOf(values), options);
}

async function valuesOf(w: World, project: Placed): Promise<Values> {
  const key = await w.key({ slug: project.organization } as never, { projects: [project.slug] });
  const answer = await w.client().ask(`/projects/${project.slug}/variables?environment=staging`, { key });
  const { variables } = answer.json as { variables: { key: string; value: string }[] };
  return Object.fromEntries(variables.map(({ key: name, value }) => [name, value]));
}

async function newest(w: World) {
  const [entry] = await listAudit(w.admin, { actions: ["variables.write"], limit: 1 });
  return entry;
}

describeBoth("an import", (w, _, once) => {
  const before = { KEPT: "1", CHANGED: "old", GONE: "x" };
  const file = { KEPT: "1", CHANGED: "new", ADDED: "2" };
  const project = async () => (await w.place({ variables: { staging: before, production: before } })).project;

  test("that is a dry run says what would be added, changed and deleted, and writes and records nothing", async () => {
    const web = await project();
    const untouched = await stored(w);
    const names = { added: ["ADDED"], changed: ["CHANGED"], same: ["KEPT"], deleted: [] };
    expect(await load(w, web, file, { dryRun: true })).toEqual({ updated: 2, ...names, warnings: [] });
    expect(await load(w, web, file, { dryRun: true, prune: true })).toMatchObject({ ...names, deleted: ["GONE"] });
    const planned = await load(w, web, {}, { dryRun: true, prune: true });
    expect(planned).toMatchObject({ deleted: Object.keys(before).sort() });
    expect(await stored(w)).toBe(untouched);
    // And no lock stays.
    await load(w, web, file);
    expect(await valuesOf(w, web)).toEqual({ ...before, ...file });
  });

  test("writes what differs: history, undo and who polls see nothing of the rest, unless it is touched", async () => {
    const values = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`N_${at}`, `${at}`]));
    const { project: web, key } = await w.place({ variables: { staging: values }, key: {} });
    const at = { where: web.where, environment: "staging", kind: "variables" } as const;
    const read = async () =>
      (await w.client().ask(`/projects/${web.slug}/variables?environment=staging`, { key })).json;
    const moments = async () =>
      new Map((await listVariables(w.admin, web.where, "staging")).map(({ name, updatedAt }) => [name, updatedAt]));
    const run = (changes: Values, options: object = {}) => {
      const text = Object.entries({ ...values, ...changes }).map(([name, value]) => `${name}=${value}\n`);
      return performed(importAll, w.admin, {
        ...{ project: web.where, environment: "staging", ...options },
        file: typedIn(text.join("")),
      });
    };
    const [sent, written] = [await read(), await moments()];
    const untouched = await stored(w);
    expect(await run({})).toMatchObject({ document: { created: 0, updated: 0, same: 40 } });
    expect([await stored(w), await read(), await moments()]).toEqual([untouched, sent, written]);
    const done = await run({ N_1: "other", MORE: "1" });
    expect(done).toMatchObject({
      document: { created: 1, updated: 1, same: 39 },
      sentence: "Imported 2 variables: 1 created, 1 updated, 39 as before.",
    });
    expect(await newest(w)).toMatchObject({ names: ["MORE", "N_1"], added: ["MORE"], changed: ["N_1"] });
    const [{ version = 0 } = {}] = (await listHistory(w.admin, at)).versions;
    await run({ N_1: "third" });
    // What the third import did not write can still be taken back.
    expect(await planUndo(w.admin, at, version)).toMatchObject({ deleted: ["MORE"], left: [{ name: "N_1" }] });
    expect(await run({ N_1: "third" }, { touch: true })).toMatchObject({ document: { updated: 40, same: 0 } });
    expect((await newest(w))?.names).toHaveLength(40);
  });

  once("by somebody who may not see values writes all of them, or it would confirm a guess", async () => {
    const web = await project();
    const writer = await personIn(w.admin, web.where, ["see", "write"]);
    const written = await setVariables(writer, web.where, "staging", entriesOf(before), { onlyChanges: true });
    expect(written).toMatchObject({ updated: 3, same: [] });
  });

  test("that prunes deletes what the file does not have, in that environment alone, and is one entry on record", async () => {
    const web = await project();
    const written = await load(w, web, file, { prune: true });
    expect(written).toMatchObject({ updated: 2, added: ["ADDED"], deleted: ["GONE"] });
    expect(await valuesOf(w, web)).toEqual(file);
    expect(await listVariables(w.admin, web.where, "production")).toHaveLength(3);
    expect(await newest(w)).toMatchObject({
      action: "variables.write",
      environment: "staging",
      names: ["ADDED", "CHANGED", "GONE", "KEPT"],
      added: ["ADDED"],
      changed: ["KEPT", "CHANGED"],
      deleted: ["GONE"],
    });
    await load(w, web, {}, { prune: true });
    expect(await listVariables(w.admin, web.where, "staging")).toEqual([]);
    const names = ["ADDED", "CHANGED", "KEPT"];
    expect(await newest(w)).toMatchObject({ names, deleted: names });
  });

  once("is refused in a dry run as it would be in earnest, and changes nothing either way", async () => {
    const web = await project();
    const large = Object.fromEntries(Array.from({ length: 130 }, (_, at) => [`LARGE_${at}`, "x".repeat(65_000)]));
    const refused: [Values, Refused["kind"]][] = [
      [{ "not a name": "1" }, "invalid"],
      [{ NUL: "\0" }, "invalid"],
      [{ LONG: "x".repeat(65_537) }, "bound"],
      [large, "bound"],
    ];
    const untouched = await stored(w);
    for (const [values, kind] of refused) {
      const errors = await Promise.all(
        [true, false].map((dryRun) => load(w, web, values, { dryRun }).catch((error: Refused) => error)),
      );
      const [dry, real] = errors as Refused[];
      expect(real?.kind).toBe(kind);
      expect([dry?.kind, dry?.message]).toEqual([kind, real?.message]);
    }
    expect(await stored(w)).toBe(untouched);
    await w.sql`update sets set listing = '[]' where project_id = ${web.id} and environment = 'staging'`;
    for (const dryRun of [true, false]) {
      await expect(load(w, web, file, { dryRun, prune: true })).rejects.toMatchObject({ kind: "conflict" });
    }
  });

  once("deletes nothing that nobody was asked about", async () => {
    const web = await project();
    const { seen } = await planVariables(w.admin, web.where, "staging", entriesOf(file), { prune: true });
    await setVariables(w.admin, web.where, "staging", [{ name: "LATE", value: "1" }]);
    await expect(load(w, web, file, { prune: true, seen })).rejects.toThrow("added LATE just now, in version 3");
    expect(await valuesOf(w, web)).toEqual({ ...before, LATE: "1" });
    await load(w, web, file, { prune: true });
    expect(await valuesOf(w, web)).toEqual(file);
  });

  test("is planned without a transaction, like a copy and an account, so a question locks and seals nothing", async () => {
    const { where } = await project();
    await setAccount(w.admin, where, "stripe", ["staging"], { user: "ci" });
    const refuse = () => Promise.reject(new Error("a plan began a transaction"));
    const admin = { ...w.admin, database: { ...w.admin.database, transaction: refuse } };
    const [staging, development] = ["staging", "development"].map((environment) => ({ project: where, environment }));
    const names = Object.keys(before).sort();
    const pruned = await wouldSet(admin, where, "staging", [], { prune: true });
    expect(pruned).toMatchObject({ deleted: names });
    const copied = await wouldCopy(admin, staging as Place, development as Place, undefined);
    expect(copied).toMatchObject({ added: names });
    const account = await wouldSetAccount(admin, where, "stripe", ["development"], { user: "ci" });
    expect(account).toMatchObject({ created: false, dropped: ["staging"], warnings: [] });
    await expect(setVariables(admin, where, "staging", [])).rejects.toThrow("a plan began a transaction");
  });

  once("warns once of each name and value, in the write and in its plan, unless a text has said so", async () => {
    const { where } = await project();
    const entries = [{ name: "PATH", value: "" }];
    const said = [expect.stringMatching(/^PATH steers .*\.$/), "The value of PATH is empty."];
    expect((await wouldSet(w.admin, where, "staging", entries)).warnings).toEqual(said);
    const both = new Map(["staging", "production"].map((environment) => [environment, { entries }]));
    expect(warningsIn(await writeVariables(w.admin, where, both))).toEqual(said);
    const byLine = { warnings: ["line 1: said"] };
    const returned = [{ name: "PATH", value: "x\r" }];
    expect((await setVariables(w.admin, where, "staging", returned, byLine)).warnings).toEqual([
      ...byLine.warnings,
      "The value of PATH ends in a carriage return, which is part of it.",
    ]);
  });

  once("warns in a dry run of more variables than a read may return", async () => {
    const web = await project();
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`N_${at}`, "1"]));
    const { warnings } = await load(w, web, many, { dryRun: true, prune: true });
    expect(warnings).toEqual([expect.stringContaining("has 1001 variables in staging")]);
  });

  once("does what its dry run said, whatever was there: a model in memory agrees", async () => {
    const { project: web } = await w.place();
    const values = fc.dictionary(fc.constantFrom("A", "B", "C", "D", "E", "F"), fc.constantFrom("1", "2", "é\n"));
    let model: Values = {};
    await fc.assert(
      fc.asyncProperty(values, fc.boolean(), async (given, prune) => {
        const names = (all: Values, some: (name: string) => boolean) => Object.keys(all).filter(some).sort();
        const said = {
          added: names(given, (name) => !(name in model)),
          changed: names(given, (name) => name in model && model[name] !== given[name]),
          deleted: prune ? names(model, (name) => !(name in given)) : [],
        };
        expect(await load(w, web, given, { prune, dryRun: true })).toMatchObject(said);
        expect(await load(w, web, given, { prune })).toMatchObject(said);
        model = prune ? given : { ...model, ...given };
        const listed = await listVariables(w.admin, web.where, "staging");
        expect(listed.map(({ name }) => name)).toEqual(Object.keys(model).sort());
      }),
      { numRuns: 100 },
    );
    expect(await valuesOf(w, web)).toEqual({ ...model });
  });
});
