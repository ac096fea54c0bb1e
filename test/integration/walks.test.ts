import { Database as SqliteFile } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { typedIn } from "../../src/dashboard/parts/carry-out.ts";
import { set as setOfAccounts } from "../../src/kinds/accounts/operations.ts";
import { copy, set } from "../../src/kinds/variables/operations.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import { visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { type Content, describeOnce } from "../support/world.ts";

/* What a change costs: the statements of the walks on the architecture page, on SQLite, from the first look-up. */

const content: Content = {
  variables: { staging: { A: "one" }, production: { A: "other" } },
  accounts: [{ name: "stripe", environments: ["staging", "production"], values: { user: "ci" } }],
};

/** The statements that are prepared while `work` runs. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const { prepare } = SqliteFile.prototype;
  let count = 0;
  SqliteFile.prototype.prepare = function (this: SqliteFile, ...args: Parameters<typeof prepare>) {
    count += 1;
    return prepare.apply(this, args);
  } as typeof prepare;
  try {
    await work();
  } finally {
    SqliteFile.prototype.prepare = prepare;
  }
  return count;
}

const page = readFileSync(new URL("../../docs/maintainers/architecture.md", import.meta.url), "utf8");
const numbers = /^Statements of a change, on SQLite: .*$/m.exec(page)?.[0];

describeOnce("a change", (w) => {
  const environment = "staging" as const;
  const walks: readonly (readonly [what: string, most: number, run: (where: string) => Promise<unknown>])[] = [
    [
      "var set",
      17,
      (where) => run(set, { project: where, environments: [environment], name: "A", value: typedIn("2") }),
    ],
    [
      "account set",
      24,
      (where) =>
        run(setOfAccounts, {
          project: where,
          name: "stripe",
          values: typedIn('{"user":"new"}'),
          environments: [environment, "production"],
        }),
    ],
    ["var copy", 24, (where) => run(copy, { project: where, environment, toEnvironment: "production" })],
  ];
  const run = (row: unknown, given: object) => performed(row as Operation, w.admin, given);

  test.each(walks)("%s takes as many statements as the page says, and no more", async (what, most, run) => {
    const { where } = await w.place(content);
    const count = await statementsOf(() => run(where));
    expect(count).toBeLessThanOrEqual(most);
    expect(numbers).toContain(`\`${what}\` ${count}`);
  });

  test("its form takes as many statements as the page says, and no more", async () => {
    const { where } = await w.place(content);
    const visitor = await visitorOf(w);
    const [at, action] = [`/p/${where}/variables/set?name=A`, `/p/${where}/variables/set`];
    const form = await visitor.form(at, action);
    const fields = { ...form, "value.staging": "2", "value.production": "" };
    const count = await statementsOf(() => visitor.send(action, fields));
    expect(count).toBeLessThanOrEqual(20);
    expect(numbers).toContain(`its form ${count}`);
  });
});
