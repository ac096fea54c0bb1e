import { expect, test } from "bun:test";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { listAudit } from "../support/audit.ts";
import { deleteVariable } from "../support/delete.ts";
import { entriesOf } from "../support/entries.ts";
import { personIn } from "../support/persons.ts";
import {
  planRollback,
  planUndo,
  purgeHistory,
  rollBack,
  setVariables,
  undo,
  writeVariables,
} from "../support/plans.ts";
import { describeBoth, type World } from "../support/world.ts";

const production = "production";
const setOf = (where: string, kind = "variables") => ({ where, environment: production, kind }) as const;

/** Ben adds, changes and deletes (version 3); then Ana changes one of his names and adds another (4 and 5). */
async function mistaken(w: World) {
  const { where, id } = await w.place({ variables: { production: { OLD: "old", GONE: "gone", SAME: "same" } } });
  const as = (name: string): AdminContext => ({ ...w.admin, actor: { type: "person", name, from: "os" } });
  const ben = { entries: entriesOf({ OLD: "ben's", NEW: "ben's", TAKEN: "ben's" }), remove: ["GONE"] };
  await writeVariables(as("ben"), where, new Map([[production, ben]]));
  await setVariables(as("ana"), where, production, entriesOf({ TAKEN: "ana's" }));
  await setVariables(as("ana"), where, production, entriesOf({ GOOD: "ana's" }));
  const plan = (version: number) => planUndo(w.admin, setOf(where), version);
  const values = async () => {
    const names = (await listVariables(w.admin, where, production)).map(({ name }) => name);
    const found = await Array.fromAsync(names, async (name) => {
      return [name, await revealVariable(w.admin, where, production, name)] as const;
    });
    return Object.fromEntries(found);
  };
  return { where, id, as, plan, values };
}

describeBoth("taking back what one version changed", (w) => {
  test("brings back what nobody wrote since, keeps the rest, and is on record", async () => {
    const { where, as, plan, values } = await mistaken(w);
    const shown = await plan(3);
    const did = { added: ["GONE"], changed: ["OLD"], deleted: ["NEW"] };
    const left = [{ name: "TAKEN", version: 4, by: "ana" }];
    expect(shown).toEqual({ from: 5, version: 3, by: "ben", seen: expect.anything(), ...did, left });
    expect(await undo(as("carla"), setOf(where), shown)).toMatchObject({ version: 6, warnings: [] });
    expect(await values()).toEqual({ GONE: "gone", GOOD: "ana's", OLD: "old", SAME: "same", TAKEN: "ana's" });
    const [entry] = await listAudit(w.admin, { project: where, actions: ["variables.rollback"], limit: 1 });
    expect(entry).toMatchObject({ actor: { name: "carla" }, environment: production, ...did });
    expect(entry?.names).toEqual(["GONE", "NEW", "OLD"]);
    // It can be taken back in the same way.
    await undo(w.admin, setOf(where), await plan(6));
    expect(await values()).toMatchObject({ OLD: "ben's", NEW: "ben's", TAKEN: "ana's", GOOD: "ana's" });
  });

  test("is refused if nothing is left, if it changed nothing, and if it is not kept", async () => {
    const { where, plan, values } = await mistaken(w);
    await undo(w.admin, setOf(where), await plan(3));
    const before = await values();
    const words = "Nothing of version 3 is left to undo: all that it changed has been written again since";
    await expect(plan(3)).rejects.toMatchObject({ kind: "invalid", message: expect.stringContaining(words) });
    await expect(plan(1)).rejects.toMatchObject({ kind: "invalid" });
    for (const none of [0, 7, 1e9]) await expect(plan(none)).rejects.toMatchObject({ kind: "not_found" });
    expect(await values()).toEqual(before);
    await purgeHistory(w.admin, setOf(where));
    await expect(plan(6)).rejects.toMatchObject({ kind: "not_found" });
  });

  test("is refused if SQL changed or deleted the record of who wrote what since", async () => {
    for (const change of ["update set_versions set actor = 'eve'", "delete from set_versions"]) {
      const { id, plan } = await mistaken(w);
      const of = "project_id = ? and version = 4 and kind = 'variables' and environment = ?";
      await w.run(`${change} where ${of}`, [id, production]);
      await expect(plan(3)).rejects.toMatchObject({ kind: "conflict", message: expect.stringContaining("with SQL") });
      expect(await plan(5)).toMatchObject({ deleted: ["GOOD"] });
    }
  });

  test("takes no right to reveal, and tells nothing about a value", async () => {
    const { where } = await w.place({ variables: { production: { A: "stored" } } });
    const ana = await personIn(w.admin, where, ["see", "write"]);
    const guessed = async (value: string) => {
      await setVariables(ana, where, production, entriesOf({ A: value }));
      const [newest] = (await listHistory(ana, setOf(where))).versions;
      const version = newest?.version as number;
      const { added, changed, deleted, left } = await planUndo(ana, setOf(where), version);
      const { version: next, warnings } = await undo(ana, setOf(where), await planUndo(ana, setOf(where), version));
      expect(next).toBe(version + 1);
      return { added, changed, deleted, left, warnings };
    };
    expect(await guessed("stored")).toEqual(await guessed("a wrong guess"));
    // Putting one back without `reveal` does not say that it is the same.
    const back = planRollback(ana, setOf(where), 2, "A");
    expect(await back).toMatchObject({ changed: ["A"], added: [], deleted: [] });
    for (const rights of [["see"], ["write"], ["reveal", "write"]] as const) {
      const other = await personIn(w.admin, where, rights);
      await expect(planUndo(other, setOf(where), 2)).rejects.toMatchObject({ kind: "not_found" });
    }
  });
});

describeBoth("putting back one item", (w) => {
  test("writes it as it was, and no other, and names who wrote it since", async () => {
    const { where, as, values } = await mistaken(w);
    const back = async (to: number, name: string) => {
      return rollBack(as("carla"), setOf(where), await planRollback(w.admin, setOf(where), to, name));
    };
    const { plan, version } = await back(3, "TAKEN");
    expect(plan).toMatchObject({ changed: ["TAKEN"], added: [], deleted: [], between: [{ version: 4, by: "ana" }] });
    expect(version).toBe(6);
    const now = { GOOD: "ana's", NEW: "ben's", OLD: "ben's", SAME: "same", TAKEN: "ben's" };
    expect(await values()).toEqual(now);
    await back(2, "GONE");
    expect(await values()).toEqual({ ...now, GONE: "gone" });
    await expect(back(2, "OLD")).resolves.toBeDefined();
    const same = { kind: "invalid", message: expect.stringContaining("OLD is the same in version 2 and now") };
    await expect(back(2, "OLD")).rejects.toMatchObject(same);
    await expect(back(2, "NEW")).rejects.toMatchObject({ kind: "not_found" });
    await deleteVariable(w.admin, where, production, "OLD");
    await back(3, "OLD");
    expect(await values()).toMatchObject({ OLD: "ben's" });
  });

  test("has a history of its own", async () => {
    const { where } = await mistaken(w);
    const { versions } = await listHistory(w.admin, setOf(where), "TAKEN");
    expect(versions).toMatchObject([
      { version: 4, actor: { name: "ana" }, added: [], changed: ["TAKEN"], deleted: [] },
      { version: 3, actor: { name: "ben" }, added: ["TAKEN"], changed: [], deleted: [] },
    ]);
    expect((await listHistory(w.admin, setOf(where), "NEVER")).versions).toEqual([]);
  });
});
