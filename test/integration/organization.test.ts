import { describe, expect, test } from "bun:test";
import { unavailable } from "../../src/store/database.ts";
import { describeBoth, expectRefusal, firstOf, headersOf, usualHeaders } from "../support/world.ts";

describeBoth("GET /organization", (w) => {
  describe("200", () => {
    test("has id, name, slug and plan, in this order and without spaces", async () => {
      const organization = await w.organization({ name: 'Ácme "& Söhne" \\ 🦔' });
      const answer = await w.ask("/organization", { key: await w.key(organization) });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        `{"id":"${organization.id}","name":"Ácme \\"& Söhne\\" \\\\ 🦔","slug":"${organization.slug}","plan":"pro"}`,
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
    });

    test("takes any valid key, of any surfaces, resources, projects and environments", async () => {
      const { organization, key: without } = await w.place({ key: {} });
      const keys = [
        await w.key(organization, { surfaces: ["rest_api"] }),
        await w.key(organization, { surfaces: ["mcp_server"] }),
        await w.key(organization, { surfaces: ["ci_action"] }),
        await w.key(organization, { resources: ["requests"] }),
        await w.key(organization, { projects: ["web"], environments: ["staging"] }),
      ];
      await w.regrant(without, { resources: [] });
      for (const key of [...keys, without]) {
        expect(await w.ask("/organization", { key })).toMatchObject({ status: 200 });
      }
    });
  });

  describe("400", () => {
    test.each([
      ["x=1", "The query parameter 'x' is not known here."],
      ["slug", "The query parameter 'slug' is not known here."],
      ["metadata_only=true", "The query parameter 'metadata_only' is not known here."],
      ["access_token=kh_x", "The query parameter 'access_token' is not known here."],
      ["&", "The query parameter with an unusual name is not known here."],
    ])("?%s is refused, and the sentence names the parameter", async (query, error) => {
      const answer = await w.ask(`/organization?${query}`, { key: await w.key(await w.organization()) });
      expectRefusal(answer, 400, "invalid_request", error);
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
    });

    test("a question mark with nothing after it is not a parameter", async () => {
      expect(await w.ask("/organization?", { key: await w.key(await w.organization()) })).toMatchObject({
        status: 200,
      });
    });
  });

  describe("500", () => {
    test("does not repeat the message of a defect", async () => {
      const key = await w.key(await w.organization());
      const { ask } = w.client(({ gate }) => ({
        gate: {
          ...gate,
          lookUp: async () => {
            throw new TypeError(`no such property of ${key.key}`);
          },
        },
      }));
      const answer = await ask("/organization", { key });
      expectRefusal(answer, 500, "internal_error", "Internal error.");
      expect(headersOf(answer)).toEqual(usualHeaders());
      expect(w.log.at(-1)).toMatchObject({ status: 500, code: "internal_error", defect: "TypeError" });
    });
  });

  describe("503", () => {
    test.each([
      ["ECONNREFUSED", undefined],
      ["57P01", undefined],
      [undefined, "Error"],
    ])("of a database's %s has the defect %p in the log", async (code, defect) => {
      const key = await w.key(await w.organization());
      const failure = Object.assign(new Error("of the database"), code && { code });
      const { ask } = w.client(({ gate }) => ({
        gate: {
          ...gate,
          lookUp: async () => {
            throw unavailable(failure);
          },
        },
      }));
      expect(await ask("/organization", { key })).toMatchObject({ status: 503 });
      const { defect: logged, ...rest } = w.log.at(-1) ?? {};
      expect(rest).toMatchObject({ code: "unavailable", reason: `the database refused: ${code ?? "no code"}` });
      expect(logged).toBe(defect as never);
    });
  });
});
