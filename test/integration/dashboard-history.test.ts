import { expect, test } from "bun:test";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { adminContextOf, operator } from "../../src/people/desk/context.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setProjectEnvironments } from "../../src/people/projects/projects.ts";
import { showRequest } from "../../src/people/requests/requests.ts";
import { listAudit } from "../support/audit.ts";
import { deleteVariable } from "../support/delete.ts";
import { type Visitor, visitorOf } from "../support/pages.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { describeBoth, describeOnce, type World } from "../support/world.ts";

/** A project with three versions of its variables in an environment: empty, with the first value, with the second. */
async function furnish(w: World, environment = "production") {
  const { organization, where } = await w.place();
  for (const value of ["the-first-value", "the-second-value"]) {
    w.secrets.add(value);
    await setVariables(w.admin, where, environment, [{ name: "TOKEN", value }]);
  }
  const visitor = await visitorOf(w);
  const undoPath = (to: number) => `/p/${where}/undo?kind=variables&environment=${environment}&to=${to}`;
  return { organization, where, visitor, undoPath, undo: `/p/${where}/undo` };
}

const actions = async (w: World, where: string) =>
  (await listAudit(w.admin, { project: where, limit: 1000 })).map(({ action }) => action);

const withoutTags = (html: string) => html.replace(/<[^>]*>/g, "");

/** What a page says of each version, newest first. */
const versionsOn = async (visitor: Visitor, path: string) => {
  const { html } = await visitor.page(path);
  const list = /<ol class="versions">([\s\S]*?)<\/ol>/.exec(html)?.[1] ?? "";
  return list.split("<li><p><strong>").slice(1).map(withoutTags);
};

describeOnce("a change of somebody who signed in", (w) => {
  test("is undone under their name alone: their subject is in the audit", async () => {
    const { where, visitor } = await furnish(w);
    const from = { issuer: "https://id.example", subject: "248289761001" };
    const ana = { ...w.admin, actor: { type: "person" as const, name: "ana", from } };
    await setVariables(ana, where, "production", [{ name: "TOKEN", value: "the-third" }]);
    await setVariables(ana, where, "production", [{ name: "TOKEN", value: "the-fourth" }]);
    const said = async (question: string) => {
      return withoutTags(
        (await visitor.page(`/p/${where}/undo?kind=variables&environment=production&${question}`)).html,
      );
    };
    const pages = [await said("version=4"), await said("version=3"), await said("to=2")];
    for (const page of pages) expect([page.includes("ana"), page.includes(from.subject)]).toEqual([true, false]);
  });
});

describeBoth("the history page", (w) => {
  test("tells each version, newest first, with who wrote it and which names", async () => {
    const { where, visitor } = await furnish(w);
    await setVariables(w.admin, where, "production", [{ name: "OTHER", value: "" }]);
    const [third, second, first, ...none] = await versionsOn(visitor, `/p/${where}/history`);
    expect(third).toStartWith("Version 4 (current), just now, by ann@hostUndo this changeadded: OTHER");
    expect(second).toContain("Version 3, just now, by ann@host");
    expect(second).toEndWith("changed: TOKEN");
    expect(first).toEndWith("added: TOKEN");
    expect(none).toHaveLength(1);
    expect(none[0]).toEndWith("Version 1, just now, by ann@hostGo back to version 1");
  });
  test("leads back to each version but the current one", async () => {
    const { where, visitor, undoPath } = await furnish(w);
    const { html } = await visitor.page(`/p/${where}/history?kind=variables&environment=production`);
    const links = [...html.matchAll(/href="([^"]*undo[^"]*)"/g)].map(([, link = ""]) => link.replaceAll("&amp;", "&"));
    const change = (version: number) => undoPath(version).replace("to=", "version=");
    // Nothing of version 2 is left to undo.
    expect(links).toEqual([change(3), undoPath(2), undoPath(1)]);
    expect(html).toContain("written again since, in version 3");
  });
  test("has no undo of what made a value one for machines only, as it would be refused", async () => {
    const { where, visitor, undoPath } = await furnish(w);
    const mark = { value: "the-third-value", machinesOnly: true as const };
    w.secrets.add(mark.value);
    await setVariables(w.admin, where, "production", [{ name: "TOKEN", ...mark }]);
    await setVariables(w.admin, where, "production", [{ name: "NEW", ...mark }]);
    const [added, marked] = await versionsOn(visitor, `/p/${where}/history`);
    expect([added?.includes("Undo this change"), marked?.includes("Undo this change")]).toEqual([true, false]);
    expect(marked).toContain("cannot be undone: it made a value one for machines only");
    // Nor does a link lead back to a version, or an item, that would lose the mark.
    const newestFirst = await versionsOn(visitor, `/p/${where}/history`);
    const ways = newestFirst.map((text) => /Go back|cannot go back: .* only(?=added|changed|$)/.exec(text)?.[0]);
    const none = "cannot go back: it would show TOKEN, now for machines only";
    expect(ways).toEqual([undefined, "Go back", none, none, "Go back"]);
    const status = async (path: string) => (await visitor.page(path)).status;
    expect(await Array.fromAsync([1, 2, 3, 4], (to) => status(undoPath(to)))).toEqual([200, 409, 409, 200]);
    const refused = await visitor.page(undoPath(4).replace("to=", "version="));
    expect([refused.status, refused.html.includes("<title>Not possible now")]).toEqual([409, true]);
    expect((await visitor.page(undoPath(5).replace("to=", "version="))).status).toBe(200);
    // What was marked before it can be undone: it stays marked.
    await setVariables(w.admin, where, "production", [{ name: "TOKEN", ...mark }]);
    expect((await versionsOn(visitor, `/p/${where}/history`))[0]).toContain("Undo this change");
    expect((await visitor.page(undoPath(6).replace("to=", "version="))).status).toBe(200);
    const { html } = await visitor.page(`/p/${where}/variables/item?name=TOKEN`);
    const earlier = [...html.matchAll(/<li><span>Version (\d).*?<\/li>/g)].map(([row]) => withoutTags(row).slice(-47));
    const unmarking = "cannot be put back: it is for machines only now";
    expect(earlier).toEqual([expect.stringMatching(/^Version 4, .*Put back$/), unmarking, unmarking]);
    expect(await Array.fromAsync([2, 3, 4], (to) => status(`${undoPath(to)}&name=TOKEN`))).toEqual([409, 409, 200]);
  });
  test("has no undo of a deletion in an environment that the project does not use", async () => {
    const { where, visitor } = await furnish(w);
    await deleteVariable(w.admin, where, "production", "TOKEN");
    const newest = async () => (await versionsOn(visitor, `/p/${where}/history?environment=production`))[0];
    expect(await newest()).toContain("Undo this change");
    await setProjectEnvironments(w.admin, where, ["staging"]);
    expect(await newest()).toContain("deleted: TOKEN");
    expect(await newest()).not.toContain("Undo this change");
    const { html } = await visitor.page(`/p/${where}/history?environment=production`);
    expect(html).toContain(`${where} does not use production, so nothing is put back there.`);
    expect(html).not.toContain("Go back to version");
  });
  test("cuts long lists of names, and counts the rest, which can be opened, as does what would be undone", async () => {
    const { where, visitor, undoPath } = await furnish(w);
    const many = Array.from({ length: 25 }, (_, at) => ({ name: `NAME_${at + 10}`, value: "" }));
    await setVariables(w.admin, where, "production", many);
    for (const page of [`/p/${where}/history`, undoPath(2)]) {
      const { html } = await visitor.page(page);
      expect(html).toContain("<details><summary>and 5 others</summary><code><bdi>NAME_30</bdi></code>, ");
      expect(html).toContain("<code><bdi>NAME_34</bdi></code></details>");
    }
  });
  test("shows a hundred versions at a time", async () => {
    const { where, visitor } = await furnish(w);
    for (let at = 0; at < 100; at++) await setVariables(w.admin, where, "production", [{ name: `N${at}`, value: "" }]);
    const newest = await versionsOn(visitor, `/p/${where}/history`);
    expect([newest.length, newest[0]?.slice(0, 21), newest[99]?.slice(0, 10)]).toEqual([
      ...[100, "Version 103 (current)", "Version 4,"],
    ]);
    const { html } = await visitor.page(`/p/${where}/history`);
    const [, link = ""] = /<a href="([^"]*)">Older versions<\/a>/.exec(html) ?? [];
    const rest = await versionsOn(visitor, link.replaceAll("&amp;", "&"));
    expect(rest.map((text) => text.slice(0, 10))).toEqual(["Version 3,", "Version 2,", "Version 1,"]);
    expect((await visitor.page(`/p/${where}/history?before=x`)).status).toBe(400);
  });
  test("is of another kind and environment if that is asked for, and of none that does not exist", async () => {
    const { where, visitor } = await furnish(w);
    await setAccount(w.admin, where, "stripe", ["staging"], { password: "" });
    const [newest] = await versionsOn(visitor, `/p/${where}/history?kind=accounts&environment=staging`);
    expect(newest).toContain("added: stripe");
    expect((await visitor.page(`/p/${where}/history?kind=keys`)).status).toBe(404);
    expect((await visitor.page(`/p/${where}/history?environment=qa`)).status).toBe(400);
  });
  test("warns of what SQL did to it", async () => {
    const { where, visitor } = await furnish(w);
    await w.sql`update set_versions set actor = ${"mallory"} where version = ${2} and kind = 'variables'`;
    const { html } = await visitor.page(`/p/${where}/history`);
    expect(html).toContain("<li>Version 2 is not listed: its record was changed with SQL.</li>");
    expect(html).not.toContain("mallory");
  });
  test("shows whoever wrote a version as text", async () => {
    const { where, visitor } = await furnish(w);
    const eve = adminContextOf(w.installation, operator("<b>eve</b>\u202e@host"));
    await setVariables(eve, where, "production", [{ name: "TOKEN", value: "" }]);
    const { html } = await visitor.page(`/p/${where}/history`);
    expect(html).toContain('by <bdi class="wide">&lt;b>eve&lt;/b>\\u202e@host</bdi>');
  });
});

describeOnce("undoing one change", (w) => {
  /** Ben writes over TOKEN and adds TAKEN; then Ana changes TAKEN. */
  const mistaken = async (environment = "production") => {
    const { where, visitor, undo } = await furnish(w, environment);
    const as = (name: string) => ({ ...w.admin, actor: { type: "person", name, from: "os" } as const });
    const entries = ["TOKEN", "TAKEN"].map((name) => ({ name, value: "wrong-value" }));
    w.secrets.add("wrong-value");
    await setVariables(as("ben"), where, environment, entries);
    await setVariables(as("ana"), where, environment, [{ name: "TAKEN", value: "" }]);
    return { where, visitor, undo, path: `${undo}?kind=variables&environment=${environment}&version=4` };
  };
  test("shows what it would write, and what would stay, written by whom", async () => {
    const { where, visitor, undo, path } = await mistaken();
    const before = await actions(w, where);
    const main = withoutTags((await visitor.page(path)).html);
    expect(main).toContain("It would undo version 4 of the variables of");
    expect(main).toContain("changed: TOKEN");
    expect(main).toContain("Not undone, because written since: TAKEN (version 5, by ana).");
    const hidden = { kind: "variables", environment: "production", "version.production": "5", version: "4" };
    expect(await visitor.hidden(path, undo)).toEqual({ ...hidden, project: expect.any(String) });
    expect(await actions(w, where)).toEqual(before);
  });
  test("writes only that, on record, and asks for the name in production", async () => {
    const { where, visitor, undo, path } = await mistaken();
    const shown = await visitor.hidden(path, undo);
    expect((await visitor.send(undo, { ...shown, again: "" })).status).toBe(400);
    const { to = "" } = await visitor.send(undo, { ...shown, again: where });
    expect(to).toBe(`/p/${where}/history?kind=variables&environment=production`);
    expect(await revealVariable(w.admin, where, "production", "TOKEN")).toBe("the-second-value");
    expect(await revealVariable(w.admin, where, "production", "TAKEN")).toBe("");
    const [newest] = await listAudit(w.admin, { project: where, actions: ["variables.rollback"], limit: 1 });
    expect(newest).toMatchObject({ names: ["TOKEN"], changed: ["TOKEN"], actor: { name: "ann@host" } });
    const { html } = await visitor.page(to);
    const left = "Not undone, because written since: TAKEN (version 5, by ana).";
    expect(html).toContain(`changed TOKEN. This is version 6. ${left}`);
    expect(withoutTags((await visitor.page(path)).html)).toContain("Nothing of version 4 is left to undo");
    expect((await visitor.send(undo, { ...shown, "version.production": 6, again: where })).status).toBe(400);
  });
  test("is refused if somebody wrote since it was shown", async () => {
    const { where, visitor, undo, path } = await mistaken("staging");
    const shown = await visitor.hidden(path, undo);
    await setVariables(w.admin, where, "staging", [{ name: "OTHER", value: "" }]);
    expect((await visitor.send(undo, shown)).status).toBe(409);
    expect(await revealVariable(w.admin, where, "staging", "TOKEN")).toBe("wrong-value");
  });
});

describeOnce("going back to a version", (w) => {
  test("shows first what it would do, and changes nothing by that", async () => {
    const { where, visitor, undoPath, undo } = await furnish(w);
    await setVariables(w.admin, where, "production", [{ name: "NEW", value: "" }]);
    const before = await actions(w, where);
    const { html } = await visitor.page(undoPath(2));
    const main = withoutTags(html);
    expect(main).toContain("back from version 4 to 2:");
    expect(main).toContain("changed: TOKEN");
    expect(main).toContain("deleted: NEW");
    expect(main).toContain("That takes back versions 3 and 4 by ann@host.");
    const hidden = { kind: "variables", environment: "production", "version.production": "4", to: "2" };
    expect(await visitor.hidden(undoPath(2), undo)).toEqual({ ...hidden, project: expect.any(String) });
    expect(await actions(w, where)).toEqual(before);
  });
  test("asks for the project's name in production, and only there", async () => {
    const { where, visitor, undoPath, undo } = await furnish(w);
    const shown = await visitor.hidden(undoPath(2), undo);
    for (const again of ["", "web", `${where}x`]) {
      const { status, error } = await visitor.send(undo, { ...shown, again });
      expect([status, error]).toEqual([400, `For production, type ${where} again. Nothing was changed.`]);
    }
    expect(await revealVariable(w.admin, where, "production", "TOKEN")).toBe("the-second-value");
    const staging = await furnish(w, "staging");
    const hidden = await staging.visitor.hidden(staging.undoPath(2), staging.undo);
    expect((await staging.visitor.send(staging.undo, hidden)).status).toBe(200);
    expect(await revealVariable(w.admin, staging.where, "staging", "TOKEN")).toBe("the-first-value");
  });
  test("says so if there is nothing to undo, if there is no such version, and if it is no number", async () => {
    const { where, visitor, undoPath, undo } = await furnish(w);
    await setVariables(w.admin, where, "production", [{ name: "TOKEN", value: "the-first-value" }]);
    expect(withoutTags((await visitor.page(undoPath(2))).html)).toContain("There is nothing to undo:");
    expect((await visitor.page(undoPath(4))).status).toBe(400);
    expect((await visitor.page(undoPath(999_999_999_999_999))).status).toBe(404);
    for (const to of ["", "-1", "1e3", "x"]) {
      expect((await visitor.page(`${undo}?kind=variables&environment=production&to=${to}`)).status).toBe(400);
    }
    expect(visitor.reported).toEqual([]);
  });
});

/** A pending request for a variable, and the path of its page. */
async function ask(w: World, { environment = "production", name = "STRIPE_KEY", reason = "for payments" } = {}) {
  const { organization, project, key } = await w.place({
    key: { name: "agent", surfaces: ["mcp_server"], resources: ["requests"] },
  });
  const id = await w.request(organization.id, key.id, project, { environment, name, reason } as never);
  const visitor = await visitorOf(w);
  const path = `/requests/${id}`;
  return { id, path, where: project.where, key, visitor, shown: () => visitor.hidden(path, `${path}/approve`) };
}

describeOnce("the requests of machines", (w) => {
  test("are listed with the open ones first, and lead to their pages", async () => {
    const [older, newer, decided] = [await ask(w), await ask(w), await ask(w)];
    await decided.visitor.send(`${decided.path}/reject`, await decided.shown());
    const { html } = await older.visitor.page("/requests");
    const rows = [...html.matchAll(/<a href="\/requests\/([^"]*)"><code>/g)].map(([, id]) => id);
    expect(rows).toEqual([newer.id, older.id, decided.id]);
  });
  test("show the machine's words as text, and which key asks", async () => {
    const reason = "</blockquote><script>alert(1)</script>\u202e\nStatus: approved";
    const { path, visitor, key } = await ask(w, { reason });
    const { html } = await visitor.page(path);
    expect(html).not.toContain("<script>alert");
    expect(html).not.toContain("\u202e");
    expect(html).toContain("&lt;/blockquote>&lt;script>alert(1)&lt;/script>\\u202e\\u000aStatus: approved");
    expect(html).toContain(`<a href="/keys/${key.id}">`);
    expect(html).toContain("The reason, in the machine's words");
  });
  test("warn of a name that steers programs, and of a key that was revoked", async () => {
    const { path, visitor, key } = await ask(w, { name: "LD_PRELOAD" });
    await revokeKey(w.admin, key.id);
    const { html } = await visitor.page(path);
    expect(html).toContain("<li>The key that asked is no longer valid (revoked).</li>");
    expect(html).toContain("<li>LD_PRELOAD steers loaders, runtimes, shells or CI");
  });
});

describeBoth("approving", (w) => {
  test("writes the value that was typed, on record with the decision", async () => {
    const { id, path, where, visitor, shown } = await ask(w);
    const value = "sk_live_of_a_page\n";
    w.secrets.add(value.trim());
    const form = { ...(await shown()), value: value.replace("\n", "\r\n"), again: "STRIPE_KEY" };
    expect(await visitor.send(`${path}/approve`, form)).toEqual({ status: 200, to: "/requests" });
    expect(await revealVariable(w.admin, where, "production", "STRIPE_KEY")).toBe(value);
    expect(await showRequest(w.admin, id)).toMatchObject({ status: "approved", decidedBy: "ann@host" });
    expect((await actions(w, where)).slice(-3, -1).sort()).toEqual(["request.approve", "variables.write"]);
    const { html } = await visitor.page("/requests");
    expect(html).toContain(`Created STRIPE_KEY in ${where}, production.`);
    expect(html).toContain("The value of STRIPE_KEY ends in a newline");
    expect((await visitor.page(path)).html).not.toContain(`${path}/approve`);
  });
  test("asks for the name in production, and for a value anywhere", async () => {
    const production = await ask(w);
    const typed = { ...(await production.shown()), value: "x" };
    const { error } = await production.visitor.send(`${production.path}/approve`, typed);
    expect(error).toStartWith("For production, type");
    const staging = await ask(w, { environment: "staging" });
    const hidden = await staging.shown();
    const none = await staging.visitor.send(`${staging.path}/approve`, { ...hidden, value: "" });
    expect([none.status, none.error]).toEqual([400, "There is no value. Nothing was written."]);
    for (const [{ where }, at] of [
      [production, "production"],
      [staging, "staging"],
    ] as const) {
      expect(await listVariables(w.admin, where, at)).toEqual([]);
    }
    expect((await staging.visitor.send(`${staging.path}/approve`, { ...hidden, value: "x" })).status).toBe(200);
  });
  const changes = [
    ["reason", "other"],
    ["name", "OTHER"],
    ["environment", "staging"],
  ] as const;
  test.each(changes)("is refused if its %s changed since it was shown", async (column, other) => {
    const { id, path, where, visitor, shown } = await ask(w);
    const form = { ...(await shown()), value: "x", again: "STRIPE_KEY" };
    await w.run(`update variable_requests set ${column} = ? where id = ?`, [other, id]);
    const { status, error } = await visitor.send(`${path}/approve`, form);
    expect([status, error]).toEqual([409, expect.stringContaining("has changed since it was shown")]);
    expect((await showRequest(w.admin, id)).status).toBe("pending");
    for (const environment of ["staging", "production"]) {
      expect(await listVariables(w.admin, where, environment)).toEqual([]);
    }
  });
  test("is refused if the key was revoked since it was shown, and if somebody decided before", async () => {
    const revoked = await ask(w);
    const form = { ...(await revoked.shown()), value: "x", again: "STRIPE_KEY" };
    await revokeKey(w.admin, revoked.key.id);
    expect((await revoked.visitor.send(`${revoked.path}/approve`, form)).status).toBe(409);
    const decided = await ask(w);
    const other = { ...(await decided.shown()), value: "x", again: "STRIPE_KEY" };
    await decided.visitor.send(`${decided.path}/reject`, other);
    expect((await decided.visitor.send(`${decided.path}/approve`, other)).error).toContain("was rejected by ann@host");
    expect(await listVariables(w.admin, decided.where, "production")).toEqual([]);
  });
});

describeOnce("rejecting", (w) => {
  test("notes the reason, on record", async () => {
    const { id, path, where, visitor, shown } = await ask(w);
    const reply = await visitor.send(`${path}/reject`, { ...(await shown()), reason: "<i>no</i>" });
    expect(reply).toEqual({ status: 200, to: "/requests" });
    expect(await showRequest(w.admin, id)).toMatchObject({ status: "rejected", decisionReason: "<i>no</i>" });
    expect(await actions(w, where)).toContain("request.reject");
    expect((await visitor.page("/requests")).html).toContain(`Rejected STRIPE_KEY for ${where}, production.`);
    expect((await visitor.page(path)).html).toContain("<dd><bdi>&lt;i>no&lt;/i></bdi></dd>");
  });
  test("takes at most 500 characters, and needs none", async () => {
    const { id, path, visitor, shown } = await ask(w);
    const hidden = await shown();
    expect((await visitor.send(`${path}/reject`, { ...hidden, reason: "x".repeat(501) })).status).toBe(400);
    expect((await showRequest(w.admin, id)).status).toBe("pending");
    expect((await visitor.send(`${path}/reject`, { ...hidden, reason: "" })).status).toBe(200);
    expect((await showRequest(w.admin, id)).decisionReason).toBeNull();
  });
});
