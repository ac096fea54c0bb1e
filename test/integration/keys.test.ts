import { describe, expect, setSystemTime, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { typedIn } from "../../src/dashboard/parts/carry-out.ts";
import { boundedKinds } from "../../src/kinds/kind.ts";
import {
  createKey,
  findKey,
  listKeys,
  revokeKey,
  rotateKey,
  shortKeyIds,
  showKey,
} from "../../src/people/keys/keys.ts";
import { find } from "../../src/people/keys/operations.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import type { KeyRow } from "../../src/serve/access/authenticate.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { RememberedSets } from "../../src/serve/sets/remembered.ts";
import { contentQueries } from "../../src/store/contents.ts";
import { clockOf, compile, type Database } from "../../src/store/database.ts";
import { keyLookups } from "../../src/store/lookups.ts";
import { projectQueries } from "../../src/store/projects.ts";
import { setQueries } from "../../src/store/sets.ts";
import { type Answer, below, expectRefusal, headersOf, leaksIn, requestOf, usualHeaders } from "../support/answer.ts";
import { performed } from "../support/perform.ts";
import { asPerson } from "../support/persons.ts";
import { deleteProject } from "../support/plans.ts";
import { insertProjects, numbered } from "../support/rows.ts";
import { clientOf, describeBoth, everything, type Key, type World } from "../support/world.ts";

/** Gate 2, and that changes of a key take effect at once. */
describeBoth("a key", (w, dialect, once) => {
  test("reaches what these statements say: test/vectors/ has them as they are sent", async () => {
    const { database } = w.admin;
    const sent: string[] = [];
    const recording: Database = {
      ...database,
      query: (statement, options) => {
        sent.push(compile(database.db, statement).text);
        return database.query(statement, options);
      },
    };
    sent.push("-- keyLookups");
    keyLookups(recording, boundedKinds());
    for (const prepare of [setQueries, projectQueries]) {
      sent.push(`-- ${prepare.name}`);
      prepare(recording);
    }
    sent.push("-- contentQueries");
    contentQueries(recording, recording);
    const file = join(import.meta.dir, `../vectors/reach-${dialect}.sql`);
    const text = `${sent.map((one) => (one.startsWith("--") ? one : `${inLines(one).trim()};`)).join("\n\n")}\n`;
    if (process.env["TRANSCRIBE"] === "1") writeFileSync(file, text);
    expect(text).toBe(readFileSync(file, "utf8"));
  });
  test("with a rate of its own may ask as many times as often, and so may its successor and the tokens of a trust", async () => {
    const { organization } = await w.place({ variables: { staging: { A: "1" } } });
    const asked = { organization: organization.slug, projects: null, environments: null, rate: 3 };
    const made = await w.key(organization, { rate: 3 });
    const { successor } = await rotateKey(w.admin, made.id, 0);
    expect([made.rate, successor.rate]).toEqual([3, 3]);
    const claims = new Map([["sub", "s"]]);
    const { trust } = await createTrust(w.admin, { ...asked, issuer: "https://id.example", audience: "a", claims });
    expect([trust.rate, (await showKey(w.admin, trust.id)).rate]).toEqual([3, 3]);
    const limiter = new Limiter();
    const { ask } = w.client(({ gate }) => ({ gate: { ...gate, limiter } }));
    const of = async () => {
      const { status, headers } = await ask("/projects/web/variables?environment=staging", { key: successor });
      return [status, headers.get("ratelimit-policy"), headers.get("ratelimit")?.split(";t=")[0]];
    };
    // As one that is not known, which pays after the lookup, and then as one that is, which pays before it.
    expect(await of()).toEqual([200, '"value";q=90;w=60', '"value";r=89']);
    expect(await of()).toEqual([200, '"value";q=90;w=60', '"value";r=88']);
    const inAnHourUs = w.keyhole.gate.nowUs() + 3_600_000_000;
    let passed = 0;
    while (limiter.take({ keyId: successor.id, rate: 3 }, "value", inAnHourUs).allowed) passed++;
    expect(passed).toBe(90);
    expect(await of()).toEqual([429, '"value";q=90;w=60', '"value";r=0']);
    // SQL can neither widen what it reads nor how often.
    await w.sql`update api_keys set rate = 100 where id = ${successor.id}`;
    expect((await w.ask("/organization", { key: successor })).status).toBe(401);
    await w.sql`update api_keys set rate = null where id = ${successor.id}`;
    expect((await w.ask("/organization", { key: successor })).status).toBe(401);
  });

  test("was last used by the database's clock, whatever that of the server says", async () => {
    const { organization } = await w.place();
    const key = await w.key(organization);
    const before = await clockOf(w.admin.database);
    setSystemTime(Date.now() + 90 * 86_400_000);
    try {
      const keyhole = await openKeyhole(w.installation, () => {});
      await clientOf(keyhole).ask("/organization", { key });
      await keyhole.close();
    } finally {
      setSystemTime();
    }
    const { lastUsedAt } = await showKey(w.admin, key.id);
    expect(lastUsedAt).toBeGreaterThanOrEqual(before - 1);
    expect(lastUsedAt).toBeLessThanOrEqual(await clockOf(w.admin.database));
  });
  test("lists as many projects as servers read, and no more, and the log tells too many from changed ones", async () => {
    const organization = await w.organization();
    // Each takes 105 bytes of the list.
    const slugs = numbered("p".repeat(59), 2497);
    const most = slugs.slice(1);
    await insertProjects(w, organization, slugs);
    const key = await w.key(organization, { projects: most });
    expect((await w.ask(`/projects/${most[0]}`, { key })).status).toBe(200);
    const message = "The list of 2497 projects takes 262186 bytes, and servers read at most 262144: name fewer.";
    const bound = { kind: "bound", message };
    const reach = { organization: organization.slug, projects: slugs, environments: null };
    await expect(createKey(w.admin, reach)).rejects.toMatchObject(bound);
    await expect(createKey(w.admin, { ...reach, canary: true })).rejects.toMatchObject(bound);
    const trusted = { issuer: "https://id.example", audience: "keyhole", claims: new Map([["sub", "a"]]) };
    await expect(createTrust(w.admin, { ...reach, ...trusted })).rejects.toMatchObject(bound);
    const reason = async () => {
      expect((await w.ask("/organization", { key })).status).toBe(401);
      return w.log.at(-1)?.["reason"];
    };
    const all = await w.sql`select slug, id from projects where organization_id = ${organization.id}`;
    // The seal of that read is remembered, for the row as it was: not for a list of the same length.
    await w.sql`update api_keys set projects = replace(projects, ${most[2495]}, ${slugs[0]}) where id = ${key.id}`;
    expect(await reason()).toBe(`grant seal of key ${key.id} does not match: changed by other means`);
    await w.regrant(key, { projects: Object.fromEntries(all.map(({ slug, id }) => [slug, id as string])) });
    expect(await reason()).toBe(`the lists or terms of key ${key.id} are too large to be read`);
    await expect(rotateKey(w.admin, key.id, 0)).rejects.toMatchObject(bound);
    await w.sql`update api_keys set projects = '{}' where id = ${key.id}`;
    expect(await reason()).toBe(`grant seal of key ${key.id} does not match: changed by other means`);
  });

  const spellings = ["Bearer KEY", "bearer KEY", "BEARER KEY", "bEaReR KEY", "Bearer   KEY", "  Bearer KEY  "];
  once.each(spellings)("is taken from the header %p", async (header) => {
    const { key } = await w.key(await w.organization());
    const answer = await w.ask("/organization", { headers: { authorization: header.replace("KEY", key) } });
    expect(answer.status).toBe(200);
  });

  describe("is refused with one answer, byte for byte and header for header", () => {
    const headers: readonly (readonly [string, (key: string) => string])[] = [
      // Nothing, the scheme alone, and other schemes and blanks.
      ...["", "Bearer", "Bearer   ", "KEY", "BearerKEY", "Bearer\tKEY", "Basic KEY", "Token KEY", "Bearers KEY"]
        // Two keys, also as Bun joins two fields, quotes, a parameter, a character too many and a byte above ASCII.
        .concat("Bearer KEY KEY", "Bearer KEY, Bearer KEY", "Bearer KEY,KEY", 'Bearer "KEY"', "Bearer token=KEY")
        .concat("Bearer KEY0", "Bearer KEY\u00e9")
        .map((header) => [`the header ${header}`, (key: string) => header.replaceAll("KEY", key)] as const),
      ["a character too few", (key) => `Bearer ${key.slice(0, -1)}`],
      ["a wrong checksum", (key) => `Bearer ${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`],
      ["two characters swapped", (key) => `Bearer ${swapped(key)}`],
      ["another prefix", (key) => `Bearer kx_${key.slice(3)}`],
      ["a prefix in capitals", (key) => `Bearer KH_${key.slice(3)}`],
      ["a hyphen", (key) => `Bearer ${key.slice(0, 20)}-${key.slice(21)}`],
      ["a key of ours that no database knows", () => `Bearer ${mintKey()}`],
    ];
    once.each(headers)("%s", async (_, header) => {
      const { key } = await w.key(await w.organization());
      const answer = await w.ask("/organization", { headers: { authorization: header(key) } });
      expectUnauthorized(answer);
      expect(leaksIn([key, key.slice(3, 40)], answer.text)).toEqual([]);
    });

    const names = ["access_token", "key", "api_key", "token", "authorization", "bearer"];
    once.each(names)("a key in the query string, as %s", async (name) => {
      const { key } = await w.key(await w.organization());
      expectUnauthorized(await w.ask(`/organization?${name}=${key}`));
    });

    once("a key in the query string beside another in the header", async () => {
      const { key } = await w.key(await w.organization());
      expectUnauthorized(await w.ask(`/organization?access_token=${key}`, { key: mintKey() }));
      const answer = await w.ask(`/organization?access_token=${mintKey()}`, { key });
      expectRefusal(answer, 400, "invalid_request", "The query parameter 'access_token' is not known here.");
    });

    once("a key in a cookie, another header or the user information of the URL", async () => {
      const { key } = await w.key(await w.organization());
      expectUnauthorized(await w.ask("/organization", { headers: { cookie: `token=${key}`, "x-api-key": key } }));
      const request = new Request(`http://${key}@localhost/api/v1/organization`);
      expect((await w.handle(request)).status).toBe(401);
    });
  });

  describe("is judged as it is now on the very next request", () => {
    test("once it is revoked, for good", async () => {
      const { key, ask } = await opened(w);
      expect(await ask("/projects")).toMatchObject({ status: 200 });
      await revokeKey(w.admin, key.id);
      for (const path of everyPath) expectUnauthorized(await ask(path));
      await revokeKey(w.admin, key.id);
      expectUnauthorized(await ask("/projects"));
    });

    test("at the millisecond of the database's clock: until then 200, and from then on 401", async () => {
      const { key, ask } = await opened(w);
      const clock =
        w.dialect === "postgres"
          ? "floor(extract(epoch from clock_timestamp()) * 1000)::bigint"
          : "cast(unixepoch('subsec') * 1000 as integer)";
      const now = async () => (await w.run(`select ${clock} as now`))[0]?.["now"] as number;
      const askOnce = async (began: number) => {
        const { status } = await ask("/organization");
        return { began, ended: await now(), status };
      };
      let expiresAt: number;
      let first: Awaited<ReturnType<typeof askOnce>>;
      let marginMs = 100;
      // Again with twice the time if the machine is too slow to answer before the key ends.
      do {
        expiresAt = (await now()) + marginMs;
        await w.regrant(key, { expiresAt });
        first = await askOnce(await now());
        marginMs *= 2;
      } while (first.ended >= expiresAt && marginMs < 20_000);
      const seen = [first];
      let began = first.ended;
      while (began <= expiresAt + 5) {
        const one = await askOnce(began);
        seen.push(one);
        began = one.ended;
      }
      // One more request begins after the key has ended, however long the last one took.
      seen.push(await askOnce(began));
      expect(seen.filter((one) => one.status === 200 && one.began >= expiresAt)).toEqual([]);
      expect(seen.filter((one) => one.status !== 200 && one.ended < expiresAt)).toEqual([]);
      expect(seen.at(0)?.status).toBe(200);
      expect(seen.at(-1)?.status).toBe(401);
    });
  });

  describe("is judged again by each statement that fetches something for it", () => {
    const changes: readonly (readonly [string, string, (w: World, at: Opened) => Promise<unknown>])[] = [
      ["revoked", "unauthorized", (w, { key }) => revokeKey(w.admin, key.id)],
      ["expired", "unauthorized", (w, { key }) => w.regrant(key, { expiresAt: Date.now() - 1 })],
      ["deleted", "unauthorized", (w, { key }) => w.sql`delete from api_keys where id = ${key.id}`],
      ["on a lesser plan", "plan_required", (w, { organization }) => setPlan(w.admin, organization.slug, "free")],
      ["without its project", "project_not_found", (w, { project }) => deleteProject(w.admin, project.where)],
    ];
    type Source = ApiParts["source"];
    type Wrap = (source: Source, first: () => Promise<unknown>) => Partial<Source>;
    const variables = "/projects/web/variables?";
    const files = "/files?project=web&environment=staging";
    const sets: Wrap = ({ sets }, first) => ({ sets: { fetch: after(first, sets.fetch) } });
    const every: Wrap = ({ projects }, first) => ({ projects: { ...projects, every: after(first, projects.every) } });
    const one: Wrap = ({ projects }, first) => ({ projects: { ...projects, one: after(first, projects.one) } });
    const rows: Wrap = ({ contents }, first) => ({ contents: { ...contents, find: after(first, contents.find) } });
    const pieces: Wrap = ({ contents }, first) => ({
      contents: { ...contents, pieces: after(first, contents.pieces) },
    });
    const reads: readonly (readonly [path: string, what: string, wrap: Wrap])[] = [
      ["/projects", "projects", every],
      ["/projects/web", "the project", one],
      [`${variables}environment=staging`, "the set", sets],
      [`${variables}metadata_only=true`, "the sets", sets],
      ["/secrets?project=web&environment=staging", "the set", sets],
      [`${files}&metadataOnly=1`, "the rows of the contents", rows],
      [files, "the content", pieces],
    ];
    for (const [path, read, wrap] of reads) {
      for (const [what, code, change] of changes) {
        if (path === "/projects" && code === "project_not_found") continue; // a list is then one shorter
        test(`GET ${path}, before ${read} of a key that is now ${what}`, async () => {
          const at = await opened(w);
          const { ask } = w.client(({ gate, source }) => ({
            // Nothing is remembered or comes along, so every read takes a statement of its own.
            gate: { ...gate, lookUp: async (lookup) => withoutSets(await gate.lookUp(lookup)) },
            source: { ...source, remembered: new RememberedSets(), ...wrap(source, () => change(w, at)) },
          }));
          const answer = await ask(path, { key: at.key });
          expect(answer.json).toMatchObject({ code });
          expect(leaksIn(w.secrets, answer.text)).toEqual([]);
          if (code === "unauthorized") expectUnauthorized(answer);
          expect(await w.audit(at.key)).toEqual([]);
        });
      }
    }
  });

  describe("by the beginning of its id", () => {
    test("is found if at least 8 characters are given and no other key begins so", async () => {
      const organization = await w.organization();
      // Keys of one minute share the first 8 characters of their ids: again if the minute ended meanwhile.
      let made: Key[];
      do made = [await w.key(organization), await w.key(organization), await w.key(organization)];
      while (new Set(made.map(({ id }) => id.slice(0, 8))).size > 1);
      const short = await shortKeyIds(w.admin);
      for (const { id } of made) {
        expect(short(id).length).toBeGreaterThanOrEqual(8);
        expect(id).toStartWith(short(id));
        expect(await findKey(w.admin, short(id))).toMatchObject({ id });
        expect(await findKey(w.admin, id)).toMatchObject({ id });
        await expect(findKey(w.admin, short(id).slice(0, -1))).rejects.toThrow("Several keys begin with");
      }
      const [first] = made as [Key];
      const upper = first.id.toUpperCase();
      const lengths = ["%".repeat(8), "_".repeat(36)];
      for (const wrong of ["", first.id.slice(0, 7), `${first.id}0`, "ffffffff", ...lengths, upper]) {
        await expect(showKey(w.admin, wrong)).rejects.toThrow("There is no key");
      }
      expect(short("not the id of a key")).toBe("not the id of a key");
      expect(await revokeKey(w.admin, short(first.id))).toMatchObject({ id: first.id, status: "revoked" });
    });

    test("has at least 8 characters, however different the others", async () => {
      const key = await w.key(await w.organization());
      await w.sql`update api_keys set id = 'ffffffff-0000-7000-8000-000000000000' where id = ${key.id}`;
      const short = await shortKeyIds(w.admin);
      expect(short("ffffffff-0000-7000-8000-000000000000")).toBe("ffffffff");
      expect(await findKey(w.admin, "ffffffff")).toMatchObject({ id: "ffffffff-0000-7000-8000-000000000000" });
    });
  });

  once.each(["{", "", "null", '["web"]', '{"web":"x"}'])(
    "whose row was changed in SQL is shown as damaged, and every other key as it is: the list %p",
    async (list) => {
      const { organization, key: damaged } = await w.place({ key: { projects: ["web"] } });
      const widened = await w.key(organization, { resources: ["projects"] });
      const revoked = await w.key(organization, { projects: ["web"] });
      const good = await w.key(organization, { projects: ["web"] });
      await revokeKey(w.admin, revoked.id);
      await w.sql`update api_keys set projects = ${list} where id = ${damaged.id}`;
      await w.sql`update api_keys set resources = 31 where id = ${widened.id}`;
      const listed = await listKeys(w.admin, organization.slug);
      const statuses = listed.map(({ status }) => status);
      expect(statuses).toEqual(["damaged", "damaged", "revoked", "active"]);
      expect(listed[3]?.id).toBe(good.id);
      expect(listed.slice(2).map(({ projects }) => projects)).toEqual([["web"], ["web"]]);
      expect(await showKey(w.admin, damaged.id)).toMatchObject({ status: "damaged" });
      expect(await revokeKey(w.admin, damaged.id)).toMatchObject({ status: "revoked" });
    },
  );

  once("is marked as used, though not at once", async () => {
    const key = await w.key(await w.organization());
    const used: string[] = [];
    const { ask } = w.client(({ gate }) => ({ gate: { ...gate, used: (id) => used.push(id) } }));
    await ask("/organization", { key });
    await ask("/organization", { key: mintKey() });
    await ask("/files", { key });
    expect(used).toEqual([key.id, key.id]);
  });

  once("never enters the log, however it was sent", async () => {
    const { key } = await w.key(await w.organization());
    for (const path of [`/projects/${key}`, `/${key}`, `/organization?${key}=1`, `/organization?x=${key}`]) {
      for (const method of ["GET", "POST", "HEAD"]) {
        const request = requestOf(path, { key, method, headers: { "user-agent": key, cookie: key } });
        const text = await (await w.handle(request)).text();
        expect(leaksIn([key], text)).toEqual([]);
      }
    }
    expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
  });
});

const everyPath = [
  ...["/organization", "/projects", "/projects/web"],
  ...below("/projects/web/variables?", "environment=staging", "metadata_only=true"),
  ...below("/projects/web/accounts", "", "?metadata_only=true"),
  ...below("/files?project=web&environment=staging", "", "&metadataOnly=true"),
  "/secrets?project=web&environment=staging",
];

type Opened = Awaited<ReturnType<typeof opened>>;

/** An organization with one project, a key of everything, and an app whose buckets are always full. */
async function opened(w: World) {
  const { organization, project, key } = await w.place({
    variables: { staging: { A: "value of the variable" } },
    accounts: [{ name: "ci", environments: ["staging"], values: { a: "value of the account" } }],
    files: [{ path: "f", environments: ["staging"], content: "content of the file" }],
    key: everything,
  });
  let seconds = 0;
  const { ask } = w.client(({ gate }) => ({ gate: { ...gate, nowUs: () => ++seconds * 10_000_000 } }));
  return { organization, project, key, ask: (path: string) => ask(path, { key }) };
}

/** A key's row whose sets must be fetched. */
function withoutSets(row: KeyRow | undefined): KeyRow | undefined {
  const { target } = row ?? {};
  return row && target
    ? { ...row, target: { ...target, sets: target.sets.map((set) => ({ ...set, row: null })) } }
    : row;
}

/** The same read, after something else has happened. */
function after<A extends readonly unknown[], R>(
  first: () => Promise<unknown>,
  read: (...values: A) => Promise<R>,
): (...values: A) => Promise<R> {
  return async (...values) => {
    await first();
    return read(...values);
  };
}

function expectUnauthorized(answer: Answer): void {
  expectRefusal(answer, 401, "unauthorized", "A valid API key is required.");
  expect(headersOf(answer)).toEqual(usualHeaders({ "www-authenticate": 'Bearer realm="keyhole"' }));
}

function swapped(key: string): string {
  for (let i = 10; i < 40; i++) {
    if (key[i] !== key[i + 1]) return key.slice(0, i) + key[i + 1] + key[i] + key.slice(i + 2);
  }
  return key.slice(0, -1);
}

describeBoth("a leaked text", (w) => {
  const search = (admin: World["admin"], text: string, revoke?: true) =>
    performed(find, admin, { text: typedIn(text), revoke });
  const said = async (...asked: Parameters<typeof search>) => {
    const { document, warnings = [] } = await search(...asked);
    expect(JSON.stringify(document)).not.toMatch(/kh_\w{8}/);
    const { keys } = document as { readonly keys: readonly { readonly name: string; readonly status: string }[] };
    return [keys.map(({ name, status }) => `${name} ${status}`), warnings.length] as const;
  };

  /** Keys of both environments in one text, beside one that nobody has made. */
  async function leak() {
    const { organization } = await w.place();
    const make = (name: string) => w.key(organization, { name, projects: ["web"], environments: [name] });
    const [staging, production] = [await make("staging"), await make("production")];
    const text = `a ${staging.key}${production.key}\n+KEY=${mintKey()} ${staging.key}`;
    const person = (...holdings: [rights: ("see" | "keys" | "reveal")[], environments: number][]) => {
      const place = { organizationId: organization.id, projectId: null };
      return asPerson(
        w.admin,
        "ana",
        holdings.map(([rights, environments]) => ({ ...place, rights, environments })),
      );
    };
    return { staging, production, text, person };
  }

  test("names each of its keys that somebody may see, and says nothing of others but that there are some", async () => {
    const { text, person } = await leak();
    expect(await said(w.admin, text)).toEqual([["staging active", "production active"], 1]);
    expect(await said(person([["see"], 2]), text)).toEqual([["staging active"], 1]);
    expect(await said(person([["see"], 1]), text)).toEqual([[], 1]);
    expect(await said(w.admin, "no key, kh_, kh_short")).toEqual([[], 0]);
  });

  test("ends those that somebody may revoke, and names each that stays", async () => {
    const { text, person, staging, production } = await leak();
    await expect(search(person([["see"], 7]), text, true)).rejects.toThrow(/is still valid/);
    const refused = search(person([["see"], 7], [["keys", "reveal"], 2]), text, true);
    const left = `^key ${production.id} \\(production\\) is still valid: .*\\nRevoked key ${staging.id} \\(staging\\)\\.$`;
    await expect(refused).rejects.toThrow(new RegExp(left));
    expect(await said(w.admin, text)).toEqual([["staging revoked", "production active"], 1]);
    expect(await said(w.admin, text, true)).toEqual([["staging revoked", "production revoked"], 1]);
    expect((await w.ask("/organization", { key: production.key })).status).toBe(401);
  });

  test("of many keys is searched in several statements", async () => {
    const { text } = await leak();
    const many = Array.from({ length: 1200 }, () => mintKey()).join(" ");
    expect(await said(w.admin, `${many} ${text}`)).toEqual([["staging active", "production active"], 1]);
  });
});

/** A statement with a line for each column and clause, indented by its subqueries. */
function inLines(statement: string): string {
  const isQuery: boolean[] = [];
  const pattern = /'[^']*'|\(|\)|, | (?=(?:from|where|and|order by|limit|left join|select)\b)|(?<!left) (?=join\b)/g;
  const line = statement.replace(/\s+/g, " ").replaceAll("( ", "(").replaceAll(" )", ")");
  return line.replace(pattern, (found, at, text: string) => {
    if (found === ")") isQuery.pop();
    if (found === "(") isQuery.push(text.startsWith("select", at + 1));
    const isBreak = /^,? $/.test(found) && isQuery.at(-1) !== false;
    return isBreak ? `${found.trim()}\n${"  ".repeat(isQuery.length + 1)}` : found;
  });
}
