import { describe, expect, test } from "bun:test";
import { type Environment, environments } from "../../src/core/names.ts";
import { RememberedSets } from "../../src/serve/sets/remembered.ts";
import { firstOf, headersOf, onRecord, tagged, usualHeaders } from "../support/answer.ts";
import { setAccount } from "../support/plans.ts";
import { insertAccounts } from "../support/rows.ts";
import { describeBoth, memoryWithoutLarge } from "../support/world.ts";

const reader = { resources: ["accounts"] };

describeBoth("GET /projects/{slug}/accounts", (w) => {
  describe("200", () => {
    test("has environment and accounts, each with name, environments, updatedAt and values, in this order", async () => {
      w.clock.nowMs = 1_700_000_000_000;
      const { organization, where } = await w.place({
        accounts: [
          { name: "Mail", environments: ["production", "development"], values: { user: "ci", password: 'p"\\ä\n🦔' } },
          { name: "staging only", environments: ["staging"], values: { token: "the token" } },
        ],
      });
      w.clock.nowMs = 1_700_000_000_777;
      await setAccount(w.admin, where, "Later", ["production"], JSON.parse('{"z":"1","a":"2","constructor":"3"}'));
      w.clock.nowMs = undefined;
      const key = await w.key(organization, reader);
      const answer = await w.ask("/projects/web/accounts?environment=production", { key });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"environment":"production","accounts":[' +
          '{"name":"Later","environments":["production"],"updatedAt":1700000000777,"values":{"z":"1","a":"2","constructor":"3"}},' +
          '{"name":"Mail","environments":["development","production"],"updatedAt":1700000000000,' +
          '"values":{"user":"ci","password":"p\\"\\\\ä\\n🦔"}}]}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.value, ...tagged, ...onRecord }));
      expect((await w.ask("/projects/web/accounts", { key })).json).toMatchObject({
        environment: null,
        accounts: [{ name: "Later" }, { name: "Mail" }, { name: "staging only", values: { token: "the token" } }],
      });
    });

    test("has the values and updatedAt of the asked environment, or of the one that changed last", async () => {
      w.clock.nowMs = 500;
      const { organization, project } = await w.place();
      const write = async (environment: Environment, nowMs: number) => {
        w.clock.nowMs = nowMs;
        await insertAccounts(w, project, ["ci"], [environment], () => `of ${environment}`);
        w.clock.nowMs = undefined;
      };
      const times = { development: 1000, production: 2000, staging: 3000 };
      for (const environment of ["development", "production", "staging"] as const)
        await write(environment, times[environment]);
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
      await write("development", 4000);
      expect(await seen("", ...environments)).toEqual(["of development", 4000]);
      expect(await seen("&environment=staging", ...environments)).toEqual(["of staging", 3000]);
    });
  });

  test("sets that are small together are a small read, however their size is distributed", async () => {
    const { project, key } = await w.place({ key: reader });
    for (const name of ["a", "b", "c"]) {
      await setAccount(w.admin, project.where, name, ["staging"], { token: name.repeat(63_000) });
    }
    const memory = memoryWithoutLarge();
    const { ask } = w.client(({ source }) => ({ source: { ...source, memory, remembered: new RememberedSets() } }));
    for (let i = 0; i < 2; i++) {
      expect((await ask("/projects/web/accounts", { key })).status).toBe(200);
      expect(memory.bytesTaken.small).toBe(0);
    }
  });
});
