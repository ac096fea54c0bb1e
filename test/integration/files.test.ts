import { describe, expect, test } from "bun:test";
import { environments } from "../../src/core/names.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { contentAssociatedData } from "../../src/seal/associated-data.ts";
import { seal } from "../../src/seal/envelope.ts";
import { sealSet } from "../../src/seal/new-set.ts";
import { MemoryBudget } from "../../src/serve/limit/budget.ts";
import { expectRefusal, firstOf, headersOf, onRecord, requestOf, tagged, usualHeaders } from "../support/answer.ts";
import { deleteFile } from "../support/delete.ts";
import { purgeHistory } from "../support/plans.ts";
import { dataKeyOf, flipBit, randomContent, sha256 } from "../support/rows.ts";
import { describeBoth, type World } from "../support/world.ts";

const reader = { resources: ["files"] };
const staging = "/files?project=web&environment=staging";

describeBoth("GET /files", (w, _, once) => {
  describe("200", () => {
    test("has project, environment and files with metadata and content, in this order and without spaces", async () => {
      w.clock.nowMs = 1_700_000_000_000;
      const more = { name: 'The "key"', mode: "0400", contentType: "application/x-pem-file" };
      const { key } = await w.place({
        files: [
          { path: "config/key.pem", environments: ["staging", "production"], content: "secret key\n", ...more },
          { path: ".env.é", environments: ["staging"], content: "" },
          { path: "elsewhere", environments: ["production"], content: "not of staging" },
        ],
        key: reader,
      });
      w.clock.nowMs = undefined;
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
      expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.content, ...tagged, ...onRecord }));
    });

    once("with path has exactly the files at these paths, each once", async () => {
      const { key } = await w.place({
        files: ["a", "b/c", "b,d", "b d", "[e]", "é", "+", "production"].map((path) => {
          return { path, environments: [path === "production" ? path : "staging"], content: `content of ${path}` };
        }),
        key: reader,
      });
      const asked = async (query: string) => {
        const whole = await w.ask(`${staging}${query}`, { key });
        const listed = await w.ask(`${staging}&metadataOnly=1${query}`, { key });
        expect(pathsOf(listed.json)).toEqual(pathsOf(whole.json));
        return pathsOf(whole.json);
      };
      expect(await asked("&path=a")).toEqual(["a"]);
      expect(await asked("&path=b/c&path=a&path=a&path=b%2Fc")).toEqual(["a", "b/c"]);
      expect(await asked("&path=b,d")).toEqual(["b,d"]);
      expect(await asked("&path=b%2Cd&path=b+d&path=b%20d")).toEqual(["b d", "b,d"]);
      expect(await asked("&path=[e]&path=%C3%A9&path=%2B")).toEqual(["+", "[e]", "é"]);
      for (const none of "A b b/ /a ./a b//c ../a a%00 %00 * %25 e%CC%81 production a%0A".split(" ")) {
        expect(await asked(`&path=${none}`)).toEqual([]);
      }
      expect(await asked("&path=nowhere&path=a")).toEqual(["a"]);
    });

    test("has the file that this environment has at a path, and names only environments that the key reaches", async () => {
      const { organization, where } = await w.place({
        files: [
          { path: "f", environments: ["development", "staging"], content: "shared" },
          { path: "f", environments: ["production"], content: "production's own" },
        ],
      });
      const seen = async (environment: string, ...reach: string[]) => {
        const key = await w.key(organization, { ...reader, environments: reach });
        const answer = await w.ask(`/files?project=web&environment=${environment}`, { key });
        const { files } = answer.json as { files: { environments: string[]; content: string }[] };
        const text = (content: string) => Buffer.from(content, "base64").toString();
        return files.map(({ environments, content }) => [environments.join(), text(content)]);
      };
      expect(await seen("staging", ...environments)).toEqual([["development,staging", "shared"]]);
      expect(await seen("staging", "staging", "production")).toEqual([["staging", "shared"]]);
      expect(await seen("production", ...environments)).toEqual([["production", "production's own"]]);
      // A file of all environments replaces both. Deleted in one, it stays in the others.
      await putFile(w.admin, where, { path: "f", environments: [...environments], content: Buffer.from("of all") });
      expect(await seen("production", ...environments)).toEqual([["development,staging,production", "of all"]]);
      await deleteFile(w.admin, where, "f", ["staging"]);
      expect(await seen("staging", ...environments)).toEqual([]);
      expect(await seen("development", ...environments)).toEqual([["development,production", "of all"]]);
      await putFile(w.admin, where, { path: "f", environments: ["production"], content: Buffer.from("newest") });
      expect(await seen("development", ...environments)).toEqual([["development", "of all"]]);
      expect(await seen("production", ...environments)).toEqual([["production", "newest"]]);
    });

    // Around the sizes at which content is opened, fetched or spelled in pieces.
    test("has each file as it was written, whatever its size", async () => {
      const near = [192 * 1024 - 1, 192 * 1024, 192 * 1024 + 1, 3 * 512 * 1024 + 7];
      const pieces = [256 * 1024, 512 * 1024].flatMap((most) => [most - 34, most - 33, most]);
      const files = [1, 2, 3, ...near, ...pieces].map((size) => {
        return { path: `${size}`, environments: ["staging"] as const, content: randomContent(size) };
      });
      const { key } = await w.place({ files, key: reader });
      for (const { path, content } of files) {
        const { json } = await w.ask(`${staging}&path=${path}`, { key });
        const expected = { size: content.length, sha256: sha256(content), content: content.toString("base64") };
        expect(json).toMatchObject({ files: [expected] });
      }
    });

    test("is one version of each file, also if files are written while they are read", async () => {
      const { where, key } = await w.place({
        files: ["a", "b"].map((path) => ({ path, environments: ["staging"], content: `first ${path}` })),
        key: reader,
      });
      const put = (content: string) =>
        putFile(w.admin, where, { path: "b", environments: ["staging"], content: Buffer.from(content) });
      const end = () => deleteFile(w.admin, where, "b", ["staging"]);
      const writes = [() => put("second, longer b"), () => put("third b"), end];
      /** A client for which a write happens before each statement for contents, so the content before it is gone. */
      const racing = () => {
        const left = [...writes];
        let statements = 0;
        const after =
          <A extends readonly unknown[], R>(read: (...values: A) => Promise<R>) =>
          async (...values: A): Promise<R> => {
            statements += 1;
            await left.shift()?.();
            await purgeHistory(w.admin, { where, environment: "staging", kind: "files" });
            return read(...values);
          };
        const client = w.client(({ source: { contents, ...source } }) => {
          const raced = { find: after(contents.find), pieces: after(contents.pieces) };
          return { source: { ...source, contents: { ...contents, ...raced } } };
        });
        return { ...client, statements: () => statements };
      };
      const content = racing();
      const json = { files: [{ path: "a", content: base64("first a") }] };
      expect(await content.ask(staging, { key })).toMatchObject({ status: 200, json });
      // On PostgreSQL another one said that none of them was remembered.
      expect(content.statements()).toBe(w.dialect === "postgres" ? 5 : 4);
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["a"]]);
      await put("again");
      const metadata = racing();
      const answer = await metadata.ask(`${staging}&metadataOnly=1`, { key });
      expect([answer.status, pathsOf(answer.json)]).toEqual([200, ["a"]]);
      expect(metadata.statements()).toBe(4);
    });
  });

  describe("422", () => {
    once("the 1000 are counted in all environments, each file once", async () => {
      const files = [{ path: "a", environments: ["staging"], content: "x" }];
      const { id, key } = await w.place({ files, key: reader });
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

    once("1001 files of one environment are refused, whatever SQL made of the counts", async () => {
      const files = [{ path: "a", environments: ["staging"], content: "x" }];
      const { organization, project, key } = await w.place({ files, key: reader });
      const [row] = await w.sql`select version from sets
        where project_id = ${project.id} and kind = 'files' and environment = 'staging'`;
      const of = { organizationId: organization.id, projectId: project.id, slug: "web", kind: "files" };
      const set = { ...of, environment: "staging", version: Number(row?.["version"]) };
      const listing = JSON.stringify(Array.from({ length: 1001 }, (_, at) => ({ path: `${at}` })));
      const { listingMac } = sealSet(w.installation.systemKeys.listing, set, listing, null);
      await w.sql`update sets set listing = ${listing}, listing_mac = ${listingMac}
        where project_id = ${project.id} and kind = 'files' and environment = 'staging'`;
      expect(await w.ask(staging, { key })).toMatchObject({ status: 422, json: { code: "too_many_items" } });
    });

    test("8 MiB of content are answered, and one byte more is refused before anything is decrypted", async () => {
      const most = randomContent(8 * 1024 * 1024);
      const file = { path: "most", environments: ["staging"] as const, content: most };
      const { project, key } = await w.place({ files: [file], key: reader });
      const whole = await w.ask(staging, { key });
      expect(whole.status).toBe(200);
      const [read] = (whole.json as { files: { content: string }[] }).files;
      expect(Buffer.from(read?.content ?? "", "base64").equals(most)).toBe(true);

      await putFile(w.admin, project.where, { path: "more", environments: ["staging"], content: Buffer.from("x") });
      const refused = await w.ask(staging, { key });
      expectRefusal(refused, 422, "content_too_large", tooLarge);
      expect(headersOf(refused)).toMatchObject({ "ratelimit-policy": firstOf.content["ratelimit-policy"] });
      expectRefusal(await w.ask(`${staging}&path=most&path=more`, { key }), 422, "content_too_large", tooLarge);
      expect(pathsOf((await w.ask(`${staging}&metadataOnly=1`, { key })).json)).toEqual(["more", "most"]);
      expect(pathsOf((await w.ask(`${staging}&path=more`, { key })).json)).toEqual(["more"]);

      // If nothing opens, the bound still answers first.
      await w.sql`update file_contents set sealed = ${Buffer.alloc(40)} where project_id = ${project.id}`;
      await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
      expectRefusal(await w.ask(staging, { key }), 422, "content_too_large", tooLarge);
      expect(await w.ask(`${staging}&path=more`, { key })).toMatchObject({ status: 503 });
      expect((await w.audit(key)).map(({ names }) => names)).toEqual([["most"], ["more"]]);
    });
  });

  once.each([100, 300_000])(
    "503: decryption_failed if content of %d bytes was sealed for another checksum",
    async (size) => {
      const files = [{ path: "b", environments: ["staging"], content: randomContent(size) }];
      const { project, key } = await w.place({ files, key: reader });
      const id = await contentOf(w, project.id, "b");
      const content = randomContent(size);
      const associatedData = contentAssociatedData({ projectId: project.id, id, size, sha256: sha256(content) });
      const sealed = seal((await dataKeyOf(w, project)).subkey("file"), 1, associatedData, content);
      await w.sql`update file_contents set sealed = ${sealed} where id = ${id}`;
      const answer = await w.ask(staging, { key });
      expect(answer).toMatchObject({ status: 503, json: { code: "decryption_failed" } });
    },
  );

  describe("a content that was read before", () => {
    const sizes: [size: number][] = [[100], [300_000]];
    /** What the reads of a client fetched: no bytes of a content that is remembered. */
    const counting = (w: World) => {
      let fetched = 0;
      const client = w.client(({ source }) => {
        const pieces: typeof source.contents.pieces = (...values) => {
          fetched += 1;
          return source.contents.pieces(...values);
        };
        return { source: { ...source, contents: { ...source.contents, pieces } } };
      });
      return { ...client, fetched: () => fetched };
    };

    test.each(sizes)("is not fetched again on PostgreSQL, with %d bytes", async (size) => {
      const content = randomContent(size);
      const { key } = await w.place({ files: [{ path: "b", environments: ["staging"], content }], key: reader });
      const { ask, fetched } = counting(w);
      const read = { files: [{ content: content.toString("base64") }] };
      for (const _ of [1, 2, 3]) expect((await ask(staging, { key })).json).toMatchObject(read);
      expect(fetched()).toBe(w.dialect === "postgres" ? 1 : 3);
    });

    test.each(sizes)("shows an edit of a row at the next read, with %d bytes", async (size) => {
      const content = randomContent(size);
      const files = [{ path: "b", environments: ["staging"], content }];
      const { project, key } = await w.place({ files, key: reader });
      const status = async () => (await w.ask(staging, { key })).status;
      const edits = [
        ["file_contents", "sealed", "id = ?", await contentOf(w, project.id, "b")],
        ["data_keys", "wrapped", "project_id = ?", project.id],
      ] as const;
      for (const [table, column, where, id] of edits) {
        expect(await status()).toBe(200);
        await flipBit(w, [table, column], 30, where, [id]);
        expect(await status()).toBe(503);
        await flipBit(w, [table, column], 30, where, [id]);
      }
      expect(await status()).toBe(200);
      await w.sql`delete from file_contents where project_id = ${project.id}`;
      expect(await status()).toBe(503);
    });
  });

  describe("memory", () => {
    const large = 600_000;
    const webOf = async (w: World, ...paths: string[]) => {
      const files = paths.map((path) => ({ path, environments: ["staging"], content: randomContent(large) }));
      return w.place({ files, key: reader });
    };

    once("is given to one key in part only, so its stuck readers do not keep others from their files", async () => {
      const { organization, key: greedy } = await webOf(w, "a");
      const other = await w.key(organization, reader);
      const memory = new MemoryBudget(undefined, 2.5 * large, 1.25 * large);
      const { handle, ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
      const stuck = await handle(requestOf(staging, { key: greedy }));
      const leaving = new AbortController();
      const waiting = handle(new Request(requestOf(staging, { key: greedy }), { signal: leaving.signal }));
      expect((await ask(staging, { key: other })).status).toBe(200);
      expect(memory.bytesTaken.large).toBe(large);
      leaving.abort();
      expect((await waiting).status).toBe(503);
      await stuck.body?.cancel();
      expect(memory.bytesTaken).toEqual(none);
    });

    once("is taken from a reader who stands still while others wait: he is cut off, and they are served", async () => {
      const { key } = await webOf(w, "a");
      const memory = new MemoryBudget(undefined, 1.25 * large, 1.25 * large);
      const { handle, ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
      const still = (await handle(requestOf(staging, { key, headers: { "x-request-id": "still" } }))).body?.getReader();
      expect((await still?.read())?.value?.length).toBeGreaterThan(0);
      expect(pathsOf((await ask(staging, { key })).json)).toEqual(["a"]);
      const rest = async () => {
        while (!(await still?.read())?.done);
      };
      expect(await rest().catch((error: Error) => error.message)).toBe("cut off: others wait for its memory");
      expect(memory.bytesTaken).toEqual(none);
      expect(w.log).toContainEqual({ event: "cut", requestId: "still", keyId: key.id, route: "/files" });
    });
  });
});

const tooLarge = "The files hold more than 8 MiB; ask for fewer at a time with path.";

const none = { small: 0, large: 0 };

function pathsOf(json: unknown): string[] {
  return (json as { files: { path: string }[] }).files.map(({ path }) => path);
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** The id of the content that staging has at a path. */
async function contentOf(w: World, projectId: string, path: string): Promise<string> {
  const [row] = await w.sql`select listing from sets
    where project_id = ${projectId} and kind = 'files' and environment = 'staging'`;
  const entries = JSON.parse(row?.["listing"] as string) as { id: string; path: string }[];
  return entries.find((entry) => entry.path === path)?.id ?? "";
}
