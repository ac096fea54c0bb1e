import { describe, expect, test } from "bun:test";
import { type Environment, environments } from "../../src/core/names.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { firstOf, headersOf, usualHeaders } from "../support/answer.ts";
import { diceOf } from "../support/attack.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { seed } from "../support/seed.ts";
import { describeBoth } from "../support/world.ts";

describeBoth("GET /projects/{slug}", (w) => {
  describe("200", () => {
    test("has the list's fields, then environments, fileCount, createdAt and updatedAt, in this order", async () => {
      w.clock.nowMs = 1_700_000_000_000;
      const { organization, project: web } = await w.place({
        name: "Wéb",
        variables: { development: { A: "1", B: "2" }, production: { B: "3" } },
        accounts: [{ name: "ci", environments: ["production"], values: { password: "hunter22" } }],
        files: [
          { path: "a", environments: ["staging", "production"], content: "x" },
          { path: "b", environments: ["development"], content: "y" },
        ],
      });
      w.clock.nowMs = 1_700_000_000_123;
      await setVariables(w.admin, web.where, "staging", [{ name: "Z", value: "9" }]);
      w.clock.nowMs = undefined;
      const answer = await w.ask("/projects/web", { key: await w.key(organization) });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        `{"id":"${web.id}","name":"Wéb","slug":"web","variableCount":3,"accountCount":1,` +
          `"environments":["development","staging","production"],"fileCount":2,` +
          `"createdAt":1700000000000,"updatedAt":1700000000123}`,
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
    });

    test("counts and updatedAt follow random writes, for a key of any environments", async () => {
      w.clock.nowMs = 1000;
      const { organization, where } = await w.place();
      const keys = [1, 2, 3, 4, 5, 6, 7].map((mask) => environments.filter((_, bit) => mask & (1 << bit)));
      const readers = await Promise.all(
        keys.map(async (reach) => ({ reach, key: await w.key(organization, { environments: reach }) })),
      );
      const model = { variables: new Place(), accounts: new Place(), files: new Place() };
      const changedAt = new Map<Environment, number>();
      const { below: random } = diceOf(seed);
      // PostgreSQL takes longer for each write, and must only do the same as SQLite.
      const writes = w.dialect === "sqlite" ? 200 : 60;
      const expectCounts = async () => {
        const { ask } = w.client();
        for (const { reach, key } of readers) {
          expect((await ask("/projects/web", { key })).json).toMatchObject({
            variableCount: model.variables.count(reach),
            accountCount: model.accounts.count(reach),
            fileCount: model.files.count(reach),
            environments: reach,
            updatedAt: Math.max(1000, ...reach.map((environment) => changedAt.get(environment) ?? 0)),
          });
          expect((await ask("/projects", { key })).json).toMatchObject({
            projects: [{ variableCount: model.variables.count(reach), accountCount: model.accounts.count(reach) }],
          });
        }
      };
      for (let write = 0; write < writes; write++) {
        w.clock.nowMs = 2000 + write;
        const environment = environments[random(3)] as Environment;
        const some = environments.filter((_, bit) => (random(7) + 1) & (1 << bit));
        const asked = some.length > 0 ? some : [environment];
        const name = `N${random(6)}`;
        const written = await writeOne(random(6), name, environment, asked);
        for (const one of written) changedAt.set(one, w.clock.nowMs);
        if (write % 20 === 19) await expectCounts();
      }
      await rotateData(w.admin, where);
      await expectCounts();
      w.clock.nowMs = undefined;

      async function writeOne(kind: number, name: string, environment: Environment, asked: readonly Environment[]) {
        const { variables, accounts, files } = model;
        if (kind === 0 || kind === 1) {
          const isThere = variables.of(environment).has(name);
          if (kind === 1 && !isThere) return [];
          if (kind === 1) await deleteVariable(w.admin, where, environment, name);
          else await setVariables(w.admin, where, environment, [{ name, value: "x" }]);
          if (kind === 1) variables.of(environment).delete(name);
          else variables.of(environment).set(name, name);
          return [environment];
        }
        if (kind === 2 || kind === 3) {
          const before = environments.filter((one) => accounts.of(one).has(name));
          if (kind === 3 && before.length === 0) return [];
          if (kind === 3) await deleteAccount(w.admin, where, name);
          else await setAccount(w.admin, where, name, asked, { a: "1" });
          for (const one of before) accounts.of(one).delete(name);
          if (kind === 2) for (const one of asked) accounts.of(one).set(name, name);
          return [...before, ...(kind === 2 ? asked : [])];
        }
        if (kind === 5) {
          if (!files.of(environment).has(name)) return [];
          await deleteFile(w.admin, where, name, [environment]);
          files.of(environment).delete(name);
          return [environment];
        }
        const { id } = await putFile(w.admin, where, { path: name, environments: asked, content: Buffer.from("x") });
        for (const one of asked) files.of(one).set(name, id);
        return asked;
      }
    });

    test("updatedAt never goes back, even if a writer's clock does", async () => {
      w.clock.nowMs = 9000;
      const { organization, where } = await w.place();
      w.clock.nowMs = 5000;
      await setVariables(w.admin, where, "staging", [{ name: "A", value: "1" }]);
      w.clock.nowMs = undefined;
      const answer = await w.ask("/projects/web", { key: await w.key(organization) });
      expect(answer.json).toMatchObject({ createdAt: 9000, updatedAt: 9000 });
    });

    test("finds slugs of every shape, also those that look like an array index or a property", async () => {
      const organization = await w.organization();
      const slugs = ["0", "42", "constructor", "tostring", "a--b-", "x".repeat(64)];
      for (const slug of slugs) await w.project(organization, slug);
      const [every, listed] = [await w.key(organization), await w.key(organization, { projects: slugs })];
      for (const slug of slugs) {
        expect((await w.ask(`/projects/${slug}`, { key: every })).json).toMatchObject({ slug });
        expect((await w.ask(`/projects/${slug}`, { key: listed })).json).toMatchObject({ slug });
      }
    });
  });
});

/** What a model holds of one kind: identities by name in each environment. */
class Place {
  readonly #environments = new Map(environments.map((name) => [name, new Map<string, string>()]));

  of(environment: Environment): Map<string, string> {
    return this.#environments.get(environment) as Map<string, string>;
  }

  count(reach: readonly Environment[]): number {
    return new Set(reach.flatMap((environment) => [...this.of(environment).values()])).size;
  }
}
