/**
 * Look-ups are grouped, commits are shared, sets are remembered: none of it may ever give one request what is another's.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { createApp, serveOptions } from "../../src/http/app.ts";
import { type Environment, environments } from "../../src/names.ts";
import { seed } from "../seed.ts";
import { answerOf, type Client, describeBoth, everything, type Key, requestOf, type World } from "../world.ts";
import { contractProblem, type Dice, diceOf, impatient, unlimited } from "./attack.ts";

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

describeBoth("of many callers at once", (world, dialect) => {
  let keys: Scoped[];
  beforeAll(async () => {
    keys = await setUp(world());
  }, 60_000);

  const rounds = dialect === "sqlite" ? 12 : 8;
  test(`each is answered for itself alone: ${rounds} times 250 in one moment`, async () => {
    const client = unlimited(world());
    await introduce(client, keys);
    const dice = diceOf(seed);
    for (let round = 0; round < rounds; round++) {
      const questions = Array.from({ length: 250 }, () => questionOf(keys, dice));
      const problems = await Promise.all(
        questions.map((question, n) => judged(world(), client, question, `${dialect}-${round}-${n}`)),
      );
      expect(problems.filter(Boolean)).toEqual([]);
    }
    // What was recorded is what was answered: nothing twice, nothing for anybody else.
    const rows = await world().run(`select request_id, key_id, project, environment, action, names from audit_entries`);
    const ids = rows.map((row) => `${row["request_id"]} ${row["names"]}`);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await world().run("select seq from audit_entries group by lane, seq having count(*) > 1")).toEqual([]);
  }, 60_000);

  test("each pays from its own bucket, and no token is spent twice", async () => {
    const client = world().client(({ gate }) => ({ gate: { ...gate, nowUs: () => 1_000_000 } }));
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

  test("each that asks over a socket has its own answer, too, and its address on record", async () => {
    const app = createApp({ ...world().keyhole, gate: { ...world().keyhole.gate, nowUs: impatient() } });
    app.listen({ ...serveOptions, hostname: "127.0.0.1", port: 0 });
    const dice = diceOf(seed + 1);
    const handle = (request: Request) =>
      fetch(request.url.replace("http://localhost", `http://127.0.0.1:${app.server?.port}`), {
        headers: request.headers,
      });
    const client: Client = { handle, ask: async (path, ask) => answerOf(await handle(requestOf(path, ask))) };
    try {
      await introduce(client, keys);
      const questions = Array.from({ length: 200 }, () => questionOf(keys, dice));
      const problems = await Promise.all(
        questions.map((question, n) => judged(world(), client, question, `socket-${n}`)),
      );
      expect(problems.filter(Boolean)).toEqual([]);
      const from = await world().run(
        "select distinct client_address from audit_entries where request_id like 'socket-%'",
      );
      expect(from).toEqual([{ client_address: "127.0.0.1" }]);
    } finally {
      await app.server?.stop(true);
    }
  });

  test("memory that was taken for files is given back, whoever asked and however it ended", async () => {
    const budget = world().keyhole.budget as unknown as { readonly bytesTaken: number };
    const client = unlimited(world());
    const key = keys.find(({ slugs, reach }) => slugs.includes("web") && reach.includes("staging")) as Scoped;
    const path = "/files?project=web&environment=staging";
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.handle(requestOf(path, { key }))));
    expect(budget.bytesTaken).toBeGreaterThan(0);
    await Promise.all(answers.map((answer, n) => (n % 2 === 0 ? answer.body?.cancel() : answer.text())));
    expect(budget.bytesTaken).toBe(0);
  });
});

describe("a value", () => {
  describeBoth("leaves only when its entry is on record", (world) => {
    let key: Scoped;
    const reads = [
      "/projects/web/variables?environment=staging",
      "/projects/web/variables?environment=staging&format=env",
      "/projects/web/variables?environment=staging&keys=NAME",
      "/projects/web/accounts",
      "/files?project=web&environment=staging",
      "/secrets?project=web&environment=staging",
      "/secrets?project=web&environment=staging&format=env",
    ];
    beforeAll(async () => {
      const keys = await setUp(world());
      key = keys[0] as Scoped;
    }, 60_000);

    test("and waits for it", async () => {
      for (const path of reads) {
        const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
        const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
        const client = unlimited(world(), ({ journal }) => ({
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
        for (let turn = 0; turn < 20; turn++) await Bun.sleep(0);
        expect([path, answered]).toEqual([path, false]);
        commit();
        expect((await answer).status).toBe(200);
      }
    });

    test("and never does where there can be no entry", async () => {
      const client = unlimited(world());
      await world().run("alter table audit_entries rename to elsewhere");
      try {
        for (const path of reads) {
          const answer = await client.ask(path, { key });
          expect([path, answer.status, contractProblem(answer)]).toEqual([path, 503, undefined]);
          expect(answer.text).toContain('"unavailable"');
        }
        const names = "/projects/web/variables?environment=staging&metadata_only=true";
        expect((await client.ask(names, { key })).status).toBe(200);
      } finally {
        await world().run("alter table elsewhere rename to audit_entries");
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
    // The first of each reaches everything; the others what they happen to.
    for (let n = 0; n < 10; n++) {
      const listed = n > 0 && dice.chance(0.6) ? orAll(dice.some(slugs), slugs) : undefined;
      const reach = n > 0 ? orAll(dice.some(environments, 0.7), environments) : environments;
      const key = await world.key(organization, { ...everything, projects: listed, environments: reach });
      keys.push({ ...key, owner, slugs: listed ?? slugs, reach });
    }
  }
  return keys;
}

/** Keys that were never seen share a narrow lane, which a crowd would find full. */
async function introduce(client: Client, keys: readonly Key[]): Promise<void> {
  for (const key of keys) expect((await client.ask("/organization", { key })).status).toBe(200);
}

function orAll<T>(some: readonly T[], all: readonly T[]): readonly T[] {
  return some.length > 0 ? some : all;
}

/** Something to ask, and what must be in the answer: exactly these secrets, or none. */
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

/** Asks, and holds the answer against the question and against what is on record at that very moment. */
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
