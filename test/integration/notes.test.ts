/** Notes of items: who sees them, what keeps them, and that no machine gets one or sees it change. */
import { expect, test } from "bun:test";
import { Refused } from "../../src/core/refused.ts";
import { listAccounts } from "../../src/kinds/accounts/write.ts";
import { listFiles, putFile } from "../../src/kinds/files/write.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { exportOrganization } from "../../src/people/backup/export.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { find } from "../../src/people/projects/find.ts";
import { describeApi } from "../../src/serve/api/description.ts";
import { connectAgent, mcpClient } from "../support/mcp.ts";
import { visitorOf } from "../support/pages.ts";
import { personIn } from "../support/persons.ts";
import {
  copyVariables,
  planRollback,
  purgeHistory,
  rollBack,
  setAccount,
  setVariables,
  wouldSet,
} from "../support/plans.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

const note = 'Made in the "Stripe" dashboard, finance rotates it';

/** A project with an item of each kind that has a note. */
async function placed(w: World) {
  const { organization, project } = await w.place();
  const { where } = project;
  await setVariables(w.admin, where, "staging", [{ name: "TOKEN", value: "secret-one", note }]);
  await setAccount(w.admin, where, "mail", ["staging"], { password: "secret-two" }, { note });
  const content = Buffer.from("secret-three");
  await putFile(w.admin, where, { path: "tls/a.pem", environments: ["staging"], content, note });
  return { where, organization, project, content };
}

async function noteOf(w: World, where: string, environment = "staging") {
  return (await listVariables(w.admin, where, environment)).find(({ name }) => name === "TOKEN")?.note;
}

describeBoth("the note of an item", (w, _, once) => {
  test("is shown with the names of each kind, found, and exported", async () => {
    const { where, organization } = await placed(w);
    expect(await noteOf(w, where)).toBe(note);
    expect(await listAccounts(w.admin, where)).toMatchObject([{ name: "mail", note }]);
    expect(await listFiles(w.admin, where)).toMatchObject([{ path: "tls/a.pem", note }]);
    for (const kind of ["variables", "accounts", "files"]) {
      const { items } = await compareEnvironments(w.admin, where, kind);
      expect(items.map(({ environments }) => environments.staging?.note)).toEqual([note]);
    }
    for (const part of ["finance", "FINANCE rotates", '"stripe"']) {
      const { found } = await find(w.admin, part, organization.slug);
      expect(found.map(({ name, note }) => [name, note])).toEqual(
        ["TOKEN", "mail", "tls/a.pem"].map((name) => [name, note]),
      );
    }
    expect((await find(w.admin, "token finance", organization.slug)).found).toMatchObject([{ name: "TOKEN" }]);
    const files = new Map<string, string>();
    for await (const { path, content } of exportOrganization(w.admin, organization.slug, { formats: [], warn() {} })) {
      files.set(path, String(Buffer.from(content)));
    }
    const notes = [...files].filter(([path]) => path.endsWith("-notes.json"));
    expect(notes.map(([path, text]) => [path, JSON.parse(text)]).sort()).toEqual([
      ["web/staging/accounts-notes.json", { mail: note }],
      ["web/staging/files-notes.json", { "tls/a.pem": note }],
      ["web/staging/variables-notes.json", { TOKEN: note }],
    ]);
  });

  test("stays through every write that gives none, and goes with an empty one", async () => {
    const { where, content } = await placed(w);
    await setVariables(w.admin, where, "staging", [{ name: "TOKEN", value: "another" }]);
    await setAccount(w.admin, where, "mail", ["staging"], { password: "another" });
    await putFile(w.admin, where, { path: "tls/a.pem", environments: ["staging"], content });
    expect(await noteOf(w, where)).toBe(note);
    expect(await listAccounts(w.admin, where)).toMatchObject([{ note }]);
    expect(await listFiles(w.admin, where)).toMatchObject([{ note }]);
    await setVariables(w.admin, where, "staging", [{ name: "TOKEN", note: " \n" }]);
    await setAccount(w.admin, where, "mail", ["staging"], {}, { merge: true, note: "" });
    await putFile(w.admin, where, { path: "tls/a.pem", environments: ["staging"], content, note: "" });
    expect(await noteOf(w, where)).toBeUndefined();
    expect((await listAccounts(w.admin, where))[0]?.note).toBeUndefined();
    expect((await listFiles(w.admin, where))[0]?.note).toBeUndefined();
  });

  test("is in the history as a change, and a rollback brings it back", async () => {
    const { where } = await placed(w);
    const [before] = await listVariables(w.admin, where, "staging");
    await setVariables(w.admin, where, "staging", [{ name: "TOKEN", note: "wrong" }]);
    const set = { where, environment: "staging", kind: "variables" } as const;
    const { versions } = await listHistory(w.admin, set);
    expect(versions[0]).toMatchObject({ version: 3, added: [], changed: ["TOKEN"], deleted: [] });
    expect((await listVariables(w.admin, where, "staging"))[0]).toEqual({ ...before, note: "wrong" } as never);
    await rollBack(w.admin, set, await planRollback(w.admin, set, 2));
    expect(await noteOf(w, where)).toBe(note);
  });

  test("goes along with a copy by somebody who may see it, and with no other", async () => {
    const { where } = await placed(w);
    const [from, to] = ["staging", "production"].map((environment) => ({ project: where, environment })) as never[];
    const blind = await personIn(w.admin, where, ["reveal", "write"]);
    for (const guess of [note, "a guess"]) {
      const given = [{ name: "TOKEN", value: "secret-one", note: guess }];
      const { changed } = await wouldSet(blind, where, "staging", given);
      expect([guess, changed]).toEqual([guess, ["TOKEN"]]);
    }
    await copyVariables(blind, from as never, to as never);
    expect([await noteOf(w, where, "production"), await noteOf(w, where)]).toEqual([undefined, note]);
    expect(await copyVariables(w.admin, from as never, to as never)).toMatchObject({ changed: ["TOKEN"], same: [] });
    expect(await noteOf(w, where, "production")).toBe(note);
    expect(await copyVariables(w.admin, from as never, to as never)).toMatchObject({ same: ["TOKEN"] });
  });

  once("has one line of at most 500 characters, and needs an item", async () => {
    const { where } = await placed(w);
    const write = (name: string, note: string) => setVariables(w.admin, where, "staging", [{ name, note }]);
    await write("TOKEN", ` two\r\n\tlines ${"\u{1F511}".repeat(490)}`);
    expect(await noteOf(w, where)).toBe(`two lines ${"\u{1F511}".repeat(490)}`);
    for (const bad of ["a".repeat(501), "a\0b", "\u001b[2J", "\ud800"]) {
      await expect(write("TOKEN", bad)).rejects.toThrow("The note of TOKEN must have at most 500 characters");
      await expect(setAccount(w.admin, where, "mail", ["staging"], {}, { merge: true, note: bad })).rejects.toThrow(
        Refused,
      );
    }
    await expect(write("MISSING", "a note")).rejects.toThrow("MISSING is not in staging: give it a value.");
  });

  test("does not verify if SQL changed it", async () => {
    const { where, project } = await placed(w);
    await w.sql`update sets set listing = replace(listing, 'finance', 'nobody') where project_id = ${project.id}`;
    await expect(listVariables(w.admin, where, "staging")).rejects.toMatchObject({ kind: "conflict" });
  });

  test("reaches no machine: no route, no tool, and no tag that a watch goes by", async () => {
    const { where, organization } = await placed(w);
    const key = await w.key(organization, everything);
    const queries = ["environment=staging", "environment=staging&metadata_only=true", "environment=staging&keys=TOKEN"];
    const all = ["", ...queries, "metadata_only=true", `${queries[0]}&metadataOnly=1`, `${queries[0]}&format=env`];
    const tags = new Map<string, string>();
    for (const template of Object.keys(describeApi("test").paths)) {
      const path = template.replace("{slug}", "web");
      const answers = await Promise.all(
        all
          .flatMap((query) => [query, `project=web&${query}`])
          .map(async (query) => {
            const answer = await w.client().ask(`${path}?${query}`, { key });
            const tag = answer.headers.get("etag");
            if (tag !== null && path !== "/files") tags.set(`${path}?${query}`, tag);
            return answer;
          }),
      );
      expect([template, answers.some(({ status }) => status === 200)]).toEqual([template, true]);
      expect([template, answers.filter(({ text }) => /finance|note/i.test(text))]).toEqual([template, []]);
    }
    const agent = await connectAgent(mcpClient(w), key);
    const given = { project: "web", environment: "staging", names: ["TOKEN"], name: "TOKEN", reason: "why", id: "0" };
    for (const { name, inputSchema } of (await agent.client.listTools()).tools) {
      const taken = Object.keys(inputSchema.properties ?? {});
      await agent.call(name, Object.fromEntries(Object.entries(given).filter(([input]) => taken.includes(input))));
    }
    expect(agent.received.join("")).toContain("tls/a.pem");
    expect(agent.received.join("")).not.toMatch(/finance/i);
    await setVariables(w.admin, where, "staging", [{ name: "TOKEN", note: "other", rotateBy: "2099-01-31" }]);
    await setAccount(w.admin, where, "mail", ["staging"], {}, { merge: true, note: "other" });
    expect(tags.size).toBeGreaterThan(8);
    for (const [path, tag] of tags) {
      const { status } = await w.client().ask(path, { key, headers: { "if-none-match": tag } });
      expect([path, status]).toEqual([path, 304]);
    }
  });

  once("is shown by the page of an item, hinted at in the grid, and changed by the form, without a value", async () => {
    const { where } = await placed(w);
    await setVariables(w.admin, where, "development", [{ name: "TOKEN", value: "1", note }]);
    const visitor = await visitorOf(w);
    const at = (page: string) => `/p/${where}/${page}`;
    const shown = async (page: string) => (await visitor.page(at(page))).html.replaceAll("&quot;", '"');
    for (const page of ["variables/item?name=TOKEN", "accounts/item?name=mail", "files/item?name=tls/a.pem"]) {
      expect(await shown(page)).toContain(note);
      expect(await shown(page.replace(/\/item.*/, ""))).toContain('title="Made in the');
    }
    const save = async (kind: string, name: string, fields: Record<string, string>) => {
      const [page, action] = [at(`${kind}/set?name=${name}`), at(`${kind}/set`)];
      const form = (await visitor.form(page, action)) ?? {};
      return [form["note"], (await visitor.send(action, { ...form, ...fields })).status];
    };
    expect(await save("variables", "TOKEN", { note: "new" })).toEqual([note, 200]);
    expect([await noteOf(w, where), await noteOf(w, where, "development")]).toEqual(["new", "new"]);
    expect(await save("accounts", "mail", { note: "new", environment: "staging" })).toEqual([note, 200]);
    expect(await listAccounts(w.admin, where)).toMatchObject([{ note: "new" }]);
    // Notes that differ stay unless somebody types one for all.
    await setVariables(w.admin, where, "staging", [{ name: "TOKEN", note: "of staging" }]);
    expect(await save("variables", "TOKEN", { "value.staging": "2" })).toEqual(["", 200]);
    expect([await noteOf(w, where), await noteOf(w, where, "development")]).toEqual(["of staging", "new"]);
    expect(await save("variables", "TOKEN", {})).toEqual(["", 400]);
    // Nor does a form that is sent all the same take back a note that it did not show.
    for (const kind of ["variables", "accounts"]) {
      const name = kind === "variables" ? "TOKEN" : "mail";
      const form = {
        ...(await visitor.form(at(`${kind}/set?name=${name}`), at(`${kind}/set`))),
        environment: "staging",
      };
      const field = { ...form, field: "password", stored: "password", "value.staging": "3" };
      if (kind === "variables") await setVariables(w.admin, where, "staging", [{ name, note: "since" } as never]);
      else await setAccount(w.admin, where, "mail", ["staging"], {}, { merge: true, note: "since" });
      const first = await visitor.send(at(`${kind}/set`), field);
      // Another field of an account changed, which is no collision.
      expect(first.status).toBe(kind === "variables" ? 409 : 200);
      if (kind === "accounts") continue;
      const again = await visitor.send(at(`${kind}/set`), { ...field, ...first.unlessSeen });
      expect(again.status).toBe(200);
    }
    expect([await noteOf(w, where), (await listAccounts(w.admin, where))[0]?.note]).toEqual(["since", "since"]);
    expect(await save("variables", "TOKEN", { note: "a".repeat(501) })).toEqual(["", 400]);
    // Who wrote the value is not who wrote the note.
    const ben = await personIn(w.admin, where, ["see", "write"]);
    await setVariables(ben, where, "staging", [{ name: "TOKEN", note: "of ana" }]);
    const card = await shown("variables/item?name=TOKEN");
    expect([card.includes("of ana"), card.includes("by <bdi>ann@host</bdi>"), card.includes("by <bdi>ana")]).toEqual([
      true,
      true,
      false,
    ]);
    // Nor is it when the record of who did is gone.
    await purgeHistory(w.admin, { where, environment: "staging", kind: "variables" });
    expect(await shown("variables/item?name=TOKEN")).not.toContain("by <bdi>ana");
    await setVariables(w.admin, where, "development", [{ name: "TOKEN", note: "\u202enepo" }]);
    expect(await shown("variables")).toContain('title="\\u202enepo"');
    const text = { environment: "staging", text: "# why it is here\nPASTED=1\n" };
    for (const notes of [{}, { notes: "yes" }]) {
      const { to = "" } = await visitor.send(at("variables/paste"), { ...text, ...notes });
      await visitor.send(to, await visitor.hidden(to));
    }
    expect(await listVariables(w.admin, where, "staging")).toMatchObject([
      { note: "why it is here" },
      { note: "of ana" },
    ]);
  });
});
