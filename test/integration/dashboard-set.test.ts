/**
 * The pages that write variables and accounts: what they write, what goes on record, and when they refuse. No page and
 * no answer holds a value that is stored or was sent: `visitorOf` looks for all of them.
 */
import { expect, test } from "bun:test";
import { environments } from "../../src/core/names.ts";
import { revealAccount } from "../../src/kinds/accounts/reveal.ts";
import { listAccounts } from "../../src/kinds/accounts/write.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { listAudit } from "../support/audit.ts";
import { type Fields, personsVisitor, type Reply, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights, setAccount, setVariables } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, describeOnce, type World } from "../support/world.ts";

/** A value to look for in what is answered. */
function canary(w: World, text = ""): string {
  const value = `canary-${crypto.randomUUID()}`;
  w.secrets.add(value);
  return `${value}${text}`;
}

/** A project with a variable and an account, and somebody who is signed in. */
async function place(w: World) {
  const { where } = await w.place({
    variables: { development: { OLD: canary(w) }, production: { OLD: canary(w) } },
    accounts: [{ name: "stripe", environments: ["staging", "production"], values: { password: canary(w) } }],
  });
  const visitor = await visitorOf(w);
  const at = (page: string) => `/p/${where}/${page}`;
  /** Sends what a page shows in its hidden fields, with these. */
  const fill = async (page: string, fields: Fields, action = page.split("?")[0] ?? "") =>
    visitor.send(at(action), { ...(await visitor.hidden(at(page), at(action))), ...fields });
  return { where, visitor, at, fill };
}

const nowhere = { "value.development": "", "value.staging": "", "value.production": "" };

/** What a page refuses: the page, what is sent beside its hidden fields, and how it is answered. */
type Refused = readonly (readonly [page: string, fields: Fields, status: number, error: string])[];

const again = (name: string) => `For production, type ${name} again. Nothing was changed.`;

/** A person with these rights in the project, who signs in. */
async function personOf(w: World, where: string, name: string, rights: readonly string[], places = ["staging"]) {
  const [organization = "", issuer, subject] = [where.split("/")[0], "https://id.example", `${name} of ${where}`];
  await addPerson(w.admin, { name: `${name}-${organization}`, organization, signIn: { issuer, subject } });
  await grantRights(w.admin, `${name}-${organization}`, { rights, projects: ["web"], environments: places });
  return personsVisitor(w, { issuer, subject });
}

/** The newest entries of a project, oldest first: who, what, where and which names. */
async function newest(w: World, where: string, limit: number) {
  const entries = await listAudit(w.admin, { project: where, limit });
  return entries.map(({ actor, action, environment, names }) => {
    return [actor.type === "person" && actor.name, action, environment, names.join(" ")];
  });
}

const written = (kind: string, name: string, ...at: readonly string[]) =>
  at.map((environment) => ["ann@host", `${kind}.write`, environment, name]);

describeBoth("the page that sets a variable", (w) => {
  test("writes the fields that were filled in and leaves the others alone", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [before, value] = [await revealVariable(w.admin, where, "production", "OLD"), canary(w)];
    const day = { rotateBy: "2099-01-31" };
    const fields = { ...nowhere, ...day, "value.development": value, empty: "staging" };
    const reply = await fill("variables/set?name=OLD", fields);
    expect(reply).toEqual({ status: 200, to: at("variables/item?name=OLD") });
    expect(await revealVariable(w.admin, where, "development", "OLD")).toBe(value);
    expect(await revealVariable(w.admin, where, "staging", "OLD")).toBe("");
    expect(await revealVariable(w.admin, where, "production", "OLD")).toBe(before);
    expect(await listVariables(w.admin, where, "staging")).toMatchObject([{ name: "OLD", ...day }]);
    expect((await listVariables(w.admin, where, "production"))[0]).not.toHaveProperty("rotateBy");
    const { html } = await visitor.page(at("variables/item?name=OLD"));
    const updated = `Updated OLD in ${where}, development.`;
    expect(html).toContain(`Created OLD in ${where}, staging. ${updated} The value of OLD is empty.`);
    expect(visitor.reported).toEqual([]);
  });

  test("has fields for the environments that somebody may write, takes these, and refuses another", async () => {
    const { where } = await place(w);
    const [ben, path] = [await personOf(w, where, "ben", ["see", "write"]), `/p/${where}/variables/set`];
    const form = (await ben.form(path, path)) ?? {};
    expect(Object.keys(form).filter((name) => name.startsWith("value."))).toEqual(["value.staging"]);
    expect(await ben.send(path, { ...form, name: "NEW", "value.staging": canary(w) })).toMatchObject({ status: 200 });
    const untouched = await stored(w);
    const further = { "value.development": canary(w), "version.development": 2 };
    expect((await ben.send(path, { ...form, ...further, name: "NEWER" })).status).toBe(404);
    expect(await stored(w)).toBe(untouched);
  });

  test("tells somebody who may write and not see nothing of what is there, and keeps its day", async () => {
    const { where } = await place(w);
    const rotateBy = "2099-01-31";
    await setVariables(w.admin, where, "staging", [{ name: "OLD", value: canary(w), rotateBy }]);
    const [bea, path] = [await personOf(w, where, "bea", ["write"]), `/p/${where}/variables/set`];
    const pageOf = async (variable: string) =>
      (await bea.page(`${path}?name=${variable}`)).html.replaceAll(variable, "NAME");
    expect(await pageOf("OLD")).toBe(await pageOf("NEVER"));
    const form = (await bea.form(`${path}?name=OLD`, path)) ?? {};
    expect(await bea.send(path, { ...form, "value.staging": canary(w) })).toMatchObject({ status: 200 });
    expect(await listVariables(w.admin, where, "staging")).toMatchObject([{ name: "OLD", rotateBy }]);
  });

  test("shows whether there is a value and when it changed, and asks in each environment", async () => {
    const { visitor, at } = await place(w);
    const { html } = await visitor.page(at("variables/set?name=OLD"));
    expect(html.match(/An empty field keeps the stored value/g)).toHaveLength(2);
    expect(html.match(/There is none yet/g)).toHaveLength(1);
    const order = ['name="value.production"', 'name="show"', "<summary>More", 'name="empty"'].map((one) =>
      html.indexOf(one),
    );
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    const { html: account } = await visitor.page(at("accounts/set?name=stripe"));
    expect(account).toContain("in all of staging and production, also where they differ");
    for (const environment of environments) expect(html).toContain(`<label for="value-${environment}">`);
    expect(html.match(/<textarea[^>]* name="value[^>]*><\/textarea>/g)).toHaveLength(3);
    const fresh = await visitor.page(at("variables/set?name=NEVER"));
    expect(fresh.html).toContain("<h1>New variable</h1>");
    expect(fresh.html).not.toContain("Delete it");
  });

  test("takes line breaks as they were typed, and values of 64 KiB", async () => {
    const { where, fill } = await place(w);
    const lines = canary(w, "\nsecond\n\nlast");
    await fill("variables/set", { ...nowhere, name: "LINES", "value.staging": lines.replaceAll("\n", "\r\n") });
    expect(await revealVariable(w.admin, where, "staging", "LINES")).toBe(lines);
    const large = "é".repeat(32 * 1024);
    await fill("variables/set", { ...nowhere, name: "LARGE", "value.staging": large });
    expect(await revealVariable(w.admin, where, "staging", "LARGE")).toBe(large);
    const untouched = await stored(w);
    const error = "The value of LARGE2 has 65537 bytes; at most 65536 are allowed.";
    const larger = await fill("variables/set", { ...nowhere, name: "LARGE2", "value.staging": `${large}x` });
    expect(larger).toMatchObject({ status: 422, error });
    expect(await stored(w)).toBe(untouched);
  });

  test("refuses, with a sentence, and changes nothing", async () => {
    const { where, fill } = await place(w);
    const untouched = await stored(w);
    const value = canary(w);
    const staging = { ...nowhere, "value.staging": value };
    const production = { ...nowhere, "value.staging": value, "value.production": value };
    const notAName = "a letter or _ first, then letters, digits and _, at most 255, and neither _ nor __proto__.";
    const empties = 'staging has a value, and "empty value" is checked. Choose one.';
    const nul = "The value of NEW holds a NUL character, which no environment can carry.";
    const odd = "version.staging is not a number: load the page again.";
    const day = "The day to rotate by must be one in UTC that is not past, such as 2030-01-31.";
    const there = '"OLD" is in development already. Nothing was changed: change that one.';
    const [set, old] = ["variables/set", "variables/set?name=OLD"];
    const names = ["two words", "1ST", "A-B", "<b>", "É", "", "__proto__", "A".repeat(256)];
    const isNone = (name: string) => `${JSON.stringify(name)} is not a variable name: ${notAName}`;
    const refused: Refused = [
      ...names.map((name) => [set, { ...production, name }, 400, isNone(name)] as const),
      [set, { ...production, name: "NEW" }, 400, again("NEW")],
      [set, { ...production, name: "NEW", again: "new" }, 400, again("NEW")],
      [old, { ...production, again: "OLDER" }, 400, again("OLD")],
      [old, { ...nowhere, empty: "production" }, 400, again("OLD")],
      [set, { ...nowhere, name: "NEW" }, 400, "No field has a value. Nothing was changed."],
      [set, { ...nowhere, name: "OLD", "value.development": value }, 409, there],
      [set, { ...staging, name: "NEW", empty: "staging" }, 400, empties],
      ...["2020-01-31", "2099-02-30", "31.1.2099", "soon"].map(
        (rotateBy) => [set, { ...staging, name: "NEW", rotateBy }, 400, day] as const,
      ),
      [set, { ...nowhere, name: "NEW", "value.staging": "a\0b" }, 400, nul],
      [set, { name: "NEW" }, 400, "The form has no field value.development: load the page again."],
      [set, { ...staging, name: "NEW", "version.staging": "-1" }, 400, odd],
    ];
    for (const [page, fields, status, error] of refused) {
      expect([fields, await fill(page, fields)]).toMatchObject([fields, { status, error }]);
    }
    expect(await stored(w)).toBe(untouched);
    await fill("variables/set", { ...production, name: "NEW", again: " NEW " });
    expect(await revealVariable(w.admin, where, "production", "NEW")).toBe(value);
  });

  test("names to nobody who may not see it what was written in between", async () => {
    const { where } = await place(w);
    const [bea, path] = [await personOf(w, where, "bea", ["write"]), `/p/${where}/variables/set`];
    const form = (await bea.form(`${path}?name=OLD`, path)) ?? {};
    for (const name of ["OTHER", "OLD"]) {
      await setVariables(w.admin, where, "staging", [{ name, value: "1" }]);
      const { error } = await bea.send(path, { ...form, "value.staging": canary(w) });
      expect(error).toMatch(/^The variables of \S+ in staging are at version \d now, not 1. Nothing was written/);
    }
  });

  test("works without the script", async () => {
    const { where, visitor, at } = await place(w);
    const hidden = await visitor.hidden(at("variables/set"));
    const fields = { ...hidden, ...nowhere, name: "PLAIN", "value.staging": "1" };
    const done = await visitor.submit(at("variables/set"), fields);
    expect([done.status, done.headers.get("location")]).toEqual([303, at("variables/item?name=PLAIN")]);
    const refused = await visitor.submit(at("variables/set"), { ...fields, name: "<b>" });
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain("&quot;&lt;b>&quot; is not a variable name");
    expect(await revealVariable(w.admin, where, "staging", "PLAIN")).toBe("1");
  });
});

describeBoth("what is typed in rows of the grid", (w) => {
  const grid = "variables/edit";
  /** Two variables in two environments, with notes and days. */
  async function rows(w: World) {
    const placed = await place(w);
    const { where, at, visitor } = placed;
    for (const environment of ["staging", "production"]) {
      const more = { note: `of ${environment}`, rotateBy: "2099-01-31" };
      await setVariables(w.admin, where, environment, [
        { name: "A", value: canary(w), ...more },
        { name: "B", value: canary(w) },
      ]);
    }
    const shown = () => visitor.hidden(at("variables"), at(grid));
    const save = async (fields: Fields, seen?: Fields) =>
      visitor.send(at(grid), { ...(seen ?? (await shown())), ...fields });
    const valueIn = (environment: "staging", name: string) => revealVariable(w.admin, where, environment, name);
    return { ...placed, shown, save, valueIn };
  }

  test("is written at once, wherever it is, and leaves notes, days and everything else as they are", async () => {
    const { where, visitor, at, save, valueIn } = await rows(w);
    const [a, b, lines] = [canary(w), canary(w), canary(w, "\nsecond")];
    const b0 = await valueIn("staging", "B");
    const typed = { "value.staging.A": a, "value.production.A": a, "value.production.B": b, "value.staging.B": "" };
    const here = "?filter=a b&only=missing-production&q=lost&folded=A_ B_";
    const fields = { ...typed, "value.staging.OLD": lines.replaceAll("\n", "\r\n"), again: where, here };
    const to = at("variables?only=missing-production&filter=a+b&folded=A_+B_");
    expect(await save(fields)).toEqual({ status: 200, to });
    const stored = [
      ...[await valueIn("staging", "A"), await valueIn("staging", "OLD"), await valueIn("staging", "B")],
      ...[await revealVariable(w.admin, where, "production", "B")],
    ];
    expect(stored).toEqual([a, lines, b0, b]);
    for (const environment of ["staging", "production"] as const) {
      const [first] = await listVariables(w.admin, where, environment);
      expect(first).toMatchObject({ name: "A", note: `of ${environment}`, rotateBy: "2099-01-31" });
    }
    const [production, staging] = (await newest(w, where, 7)).filter(([, action]) => action === "variables.write");
    expect([staging, production]).toEqual(
      [...written("variables", "A OLD", "staging"), ...written("variables", "A B", "production")].toReversed(),
    );
    const created = `Created OLD in ${where}, staging. Updated A in ${where}, staging. Updated A, B in ${where}, production.`;
    const { html } = await visitor.page(to);
    for (const sentence of created.split(/(?<=\.) /)) expect(html).toContain(sentence);
    // No browser could go there.
    const far = await save({ "value.staging.A": a, here: `?filter=${"x".repeat(16 * 1024)}` });
    expect([far.status, far.to?.length]).toEqual([200, at("variables?").length + 12_000 - 1]);
  });

  test("is refused as a whole, with the field that is wrong", async () => {
    const { where, save } = await rows(w);
    const untouched = await stored(w);
    const fine = { "value.staging.A": canary(w) };
    const long = "x".repeat(65 * 1024);
    const refused: readonly (readonly [fields: Fields, status: number, error: string, field?: string])[] = [
      [{ ...fine, "value.production.B": "1" }, 400, again(where), "again"],
      [{ ...fine, "value.production.B": "1", again: "B" }, 400, again(where), "again"],
      [{ "value.staging.A": "" }, 400, "No field has a value. Nothing was changed."],
      [{ ...fine, "value.development.B": long }, 422, "65536 are allowed", "value.development.B"],
      [{ ...fine, "value.staging.two words": "1" }, 400, "is not a variable name", "value.staging.two words"],
      [{ ...fine, "version.staging": "x" }, 400, "version.staging is not a number"],
      [{ ...fine, project: "other" }, 409, "The project has changed"],
      // Before any of them is judged.
      [
        Object.fromEntries(Array.from({ length: 10_001 }, (_, at) => [`value.staging.${at}`, "1"])),
        422,
        "At most 10000",
      ],
    ];
    for (const [fields, status, error, field] of refused) {
      const reply = await save(fields);
      const found = { status, error: expect.stringContaining(error), ...(field && { field }) };
      expect([fields, reply]).toMatchObject([fields, found]);
    }
    expect(await stored(w)).toBe(untouched);
  });

  test("is written beside what somebody else wrote, and over it only if that is said, once for all", async () => {
    const { where, shown, save, valueIn } = await rows(w);
    const [seen, mine, theirs] = [await shown(), canary(w), canary(w)];
    const fields = { "value.staging.A": mine, "value.production.A": mine, again: where };
    for (const one of ["staging", "production"])
      await setVariables(w.admin, where, one, [{ name: "B", value: theirs }]);
    expect(await save(fields, seen)).toMatchObject({ status: 200 });
    const late = { ...fields, "value.staging.B": mine };
    const untouched = await stored(w);
    const { status, error, unlessSeen } = await save(late, seen);
    expect([status, Object.keys(unlessSeen ?? {})]).toEqual([409, ["version.staging", "version.production"]]);
    expect(error).toMatch(/changed B just now, in version \d+ of .* in staging/);
    expect(error?.match(/Nothing was written/g)).toHaveLength(1);
    expect(await stored(w)).toBe(untouched);
    expect((await save(late, { ...seen, ...unlessSeen })).status).toBe(200);
    expect(await valueIn("staging", "B")).toBe(mine);
  });

  test("may be typed where somebody may both see and write, and is taken from nobody else", async () => {
    const { where } = await rows(w);
    const [page, path] = [`/p/${where}/variables`, `/p/${where}/${grid}`];
    const people = [
      ["rob", ["see"], ["staging"], undefined],
      ["sue", ["see", "write"], ["staging"], "staging"],
      ["tom", ["see", "write"], ["development", "staging"], "development staging"],
    ] as const;
    for (const [name, rights, places, fields] of people) {
      const person = await personOf(w, where, name, rights, [...places]);
      expect([name, /data-rows="([^"]*)"/.exec((await person.page(page)).html)?.[1]]).toEqual([name, fields]);
      const untouched = await stored(w);
      const shown = { ...(await person.form(page, path)), again: where };
      for (const where of fields === undefined ? ["staging"] : ["production"]) {
        const further = { [`value.${where}.A`]: canary(w), [`version.${where}`]: 2 };
        expect([name, (await person.send(path, { ...shown, ...further })).status]).toEqual([name, 404]);
      }
      expect(await stored(w)).toBe(untouched);
      if (fields !== undefined)
        expect((await person.send(path, { ...shown, "value.staging.A": canary(w) })).status).toBe(200);
    }
  });
});

describeOnce("the form that deletes a variable", (w) => {
  test("deletes it from the chosen environments", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [page, action] = ["variables/set?name=OLD", "variables/delete"];
    const untouched = await stored(w);
    const all = { from: ["development", "production"], again: "OLD" };
    const none = "No environment is chosen. Nothing was deleted.";
    for (const [fields, error] of [
      [{}, none],
      [{ from: all.from }, again("OLD")],
    ] as const) {
      expect(await fill(page, fields, action)).toMatchObject({ status: 400, error });
    }
    const seen = await visitor.hidden(at(page), at(action));
    expect(await stored(w)).toBe(untouched);
    await setVariables(w.admin, where, "production", [{ name: "OLD", value: canary(w) }]);
    expect((await visitor.send(at(action), { ...seen, ...all })).status).toBe(409);
    expect(await listVariables(w.admin, where, "development")).toHaveLength(1);
    expect(await fill(page, all, action)).toEqual({ status: 200, to: at("variables") });
    for (const environment of environments) expect(await listVariables(w.admin, where, environment)).toEqual([]);
    expect(await newest(w, where, 2)).toEqual(written("variables", "OLD", "development", "production"));
  });
});

describeBoth("the notice of a change", (w) => {
  /** What a page's notice says, and the links in it. Each leads to a page that would undo it. */
  const noticeOn = async (visitor: Visitor, path = "") => {
    const [, notice = ""] = /class="notice">(.*?)<\/p>/s.exec((await visitor.page(path)).html) ?? [];
    const links = [...notice.matchAll(/<a href="([^"]+)">([^<]+)</g)];
    const undos = links.map(([, to = "", words = ""]) => [words, to.replaceAll("&amp;", "&")] as const);
    for (const [, to] of undos) {
      const { status, html } = await visitor.page(to);
      expect([to, status, html.includes("It would undo version")]).toEqual([to, 200, true]);
    }
    return Object.fromEntries(undos);
  };
  const undoOf = (where: string, kind: string, environment: string, version: number) =>
    `/p/${where}/undo?kind=${kind}&environment=${environment}&version=${version}`;

  test("leads to the undo of just that, in each environment that was written", async () => {
    const { where, visitor, at, fill } = await place(w);
    const after = async (reply: Reply) => noticeOn(visitor, reply.to);
    const values = { ...nowhere, "value.development": canary(w), "value.staging": canary(w) };
    expect(await after(await fill("variables/set?name=OLD", values))).toEqual({
      "Undo in development": undoOf(where, "variables", "development", 3),
      "Undo in staging": undoOf(where, "variables", "staging", 2),
    });
    const gone = { from: "production", again: "OLD" };
    const deleted = await after(await fill("variables/set?name=OLD", gone, "variables/delete"));
    expect(deleted).toEqual({ Undo: undoOf(where, "variables", "production", 3) });
    // An undo can be undone, and it was the newest that took it back.
    const [undo, path] = [deleted["Undo"] ?? "", at("undo")];
    const undone = await visitor.send(path, { ...(await visitor.hidden(undo, path)), again: where });
    expect(await after(undone)).toEqual({ Undo: undoOf(where, "variables", "production", 4) });
    const { to: draft = "" } = await visitor.send(at("variables/paste"), { environment: "staging", text: "NEW=1" });
    const pasted = await visitor.send(draft, await visitor.hidden(draft));
    expect(await after(pasted)).toEqual({ Undo: undoOf(where, "variables", "staging", 3) });
    const account = { from: "staging" };
    expect(await after(await fill("accounts/set?name=stripe", account, "accounts/delete"))).toEqual({
      Undo: undoOf(where, "accounts", "staging", 3),
    });
    expect(await noticeOn(visitor, deleted["Undo"])).toEqual({});
    expect(visitor.reported).toEqual([]);
  });

  test("leads nowhere if nothing was written that can be undone, or they may not see what was", async () => {
    const { where, visitor } = await place(w);
    const [slug] = where.split("/");
    const made = await visitor.send("/projects", { org: slug ?? "", slug: "other", name: "" });
    expect(await noticeOn(visitor, made.to)).toEqual({});
    const [bea, path] = [await personOf(w, where, "bea", ["write"]), `/p/${where}/variables/set`];
    const form = (await bea.form(path, path)) ?? {};
    const { to } = await bea.send(path, { ...form, name: "NEW", "value.staging": canary(w) });
    expect(to).toBe("/");
    const { html } = await bea.page("/");
    expect([html.includes(`Created NEW in ${where}, staging.`), html.includes("Undo")]).toEqual([true, false]);
  });

  test("leads to no undo of what was deleted in an environment that is not used any more", async () => {
    const { where, visitor, fill } = await place(w);
    const { id } = await findProject(w.admin, where, "see");
    await w.run("update projects set environments = 3 where id = ?", [id]);
    const gone = { from: "production", again: "OLD" };
    const { to } = await fill("variables/set?name=OLD", gone, "variables/delete");
    expect(await noticeOn(visitor, to)).toEqual({});
    expect(await listVariables(w.admin, where, "production")).toEqual([]);
  });

  test("leads to no undo of what became for machines only, which stays so until it is deleted", async () => {
    const { where, visitor, fill } = await place(w);
    const values = { ...nowhere, "value.development": canary(w), "value.staging": canary(w), machinesOnly: "yes" };
    const { to } = await fill("variables/set?name=OLD", values);
    expect(await noticeOn(visitor, to)).toEqual({ Undo: undoOf(where, "variables", "staging", 2) });
  });
});

describeOnce("the page that takes a pasted text", (w) => {
  /** A project with three variables in staging, and a text that adds one, changes one, keeps one and leaves one out. */
  async function pasting(w: World) {
    const placed = await place(w);
    const { where, at, visitor } = placed;
    const [same, before, after, added] = [canary(w), canary(w), canary(w), canary(w)];
    for (const [name, value] of Object.entries({ SAME: same, CHANGED: before, GONE: canary(w) })) {
      await setVariables(w.admin, where, "staging", [{ name, value }]);
    }
    const text = `SAME=${same}\r\n# a comment\r\nCHANGED=${after}\r\nPATH=${added}\r\n`;
    const paste = (fields: Fields = {}) =>
      visitor.send(at("variables/paste"), { environment: "staging", text, ...fields });
    const apply = async (to = "", typed: Fields = {}) => visitor.send(to, { ...(await visitor.hidden(to)), ...typed });
    const stagingNames = async () => (await listVariables(w.admin, where, "staging")).map(({ name }) => name);
    return { ...placed, text, after, added, paste, apply, stagingNames };
  }

  test("says what would be added, changed and deleted, with warnings, and has written nothing", async () => {
    const { where, visitor, paste, at } = await pasting(w);
    const untouched = await stored(w);
    const kept = await paste();
    expect(kept).toEqual({ status: 200, to: expect.stringMatching(/^\/p\/.*\/variables\/paste\/[0-9a-f-]{36}$/) });
    const { html } = await visitor.page(kept.to as string);
    expect(html).toContain("<li>added: <code><bdi>PATH</bdi></code></li>");
    expect(html).toContain("<li>changed: <code><bdi>CHANGED</bdi></code></li></ul>");
    expect(html).not.toContain("deleted");
    expect(html).toContain("1 variable has the same value already.");
    expect(html).toContain("<li>line 4: PATH steers loaders");
    expect(html).not.toContain('name="again"');
    const pruning = await paste({ prune: "yes" });
    const shown = await visitor.page(pruning.to as string);
    expect(shown.html).toContain("deleted</span>: <code><bdi>GONE</bdi></code></li></ul>");
    // A page that is only looked at writes nothing either.
    const form = await visitor.page(at("variables/paste?environment=staging"));
    expect(form.html).toContain('<button type="submit" name="environment" value="staging" aria-label');
    expect(await stored(w)).toBe(untouched);
    expect(await listVariables(w.admin, where, "staging")).toHaveLength(3);
  });

  test("does not apply a plan that is old, of another project, or not of the newest five", async () => {
    const { where, visitor, paste, stagingNames } = await pasting(w);
    const gone = "What was to be done here is gone: it was done, or is too old. Begin again.";
    const drafts: Reply[] = [];
    for (let count = 0; count < 6; count += 1) drafts.push(await paste({ prune: "yes" }));
    const [first, second] = drafts as [Reply, Reply];
    expect(await visitor.send(first.to as string, {})).toEqual({ status: 404, error: gone });
    expect((await visitor.page(second.to as string)).status).toBe(200);
    const { where: other } = await w.place();
    const elsewhere = (second.to as string).replace(where, other);
    expect(await visitor.send(elsewhere, {})).toMatchObject({ status: 404, error: gone });
    expect((await visitor.page(elsewhere)).status).toBe(404);

    const somebody = await visitorOf(w);
    expect((await somebody.send(second.to as string, {})).status).toBe(404);

    w.clock.nowMs = Date.now() + 5 * 60_000;
    expect(await visitor.send(second.to as string, {})).toMatchObject({ status: 404, error: gone });
    w.clock.nowMs = undefined;

    const { to: third = "" } = await paste();
    const form = await visitor.hidden(third);
    await setVariables(w.admin, where, "staging", [{ name: "SAME", value: "1" }]);
    const untouched = await stored(w);
    const error = "The plan has changed since it was shown. Nothing was done: look at it again.";
    expect(await visitor.send(third, form)).toMatchObject({ status: 409, error });
    expect(await stored(w)).toBe(untouched);
    expect(await stagingNames()).toContain("GONE");
  });

  test("asks for the project's name in production", async () => {
    const { where, visitor, paste, apply, added } = await pasting(w);
    const { to = "" } = await paste({ environment: "production" });
    expect((await visitor.page(to)).html).toContain('name="again"');
    const untouched = await stored(w);
    for (const typed of [{}, { again: "web" }]) {
      expect(await visitor.send(to, typed)).toMatchObject({ status: 400, error: again(where) });
    }
    expect(await stored(w)).toBe(untouched);
    expect((await apply(to, { again: where })).status).toBe(200);
    expect(await revealVariable(w.admin, where, "production", "PATH")).toBe(added);
  });

  test("refuses a text with problems, by line and without a value, and changes nothing", async () => {
    const { paste } = await pasting(w);
    const untouched = await stored(w);
    const value = canary(w);
    const refused: readonly (readonly [text: string, error: string])[] = [
      [
        `A=1\r\n${value}\r\nTWO WORDS=1\r\nA="${value}`,
        "line 2: this is not an assignment of the form NAME=value\n" +
          "line 3: this is not an assignment of the form NAME=value\n" +
          "line 4: A has a quote that is never closed, so nothing after it could be read\n" +
          "line 4: A is already set on line 1\nNothing was imported.",
      ],
      [`1ST=${value}`, "line 1: 1ST is not a valid variable name\nNothing was imported."],
      [`A=${"x".repeat(64 * 1024 + 1)}`, "line 1: A is longer than 65536 bytes\nNothing was imported."],
      ["", "The text holds no variables."],
      ["# only a comment", "The text holds no variables."],
    ];
    for (const [text, error] of refused) expect(await paste({ text })).toMatchObject({ status: 400, error });
    const many = await paste({ text: `${value}\n`.repeat(1000) });
    expect(many.error?.split("\n")).toHaveLength(22);
    expect(many.error).toEndWith("\nline 21 and those after it were not looked at\nNothing was imported.");
    const error = '"nowhere" is not an environment: development, staging, production.';
    expect(await paste({ environment: "nowhere" })).toMatchObject({ status: 400, error });
    expect(await stored(w)).toBe(untouched);
  });

  test("takes 1000 values and one of 64 KiB, and has nothing to apply if all of them are there", async () => {
    const { where, visitor, paste, apply, stagingNames } = await pasting(w);
    const text = [...Array(1000).keys()].map((at) => `N${at}=${at}`).join("\n");
    const large = `${text}\nLARGE="${"x".repeat(64 * 1024)}"`;
    const { to = "" } = await paste({ text: large });
    expect((await apply(to)).status).toBe(200);
    expect(await stagingNames()).toHaveLength(1004);
    expect((await revealVariable(w.admin, where, "staging", "LARGE")).length).toBe(64 * 1024);
    const again = await paste({ text: large });
    const { html } = await visitor.page(again.to as string);
    expect(html).toContain(">There is nothing to apply.");
    expect(html).not.toContain("Apply exactly that");
  });
});

describeBoth("an environment as one text", (w) => {
  /** A project with four variables in staging, one of which is for machines only. */
  async function texted(w: World) {
    const placed = await place(w);
    const { where, at, visitor } = placed;
    const [keep, before, hidden] = [canary(w), canary(w), canary(w)];
    for (const [name, value] of Object.entries({
      KEEP: keep,
      CHANGED: before,
      GONE: canary(w),
      ODD: `a\u2028${keep}'"\``,
    })) {
      await setVariables(w.admin, where, "staging", [{ name, value }]);
    }
    await setVariables(w.admin, where, "staging", [{ name: "MACHINES", value: hidden, machinesOnly: true }]);
    const [page, send] = [at("variables/text?environment=staging"), at("variables/paste")];
    const open = async (who = visitor) => {
      const shown = await who.hidden(page, send);
      const { secret = "", seen = {} } = await who.send(at("variables/text"), shown);
      return { text: secret, form: { ...shown, ...seen } };
    };
    const apply = async (to = "", typed: Fields = {}) => visitor.send(to, { ...(await visitor.hidden(to)), ...typed });
    const names = async () => (await listVariables(w.admin, where, "staging")).map(({ name }) => name);
    return { ...placed, keep, before, hidden, page, send, open, apply, names };
  }

  test("is shown on record, and what was changed in it or removed from it is planned and done, and no more", async () => {
    const { where, visitor, keep, before, hidden, send, open, apply, names } = await texted(w);
    const { text, form } = await open();
    expect(await newest(w, where, 1)).toEqual([["ann@host", "variables.reveal", "staging", "CHANGED GONE KEEP ODD"]]);
    expect(text).toContain(`CHANGED=${before}\n`);
    expect(text).toContain("# MACHINES is for machines only, and stays.");
    expect(text).toContain("# ODD cannot be shown here, and stays.");
    expect(text).not.toContain(hidden);
    const untouched = await stored(w);
    const [after, added] = [canary(w), canary(w)];
    const typed = text.replace(before, after).replace(/^GONE=.*$/m, `ADDED=${added}`);
    const { to = "" } = await visitor.send(send, { ...form, text: typed });
    const { html } = await visitor.page(to);
    expect(html).toContain("<li>added: <code><bdi>ADDED</bdi></code></li>");
    expect(html).toContain("<li>changed: <code><bdi>CHANGED</bdi></code></li>");
    expect(html).toContain("deleted</span>: <code><bdi>GONE</bdi></code></li></ul>");
    expect(html).toContain("Nothing was written. It would add 1, change 1 and delete 1.");
    expect(await stored(w)).toBe(untouched);
    const done = await apply(to);
    expect(done.status).toBe(200);
    expect(await newest(w, where, 1)).toEqual(written("variables", "ADDED CHANGED GONE", "staging"));
    expect((await visitor.page(done.to ?? "")).html).toContain(
      `Wrote ${where}, staging: 1 added, 1 changed, 1 deleted.`,
    );
    expect(await names()).toEqual(["ADDED", "CHANGED", "KEEP", "MACHINES", "ODD"]);
    expect(await revealVariable(w.admin, where, "staging", "CHANGED")).toBe(after);
    expect(await revealVariable(w.admin, where, "staging", "KEEP")).toBe(keep);
    // An unchanged text has nothing to apply, and an empty one deletes nothing.
    const again = await open();
    const same = await visitor.send(send, { ...again.form, text: again.text });
    expect((await visitor.page(same.to ?? "")).html).toContain(">There is nothing to apply.");
    expect(await visitor.send(send, { ...again.form, text: "" })).toMatchObject({ status: 400, field: "text" });
    expect(visitor.reported).toEqual([]);
  });

  test("keeps what somebody else wrote since, and says so of what both did", async () => {
    const { where, visitor, before, send, open, apply, names } = await texted(w);
    const { text, form } = await open();
    const theirs = canary(w);
    await setVariables(w.admin, where, "staging", [
      { name: "THEIRS", value: theirs },
      { name: "KEEP", value: theirs },
    ]);
    const typed = text.replace(before, canary(w));
    const { to = "" } = await visitor.send(send, { ...form, text: typed });
    expect((await visitor.page(to)).html).not.toContain("deleted");
    await setVariables(w.admin, where, "staging", [{ name: "CHANGED", value: theirs }]);
    expect(await apply(to)).toMatchObject({ status: 200 });
    expect(await names()).toContain("THEIRS");
    expect(await revealVariable(w.admin, where, "staging", "KEEP")).toBe(theirs);
    // Both changed one: refused, unless it was seen. Even then, what else they wrote stays.
    const next = await open();
    await setVariables(w.admin, where, "staging", [
      { name: "KEEP", value: canary(w) },
      { name: "ALSO", value: theirs },
    ]);
    const over = next.text.replaceAll(/^(KEEP)=.*$/gm, `$1=${canary(w)}`);
    const refused = await visitor.send(send, { ...next.form, text: over });
    expect(refused).toMatchObject({ status: 409, error: expect.stringContaining("KEEP") });
    const seen = await visitor.send(send, { ...next.form, ...refused.unlessSeen, text: over });
    expect((await apply(seen.to)).status).toBe(200);
    expect(await names()).toContain("ALSO");
  });

  test("leaves out what became for machines only since, changed or not, without a word about its old value", async () => {
    const { where, visitor, before, send, open, apply, names } = await texted(w);
    const { text, form } = await open();
    await setVariables(w.admin, where, "staging", [{ name: "KEEP", value: canary(w), machinesOnly: true }]);
    let plan = "";
    for (const typed of [text, text.replace(/^KEEP=.*$/m, "KEEP=guess"), text.replace(/^KEEP=.*\n/m, "")]) {
      const { to = "" } = await visitor.send(send, { ...form, text: typed.replace(before, canary(w)) });
      const { html } = await visitor.page(to);
      expect(html).toContain("It would add 0, change 1 and delete 0.");
      const words = "KEEP is for machines only since you saw it, and stays: its line is left out.";
      expect(html.includes(words)).toBe(typed.includes("KEEP="));
      plan = to;
    }
    expect((await apply(plan)).status).toBe(200);
    expect(await newest(w, where, 1)).toEqual(written("variables", "CHANGED", "staging"));
    expect(await names()).toContain("KEEP");
  });

  test("is refused without the right to reveal it, without the script, and in another project's form", async () => {
    const { where, visitor, at, page, send, open } = await texted(w);
    const { form } = await open();
    const bea = await personOf(w, where, "bea", ["see", "write"]);
    const cas = await personOf(w, where, "cas", ["see", "write", "reveal"]);
    const dan = await personOf(w, where, "dan", ["see", "reveal"]);
    const untouched = await stored(w);
    expect((await visitor.submit(at("variables/text"), form)).status).toBe(400);
    const unseen = { ...(await visitor.hidden(page, send)), text: "A=1" };
    const first = { status: 400, error: "Show all values first. Nothing was done." };
    expect(await visitor.send(send, unseen)).toMatchObject(first);
    expect(await visitor.send(at("variables/text"), { ...form, project: "another" })).toMatchObject({ status: 409 });
    expect((await bea.page(at("variables"))).html).not.toContain("Edit as text");
    expect((await bea.page(page)).status).toBe(404);
    const elsewhere = { ...form, environment: "production", "version.production": 2 };
    for (const [path, fields] of [
      [at("variables/text"), elsewhere],
      [send, { ...elsewhere, text: "A=1" }],
    ] as const) {
      const { status, error } = await cas.send(path, fields);
      expect([status, error]).toEqual([404, expect.stringContaining("in production")]);
    }
    expect((await cas.page(at("variables/text?environment=production"))).html).toContain("in production");
    expect((await dan.send(at("variables/text"), form)).status).toBe(404);
    expect(await stored(w)).toBe(untouched);
  });

  test("asks for the project's name in production", async () => {
    const { where, visitor, at, send, apply } = await texted(w);
    const form = await visitor.hidden(at("variables/text?environment=production"), send);
    const { secret = "", seen = {} } = await visitor.send(at("variables/text"), form);
    const value = canary(w);
    const { to = "" } = await visitor.send(send, {
      ...form,
      ...seen,
      text: secret.replace(/^OLD=.*$/m, `OLD=${value}`),
    });
    expect(await apply(to)).toMatchObject({ status: 400, error: again(where) });
    expect((await apply(to, { again: where })).status).toBe(200);
    expect(await revealVariable(w.admin, where, "production", "OLD")).toBe(value);
  });
});

describeBoth("the page that promotes variables", (w) => {
  async function promoting(w: World) {
    const [same, secret] = [canary(w), canary(w)];
    const { where } = await w.place({
      variables: {
        staging: { SAME: same, DIFFERS: secret, ONLY: canary(w) },
        production: { SAME: same, DIFFERS: canary(w), EXTRA: canary(w) },
      },
    });
    const visitor = await visitorOf(w);
    const at = (page: string) => `/p/${where}/${page}`;
    const page = "variables/promote?from=staging&to=production";
    const hidden = await visitor.hidden(at(page), at("variables/promote"));
    const choose = (fields: Fields) => visitor.send(at("variables/promote"), { ...hidden, ...fields });
    return { where, visitor, at, page, choose, secret };
  }

  test("lists what is missing, and apart from it what would be overwritten", async () => {
    const { visitor, at, page } = await promoting(w);
    const { html } = await visitor.page(at(page));
    const [, missing = "", different = ""] =
      /<section data-count.*?<h2>(.*?)<\/section><details[^>]*>(.*?)<\/details>/s.exec(html) ?? [];
    const namesIn = (part: string) => [...part.matchAll(/name="names" value="(\w+)"/g)].map(([, name]) => name);
    expect([missing.split("<")[0], namesIn(missing)]).toEqual(["Missing in production (1)", ["ONLY"]]);
    expect(different.replace(/<summary>(.*?)<\/summary>.*/s, "$1")).toBe("Different: would overwrite (1)");
    expect(namesIn(different)).toEqual(["DIFFERS"]);
    // Only what is missing can be chosen at once, and nothing is chosen yet.
    expect([missing, different].map((part) => part.includes("data-all"))).toEqual([true, false]);
    expect(html).not.toContain("checked");
    expect(html).not.toContain("<details open");
    expect(html).toContain("1 variable has the same value in both. 1 is only in production.");
    const done = await visitor.page(at("variables/promote?from=development&to=staging"));
    expect(done.html).toContain("development has no variable.");
    const twice = await visitor.page(at("variables/promote?from=staging&to=staging"));
    expect(twice.html).toContain("Choose two different environments.");
    expect((await visitor.page(at("variables/promote?from=nowhere"))).status).toBe(400);
  });

  test("shows what would be added and overwritten, and writes and records nothing before that is agreed to", async () => {
    const { where, visitor, at, choose } = await promoting(w);
    const untouched = await stored(w);
    const { to = "", ...rest } = await choose({ names: ["DIFFERS", "ONLY"] });
    expect(rest).toEqual({ status: 200 });
    const { html } = await visitor.page(to);
    expect(html).toContain("<li>added: <code><bdi>ONLY</bdi></code></li>");
    expect(html).toContain("<li>changed: <code><bdi>DIFFERS</bdi></code></li>");
    expect(html).toContain(`For production, type the name of the project again: <code><bdi>${where}</bdi></code>`);
    expect(html).toContain(`href="${at("variables/promote?from=staging&amp;to=production")}"`);
    expect(await stored(w)).toBe(untouched);
  });

  test("copies what was chosen, once, and puts on record that the values left and arrived", async () => {
    const { where, visitor, at, choose, secret } = await promoting(w);
    const { to = "" } = await choose({ names: ["DIFFERS", "ONLY"] });
    const form = await visitor.hidden(to);
    expect(await visitor.send(to, { ...form, again: where })).toEqual({ status: 200, to: at("variables") });
    expect(await revealVariable(w.admin, where, "production", "DIFFERS")).toBe(secret);
    const names = (await listVariables(w.admin, where, "production")).map(({ name }) => name);
    expect(names).toEqual(["DIFFERS", "EXTRA", "ONLY", "SAME"]);
    expect((await visitor.page(at("variables"))).html).toContain(`Copied 2 variables to ${where}, production: 1 added`);
    const [wrote, read] = await newest(w, where, 3);
    expect([wrote]).toEqual(written("variables", "DIFFERS ONLY", "production"));
    expect(read).toEqual(["ann@host", "variables.reveal", "staging", "DIFFERS ONLY"]);
    expect((await visitor.send(to, { again: where })).status).toBe(404);
  });

  test("refuses, with a sentence, and changes nothing", async () => {
    const { where, visitor, choose } = await promoting(w);
    const untouched = await stored(w);
    const names = ["DIFFERS"];
    const { to = "" } = await choose({ names });
    for (const typed of [{}, { again: "web" }]) {
      expect(await visitor.send(to, typed)).toMatchObject({ status: 400, error: again(where) });
    }
    const refused: readonly (readonly [fields: Fields, status: number, error: string])[] = [
      [{}, 400, "No variable is chosen. Nothing was copied."],
      [{ names, from: "production" }, 400, "Choose two different environments. Nothing was copied."],
      [{ names: ["DIFFERS", "NEVER"] }, 404, `These are not in ${where}, staging: NEVER.`],
    ];
    for (const [fields, status, error] of refused) expect(await choose(fields)).toMatchObject({ status, error });
    expect(await stored(w)).toBe(untouched);
  });
});

describeOnce("a form that is too long", (w) => {
  test("is refused by its length, before it is parsed", async () => {
    const { visitor, at } = await place(w);
    const untouched = await stored(w);
    const paste = (text: string) => visitor.send(at("variables/paste"), { environment: "staging", text });
    const lines = { status: 422, error: expect.stringContaining("The text has more than 1 MiB or 30000 lines.") };
    expect(await paste(`A="${"a".repeat(1024 * 1024)}"`)).toMatchObject(lines);
    expect(await paste("#\n".repeat(30_000))).toMatchObject(lines);
    const form = { status: 422, error: "This form takes at most 4096 KiB. Nothing was done: use a command." };
    expect(await paste("a".repeat(4 * 1024 * 1024))).toMatchObject(form);
    expect((await visitor.submit("/unlock", { code: "a".repeat(4096) })).status).toBe(422);
    expect(await stored(w)).toBe(untouched);
    expect(visitor.reported).toEqual([]);
    expect((await paste(`${"#\n".repeat(29_000)}NEW=1`)).status).toBe(200);
  });
});

describeBoth("the grid, if somebody chooses several variables", (w) => {
  const chosen = async () => {
    const [one, two] = [{ A: canary(w), B: canary(w), C: canary(w) }, { B: canary(w) }];
    const { where } = await w.place({ variables: { staging: one, production: two } });
    const visitor = await visitorOf(w);
    const [grid, action] = [`/p/${where}/variables`, `/p/${where}/variables/several`];
    const { html } = await visitor.page(`${grid}?choose=yes`);
    const choose = (fields: Fields) => visitor.send(action, { names: ["A", "B"], environment: "staging", ...fields });
    const namesIn = async (environment: string) =>
      (await listVariables(w.admin, where, environment)).map(({ name, rotateBy }) => [name, rotateBy].join(" ").trim());
    return { where, visitor, grid, html, choose, namesIn };
  };

  test("has a box for each, and leads to what would be done", async () => {
    const { visitor, html, grid, choose, where } = await chosen();
    expect((await visitor.page(grid)).html).toContain(`href="${grid}?choose=yes"`);
    expect([...html.matchAll(/name="names" value="(\w+)"/g)].map(([, name]) => name)).toEqual(["A", "B", "C"]);
    expect(html).toContain("data-all");
    const untouched = await stored(w);
    // What is not there is left out.
    expect((await choose({ deed: "rotate by", rotateBy: "2099-01-31" })).status).toBe(200);
    const { to = "" } = await choose({ deed: "delete", environment: "production" });
    const plan = (await visitor.page(to)).html;
    expect(plan).toContain(`It would delete B from ${where}, production.`);
    expect(plan).toContain(`href="${grid}?choose=yes"`);
    expect(await stored(w)).toBe(untouched);
    expect(await visitor.send(to, await visitor.hidden(to))).toMatchObject({ status: 400, error: again(where) });
    expect(await visitor.send(to, { ...(await visitor.hidden(to)), again: where })).toMatchObject({ status: 200 });
    expect(await newest(w, where, 1)).toEqual(written("variables", "B", "production"));
  });

  test("deletes them, gives them a day, or copies them, each in one change", async () => {
    const { where, visitor, choose, namesIn } = await chosen();
    const apply = async (fields: Fields) => {
      const { to = "" } = await choose(fields);
      return (await visitor.send(to, { ...(await visitor.hidden(to)), again: where })).status;
    };
    expect(await apply({ deed: "rotate by", rotateBy: "2099-01-31" })).toBe(200);
    expect(await namesIn("staging")).toEqual(["A 2099-01-31", "B 2099-01-31", "C"]);
    expect(await apply({ deed: "copy from", from: "staging", environment: "production" })).toBe(200);
    expect(await namesIn("production")).toEqual(["A 2099-01-31", "B 2099-01-31"]);
    expect(await apply({ deed: "delete" })).toBe(200);
    expect(await namesIn("staging")).toEqual(["C"]);
    expect(await newest(w, where, 1)).toEqual(written("variables", "A B", "staging"));
  });

  test("deletes accounts and files, too, and copies variables to another project", async () => {
    const [text, values] = [canary(w), { user: canary(w) }];
    const { where, organization } = await w.place({
      variables: { staging: { A: text, B: canary(w) } },
      accounts: ["one, two", "three"].map((name) => ({ name, environments: ["staging", "production"], values })),
      files: [{ path: "a/b.pem", environments: ["staging"], content: canary(w) }],
    });
    const other = await w.project(organization, "api", { variables: { production: { B: canary(w) } } });
    const visitor = await visitorOf(w);
    const apply = async (kind: string, names: readonly string[], fields: Fields) => {
      const page = `/p/${where}/${kind}`;
      expect([kind, (await visitor.page(`${page}?choose=yes`)).html]).toEqual([kind, expect.stringContaining("names")]);
      const { to = "" } = await visitor.send(`${page}/several`, { names, environment: "staging", ...fields });
      return visitor.send(to, { ...(await visitor.hidden(to)), ...fields });
    };
    const gone = await apply("accounts", ["one, two"], { deed: "delete" });
    expect(gone).toMatchObject({ status: 200, to: `/p/${where}/accounts` });
    expect(await newest(w, where, 1)).toEqual(written("accounts", "one, two", "staging"));
    expect(await apply("files", ["a/b.pem"], { deed: "delete" })).toMatchObject({ status: 200 });
    expect(await newest(w, where, 1)).toEqual(written("files", "a/b.pem", "staging"));
    const copy = { deed: "copy from", from: "staging", to: other.where, environment: "production" };
    expect(await apply("variables", ["A"], { ...copy, again: where })).toMatchObject({
      status: 400,
      error: again(other.where),
    });
    const copied = await apply("variables", ["A"], { ...copy, again: other.where });
    expect(copied).toMatchObject({ status: 200, to: `/p/${other.where}/variables` });
    expect(await revealVariable(w.admin, other.where, "production", "A")).toBe(text);
    expect(await newest(w, where, 1)).toEqual([["ann@host", "variables.reveal", "staging", "A"]]);
  });

  test.each(["staging", "production"])(
    "copies to another project nothing that was written since in %s",
    async (from) => {
      const { where, organization } = await w.place({ variables: { [from]: { A: canary(w), B: canary(w) } } });
      const other = await w.project(organization, "api", {});
      const visitor = await visitorOf(w);
      const copy = { deed: "copy from", from, to: other.where, environment: "production", names: ["A"] };
      const { to = "" } = await visitor.send(`/p/${where}/variables/several`, copy);
      const shown = { ...(await visitor.hidden(to)), again: other.where };
      const write = (name: string) => setVariables(w.admin, where, from, [{ name, value: canary(w) }]);
      await write("A");
      const untouched = await stored(w);
      const refused = await visitor.send(to, shown);
      expect(refused).toMatchObject({
        status: 409,
        error: expect.stringContaining(`changed A just now, in version 3`),
      });
      expect(await stored(w)).toBe(untouched);
      // What is not copied may change.
      const again = { ...(await visitor.hidden(to)), again: other.where };
      await write("B");
      expect(await visitor.send(to, again)).toMatchObject({ status: 200 });
    },
  );

  test("refuses, with a sentence, and changes nothing", async () => {
    const { where, visitor, choose } = await chosen();
    const { to = "" } = await choose({ deed: "delete" });
    const form = await visitor.hidden(to);
    await setVariables(w.admin, where, "staging", [{ name: "B", value: "1" }]);
    const untouched = await stored(w);
    expect((await visitor.send(to, form)).status).toBe(409);
    const day = "The day to rotate by must be one in UTC that is not past, such as 2030-01-31.";
    const refused: readonly (readonly [fields: Fields, status: number, error: string])[] = [
      [{ deed: "delete", names: [] }, 400, "No variable of staging is chosen. Nothing was changed."],
      [{ deed: "delete", environment: "production", names: "A" }, 400, "No variable of production is chosen."],
      [{ deed: "rotate by", rotateBy: "" }, 400, day],
      [{ deed: "rotate by", rotateBy: "2020-01-31" }, 400, day],
      [{ deed: "copy from", from: "staging" }, 400, "Choose two different environments. Nothing was copied."],
    ];
    for (const [fields, status, error] of refused) {
      expect(await choose(fields)).toMatchObject({ status, error: expect.stringContaining(error) });
    }
    expect(await stored(w)).toBe(untouched);
  });
});

describeOnce("the page that sets a variable with a day of rotation", (w) => {
  const marked = async (days: Readonly<Record<string, string | null>>) => {
    const { where } = await w.place();
    for (const [environment, rotateBy] of Object.entries(days)) {
      await setVariables(w.admin, where, environment, [{ name: "KEY", value: "old", rotateBy }]);
    }
    const visitor = await visitorOf(w);
    const [page, action] = [`/p/${where}/variables/set?name=KEY`, `/p/${where}/variables/set`];
    const form = (await visitor.form(page, action)) ?? {};
    const save = (fields: Fields) => visitor.send(action, { ...form, "value.staging": "new", ...fields });
    const days_ = async () => {
      const all = await Promise.all(Object.keys(days).map((one) => listVariables(w.admin, where, one)));
      return all.map(([entry]) => entry?.rotateBy ?? null);
    };
    return { visitor, page, where, form, save, days: days_ };
  };

  test("shows the day if the environments agree, and so keeps it", async () => {
    const { form, save, days, visitor, where } = await marked({ staging: "2099-01-31", production: "2099-01-31" });
    expect(form["rotateBy"]).toBe("2099-01-31");
    expect((await save({ "value.production": "new", again: "KEY" })).status).toBe(200);
    expect(await days()).toEqual(["2099-01-31", "2099-01-31"]);
    const cleared = { "version.staging": 3, "version.production": 3, rotateBy: "" };
    expect((await save(cleared)).status).toBe(200);
    expect(await days()).toEqual([null, "2099-01-31"]);
    const { html } = await visitor.page(`/p/${where}/variables/item?name=KEY`);
    expect(html).toContain("In staging, this day to rotate by is gone: KEY (2099-01-31).");
  });

  test("asks whether to keep them if they differ", async () => {
    const { form, save, days, visitor, page, where } = await marked({ staging: "2099-01-31", production: null });
    expect((await visitor.page(page)).html).toContain('<select id="days" name="days"');
    expect(form["rotateBy"]).toBe("");
    const untouched = await stored(w);
    const rotateBy = "2099-02-28";
    for (const fields of [{ days: "set" }, { days: "keep", rotateBy }, { days: "none", rotateBy }]) {
      expect(await save(fields)).toMatchObject({
        status: 400,
        error: expect.stringContaining("or keep the stored days."),
      });
    }
    expect(await stored(w)).toBe(untouched);
    expect((await save({ days: "keep", "value.production": "new", again: "KEY" })).status).toBe(200);
    expect(await days()).toEqual(["2099-01-31", null]);
    const next = await visitor.hidden(page, `/p/${where}/variables/set`);
    expect((await save({ ...next, days: "none" })).status).toBe(200);
    expect(await days()).toEqual([null, null]);
  });

  const [shown, later] = ["2099-01-31", "2099-02-28"];
  test.each([
    ["another one", shown, later, {}, later],
    ["none", shown, null, {}, null],
    ["the first one", null, later, {}, later],
    ["another one, and this form a third", shown, later, { rotateBy: "2099-03-31" }, "2099-03-31"],
  ] as const)("puts back no day of which somebody has made %s since", async (_, day, since, typed, then) => {
    const { save, days, where } = await marked({ staging: day });
    await setVariables(w.admin, where, "staging", [{ name: "KEY", rotateBy: since }]);
    const { status, unlessSeen } = await save(typed);
    expect(status).toBe(409);
    expect((await save({ ...typed, ...unlessSeen })).status).toBe(200);
    expect(await days()).toEqual([then]);
  });

  test("does not offer a day that is past for a new value", async () => {
    const { form, save, days } = await marked({ staging: "2020-01-31" });
    expect(form["rotateBy"]).toBe("");
    expect((await save({})).status).toBe(200);
    expect(await days()).toEqual([null]);
  });
});

describeOnce("the page that sets an account", (w) => {
  test("creates one with the fields that were filled in", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [user, key] = [canary(w), canary(w, "\nsecond line")];
    const fields = {
      name: "mail/é",
      field: ["user", "", "private key", ""],
      "value.development": [user, "", key.replaceAll("\n", "\r\n"), ""],
      "value.staging": [user.toUpperCase(), "", key, ""],
      "value.production": ["", "", "", ""],
    };
    w.secrets.add(user.toUpperCase());
    expect(await fill("accounts/set", fields)).toEqual({ status: 200, to: at("accounts/item?name=mail%2F%C3%A9") });
    const { values } = await revealAccount(w.admin, where, "mail/é", "staging");
    expect(values).toEqual({ user: user.toUpperCase(), "private key": key });
    const [added, other] = await listAccounts(w.admin, where);
    const mail = { name: "mail/é", environments: ["development", "staging"] };
    expect([added, other?.name]).toMatchObject([mail, "stripe"]);
    const entries = await newest(w, where, 3);
    expect(entries.slice(0, 2)).toEqual(written("accounts", "mail/é", "development", "staging"));
    const { html } = await visitor.page(at("accounts/item?name=mail%2F%C3%A9"));
    expect(html).toContain(`Account mail/é created in ${where} for development, staging.`);
    expect(visitor.reported).toEqual([]);
  });

  test("keeps what nobody typed, and loses a field or an environment only if that is said", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [user, password, token] = [canary(w), canary(w), canary(w)];
    await setAccount(w.admin, where, "stripe", ["staging", "production"], { user, password });
    const valuesIn = async (environment: string) =>
      (await revealAccount(w.admin, where, "stripe", environment as "staging")).values;
    const page = "accounts/set?name=stripe";
    const { html } = await visitor.page(at(page));
    expect(html.match(/(?<=name="stored" value=")\w+/g)).toEqual(["user", "password"]);
    expect(html.match(/(?<=id="value-1-)\w+/g)?.slice(0, 3)).toEqual(["development", "staging", "production"]);
    const empty = { development: ["", "", ""], staging: ["", "", ""], production: ["", "", ""] };
    const rows = { stored: ["user", "password"], again: "stripe", field: ["user", "password", ""] };
    const typed = (values: Partial<typeof empty>) =>
      Object.fromEntries(Object.entries({ ...empty, ...values }).map(([one, texts]) => [`value.${one}`, texts]));
    // One value, in one environment.
    const one = { ...rows, ...typed({ staging: ["", password.toUpperCase(), ""] }) };
    w.secrets.add(password.toUpperCase());
    expect((await fill(page, one)).status).toBe(200);
    expect(await valuesIn("staging")).toEqual({ user, password: password.toUpperCase() });
    expect(await valuesIn("production")).toEqual({ user, password });
    const untouched = await stored(w);
    const refused: Refused = [
      [page, { ...rows, ...typed({}) }, 400, "No field has a value, and none is removed. Nothing was changed."],
      [
        page,
        { ...rows, ...typed({ development: ["", "x", ""] }) },
        400,
        'development has no stripe yet: give "user" a',
      ],
      [page, { ...rows, ...typed({}), "remove.staging": ["user", "password"] }, 400, "An account needs at least one"],
      [page, { ...one, "remove.staging": ["password"] }, 400, "has a value, and is to be removed."],
      [page, { ...rows, ...typed({ ...empty, production: ["x", "", ""] }), again: "" }, 400, again("stripe")],
      [page, { ...rows, ...typed({ staging: ["x", "", ""] }), same: "yes", again: "" }, 400, again("stripe")],
      [
        page,
        { ...one, ...typed({ staging: ["x", "", ""], production: ["y", "", ""] }), same: "yes" },
        400,
        "Choose one.",
      ],
    ];
    for (const [path, fields, status, error] of refused) {
      const reply = await fill(path, fields);
      expect([fields, reply]).toMatchObject([fields, { status, error: expect.stringContaining(error) }]);
    }
    expect(await stored(w)).toBe(untouched);
    const both = { ...rows, field: ["user", "password", "token"], same: "yes" };
    expect((await fill(page, { ...both, ...typed({ production: ["", "", token] }) })).status).toBe(200);
    expect(await valuesIn("staging")).toEqual({ user, password: password.toUpperCase(), token });
    expect(await valuesIn("production")).toEqual({ user, password, token });
    expect((await fill(page, { ...rows, ...typed({}), "remove.production": ["user"] })).status).toBe(200);
    expect(await valuesIn("production")).toEqual({ password, token });
    expect((await visitor.page(at(page))).html).toContain("There is none yet.");
    expect((await fill(page, { from: ["staging"] }, "accounts/delete")).status).toBe(200);
    expect(await listAccounts(w.admin, where)).toMatchObject([{ name: "stripe", environments: ["production"] }]);
  });

  test("keeps what another person wrote into other fields, and names all that it would write over at once", async () => {
    const { where, visitor, at } = await place(w);
    const value = () => canary(w);
    const both = ["staging", "production"];
    await setAccount(w.admin, where, "stripe", both, { user: value(), password: value() });
    const valuesIn = async (environment: "staging" | "production") =>
      (await revealAccount(w.admin, where, "stripe", environment)).values;
    const shown = await visitor.hidden(at("accounts/set?name=stripe"), at("accounts/set"));
    const stale = await visitor.form(at("accounts/set?name=stripe"), at("accounts/set"));
    const [user, password, mine] = [value(), value(), value()];
    const fields = {
      ...shown,
      ...{ stored: ["user", "password"], field: ["user", "password"], again: "stripe", note: stale?.["note"] ?? "" },
      ...{ "value.development": ["", ""], "value.staging": [mine, ""], "value.production": [mine, ""] },
    };
    await setAccount(w.admin, where, "stripe", both, { password }, { merge: true });
    expect((await visitor.send(at("accounts/set"), fields)).status).toBe(200);
    for (const one of ["staging", "production"] as const) expect(await valuesIn(one)).toEqual({ user: mine, password });
    // The same field, in both.
    await setAccount(w.admin, where, "stripe", both, { user }, { merge: true });
    const again = { ...fields, ...(await visitor.hidden(at("accounts/set?name=stripe"), at("accounts/set"))) };
    const late = { ...again, ...{ stored: ["user", "password"], field: ["user", "password"] } };
    await setAccount(w.admin, where, "stripe", both, { user: value() }, { merge: true });
    const { status, error, unlessSeen } = await visitor.send(at("accounts/set"), late);
    expect(status).toBe(409);
    expect(error?.match(/changed stripe just now, in version \d+ of the accounts of \S+ in \w+/g)).toHaveLength(2);
    expect(error?.match(/Nothing was written/g)).toHaveLength(1);
    expect(Object.keys(unlessSeen ?? {})).toEqual(["version.staging", "version.production"]);
    expect((await visitor.send(at("accounts/set"), { ...late, ...unlessSeen })).status).toBe(200);
    for (const one of ["staging", "production"] as const) expect(await valuesIn(one)).toEqual({ user: mine, password });
  });

  test("tells nobody who may not read the fields which of them somebody else changed", async () => {
    const { where } = await place(w);
    const [dan, path] = [await personOf(w, where, "dan", ["see", "write"], ["staging"]), `/p/${where}/accounts/set`];
    const fields = { ...(await dan.form(`${path}?name=stripe`, path)), field: ["token"], "value.staging": [canary(w)] };
    await setAccount(w.admin, where, "stripe", ["staging"], { other: canary(w) }, { merge: true });
    expect(await dan.send(path, { ...fields, stored: [] })).toMatchObject({ status: 409, unlessSeen: {} });
  });

  test("shows no name of a field where somebody may not see, and keeps the field", async () => {
    const { where } = await place(w);
    const [dan, path] = [await personOf(w, where, "dan", ["write"], ["staging"]), `/p/${where}/accounts/set`];
    expect((await dan.page(`${path}?name=stripe`)).html).not.toContain('name="stored"');
    const token = canary(w);
    const fields = { field: ["token"], "value.staging": [token] };
    const { status } = await dan.send(path, { ...(await dan.form(`${path}?name=stripe`, path)), ...fields });
    const { values } = await revealAccount(w.admin, where, "stripe", "staging");
    expect([status, Object.keys(values)]).toEqual([200, ["password", "token"]]);
  });

  test("refuses, with a sentence, and changes nothing", async () => {
    const { where, visitor, at, fill } = await place(w);
    const stale = await visitor.hidden(at("accounts/set?name=stripe"), at("accounts/set"));
    const staleDelete = await visitor.hidden(at("accounts/set?name=stripe"), at("accounts/delete"));
    await setAccount(w.admin, where, "other", ["production"], { a: "1" });
    await setAccount(w.admin, where, "stripe", ["staging", "production"], { a: canary(w) });
    const untouched = await stored(w);
    const value = canary(w);
    const none = { "value.development": [""], "value.staging": [""], "value.production": [""] };
    const one = { ...none, field: ["user"], "value.staging": [value] };
    const a = { ...one, name: "a" };
    const production = { ...none, "value.production": [value] };
    const changed = `changed stripe just now, in version 3 of the accounts of ${where} in staging.`;
    const [set, stripe] = ["accounts/set", "accounts/set?name=stripe"];
    const refused: Refused = [
      [set, { ...one, name: "stripe" }, 409, '"stripe" is in staging already.'],
      [set, { ...a, ...production }, 400, again("a")],
      [stripe, { ...one, field: ["a"], same: "yes" }, 400, again("stripe")],
      [set, { ...one, name: "" }, 400, "The account name must have 1 to 255 characters"],
      [set, { ...one, name: "a\u0007b" }, 400, "The account name must have 1 to 255 characters"],
      // Nobody would have to type it again.
      [set, { ...one, name: "\u2800", ...production }, 400, "not blanks alone"],
      [set, { ...a, ...none }, 400, 'The field "user" has no value. Nothing was changed.'],
      [set, { ...a, field: [""] }, 400, "Field 1 has a value and no name."],
      [set, { ...a, ...none, field: [""] }, 400, "No field has a value, and none is removed."],
      [set, { ...a, field: ["u", "v"] }, 400, "Part of the form is missing: load the page again."],
      [
        set,
        {
          ...a,
          field: ["u", "u"],
          "value.development": ["", ""],
          "value.staging": [value, "2"],
          "value.production": ["", ""],
        },
        400,
        'The field "u" is there twice.',
      ],
      [set, { ...a, "value.staging": [`${value}\0`] }, 400, 'The field "user" holds a NUL character'],
      [set, { ...a, "value.staging": ["x".repeat(64 * 1024)] }, 422, "The account's fields take 65547 bytes"],
      [stripe, { ...one, ...stale, field: ["a"], stored: ["a"] }, 409, changed],
    ];
    for (const [page, fields, status, error] of refused) {
      const reply = await fill(page, fields);
      expect([page, fields, reply]).toMatchObject([page, fields, { status, error: expect.stringContaining(error) }]);
    }
    const deletions = [
      [{ ...staleDelete, from: ["staging", "production"], again: "stripe" }, 409, changed],
      [{ ...staleDelete, from: ["production"], again: "" }, 400, again("stripe")],
      [{ ...staleDelete, again: "stripe" }, 400, "No environment is chosen."],
      [{ ...staleDelete, from: ["staging"], name: "never" }, 404, "There is no account"],
    ] as const;
    for (const [fields, status, error] of deletions) {
      const reply = await visitor.send(at("accounts/delete"), fields);
      expect([fields, reply]).toMatchObject([fields, { status, error: expect.stringContaining(error) }]);
    }
    expect(await stored(w)).toBe(untouched);
  });

  test("shows a name that looks like HTML, or hides its order, as text", async () => {
    const { where, visitor, at } = await place(w);
    const name = `"><b onclick='x'>&\u202e`;
    const hidden = await visitor.hidden(at("accounts/set"));
    const none = { "value.development": [""], "value.production": [""] };
    const fields = { ...hidden, ...none, name, field: ["user"], "value.staging": [canary(w)] };
    const { to = "" } = await visitor.send(at("accounts/set"), fields);
    for (const page of [to, to.replace("/item?", "/set?"), at("accounts")]) {
      const { status, html } = await visitor.page(page);
      expect([page, status]).toEqual([page, 200]);
      expect(html).toContain("&quot;>&lt;b onclick='x'>&amp;");
      expect(html).not.toContain("<b onclick");
      expect(html.replaceAll(/ value="[^"]*"/g, "")).not.toContain("\u202e");
    }
    const twice = { ...fields, ...(await visitor.hidden(at("accounts/set"))) };
    const { error } = await visitor.send(at("accounts/set"), twice);
    expect(error).toContain(`onclick='x'>&\\u202e" is in staging already.`);
    expect(await listAccounts(w.admin, where)).toHaveLength(2);
    const asked = await visitor.page(at(`variables/set?${new URLSearchParams({ name })}`));
    expect(asked.html).toContain("<h1>New variable</h1>");
    expect(asked.html).not.toContain("<b onclick");
  });

  test("deletes one from every environment", async () => {
    const { where, at, fill } = await place(w);
    const fields = { again: "stripe", from: ["staging", "production"] };
    const page = "accounts/set?name=stripe";
    expect(await fill(page, fields, "accounts/delete")).toEqual({ status: 200, to: at("accounts") });
    expect(await listAccounts(w.admin, where)).toEqual([]);
    expect(await newest(w, where, 2)).toEqual(written("accounts", "stripe", "staging", "production"));
  });
});
