import { beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { putFile } from "../../src/kinds/files/write.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import type { BucketName } from "../../src/serve/limit/bucket.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { type Answer, below, firstOf, headersOf, requestOf, tagged, usualHeaders } from "../support/answer.ts";
import { deleteVariable } from "../support/delete.ts";
import { deleteProject, setAccount, setVariables } from "../support/plans.ts";
import { numbered } from "../support/rows.ts";
import { parts, seed } from "../support/seed.ts";
import { clientOf, describeBoth, everything, type Key, type Placed, type World } from "../support/world.ts";

const variables = "/projects/web/variables?environment=staging";
const accounts = "/projects/web/accounts";
const files = "/files?project=web&environment=staging";
const secrets = "/secrets?project=web&environment=staging";

/** Every kind of read that can be conditional, with the bucket that it is charged to otherwise. */
const paths: Readonly<Partial<Record<BucketName, readonly string[]>>> = {
  value: [
    ...below(variables, "", "&format=env", "&keys=A,MISSING", "&prefix=A"),
    ...[...below(accounts, "", "?environment=staging"), ...below(secrets, "", "&format=env")],
  ],
  metadata: [
    ...below(variables, "&metadata_only=true", "&metadata_only=true&keys=A"),
    ...["/projects/web/variables?metadata_only=true", `${files}&metadataOnly=1`],
    ...below(`${accounts}?metadata_only=true`, "", "&environment=staging"),
  ],
  content: below(files, "", "&path=a"),
};
const reads = (Object.keys(paths) as BucketName[]).flatMap((bucket) =>
  (paths[bucket] ?? []).map((path) => [path, bucket] as const),
);
const everyPath = reads.map(([path]) => path);
const otherPaths = everyPath.filter((path) => !paths.metadata?.includes(path));

describeBoth("a conditional read", (w, _, once) => {
  /** For tests that only read. */
  let shared: Awaited<ReturnType<typeof furnished>>;
  beforeAll(async () => {
    shared = await furnished(w);
  });

  test.each(reads)("of %s is a 304 without a body while nothing changed, and is not audited", async (path, bucket) => {
    const { key } = shared;
    const whole = await w.client().ask(path, { key });
    expect(headersOf(whole)).toMatchObject({ ...firstOf[bucket], ...tagged });
    const before = await w.audit(key);
    const { ask, taken } = counting(w);
    const answer = await ask(path, named(key, whole));
    expect(answer).toMatchObject({ status: 304, text: "" });
    const { "content-type": _, ...headers } = usualHeaders({ ...firstOf.metadata, etag: tagOf(whole) });
    expect(headersOf(answer)).toEqual(headers);
    expect(await w.audit(key)).toEqual(before);
    expect(taken.splice(0)).toEqual(["metadata"]);
  });

  test("opens nothing: a 304 comes even if no value and no data key opens", async () => {
    const { key, project } = await furnished(w);
    const { ask } = w.client();
    const tags = await tagsOf(w, key);
    await w.sql`update sets set sealed = ${Buffer.alloc(64)} where project_id = ${project.id} and kind <> 'files'`;
    await w.sql`update file_contents set sealed = ${Buffer.alloc(64)} where project_id = ${project.id}`;
    await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
    for (const [path, tag] of tags)
      expect((await ask(path, { key, headers: { "if-none-match": tag } })).status).toBe(304);
    for (const path of otherPaths) expect((await w.client().ask(path, { key })).status).toBe(503);
  });

  type Change = (key: Key, project: Placed) => Promise<unknown>;
  const many = numbered("A", 1000).map((name) => ({ name, value: "" }));
  const much = { path: "b", environments: ["staging"], content: Buffer.alloc(8 * 1024 * 1024) };
  const edit = (id: string) => w.sql`update sets set listing = listing || ' ' where project_id = ${id}`;
  const inOne = everyPath.filter((path) => path.includes("environment="));
  const ofResources = everyPath.filter((path) => !path.startsWith("/secrets"));
  const ofMany = everyPath.filter((path) => /variables|secrets/.test(path) && !path.includes("keys="));
  const cases: readonly (readonly [what: string, status: number, change: Change, paths?: readonly string[]])[] = [
    ["a revoked key is refused", 401, ({ id }) => revokeKey(w.admin, id)],
    ["an expired key is refused", 401, (key) => w.regrant(key, { expiresAt: Date.now() - 1 })],
    ["a plan without the API is refused", 403, (_, { organization }) => setPlan(w.admin, organization, "free")],
    ["a key that lost its surfaces is refused", 403, (key) => w.regrant(key, { surfaces: ["mcp_server"] })],
    ["a key that lost its resources is refused", 403, (key) => w.regrant(key, { resources: [] }), ofResources],
    ["a key that lost it is refused", 403, (key) => w.regrant(key, { environments: ["production"] }), inOne],
    ["a key that lost the project is refused", 404, (key) => w.regrant(key, { projects: {} })],
    ["a project that was deleted is not found", 404, (_, { where }) => deleteProject(w.admin, where)],
    ["a listing that was edited is refused", 503, (_, { id }) => edit(id)],
    ["too many items are refused", 422, (_, { where }) => setVariables(w.admin, where, "staging", many), ofMany],
    ["too much content is refused", 422, (_, { where }) => putFile(w.admin, where, much), [files]],
  ];
  once.each(cases)("passes every gate first: %s, %d", async (_, status, change, paths = everyPath) => {
    const { key, project } = await furnished(w);
    const tags = await tagsOf(w, key);
    await change(key, project);
    for (const path of paths) {
      const answer = await w.client().ask(path, { key, headers: { "if-none-match": tags.get(path) as string } });
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.headers.has("etag")).toBe(false);
    }
  });

  describe("has a tag", () => {
    once("that no other key and no other question shares, and that gives nobody else a 304", async () => {
      const { key, organization } = await furnished(w);
      const twin = await w.key(organization, everything);
      const tags = [...(await tagsOf(w, key)), ...(await tagsOf(w, twin))];
      expect(new Set(tags.map(([, tag]) => tag)).size).toBe(2 * everyPath.length);
      for (const [path, tag] of await tagsOf(w, twin)) {
        const answer = await w.client().ask(path, { key, headers: { "if-none-match": tag } });
        expect([path, answer.status]).toEqual([path, 200]);
      }
    });

    once("that is another for a project of the same name, content and times", async () => {
      w.clock.nowMs = 1_700_000_000_000;
      const { key, project } = await furnished(w);
      const before = await tagsOf(w, key);
      await deleteProject(w.admin, project.where);
      await createProject(w.admin, project.where, {});
      await furnish(w, project.where);
      w.clock.nowMs = undefined;
      const after = await tagsOf(w, key);
      for (const path of everyPath) expect([path, after.get(path)]).not.toEqual([path, before.get(path)]);
    });

    once.each([
      [`${variables}&format=json`, variables],
      ["/projects/web/variables?format=json&metadata_only=false&environment=%73taging", variables],
      [`${variables}&keys=B,A,A`, `${variables}&keys=A%2CB`],
      [`${files}&metadataOnly=true`, `${files}&metadataOnly=1`],
      [`${files}&path=b&path=a&path=b`, `${files}&path=%61&path=b`],
      [`${secrets}&format=json`, secrets],
    ])("for the question, however it is spelled: %s", async (one, other) => {
      const { key } = shared;
      const [a, b] = [await w.ask(one, { key }), await w.ask(other, { key })];
      expect(a.text).toBe(b.text);
      expect(tagOf(a)).toBe(tagOf(b));
    });

    type Write = (where: string) => Promise<unknown>;
    const late = [{ name: "A", value: "late" }];
    const put = (where: string, environment: string, path: string) =>
      putFile(w.admin, where, { path, environments: [environment], content: Buffer.from("late") });
    const another = async (where: string) => {
      await createProject(w.admin, where, {});
      await setVariables(w.admin, where, "staging", late);
    };
    const ofA = everyPath.filter((path) => /=A|accounts|files/.test(path));
    const ofOne = everyPath.filter((path) => path !== "/projects/web/variables?metadata_only=true");
    const ofOthers = everyPath.filter((path) => !path.startsWith("/files") || path.endsWith("path=a"));
    const [unreached, unasked] = ["an environment that the key does not reach", "one that is asked for"];
    const elsewhere: readonly (readonly [what: string, write: Write, paths?: readonly string[]])[] = [
      [`a variable of ${unreached}`, (where) => setVariables(w.admin, where, "production", late)],
      [`an account of ${unreached}`, (where) => setAccount(w.admin, where, "late", ["production"], { password: "p" })],
      [`a file of ${unreached}`, (where) => put(where, "production", "late")],
      ["a variable of another project", (where) => another(`${where}-2`)],
      ["a new data key that seals all again", (where) => rotateData(w.admin, where, () => {})],
      [
        "another variable than those that are asked for",
        (where) => setVariables(w.admin, where, "staging", [{ name: "B", value: "late" }]),
        ofA,
      ],
      [`a variable beside the ${unasked}`, (where) => setVariables(w.admin, where, "development", late), ofOne],
      [`another file than the ${unasked}`, (where) => put(where, "staging", "b"), ofOthers],
    ];
    once.each(elsewhere)("that stays as it is after a write of %s", async (_, write, paths = everyPath) => {
      const { key, project } = await furnished(w);
      await w.regrant(key, { environments: ["development", "staging"] });
      const before = await tagsOf(w, key);
      await write(project.where);
      const after = await tagsOf(w, key);
      for (const path of paths) expect([path, after.get(path)]).toEqual([path, before.get(path)]);
    });

    once("that every process of an installation gives", async () => {
      const other = await openKeyhole(w.installation, () => {});
      const answer = await clientOf(other).ask(variables, { key: shared.key }).finally(other.close);
      expect(tagOf(answer)).toBe(tagOf(await w.ask(variables, { key: shared.key })));
    });
  });

  once.each(parts(5))(
    "never gives one tag to two answers, whatever is written at one moment, part %i",
    async (part) => {
      const environment = fc.constantFrom("development", "staging", "production");
      const some = fc.uniqueArray(environment, { minLength: 1 });
      const value = fc.constantFrom("1", "2");
      const name = fc.constantFrom("A", "B");
      type Act = (w: World, where: string, key: Key) => Promise<unknown>;
      const account = (to: string[], name: string, password: string): Act => {
        return ({ admin }, where) => setAccount(admin, where, name, to, { password });
      };
      const acts = fc.oneof(
        fc.tuple(environment, name, value).map(([to, key, text]): Act => {
          return ({ admin }, where) => setVariables(admin, where, to, [{ name: key, value: text }]);
        }),
        fc.tuple(environment, name).map(([from, key]): Act => {
          return ({ admin }, where) => deleteVariable(admin, where, from, key).catch(() => {});
        }),
        fc.tuple(some, name, value).map((of) => account(...of)),
        fc.tuple(some, name, value, fc.constantFrom("0600", "0400")).map(([environments, name, text, mode]): Act => {
          const file = { path: name.toLowerCase(), environments, content: Buffer.from(text), mode };
          return ({ admin }, where) => putFile(admin, where, file);
        }),
        fc.constant<Act>(({ admin }, where) => rotateData(admin, where, () => {})),
        some.map((environments): Act => {
          return ({ regrant }, _, key) => regrant(key, { environments });
        }),
      );
      // With no time in between, only the version of its entry tells the second one from the first.
      const first = ["1", "2"].map((password) => account(["staging"], "A", password));
      await fc.assert(
        fc.asyncProperty(fc.array(acts, { minLength: 4, maxLength: 12 }), async (steps) => {
          w.clock.nowMs = 1_700_000_000_000;
          const { key, project } = await furnished(w);
          const texts = new Map<string, string>();
          for (const step of [async () => {}, ...first, ...steps]) {
            await step(w, project.where, key);
            const { ask } = w.client();
            for (const path of everyPath) {
              const answer = await ask(path, { key });
              const known = texts.get(tagOf(answer)) ?? answer.text;
              expect([path, answer.text]).toEqual([path, known]);
              texts.set(tagOf(answer), answer.text);
            }
          }
        }),
        { numRuns: 1, seed: seed + part },
      );
      w.clock.nowMs = undefined;
    },
  );

  describe("pays", () => {
    once.each(reads)(
      "for %s one token of the metadata bucket, and one of its own if the answer changed",
      async (path, bucket) => {
        const { ask, taken } = counting(w);
        const whole = await ask(path, { key: shared.key });
        expect(taken.splice(0)).toEqual([bucket]);
        const changed = await ask(path, { key: shared.key, headers: { "if-none-match": noTag } });
        const own = bucket === "metadata" ? [] : [bucket];
        expect([changed.status, taken.splice(0)]).toEqual([200, ["metadata", ...own]]);
        expect(changed.headers.get("ratelimit-policy")).toBe(firstOf[bucket]["ratelimit-policy"]);
        expect(changed.text).toBe(whole.text);
      },
    );

    once("nothing of the value bucket until something changes, and is refused if that is empty", async () => {
      const { key, project } = await furnished(w);
      const { ask } = w.client(({ gate }) => ({ gate: { ...gate, nowUs: () => 1_000_000 } })); // no token comes back
      let whole = await ask(variables, { key });
      for (let reads = 1; reads < 30; reads += 1) whole = await ask(variables, { key });
      expect((await ask(variables, { key })).status).toBe(429);
      expect((await ask(variables, named(key, whole))).status).toBe(304);
      await setVariables(w.admin, project.where, "staging", [{ name: "A", value: "late" }]);
      const audited = await w.audit(key);
      const refused = await ask(variables, named(key, whole));
      expect(refused.status).toBe(429);
      expect(headersOf(refused)).toMatchObject({ ratelimit: '"value";r=0;t=2', "retry-after": "2" });
      expect(refused.headers.has("etag")).toBe(false);
      expect(await w.audit(key)).toEqual(audited);
      for (let asked = 0; asked < 118; asked += 1) await ask("/organization", { key });
      const over = await ask(variables, named(key, whole));
      expect(headersOf(over)).toMatchObject({ ratelimit: '"metadata";r=0;t=1', "retry-after": "1" });
    });

    const lists = ["*", 'W/"TAG"', '"x", "TAG"', '"a,b" ,,\tW/"TAG"', `${noTag},W/"TAG",`];
    const asked = (path: string, key: Key, form: string, tag: string) => {
      const { ask, taken } = counting(w);
      const headers = { "if-none-match": form.replaceAll("TAG", tag.slice(1, -1)) };
      return ask(path, { key, headers }).then(({ status }) => [status, taken]);
    };
    once.each(lists)("one token of the metadata bucket with If-None-Match: %s, and is a 304", async (form) => {
      const { key } = shared;
      for (const [path, tag] of await tagsOf(w, key)) {
        expect([path, await asked(path, key, form, tag)]).toEqual([path, [304, ["metadata"]]]);
      }
    });

    const noLists = `TAG|"TAG|"TAGa"|""|'TAG'|"TAG" x|"TAG" "TAG"|w/"TAG"|*, "TAG"|"x", "y"`.split("|");
    once.each(noLists)("as any other read with If-None-Match: %s, which is treated as absent", async (form) => {
      const tags = await tagsOf(w, shared.key);
      for (const [path, bucket] of reads) {
        const tag = tags.get(path) as string;
        expect([path, await asked(path, shared.key, form, tag)]).toEqual([path, [200, [bucket]]]);
      }
    });

    once("as one list if the header is there twice", async () => {
      const { key } = shared;
      const request = requestOf(variables, { key });
      request.headers.append("if-none-match", noTag);
      request.headers.append("if-none-match", tagOf(await w.ask(variables, { key })));
      expect((await w.client().handle(request)).status).toBe(304);
    });
  });

  once("of what has no tag is an ordinary one", async () => {
    const { key } = shared;
    for (const path of ["/organization", "/projects", "/projects/web"]) {
      const answer = await w.client().ask(path, { key, headers: { "if-none-match": noTag } });
      expect(answer.status).toBe(200);
      expect(headersOf(answer)).toEqual(usualHeaders(firstOf.metadata));
    }
  });
});

const noTag = `"${"A".repeat(43)}"`;

/** A key that may do anything, and a project that holds something of every kind. */
async function furnished(w: World) {
  const placed = await w.place({ key: everything });
  await furnish(w, placed.where);
  return placed;
}

async function furnish(w: World, where: string): Promise<void> {
  for (const environment of ["staging", "production"]) {
    const entries = ["A", "B"].map((name) => ({ name, value: `1 in ${environment}` }));
    await setVariables(w.admin, where, environment, entries);
  }
  await setAccount(w.admin, where, "ci", ["staging", "production"], { password: "p" });
  await putFile(w.admin, where, { path: "a", environments: ["staging"], content: Buffer.from("1") });
}

/** The tags of all reads. */
async function tagsOf(w: World, key: Key): Promise<ReadonlyMap<string, string>> {
  const { ask } = w.client();
  const tags = new Map<string, string>();
  for (const path of everyPath) {
    const answer = await ask(path, { key });
    expect([path, answer.status]).toEqual([path, 200]);
    tags.set(path, tagOf(answer));
  }
  return tags;
}

function tagOf(answer: Answer): string {
  return answer.headers.get("etag") ?? "";
}

function named(key: Key, answer: Answer) {
  return { key, headers: { "if-none-match": tagOf(answer) } };
}

/** A client with fresh buckets that also notes which of them are asked for a token. */
function counting(w: World) {
  const taken: BucketName[] = [];
  const limiter = new Limiter();
  const take = async (...call: Parameters<Limiter["take"]>) => {
    taken.push(call[1]);
    return limiter.take(...call);
  };
  return { ...w.client(({ gate }) => ({ gate: { ...gate, shared: { take } } })), taken };
}
