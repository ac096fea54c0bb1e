import { describe, expect, test } from "bun:test";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import type { Gatekeeper } from "../../src/serve/gates/admit.ts";
import { type Answer, expectRefusal, headersOf, usualHeaders } from "../support/answer.ts";
import { setVariables } from "../support/plans.ts";
import { numbered } from "../support/rows.ts";
import { describeBoth, everything, type Key, type World } from "../support/world.ts";

const tooMany = "Too many requests; wait as long as Retry-After says.";
const unauthorized = "A valid API key is required.";
const variables = "/projects/web/variables?environment=staging";
const files = "/files?project=web&environment=staging";

/** A bucket, a request it is charged with, and how long a token takes, in microseconds. */
const buckets = [
  { name: "metadata", path: "/organization", capacity: 120, intervalUs: 500_000, retryAfterS: 1 },
  { name: "value", path: variables, capacity: 30, intervalUs: 2_000_000, retryAfterS: 2 },
  { name: "file-content", path: `${files}&path=nowhere`, capacity: 1000, intervalUs: 1_000_000, retryAfterS: 1 },
] as const;

describeBoth("limits", (w, dialect) => {
  describe("of a recognized key", () => {
    test("every authenticated request takes one token, whatever its outcome", async () => {
      const { key, ask, organization, project } = await stopped(w);
      const narrow = await w.key(organization, { environments: ["staging"] });
      const surface = await w.key(organization, { surfaces: ["mcp_server"] });
      const left = async (path: string, status: number, by: Key = key) => {
        const answer = await ask(path, { key: by });
        expect([path, answer.status]).toEqual([path, status]);
        return remainingOf(answer).left;
      };
      // Each request ends differently, and each takes one.
      expect(await left(variables, 200)).toBe(29);
      expect(await left("/projects/nowhere/variables?environment=staging", 404)).toBe(28);
      expect(await left("/projects/web/variables?environment=no", 400)).toBe(27);
      expect(await left("/projects/web/variables?x", 400)).toBe(26);
      expect(await left("/projects/many/variables?environment=staging", 422)).toBe(25);
      expect(await left("/projects/odd/variables?environment=staging&format=env", 422)).toBe(24);
      expect(await left("/projects/web/accounts", 200)).toBe(23);
      expect(await left("/secrets?project=web&environment=staging", 200)).toBe(22);
      await w.sql`update sets set sealed = listing_mac where project_id = ${project.id} and kind = 'variables'`;
      expect(await left(variables, 503)).toBe(21);
      await w.run("alter table audit_segments rename to audit_gone");
      expect(await left("/projects/odd/variables?environment=staging", 503)).toBe(20);
      await w.run("alter table audit_gone rename to audit_segments");
      await setPlan(w.admin, organization.slug, "free");
      expect(await left(variables, 403)).toBe(19);
      await setPlan(w.admin, organization.slug, "pro");

      expect(await left("/projects/web/variables?environment=production", 403, narrow)).toBe(29);
      expect(await left("/projects/web/accounts", 403, narrow)).toBe(28);
      expect(await left(variables, 403, surface)).toBe(29);
      expect(await left("/projects/web/accounts", 403, surface)).toBe(28);

      // Requests that fail before the key take none, and each bucket pays for itself.
      await ask(variables, { key, method: "POST" });
      await ask("/projects/web/variables/nowhere?environment=staging", { key });
      await ask(variables, { key, headers: { "content-length": "3" } });
      expect(await left("/organization", 200)).toBe(119);
      expect(await left("/projects/web/variables?metadata_only=true", 200)).toBe(118);
      expect(await left("/files?project=web&environment=staging", 200)).toBe(999);
      expect(await left("/projects/nowhere/variables?environment=staging", 404)).toBe(18);
    });

    test("a good key whose organization SQL damaged pays from its own bucket, and is not taken for unknown", async () => {
      const { key, ask, organization } = await stopped(w);
      const asked = async () => {
        const answer = await ask(variables, { key });
        return [answer.status, (answer.json as { code?: string }).code, remainingOf(answer)];
      };
      await w.run("update organizations set name = ? where id = ?", ["x".repeat(2000), organization.id]);
      for (let left = 29; left >= 0; left--) {
        expect(await asked()).toEqual([503, "decryption_failed", { bucket: "value", left }]);
      }
      expect(await asked()).toEqual([429, "rate_limited", { bucket: "value", left: 0 }]);
      await w.run("update organizations set name = 'as it was' where id = ?", [organization.id]);
      expect(remainingOf(await ask("/organization", { key }))).toEqual({ bucket: "metadata", left: 119 });
    });

    if (dialect === "postgres") return; // Buckets are of this process.
    test.each(buckets)("$name: of many concurrent requests exactly $capacity pass", async (bucket) => {
      const { key, ask } = await stopped(w);
      await ask(bucket.name === "metadata" ? variables : "/organization", { key }); // now the key is recognized
      const extra = bucket.capacity === 1000 ? 20 : bucket.capacity;
      const answers: Answer[] = [];
      // So many at a time that the database answers the last of them within its 2 s on a slow machine, too.
      for (let left = bucket.capacity + extra; left > 0; left -= 240) {
        const asked = Array.from({ length: Math.min(left, 240) }, () => ask(bucket.path, { key }));
        answers.push(...(await Promise.all(asked)));
      }
      const passed = answers.filter(({ status }) => status === 200);
      expect(passed.length).toBe(bucket.capacity);
      expect(answers.filter(({ status }) => status === 429).length).toBe(extra);
      const left = passed.map((answer) => remainingOf(answer).left).sort((a, b) => a - b);
      expect(left).toEqual(Array.from({ length: bucket.capacity }, (_, i) => i));
    });

    test("a key never seen before gets its whole bucket too, however many of its requests are concurrent", async () => {
      const value = await stopped(w);
      const values = await Promise.all(Array.from({ length: 60 }, () => value.ask(variables, { key: value.key })));
      expect(values.filter(({ status }) => status === 200).length).toBe(30);
      expect((await w.audit(value.key)).length).toBe(30);
      const { key, ask } = await stopped(w);
      const all = await Promise.all(Array.from({ length: 150 }, () => ask("/organization", { key })));
      expect(all.filter(({ status }) => status === 200).length).toBe(120);
    });

    test.each(buckets)(
      "$name: Retry-After is honest to the microsecond, and refused requests cost nothing",
      async (bucket) => {
        const { key, ask, clock } = await stopped(w);
        clock.nowUs = 1_000_000_007;
        for (let i = 0; i < bucket.capacity; i++) await ask(bucket.path, { key });
        const refused = await ask(bucket.path, { key });
        expectRefusal(refused, 429, "rate_limited", tooMany);
        expect(headersOf(refused)).toMatchObject({
          "retry-after": String(bucket.retryAfterS),
          "ratelimit-policy": expect.stringContaining(`"${bucket.name}";q=${bucket.capacity};w=`),
          ratelimit: `"${bucket.name}";r=0;t=${bucket.retryAfterS}`,
        });
        // Rounded up, so that a client that waits for so long passes.
        clock.nowUs += 1;
        expect((await ask(bucket.path, { key })).headers.get("retry-after")).toBe(String(bucket.retryAfterS));
        clock.nowUs += bucket.intervalUs - 2;
        for (let i = 0; i < 3; i++) {
          const early = await ask(bucket.path, { key });
          expect([early.status, early.headers.get("retry-after")]).toEqual([429, "1"]);
        }
        clock.nowUs += 1;
        expect((await ask(bucket.path, { key })).status).toBe(200);
        expect((await ask(bucket.path, { key })).status).toBe(429);
        // After the time in the header one passes.
        clock.nowUs += bucket.retryAfterS * 1_000_000;
        expect((await ask(bucket.path, { key })).status).toBe(200);
      },
    );

    const charged: Readonly<Record<string, readonly string[]>> = {
      metadata: [
        ...["/organization", "/organization?x", "/projects", "/projects/web"],
        ...["", "environment=staging&"].map((more) => `/projects/web/variables?${more}metadata_only=true`),
        ...["/projects/web/variables?metadata_only=true&x=1", "/projects/web/accounts?metadata_only=true"],
        ...["1", "true"].map((flag) => `${files}&metadataOnly=${flag}`),
      ],
      value: [
        ...["TRUE", "1", "true&metadata_only=true", "tru%65"].map((f) => `/projects/web/variables?metadata_only=${f}`),
        "/projects/web/variables?metadata%5Fonly=true",
        ...["", "&metadataOnly=true", "&metadata_only=false"].map((more) => `${variables}${more}`),
        ...["/projects/web/accounts", "/projects/web/accounts?metadata_only=false"],
        ...["", "&metadata_only=true"].map((more) => `/secrets?project=web&environment=staging${more}`),
      ],
      "file-content": [
        ...["", "&metadataOnly=0", "&metadataOnly=false", "&metadataOnly=%31", "&metadataOnly=tru%65"],
        ...["&metadataOnly=yes", "&metadata_only=true", "&metadataOnly=1&metadataOnly=1"],
      ].map((more) => `${files}${more}`),
    };
    test.each(Object.entries(charged))("to the bucket of %s are charged: %p", async (bucket, paths) => {
      const { key, ask } = await stopped(w);
      for (const path of paths) expect([path, remainingOf(await ask(path, { key })).bucket]).toEqual([path, bucket]);
    });
  });

  describe("of unrecognized keys", () => {
    const ends: Readonly<Record<string, (key: Key, ask: World["ask"]) => Promise<unknown>>> = {
      expired: (key) => w.regrant(key, { expiresAt: 1 }),
      revoked: (key) => revokeKey(w.admin, key.id),
      "revoked after it was used": async (key, ask) => {
        expect((await ask("/organization", { key })).status).toBe(200);
        await revokeKey(w.admin, key.id);
      },
      "changed by SQL": (key) => w.sql`update api_keys set environments = 1 where id = ${key.id}`,
      deleted: (key) => w.sql`delete from api_keys where id = ${key.id}`,
    };
    const never: Readonly<Record<string, string>> = {
      unknown: `Bearer ${mintKey()}`,
      "malformed by its checksum": `Bearer ${mintKey().slice(0, -6)}000000`,
      "malformed altogether": "Bearer no-key-at-all",
      "of another scheme": "Basic eA==",
    };

    test("the first ten attempts are answered 401 and the next 429, byte for byte the same for each kind", async () => {
      const seen = new Map<string, unknown>();
      for (const kind of [...Object.keys(ends), ...Object.keys(never)]) {
        const { key, ask } = await stopped(w);
        await ends[kind]?.(key, ask);
        const headers = { authorization: never[kind] ?? `Bearer ${key.key}` };
        const answers: unknown[] = [];
        for (let i = 0; i < 14; i++) {
          const path = i % 2 ? variables : "/organization";
          const answer = await ask(path, { headers });
          const { "x-request-id": _, ...rest } = headersOf(answer);
          answers.push([answer.status, answer.text, Object.entries(rest)]);
        }
        seen.set(kind, answers);
      }
      const [first] = [...seen.values()] as [[number, string, unknown][]];
      expect(first.map(([status]) => status)).toEqual([...Array(10).fill(401), ...Array(4).fill(429)]);
      for (const answers of seen.values()) expect(answers).toEqual(first);
      expect(first[0]?.[1]).toBe(JSON.stringify({ error: unauthorized, code: "unauthorized" }));
      expect(first[13]?.[1]).toBe(JSON.stringify({ error: tooMany, code: "rate_limited" }));
      const { "x-request-id": _, ...usual } = usualHeaders({ "retry-after": "6" });
      expect(Object.fromEntries(first[13]?.[2] as [])).toEqual(usual);
    });

    if (dialect === "postgres") return;
    test("a key that was revoked leaves no RateLimit field, however many requests with it are under way", async () => {
      const { ask, key } = await stopped(w);
      expect((await ask("/organization", { key })).status).toBe(200);
      await revokeKey(w.admin, key.id);
      const answers = await Promise.all(Array.from({ length: 12 }, () => ask("/organization", { key })));
      const seen = answers.map(({ status, headers }) => [status, headers.has("ratelimit")]);
      expect(seen.sort()).toEqual([...Array(10).fill([401, false]), ...Array(2).fill([429, false])]);
    });

    test("each text has its own count, a request without a key has none, and a good key pays only for itself", async () => {
      const { ask, key } = await stopped(w);
      for (let i = 0; i < 30; i++) {
        expect((await ask("/organization", { key: mintKey() })).status).toBe(401);
        expect((await ask("/organization")).status).toBe(401);
        expect((await ask("/organization", { headers: { authorization: `Basic ${i}` } })).status).toBe(401);
      }
      expect(remainingOf(await ask("/organization", { key })).left).toBe(119);
    });

    test("their lookups run four at a time with 64 queued, the next is refused, and good keys pass beside them", async () => {
      const { promise: opened, resolve: open } = Promise.withResolvers<void>();
      let under = 0;
      let most = 0;
      const { key, ask } = await stopped(w, (gate) => ({
        lookUp: async (look) => {
          const row = await gate.lookUp(look);
          if (row) return row;
          most = Math.max(most, ++under);
          await opened;
          under -= 1;
          return row;
        },
      }));
      expect((await ask("/organization", { key })).status).toBe(200);
      const strangers = Array.from({ length: 68 }, () => ask("/organization", { key: mintKey() }));
      const refused = await ask("/organization", { key: mintKey() });
      expectRefusal(refused, 429, "rate_limited", tooMany);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect((await ask("/organization", { key })).status).toBe(200);
      expect((await ask(variables, { key })).status).toBe(200);
      open();
      const answers = await Promise.all(strangers);
      expect(answers.map(({ status }) => status)).toEqual(Array(68).fill(401));
      expect(most).toBe(4);
    });
  });
});

/** A key, and an app whose clock stands still. */
async function stopped(w: World, change: (gate: Gatekeeper) => Partial<Gatekeeper> = () => ({})) {
  const { organization, project, key } = await w.place({ variables: { staging: { A: "1" } }, key: everything });
  await w.project(organization, "odd", { variables: { staging: { A: "'\n$(id)" } } });
  const many = await w.project(organization, "many");
  const clock = { nowUs: 1 };
  const { ask } = w.client(({ gate }) => ({ gate: { ...gate, nowUs: () => clock.nowUs, ...change(gate) } }));
  const tooManyToRead = numbered("N", 1001).map((name) => ({ name, value: "x" }));
  await setVariables(w.admin, many.where, "staging", tooManyToRead);
  return { organization, project, key, clock, ask };
}

function remainingOf(answer: Answer): { readonly bucket: string; readonly left: number } {
  const [, bucket = "", left = "NaN"] = /^"([a-z-]+)";r=(\d+);t=\d+$/.exec(answer.headers.get("ratelimit") ?? "") ?? [];
  return { bucket, left: Number(left) };
}
