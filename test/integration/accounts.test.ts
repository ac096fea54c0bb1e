import { describe, expect, test } from "bun:test";
import { deleteAccount, setAccount } from "../../src/admin/accounts.ts";
import { writingProject } from "../../src/admin/projects.ts";
import { writeSets } from "../../src/admin/sets.ts";
import { type Environment, environments } from "../../src/names.ts";
import { RememberedSets } from "../../src/read/lookup.ts";
import { accounts as kind } from "../../src/seal/kinds.ts";
import {
  describeBoth,
  expectMemoryBack,
  expectRefusal,
  firstOf,
  flipBit,
  headersOf,
  insertAccounts,
  leaksIn,
  memoryWithoutLarge,
  numbered,
  type Placed,
  usualHeaders,
  type World,
} from "../world.ts";

const reader = { resources: ["accounts"] };

describeBoth("GET /projects/{slug}/accounts", (world) => {
  describe("200", () => {
    test("has environment and accounts, each with name, environments, updatedAt and values, in this order", async () => {
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
      await setAccount(w.admin, where, "Later", ["production"], JSON.parse('{"z":"1","a":"2","__proto__":"3"}'));
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

    test("has only accounts in environments that the key reaches, and names only those environments", async () => {
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

    test("is in byte order of name, which is not the order of UTF-16", async () => {
      const w = world();
      const organization = await w.organization();
      const ordered =
        "  x|!|#1|0|10|9|A|B|Z|_|a|a b|aB|ab|a\u0308|z|~|Ä|É|ß|ä|ё|あ|日本|\ue000|\uff21|\ufffd|𐀀|🦔|🦔a|\u{10fffd}".split(
          "|",
        );
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

    test("is an empty list if nothing matches", async () => {
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

    test("shows a change, a move to other environments and a deletion on the very next request", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web");
      const key = await w.key(organization, { ...reader, environments: ["staging"] });
      const seen = async () => (await w.ask("/projects/web/accounts", { key })).json;
      await setAccount(w.admin, where, "ci", ["staging", "production"], { a: "1" });
      expect(await seen()).toMatchObject({ accounts: [{ environments: ["staging"], values: { a: "1" } }] });
      await setAccount(w.admin, where, "ci", ["staging"], { b: "2" });
      expect(await seen()).toMatchObject({ accounts: [{ environments: ["staging"], values: { b: "2" } }] });
      await setAccount(w.admin, where, "ci", ["production"], { b: "2" });
      expect(await seen()).toEqual({ environment: null, accounts: [] });
      await setAccount(w.admin, where, "ci", ["development", "staging"], { b: "3" });
      expect(await seen()).toMatchObject({ accounts: [{ environments: ["staging"] }] });
      await deleteAccount(w.admin, where, "ci");
      expect(await seen()).toEqual({ environment: null, accounts: [] });
    });

    test("with metadata_only has name, environments and updatedAt, decrypts nothing and is not audited", async () => {
      const w = world();
      const organization = await w.organization();
      w.clock.nowMs = 1_700_000_000_000;
      const { id } = await w.project(organization, "web", {
        accounts: [{ name: "ci", environments: ["staging", "production"], values: { a: "an account's value" } }],
      });
      w.clock.nowMs = undefined;
      await w.sql`update sets set sealed = ${Buffer.from("nothing")} where project_id = ${id}`;
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

    test("has the values and updatedAt of the asked environment, or of the one that changed last", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web");
      const times = { development: 1000, staging: 3000, production: 2000 };
      for (const environment of environments) await writeOne(w, project, environment, times[environment]);
      const seen = async (query: string, ...reach: Environment[]) => {
        const key = await w.key(organization, { ...reader, environments: reach });
        const [values, names] = await Promise.all(
          ["false", "true"].map(async (only) => {
            const path = `/projects/web/accounts?metadata_only=${only}${query}`;
            return ((await w.client().ask(path, { key })).json as { accounts: object[] }).accounts;
          }),
        );
        const [{ values: fields, ...record }] = values as [{ values: { a: string } }];
        expect(names).toEqual([record]);
        return [fields.a, (record as unknown as { updatedAt: number }).updatedAt];
      };
      for (const environment of environments) {
        const expected = [`of ${environment}`, times[environment]];
        expect(await seen(`&environment=${environment}`, ...environments)).toEqual(expected);
        expect(await seen("", environment)).toEqual(expected);
      }
      expect(await seen("", ...environments)).toEqual(["of staging", 3000]);
      expect(await seen("", "development", "production")).toEqual(["of production", 2000]);
      await writeOne(w, project, "development", 4000);
      expect(await seen("", ...environments)).toEqual(["of development", 4000]);
      expect(await seen("&environment=staging", ...environments)).toEqual(["of staging", 3000]);
    });

    test("leaves one audit entry for each call that returned values, with the names and no value", async () => {
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

  describe("422", () => {
    test("1000 accounts are answered and 1001 refused, counted in the environments that are asked for and reached", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web");
      const names = numbered("account ", 1000);
      await insertAccounts(w, project, names, ["staging"]);
      await insertAccounts(w, project, ["of production"], ["production"]);
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

      await insertAccounts(w, project, ["one more"], ["staging"]);
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
    type Damage = (w: World, id: string, other: string) => Promise<unknown>;
    const damages: readonly (readonly [string, Damage])[] = [
      ["a flipped bit of the values", (w, id) => flip(w, id, 40)],
      ["a flipped bit of the tag", (w, id) => flip(w, id, -1)],
      ["values cut short", (w, id) => stagingOf(w, id, "sealed = ?", [Buffer.alloc(20)])],
      ["the values of another environment", (w, id) => stagingOf(w, id, `sealed = ${other}`, [id, "production"])],
      ["the values of another project", (w, id, from) => stagingOf(w, id, `sealed = ${other}`, [from, "staging"])],
      [
        "a data key that does not open",
        (w, id) => w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`,
      ],
    ];
    const listings: readonly (readonly [string, Damage])[] = [
      ["another version", (w, id) => stagingOf(w, id, "version = 7", [])],
      ["another name", (w, id) => stagingOf(w, id, "listing = replace(listing, '\"b\"', '\"B\"')", [])],
      ["one account less", (w, id) => stagingOf(w, id, "listing = replace(listing, '{\"name\":\"b\"', '')", [])],
      ["an empty listing", (w, id) => stagingOf(w, id, "listing = '[]'", [])],
      ["no row", (w, id) => w.sql`delete from sets where project_id = ${id} and kind = 'accounts'`],
    ];
    test.each([...damages, ...listings])("decryption_failed for a set with %s", async (name, damage) => {
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
      // Without environment the values of staging are the ones that count.
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({ status: 200 });
      await damage(w, id, other.id);
      const expected = { status: 503, json: { code: "decryption_failed" } };
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject(expected);
      expect(await w.ask("/projects/web/accounts?environment=staging", { key })).toMatchObject(expected);
      expect((await w.audit(key)).length).toBe(1);
      const names = await w.ask("/projects/web/accounts?metadata_only=true", { key });
      expect(names.status).toBe(listings.some(([listing]) => listing === name) ? 503 : 200);
    });

    test("decryption_failed only if the damaged values are asked for", async () => {
      const w = world();
      const organization = await w.organization();
      const { id } = await w.project(organization, "web", {
        accounts: [
          { name: "a", environments: ["production"], values: { a: "1" } },
          { name: "b", environments: ["staging"], values: { b: "1" } },
        ],
      });
      await flip(w, id, 40);
      const key = await w.key(organization, reader);
      expect(await w.ask("/projects/web/accounts?environment=production", { key })).toMatchObject({ status: 200 });
      expect(await w.ask("/projects/web/accounts", { key })).toMatchObject({ status: 503 });
      const narrow = await w.key(organization, { ...reader, environments: ["production"] });
      expect(await w.ask("/projects/web/accounts", { key: narrow })).toMatchObject({ status: 200 });
    });

    test("unavailable if the audit entry cannot be written: no value leaves, names do", async () => {
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
  });

  test("memory for a large read is given back however its answer ends, and a small read waits for no large one", async () => {
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

    const memory = memoryWithoutLarge();
    const { bytesTaken } = memory;
    const { ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
    expect((await ask("/projects/web/accounts?environment=production", { key })).status).toBe(200);
    expect(memory.bytesTaken).toEqual(bytesTaken);
  });

  test("sets that are small together are a small read, however their size is distributed", async () => {
    const w = world();
    const organization = await w.organization();
    const project = await w.project(organization, "web");
    for (const name of ["a", "b", "c"]) {
      await setAccount(w.admin, project.where, name, ["staging"], { token: name.repeat(63_000) });
    }
    const key = await w.key(organization, reader);
    const memory = memoryWithoutLarge();
    const { ask } = w.client(({ source }) => ({ source: { ...source, memory, remembered: new RememberedSets() } }));
    for (let i = 0; i < 2; i++) {
      expect((await ask("/projects/web/accounts", { key })).status).toBe(200);
      expect(memory.bytesTaken.small).toBe(0);
    }
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

const stagingAccounts = "project_id = ? and kind = 'accounts' and environment = 'staging'";
/** The sealed values of a project's accounts in an environment. */
const other = `(select other.sealed from sets as other
  where other.project_id = ? and other.kind = 'accounts' and other.environment = ?)`;

/** Flips a bit of the sealed values of staging. */
function flip(w: World, projectId: string, at: number): Promise<void> {
  return flipBit(w, ["sets", "sealed"], at, stagingAccounts, [projectId]);
}

/** Changes the set of staging in SQL. */
function stagingOf(w: World, projectId: string, change: string, values: readonly unknown[]): Promise<unknown> {
  return w.run(`update sets set ${change} where ${stagingAccounts}`, [...values, projectId]);
}

/** Writes the account `ci` in one environment alone, as `setAccount` never does. */
async function writeOne(w: World, project: Placed, environment: Environment, updatedAt: number): Promise<void> {
  await writingProject(w.admin, project.where, async (locked) => {
    const item = { entry: { name: "ci", updatedAt }, value: Buffer.from(JSON.stringify({ a: `of ${environment}` })) };
    await writeSets(w.admin, locked, kind, new Map([[environment, new Map([["ci", item]])]]));
  });
}
