import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { Installation } from "../../src/installation/installation.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { whoIs } from "../../src/people/desk/roster.ts";
import {
  addPerson,
  listEndingRights,
  ownRights,
  personsWithAccess,
  showPerson,
} from "../../src/people/persons/persons.ts";
import type { Holding } from "../../src/serve/access/rights.ts";
import { decodePersons, encodePersons, type Person } from "../../src/serve/access/roster.ts";
import type { Database } from "../../src/store/database.ts";
import { auditPages } from "../support/audit.ts";
import { personsVisitor, visitorOf } from "../support/pages.ts";
import { personIn } from "../support/persons.ts";
import { grantRights, revokeRights, setVariables } from "../support/plans.ts";
import { describeBoth, type World } from "../support/world.ts";

/* Rights that end. The database's clock judges them, so it is what these tests set. */

const hour = 3_600_000;
const web = { projects: ["web"], environments: ["staging"] };
const all = { projects: null, environments: null };

/** A person with `see` in all projects for ever. */
async function withAna(w: World) {
  const { organization, where } = await w.place({ variables: { staging: { A: "1" } } });
  const name = `ana${organization.slug.replace("org", "")}`;
  await addPerson(w.admin, { name, organization: organization.slug, signIn: null });
  await grantRights(w.admin, name, { rights: ["see"], ...all });
  const until = Date.now() + 4 * hour;
  return { organization, where, name, until, endFrom: () => until };
}

/** A database whose clock says what `now` returns. */
function withClock(database: Database, now: () => number): Database {
  return {
    ...database,
    db: database.db,
    get nowMs() {
      return sql<number>`${sql.raw(String(now()))}`;
    },
  };
}

/** The installation, on a database whose clock says what `now` returns. */
function installationAt({ installation }: World, now: () => number): Installation {
  return { ...installation, open: (use) => withClock(installation.open(use), now) };
}

/** The door over SSH. */
async function comes(w: World, name: string, now: () => number): Promise<AdminContext> {
  const who = await whoIs(installationAt(w, now), name);
  return { ...w.admin, ...who, database: withClock(w.admin.database, now) };
}

const rightsAt = async (w: World, name: string, now: number) =>
  ((await comes(w, name, () => now)).rights as readonly Holding[]).flatMap(({ rights }) => rights);

const endsOf = async (w: World, name: string) =>
  (await showPerson(w.admin, name)).rights.map(({ rights, project, until }) => [rights.join(), project, until]);

describeBoth("rights that end", (w) => {
  test("are there until that millisecond by the database's clock, whatever the process's clock says", async () => {
    const { name, until, endFrom } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["write", "reveal"], ...web, endFrom });
    try {
      for (const processMs of [until - 100 * hour, until + 100 * hour]) {
        w.clock.nowMs = processMs;
        expect(await rightsAt(w, name, until - 1)).toEqual(["reveal", "write", "see"]);
        expect(await rightsAt(w, name, until)).toEqual(["see"]);
      }
    } finally {
      w.clock.nowMs = undefined;
    }
  });

  test("end for a command that began before", async () => {
    const { where, name, until, endFrom } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["write", "reveal"], ...web, endFrom });
    await grantRights(w.admin, name, { rights: ["audit"], ...all, endFrom });
    let now = until - 1;
    const began = await comes(w, name, () => now);
    const write = (value: string) => setVariables(began, where, "staging", [{ name: "B", value }]);
    await write("in time");
    expect(await revealVariable(began, where, "staging", "B")).toBe("in time");
    const pages = auditPages(began, {});
    expect((await pages.next()).done).toBe(false);
    now = until;
    const ended = { kind: "conflict", message: expect.stringContaining("rights have changed") };
    await expect(write("late")).rejects.toMatchObject(ended);
    await expect(revealVariable(began, where, "staging", "B")).rejects.toMatchObject(ended);
    await expect(Array.fromAsync(auditPages(began, {}))).rejects.toMatchObject(ended);
    expect(await revealVariable(w.admin, where, "staging", "B")).toBe("in time");
    const next = await comes(w, name, () => now);
    expect((await listVariables(next, where, "staging")).map((one) => one.name)).toEqual(["A", "B"]);
    const gone = { kind: "not_found" };
    await expect(setVariables(next, where, "staging", [{ name: "B", value: "x" }])).rejects.toMatchObject(gone);
  });

  test("do not come back with a clock that is set back to before the last change, up to an hour", async () => {
    const { where, name, until, endFrom } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["write"], ...web, endFrom });
    try {
      w.clock.nowMs = until + 1000;
      await setVariables(w.admin, where, "staging", [{ name: "C", value: "1" }]);
    } finally {
      w.clock.nowMs = undefined;
    }
    expect(await rightsAt(w, name, until - hour / 2)).toEqual(["see"]);
    // A clock that was further ahead was wrong when it dated the change.
    expect(await rightsAt(w, name, until - 2 * hour)).toEqual(["write", "see"]);
  });

  test("are given again without an end, with another end, and are taken", async () => {
    const { name, until, endFrom } = await withAna(w);
    const grant = (rights: string[], end?: (startMs: number) => number) =>
      grantRights(w.admin, name, { rights, ...web, endFrom: end });
    const seeing = ["see", null, null];
    await grant(["write", "reveal"], endFrom);
    expect(await endsOf(w, name)).toEqual([["reveal,write", "web", until], seeing]);
    await grant(["write"], () => until + 1000);
    expect(await endsOf(w, name)).toEqual([["write", "web", until + 1000], ["reveal", "web", until], seeing]);
    await grant(["write"], () => until - 1000);
    expect(await endsOf(w, name)).toEqual([["reveal", "web", until], ["write", "web", until - 1000], seeing]);
    await grant(["write"]);
    expect(await endsOf(w, name)).toEqual([["write", "web", null], ["reveal", "web", until], seeing]);
    await grant(["write"], endFrom);
    await revokeRights(w.admin, name, { rights: ["reveal"], ...web });
    expect(await endsOf(w, name)).toEqual([["write", "web", until], seeing]);
    const past = { kind: "invalid", message: expect.stringContaining("past") };
    await expect(grant(["write"], (startMs) => startMs)).rejects.toMatchObject(past);
  });

  test("last as long as the database's clock counts, and are shown as ended afterwards", async () => {
    const { where, name } = await withAna(w);
    const then = Date.now() + 1000 * hour;
    const later = (now: number) => ({ ...w.admin, database: withClock(w.admin.database, () => now) });
    await grantRights(later(then), name, { rights: ["write"], ...web, endFrom: (startMs) => startMs + 4 * hour });
    const shown = async (now: number) => (await showPerson(later(now), name)).rights[0];
    expect(await shown(then)).toMatchObject({ rights: ["write"], until: then + 4 * hour, ended: false });
    expect(await shown(then + 4 * hour)).toMatchObject({ rights: ["write"], until: then + 4 * hour, ended: true });
    const access = async (now: number) =>
      (await personsWithAccess(later(now), where, "staging")).filter((one) => one.name === name);
    const [before] = await access(then);
    expect(before).toMatchObject({ rightsIn: { staging: ["see", "write"] } });
    expect(before?.endsIn).toEqual({ staging: { write: then + 4 * hour } });
    expect(await access(then + 4 * hour)).toMatchObject([{ rightsIn: { staging: ["see"] }, endsIn: { staging: {} } }]);
  });

  test("are on record with their end when they are given, changed and taken", async () => {
    const { organization, name, endFrom, until } = await withAna(w);
    const last = async () => {
      const [entry] = await w.run("select * from audit_entries where lane = 'commands' order by seq desc limit 1");
      return [JSON.parse(String(entry?.["added"])), JSON.parse(String(entry?.["deleted"]))];
    };
    const line = `${name} write ${organization.slug}/web staging`;
    const text = `${line} until ${new Date(until).toISOString().slice(0, 19)}Z`;
    await grantRights(w.admin, name, { rights: ["write"], ...web, endFrom });
    expect(await last()).toEqual([[text], []]);
    await grantRights(w.admin, name, { rights: ["write"], ...web });
    expect(await last()).toEqual([[line], [text]]);
    await revokeRights(w.admin, name, { rights: ["write"], ...web });
    expect(await last()).toEqual([[], [line]]);
  });

  test("are listed before they end, to whoever sees something there, and where they see it", async () => {
    const { where, name, until, endFrom } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["write"], projects: ["web"], environments: null, endFrom });
    const ofAna = async (admin: AdminContext, withinMs = 24 * hour) =>
      (await listEndingRights(admin, withinMs)).filter((one) => one.name === name);
    const row = { name, rights: ["write"], projects: ["web"], expiresAt: until };
    expect(await ofAna(w.admin)).toMatchObject([{ ...row, environments: null }]);
    expect(await ofAna(w.admin, hour)).toEqual([]);
    const seeing = await personIn(w.admin, where, ["see"], 2);
    expect(await ofAna(seeing)).toMatchObject([{ ...row, environments: ["staging"] }]);
    expect(await ofAna(await personIn(w.admin, where, ["write", "keys"]))).toEqual([]);
    const other = await withAna(w);
    expect(await ofAna(await personIn(w.admin, other.where, ["see"]))).toEqual([]);
  });

  test("end for a session of the dashboard at its next request", async () => {
    const { organization, where, endFrom, until } = await withAna(w);
    const [subject, issuer] = [`cyd-${organization.slug}`, "https://id.example"];
    await addPerson(w.admin, { name: subject, organization: organization.slug, signIn: { issuer, subject } });
    await grantRights(w.admin, subject, { rights: ["see"], ...web });
    await grantRights(w.admin, subject, { rights: ["reveal"], ...web, endFrom });
    let now = until - 1;
    const cyd = personsVisitor({ ...w, installation: installationAt(w, () => now) }, { issuer, subject });
    const item = `/p/${where}/variables/item?name=A`;
    const fields = { ...(await cyd.hidden(item)), environment: "staging", name: "A" };
    const reveal = () => cyd.send(`/p/${where}/variables/reveal`, fields);
    expect(await reveal()).toMatchObject({ status: 200, secret: "1" });
    expect((await cyd.page("/me")).html).toMatch(/● reads|, reveal|: reveal/);
    now = until;
    expect(await reveal()).toMatchObject({ status: 404 });
    expect((await cyd.page(item)).status).toBe(200);
    expect((await cyd.page("/me")).html).not.toMatch(/● reads|, reveal|: reveal/);
    // A clock that is set back gives them back for no longer than it was set back.
    now = until - 1;
    expect(await reveal()).toMatchObject({ status: 200 });
    now = until;
    expect(await reveal()).toMatchObject({ status: 404 });
  });

  test("are shown with their end on Today, on the page of who can read it, and among one's own", async () => {
    const { where, name, endFrom, until } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["write"], ...web, endFrom });
    const visitor = await visitorOf(w);
    const text = (html: string) => html.replace(/<[^>]*>/g, "").replace(/\s+/g, " ");
    expect(text((await visitor.page("/")).html)).toContain(`${name} write in web of`);
    const access = (await visitor.page(`/p/${where}/access`)).html;
    expect(text(access)).toMatch(/○ names, write until 20\d\d-/);
    expect(await ownRights(await comes(w, name, () => until - 1))).toMatchObject({
      rights: [
        { rights: ["write"], until },
        { rights: ["see"], until: null },
      ],
    });
  });

  test("are sealed: SQL moves no end", async () => {
    const { name, endFrom, until } = await withAna(w);
    await grantRights(w.admin, name, { rights: ["write"], ...web, endFrom });
    const moved = (from: number, to: number) =>
      w.run("update rosters set listing = replace(listing, ?, ?)", [`"until":${from}`, `"until":${to}`]);
    await moved(until, until + hour);
    await expect(whoIs(w.installation, name)).rejects.toMatchObject({ kind: "conflict" });
    await moved(until + hour, until);
    expect((await whoIs(w.installation, name)).rights).toHaveLength(2);
  });
});

const place = { organizationId: "o", projectId: null, environments: 7 };
const personWith = (held: Holding): Person => ({ name: "a", organizationId: "o", signIn: null, holdings: [held] });

test("a list of persons without ends has the text that it always had", () => {
  const persons = [personWith({ rights: ["see"], ...place })];
  const text =
    '[{"name":"a","organizationId":"o","signIn":null,"holdings":[{"rights":["see"],"organizationId":"o","projectId":null,"environments":7}]}]';
  expect(encodePersons(persons)).toBe(text);
  expect(decodePersons(text)).toEqual(persons);
});

test("an end is read back, and one that is no moment is refused", () => {
  const persons = [personWith({ rights: ["see"], ...place, until: 4 })];
  const text = encodePersons(persons);
  expect(decodePersons(text)).toEqual(persons);
  for (const wrong of ['"4"', "null", "4.5", "1e400"]) {
    expect(() => decodePersons(text.replace('"until":4', `"until":${wrong}`))).toThrow(TypeError);
  }
});
