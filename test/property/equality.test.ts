/** A client cannot tell a project outside its key's scope from one that does not exist. */
import { beforeAll, expect, test } from "bun:test";
import { environments } from "../../src/core/names.ts";
import type { KeyLookup } from "../../src/core/set-rows.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { below } from "../support/answer.ts";
import { diceOf, impatient } from "../support/attack.ts";
import { seed } from "../support/seed.ts";
import { type Client, describeBoth, everything, type Key, type LogEvent, type World } from "../support/world.ts";

/** Three slugs of one length, so that nothing differs but what they lead to. */
const absent = "project-absent";
const unlisted = "project-inside";
const foreign = "project-abroad";
const own = "project-listed";

const paths = (slug: string) => [
  ...below(`/projects/${slug}/variables?environment=production`, "", "&format=env", "&keys=NAME", "&prefix=N"),
  ...below(`/projects/${slug}/variables?`, "environment=production&metadata_only=true", "metadata_only=true"),
  ...below(`/projects/${slug}`, "", "/accounts", "/accounts?environment=production", "/accounts?metadata_only=true"),
  ...below(`/files?project=${slug}&environment=production`, "", "&path=f.txt", "&metadataOnly=1"),
  ...below(`/secrets?project=${slug}&environment=production`, "", "&format=env"),
];

describeBoth("a project out of scope is one that does not exist", (w, dialect) => {
  const onSqlite = dialect === "sqlite";
  let keys: { what: string; key: Key; hidden: readonly string[] }[];
  beforeAll(async () => {
    keys = await setUp(w);
  });

  test("in status, body, every header, tokens taken and the words of the log", async () => {
    for (const { what, key, hidden } of keys) {
      // The clock stands still, so RateLimit shows every token that was taken.
      const rows = hidden.map((slug) => ({ slug, ...fresh(w, () => 1_000_000) }));
      const plain = fresh(w, () => 1_000_000);
      for (const at of paths(absent).keys()) {
        const expected = await seenOf(plain.client, key, paths(absent)[at] as string, w.log);
        expect(expected.status).toBe(404);
        for (const { slug, client } of rows) {
          const path = paths(slug)[at] as string;
          const seen = await seenOf(client, key, path, w.log);
          expect([what, path, seen]).toEqual([what, path, expected]);
        }
      }
    }
  });

  test("in the one statement that runs, and in its values apart from the slug", async () => {
    for (const { what, key, hidden } of keys) {
      for (const slug of [absent, ...hidden]) {
        const app = fresh(w);
        for (const path of paths(slug)) {
          const statements = await statementsOf(app, key, path);
          const expected = await statementsOf(app, key, path.replace(slug, absent));
          expect(expected).toEqual([expect.stringMatching(/^lookUp /)]);
          const ran = statements.map((one) => one.replaceAll(slug, absent));
          expect([what, path, ...ran]).toEqual([what, path, ...expected]);
        }
      }
    }
  });

  test("in the list of projects, which shows only what the key reaches", async () => {
    const { client } = fresh(w);
    const [listed, every] = keys.map(({ key }) => key) as [Key, Key];
    const slugs = async (key: Key) => {
      const { json } = await client.ask("/projects", { key });
      return (json as { projects: { slug: string }[] }).projects.map(({ slug }) => slug);
    };
    expect(await slugs(listed)).toEqual([own]);
    expect(await slugs(every)).toEqual([unlisted, own]);
  });

  const samples = 3000;
  test.each([
    ["a key with a list", unlisted],
    ["a key without one", foreign],
    ...(onSqlite ? [["a key with a list", foreign] as const] : []),
  ])(`in time for %s, of %s: ${samples} of each, interleaved, |t| < 5 and |AUC - 0.5| < 0.02`, async (what, slug) => {
    const { client } = fresh(w);
    const { key } = keys.find((one) => one.what === what) as (typeof keys)[number];
    const spent: Spent = { absent: [], hidden: [] };
    // Equal things differ by chance in one of a hundred looks, but no more the more samples there are.
    do await timed(client, key, slug, samples, spent);
    while (!equal(told(spent)) && spent.absent.length < 5 * samples);
    expect([told(spent), equal(told(spent))]).toEqual([told(spent), true]);
  });
});

/** How long each request took, in ms. */
type Spent = { readonly absent: number[]; readonly hidden: number[] };
type Told = { readonly t: number; readonly auc: number };

function equal({ t, auc }: Told): boolean {
  return Math.abs(t) < 5 && Math.abs(auc - 0.5) < 0.02;
}

async function setUp(world: World) {
  const alpha = await world.organization();
  const beta = await world.organization();
  const content = {
    variables: Object.fromEntries(environments.map((at) => [at, { NAME: `value in ${at}` }])),
    accounts: [{ name: "account", environments, values: { user: "u" } }],
    files: [{ path: "f.txt", environments, content: "file" }],
  };
  for (const slug of [own, unlisted]) await world.project(alpha, slug, content);
  await world.project(beta, foreign, content);
  return [
    {
      what: "a key with a list",
      key: await world.key(alpha, { ...everything, projects: [own] }),
      hidden: [unlisted, foreign],
    },
    { what: "a key without one", key: await world.key(alpha, everything), hidden: [foreign] },
  ];
}

type App = { readonly client: Client; readonly statements: string[] };

/** An app of its own that records each statement with its values. */
function fresh(world: World, nowUs: () => number = impatient()): App {
  const statements: string[] = [];
  const client = world.client((keyhole) => noting({ ...keyhole, gate: { ...keyhole.gate, nowUs } }, statements));
  return { client, statements };
}

/** The same app, with each query of its source recorded before it runs. */
function noting(keyhole: ApiParts, statements: string[]): Partial<ApiParts> {
  const { gate, source } = keyhole;
  const noted = <Queries extends object>(name: string, queries: Queries): Queries =>
    new Proxy(queries, {
      get(target, member) {
        const value: unknown = Reflect.get(target, member, target);
        if (typeof value !== "function") return value;
        return (...values: unknown[]) => {
          statements.push(`${name}.${String(member)} ${JSON.stringify(values)}`);
          return Reflect.apply(value, target, values);
        };
      },
    });
  const lookUp = (ask: KeyLookup) => {
    statements.push(`lookUp ${JSON.stringify(ask)}`);
    return gate.lookUp(ask);
  };
  return {
    gate: { ...gate, lookUp },
    source: {
      ...source,
      projects: noted("projects", source.projects),
      sets: noted("sets", source.sets),
      contents: noted("contents", source.contents),
    },
  };
}

/** All that the client and the operator see of an answer, without times and ids. */
async function seenOf(client: Client, key: Key, path: string, log: readonly LogEvent[]) {
  const before = log.length;
  const { status, text, headers } = await client.ask(path, { key, headers: { "x-request-id": "same" } });
  const words = log.slice(before).map(({ durationMs: _, ...event }) => JSON.stringify(event, stable));
  return { status, text, headers: [...headers], words };
}

/** Times and durations differ between any two requests. */
function stable(name: string, value: unknown): unknown {
  return /Ms$|At$|^time$|^stages$/.test(name) ? undefined : value;
}

async function statementsOf({ client, statements }: App, key: Key, path: string): Promise<string[]> {
  statements.length = 0;
  await client.ask(path, { key });
  return statements.slice();
}

/** Adds this many samples of each, after some to warm up. */
async function timed(client: Client, key: Key, slug: string, samples: number, spent: Spent): Promise<void> {
  const dice = diceOf(seed + spent.absent.length);
  const ask = async (which: keyof Spent, at: number) => {
    const path = `/projects/${which === "absent" ? absent : slug}/variables?environment=production&keys=NAME`;
    const from = performance.now();
    const { status } = await client.ask(path, { key });
    const tookMs = performance.now() - from;
    if (at >= 0) spent[which].push(tookMs);
    expect(status).toBe(404);
  };
  for (let at = -300; at < samples; at++) {
    const order = dice.chance(0.5) ? (["absent", "hidden"] as const) : (["hidden", "absent"] as const);
    for (const which of order) await ask(which, at);
  }
}

function told(spent: Spent): Told {
  const [absent, hidden] = [Float64Array.from(spent.absent), Float64Array.from(spent.hidden)];
  return { t: welch(cropped(absent), cropped(hidden)), auc: aucOf(absent, hidden) };
}

/** Without the slowest twentieth, which are pauses of the machine. */
function cropped(values: Float64Array): Float64Array {
  return values.toSorted().subarray(0, Math.floor(values.length * 0.95));
}

function welch(a: Float64Array, b: Float64Array): number {
  const moments = (values: Float64Array) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
    return { mean, error: square / values.length };
  };
  const [one, two] = [moments(a), moments(b)];
  return (one.mean - two.mean) / Math.sqrt(one.error + two.error);
}

/** The chance that a random one of `a` took longer than a random one of `b`: rank sums, ties for half. */
function aucOf(a: Float64Array, b: Float64Array): number {
  const sorted = b.toSorted();
  const below = (value: number, orEqual: boolean) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const at = sorted[middle] as number;
      if (at < value || (orEqual && at === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const wins = a.reduce((sum, value) => sum + (below(value, false) + below(value, true)) / 2, 0);
  return wins / (a.length * b.length);
}
