/** Lookups are grouped, commits are shared and sets are remembered: no request may ever get another one's answer. */

import { beforeAll, describe, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Environment, environments } from "../../src/core/names.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { answerOf, below, requestOf } from "../support/answer.ts";
import { contractProblem, type Dice, diceOf, unlimited } from "../support/attack.ts";
import { setVariables } from "../support/plans.ts";
import { seed } from "../support/seed.ts";
import { type Client, describeBoth, everything, type Key, type World } from "../support/world.ts";

type Scoped = Key & {
  readonly owner: number;
  readonly slugs: readonly string[];
  readonly reach: readonly Environment[];
};

type Question = {
  readonly key: Scoped;
  readonly path: string;
  readonly status: number;
  readonly says: readonly string[];
};

const slugs = ["web", "api", "job"];
const owners = 4;

describeBoth("many callers at once", (w, dialect) => {
  let keys: Scoped[];
  beforeAll(async () => {
    keys = await setUp(w);
  });

  const rounds = dialect === "sqlite" ? 12 : 8;
  test(`each get their own answer: ${rounds} times 250 in one moment`, async () => {
    const client = unlimited(w);
    await introduce(client, keys);
    const dice = diceOf(seed);
    for (let round = 0; round < rounds; round++) {
      const questions = Array.from({ length: 250 }, () => questionOf(keys, dice));
      const problems = await Promise.all(
        questions.map((question, n) => judged(w, client, question, `${dialect}-${round}-${n}`)),
      );
      expect(problems.filter(Boolean)).toEqual([]);
    }
    // Nothing is recorded twice, or for another caller.
    const rows = await w.run(
      `select request_id, key_id, project, environment, action, names from audit_entries where actor_type = 'key'`,
    );
    const ids = rows.map((row) => `${row["request_id"]} ${row["names"]}`);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await w.run("select seq from audit_entries group by lane, seq having count(*) > 1")).toEqual([]);
  });

  test("each pay from their own bucket, and no token is spent twice", async () => {
    const client = w.client(({ gate }) => ({ gate: { ...gate, nowUs: () => 1_000_000 } }));
    const path = "/projects/web/variables?environment=production&keys=NAME";
    const some = keys.filter((key) => key.slugs.includes("web") && key.reach.includes("production")).slice(0, 6);
    await introduce(client, some);
    const asked = some.flatMap((key) => Array.from({ length: 45 }, () => key));
    const answers = await Promise.all(asked.map(async (key) => ({ key, ...(await client.ask(path, { key })) })));
    for (const key of some) {
      const own = answers.filter((answer) => answer.key === key);
      expect(own.filter(({ status }) => status === 200)).toHaveLength(30);
      const left = own.filter(({ status }) => status === 200).map(({ headers }) => headers.get("ratelimit"));
      expect(new Set(left).size).toBe(30);
      expect(own.filter(({ status }) => status === 429)).toHaveLength(15);
    }
  });

  test("all memory that was taken for files is given back, whether the answer was read or not", async () => {
    const { memory } = w.keyhole.source;
    const client = unlimited(w);
    const file = (path: string, bytes: number) => {
      return { path, environments: ["staging" as const], content: "x".repeat(bytes) };
    };
    // A small one leaves whole, a large one in pieces.
    const files = [file("small", 1000), file("large", 300 * 1024)];
    const { key } = await w.place({ files, key: everything });
    const ask = (path: string) =>
      client.handle(requestOf(`/files?project=web&environment=staging&path=${path}`, { key }));
    const paths = Array.from({ length: 20 }, (_, n) => (n % 4 < 2 ? "large" : "small"));
    const answers = await Promise.all(paths.map(ask));
    expect(memory.bytesTaken.large).toBeGreaterThan(0);
    await Promise.all(answers.map((answer, n) => (n % 2 === 0 ? answer.body?.cancel() : answer.text())));
    expect(memory.bytesTaken).toEqual({ small: 0, large: 0 });
  });
});

describeBoth("a set that is remembered by its row's version", (w, dialect) => {
  const place = async () => {
    const files = [{ path: "f", environments: ["staging"], content: "file" }];
    const values = { variables: { staging: { NAME: "first" } }, files };
    const { project, key } = await w.place({ ...values, key: everything });
    const client = unlimited(w);
    let fetched = 0;
    const { source } = w.keyhole;
    const sets = {
      fetch: (...wanted: Parameters<typeof source.sets.fetch>) => {
        fetched += 1;
        return source.sets.fetch(...wanted);
      },
    };
    const counting = unlimited(w, () => ({ source: { ...source, sets } }));
    const read = async () => {
      const before = fetched;
      const { status, text } = await counting.ask("/projects/web/variables?environment=staging", { key });
      return [status === 200 ? /"value":"([^"]*)"/.exec(text)?.[1] : status, fetched - before];
    };
    const [fresh, remembered] = dialect === "postgres" ? [1, 0] : [0, 0];
    return { ...project, key, client, read, fresh, remembered };
  };

  test("is fetched once, and again after a write, a rotation of its data key, and any change by SQL", async () => {
    const { where, id, read, fresh, remembered } = await place();
    const expectFresh = async (found: string | number) => {
      expect(await read()).toEqual([found, fresh]);
      if (found !== 503) expect(await read()).toEqual([found, remembered]);
    };
    await expectFresh("first");
    await setVariables(w.admin, where, "staging", [{ name: "NAME", value: "second" }]);
    await expectFresh("second");
    await putFile(w.admin, where, { path: "f", environments: ["staging"], content: Buffer.from("a newer file") });
    expect(await read()).toEqual(["second", remembered]);
    await rotateData(w.admin, where);
    await expectFresh("second");
    await w.sql`update data_keys set created_at = created_at + 1 where project_id = ${id}`;
    await expectFresh("second");
    await w.sql`update sets set version = version where project_id = ${id}`;
    await expectFresh("second");
    const [kept] = await w.sql`select wrapped from data_keys where project_id = ${id}`;
    await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${id}`;
    await expectFresh(503);
    await w.sql`update data_keys set wrapped = ${kept?.["wrapped"]} where project_id = ${id}`;
    await expectFresh("second");
    const [row] = await w.sql`select listing_mac as mac from sets
      where project_id = ${id} and kind = 'variables' and environment = 'staging'`;
    await w.sql`update sets set listing_mac = ${Buffer.alloc(32)} where project_id = ${id} and kind = 'variables'`;
    await expectFresh(503);
    await w.sql`update sets set listing_mac = ${row?.["mac"]}
      where project_id = ${id} and kind = 'variables' and environment = 'staging'`;
    await expectFresh("second");
  });

  test("is served as before after VACUUM FULL has moved every row", async () => {
    const { key, client, read, fresh } = await place();
    const files = () => client.ask("/files?project=web&environment=staging", { key });
    const before = (await files()).text;
    await read();
    const vacuums = dialect === "postgres" ? ["sets", "data_keys", "projects", "api_keys", "file_contents"] : [""];
    for (const table of vacuums) await w.run(`vacuum ${table && `full ${table}`}`);
    expect(await read()).toEqual(["first", fresh]);
    expect((await files()).text).toBe(before);
  });

  test("is as new as the last rotation that was acknowledged, for readers beside it", async () => {
    const { where, read } = await place();
    let [acknowledged, over] = [0, false];
    const wrong: unknown[] = [];
    const reader = async () => {
      while (!over) {
        const least = acknowledged;
        const [found] = await read();
        if (typeof found !== "string" || Number(found) < least) wrong.push([found, least]);
        await nextTurn();
      }
    };
    await setVariables(w.admin, where, "staging", [{ name: "NAME", value: "0" }]);
    const readers = [reader(), reader(), reader()];
    for (let count = 1; count <= 10; count++) {
      await setVariables(w.admin, where, "staging", [{ name: "NAME", value: `${count}` }]);
      acknowledged = count;
      expect(await rotateData(w.admin, where)).toMatchObject({ broken: [], deletedKeys: 1 });
    }
    over = true;
    await Promise.all(readers);
    expect(wrong).toEqual([]);
  }, 180_000);
});

describe("a value", () => {
  describeBoth("leaves only when its entry is on record", (w) => {
    let key: Scoped;
    const reads = [
      ...below("/projects/web/variables?environment=staging", "", "&format=env", "&keys=NAME"),
      ...["/projects/web/accounts", "/files?project=web&environment=staging"],
      ...below("/secrets?project=web&environment=staging", "", "&format=env"),
    ];
    beforeAll(async () => {
      const keys = await setUp(w);
      key = keys[0] as Scoped;
    });

    test("which the answer waits for", async () => {
      for (const path of reads) {
        const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
        const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
        const client = unlimited(w, ({ journal }) => ({
          journal: {
            record: async (entries) => {
              ask();
              await mayCommit;
              return journal.record(entries);
            },
          },
        }));
        let answered = false;
        const answer = client.ask(path, { key }).finally(() => {
          answered = true;
        });
        await asked;
        for (let turn = 0; turn < 20; turn++) await nextTurn();
        expect([path, answered]).toEqual([path, false]);
        commit();
        expect((await answer).status).toBe(200);
      }
    });

    test("and not at all if there can be no entry", async () => {
      const client = unlimited(w);
      await w.run("alter table audit_segments rename to elsewhere");
      try {
        for (const path of reads) {
          const answer = await client.ask(path, { key });
          expect([path, answer.status, contractProblem(answer)]).toEqual([path, 503, undefined]);
          expect(answer.text).toContain('"unavailable"');
        }
        const names = "/projects/web/variables?environment=staging&metadata_only=true";
        expect((await client.ask(names, { key })).status).toBe(200);
      } finally {
        await w.run("alter table elsewhere rename to audit_segments");
      }
      expect((await client.ask(reads[0] as string, { key })).status).toBe(200);
    });
  });
});

function secretOf(owner: number, slug: string, what: string): string {
  return `<${owner}/${slug}/${what}>`;
}

async function setUp(world: World): Promise<Scoped[]> {
  const dice = diceOf(seed + 9);
  const keys: Scoped[] = [];
  for (let owner = 0; owner < owners; owner++) {
    const organization = await world.organization();
    for (const slug of slugs) {
      await world.project(organization, slug, {
        variables: Object.fromEntries(environments.map((at) => [at, { NAME: secretOf(owner, slug, at) }])),
        accounts: environments.map((at) => ({
          name: at,
          environments: [at],
          values: { secret: secretOf(owner, slug, `account ${at}`) },
        })),
        files: environments.map((at) => ({
          path: `${at}.txt`,
          environments: [at],
          content: secretOf(owner, slug, `file ${at}`),
        })),
      });
    }
    // The first key of each organization reaches everything, the others a random part.
    for (let n = 0; n < 10; n++) {
      const listed = n > 0 && dice.chance(0.6) ? orAll(dice.some(slugs), slugs) : undefined;
      const reach = n > 0 ? orAll(dice.some(environments, 0.7), environments) : environments;
      const key = await world.key(organization, { ...everything, projects: listed, environments: reach });
      keys.push({ ...key, owner, slugs: listed ?? slugs, reach });
    }
  }
  return keys;
}

/** Unknown keys share a narrow lane, which a crowd would fill. */
async function introduce(client: Client, keys: readonly Key[]): Promise<void> {
  for (const key of keys) expect((await client.ask("/organization", { key })).status).toBe(200);
}

function orAll<T>(some: readonly T[], all: readonly T[]): readonly T[] {
  return some.length > 0 ? some : all;
}

/** A random request, and the secrets that must be in its answer. */
function questionOf(keys: readonly Scoped[], dice: Dice): Question {
  const key = dice.pick(keys);
  const slug = dice.pick(slugs);
  const at = dice.pick(environments);
  const own = (what: string) => secretOf(key.owner, slug, what);
  const [path, says]: [string, string[]] = dice.pick([
    [`/projects/${slug}/variables?environment=${at}`, [own(at)]],
    [`/projects/${slug}/variables?environment=${at}&keys=NAME`, [own(at)]],
    [`/projects/${slug}/variables?environment=${at}&format=env`, [own(at)]],
    [`/secrets?project=${slug}&environment=${at}`, [own(at)]],
    [`/projects/${slug}/accounts?environment=${at}`, [own(`account ${at}`)]],
    [`/projects/${slug}/accounts`, key.reach.map((one) => own(`account ${one}`))],
    [`/files?project=${slug}&environment=${at}`, [Buffer.from(own(`file ${at}`)).toString("base64")]],
    [`/projects/${slug}/variables?environment=${at}&metadata_only=true`, []],
  ]);
  const named = path.includes("environment=");
  const status = named && !key.reach.includes(at) ? 403 : key.slugs.includes(slug) ? 200 : 404;
  return { key, path, status, says: status === 200 ? says : [] };
}

/** Asks, and compares the answer with what was owed and with what is on record at that moment. */
async function judged(world: World, client: Client, question: Question, id: string): Promise<string | undefined> {
  const { key, path } = question;
  const response = await client.handle(requestOf(path, { key, headers: { "x-request-id": id } }));
  const entries =
    response.status === 200 && !path.includes("metadata")
      ? await world.sql`select key_id, project, environment from audit_entries where request_id = ${id}`
      : undefined;
  const { status, headers, text } = await answerOf(response);
  const wrong = (what: string) => `${path} for ${key.slugs}/${key.reach}: ${what}: ${status} ${text.slice(0, 300)}`;
  const problem = contractProblem({ status, headers, text });
  if (problem) return wrong(problem);
  if (status !== question.status) return wrong(`not ${question.status}`);
  if (headers.get("x-request-id") !== id) return wrong("another's request id");
  const said = text.match(/<\d\/[a-z]+\/[a-z ]+>|"content":"[^"]+"/g) ?? [];
  const bare = said.map((one) => one.replace(/^"content":"|"$/g, "")).sort();
  if (JSON.stringify(bare) !== JSON.stringify([...question.says].sort())) return wrong(`not ${question.says}`);
  if (!entries) return undefined;
  const [entry, ...more] = entries;
  const asked = /environment=([a-z]+)/.exec(path)?.[1] ?? null;
  const good =
    entry?.["key_id"] === key.id && path.includes(String(entry["project"])) && entry["environment"] === asked;
  return more.length === 0 && good ? undefined : wrong(`recorded as ${JSON.stringify(entries)}`);
}
