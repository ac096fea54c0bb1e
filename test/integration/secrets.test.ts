import { describe, expect, test } from "bun:test";
import { firstOf, headersOf, onRecord, tagged, usualHeaders } from "../support/answer.ts";
import { describeBoth } from "../support/world.ts";

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
      expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.value, ...tagged, ...onRecord }));
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
        ...onRecord,
        "content-type": "text/plain; charset=utf-8",
        "keyhole-env-nonportable": "B, C",
      });
      expect(headersOf(secrets)).toEqual(expected);
      expect(headersOf(variables)).toEqual(expected);
    });
  });
});
