import { describe, expect, test } from "bun:test";
import { environments } from "../../src/core/names.ts";
import { setAccount } from "../../src/kinds/accounts/write.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { setVariables } from "../../src/kinds/variables/write.ts";
import { createProject, deleteProject } from "../../src/people/projects.ts";
import { type Answer, headersOf } from "../support/answer.ts";
import { deleteFile } from "../support/delete.ts";
import { insertAccounts } from "../support/rows.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

/** A key of one project and one environment, among much that it must not notice. */
describeBoth("a key limited to one project and staging", (w) => {
  describe("sees nothing else, on any path", () => {
    test("in bodies, headers and counts", async () => {
      const { key, canaries } = await surrounded(w);
      const { ask } = w.client();
      for (const path of paths) {
        const answer = await ask(path, { key });
        expect(canaries.filter((canary) => tells(answer, canary))).toEqual([]);
      }
      const project = (await ask("/projects/mine", { key })).json;
      const counts = { variableCount: 2, accountCount: 2, fileCount: 2 };
      expect(project).toMatchObject({ ...counts, environments: ["staging"], updatedAt: 3000 });
      expect((await ask("/projects", { key })).json).toMatchObject({
        projects: [{ slug: "mine", variableCount: 2, accountCount: 2 }],
      });
      expect((await ask("/projects/mine/variables?metadata_only=true", { key })).json).toEqual({
        environment: null,
        variables: ["EVERYWHERE", "STAGING"].map((key) => ({ key, updatedAt: 3000 })),
      });
      expect((await ask("/projects/mine/accounts?metadata_only=true", { key })).json).toEqual({
        environment: null,
        accounts: [
          { name: "everywhere", environments: ["staging"], updatedAt: 3000 },
          { name: "of staging", environments: ["staging"], updatedAt: 3000 },
        ],
      });
      const files = (await ask("/files?project=mine&environment=staging&metadataOnly=1", { key })).json;
      const seen = ["everywhere", "of-staging"].map((path) => ({ path, environments: ["staging"] }));
      expect(files).toMatchObject({ files: seen });
    });

    test("and no answer changes with what happens elsewhere", async () => {
      const { organization, key } = await surrounded(w);
      const seen = async () => {
        const { ask } = w.client();
        const answers: unknown[] = [];
        for (const path of paths) {
          const answer = await ask(path, { key });
          const { "x-request-id": _, ratelimit: __, "keyhole-audit": ___, ...headers } = headersOf(answer);
          answers.push([path, answer.status, answer.text, headers]);
        }
        return answers;
      };
      const before = await seen();
      w.clock.nowMs = 9000;
      const mine = `${organization.slug}/mine`;
      await setVariables(w.admin, mine, "production", [{ name: "LATE", value: "1" }]);
      await setVariables(w.admin, mine, "development", [{ name: "EVERYWHERE", value: "other" }]);
      await setAccount(w.admin, mine, "late", ["development", "production"], { a: "1" });
      await putFile(w.admin, mine, { path: "late", environments: ["production"], content: Buffer.from("x") });
      // A file and an account that staging shares with the others.
      const content = Buffer.from("canary, later");
      await putFile(w.admin, mine, { path: "everywhere", environments: ["production"], content });
      await deleteFile(w.admin, mine, "everywhere", ["development"]);
      await insertAccounts(w, { where: mine }, ["everywhere"], ["production"], () => "canary, later");
      await setVariables(w.admin, `${organization.slug}/theirs`, "staging", [{ name: "LATE", value: "1" }]);
      await deleteProject(w.admin, `${organization.slug}/also-theirs`);
      await createProject(w.admin, `${organization.slug}/new`, {});
      w.clock.nowMs = undefined;
      expect(await seen()).toEqual(before);
    });
  });
});

const paths = [
  ...["/organization", "/projects", "/projects/mine", "/projects/mine/variables?metadata_only=true"],
  "/projects/mine/variables?metadata_only=true&environment=staging",
  ...["/projects/mine/variables?environment=staging", "/projects/mine/variables?environment=staging&prefix=PROD"],
  "/projects/mine/variables?environment=staging&keys=PRODUCTION,STAGING",
  ...["/projects/mine/variables?environment=staging&format=env", "/projects/mine/variables?environment=production"],
  ...["/projects/mine/accounts", "/projects/mine/accounts?metadata_only=true"],
  ...["/projects/mine/accounts?environment=staging", "/projects/mine/accounts?environment=development"],
  ...["/files?project=mine&environment=staging", "/files?project=mine&environment=staging&metadataOnly=1"],
  ...["/files?project=mine&environment=staging&path=of-production", "/files?project=mine&environment=production"],
  ...["/secrets?project=mine&environment=staging", "/secrets?project=mine&environment=development", "/projects/theirs"],
  ...["/projects/theirs/variables?environment=staging", "/projects/foreign/accounts"],
];

/** The key's own project among others; all have something in every environment. */
async function surrounded(w: World) {
  w.clock.nowMs = 3000;
  const [organization, other] = [await w.organization(), await w.organization({ name: "Foreign Canary" })];
  await w.project(organization, "mine", {
    variables: Object.fromEntries(
      environments.map((name) => [name, { EVERYWHERE: `in ${name}`, [name.toUpperCase()]: `canary of ${name}` }]),
    ),
    accounts: [
      { name: "everywhere", environments, values: { a: "shared" } },
      ...environments.map((name) => ({ name: `of ${name}`, environments: [name], values: { a: `canary of ${name}` } })),
    ],
    files: [
      { path: "everywhere", environments, content: "shared" },
      ...environments.map((name) => ({ path: `of-${name}`, environments: [name], content: `canary of ${name}` })),
    ],
  });
  const theirs = {
    variables: { staging: { THEIRS: "canary of theirs" } },
    accounts: [{ name: "canary account", environments, values: { a: "1" } }],
    files: [{ path: "canary-file", environments, content: "canary" }],
  };
  const others = [
    await w.project(organization, "theirs", { ...theirs, name: "Canary Name" }),
    await w.project(organization, "also-theirs", theirs),
    await w.project(other, "foreign", theirs),
  ];
  // Later than anything of staging in the key's project.
  w.clock.nowMs = 5000;
  const later = [{ name: "EVERYWHERE", value: "canary, later" }];
  await setVariables(w.admin, `${organization.slug}/mine`, "production", later);
  await setAccount(w.admin, `${organization.slug}/mine`, "of production", ["production"], { a: "canary, later" });
  w.clock.nowMs = undefined;
  const key = await w.key(organization, { ...everything, projects: ["mine"], environments: ["staging"] });
  const canaries = ["production", "PRODUCTION", "development", "DEVELOPMENT", "theirs", "foreign", "canary of dev"];
  canaries.push("canary of prod", "canary account", "canary-file", "Canary", "5000");
  canaries.push(other.id, ...others.map(({ id }) => id));
  return { organization, key, canaries };
}

/** Whether an answer contains the text, also in the content of files. */
function tells(answer: Answer, canary: string): boolean {
  // An id, a tag and a receipt may hold any digits.
  const { "x-request-id": _, etag: __, "keyhole-audit": ___, ...headers } = headersOf(answer);
  const text = `${answer.text} ${JSON.stringify(headers)}`;
  const whole = /^\d+$/.test(canary) ? text.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "") : text;
  const decoded = [...whole.matchAll(/"content":"([^"]*)"/g)].map(([, content]) =>
    Buffer.from(content ?? "", "base64"),
  );
  return whole.includes(canary) || decoded.some((bytes) => bytes.includes(canary));
}
