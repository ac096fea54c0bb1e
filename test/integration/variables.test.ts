import { beforeAll, describe, expect, spyOn, test } from "bun:test";
import { parseEnv } from "node:util";
import { environments } from "../../src/core/names.ts";
import { MemoryBudget, smallBytesMax } from "../../src/serve/limit/budget.ts";
import { RememberedSets } from "../../src/serve/sets/remembered.ts";
import { expectRefusal, firstOf, headersOf, onRecord, requestOf, tagged, usualHeaders } from "../support/answer.ts";
import { deleteVariable } from "../support/delete.ts";
import { setVariables } from "../support/plans.ts";
import { numbered } from "../support/rows.ts";
import { describeBoth, everything, expectMemoryBack, type Key, type World } from "../support/world.ts";

describeBoth("GET /projects/{slug}/variables", (w, _, once) => {
  describe("200", () => {
    test("has environment and variables, each with key, value and updatedAt, in this order and without spaces", async () => {
      w.clock.nowMs = 1_700_000_000_000;
      const { organization, where } = await w.place({
        variables: { staging: { URL: 'https://x.example/?a="b"', EMPTY: "" }, production: { URL: "production's own" } },
      });
      w.clock.nowMs = 1_700_000_000_999;
      await setVariables(w.admin, where, "staging", [{ name: "LATER", value: "é\n\u2028🦔\\" }]);
      w.clock.nowMs = undefined;
      const answer = await w.ask("/projects/web/variables?environment=staging", { key: await w.key(organization) });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"environment":"staging","variables":[' +
          '{"key":"EMPTY","value":"","updatedAt":1700000000000},' +
          '{"key":"LATER","value":"é\\n\u2028🦔\\\\","updatedAt":1700000000999},' +
          '{"key":"URL","value":"https://x.example/?a=\\"b\\"","updatedAt":1700000000000}]}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.value, ...tagged, ...onRecord }));
    });

    describe("with keys and prefix", () => {
      const names = "DB_HOST DB_PASSWORD DB_PORT DBX DB db_host D_B API_KEY A X".split(" ");
      let key: Key;
      beforeAll(async () => {
        const staging = Object.fromEntries(names.map((name) => [name, `value of ${name}`]));
        ({ key } = await w.place({ variables: { staging }, key: {} }));
      });
      once.each([
        ...["keys=DB_HOST", "keys=DB_HOST,DB_HOST,DB_HOST", "keys=DB_HOST,NOWHERE", "keys=DB_HOST,+DBX"]
          .concat("keys=DB_HOST,API_KEY&prefix=DB_")
          .map((query) => [query, ["DB_HOST"]] as const),
        ["keys=DB_PORT,DB_HOST", ["DB_HOST", "DB_PORT"]],
        ["keys=DB_HOST%2CDBX", ["DBX", "DB_HOST"]],
        ["keys=db_host", ["db_host"]],
        ["prefix=DB_", ["DB_HOST", "DB_PASSWORD", "DB_PORT"]],
        ["prefix=DB", ["DB", "DBX", "DB_HOST", "DB_PASSWORD", "DB_PORT"]],
        ["prefix=D_", ["D_B"]],
        ["prefix=DB_PORT", ["DB_PORT"]],
        ["prefix=db", ["db_host"]],
        ["prefix=DB_&keys=DB_HOST,DB_PORT,DBX", ["DB_HOST", "DB_PORT"]],
        ...["keys=DB_", "keys=DB%25", "keys=API_KEY&prefix=DB_", "keys=A&prefix=%00", "prefix=DB_PORTS", "prefix=%25"]
          .concat("prefix=D%25", "prefix=D.", "prefix=_", "prefix=-")
          .map((query) => [query, []] as const),
      ] as const)("%s gives exactly these, with values and without", async (query, expected) => {
        for (const more of ["environment=staging", "environment=staging&metadata_only=true", "metadata_only=true"]) {
          const answer = await w.client().ask(`/projects/web/variables?${more}&${query}`, { key });
          expect(answer.status).toBe(200);
          expect(keysOf(answer.json)).toEqual([...expected]);
        }
      });
    });

    test("with metadata_only without environment has each name once, with its latest change in the environments that the key reaches", async () => {
      w.clock.nowMs = 1000;
      const { organization, where } = await w.place({
        variables: { development: { ALL: "1", DEV: "1" }, staging: { ALL: "1" }, production: { ALL: "1", PROD: "1" } },
      });
      w.clock.nowMs = 2000;
      await setVariables(w.admin, where, "staging", [{ name: "ALL", value: "2" }]);
      w.clock.nowMs = 3000;
      await setVariables(w.admin, where, "production", [{ name: "ALL", value: "3" }]);
      w.clock.nowMs = undefined;
      const seen = async (...reach: string[]) => {
        const key = await w.key(organization, { environments: reach });
        return (await w.ask("/projects/web/variables?metadata_only=true", { key })).text;
      };
      const list = (variables: Readonly<Record<string, number>>) => ({
        environment: null,
        variables: Object.entries(variables).map(([key, updatedAt]) => ({ key, updatedAt })),
      });
      expect(await seen(...environments)).toBe(JSON.stringify(list({ ALL: 3000, DEV: 1000, PROD: 1000 })));
      expect(await seen("development", "staging")).toBe(JSON.stringify(list({ ALL: 2000, DEV: 1000 })));
      expect(await seen("development")).toBe(JSON.stringify(list({ ALL: 1000, DEV: 1000 })));
    });

    describe("with format=env", () => {
      once("is dotenv text, with a header that names what readers understand differently", async () => {
        const words = { QUOTED: "two words", PATHS: "C:\\Temp\\", DOLLAR: "p$HOME", PLAIN: "" };
        const urls = { URL: "https://x.example", ...words };
        const { key } = await w.place({ variables: { staging: urls }, key: {} });
        const answer = await w.ask("/projects/web/variables?environment=staging&format=env", { key });
        expect(answer.status).toBe(200);
        const all = "DOLLAR='p$HOME'\nPLAIN=\nQUOTED='two words'\nURL=https://x.example\nPATHS=C:\\Temp\\\n\n";
        expect(answer.text).toBe(all);
        const own = { "content-type": "text/plain; charset=utf-8", "keyhole-env-nonportable": "DOLLAR, PATHS" };
        expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.value, ...tagged, ...onRecord, ...own }));
        expect(await w.audit(key)).toMatchObject([
          { action: "variables.read", names: ["DOLLAR", "PATHS", "PLAIN", "QUOTED", "URL"], count: 5 },
        ]);
      });

      once("cuts that header off at 4096 bytes", async () => {
        const staging = Object.fromEntries(
          Array.from({ length: 100 }, (_, i) => [`NAME_${i}_${"X".repeat(50)}`, "$HOME"]),
        );
        const { key } = await w.place({ variables: { staging }, key: {} });
        const { headers } = await w.ask("/projects/web/variables?environment=staging&format=env", { key });
        expect(headers.get("keyhole-env-nonportable")).toMatch(/^NAME_0_.{3000,4080}, \.\.\.$/);
      });

      once("has no such header if every reader agrees, and is empty if nothing matches", async () => {
        const { key } = await w.place({ variables: { staging: { A: "1", B: "2" } }, key: {} });
        const some = await w.ask("/projects/web/variables?environment=staging&format=env&keys=B", { key });
        expect([some.text, some.headers.get("keyhole-env-nonportable")]).toEqual(["B=2\n", null]);
        const none = await w.ask("/projects/web/variables?environment=production&format=env", { key });
        expect({ status: none.status, text: none.text }).toEqual({ status: 200, text: "" });
        expect(none.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      });
    });

    test("is read as it is now when a large set becomes small and large again", async () => {
      const { where, key } = await w.place({ key: {} });
      const entry = (i: number) => ({ name: `N${i + 10}`, value: String(i % 10).repeat(65_536) });
      const large = Array.from({ length: 24 }, (_, i) => entry(i));
      const read = async () => {
        const answer = await w.ask("/projects/web/variables?environment=staging", { key });
        const { variables } = answer.json as { variables: { key: string; value: string }[] };
        return variables.map(({ key, value }) => ({ name: key, value }));
      };
      await setVariables(w.admin, where, "staging", large);
      expect(await read()).toEqual(large);
      for (const { name } of large.slice(2)) await deleteVariable(w.admin, where, "staging", name);
      expect(await read()).toEqual(large.slice(0, 2));
      await setVariables(w.admin, where, "staging", large);
      expect(await read()).toEqual(large);
    });
  });

  describe("422", () => {
    once("an environment of 10,000 variables is served by keys and prefix, up to 1000 at a time", async () => {
      const { where, key } = await w.place({ key: {} });
      const entries = numbered("N", 10_000).map((name) => ({ name, value: `value of ${name}` }));
      await setVariables(w.admin, where, "staging", entries);
      const ask = (query: string) => w.client().ask(`/projects/web/variables?environment=staging${query}`, { key });
      for (const more of ["", "&metadata_only=true"]) {
        const thousand = numbered("N", 2000).slice(1000);
        expect(keysOf((await ask(`&prefix=N1${more}`)).json)).toEqual(thousand);
        expect(keysOf((await ask(`&keys=${thousand}${more}`)).json)).toEqual(thousand);
      }
      const variables = [{ key: "N9999", value: "value of N9999" }];
      expect((await ask("&keys=N9999,NOWHERE")).json).toMatchObject({ variables });
      expect((await ask("&prefix=N999&format=env")).text).toStartWith("N9990='value of N9990'\n");
    });

    once("env_unrepresentable names the variables and leaves no audit entry; JSON serves them", async () => {
      const staging = { FINE: "a fine value", BAD_B: "it's\n$(id)", BAD_A: "$(id)\n\\", ALSO: "fine as well" };
      const { key } = await w.place({ variables: { staging }, key: {} });
      const answer = await w.ask("/projects/web/variables?environment=staging&format=env", { key });
      expectRefusal(
        answer,
        422,
        "env_unrepresentable",
        "No harmless dotenv text can carry these variables; ask for format=json instead. They are: BAD_A, BAD_B.",
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.value));
      expect(await w.audit(key)).toEqual([]);
      const path = "/projects/web/variables?environment=staging";
      expect(await w.ask(`${path}&format=env&keys=FINE`, { key })).toMatchObject({ text: "FINE='a fine value'\n" });
      expect(await w.ask(`${path}&format=json`, { key })).toMatchObject({ status: 200 });
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["FINE"], ["ALSO", "BAD_A", "BAD_B", "FINE"]]);
    });
  });

  describe("memory", () => {
    /** 40 of 30 KB each, in every kind of character that a piece could be cut at. */
    const large = Object.fromEntries(
      numbered("N", 40).map((name, i) => [name, ["x", '"\\', "é\n", "🦔"][i % 4]?.repeat(30_000 / (i % 4 || 1)) ?? ""]),
    );
    const path = "/projects/web/variables?environment=staging";
    const webOf = async (w: World) => {
      const variables = { staging: large, production: { A: "a small one" } };
      const { organization, project, key } = await w.place({ variables, key: everything });
      const [row] = await w.sql`select length(listing) as listing, length(sealed) as sealed from sets
        where project_id = ${project.id} and kind = 'variables' and environment = 'staging'`;
      const { listing, sealed } = row as { listing: number; sealed: number };
      return { project, organization, key, listing, sealed };
    };

    once("for large dotenv text is given back however the answer ends, of all variables or some", async () => {
      const { key, sealed } = await webOf(w);
      for (const filter of ["", `&keys=${Object.keys(large)}`, "&prefix=N"]) {
        const answer = await expectMemoryBack(w, `${path}${filter}&format=env`, key, sealed);
        expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
        expect(answer.headers.get("keyhole-env-nonportable")).toContain("N0001");
        expect(Object.keys(parseEnv(answer.text)).length).toBe(40);
      }
    });

    test("is taken before a set is fetched, and no statement returns more than was taken", async () => {
      const { key, listing, sealed } = await webOf(w);
      const memory = new MemoryBudget();
      const { ask, fetches } = counting(w, memory);
      expect((await ask(`${path}&prefix=N0000`, { key })).status).toBe(200);
      const all = listing + sealed;
      const first = { bytesMax: smallBytesMax, taken: smallBytesMax, returned: 0 };
      expect(fetches).toEqual([first, { bytesMax: all, taken: all, returned: all }]);
      expect(memory.bytesTaken).toEqual(none);
    });

    test("is taken for values in each environment, and only PostgreSQL fetches a small set of its own", async () => {
      const value = { A: "a small one" };
      const place = await w.place({ variables: { development: value, staging: value, production: value }, key: {} });
      const memory = new MemoryBudget();
      const take = spyOn(memory, "take");
      const { ask, fetches } = counting(w, memory);
      for (const environment of environments) {
        const at = `/projects/web/variables?environment=${environment}`;
        for (const _ of [1, 2]) expect((await ask(at, { key: place.key })).status).toBe(200); // PostgreSQL remembers it
        expect(take.mock.calls.pop()?.[0]).toBeGreaterThan(0);
      }
      expect(fetches).toHaveLength(w.dialect === "postgres" ? 3 : 0);
    });

    once("that is waited for does not make an empty set of one that was deleted in that time", async () => {
      const { key, project, sealed } = await webOf(w);
      const memory = new MemoryBudget(undefined, 1.5 * sealed, 1.5 * sealed);
      const { handle, ask } = counting(w, memory);
      const one = await handle(requestOf(path, { key }));
      const late = handle(requestOf(path, { key }));
      expect((await ask("/organization", { key })).status).toBe(200); // the late one has been judged, too, and waits
      await w.sql`delete from sets where project_id = ${project.id} and kind = 'variables' and environment = 'staging'`;
      await one.text();
      expect(await (await late).json()).toMatchObject({ code: "decryption_failed" });
      expect(memory.bytesTaken).toEqual(none);
    });

    test("that was waited for once is enough: the set is then fetched by one statement, as it is now", async () => {
      const { key, project, sealed } = await webOf(w);
      const memory = new MemoryBudget(undefined, 1.5 * sealed, 1.5 * sealed);
      const { handle, ask, fetches } = counting(w, memory);
      const one = await handle(requestOf(path, { key }));
      const before = fetches.length;
      const late = handle(requestOf(path, { key }));
      expect((await ask("/organization", { key })).status).toBe(200); // the late one has been judged, too, and waits
      await setVariables(w.admin, project.where, "staging", [{ name: "N0000", value: "y".repeat(30_000) }]);
      await one.text();
      expect(await (await late).text()).toContain('"key":"N0000","value":"yyy');
      // SQLite does not remember the set, so the late one first asked for its size.
      expect(fetches.length - before).toBe(w.dialect === "postgres" ? 1 : 2);
      expect(memory.bytesTaken).toEqual(none);
    });
  });
});

function keysOf(json: unknown): string[] {
  return (json as { variables: { key: string }[] }).variables.map(({ key }) => key);
}

const none = { small: 0, large: 0 };

/** A client that remembers no set yet, with what its statements for sets were allowed, and returned. */
function counting(w: World, memory: MemoryBudget = new MemoryBudget()) {
  const fetches: { bytesMax: number; taken: number; returned: number }[] = [];
  const client = w.client(({ source }) => ({
    source: {
      ...source,
      memory,
      remembered: new RememberedSets(),
      sets: {
        fetch: async (at, wanted) => {
          const taken = memory.bytesTaken.small + memory.bytesTaken.large;
          const rows = await source.sets.fetch(at, wanted);
          const returned = rows.reduce((sum, row) => sum + (row.listing?.length ?? 0) + (row.sealed?.length ?? 0), 0);
          fetches.push({ bytesMax: wanted.bytesMax, taken, returned });
          return rows;
        },
      },
    },
  }));
  return { ...client, fetches };
}
