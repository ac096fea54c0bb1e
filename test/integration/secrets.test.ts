import { describe, expect, test } from "bun:test";
import {
  describeBoth,
  expectMemoryBack,
  firstOf,
  headersOf,
  leaksIn,
  numbered,
  tagged,
  usualHeaders,
} from "../support/world.ts";

const reader = { surfaces: ["ci_action"], resources: ["requests"] };
const staging = "/secrets?project=web&environment=staging";

describeBoth("GET /secrets", (w) => {
  describe("200", () => {
    test("has project, environment and secrets as one object, in byte order and without spaces", async () => {
      const { key } = await w.place({
        variables: {
          staging: { b: "2", B: 'q"\\', A_: "é🦔\n", A: "", constructor: "c", toString: "t", hasOwnProperty: "h" },
          production: { A: "production's own" },
        },
        key: reader,
      });
      const answer = await w.ask(staging, { key });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"project":{"slug":"web"},"environment":"staging","secrets":{' +
          '"A":"","A_":"é🦔\\n","B":"q\\"\\\\","b":"2","constructor":"c","hasOwnProperty":"h","toString":"t"}}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.value, ...tagged }));
    });

    test("is an empty object if there is nothing", async () => {
      const { key } = await w.place({ key: reader });
      expect(await w.ask(staging, { key })).toMatchObject({
        text: '{"project":{"slug":"web"},"environment":"staging","secrets":{}}',
      });
      expect(await w.ask(`${staging}&format=env`, { key })).toMatchObject({ status: 200, text: "" });
    });

    test("with format=env is the text that /variables answers, with the same headers", async () => {
      const { key } = await w.place({
        variables: { staging: { A: "two words", B: "p$HOME", C: "C:\\Temp\\" } },
        key: { surfaces: ["ci_action", "rest_api"], resources: ["variables"] },
      });
      const secrets = await w.client().ask(`${staging}&format=env`, { key });
      const variables = await w.client().ask("/projects/web/variables?environment=staging&format=env", { key });
      expect(secrets.text).toBe("A='two words'\nB='p$HOME'\nC=C:\\Temp\\\n\n");
      expect(secrets.text).toBe(variables.text);
      const expected = usualHeaders({
        ...firstOf.value,
        ...tagged,
        "content-type": "text/plain; charset=utf-8",
        "keyhole-env-nonportable": "B, C",
      });
      expect(headersOf(secrets)).toEqual(expected);
      expect(headersOf(variables)).toEqual(expected);
    });

    test("needs the surface and no resource", async () => {
      const { key } = await w.place({ variables: { staging: { A: "1" } }, key: { surfaces: ["ci_action"] } });
      await w.regrant(key, { resources: [] });
      expect(await w.ask(staging, { key })).toMatchObject({ status: 200 });
    });

    test("leaves one audit entry with its own action, in either format", async () => {
      const { organization, project, key } = await w.place({
        variables: { staging: { B: "the value of B", A: "the value of A" } },
        key: reader,
      });
      await w.ask(staging, { key, headers: { "x-request-id": "one" } });
      await w.ask(`${staging}&format=env`, { key, headers: { "x-request-id": "two" } });
      const common = {
        organization: organization.slug,
        project: project.slug,
        environment: "staging",
        action: "secrets.read",
        names: ["A", "B"],
        count: 2,
      };
      expect(await w.audit(key)).toMatchObject([
        { ...common, requestId: "one" },
        { ...common, requestId: "two" },
      ]);
      const rows = await w.sql`select * from audit_entries where key_id = ${key.id}`;
      expect(leaksIn(w.secrets, JSON.stringify(rows))).toEqual([]);
    });
  });

  test("memory for a large answer is given back, however the answer ends", async () => {
    const variables = Object.fromEntries(numbered("N", 20).map((name) => [name, `${name} "🦔\n`.repeat(2000)]));
    const { key } = await w.place({ variables: { staging: variables }, key: reader });
    const { json } = await expectMemoryBack(w, staging, key, 20 * 26_000);
    expect(json).toEqual({ project: { slug: "web" }, environment: "staging", secrets: variables });
    await expectMemoryBack(w, `${staging}&format=env`, key, 20 * 26_000);
  });
});
