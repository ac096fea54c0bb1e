import { describe, expect, test } from "bun:test";
import { deleteFile, putFile } from "../../src/admin/files.ts";
import { setPlan } from "../../src/admin/organizations.ts";
import { ByteBudget } from "../../src/limit/budget.ts";
import { environments } from "../../src/names.ts";
import { seal } from "../../src/seal/envelope.ts";
import { filePlace } from "../../src/seal/place.ts";
import {
  answerOf,
  dataKeyOf,
  describeBoth,
  expectRefusal,
  firstOf,
  headersOf,
  insertFiles,
  leaksIn,
  numbered,
  randomContent,
  refusingJournal,
  requestOf,
  sha256,
  usualHeaders,
  type World,
} from "../world.ts";

const reader = { resources: ["files"] };
const staging = "/files?project=web&environment=staging";

describeBoth("GET /files", (world) => {
  describe("200", () => {
    test("says project, environment and files with their metadata and content, in this order and without a space", async () => {
      const w = world();
      const organization = await w.organization();
      w.clock.nowMs = 1_700_000_000_000;
      await w.project(organization, "web", {
        files: [
          {
            path: "config/key.pem",
            environments: ["staging", "production"],
            content: "secret key\n",
            name: 'The "key"',
            mode: "0400",
            contentType: "application/x-pem-file",
          },
          { path: ".env.é", environments: ["staging"], content: "" },
          { path: "elsewhere", environments: ["production"], content: "not of staging" },
        ],
      });
      w.clock.nowMs = undefined;
      const key = await w.key(organization, reader);
      const answer = await w.ask(staging, { key });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(
        '{"project":{"slug":"web"},"environment":"staging","files":[' +
          '{"name":".env.é","path":".env.é","mode":"0600","size":0,' +
          '"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",' +
          '"contentType":"application/octet-stream","environments":["staging"],"updatedAt":1700000000000,"content":""},' +
          '{"name":"The \\"key\\"","path":"config/key.pem","mode":"0400","size":11,' +
          `"sha256":"${sha256("secret key\n")}",` +
          '"contentType":"application/x-pem-file","environments":["staging","production"],"updatedAt":1700000000000,' +
          '"content":"c2VjcmV0IGtleQo="}]}',
      );
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.content));
    });

    test.each(["metadataOnly=true", "metadataOnly=1"])(
      "with %s it is the same without content, opens nothing and is not audited",
      async (flag) => {
        const w = world();
        const organization = await w.organization();
        w.clock.nowMs = 1_700_000_000_000;
        const { id } = await w.project(organization, "web", {
          files: [{ path: "a/b", environments: ["staging"], content: "the content of a file" }],
        });
        w.clock.nowMs = undefined;
        await w.sql`update files set sealed = ${Buffer.from("nothing that opens")} where project_id = ${id}`;
        await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`;
        const key = await w.key(organization, reader);
        const answer = await w.ask(`${staging}&${flag}`, { key });
        expect(answer.status).toBe(200);
        expect(answer.text).toBe(
          '{"project":{"slug":"web"},"environment":"staging","files":[' +
            `{"name":"b","path":"a/b","mode":"0600","size":21,"sha256":"${sha256("the content of a file")}",` +
            '"contentType":"application/octet-stream","environments":["staging"],"updatedAt":1700000000000}]}',
        );
        expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
        expect(await w.audit(key)).toEqual([]);
      },
    );

    test.each(["metadataOnly=false", "metadataOnly=0", "metadataOnly=%31", "metadataOnly=tru%65"])(
      "%s is charged to the bucket of content",
      async (flag) => {
        const w = world();
        const organization = await w.organization();
        await w.project(organization, "web", { files: [{ path: "a", environments: ["staging"], content: "x" }] });
        const key = await w.key(organization, reader);
        const answer = await w.ask(`${staging}&${flag}`, { key });
        expect(headersOf(answer)).toMatchObject(firstOf.content);
        expect(answer.text.includes('"content":"eA=="')).toBe(!flag.includes("%"));
      },
    );

    test("is in byte order of path, beyond what UTF-16 orders alike", async () => {
      const w = world();
      const organization = await w.organization();
      const ordered = [
        "!",
        "#x",
        "0",
        "10",
        "9",
        "A",
        "B/a",
        "B0",
        "Z",
        "_",
        "a b",
        "a+/c",
        "a-/c",
        "a.b",
        "a/b",
        "a/b.c",
        "a0",
        "aa",
        "z",
        "~",
        "É",
        "ß",
        "ё",
        "あ",
        "日本/x",
        "𐀀",
        "🦔",
        "🦔a",
      ];
      ordered.splice(ordered.indexOf("𐀀"), 0, "\uff21x", "\ufffd");
      expect([...ordered].sort()).not.toEqual(ordered); // which is by UTF-16
      const project = await w.project(organization, "web");
      await insertFiles(
        w,
        organization,
        project,
        [...ordered].sort((a, b) => Bun.hash.crc32(a) - Bun.hash.crc32(b)),
        ["staging"],
      );
      const key = await w.key(organization, reader);
      for (const more of [
        "",
        "&metadataOnly=1",
        `&path=${[...ordered].reverse().map(encodeURIComponent).join("&path=")}`,
      ]) {
        const answer = await w.ask(`${staging}${more}`, { key });
        expect(pathsOf(answer.json)).toEqual(ordered);
      }
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([...ordered, ...ordered].map((path) => [path]));
    });

    test("with path gives exactly those that are there, each once", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        files: ["a", "b/c", "b,d", "b d", "[e]", "é", "+", "production"].map((path) => ({
          path,
          environments: [path === "production" ? ("production" as const) : ("staging" as const)],
          content: `content of ${path}`,
        })),
      });
      const key = await w.key(organization, reader);
      const asked = async (query: string) => {
        const answers = [
          await w.ask(`${staging}${query}`, { key }),
          await w.ask(`${staging}&metadataOnly=1${query}`, { key }),
        ];
        const paths = answers.map((answer) => pathsOf(answer.json));
        expect(paths[0]).toEqual(paths[1] as string[]);
        return paths[0];
      };
      expect(await asked("&path=a")).toEqual(["a"]);
      expect(await asked("&path=b/c&path=a&path=a&path=b%2Fc")).toEqual(["a", "b/c"]);
      expect(await asked("&path=b,d")).toEqual(["b,d"]);
      expect(await asked("&path=b%2Cd&path=b+d&path=b%20d")).toEqual(["b d", "b,d"]);
      expect(await asked("&path=[e]&path=%C3%A9&path=%2B")).toEqual(["+", "[e]", "é"]);
      for (const none of [
        "A",
        "b",
        "b/",
        "/a",
        "./a",
        "b//c",
        "../a",
        "a%00",
        "%00",
        "*",
        "%25",
        "e%CC%81",
        "production",
        "a%0A",
      ]) {
        expect(await asked(`&path=${none}`)).toEqual([]);
      }
      expect(await asked("&path=nowhere&path=a")).toEqual(["a"]);
    });

    test("is an empty list where there is nothing to give, and leaves no entry", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web");
      const key = await w.key(organization, reader);
      for (const more of ["", "&metadataOnly=1", "&path=a"]) {
        expect(await w.ask(`${staging}${more}`, { key })).toMatchObject({
          status: 200,
          text: '{"project":{"slug":"web"},"environment":"staging","files":[]}',
        });
      }
      expect(await w.audit(key)).toEqual([]);
    });

    test("holds for one path what stands there in this environment, and names only environments that the key reaches", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web", {
        files: [
          { path: "f", environments: ["development", "staging"], content: "shared" },
          { path: "f", environments: ["production"], content: "production's own" },
        ],
      });
      const seen = async (environment: string, ...reach: string[]) => {
        const key = await w.key(organization, { ...reader, environments: reach });
        const answer = await w.ask(`/files?project=web&environment=${environment}`, { key });
        const { files } = answer.json as { files: { environments: string[]; content: string }[] };
        return files.map(({ environments, content }) => [
          environments.join(),
          Buffer.from(content, "base64").toString(),
        ]);
      };
      expect(await seen("staging", ...environments)).toEqual([["development,staging", "shared"]]);
      expect(await seen("staging", "staging", "production")).toEqual([["staging", "shared"]]);
      expect(await seen("production", ...environments)).toEqual([["production", "production's own"]]);
      // A file of all environments takes the place of both; taken out of one again, it stays in the others.
      await putFile(w.desk, where, { path: "f", environments: [...environments], content: Buffer.from("of all") });
      expect(await seen("production", ...environments)).toEqual([["development,staging,production", "of all"]]);
      await deleteFile(w.desk, where, "f", ["staging"]);
      expect(await seen("staging", ...environments)).toEqual([]);
      expect(await seen("development", ...environments)).toEqual([["development,production", "of all"]]);
      await putFile(w.desk, where, { path: "f", environments: ["production"], content: Buffer.from("newest") });
      expect(await seen("development", ...environments)).toEqual([["development", "of all"]]);
      expect(await seen("production", ...environments)).toEqual([["production", "newest"]]);
    });

    // Around the sizes at which content is opened, fetched or spelled in pieces.
    test.each([
      1,
      2,
      3,
      192 * 1024 - 1,
      192 * 1024,
      192 * 1024 + 1,
      256 * 1024 - 34,
      256 * 1024 - 33,
      256 * 1024,
      512 * 1024 - 34,
      512 * 1024 - 33,
      512 * 1024,
      3 * 512 * 1024 + 7,
    ])("gives back %d bytes as they were written", async (size) => {
      const w = world();
      const organization = await w.organization();
      const content = randomContent(size);
      await w.project(organization, "web", { files: [{ path: "f", environments: ["staging"], content }] });
      const answer = await w.ask(staging, { key: await w.key(organization, reader) });
      const [file] = (answer.json as { files: { content: string; sha256: string; size: number }[] }).files;
      expect(Buffer.from(file?.content ?? "", "base64").equals(content)).toBe(true);
      expect(file).toMatchObject({ size, sha256: sha256(content), content: content.toString("base64") });
    });

    test("leaves one entry for each file, on record before the first byte leaves", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web", {
        files: ["b", "a", "c/d"].map((path) => ({
          path,
          environments: ["staging", "production"],
          content: `content of ${path}`,
        })),
      });
      const key = await w.key(organization, reader);
      const response = await w.handle(
        requestOf(staging, { key, headers: { "x-request-id": "one", "user-agent": "ci" } }),
      );
      const entries = await w.audit(key);
      const common = {
        organization: organization.slug,
        project: project.slug,
        environment: "staging",
        action: "file.read",
      };
      expect(entries).toMatchObject(
        ["a", "b", "c/d"].map((path) => ({ ...common, names: [path], count: 1, requestId: "one", userAgent: "ci" })),
      );
      expect(pathsOf((await answerOf(response)).json)).toEqual(["a", "b", "c/d"]);
      await w.ask(`${staging}&path=b`, { key, headers: { "x-request-id": "two" } });
      expect((await w.audit(key)).slice(3)).toMatchObject([{ ...common, names: ["b"], requestId: "two" }]);
      const rows = await w.sql`select * from audit_entries where key_id = ${key.id}`;
      expect(leaksIn(w.secrets, JSON.stringify(rows))).toEqual([]);
    });

    test("is one version of each file, also where one is written anew while it is being read", async () => {
      const w = world();
      const organization = await w.organization();
      const { where } = await w.project(organization, "web", {
        files: ["a", "b"].map((path) => ({ path, environments: ["staging"], content: `first ${path}` })),
      });
      const key = await w.key(organization, reader);
      let writes = 0;
      const { ask } = w.client(({ source }) => ({
        source: {
          ...source,
          files: {
            ...source.files,
            contents: async (...values) => {
              writes += 1;
              if (writes === 1)
                await putFile(w.desk, where, {
                  path: "b",
                  environments: ["staging"],
                  content: Buffer.from("second, longer b"),
                });
              if (writes === 2) await deleteFile(w.desk, where, "b", ["staging"]);
              return source.files.contents(...values);
            },
          },
        },
      }));
      const answer = await ask(staging, { key });
      expect(answer).toMatchObject({ status: 200, json: { files: [{ path: "a", content: base64("first a") }] } });
      expect(pathsOf(answer.json)).toEqual(["a"]);
      expect(writes).toBe(3);
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["a"]]);
    });
  });

  describe("401", () => {
    test("is for a request without a key", async () => {
      for (const path of ["/files", staging, `${staging}&metadataOnly=1`]) {
        expectRefusal(await world().ask(path), 401, "unauthorized", "A valid API key is required.");
      }
    });
  });

  describe("403", () => {
    test("resource_required for every key that was not given files by name", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { files: [{ path: "a", environments: ["staging"], content: "x" }] });
      const keys = [
        await w.key(organization),
        await w.key(organization, { resources: ["projects", "variables", "accounts", "requests"] }),
      ];
      for (const key of keys) {
        for (const more of ["", "&metadataOnly=1"]) {
          const answer = await w.ask(`${staging}${more}`, { key });
          expectRefusal(answer, 403, "resource_required", "This key may not read this kind of resource.");
        }
      }
    });

    test("plan_required, surface_required and environment_not_in_scope", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", { files: [{ path: "a", environments: ["staging"], content: "x" }] });
      const key = await w.key(organization, reader);
      await setPlan(w.desk, organization.slug, "free");
      expect(await w.ask(staging, { key })).toMatchObject({ status: 403, json: { code: "plan_required" } });
      await setPlan(w.desk, organization.slug, "pro");
      const surface = await w.key(organization, { ...reader, surfaces: ["ci_action", "mcp_server"] });
      expect(await w.ask(staging, { key: surface })).toMatchObject({ status: 403, json: { code: "surface_required" } });
      const narrow = await w.key(organization, { ...reader, environments: ["production", "development"] });
      for (const path of [staging, "/files?project=nowhere&environment=staging", `${staging}&metadataOnly=true`]) {
        expectRefusal(
          await w.ask(path, { key: narrow }),
          403,
          "environment_not_in_scope",
          "This key may not read this environment.",
        );
      }
    });
  });

  describe("404", () => {
    test("project_not_found alike for a project that is absent, out of scope and of another organization", async () => {
      const w = world();
      const [organization, other] = [await w.organization(), await w.organization()];
      const files = [{ path: "a", environments: ["staging"] as const, content: "x" }];
      for (const slug of ["web", "api"]) await w.project(organization, slug, { files });
      await w.project(other, "elsewhere", { files });
      const key = await w.key(organization, { ...reader, projects: ["web"] });
      for (const slug of ["api", "elsewhere", "nowhere", "Web", "web%00", "%2F"]) {
        for (const [more, bucket] of [
          ["", firstOf.content],
          ["&metadataOnly=1", firstOf.metadata],
          ["&path=a", firstOf.content],
        ] as const) {
          const answer = await w.client().ask(`/files?project=${slug}&environment=staging${more}`, { key });
          expectRefusal(answer, 404, "project_not_found", "No such project, or this key may not read it.");
          expect(headersOf(answer)).toEqual(usualHeaders(bucket));
        }
      }
      expect(await w.audit(key)).toEqual([]);
    });
  });

  describe("422", () => {
    test("1000 files are given; with 1001 in the project nothing is, whatever the filters", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web");
      const paths = numbered("f/", 1000);
      await insertFiles(w, organization, project, paths, ["staging"]);
      const key = await w.key(organization, reader);
      const [content, metadata] = [await w.ask(staging, { key }), await w.ask(`${staging}&metadataOnly=1`, { key })];
      expect(pathsOf(content.json)).toEqual(paths);
      expect(pathsOf(metadata.json)).toEqual(paths);
      const entries = await w.audit(key);
      expect(entries.map(({ names }) => names[0]).sort()).toEqual(paths);
      expect(new Set(entries.map(({ requestId }) => requestId)).size).toBe(1);

      await insertFiles(w, organization, project, ["one more"], ["production"]);
      for (const more of ["", "&metadataOnly=1", "&path=f/0001", "&path=f/0001&metadataOnly=1", "&path=nowhere"]) {
        expectRefusal(await w.ask(`${staging}${more}`, { key }), 422, "too_many_items", tooMany);
      }
      const production = `/files?project=web&environment=production&metadataOnly=1`;
      expectRefusal(await w.ask(production, { key }), 422, "too_many_items", tooMany);
      const narrow = await w.key(organization, { ...reader, environments: ["staging"] });
      expectRefusal(await w.ask(staging, { key: narrow }), 422, "too_many_items", tooMany);
      expect((await w.audit(key)).length).toBe(1000);
    });

    test("the 1000 are counted over all environments, each file once", async () => {
      const w = world();
      const organization = await w.organization();
      const { id } = await w.project(organization, "web", {
        files: [{ path: "a", environments: ["staging"], content: "x" }],
      });
      const key = await w.key(organization, reader);
      const counted = async (counts: number[]) => {
        await w.sql`update projects set file_counts = ${JSON.stringify(counts)} where id = ${id}`;
        return (await w.ask(staging, { key })).status;
      };
      expect(await counted([1000, 0, 0, 0, 0, 0, 0])).toBe(200);
      expect(await counted([0, 0, 0, 0, 0, 0, 1000])).toBe(200);
      expect(await counted([143, 143, 143, 143, 143, 143, 142])).toBe(200);
      expect(await counted([143, 143, 143, 143, 143, 143, 143])).toBe(422);
      expect(await counted([1001, 0, 0, 0, 0, 0, 0])).toBe(422);
    });

    test("8 MiB of content are given exactly, and one byte more refused before anything is opened", async () => {
      const w = world();
      const organization = await w.organization();
      const most = randomContent(8 * 1024 * 1024);
      const project = await w.project(organization, "web", {
        files: [{ path: "most", environments: ["staging"], content: most }],
      });
      const key = await w.key(organization, reader);
      const whole = await w.ask(staging, { key });
      expect(whole.status).toBe(200);
      const [file] = (whole.json as { files: { content: string }[] }).files;
      expect(Buffer.from(file?.content ?? "", "base64").equals(most)).toBe(true);

      await putFile(w.desk, project.where, { path: "more", environments: ["staging"], content: Buffer.from("x") });
      const refused = await w.ask(staging, { key });
      expectRefusal(refused, 422, "content_too_large", tooLarge);
      expect(headersOf(refused)).toMatchObject({ "ratelimit-policy": firstOf.content["ratelimit-policy"] });
      expectRefusal(await w.ask(`${staging}&path=most&path=more`, { key }), 422, "content_too_large", tooLarge);
      expect(pathsOf((await w.ask(`${staging}&metadataOnly=1`, { key })).json)).toEqual(["more", "most"]);
      expect(pathsOf((await w.ask(`${staging}&path=more`, { key })).json)).toEqual(["more"]);

      // Where nothing would open any more the bound still answers first.
      await w.sql`update files set sealed = ${Buffer.alloc(40)} where project_id = ${project.id}`;
      await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
      expectRefusal(await w.ask(staging, { key }), 422, "content_too_large", tooLarge);
      expect(await w.ask(`${staging}&path=more`, { key })).toMatchObject({ status: 503 });
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["most"], ["more"]]);
    });

    test("8 MiB in many files as well as in one", async () => {
      const w = world();
      const organization = await w.organization();
      const project = await w.project(organization, "web");
      const paths = Array.from({ length: 64 }, (_, i) => `f${String(i).padStart(2, "0")}`);
      await insertFiles(w, organization, project, paths, ["staging"], 128 * 1024);
      const key = await w.key(organization, reader);
      const answer = await w.ask(staging, { key });
      expect(pathsOf(answer.json)).toEqual(paths);
      await insertFiles(w, organization, project, ["last"], ["staging"], 1);
      expectRefusal(await w.ask(staging, { key }), 422, "content_too_large", tooLarge);
    });
  });

  describe("503", () => {
    const b = (column: string, value: unknown) => (w: World, id: string) =>
      w.run(`update files set ${column} = ? where project_id = ? and path = 'b'`, [value, id]);
    const damages: readonly (readonly [string, (w: World, id: string, other: string) => Promise<unknown>])[] = [
      ["a flipped bit", (w, id) => flip(w, id, 30)],
      ["a flipped bit of the tag", (w, id) => flip(w, id, -1)],
      ["another envelope version", (w, id) => flip(w, id, 0)],
      ["another path", b("path", "bb")],
      ["another mode", b("mode", "0400")],
      ["another name", b("name", "c")],
      ["another media type", b("content_type", "text/html")],
      ["a size one byte more", b("size", 17)],
      ["another checksum", b("sha256", "0".repeat(64))],
      ["another version", b("version", 9)],
      ["another id", b("id", "another-file")],
      ["one environment more", b("environments", 7)],
      ["content cut short", b("sealed", Buffer.alloc(10))],
      [
        "the content of a neighbour of the same length",
        (w, id) =>
          w.sql`update files set sealed = (select sealed from files where project_id = ${id} and path = 'a')
            where project_id = ${id} and path = 'b'`,
      ],
      [
        "the row of another project",
        async (w, id, other) => {
          await w.sql`delete from files where project_id = ${id} and path = 'b'`;
          await w.sql`update files set project_id = ${id} where project_id = ${other} and path = 'b'`;
        },
      ],
      [
        "a data key that does not open",
        (w, id) => w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`,
      ],
    ];
    test.each(damages)("decryption_failed for all, where one of them has %s", async (_, damage) => {
      const w = world();
      const organization = await w.organization();
      const files = ["a", "b", "c"].map((path) => ({
        path,
        environments: ["staging", "production"] as const,
        content: `the content of ${path}`,
      }));
      const { id } = await w.project(organization, "web", { files });
      const other = await w.project(organization, "other", { files });
      const key = await w.key(organization, reader);
      expect(await w.ask(staging, { key })).toMatchObject({ status: 200 });
      await damage(w, id, other.id);
      const answer = await w.ask(staging, { key });
      expectRefusal(answer, 503, "decryption_failed", "Decryption failed for one or more items; nothing is returned.");
      expect((await w.audit(key)).length).toBe(3);
    });

    test("decryption_failed only where the damaged one is asked for", async () => {
      const w = world();
      const organization = await w.organization();
      const { id } = await w.project(organization, "web", {
        files: ["a", "b"].map((path) => ({ path, environments: ["staging"], content: `the content of ${path}` })),
      });
      await flip(w, id, 30);
      const key = await w.key(organization, reader);
      expect(pathsOf((await w.ask(`${staging}&path=a`, { key })).json)).toEqual(["a"]);
      expect(await w.ask(`${staging}&path=b`, { key })).toMatchObject({ status: 503 });
      expect(await w.ask(staging, { key })).toMatchObject({ status: 503 });
    });

    test.each([100, 300_000])(
      "decryption_failed where content of %d bytes opens and is not what its checksum says",
      async (size) => {
        const w = world();
        const organization = await w.organization();
        const project = await w.project(organization, "web", {
          files: [{ path: "b", environments: ["staging"], content: randomContent(size) }],
        });
        const [row] =
          (await w.sql`select id, name, mode, content_type from files where project_id = ${project.id}`) as [
            { id: string; name: string; mode: string; content_type: string },
          ];
        const record = {
          path: "b",
          version: 1,
          environments: 2,
          size,
          sha256: "0".repeat(64),
          name: row.name,
          mode: row.mode,
        };
        const place = filePlace({ ...record, projectId: project.id, fileId: row.id, contentType: row.content_type });
        const key = (await dataKeyOf(w, organization, project)).subkey("file");
        const sealed = seal(key, 1, place, randomContent(size));
        await w.sql`update files set sha256 = ${record.sha256}, sealed = ${sealed} where id = ${row.id}`;
        const answer = await w.ask(staging, { key: await w.key(organization, reader) });
        expect(answer).toMatchObject({ status: 503, json: { code: "decryption_failed" } });
      },
    );

    test("decryption_failed for one bit anywhere in a large file", async () => {
      const w = world();
      const organization = await w.organization();
      const { id } = await w.project(organization, "web", {
        files: [{ path: "b", environments: ["staging"], content: randomContent(1_500_000) }],
      });
      const key = await w.key(organization, reader);
      for (const at of [18, 600_000, 1_500_000, -1]) {
        await flip(w, id, at);
        expect(await w.ask(staging, { key })).toMatchObject({ status: 503, json: { code: "decryption_failed" } });
        await flip(w, id, at);
      }
      expect((await w.ask(staging, { key })).status).toBe(200);
    });

    test("unavailable where an entry cannot be written: no byte leaves, metadata does", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        files: [{ path: "a", environments: ["staging"], content: "content that stays" }],
      });
      const key = await w.key(organization, reader);
      await w.run("alter table audit_entries rename to audit_gone");
      const answer = await w.ask(staging, { key });
      const metadata = await w.ask(`${staging}&metadataOnly=1`, { key });
      await w.run("alter table audit_gone rename to audit_entries");
      expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      expect(metadata).toMatchObject({ status: 200 });
    });

    test("unavailable while the database cannot answer", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web");
      const key = await w.key(organization, reader);
      await w.run("alter table files rename to files_gone");
      const answers = [await w.ask(staging, { key }), await w.ask(`${staging}&metadataOnly=1`, { key })];
      await w.run("alter table files_gone rename to files");
      for (const answer of answers) {
        expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      }
      expect(await w.ask(staging, { key })).toMatchObject({ status: 200 });
    });
  });

  describe("memory", () => {
    test("is given back once an answer was read, left half read, refused or failed", async () => {
      const w = world();
      const organization = await w.organization();
      const { id, where } = await w.project(organization, "web", {
        files: [{ path: "a", environments: ["staging"], content: randomContent(1_000_000) }],
      });
      const key = await w.key(organization, reader);
      const budget = new ByteBudget();
      const { handle } = w.client(() => ({ budget }));
      const get = () => handle(requestOf(staging, { key }));
      const read = await get();
      expect(budget.bytesTaken).toBe(1_000_000);
      await read.arrayBuffer();
      expect(budget.bytesTaken).toBe(0);

      const half = (await get()).body?.getReader();
      await half?.read();
      expect(budget.bytesTaken).toBe(1_000_000);
      await half?.cancel();
      expect(budget.bytesTaken).toBe(0);

      await (await get()).body?.cancel();
      expect(budget.bytesTaken).toBe(0);

      const refusing = w.client(() => ({ budget, journal: refusingJournal }));
      expect((await refusing.ask(staging, { key })).status).toBe(503);
      expect(budget.bytesTaken).toBe(0);

      await w.sql`update files set version = 5 where project_id = ${id}`;
      expect((await get()).status).toBe(503);
      expect(budget.bytesTaken).toBe(0);

      await putFile(w.desk, where, { path: "b", environments: ["staging"], content: randomContent(8_000_000) });
      expect((await get()).status).toBe(422);
      expect(budget.bytesTaken).toBe(0);
    });

    test("is given to one key by half at most: its stuck readers keep no other key's files from them", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        files: [{ path: "a", environments: ["staging"], content: randomContent(40_000) }],
      });
      const [greedy, other] = [await w.key(organization, reader), await w.key(organization, reader)];
      const budget = new ByteBudget(100_000, 50_000);
      const { handle, ask } = w.client(() => ({ budget }));
      const stuck = await handle(requestOf(staging, { key: greedy }));
      const leaving = new AbortController();
      const waiting = handle(new Request(requestOf(staging, { key: greedy }), { signal: leaving.signal }));
      expect((await ask(staging, { key: other })).status).toBe(200);
      expect(budget.bytesTaken).toBe(40_000);
      leaving.abort();
      expect((await waiting).status).toBe(503);
      await stuck.body?.cancel();
      expect(budget.bytesTaken).toBe(0);
    });

    test("is taken from a reader who stands still while others wait: he gets an error, and they their files", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        files: [{ path: "a", environments: ["staging"], content: randomContent(900_000) }],
      });
      const key = await w.key(organization, reader);
      const budget = new ByteBudget(1_000_000);
      const { handle, ask } = w.client(() => ({ budget }));
      const still = (await handle(requestOf(staging, { key, headers: { "x-request-id": "still" } }))).body?.getReader();
      expect((await still?.read())?.value?.length).toBeGreaterThan(0);
      expect(pathsOf((await ask(staging, { key })).json)).toEqual(["a"]);
      const rest = async () => {
        while (!(await still?.read())?.done);
      };
      expect(await rest().catch((error: Error) => error.message)).toBe("cut off: others wait for its memory");
      expect(budget.bytesTaken).toBe(0);
      expect(w.log).toContainEqual({ event: "cut", requestId: "still", keyId: key.id, route: "/files" });
    });

    test("is waited for, first come first served, and no longer than the client does", async () => {
      const w = world();
      const organization = await w.organization();
      await w.project(organization, "web", {
        files: ["a", "b"].map((path) => ({ path, environments: ["staging"], content: randomContent(60_000) })),
      });
      const key = await w.key(organization, reader);
      const budget = new ByteBudget(100_000);
      const { handle, ask } = w.client(() => ({ budget }));
      const one = await handle(requestOf(`${staging}&path=a`, { key }));
      const leaving = new AbortController();
      const waiting = handle(new Request(requestOf(`${staging}&path=b`, { key }), { signal: leaving.signal }));
      const next = handle(requestOf(`${staging}&path=b`, { key }));
      // Metadata waits for nobody.
      expect((await ask(`${staging}&metadataOnly=1`, { key })).status).toBe(200);
      expect(budget.bytesTaken).toBe(60_000);
      leaving.abort();
      expect((await waiting).status).toBe(503);
      await one.arrayBuffer();
      expect(pathsOf((await answerOf(await next)).json)).toEqual(["b"]);
      expect(budget.bytesTaken).toBe(0);
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["a"], ["b"]]);
    });
  });

  test("neither key nor content was logged", () => {
    const w = world();
    expect(w.secrets.size).toBeGreaterThan(20);
    expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
  });
});

const tooMany = "The answer would hold more than 1000 items; narrow the request or use a narrower key.";
const tooLarge = "The files hold more than 8 MiB; ask for fewer at a time with path.";

function pathsOf(json: unknown): string[] {
  return (json as { files: { path: string }[] }).files.map(({ path }) => path);
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** Flips a bit of what the file b is sealed as. */
async function flip(w: World, projectId: string, at: number): Promise<void> {
  const [row] = await w.sql`select sealed from files where project_id = ${projectId} and path = 'b'`;
  const sealed = row?.["sealed"] as Buffer;
  const index = at < 0 ? sealed.length + at : at;
  sealed[index] = (sealed[index] as number) ^ 1;
  await w.sql`update files set sealed = ${sealed} where project_id = ${projectId} and path = 'b'`;
}
