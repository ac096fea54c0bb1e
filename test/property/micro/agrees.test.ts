import { afterAll, beforeAll, expect, test } from "bun:test";
import { parts, seed } from "../../support/seed.ts";
import { describeBoth } from "../../support/world.ts";
import { History, Stage } from "./history.ts";

/**
 * The server against the small Keyhole (`keyhole.ts`): the same histories, and every answer, entry and bucket compared.
 * KEYHOLE_TEST_HISTORIES sets how many there are.
 */

const asked = Number(process.env["KEYHOLE_TEST_HISTORIES"] ?? 0);

/** With few histories, some would not be seen. */
const codesToBeSeen = [
  ...["200", "304", "invalid_request", "unauthorized", "plan_required", "surface_required", "resource_required"],
  ...["environment_not_in_scope", "project_not_found", "not_found", "method_not_allowed", "rate_limited"],
  ...["too_many_items", "content_too_large", "env_unrepresentable", "decryption_failed"],
];

describeBoth("the small Keyhole", (w, dialect) => {
  const histories = asked || (dialect === "sqlite" ? 120 : 20);
  let stage: Stage;
  beforeAll(async () => {
    if (dialect === "sqlite") await w.run("PRAGMA synchronous = OFF");
    stage = new Stage(w);
    for (let n = 0; n < 2; n++) await stage.start();
  });
  afterAll(() => stage.close());

  const differs = "answers, records and charges as the server does, in random history %i";
  test.each(parts(histories))(
    differs,
    async (number) => {
      const history = new History(stage, seed * 1_000_003 + number, `h${number}`);
      const found = await history.run().then(
        () => "no difference",
        (error: Error) => `seed ${seed}, history ${error.message}`,
      );
      expect(found).toBe("no difference");
    },
    asked > 0 ? 3_600_000 : 60_000,
  );

  test("was asked in every way", () => {
    const expected = histories >= 60 ? codesToBeSeen : [];
    expect(expected.filter((code) => !stage.seen.has(code))).toEqual([]);
    if (asked > 0) console.log(`${stage.count} requests: ${JSON.stringify(Object.fromEntries(stage.seen))}`);
  });
});
