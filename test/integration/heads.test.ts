import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SignIn } from "../../src/dashboard/sign-in.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { backUp, restore } from "../../src/people/backup/backup.ts";
import { RosterWatch, whoIs } from "../../src/people/desk/roster.ts";
import { addPerson, listPersons } from "../../src/people/persons/persons.ts";
import { sealHead } from "../../src/record/head.ts";
import type { LaneCheckpoint } from "../../src/record/journal.ts";
import { putHeadBack, savedHead, unsealHead } from "../support/heads.ts";
import { grantRights, removePerson, setVariables } from "../support/plans.ts";
import { pruneAudit } from "../support/prune.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth, describeOnce, type Row, type World } from "../support/world.ts";

/*
 * The head of the lane of commands carries the roster. Somebody who may write to the database, and has no key, tries to
 * bring a removed person back.
 */

const provider = { issuer: "https://id.example", clientId: "keyhole", clientSecret: undefined };
const distrust = { kind: "conflict", message: expect.stringContaining("failed verification") };
const everywhere = { projects: null, environments: null };
const removal = "lane = 'commands' and first_seq = (select seq - 1 from audit_heads)";
const newest = "first_seq = (select max(first_seq) from audit_segments where lane = 'commands')";

/** An organization with a project, and a person who may write it. */
async function withAna(w: World) {
  const { organization, where } = await w.place();
  const name = `ana${organization.slug.replace("org", "")}`;
  const signIn = { issuer: provider.issuer, subject: name };
  await addPerson(w.admin, { name, organization: organization.slug, signIn });
  await grantRights(w.admin, name, { rights: ["see", "write"], projects: ["web"], environments: null });
  return { slug: organization.slug, where, name };
}

/** Each way in which the rights of a person are asked for. */
function waysIn(w: World, name: string) {
  const dashboard = new SignIn(provider, "https://secrets.example", Date.now, () => {});
  const identity = { issuer: provider.issuer, subject: name, label: name, groups: [], provedAt: Date.now() };
  return {
    door: () => whoIs(w.installation, name),
    dashboard: () => dashboard.whoIs(w.admin, identity),
    list: () => listPersons(w.admin),
  };
}

/** What is wrong with the lanes. The list that was put back is a flaw of state, too. */
const flawsIn = async (w: World, checkpoints?: readonly LaneCheckpoint[]) =>
  (await verifyAudit(w.admin, checkpoints)).flaws.map(({ what }) => what).filter((what) => what !== "state");

const write = (w: World, where: string) => setVariables(w.admin, where, "staging", [{ name: "A", value: "1" }]);

describeBoth("the head of the lane of commands", (w) => {
  const setSeal = async (seal: unknown, roster: unknown) =>
    w.run("update audit_heads set seal = ?, roster = ?", [seal, roster]);
  const deleteNewest = () => w.run(`delete from audit_segments where lane = 'commands' and ${newest}`);
  const deleteRoster = () => w.run("delete from rosters where version = (select max(version) from rosters)");

  test.each<[string, (before: Row, after: Row) => Promise<unknown>]>([
    ["put back", (before) => putHeadBack(w, before)],
    ["put back together with the list", async (before) => [await putHeadBack(w, before), await deleteRoster()]],
    [
      "put back by its first columns alone",
      ({ seq, at, mac }) => w.run("update audit_heads set seq = ?, at = ?, mac = ?", [seq, at, mac]),
    ],
    ["with the earlier list", (before, after) => setSeal(after["seal"], before["roster"])],
    ["with the earlier list and its seal", (before) => setSeal(before["seal"], before["roster"])],
    ["with the earlier list and no seal", (before) => setSeal(null, before["roster"])],
    [
      "with the seal of another lane's head",
      (before, after) => {
        const [seq, at, roster] = [Number(after["seq"]), Number(after["at"]), String(before["roster"])];
        const head = { lane: "other", seq, at, mac: after["mac"] as Buffer, roster };
        return setSeal(sealHead(w.admin.systemKeys.audit, head), roster);
      },
    ],
    ["at another time", () => w.run("update audit_heads set at = at + 1")],
    ["deleted", () => w.run("delete from audit_heads")],
    ["where it was, and deleted the last segment", deleteNewest],
  ])("lets nobody in if SQL left it %s, and `audit verify` says so", async (_, attack) => {
    const { name, slug } = await withAna(w);
    const before = await savedHead(w);
    await removePerson(w.admin, name);
    const after = await savedHead(w);
    const putBack = await savedTables(w, ["audit_segments", "rosters", "audit_heads"]);
    await attack(before, after);
    const { door, dashboard, list } = waysIn(w, name);
    const add = () => addPerson(w.admin, { name: "eve", organization: slug, signIn: null });
    for (const way of [door, dashboard, list, add]) await expect(way()).rejects.toMatchObject(distrust);
    expect(await flawsIn(w)).toEqual(["head"]);
    await putBack();
    await expect(door()).rejects.toMatchObject({ kind: "forbidden" });
    expect((await dashboard()).rights).toEqual([]);
    expect(await flawsIn(w)).toEqual([]);
  });

  test("that was put back is not sealed by the next command, which gives no number twice", async () => {
    const { name, where } = await withAna(w);
    const before = await savedHead(w);
    await removePerson(w.admin, name);
    await write(w, where);
    await putHeadBack(w, before);
    await write(w, where);
    const { door } = waysIn(w, name);
    await expect(door()).rejects.toMatchObject(distrust);
    expect(await flawsIn(w)).toEqual(["head"]);
    // An operator who takes the persons as they are seals it again, with the newest list.
    const ben = { name: `${name}-ben`, organization: undefined, signIn: null };
    await addPerson(w.admin, { ...ben, organization: where.split("/")[0] }, { asTheyAre: true });
    await expect(door()).rejects.toMatchObject({ kind: "forbidden" });
    expect(await flawsIn(w)).toEqual([]);
  });

  test("is believed if the end of the lane was cut off too, which a checkpoint shows, and never by who has seen more", async () => {
    const { name, where } = await withAna(w);
    const before = await savedHead(w);
    const watch = new RosterWatch();
    const { dashboard, door } = waysIn(w, name);
    expect((await dashboard()).rights).toHaveLength(1);
    await removePerson(w.admin, name);
    await write(w, where);
    const { seq, mac } = await savedHead(w);
    const checkpoint = { lane: "commands", seq: Number(seq), mac: (mac as Buffer).toString("hex") };
    expect(await flawsIn(w, [checkpoint])).toEqual([]);
    expect((await dashboard()).rights).toEqual([]);
    expect((await watch.current(w.admin)).persons.map((one) => one.name)).not.toContain(name);
    for (let count = 0; count < 2; count++) await deleteNewest();
    await putHeadBack(w, before);
    expect((await door()).rights).toHaveLength(1);
    await expect(dashboard()).rejects.toMatchObject(distrust);
    await expect(watch.current(w.admin)).rejects.toMatchObject(distrust);
    expect(await flawsIn(w)).toEqual([]);
    expect(await flawsIn(w, [checkpoint])).toEqual(["lost"]);
    await removePerson(w.admin, name);
  });

  test("fails verification if a segment that SQL added behind the last one has its mac", async () => {
    const { name } = await withAna(w);
    const before = await savedHead(w);
    await removePerson(w.admin, name);
    const putBack = await savedTables(w, ["audit_segments", "audit_heads"]);
    await putHeadBack(w, before);
    await w.run(
      `insert into audit_segments (lane, first_seq, last_seq, at, mac, texts, entries)
       select lane, first_seq + 1000, ${before["seq"]}, at, ?, texts, entries from audit_segments
       where lane = 'commands' and ${newest}`,
      [before["mac"]],
    );
    await expect(waysIn(w, name).door()).rejects.toMatchObject(distrust);
    expect(await flawsIn(w)).toEqual(["broken", "head"]);
    await putBack();
    expect(await flawsIn(w)).toEqual([]);
  });

  test("fails verification if other entries took the place of the last one", async () => {
    const { name, where } = await withAna(w);
    const before = await savedHead(w);
    await grantRights(w.admin, name, { rights: ["reveal"], ...everywhere });
    const lost = await savedHead(w);
    await deleteNewest();
    await putHeadBack(w, before);
    await write(w, where);
    const now = await savedHead(w);
    await putHeadBack(w, lost);
    await expect(waysIn(w, name).door()).rejects.toMatchObject(distrust);
    await putHeadBack(w, now);
    expect((await waysIn(w, name).door()).rights).toHaveLength(1);
  });
});

describeBoth("a head that an earlier version did not seal", (w) => {
  const open = () => openInstallation(w.config, () => {}, { upgrade: true });

  test("is sealed by an upgrade alone, with the list that its lane names, and only then", async () => {
    const { name, where } = await withAna(w);
    await write(w, where);
    const { roster } = await savedHead(w);
    await unsealHead(w);
    await expect(openInstallation(w.config, () => {})).rejects.toThrow("This database is of an older Keyhole");
    expect((await savedHead(w))["seal"]).toBe(null);
    await open();
    expect((await savedHead(w))["roster"]).toBe(roster as string);
    expect((await waysIn(w, name).door()).rights).toHaveLength(1);
    expect(await flawsIn(w)).toEqual([]);
    await w.run("update audit_heads set seal = null");
    await open();
    await expect(waysIn(w, name).door()).rejects.toMatchObject(distrust);
    const another = { name: `${name}-2`, organization: where.split("/")[0], signIn: null };
    await addPerson(w.admin, another, { asTheyAre: true });
  });

  test("is sealed with the list in the first entry that retention has left", async () => {
    const { name } = await withAna(w);
    const now = Date.now();
    const inDays = (days: number) => {
      w.clock.nowMs = now + days * 86_400_000;
    };
    inDays(100);
    await grantRights(w.admin, name, { rights: ["audit"], ...everywhere });
    const { roster } = await savedHead(w);
    inDays(150);
    await pruneAudit(w.admin, 70 * 86_400_000);
    w.clock.nowMs = undefined;
    const [first] = await w.run("select * from audit_segments where lane = 'commands' order by first_seq limit 1");
    expect(String(first?.["texts"])).toContain(String(roster));
    await unsealHead(w);
    await open();
    expect((await waysIn(w, name).door()).rights).toHaveLength(2);
  });

  test.each<[string, (before: Row) => Promise<unknown>]>([
    ["put back", ({ seq, at, mac }) => w.run("update audit_heads set seq = ?, at = ?, mac = ?", [seq, at, mac])],
    ["left, and deleted the segment of the removal", () => w.run(`delete from audit_segments where ${removal}`)],
    [
      "left, and changed the segment of the removal",
      () => w.run(`update audit_segments set texts = replace(texts, 'people.', 'People.') where ${removal}`),
    ],
  ])("lets nobody in if SQL had %s", async (_, attack) => {
    const { name, where } = await withAna(w);
    const before = await savedHead(w);
    await removePerson(w.admin, name);
    await write(w, where);
    const putBack = await savedTables(w, ["audit_segments", "audit_heads"]);
    await unsealHead(w);
    await attack(before);
    await open();
    await expect(waysIn(w, name).door()).rejects.toMatchObject(distrust);
    expect(await flawsIn(w)).toContain("head");
    await putBack();
    await expect(waysIn(w, name).door()).rejects.toMatchObject({ kind: "forbidden" });
  });

  test("gains nothing by rows of system keys that were put back: the lane is followed once more", async () => {
    const { name, where } = await withAna(w);
    const old = await unsealHead(w);
    await open();
    const before = await savedHead(w);
    await removePerson(w.admin, name);
    await write(w, where);
    for (const { purpose, wrapped } of old) {
      await w.run("update system_keys set wrapped = ? where purpose = ?", [wrapped, purpose]);
    }
    const { door } = waysIn(w, name);
    await w.run("update audit_heads set roster = ?, seal = null", [before["roster"]]);
    await open();
    await expect(door()).rejects.toMatchObject({ kind: "forbidden" });
  });
});

describeOnce("a backup of an installation whose head was never sealed", (w) => {
  test("restores the persons", async () => {
    const { name } = await withAna(w);
    await unsealHead(w);
    const backup = join(w.config.dataFolder, "..", "backup.db");
    writeFileSync(backup, "");
    backUp(w.config, backup);
    const config = { ...w.config, dataFolder: join(w.config.dataFolder, "..", "restored") };
    await restore(config, backup, { actor: "ann@host", say: () => {} });
    const restored = await openInstallation(config, () => {});
    expect((await whoIs(restored, name)).rights).toHaveLength(1);
  });
});
