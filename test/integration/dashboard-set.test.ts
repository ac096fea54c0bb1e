/**
 * The pages that write variables and accounts: what they write, what goes on record, and when they refuse. No page and
 * no answer holds a value that is stored or was sent: `visitorOf` looks for all of them.
 */
import { expect, test } from "bun:test";
import { environments } from "../../src/core/names.ts";
import { revealAccount } from "../../src/kinds/accounts/reveal.ts";
import { listAccounts, setAccount } from "../../src/kinds/accounts/write.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables, setVariables } from "../../src/kinds/variables/write.ts";
import { listAudit } from "../../src/people/audit.ts";
import { type Fields, visitorOf } from "../support/dashboard.ts";
import { describeBoth, stored, type World } from "../support/world.ts";

/** A value to look for in what is answered. */
function canary(w: World, text = ""): string {
  const value = `canary-${crypto.randomUUID()}`;
  w.secrets.add(value);
  return `${value}${text}`;
}

/** A project with a variable and an account, and somebody who is signed in. */
async function place(w: World) {
  const { where } = await w.project(await w.organization(), "web", {
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

/** The newest entries of a project, oldest first: who, what, where and which names. */
async function newest(w: World, where: string, limit: number) {
  const entries = await listAudit(w.admin, { project: where, limit });
  return entries.map(({ actor, action, environment, names }) => {
    return [actor.type === "person" && actor.name, action, environment, names.join(" ")];
  });
}

describeBoth("the page that sets a variable", (w) => {
  test("writes the fields that were filled in and leaves the others alone", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [before, value] = [await revealVariable(w.admin, where, "production", "OLD"), canary(w)];
    const day = { rotateBy: "2099-01-31" };
    const reply = await fill("variables/set?name=OLD", {
      ...nowhere,
      ...day,
      "value.development": value,
      empty: "staging",
    });
    expect(reply).toEqual({ status: 200, to: at("variables/item?name=OLD") });
    expect(await revealVariable(w.admin, where, "development", "OLD")).toBe(value);
    expect(await revealVariable(w.admin, where, "staging", "OLD")).toBe("");
    expect(await revealVariable(w.admin, where, "production", "OLD")).toBe(before);
    expect(await listVariables(w.admin, where, "staging")).toMatchObject([{ name: "OLD", ...day }]);
    expect((await listVariables(w.admin, where, "production"))[0]).not.toHaveProperty("rotateBy");
    const { html } = await visitor.page(at("variables/item?name=OLD"));
    expect(html).toContain("Saved OLD in development and staging. The value of OLD is empty.");
    expect(visitor.reported).toEqual([]);
  });

  test("puts on record who wrote which name where", async () => {
    const { where, fill } = await place(w);
    await fill("variables/set", { ...nowhere, name: " NEW ", "value.development": "1", "value.staging": "2" });
    expect(await newest(w, where, 2)).toEqual([
      ["ann@host", "variables.write", "development", "NEW"],
      ["ann@host", "variables.write", "staging", "NEW"],
    ]);
  });

  test("shows whether there is a value and when it changed, and asks in each environment", async () => {
    const { visitor, at } = await place(w);
    const { html } = await visitor.page(at("variables/set?name=OLD"));
    expect(html.match(/An empty field keeps the stored value/g)).toHaveLength(2);
    expect(html.match(/There is none yet/g)).toHaveLength(1);
    for (const environment of environments) expect(html).toContain(`<label for="value-${environment}">`);
    expect(html.match(/<textarea[^>]*><\/textarea>/g)).toHaveLength(3);
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
    expect(await fill("variables/set", { ...nowhere, name: "LARGE2", "value.staging": `${large}x` })).toEqual({
      status: 422,
      error: "The value of LARGE2 has 65537 bytes; at most 65536 are allowed.",
    });
    expect(await stored(w)).toBe(untouched);
  });

  test("refuses, with a sentence, and changes nothing", async () => {
    const { where, fill } = await place(w);
    const untouched = await stored(w);
    const value = canary(w);
    const staging = { ...nowhere, "value.staging": value };
    const production = { ...nowhere, "value.staging": value, "value.production": value };
    const notAName = "a letter or _ first, then letters, digits and _, at most 255, and neither _ nor __proto__.";
    const again = (name: string) => `For production, type ${name} again. Nothing was changed.`;
    const day = "The day to rotate by must be one in UTC that is not past, such as 2030-01-31.";
    const there = "There is a OLD in development already. Nothing was changed: change that one.";
    const refused: readonly (readonly [page: string, fields: Fields, status: number, error: string])[] = [
      ...["two words", "1ST", "A-B", "<b>", "É", "", "__proto__", "A".repeat(256)].map(
        (name) =>
          [
            "variables/set",
            { ...production, name },
            400,
            `${JSON.stringify(name)} is not a variable name: ${notAName}`,
          ] as const,
      ),
      ["variables/set", { ...production, name: "NEW" }, 400, again("NEW")],
      ["variables/set", { ...production, name: "NEW", again: "new" }, 400, again("NEW")],
      ["variables/set?name=OLD", { ...production, again: "OLDER" }, 400, again("OLD")],
      ["variables/set?name=OLD", { ...nowhere, empty: "production" }, 400, again("OLD")],
      ["variables/set", { ...nowhere, name: "NEW" }, 400, "No field has a value. Nothing was changed."],
      ["variables/set", { ...nowhere, name: "OLD", "value.development": value }, 409, there],
      [
        "variables/set",
        { ...staging, name: "NEW", empty: "staging" },
        400,
        "There is a value for staging, and the box for the empty value is checked.",
      ],
      ...["2020-01-31", "2099-02-30", "31.1.2099", "soon"].map(
        (rotateBy) => ["variables/set", { ...staging, name: "NEW", rotateBy }, 400, day] as const,
      ),
      [
        "variables/set",
        { ...nowhere, name: "NEW", "value.staging": "a\0b" },
        400,
        "The value of NEW holds a NUL character, which no environment can carry.",
      ],
      ["variables/set", { name: "NEW" }, 400, "The form has no field value.development: load the page again."],
      [
        "variables/set",
        { ...staging, name: "NEW", "version.staging": "-1" },
        400,
        "version.staging is not a number: load the page again.",
      ],
    ];
    for (const [page, fields, status, error] of refused) {
      expect([fields, await fill(page, fields)]).toEqual([fields, { status, error }]);
    }
    expect(await stored(w)).toBe(untouched);
    await fill("variables/set", { ...production, name: "NEW", again: " NEW " });
    expect(await revealVariable(w.admin, where, "production", "NEW")).toBe(value);
  });

  test("refuses all of a change if somebody wrote one of its environments in between", async () => {
    const { where, visitor, at } = await place(w);
    const hidden = await visitor.hidden(at("variables/set?name=OLD"), at("variables/set"));
    await setVariables(w.admin, where, "staging", [{ name: "OTHER", value: "1" }]);
    const untouched = await stored(w);
    const [development, staging] = [canary(w), canary(w)];
    const both = { ...hidden, ...nowhere, "value.development": development, "value.staging": staging };
    expect(await visitor.send(at("variables/set"), both)).toMatchObject({
      status: 409,
      error: expect.stringContaining("were changed by somebody else after you opened them. Nothing was written"),
    });
    expect(await stored(w)).toBe(untouched);
    // An environment that is not written may have changed.
    expect(await visitor.send(at("variables/set"), { ...both, "value.staging": "" })).toMatchObject({ status: 200 });
    expect(await revealVariable(w.admin, where, "development", "OLD")).toBe(development);
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

describeBoth("the form that deletes a variable", (w) => {
  test("deletes it from the chosen environments", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [page, action] = ["variables/set?name=OLD", "variables/delete"];
    const untouched = await stored(w);
    expect(await fill(page, {}, action)).toEqual({
      status: 400,
      error: "No environment is chosen. Nothing was deleted.",
    });
    expect(await fill(page, { from: ["development", "production"] }, action)).toEqual({
      status: 400,
      error: "For production, type OLD again. Nothing was changed.",
    });
    const seen = await visitor.hidden(at(page), at(action));
    expect(await stored(w)).toBe(untouched);
    await setVariables(w.admin, where, "production", [{ name: "OLD", value: canary(w) }]);
    const stale = { ...seen, from: ["development", "production"], again: "OLD" };
    expect((await visitor.send(at(action), stale)).status).toBe(409);
    expect(await listVariables(w.admin, where, "development")).toHaveLength(1);

    const all = { from: ["development", "production"], again: "OLD" };
    expect(await fill(page, all, action)).toEqual({ status: 200, to: at("variables") });
    for (const environment of environments) expect(await listVariables(w.admin, where, environment)).toEqual([]);
    expect(await newest(w, where, 2)).toEqual([
      ["ann@host", "variables.write", "development", "OLD"],
      ["ann@host", "variables.write", "production", "OLD"],
    ]);
  });
});

describeBoth("the page that sets an account", (w) => {
  test("creates one with the fields that were filled in", async () => {
    const { where, visitor, at, fill } = await place(w);
    const [user, key] = [canary(w), canary(w, "\nsecond line")];
    const fields = {
      name: "mail/é",
      field: ["user", "", "private key", ""],
      value: [user, "", key.replaceAll("\n", "\r\n"), ""],
      environment: ["development", "staging"],
    };
    expect(await fill("accounts/set", fields)).toEqual({ status: 200, to: at("accounts/item?name=mail%2F%C3%A9") });
    const { values } = await revealAccount(w.admin, where, "mail/é", "staging");
    expect(values).toEqual({ user, "private key": key });
    expect(await listAccounts(w.admin, where)).toMatchObject([
      { name: "mail/é", environments: ["development", "staging"] },
      { name: "stripe" },
    ]);
    expect((await newest(w, where, 3)).slice(0, 2)).toEqual([
      ["ann@host", "accounts.write", "development", "mail/é"],
      ["ann@host", "accounts.write", "staging", "mail/é"],
    ]);
    const { html } = await visitor.page(at("accounts/item?name=mail%2F%C3%A9"));
    expect(html).toContain("Saved mail/é in development and staging.");
    expect(visitor.reported).toEqual([]);
  });

  test("writes all fields again, and takes it out of an environment only if that is said", async () => {
    const { where, visitor, at, fill } = await place(w);
    const password = canary(w);
    const { html } = await visitor.page(at("accounts/set?name=stripe"));
    expect(html).toContain("What is stored is not shown: write all its fields again.");
    expect(html.match(/checked value="(?:staging|production)"|value="(?:staging|production)" checked/g)).toHaveLength(
      2,
    );
    const fields = { field: ["token"], value: [password], environment: ["production"], again: "stripe" };
    const untouched = await stored(w);
    expect(await fill("accounts/set?name=stripe", fields)).toEqual({
      status: 400,
      error: "This takes stripe out of staging: check the box that says so, or staging. Nothing was changed.",
    });
    expect(await stored(w)).toBe(untouched);
    const drop = { ...fields, drop: "yes" };
    expect(await fill("accounts/set?name=stripe", drop)).toEqual({ status: 200, to: at("accounts/item?name=stripe") });
    expect((await visitor.page(at("accounts/item?name=stripe"))).html).toContain("It is no longer in staging.");
    expect(await listAccounts(w.admin, where)).toMatchObject([{ name: "stripe", environments: ["production"] }]);
    expect((await revealAccount(w.admin, where, "stripe", "production")).values).toEqual({ token: password });
  });

  test("refuses, with a sentence, and changes nothing", async () => {
    const { where, visitor, at, fill } = await place(w);
    const stale = await visitor.hidden(at("accounts/set?name=stripe"), at("accounts/set"));
    const staleDelete = await visitor.hidden(at("accounts/set?name=stripe"), at("accounts/delete"));
    await setAccount(w.admin, where, "other", ["production"], { a: "1" });
    const untouched = await stored(w);
    const value = canary(w);
    const one = { field: ["user"], value: [value], environment: ["staging"] };
    const again = (name: string) => `For production, type ${name} again. Nothing was changed.`;
    const changed = `The accounts of ${where} in production were changed by somebody else after you opened them.`;
    const refused: readonly (readonly [page: string, fields: Fields, status: number, error: string])[] = [
      ["accounts/set", { ...one, name: "stripe" }, 409, 'There is an account "stripe" already: change that one.'],
      ["accounts/set", { ...one, name: "a", environment: ["production"] }, 400, again("a")],
      ["accounts/set?name=stripe", { ...one, drop: "yes" }, 400, again("stripe")],
      ["accounts/set", { ...one, name: "" }, 400, "The account name must have 1 to 255 characters"],
      ["accounts/set", { ...one, name: "a\u0007b" }, 400, "The account name must have 1 to 255 characters"],
      ["accounts/set", { ...one, name: "a", environment: [] }, 400, "Name at least one environment"],
      ["accounts/set", { ...one, name: "a", field: [""] }, 400, "Field 1 has a value and no name."],
      ["accounts/set", { ...one, name: "a", value: [""] }, 400, 'The field "user" has no value. Nothing was changed.'],
      ["accounts/set", { ...one, name: "a", field: [""], value: [""] }, 400, "An account needs at least one field."],
      ["accounts/set", { ...one, name: "a", field: ["u", "v"] }, 400, "The form is not whole: load the page again."],
      [
        "accounts/set",
        { ...one, name: "a", field: ["u", "u"], value: [value, "2"] },
        400,
        'The field "u" is there twice.',
      ],
      ["accounts/set", { ...one, name: "a", value: [`${value}\0`] }, 400, 'The field "user" holds a NUL character'],
      [
        "accounts/set",
        { ...one, name: "a", value: ["x".repeat(64 * 1024)] },
        422,
        "The account's fields take 65547 bytes",
      ],
      ["accounts/set?name=stripe", { ...one, ...stale, drop: "yes", again: "stripe" }, 409, changed],
    ];
    for (const [page, fields, status, error] of refused) {
      const reply = await fill(page, fields);
      expect([page, fields, reply]).toEqual([page, fields, { status, error: expect.stringContaining(error) }]);
    }
    const deletions = [
      [{ ...staleDelete, again: "stripe" }, 409, changed],
      [{ ...staleDelete, again: "" }, 400, again("stripe")],
      [{ ...staleDelete, name: "never" }, 409, changed],
    ] as const;
    for (const [fields, status, error] of deletions) {
      const reply = await visitor.send(at("accounts/delete"), fields);
      expect([fields, reply]).toEqual([fields, { status, error: expect.stringContaining(error) }]);
    }
    expect(await stored(w)).toBe(untouched);
  });

  test("deletes one from every environment", async () => {
    const { where, at, fill } = await place(w);
    const fields = { again: "stripe" };
    const page = "accounts/set?name=stripe";
    expect(await fill(page, fields, "accounts/delete")).toEqual({ status: 200, to: at("accounts") });
    expect(await listAccounts(w.admin, where)).toEqual([]);
    expect(await newest(w, where, 2)).toEqual([
      ["ann@host", "accounts.write", "staging", "stripe"],
      ["ann@host", "accounts.write", "production", "stripe"],
    ]);
  });
});
