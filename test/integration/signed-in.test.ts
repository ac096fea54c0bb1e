/**
 * What somebody who signed in is told of themselves, and what takes a fresh sign-in. Whether two values are the same
 * tells as much as a value to whoever guesses it. So a page that compares values of production takes a fresh sign-in, as
 * seeing one does.
 */
import { expect, test } from "bun:test";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { personsVisitor, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights, revokeRights } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth } from "../support/world.ts";

describeBoth("the page about oneself", (w) => {
  test("says who is signed in and what they may do where, and an operator that it is everything", async () => {
    const { organization } = await w.place();
    const signIn = { issuer: "https://id.example", subject: "eva-1" };
    await addPerson(w.admin, { name: "eva", organization: organization.slug, signIn });
    await grantRights(w.admin, "eva", { rights: ["see"], projects: null, environments: null });
    await grantRights(w.admin, "eva", { rights: ["reveal"], projects: ["web"], environments: ["staging"] });
    const eva = await personsVisitor(w, signIn).page("/me");
    expect(said(eva.html)).toContain(`all projects of ${organization.slug} : ○ names, everywhere`);
    expect(said(eva.html)).toContain(`${organization.slug}/web : ● reads in staging`);
    expect(eva.html).toContain('<a href="/me">');
    const operator = await (await visitorOf(w)).page("/me");
    expect(said(operator.html)).toContain("everything: you hold the root key, so you are an operator");
  });
});

describeBoth("with a sign-in of too long ago", (w) => {
  test("no page says what is the same in production, and each says how to sign in again", async () => {
    const { organization, where } = await w.place({
      variables: { development: { A: "1" }, staging: { A: "1", B: "3" }, production: { A: "1", B: "2" } },
    });
    const signIn = { issuer: "https://id.example", subject: "ana-1" };
    await addPerson(w.admin, { name: "ana", organization: organization.slug, signIn });
    const rights = ["see", "reveal", "write", "keys"];
    await grantRights(w.admin, "ana", { rights, projects: ["web"], environments: null });
    w.clock.nowMs = Date.now();
    const visitor = personsVisitor(w, signIn);
    const at = (page: string) => `/p/${where}/${page}`;
    const paste = (environment: string) => visitor.send(at("variables/paste"), { environment, text: "A=1\nB=2" });
    const pages = ["variables/promote?from=staging&to=production", "undo?kind=variables&environment=production&to=1"];
    const compared = async () => {
      const reply = await visitor.submit(at("variables/compare"), {});
      const cells = [...(await reply.text()).matchAll(/<td class="(\w+)/g)].map(([, cell]) => cell);
      const { html } = await visitor.page(at("variables"));
      return [reply.status, cells.join(" "), html.includes('href="/sign-in?again"')];
    };
    const promote = await visitor.form(at(pages[0] ?? ""), at("variables/promote"));
    expect(promote).toBeDefined();
    const undo = await visitor.form(at(pages[1] ?? ""), at("undo"));
    const back = await visitor.form(at("variables/promote?from=production&to=staging"), at("variables/promote"));
    expect(await compared()).toEqual([200, "no a b a a a", false]);
    expect((await paste("production")).status).toBe(200);
    // It stays a recent one for ten minutes after each use, and for half an hour in all.
    for (const minutes of [9, 9, 9]) {
      w.clock.nowMs += minutes * 60_000;
      expect(await compared()).toEqual([200, "no a b a a a", false]);
    }
    // Whoever begins to type is told before.
    const forms = [at("variables/paste"), `/keys/new?org=${organization.slug}`];
    const linksIn = async (page: string) => (await visitor.page(page)).html.split("/sign-in?again").length - 1;
    for (const page of forms) expect([page, await linksIn(page)]).toEqual([page, 0]);
    const { to: plan = "" } = await visitor.send(at("variables/promote"), { ...promote, names: "B" });

    w.clock.nowMs += 3 * 60_000;
    expect(await compared()).toEqual([401, "", true]);
    for (const page of forms) expect([page, await linksIn(page)]).toEqual([page, 1]);
    const refusal = { status: 401, error: expect.stringContaining("sign in again"), again: "/sign-in?again" };
    for (const page of pages) expect((await visitor.page(at(page))).status).toBe(401);
    const fields = { ...promote, names: "B", again: where };
    expect(await visitor.send(at("variables/promote"), fields)).toEqual(refusal);
    expect(await visitor.send(plan, { again: where })).toEqual(refusal);
    expect(await visitor.send(at("undo"), { ...undo, again: where })).toEqual(refusal);
    // A has the same value in both, so nothing would be copied, and nothing put on record.
    expect(await visitor.send(at("variables/promote"), { ...back, names: "A" })).toEqual(refusal);
    expect(await paste("production")).toEqual(refusal);
    const earlier = { name: "A", environment: "production", version: 2 };
    expect(await visitor.send(at("variables/reveal"), earlier)).toEqual(refusal);
    expect((await visitor.page(at("undo?kind=variables&environment=production&to=1&name=A"))).status).toBe(401);
    // Undoing one change compares nothing and shows nothing.
    expect((await visitor.page(at("undo?kind=variables&environment=production&version=2"))).status).toBe(200);
    expect((await paste("staging")).status).toBe(200);
    expect((await visitor.page(at("variables/promote?from=development&to=staging"))).status).toBe(200);
    w.clock.nowMs = undefined;
  });
});

describeBoth("a draft of somebody whose rights are taken", (w) => {
  test("tells only what they may still know, and is applied only as it was shown", async () => {
    const { organization, where } = await w.place({
      variables: { development: { A: "1" }, staging: { A: "1", B: "3", NOT_IN_TEXT: "1" } },
    });
    const signIn = { issuer: "https://id.example", subject: `bea-${organization.slug}` };
    const [name, web] = [signIn.subject, { projects: ["web"], environments: null }];
    await addPerson(w.admin, { name, organization: organization.slug, signIn });
    await grantRights(w.admin, name, { rights: ["see", "reveal", "write"], ...web });
    const [paster, promoter] = [personsVisitor(w, signIn), personsVisitor(w, signIn)];
    const at = (page: string) => `/p/${where}/variables/${page}`;
    const text = { environment: "staging", text: "A=1\nB=9", prune: "yes" };
    const { to: pasted = "" } = await paster.send(at("paste"), text);
    const form = await promoter.form(at("promote?from=staging&to=development"), at("promote"));
    const { to: promoted = "" } = await promoter.send(at("promote"), { ...form, names: ["A", "B"] });
    const shown = async (visitor: Visitor, draft: string) => {
      const { status, html } = await visitor.page(draft);
      return [status, / changed: [\w ,]*/.exec(said(html))?.[0].trim(), html.includes("the same value")];
    };
    expect(await shown(paster, pasted)).toEqual([200, "changed: B deleted", true]);
    expect(await shown(promoter, promoted)).toEqual([200, undefined, true]);

    const [before, copied] = [await paster.hidden(pasted), await promoter.hidden(promoted)];
    await revokeRights(w.admin, name, { rights: ["reveal"], ...web });
    const untouched = await stored(w);
    const refused = { status: 409, error: expect.stringContaining("The plan") };
    expect(await paster.send(pasted, before)).toMatchObject(refused);
    expect(await promoter.send(promoted, copied)).toMatchObject({ status: 404 });
    expect(await shown(promoter, promoted)).toEqual([404, undefined, false]);
    expect(await stored(w)).toBe(untouched);
    expect(await shown(paster, pasted)).toEqual([200, "changed: A , B deleted", false]);
    const now = await paster.hidden(pasted);

    // What the text does not have is named to whoever may see names.
    await revokeRights(w.admin, name, { rights: ["see"], ...web });
    expect((await paster.page(pasted)).html).not.toContain("NOT_IN_TEXT");
    expect(await paster.send(pasted, now)).toMatchObject({ status: 404 });
    await grantRights(w.admin, name, { rights: ["see"], ...web });
    expect(await paster.send(pasted, now)).toMatchObject({ status: 200 });
    expect((await listVariables(w.admin, where, "staging")).map(({ name }) => name)).toEqual(["A", "B"]);
  });
});

function said(html: string): string {
  return html.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");
}
