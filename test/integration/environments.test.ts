/** The environments that a project uses: pages leave out the others, and nothing new is written there. */

import { expect, test } from "bun:test";
import { environments } from "../../src/core/names.ts";
import { Refused } from "../../src/core/refused.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { createProject, listProjects, setProjectEnvironments } from "../../src/people/projects/projects.ts";
import { deleteVariable } from "../support/delete.ts";
import { visitorOf } from "../support/pages.ts";
import { copyVariables, setAccount, setVariables } from "../support/plans.ts";
import { stored } from "../support/rows.ts";
import { describeBoth, type World } from "../support/world.ts";

const used = ["development", "production"] as const;

/** A project that does not use staging, with a variable and an account in production. */
async function place(w: World) {
  const { organization, where } = await w.place({
    variables: { production: { TOKEN: "canary-production" } },
    accounts: [{ name: "mail", environments: ["production"], values: { user: "canary-user" } }],
  });
  await setProjectEnvironments(w.admin, where, used);
  return { organization, where };
}

/** What a page shows of each environment: whether it names it. */
function named(html = ""): string[] {
  return environments.filter((environment) => html.includes(environment));
}

describeBoth("a project", (w) => {
  test("uses all three environments, unless it says otherwise at its creation or later", async () => {
    const { slug } = await w.organization();
    expect(await createProject(w.admin, `${slug}/all`, {})).toMatchObject({ environments });
    const asked = { environments: ["production", "development"] };
    expect(await createProject(w.admin, `${slug}/some`, asked)).toMatchObject({ environments: used });
    await setProjectEnvironments(w.admin, `${slug}/all`, ["production"]);
    expect((await listProjects(w.admin, slug)).map(({ environments }) => environments)).toEqual([["production"], used]);
    const none = createProject(w.admin, `${slug}/none`, { environments: [] });
    await expect(none).rejects.toThrow("at least one environment");
    await expect(createProject(w.admin, `${slug}/none`, { environments: ["test"] })).rejects.toThrow(Refused);
  });

  test("takes no new item in an environment that it does not use, by no way, and says what adds it", async () => {
    const { where } = await place(w);
    const before = await stored(w);
    const content = Buffer.from("x");
    const ways = [
      () => setVariables(w.admin, where, "staging", [{ name: "NEW", value: "1" }]),
      () =>
        copyVariables(
          w.admin,
          { project: where, environment: "production" },
          { project: where, environment: "staging" },
        ),
      () => setAccount(w.admin, where, "ci", ["staging", "production"], { user: "x" }),
      () => putFile(w.admin, where, { path: "a.pem", environments: ["staging"], content }),
    ];
    const sentence =
      `${where} does not use staging. To use it, run ` +
      `\`keyhole project environments ${where} --env development,staging,production\`.`;
    for (const way of ways) {
      expect(await way().catch((error: unknown) => error)).toEqual(new Refused("invalid", sentence));
    }
    expect(await stored(w)).toEqual(before);
    await setProjectEnvironments(w.admin, where, environments);
    for (const way of ways) await way();
  });

  test("keeps an environment in use as long as it has an item there", async () => {
    const { where } = await place(w);
    const before = await stored(w);
    const without = setProjectEnvironments(w.admin, where, ["development"]);
    const sentence = `${where} still has items in production: delete them first.`;
    expect(await without.catch((error: unknown) => error)).toEqual(new Refused("conflict", sentence));
    expect(await stored(w)).toEqual(before);
  });

  test("answers machines as before", async () => {
    const { organization } = await place(w);
    const { key } = await w.key(organization);
    expect((await w.ask("/projects/web", { key })).json).toMatchObject({ environments });
    const empty = { environment: "staging", variables: [] };
    expect((await w.ask("/projects/web/variables?environment=staging", { key })).json).toEqual(empty);
  });

  test("is shown on pages without the environments that it does not use", async () => {
    const { where } = await place(w);
    const visitor = await visitorOf(w);
    const pages = ["variables", "variables/item?name=TOKEN", "variables/set?name=TOKEN", "variables/set"];
    const more = "variables/promote variables/paste accounts accounts/set accounts/item?name=mail files".split(" ");
    for (const page of [...pages, ...more]) {
      const { html } = await visitor.page(`/p/${where}/${page}`);
      const main = html?.slice(html.indexOf("<main")).replaceAll(/<input type="hidden"[^>]*>/g, "");
      expect([page, named(main)]).toEqual([page, page === "files" ? [] : [...used]]);
    }
    const at = `/p/${where}/variables/set`;
    const fields = { "value.development": "canary-development", "value.production": "", name: "NEW" };
    expect(await visitor.send(at, { ...(await visitor.hidden(at, at)), ...fields })).toMatchObject({ status: 200 });
  });

  test("shows an environment that has something all the same, where it can be changed and deleted", async () => {
    const { where } = await place(w);
    await w.sql`update projects set environments = 1 where slug = 'web'`;
    const { environments: shown } = await compareEnvironments(w.admin, where, "variables");
    expect(shown).toEqual([...used]);
    await setVariables(w.admin, where, "production", [{ name: "TOKEN", value: "canary-changed" }]);
    const set = setVariables(w.admin, where, "production", [{ name: "NEW", value: "1" }]);
    await expect(set).rejects.toThrow("does not use");
    await deleteVariable(w.admin, where, "production", "TOKEN");
    expect((await compareEnvironments(w.admin, where, "variables")).environments).toEqual(["development"]);
  });
});
