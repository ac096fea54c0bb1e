import { describe, expect, test } from "bun:test";
import { parseEnv } from "node:util";
import { setAccount } from "../../src/admin/accounts.ts";
import { putFile } from "../../src/admin/files.ts";
import { setPlan } from "../../src/admin/organizations.ts";
import { deleteVariable, setVariables } from "../../src/admin/variables.ts";
import { environments } from "../../src/names.ts";
import { SealedSets } from "../../src/read/sets.ts";
import { setQueries } from "../../src/store/sets.ts";
import {
  describeBoth,
  everything,
  expectMemoryBack,
  expectRefusal,
  firstOf,
  headersOf,
  leaksIn,
  memoryOf,
  numbered,
  requestOf,
  usualHeaders,
  type World,
} from "../world.ts";

describeBoth("GET /projects/{slug}/variables", (world) => {
  describe("200", () => {
    test("says environment and variables, each with key, value and updatedAt, in this order and without a space", async () => {
      const w = world();
      const organization = await w.organization();
      w.clock.nowMs = 1_700_000_000_000;
      const { where } = await w.project(organization, "web", {
        variables: { staging: { URL: 'https://x.example/?a="b"', EMPTY: "" }, production: { URL: "production's own" } },
      });
      w.clock.nowMs = 1_700_000_000_999;
      await setVariables(w.desk, where, "staging", [{ name: "LATER", value: "é\n\u2028🦔\\" }]);
      w.clock.nowMs = undefined;
      const answer = await w.ask("/projects/web/variables?environment=staging", { key: await w.key(organization) });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"environment":"staging","variables":[' +
          '{"key":"EMPTY","value":"","updatedAt":1700000000000},' +
          '{"key":"LATER","value":"é\\n\u2028🦔\\\\","updatedAt":1700000000999},' +
          '{"key":"URL","value":"https://x.example/?a=\\"b\\"","updatedAt":1700000000000}]}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.value));
    });

    test("is in byte order of key: digits, capitals, the underscore, small letters", async () => {
      const w = world();
      const organization = await w.organization();
      const ordered = [
        "A",
        "A0",
        "A9",
        "AA",
        "AZ",
        "A_",
        "A_0",
        "A__",
        "Aa",
        "Az",
        "B",
        "Z",
        "_0",
        "_A",
        "__",
        "_a",
        "a",
        "a0",
        "aA",
        "a_",
        "aa",
        "z",
      ];
      const shuffled = [...ordered].sort((a, b) => Bun.hash.crc32(a) - Bun.hash.crc32(b));
      await w.project(organization, "web", {
        variables: { staging: Object.fromEntries(shuffled.map((name) => [name, `value of ${name}`])) },
      });
      const key = await w.key(organization);
      for (const query of ["environment=staging", "environment=staging&metadata_only=true", "metadata_only=true"]) {
        expect(keysOf((await w.ask(`/projects/web/variables?${query}`, { key })).json)).toEqual(ordered);
      }
      const some = await w.ask(`/projects/web/variables?environment=staging&keys=${shuffled.join(",")}`, { key });
      expect(keysOf(some.json)).toEqual(ordered);
      const prefixed = await w.ask("/projects/web/variables?environment=staging&prefix=A", { key });
      expect(keysOf(prefixed.json)).toEqual(ordered.slice(0, 10));
    });

    test("gives back every value as it was written, up to 64 KiB", async () => {
      const w = world();
      const organization = await w.organization();
      const values = {
        EMPTY: "",
        BLANKS: "  \t ",
        LINES: "a\nb\r\nc\rd",
        CONTROL: "\u0001\u001f\u007f\u0085",
        QUOTES: `'"\`\\$(id)`,
        UNICODE: "ÄÖÜ ﷽ \u202e\u200b\ufeff\uffff\u{10ffff}",
        JSON: '{"a":[1,2,{"b":null}]}',
        LONG: "🦔".repeat(16 * 1024),
        NAME_OF_255: "x",
        ["N".repeat(255)]: "the longest name",
      };
      await w.project(organization, "web", { variables: { production: values } });
      const answer = await w.ask("/projects/web/variables?environment=production", { key: await w.key(organization) });
      const { variables } = answer.json as { variables: { key: string; value: string }[] };
      expect(Object.fromEntries(variables.map(({ key, value }) => [key, value]))).toEqual(values);
      expect(answer.text.startsWith('{"environment":"production","variables":[{"key":"BLANKS"')).toBe(true);
    });

    test("is an empty list where there is nothing to give", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization);
      const nothing = async (query: string, environment: string) =>
        expect(await w.ask(`/projects/web/variables?${query}`, { key })).toMatchObject({
          status: 200,
          text: `{"environment":${environment},"variables":[]}`,
        });
      await nothing("environment=production", '"production"');
      await nothing("environment=production&metadata_only=true", '"production"');
      await nothing("environment=staging&keys=NOWHERE", '"staging"');
      await nothing("environment=staging&keys=a", '"staging"');
      await nothing("environment=staging&prefix=B", '"staging"');
      await nothing("metadata_only=true&prefix=B", "null");
    });

    test("sees a write, a change and a deletion on the very next request", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web");
      const key = await w.key(organization);
      const seen = async () => {
        const answer = await w.ask("/projects/web/variables?environment=staging", { key });
        return (answer.json as { variables: { value: string }[] }).variables.map(({ value }) => value);
      };
      expect(await seen()).toEqual([]);
      for (let i = 0; i < 5; i++) {
        await setVariables(w.desk, where, "staging", [{ name: "A", value: `value ${i}` }]);
        expect(await seen()).toEqual([`value ${i}`]);
      }
      await deleteVariable(w.desk, where, "staging", "A");
      expect(await seen()).toEqual([]);
    });

    describe("with keys and prefix", () => {
      const names = [
        "DB_HOST",
        "DB_PASSWORD",
        "DB_PORT",
        "DBX",
        "DB",
        "db_host",
        "D_B",
        "API_KEY",
        "A",
        "_",
        "X",
      ].filter((name) => name !== "_");
      test.each([
        ["keys=DB_HOST", ["DB_HOST"]],
        ["keys=DB_PORT,DB_HOST", ["DB_HOST", "DB_PORT"]],
        ["keys=DB_HOST,DB_HOST,DB_HOST", ["DB_HOST"]],
        ["keys=DB_HOST,NOWHERE", ["DB_HOST"]],
        ["keys=DB_HOST%2CDBX", ["DBX", "DB_HOST"]],
        ["keys=DB_HOST,+DBX", ["DB_HOST"]],
        ["keys=db_host", ["db_host"]],
        ["keys=DB_", []],
        ["keys=DB%25", []],
        ["prefix=DB_", ["DB_HOST", "DB_PASSWORD", "DB_PORT"]],
        ["prefix=DB", ["DB", "DBX", "DB_HOST", "DB_PASSWORD", "DB_PORT"]],
        ["prefix=D_", ["D_B"]],
        ["prefix=DB_PORT", ["DB_PORT"]],
        ["prefix=DB_PORTS", []],
        ["prefix=db", ["db_host"]],
        ["prefix=%25", []],
        ["prefix=D%25", []],
        ["prefix=D.", []],
        ["prefix=_", []],
        ["prefix=-", []],
        ["keys=DB_HOST,API_KEY&prefix=DB_", ["DB_HOST"]],
        ["prefix=DB_&keys=DB_HOST,DB_PORT,DBX", ["DB_HOST", "DB_PORT"]],
        ["keys=API_KEY&prefix=DB_", []],
        ["keys=A&prefix=%00", []],
      ] as const)("%s gives exactly these, with values and without", async (query, expected) => {
        const w = world();
        const organization = await w.organization();
        await w.project(organization, "web", {
          variables: { staging: Object.fromEntries(names.map((name) => [name, `value of ${name}`])) },
        });
        const key = await w.key(organization);
        for (const more of ["environment=staging", "environment=staging&metadata_only=true", "metadata_only=true"]) {
          const answer = await w.ask(`/projects/web/variables?${more}&${query}`, { key });
          expect(answer.status).toBe(200);
          expect(keysOf(answer.json)).toEqual([...expected]);
        }
      });
    });

    describe("with metadata_only", () => {
      test("says key and updatedAt alone, opens nothing and is not audited", async () => {
        const w = world();
        const organization = await w.organization();
        w.clock.nowMs = 1_700_000_000_000;
        const project = await w.project(organization, "web", { variables: { staging: { A: "secret value", B: "2" } } });
        w.clock.nowMs = undefined;
        await w.sql`update variables set sealed = ${Buffer.from("nothing that opens")} where project_id = ${project.id}`;
        await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
        const key = await w.key(organization);
        const answer = await w.ask("/projects/web/variables?environment=staging&metadata_only=true", { key });
        expect(answer.status).toBe(200);
        expect(answer.text).toBe(
          '{"environment":"staging","variables":[{"key":"A","updatedAt":1700000000000},{"key":"B","updatedAt":1700000000000}]}',
        );
        expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
        expect(await w.audit(key)).toEqual([]);
      });

      test("without environment: each name once, with its latest change, over what the key reaches", async () => {
        const w = world();
        const organization = await w.organization();
        w.clock.nowMs = 1000;
        const { where } = await w.project(organization, "web", {
          variables: {
            development: { ALL: "1", DEV: "1" },
            staging: { ALL: "1" },
            production: { ALL: "1", PROD: "1" },
          },
        });
        w.clock.nowMs = 2000;
        await setVariables(w.desk, where, "staging", [{ name: "ALL", value: "2" }]);
        w.clock.nowMs = 3000;
        await setVariables(w.desk, where, "production", [{ name: "ALL", value: "3" }]);
        w.clock.nowMs = undefined;
        const seen = async (...reach: string[]) => {
          const key = await w.key(organization, { environments: reach });
          return (await w.ask("/projects/web/variables?metadata_only=true", { key })).text;
        };
        expect(await seen(...environments)).toBe(
          '{"environment":null,"variables":[{"key":"ALL","updatedAt":3000},{"key":"DEV","updatedAt":1000},{"key":"PROD","updatedAt":1000}]}',
        );
        expect(await seen("development", "staging")).toBe(
          '{"environment":null,"variables":[{"key":"ALL","updatedAt":2000},{"key":"DEV","updatedAt":1000}]}',
        );
        expect(await seen("development")).toBe(
          '{"environment":null,"variables":[{"key":"ALL","updatedAt":1000},{"key":"DEV","updatedAt":1000}]}',
        );
      });

      test("written false, or not exactly true, it is a read of values: charged as one, and audited", async () => {
        const w = world();
        const organization = await w.organization();
        await w.project(organization, "web", { variables: { staging: { A: "1" } } });
        const key = await w.key(organization);
        const values = await w.client().ask("/projects/web/variables?environment=staging&metadata_only=false", { key });
        expect(values.json).toMatchObject({ variables: [{ key: "A", value: "1" }] });
        expect(headersOf(values)).toMatchObject(firstOf.value);
        expect((await w.audit(key)).length).toBe(1);
        const odd = await w.client().ask("/projects/web/variables?environment=staging&metadata_only=tru%65", { key });
        expect((odd.json as { variables: object[] }).variables.map((entry) => Object.keys(entry))).toEqual([
          ["key", "updatedAt"],
        ]);
        expect(headersOf(odd)).toMatchObject(firstOf.value);
        expect((await w.audit(key)).length).toBe(1);
      });
    });

    describe("with format=env", () => {
      test("is dotenv text, and names what few readers read alike in a header", async () => {
        const w = world();
        const organization = await w.organization();
        await w.project(organization, "web", {
          variables: {
            staging: {
              URL: "https://x.example",
              QUOTED: "two words",
              PATHS: "C:\\Temp\\",
              DOLLAR: "p$HOME",
              PLAIN: "",
            },
          },
        });
        const key = await w.key(organization);
        const answer = await w.ask("/projects/web/variables?environment=staging&format=env", { key });
        expect(answer.status).toBe(200);
        expect(answer.text).toBe(
          "DOLLAR='p$HOME'\nPLAIN=\nQUOTED='two words'\nURL=https://x.example\nPATHS=C:\\Temp\\\n\n",
        );
        expect(headersOf(answer)).toEqual(
          usualHeaders({
            ...firstOf.value,
            "content-type": "text/plain; charset=utf-8",
            "keyhole-env-nonportable": "DOLLAR, PATHS",
          }),
        );
        expect(await w.audit(key)).toMatchObject([
          { action: "variables.read", names: ["DOLLAR", "PATHS", "PLAIN", "QUOTED", "URL"], count: 5 },
        ]);
      });

      test("has no such header where every reader will do, and is empty where there is nothing", async () => {
        const w = world();
        const organization = await w.organization();
        await w.project(organization, "web", { variables: { staging: { A: "1", B: "2" } } });
        const key = await w.key(organization);
        const some = await w.ask("/projects/web/variables?environment=staging&format=env&keys=B", { key });
        expect({ text: some.text, header: some.headers.get("keyhole-env-nonportable") }).toEqual({
          text: "B=2\n",
          header: null,
        });
        const none = await w.ask("/projects/web/variables?environment=production&format=env", { key });
        expect({ status: none.status, text: none.text }).toEqual({ status: 200, text: "" });
        expect(none.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      });

      test("cuts the list of a header that would be longer than 4096 bytes", async () => {
        const w = world();
        const organization = await w.organization();
        const names = Array.from({ length: 100 }, (_, i) => `NAME_${String(i).padStart(3, "0")}_${"X".repeat(50)}`);
        await w.project(organization, "web", {
          variables: { staging: Object.fromEntries(names.map((name) => [name, "$HOME"])) },
        });
        const key = await w.key(organization);
        const answer = await w.ask("/projects/web/variables?environment=staging&format=env", { key });
        const header = answer.headers.get("keyhole-env-nonportable") as string;
        expect(header.length).toBeLessThanOrEqual(4096);
        expect(header).toMatch(/^NAME_000_X+, NAME_001_X+, .*, \.\.\.$/);
      });
    });

    test("of a whole environment takes no more than the look-up of the key, once its sealed set was fetched", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization, everything);
      let statements = 0;
      const counted =
        <A extends readonly unknown[], R>(read: (...values: A) => R) =>
        (...values: A): R => {
          statements += 1;
          return read(...values);
        };
      const { ask } = w.client(({ source }) => ({
        source: {
          ...source,
          variables: { values: counted(source.variables.values), names: counted(source.variables.names) },
          sets: new SealedSets({ read: counted(setQueries(w.keyhole.database).read) }, w.keyhole.source.keyring),
        },
      }));
      const read = async () => {
        statements = 0;
        for (const query of ["", "&format=env", "&metadata_only=true"]) {
          expect(await ask(`/projects/web/variables?environment=staging${query}`, { key })).toMatchObject({
            status: 200,
          });
        }
        expect(await ask("/secrets?project=web&environment=staging", { key })).toMatchObject({ status: 200 });
        return statements;
      };
      expect(await read()).toBe(1);
      expect(await read()).toBe(0);
      await setVariables(w.desk, where, "staging", [{ name: "B", value: "2" }]);
      expect(await read()).toBe(1);
      expect(await read()).toBe(0);
      // What is no variable leaves the set as it is.
      await setAccount(w.desk, where, "ci", ["staging"], { a: "1" });
      await putFile(w.desk, where, { path: "f", environments: ["staging"], content: Buffer.from("x") });
      expect(await read()).toBe(0);
    });

    test("may hold more than is kept as a sealed set, and less again", async () => {
      const w = world();
      const organization = await w.organization();
      const { id, where } = await w.project(organization, "web");
      const key = await w.key(organization);
      const large = Array.from({ length: 70 }, (_, i) => ({
        name: `N${i + 10}`,
        value: String(i)
          .repeat(64 * 1024)
          .slice(0, 64 * 1024),
      }));
      await setVariables(w.desk, where, "staging", large);
      const sets = () => w.sql`select count(*) as count from variable_sets
        where project_id = ${id} and length(sealed) > 1000 and listing <> ''`;
      const answer = await w.ask("/projects/web/variables?environment=staging", { key });
      const { variables } = answer.json as { variables: { key: string; value: string }[] };
      expect(variables.map(({ key, value }) => ({ name: key, value }))).toEqual(large);
      expect(Number((await sets())[0]?.["count"])).toBe(0);
      for (const { name } of large.slice(10)) await deleteVariable(w.desk, where, "staging", name);
      expect(Number((await sets())[0]?.["count"])).toBe(1);
      const less = await w.ask("/projects/web/variables?environment=staging", { key });
      expect(keysOf(less.json)).toEqual(large.slice(0, 10).map(({ name }) => name));
    });

    test("leaves one entry: who was given which names of where, and no value", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web", {
        variables: { staging: { B: "a value of B", A: "a value of A" } },
      });
      const key = await w.key(organization);
      const before = Date.now();
      const headers = { "x-request-id": "my-trace.7", "user-agent": `ci/1.0 \u00e9\t${"x".repeat(300)}` };
      await w.ask("/projects/web/variables?environment=staging", { key, headers });
      const [entry, ...others] = await w.audit(key);
      expect(others).toEqual([]);
      expect(entry).toEqual({
        time: expect.any(Number),
        keyId: key.id,
        organization: organization.slug,
        project: project.slug,
        environment: "staging",
        action: "variables.read",
        names: ["A", "B"],
        count: 2,
        requestId: "my-trace.7",
        clientAddress: "",
        userAgent: `ci/1.0 ??${"x".repeat(247)}`,
        lane: expect.stringMatching(/^[0-9a-f-]{36}$/),
        seq: expect.any(Number),
      });
      expect(entry?.time).toBeGreaterThanOrEqual(before);
      expect(entry?.time).toBeLessThanOrEqual(Date.now());
      const rows = await w.sql`select * from audit_entries where key_id = ${key.id}`;
      expect(rows[0]).toMatchObject({ organization_id: organization.id, project_id: project.id });
      expect(leaksIn(w.secrets, JSON.stringify(rows))).toEqual([]);
    });

    test("leaves an entry for each of many requests at once, and one for a read that found nothing", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization);
      await Promise.all(
        Array.from({ length: 25 }, (_, i) =>
          w.ask("/projects/web/variables?environment=staging", { key, headers: { "x-request-id": `r${i}` } }),
        ),
      );
      await w.ask("/projects/web/variables?environment=production", { key });
      const entries = await w.audit(key);
      expect(entries.map(({ count }) => count).sort()).toEqual([0, ...Array(25).fill(1)]);
      expect(new Set(entries.map(({ requestId }) => requestId)).size).toBe(26);
    });
  });

  describe("401", () => {
    test("is for a request without a key, whatever it asks for", async () => {
      for (const query of ["environment=staging", "metadata_only=true", "x=1"]) {
        expectRefusal(
          await world().ask(`/projects/web/variables?${query}`),
          401,
          "unauthorized",
          "A valid API key is required.",
        );
      }
    });
  });

  describe("403", () => {
    test("plan_required, surface_required and resource_required", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization);
      const ask = (other = key) => w.ask("/projects/web/variables?environment=staging", { key: other });
      await setPlan(w.desk, organization.slug, "free");
      expectRefusal(await ask(), 403, "plan_required", "The organization's plan does not include the API.");
      await setPlan(w.desk, organization.slug, "pro");
      const surfaces = await w.key(organization, { surfaces: ["mcp_server", "ci_action"] });
      expectRefusal(await ask(surfaces), 403, "surface_required", "This key may not be used for this endpoint.");
      const resources = await w.key(organization, { resources: ["projects", "accounts", "files", "requests"] });
      expectRefusal(await ask(resources), 403, "resource_required", "This key may not read this kind of resource.");
      expect(await ask()).toMatchObject({ status: 200 });
    });

    test("environment_not_in_scope, whether or not there is such a project", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization, { environments: ["development", "production"] });
      for (const slug of ["web", "nowhere", "%00"]) {
        for (const more of ["", "&metadata_only=true", "&format=env"]) {
          const answer = await w.ask(`/projects/${slug}/variables?environment=staging${more}`, { key });
          expectRefusal(answer, 403, "environment_not_in_scope", "This key may not read this environment.");
        }
      }
    });
  });

  describe("404", () => {
    test("project_not_found alike for a project that is absent, out of scope and of another organization", async () => {
      const w = world();
      const [organization, other] = [await w.organization(), await w.organization()];
      for (const slug of ["web", "api"]) await w.project(organization, slug, { variables: { staging: { A: "1" } } });
      await w.project(other, "elsewhere", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization, { projects: ["web"] });
      for (const slug of ["api", "elsewhere", "nowhere", "%zz", "web%2F"]) {
        for (const query of ["environment=staging", "metadata_only=true", "environment=staging&keys=A&format=env"]) {
          const answer = await w.client().ask(`/projects/${slug}/variables?${query}`, { key });
          expectRefusal(answer, 404, "project_not_found", "No such project, or this key may not read it.");
          const bucket = query === "metadata_only=true" ? firstOf.metadata : firstOf.value;
          expect(headersOf(answer)).toEqual(usualHeaders(bucket));
        }
      }
      expect(await w.audit(key)).toEqual([]);
    });
  });

  describe("422", () => {
    test("1000 variables are given and 1001 refused, counted after keys and prefix", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web");
      const names = Array.from({ length: 1000 }, (_, i) => `N${String(i).padStart(4, "0")}`);
      await setVariables(
        w.desk,
        where,
        "staging",
        names.map((name) => ({ name, value: `value of ${name}` })),
      );
      const key = await w.key(organization);
      const ask = (query: string) => w.ask(`/projects/web/variables?${query}`, { key });
      expect(keysOf((await ask("environment=staging")).json)).toEqual(names);
      expect((await ask("environment=staging&format=env")).text.split("\n").length).toBe(1001);

      await setVariables(w.desk, where, "staging", [{ name: "ONE_MORE", value: "1" }]);
      for (const query of ["environment=staging", "environment=staging&format=env"]) {
        expectRefusal(await ask(query), 422, "too_many_items", tooMany);
      }
      for (const query of ["environment=staging&metadata_only=true", "metadata_only=true"]) {
        expectRefusal(await ask(query), 422, "too_many_items", tooMany);
      }
      for (const more of ["", "&metadata_only=true", "&format=env"]) {
        expect((await ask(`environment=staging&prefix=N${more}`)).status).toBe(200);
        expect((await ask(`environment=staging&keys=${names.join(",")}${more}`)).status).toBe(200);
        expect((await ask(`environment=staging&prefix=ONE${more}`)).status).toBe(200);
      }
      await setVariables(w.desk, where, "staging", [{ name: "N_MORE", value: "1" }]);
      expectRefusal(await ask("environment=staging&prefix=N"), 422, "too_many_items", tooMany);
      expectRefusal(await ask("metadata_only=true&prefix=N"), 422, "too_many_items", tooMany);
      expect((await ask("metadata_only=true&prefix=N0")).status).toBe(200);
      const read = (await w.audit(key)).filter(({ count }) => count === 1000);
      expect(read.length).toBe(6);
      expect(read[0]?.names).toEqual(names);
    });

    test("names over several environments count once each, and only where the key reaches", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web");
      const some = (first: string, count: number) =>
        Array.from({ length: count }, (_, i) => ({ name: `${first}${i}`, value: "1" }));
      await setVariables(w.desk, where, "development", [...some("A", 500), ...some("D", 500)]);
      await setVariables(w.desk, where, "staging", [...some("A", 500), ...some("D", 500)]);
      await setVariables(w.desk, where, "production", [
        ...some("A", 500),
        ...some("D", 499),
        { name: "X", value: "1" },
      ]);
      const ask = async (...reach: string[]) => {
        const key = await w.key(organization, { environments: reach });
        return w.ask("/projects/web/variables?metadata_only=true", { key });
      };
      expect(keysOf((await ask("development", "staging")).json).length).toBe(1000);
      expect(keysOf((await ask("production")).json).length).toBe(1000);
      expectRefusal(await ask("development", "production"), 422, "too_many_items", tooMany);
      expectRefusal(await ask("development", "staging", "production"), 422, "too_many_items", tooMany);
    });

    test("env_unrepresentable names the variables, leaves no entry, and JSON serves them", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        variables: {
          staging: { FINE: "a fine value", BAD_B: "it's\n$(id)", BAD_A: "$(id)\n\\", ALSO: "fine as well" },
        },
      });
      const key = await w.key(organization);
      const answer = await w.ask("/projects/web/variables?environment=staging&format=env", { key });
      expectRefusal(
        answer,
        422,
        "env_unrepresentable",
        "No harmless dotenv text can carry these variables; ask for format=json instead. They are: BAD_A, BAD_B.",
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.value));
      expect(await w.audit(key)).toEqual([]);
      expect(await w.ask("/projects/web/variables?environment=staging&format=env&keys=FINE", { key })).toMatchObject({
        text: "FINE='a fine value'\n",
      });
      expect(await w.ask("/projects/web/variables?environment=staging&format=json", { key })).toMatchObject({
        status: 200,
      });
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["FINE"], ["ALSO", "BAD_A", "BAD_B", "FINE"]]);
    });
  });

  describe("503", () => {
    const damages: readonly (readonly [string, (w: World, id: string, other: string) => Promise<unknown>])[] = [
      ["a flipped bit", async (w, id) => flip(w, id, 30)],
      ["a flipped bit of the nonce", async (w, id) => flip(w, id, 8)],
      ["a flipped bit of the tag", async (w, id) => flip(w, id, -1)],
      ["another envelope version", async (w, id) => flip(w, id, 0)],
      ["another suite", async (w, id) => flip(w, id, 1)],
      ["a generation that does not exist", async (w, id) => flip(w, id, 5)],
      [
        "a value cut short",
        (w, id) => w.sql`update variables set sealed = ${Buffer.alloc(33)} where project_id = ${id} and name = 'B'`,
      ],
      [
        "no value at all",
        (w, id) => w.sql`update variables set sealed = ${Buffer.alloc(0)} where project_id = ${id} and name = 'B'`,
      ],
      ["another version", (w, id) => w.sql`update variables set version = 2 where project_id = ${id} and name = 'B'`],
      ["another id", (w, id) => w.sql`update variables set id = 'x' where project_id = ${id} and name = 'B'`],
      ["another name", (w, id) => w.sql`update variables set name = 'BB' where project_id = ${id} and name = 'B'`],
      [
        "the value of a neighbour",
        (w, id) =>
          w.sql`update variables set sealed = (select sealed from variables where project_id = ${id} and environment = 'staging' and name = 'A')
            where project_id = ${id} and name = 'B'`,
      ],
      [
        "the whole row of another environment",
        async (w, id) => {
          await w.sql`delete from variables where project_id = ${id} and environment = 'staging' and name = 'B'`;
          await w.sql`update variables set environment = 'staging' where project_id = ${id} and environment = 'production'`;
        },
      ],
      [
        "the whole row of another project",
        async (w, id, other) => {
          await w.sql`delete from variables where project_id = ${id} and environment = 'staging' and name = 'B'`;
          await w.sql`update variables set project_id = ${id} where project_id = ${other} and name = 'B'`;
        },
      ],
      [
        "the data key of another project",
        (w, id, other) =>
          w.sql`update data_keys set wrapped = (select wrapped from data_keys where project_id = ${other}) where project_id = ${id}`,
      ],
      [
        "a data key of another root",
        (w, id) => w.sql`update data_keys set root_id = '0123456789abcdef' where project_id = ${id}`,
      ],
      [
        "a data key that does not open",
        (w, id) => w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`,
      ],
    ];
    test.each(damages)("decryption_failed for all, where one of them has %s", async (_, damage) => {
      const w = world();
      const organization = await w.organization();
      const values = { A: "first good value", B: "the damaged value", C: "last good value" };
      const project = await w.project(organization, "web", {
        variables: { staging: values, production: { B: "elsewhere" } },
      });
      const other = await w.project(organization, "other", { variables: { staging: values } });
      const key = await w.key(organization);
      expect(await w.ask("/projects/web/variables?environment=staging", { key })).toMatchObject({ status: 200 });
      await damage(w, project.id, other.id);
      for (const more of ["", "&format=env", "&prefix=B"]) {
        const answer = await w.ask(`/projects/web/variables?environment=staging${more}`, { key });
        expectRefusal(
          answer,
          503,
          "decryption_failed",
          "Decryption failed for one or more items; nothing is returned.",
        );
        expect(answer.headers.get("keyhole-env-nonportable")).toBeNull();
      }
      expect((await w.audit(key)).length).toBe(1);
      expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
    });

    const swaps: readonly (readonly [string, (w: World, id: string) => Promise<unknown>])[] = [
      ["a row was deleted", (w, id) => w.sql`delete from variables where project_id = ${id} and name = 'B'`],
      ["every row was deleted", (w, id) => w.sql`delete from variables where project_id = ${id}`],
      [
        "an older row was put back",
        (w, id) => w.sql`update variables set sealed = (select sealed from kept_rows), version = 1
          where project_id = ${id} and name = 'B'`,
      ],
      [
        "a row was deleted with the set that told of it",
        async (w, id) => {
          await w.sql`delete from variables where project_id = ${id} and name = 'B'`;
          await w.sql`delete from variable_sets where project_id = ${id}`;
        },
      ],
      [
        "an older set was put back",
        (w, id) => w.sql`update variable_sets set sealed = (select sealed from kept_sets),
          listing = (select listing from kept_sets), revision = (select revision from kept_sets) where project_id = ${id}`,
      ],
      [
        "its set was emptied",
        (w, id) => w.sql`update variable_sets set sealed = ${Buffer.alloc(0)} where project_id = ${id}`,
      ],
      ["its listing was changed", (w, id) => w.sql`update variable_sets set listing = '[]' where project_id = ${id}`],
    ];
    test.each(swaps)(
      "decryption_failed for a whole environment where %s by SQL, rather than part of it",
      async (_, swap) => {
        const w = world();
        const organization = await w.organization();
        const project = await w.project(organization, "web", { variables: { staging: { A: "1", B: "first B" } } });
        for (const table of ["kept_rows", "kept_sets"]) await w.run(`drop table if exists ${table}`);
        await w.run(
          `create table kept_rows as select * from variables where project_id = '${project.id}' and name = 'B'`,
        );
        await w.run(
          `create table kept_sets as select * from variable_sets where project_id = '${project.id}' and environment = 'staging'`,
        );
        await setVariables(w.desk, project.where, "staging", [{ name: "B", value: "second B" }]);
        const key = await w.key(organization);
        const whole = () => w.client().ask("/projects/web/variables?environment=staging", { key });
        expect(await whole()).toMatchObject({ status: 200 });
        await swap(w, project.id);
        const message = "Decryption failed for one or more items; nothing is returned.";
        expectRefusal(await whole(), 503, "decryption_failed", message);
        // The next innocent write does not make it good.
        await setVariables(w.desk, project.where, "staging", [{ name: "C", value: "3" }]).catch(() => {});
        expectRefusal(await whole(), 503, "decryption_failed", message);
      },
    );

    test("decryption_failed only where the damaged one is asked for", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web", { variables: { staging: { A: "1", B: "2", C: "3" } } });
      await flip(w, project.id, 30);
      const key = await w.key(organization);
      const good = await w.ask("/projects/web/variables?environment=staging&keys=A,C", { key });
      expect(keysOf(good.json)).toEqual(["A", "C"]);
      const bad = await w.ask("/projects/web/variables?environment=staging&keys=B", { key });
      expect(bad).toMatchObject({ status: 503, json: { code: "decryption_failed" } });
    });

    test("unavailable where the entry cannot be written: no value leaves", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "a value that stays" } } });
      const key = await w.key(organization);
      await w.run("alter table audit_entries rename to audit_gone");
      const answers = [
        await w.ask("/projects/web/variables?environment=staging", { key }),
        await w.ask("/projects/web/variables?environment=staging&format=env", { key }),
        await w.ask("/projects/web/variables?environment=staging&metadata_only=true", { key }),
      ];
      await w.run("alter table audit_gone rename to audit_entries");
      for (const answer of answers.slice(0, 2)) {
        expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      }
      expect(answers[2]).toMatchObject({ status: 200 });
      expect(await w.ask("/projects/web/variables?environment=staging", { key })).toMatchObject({ status: 200 });
      expect((await w.audit(key)).length).toBe(1);
    });

    test("unavailable while the database cannot answer", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { variables: { staging: { A: "1" } } });
      const key = await w.key(organization);
      await w.run("alter table projects rename to projects_gone");
      const answers = [
        await w.ask("/projects/web/variables?environment=staging", { key }),
        await w.ask("/projects/web/variables?metadata_only=true", { key }),
      ];
      await w.run("alter table projects_gone rename to projects");
      for (const answer of answers) {
        expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      }
      expect(await w.ask("/projects/web/variables?environment=staging", { key })).toMatchObject({ status: 200 });
    });
  });

  describe("memory", () => {
    /** 40 of 30 KB each, in every kind of character that a piece could be cut at. */
    const large = Object.fromEntries(
      numbered("N", 40).map((name, i) => [name, ["x", '"\\', "é\n", "🦔"][i % 4]?.repeat(30_000 / (i % 4 || 1)) ?? ""]),
    );
    const bytes = Object.values(large).reduce((sum, value) => sum + Buffer.byteLength(value), 0);
    const path = "/projects/web/variables?environment=staging";
    const webOf = async (w: World) => {
      const organization = await w.organization();
      const project = await w.project(organization, "web", {
        variables: { staging: large, production: { A: "a small one" } },
      });
      return { project, organization, key: await w.key(organization, everything) };
    };

    test.each([
      ["of a whole environment", ""],
      ["by keys", `&keys=${Object.keys(large)}`],
      ["by prefix", "&prefix=N"],
    ])(
      "of a large answer, %s, is given back once it was read, left half read, refused or failed",
      async (_, filter) => {
        const w = world();
        const { project, key } = await webOf(w);
        const json = await expectMemoryBack(w, `${path}${filter}`, key, bytes);
        const { variables } = json.json as { variables: { key: string; value: string }[] };
        expect(Object.fromEntries(variables.map(({ key, value }) => [key, value]))).toEqual(large);
        expect(json.text).toBe(JSON.stringify(json.json));
        const dotenv = await expectMemoryBack(w, `${path}${filter}&format=env`, key, bytes);
        expect(dotenv.headers.get("content-type")).toBe("text/plain; charset=utf-8");
        expect(dotenv.headers.get("keyhole-env-nonportable")).toContain("N0001");
        expect(Object.keys(parseEnv(dotenv.text)).length).toBe(40);

        const memory = memoryOf();
        const { ask } = w.client(({ source }) => ({ source: { ...source, memory, sets: freshSets(w) } }));
        await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
        expect((await ask(`${path}${filter}`, { key })).status).toBe(503);
        expect(memory.taken()).toEqual([0, 0]);
      },
    );

    test("of a small answer is given back with it, and it waits for no large one", async () => {
      const w = world();
      const { key } = await webOf(w);
      const memory = memoryOf(10_000_000, 1);
      const { ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
      for (const more of ["", "&format=env", "&keys=A", "&prefix=A"]) {
        const answer = await ask(`/projects/web/variables?environment=production${more}`, { key });
        expect(answer).toMatchObject({ status: 200, text: expect.stringContaining("a small one") });
        expect(memory.taken()).toEqual([0, 0]);
      }
    });

    test("is asked for before what is sealed is fetched, by statements that never return more", async () => {
      const w = world();
      const { key } = await webOf(w);
      const memory = memoryOf();
      const statements: { bytesMax: number; taken: number; bytes: number }[] = [];
      const { ask } = w.client(({ source }) => ({
        source: {
          ...source,
          memory,
          variables: {
            ...source.variables,
            values: async (place, environment, selection, bytesMax) => {
              const [small, large] = memory.taken();
              const rows = await source.variables.values(place, environment, selection, bytesMax);
              const items = rows.filter(({ part }) => part === 2);
              const bytes = items.reduce((sum, { sealed }) => sum + (sealed?.length ?? 0), 0);
              statements.push({ bytesMax, taken: small + large, bytes });
              return rows;
            },
          },
        },
      }));
      expect((await ask(`${path}&prefix=N0000`, { key })).status).toBe(200);
      expect(statements).toEqual([{ bytesMax: 262_144, taken: 262_144, bytes: expect.any(Number) }]);
      expect((await ask(`${path}&prefix=N`, { key })).status).toBe(200);
      const sealed = bytes + 40 * 34;
      expect(statements.slice(1)).toEqual([
        { bytesMax: 262_144, taken: 262_144, bytes: 0 },
        { bytesMax: sealed, taken: sealed, bytes: sealed },
      ]);
    });

    test("is waited for, first come first served, and no longer than the client does; metadata waits for nobody", async () => {
      const w = world();
      const { key } = await webOf(w);
      const memory = memoryOf(undefined, 1.5 * bytes);
      const { handle, ask } = w.client(({ source }) => ({ source: { ...source, memory, sets: freshSets(w) } }));
      const one = await handle(requestOf(path, { key }));
      const leaving = new AbortController();
      const waiting = handle(new Request(requestOf(`${path}&prefix=N`, { key }), { signal: leaving.signal }));
      const next = handle(requestOf(path, { key }));
      const names = await ask(`${path}&metadata_only=true`, { key });
      expect(keysOf(names.json)).toEqual(Object.keys(large));
      expect((await ask("/projects/web/variables?environment=production", { key })).status).toBe(200);
      leaving.abort();
      expect((await waiting).status).toBe(503);
      const first = await one.text();
      expect(await (await next).text()).toBe(first);
      expect(memory.taken()).toEqual([0, 0]);
      expect((await w.audit(key)).length).toBe(3);
    });

    test("that came late serves no key that was revoked meanwhile", async () => {
      const w = world();
      const { key } = await webOf(w);
      const memory = memoryOf(undefined, 1.5 * bytes);
      const { handle, ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
      const one = await handle(requestOf(path, { key }));
      const late = handle(requestOf(path, { key }));
      expect((await ask("/organization", { key })).status).toBe(200); // the late one has been judged, too, and waits
      await w.sql`update api_keys set revoked_at = 1 where id = ${key.id}`;
      await one.text();
      expect((await late).status).toBe(401);
      expect(memory.taken()).toEqual([0, 0]);
    });
  });

  test("neither key nor value was logged", () => {
    const w = world();
    expect(w.secrets.size).toBeGreaterThan(20);
    expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
  });
});

const tooMany = "The answer would hold more than 1000 items; narrow the request or use a narrower key.";

function keysOf(json: unknown): string[] {
  return (json as { variables: { key: string }[] }).variables.map(({ key }) => key);
}

/** A memory of sealed sets that remembers none yet. */
function freshSets(w: World): SealedSets {
  return new SealedSets(setQueries(w.keyhole.database), w.keyhole.source.keyring);
}

/** Flips a bit of what B is sealed as in staging. */
async function flip(w: World, projectId: string, at: number): Promise<void> {
  const [row] = await w.sql`select sealed from variables
    where project_id = ${projectId} and environment = 'staging' and name = 'B'`;
  const sealed = row?.["sealed"] as Buffer;
  const index = at < 0 ? sealed.length + at : at;
  sealed[index] = (sealed[index] as number) ^ 1;
  await w.sql`update variables set sealed = ${sealed}
    where project_id = ${projectId} and environment = 'staging' and name = 'B'`;
}
