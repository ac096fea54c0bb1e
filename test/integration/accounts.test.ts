import { describe, expect, test } from "bun:test";
import { deleteAccount, setAccount } from "../../src/admin/accounts.ts";
import { setPlan } from "../../src/admin/organizations.ts";
import { environments } from "../../src/names.ts";
import {
  describeBoth,
  expectMemoryBack,
  expectRefusal,
  firstOf,
  headersOf,
  insertAccounts,
  leaksIn,
  memoryOf,
  numbered,
  usualHeaders,
  type World,
} from "../world.ts";

const reader = { resources: ["accounts"] };

describeBoth("GET /projects/{slug}/accounts", (world) => {
  describe("200", () => {
    test("says environment and accounts, each with name, environments, updatedAt and values, in this order", async () => {
      const w = world();
      const organization = await w.organization();
      w.clock.nowMs = 1_700_000_000_000;
      const { where } = await w.project(organization, "web", {
        accounts: [
          { name: "Mail", environments: ["production", "development"], values: { user: "ci", password: 'p"\\ä\n🦔' } },
          { name: "staging only", environments: ["staging"], values: { token: "the token" } },
        ],
      });
      w.clock.nowMs = 1_700_000_000_777;
      await setAccount(w.desk, where, "Later", ["production"], JSON.parse('{"z":"1","a":"2","__proto__":"3"}'));
      w.clock.nowMs = undefined;
      const key = await w.key(organization, reader);
      const answer = await w.ask("/projects/web/accounts?environment=production", { key });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"environment":"production","accounts":[' +
          '{"name":"Later","environments":["production"],"updatedAt":1700000000777,"values":{"z":"1","a":"2","__proto__":"3"}},' +
          '{"name":"Mail","environments":["development","production"],"updatedAt":1700000000000,' +
          '"values":{"user":"ci","password":"p\\"\\\\ä\\n🦔"}}]}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.value));
      expect((await w.ask("/projects/web/accounts", { key })).json).toMatchObject({
        environment: null,
        accounts: [{ name: "Later" }, { name: "Mail" }, { name: "staging only", values: { token: "the token" } }],
      });
    });

    test("without environment: those in any that the key reaches, and of their environments only those", async () => {
      const w = world();
      const organization = await w.organization();
      const sets = {
        d: ["development"],
        ds: ["development", "staging"],
        dsp: environments,
        p: ["production"],
        sp: ["staging", "production"],
      } as const;
      await w.project(organization, "web", {
        accounts: Object.entries(sets).map(([name, members]) => ({ name, environments: members, values: { a: name } })),
      });
      const seen = async (reach: string[], query: string) => {
        const key = await w.key(organization, { ...reader, environments: reach });
        const { accounts } = (await w.ask(`/projects/web/accounts${query}`, { key })).json as { accounts: Listed[] };
        return Object.fromEntries(
          accounts.map(({ name, environments }) => [name, environments.map((e) => e[0]).join("")]),
        );
      };
      for (const only of ["metadata_only=false", "metadata_only=true"]) {
        expect(await seen([...environments], `?${only}`)).toEqual({ d: "d", ds: "ds", dsp: "dsp", p: "p", sp: "sp" });
        expect(await seen(["development"], `?${only}`)).toEqual({ d: "d", ds: "d", dsp: "d" });
        expect(await seen(["staging"], `?${only}`)).toEqual({ ds: "s", dsp: "s", sp: "s" });
        expect(await seen(["production"], `?${only}`)).toEqual({ dsp: "p", p: "p", sp: "p" });
        expect(await seen(["development", "staging"], `?${only}`)).toEqual({ d: "d", ds: "ds", dsp: "ds", sp: "s" });
        expect(await seen(["staging", "production"], `?${only}`)).toEqual({ ds: "s", dsp: "sp", p: "p", sp: "sp" });
        expect(await seen(["development", "production"], `?${only}`)).toEqual({
          d: "d",
          ds: "d",
          dsp: "dp",
          p: "p",
          sp: "p",
        });
        expect(await seen([...environments], `?environment=staging&${only}`)).toEqual({
          ds: "ds",
          dsp: "dsp",
          sp: "sp",
        });
        expect(await seen(["staging", "production"], `?environment=production&${only}`)).toEqual({
          dsp: "sp",
          p: "p",
          sp: "sp",
        });
      }
    });

    test("is in byte order of name, beyond what UTF-16 orders alike", async () => {
      const w = world();
      const organization = await w.organization();
      const ordered = [
        "  x",
        "!",
        "#1",
        "0",
        "10",
        "9",
        "A",
        "B",
        "Z",
        "_",
        "a",
        "a b",
        "aB",
        "ab",
        "a\u0308",
        "z",
        "~",
        "Ä",
        "É",
        "ß",
        "ä",
        "ё",
        "あ",
        "日本",
        "\ue000",
        "\uff21",
        "\ufffd",
        "𐀀",
        "🦔",
        "🦔a",
        "\u{10fffd}",
      ];
      expect([...ordered].sort()).not.toEqual(ordered); // which is by UTF-16
      const names = [...ordered].sort((a, b) => Bun.hash.crc32(a) - Bun.hash.crc32(b));
      await w.project(organization, "web", {
        accounts: names.map((name) => ({ name, environments: ["staging"], values: { a: name } })),
      });
      for (const environments of [["staging"], ["staging", "production"], ["development", "staging", "production"]]) {
        const key = await w.key(organization, { ...reader, environments });
        for (const query of ["", "?environment=staging", "?metadata_only=true"]) {
          expect(namesOf((await w.ask(`/projects/web/accounts${query}`, { key })).json)).toEqual(ordered);
        }
      }
    });

    test("is an empty list where there is nothing to give", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        accounts: [{ name: "a", environments: ["staging"], values: { a: "1" } }],
      });
      const narrow = await w.key(organization, { ...reader, environments: ["production"] });
      const key = await w.key(organization, reader);
      expect(await w.ask("/projects/web/accounts", { key: narrow })).toMatchObject({
        text: '{"environment":null,"accounts":[]}',
      });
      expect(await w.ask("/projects/web/accounts?environment=production", { key })).toMatchObject({
        text: '{"environment":"production","accounts":[]}',
      });
      expect(await w.ask("/projects/web/accounts?environment=production&metadata_only=true", { key })).toMatchObject({
        text: '{"environment":"production","accounts":[]}',
      });
    });

    test("sees a change, a move to other environments and a deletion on the very next request", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web");
      const key = await w.key(organization, { ...reader, environments: ["staging"] });
      const seen = async () => (await w.ask("/projects/web/accounts", { key })).json;
      await setAccount(w.desk, where, "ci", ["staging", "production"], { a: "1" });
      expect(await seen()).toMatchObject({ accounts: [{ environments: ["staging"], values: { a: "1" } }] });
      await setAccount(w.desk, where, "ci", ["staging"], { b: "2" });
      expect(await seen()).toMatchObject({ accounts: [{ environments: ["staging"], values: { b: "2" } }] });
      await setAccount(w.desk, where, "ci", ["production"], { b: "2" });
      expect(await seen()).toEqual({ environment: null, accounts: [] });
      await setAccount(w.desk, where, "ci", ["development", "staging"], { b: "3" });
      expect(await seen()).toMatchObject({ accounts: [{ environments: ["staging"] }] });
      await deleteAccount(w.desk, where, "ci");
      expect(await seen()).toEqual({ environment: null, accounts: [] });
    });

    test("with metadata_only says name, environments and updatedAt, opens nothing and is not audited", async () => {
      const w = world();
      const organization = await w.organization();
      w.clock.nowMs = 1_700_000_000_000;
      const { id } = await w.project(organization, "web", {
        accounts: [{ name: "ci", environments: ["staging", "production"], values: { a: "an account's value" } }],
      });
      w.clock.nowMs = undefined;
      await w.sql`update accounts set sealed = ${Buffer.from("nothing")} where project_id = ${id}`;
      await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`;
      const key = await w.key(organization, reader);
      const answer = await w.ask("/projects/web/accounts?metadata_only=true", { key });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"environment":null,"accounts":[{"name":"ci","environments":["staging","production"],"updatedAt":1700000000000}]}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
      const one = await w.ask("/projects/web/accounts?metadata_only=true&environment=staging", { key });
      expect(one.text).toBe(answer.text.replace("null", '"staging"'));
      expect(await w.audit(key)).toEqual([]);
    });

    test("leaves one entry for each call that gave values, with the names and no value", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web", {
        accounts: [
          { name: "b 🦔", environments: ["staging"], values: { password: "first account's value" } },
          { name: "a", environments: ["staging", "production"], values: { password: "second account's value" } },
        ],
      });
      const key = await w.key(organization, reader);
      await w.ask("/projects/web/accounts", { key, headers: { "x-request-id": "one" } });
      await w.ask("/projects/web/accounts?environment=production", { key, headers: { "x-request-id": "two" } });
      await w.ask("/projects/web/accounts?environment=development&metadata_only=false", { key });
      const common = { keyId: key.id, organization: organization.slug, project: project.slug, action: "accounts.read" };
      expect(await w.audit(key)).toMatchObject([
        { ...common, environment: null, names: ["a", "b 🦔"], count: 2, requestId: "one" },
        { ...common, environment: "production", names: ["a"], count: 1, requestId: "two" },
        { ...common, environment: "development", names: [], count: 0 },
      ]);
      const rows = await w.sql`select * from audit_entries where key_id = ${key.id}`;
      expect(leaksIn(w.secrets, JSON.stringify(rows))).toEqual([]);
    });
  });

  describe("401", () => {
    test("is for a request without a key", async () => {
      expectRefusal(await world().ask("/projects/web/accounts"), 401, "unauthorized", "A valid API key is required.");
    });
  });

  describe("403", () => {
    test("plan_required, surface_required and resource_required, the last for a key of variables alone", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        accounts: [{ name: "a", environments: ["staging"], values: { a: "1" } }],
      });
      const key = await w.key(organization, reader);
      await setPlan(w.desk, organization.slug, "free");
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({
        status: 403,
        json: { code: "plan_required" },
      });
      await setPlan(w.desk, organization.slug, "pro");
      const surfaces = await w.key(organization, { ...reader, surfaces: ["ci_action", "mcp_server"] });
      expect(await w.ask("/projects/web/accounts", { key: surfaces })).toMatchObject({
        json: { code: "surface_required" },
      });
      for (const resources of [["variables"], ["projects", "variables", "files", "requests"]]) {
        const other = await w.key(organization, { resources });
        const answer = await w.ask("/projects/web/accounts", { key: other });
        expectRefusal(answer, 403, "resource_required", "This key may not read this kind of resource.");
      }
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({ status: 200 });
    });

    test("environment_not_in_scope, whether or not there is such a project", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        accounts: [{ name: "a", environments: ["staging"], values: { a: "1" } }],
      });
      const key = await w.key(organization, { ...reader, environments: ["production"] });
      for (const path of [
        "web/accounts?environment=staging",
        "nowhere/accounts?environment=development&metadata_only=true",
      ]) {
        const answer = await w.ask(`/projects/${path}`, { key });
        expectRefusal(answer, 403, "environment_not_in_scope", "This key may not read this environment.");
      }
    });
  });

  describe("404", () => {
    test("project_not_found alike for a project that is absent, out of scope and of another organization", async () => {
      const w = world();
      const [organization, other] = [await w.organization(), await w.organization()];
      for (const slug of ["web", "api"]) await w.project(organization, slug);
      await w.project(other, "elsewhere");
      const key = await w.key(organization, { ...reader, projects: ["web"] });
      for (const slug of ["api", "elsewhere", "nowhere", "%zz"]) {
        for (const [query, bucket] of [
          ["", firstOf.value],
          ["?metadata_only=true", firstOf.metadata],
        ] as const) {
          const answer = await w.client().ask(`/projects/${slug}/accounts${query}`, { key });
          expectRefusal(answer, 404, "project_not_found", "No such project, or this key may not read it.");
          expect(headersOf(answer)).toEqual(usualHeaders(bucket));
        }
      }
      expect(await w.audit(key)).toEqual([]);
    });
  });

  describe("422", () => {
    test("1000 accounts are given and 1001 refused, counted over what the key reaches and asks for", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web");
      const names = numbered("account ", 1000);
      await insertAccounts(w, organization, project, names, ["staging"]);
      await insertAccounts(w, organization, project, ["of production"], ["production"]);
      const key = await w.key(organization, { ...reader, environments: ["staging", "development"] });
      for (const query of [
        "",
        "?environment=staging",
        "?metadata_only=true",
        "?environment=staging&metadata_only=true",
      ]) {
        expect(namesOf((await w.ask(`/projects/web/accounts${query}`, { key })).json)).toEqual(names);
      }
      const every = await w.key(organization, reader);
      expect(namesOf((await w.ask("/projects/web/accounts?environment=staging", { key: every })).json)).toEqual(names);
      expect(namesOf((await w.ask("/projects/web/accounts?environment=production", { key: every })).json).length).toBe(
        1,
      );
      expectRefusal(await w.ask("/projects/web/accounts", { key: every }), 422, "too_many_items", tooMany);
      expectRefusal(
        await w.ask("/projects/web/accounts?metadata_only=true", { key: every }),
        422,
        "too_many_items",
        tooMany,
      );

      await insertAccounts(w, organization, project, ["one more"], ["staging"]);
      for (const query of [
        "",
        "?environment=staging",
        "?metadata_only=true",
        "?environment=staging&metadata_only=true",
      ]) {
        expectRefusal(await w.ask(`/projects/web/accounts${query}`, { key }), 422, "too_many_items", tooMany);
      }
      expect((await w.audit(key)).map(({ count }) => count)).toEqual([1000, 1000]);
      expect((await w.audit(every)).map(({ count }) => count)).toEqual([1000, 1]);
    });
  });

  describe("503", () => {
    const damages: readonly (readonly [string, (w: World, id: string, other: string) => Promise<unknown>])[] = [
      ["a flipped bit", (w, id) => flip(w, id, 40)],
      ["a flipped bit of the tag", (w, id) => flip(w, id, -1)],
      [
        "a value cut short",
        (w, id) => w.sql`update accounts set sealed = ${Buffer.alloc(20)} where project_id = ${id} and name = 'b'`,
      ],
      ["another name", (w, id) => w.sql`update accounts set name = 'bb' where project_id = ${id} and name = 'b'`],
      ["another id", (w, id) => w.sql`update accounts set id = 'x' where project_id = ${id} and name = 'b'`],
      ["another version", (w, id) => w.sql`update accounts set version = 7 where project_id = ${id} and name = 'b'`],
      [
        "one environment more",
        (w, id) => w.sql`update accounts set environments = 7 where project_id = ${id} and name = 'b'`,
      ],
      [
        "one environment less",
        (w, id) => w.sql`update accounts set environments = 2 where project_id = ${id} and name = 'b'`,
      ],
      [
        "the value of a neighbour",
        (w, id) =>
          w.sql`update accounts set sealed = (select sealed from accounts where project_id = ${id} and name = 'a')
            where project_id = ${id} and name = 'b'`,
      ],
      [
        "the row of another project",
        async (w, id, other) => {
          await w.sql`delete from accounts where project_id = ${id} and name = 'b'`;
          await w.sql`update accounts set project_id = ${id} where project_id = ${other} and name = 'b'`;
        },
      ],
      [
        "a data key that does not open",
        (w, id) => w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`,
      ],
    ];
    test.each(damages)("decryption_failed for all, where one of them has %s", async (_, damage) => {
      const w = world();
      const organization = await w.organization();
      const accounts = ["a", "b", "c"].map((name) => ({
        name,
        environments: ["staging", "production"] as const,
        values: { password: `the password of ${name}` },
      }));
      const { id } = await w.project(organization, "web", { accounts });
      const other = await w.project(organization, "other", { accounts });
      const key = await w.key(organization, reader);
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({ status: 200 });
      await damage(w, id, other.id);
      for (const query of ["", "?environment=staging"]) {
        const answer = await w.ask(`/projects/web/accounts${query}`, { key });
        expectRefusal(
          answer,
          503,
          "decryption_failed",
          "Decryption failed for one or more items; nothing is returned.",
        );
      }
      expect((await w.audit(key)).length).toBe(1);
      expect(await w.ask("/projects/web/accounts?metadata_only=true", { key })).toMatchObject({ status: 200 });
    });

    test("decryption_failed only where the damaged one is in what is asked for", async () => {
      const w = world();
      const organization = await w.organization();
      const { id } = await w.project(organization, "web", {
        accounts: [
          { name: "a", environments: ["staging"], values: { a: "1" } },
          { name: "b", environments: ["production"], values: { b: "1" } },
        ],
      });
      await flip(w, id, 40);
      const key = await w.key(organization, reader);
      expect(await w.ask("/projects/web/accounts?environment=staging", { key })).toMatchObject({ status: 200 });
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({ status: 503 });
      const narrow = await w.key(organization, { ...reader, environments: ["staging"] });
      expect(await w.ask("/projects/web/accounts", { key: narrow })).toMatchObject({ status: 200 });
    });

    test("unavailable where the entry cannot be written: no value leaves, names do", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        accounts: [{ name: "a", environments: ["staging"], values: { a: "value that stays" } }],
      });
      const key = await w.key(organization, reader);
      await w.run("alter table audit_entries rename to audit_gone");
      const answer = await w.ask("/projects/web/accounts", { key });
      const names = await w.ask("/projects/web/accounts?metadata_only=true", { key });
      await w.run("alter table audit_gone rename to audit_entries");
      expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      expect(names).toMatchObject({ status: 200 });
    });

    test("unavailable while the database cannot answer", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web");
      const key = await w.key(organization, reader);
      await w.run("alter table accounts rename to accounts_gone");
      const answers = [
        await w.ask("/projects/web/accounts", { key }),
        await w.ask("/projects/web/accounts?metadata_only=true", { key }),
      ];
      await w.run("alter table accounts_gone rename to accounts");
      for (const answer of answers) {
        expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      }
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({ status: 200 });
    });
  });

  test("memory of a large answer is given back however it ends, and a small one waits for no large one", async () => {
    const w = world();
    const organization = await w.organization();
    const accounts = numbered("a", 20).map((name) => ({
      name,
      environments: ["staging" as const],
      values: { token: `${name} "🦔\n`.repeat(2000) },
    }));
    const small = { name: "small", environments: ["production" as const], values: { token: "of the small one" } };
    await w.project(organization, "web", { accounts: [...accounts, small] });
    const key = await w.key(organization, reader);
    const answer = await expectMemoryBack(w, "/projects/web/accounts?environment=staging", key, 20 * 26_000);
    const read = answer.json as { accounts: { name: string; values: object }[] };
    expect(read.accounts.map(({ name, values }) => ({ name, values }))).toEqual(
      accounts.map(({ name, values }) => ({ name, values })),
    );
    expect(answer.text).toBe(JSON.stringify(read));

    const memory = memoryOf(10_000_000, 1);
    const { ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
    expect((await ask("/projects/web/accounts?environment=production", { key })).status).toBe(200);
    expect(memory.taken()).toEqual([0, 0]);
  });

  test("neither key nor value was logged", () => {
    const w = world();
    expect(w.secrets.size).toBeGreaterThan(20);
    expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
  });
});

const tooMany = "The answer would hold more than 1000 items; narrow the request or use a narrower key.";

type Listed = { readonly name: string; readonly environments: readonly string[] };

function namesOf(json: unknown): string[] {
  return (json as { accounts: Listed[] }).accounts.map(({ name }) => name);
}

/** Flips a bit of what the account b is sealed as. */
async function flip(w: World, projectId: string, at: number): Promise<void> {
  const [row] = await w.sql`select sealed from accounts where project_id = ${projectId} and name = 'b'`;
  const sealed = row?.["sealed"] as Buffer;
  const index = at < 0 ? sealed.length + at : at;
  sealed[index] = (sealed[index] as number) ^ 1;
  await w.sql`update accounts set sealed = ${sealed} where project_id = ${projectId} and name = 'b'`;
}
