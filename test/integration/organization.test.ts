import { expect, test } from "bun:test";
import { unavailable } from "../../src/store/database.ts";
import { expectRefusal, firstOf, headersOf, usualHeaders } from "../support/answer.ts";
import { describeBoth } from "../support/world.ts";

describeBoth("GET /organization", (w) => {
  test("200: has id, name, slug and plan, in this order and without spaces", async () => {
    const organization = await w.organization({ name: 'Ácme "& Söhne" \\ 🦔' });
    const answer = await w.ask("/organization", { key: await w.key(organization) });
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(
      `{"id":"${organization.id}","name":"Ácme \\"& Söhne\\" \\\\ 🦔","slug":"${organization.slug}","plan":"pro"}`,
    );
    expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
  });

  test("500: does not repeat the message of a defect", async () => {
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

  test.each([
    ["ECONNREFUSED", undefined],
    ["57P01", undefined],
    [undefined, "Error"],
  ])("503: of a database's %s has the defect %p in the log", async (code, defect) => {
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
