import { afterAll, beforeAll, expect, test } from "bun:test";
import { policyOf } from "../../src/serve/limit/bucket.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { redisBuckets } from "../../src/serve/process/redis-buckets.ts";
import { SharedLimiter, type SharedNews, sharedDeadlineMs } from "../../src/serve/process/shared-limiter.ts";
import { ranMs } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/port.ts";
import { type Running, startProgram } from "../support/program.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { expectOneBucket, expectWithin, type Key, onPostgres, type Server, siteOf } from "../support/server.ts";

const of = (keyId: string) => ({ keyId, rate: null });

const program = findProgram("valkey-server", "redis-server") ?? "";

/** Killed at the end, also if a test fails. */
const children = new Set<Running>();
afterAll(() => {
  for (const child of children) child.signal("SIGKILL");
});

/** An empty store on a free port that saves nothing to disk. */
type Store = {
  readonly url: string;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly end: () => Promise<unknown>;
};

async function startStore(port = freePort(), password?: string): Promise<Store> {
  const options = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--appendonly", "no"];
  if (password !== undefined) options.push("--requirepass", password);
  const store = startProgram([program, ...options], {});
  children.add(store);
  const url = `redis://${password === undefined ? "" : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`;
  const probe = redisBuckets(url);
  const isReady = () => probe.connect().then(() => true);
  await eventually(() => isReady().catch(() => false));
  probe.close();
  return { url, signal: store.signal, end: () => store.stop("SIGKILL") };
}

function withStore(name: string, suite: () => void): void {
  withPrograms(["valkey-server|redis-server"], name, suite);
}

withStore("buckets in a store", () => {
  let store: Store;
  beforeAll(async () => {
    store = await startStore();
  });
  afterAll(() => store.end());

  test("the store decides exactly like a local bucket, to the microsecond", async () => {
    const buckets = redisBuckets(store.url);
    await buckets.connect();
    for (const [name, rate] of [
      ["value", null],
      ["metadata", null],
      ["content", null],
      ["value", 7],
    ] as const) {
      const { capacity, intervalUs } = policyOf(name, rate);
      const payer = { keyId: crypto.randomUUID(), rate };
      const decisions = [];
      const beganAt = performance.now();
      for (let taken = 0; taken < Math.min(capacity, 30); taken++) decisions.push(await buckets.take(payer, name));
      // The bucket refills while the calls run, so the numbers may differ by that much.
      const refilledUs = Math.ceil((performance.now() - beganAt) * 1000) + 1000;
      decisions.forEach((decision, taken) => {
        if (!decision.allowed) throw new Error(`refused after ${taken}`);
        expect(Number.isInteger(decision.fullAfterUs)).toBe(true);
        expect(decision.fullAfterUs).toBeLessThanOrEqual((taken + 1) * intervalUs);
        expect(decision.fullAfterUs).toBeGreaterThan((taken + 1) * intervalUs - refilledUs);
        expect(decision.remaining - (capacity - 1 - taken)).toBeWithin(0, 1 + Math.ceil(refilledUs / intervalUs));
      });
    }
    buckets.close();
  });

  test("a bucket's key in the store expires when the bucket is full", async () => {
    const { hostname, port } = new URL(store.url);
    const client = new Bun.RedisClient(`redis://${hostname}:${port}`);
    await client.send("FLUSHALL", []);
    const buckets = redisBuckets(store.url);
    await buckets.connect();
    const beganAt = performance.now();
    for (let taken = 0; taken < 20; taken++) await buckets.take(of("one"), "value");
    const keys = (await client.send("KEYS", ["*"])) as string[];
    expect(keys).toEqual(["keyhole:bucket:value:one"]);
    const ttl = Number(await client.send("PTTL", [keys[0] as string]));
    expect(ttl).toBeGreaterThanOrEqual(40_000 - Math.ceil(performance.now() - beganAt) - 1);
    expect(ttl).toBeLessThanOrEqual(40_001);
    buckets.close();
    client.close();
  });

  test("a sign-in that is refused is told from a store that is away, also if the store comes later", async () => {
    const port = freePort();
    const news: SharedNews[] = [];
    const limiterOf = (url: string) => new SharedLimiter(redisBuckets(url), new Limiter(), (said) => news.push(said));
    const later = limiterOf(`redis://user:wrong@127.0.0.1:${port}`);
    await later.open();
    expect(news).toEqual([{ event: "limiter", shared: false, reason: "ECONNREFUSED" }]);
    const own = await startStore(port, "p@ss/w%rd");
    await eventually(() => news.length === 2);
    expect(news[1]).toEqual({ event: "limiter", shared: false, reason: "WRONGPASS" });
    later.close();
    for (const [login, reason] of [
      ["", "NOAUTH"],
      [":wrong@", "WRONGPASS"],
    ] as const) {
      news.length = 0;
      const limiter = limiterOf(`redis://${login}127.0.0.1:${port}`);
      await limiter.open();
      limiter.close();
      expect(news).toEqual([{ event: "limiter", shared: false, reason }]);
    }
    await own.end();
  });

  test("a script that the store has forgotten is sent again", async () => {
    const client = new Bun.RedisClient(store.url);
    const buckets = redisBuckets(store.url);
    await buckets.connect();
    await client.send("SCRIPT", ["FLUSH"]);
    expect(await buckets.take(of("forgotten"), "value")).toMatchObject({ allowed: true, remaining: 29 });
    buckets.close();
    client.close();
  });

  test("a store that hangs delays only the requests under way, and is used again when it answers", async () => {
    const own = await startStore();
    const news: SharedNews[] = [];
    const limiter = new SharedLimiter(redisBuckets(own.url), new Limiter(), (said) => news.push(said));
    await limiter.open();
    const nowUs = Math.floor(performance.now() * 1000);
    // With another key if the store missed the deadline, as it may on a slow machine.
    const key = await eventually(async () => {
      if (limiter.away) return undefined;
      news.length = 0;
      const fresh = crypto.randomUUID();
      for (let taken = 0; taken < 20; taken++) await limiter.take(of(fresh), "value", nowUs);
      return news.length === 0 && fresh;
    });
    const { losses } = limiter;
    own.signal("SIGSTOP");
    const beganAt = ranMs();
    const atOnce = await Promise.all(Array.from({ length: 20 }, () => limiter.take(of(key), "value", nowUs)));
    // They wait at the same time, not one after the other.
    expectWithin(ranMs() - beganAt, 2 * sharedDeadlineMs);
    // The 20 tokens that the store had granted still count.
    expect(atOnce.filter(({ allowed }) => allowed).length).toBe(10);
    expect((await limiter.take(of(key), "value", nowUs)).allowed).toBe(false);
    expect(news).toEqual([{ event: "limiter", shared: false, reason: "no answer within 75 ms" }]);
    own.signal("SIGCONT");
    await eventually(() => !limiter.away);
    expect(news.slice(1)).toEqual([{ event: "limiter", shared: true }]);
    expect(limiter.losses).toBe(losses + 1);
    limiter.close();
    await own.end();
  });

  test("a store that restarts empty is used again", async () => {
    const port = freePort();
    const first = await startStore(port);
    const news: boolean[] = [];
    const limiter = new SharedLimiter(redisBuckets(first.url), new Limiter(), ({ shared }) => news.push(shared));
    await limiter.open();
    await first.end();
    expect((await limiter.take(of("key"), "value", 0)).allowed).toBe(true);
    expect(news).toEqual([false]);
    const second = await startStore(port);
    await eventually(() => !limiter.away);
    expect(news).toEqual([false, true]);
    expect(await limiter.take(of("key"), "value", 0)).toMatchObject({ allowed: true, remaining: 29 });
    limiter.close();
    await second.end();
  });
});

withStore("several servers, one store", () =>
  onPostgres("limits", () => {
    const site = siteOf("postgres", { staging: { TOKEN: "not-a-secret" } });
    let store: Store;
    let key: Key;
    beforeAll(async () => {
      store = await startStore();
    });
    afterAll(() => store.end());

    const path = "/projects/web/variables?environment=staging";
    const newKey = async (...more: string[]) => {
      key = await site.key("--org", "acme", "--project", "web", "--env", "staging", ...more);
      return key;
    };
    const statuses = async (server: Server, count: number) => {
      const answers = await Promise.all(Array.from({ length: count }, () => server.get(path, key.key)));
      return answers.map(({ status }) => status);
    };

    test("four processes give one key 30 of 60 value requests, and one more with each refill", async () => {
      const env = { KEYHOLE_LIMITER_URL: store.url };
      const serve = () => site.serve({ env });
      const servers = await Promise.all([serve(), serve(), serve(), serve()]);
      await expectOneBucket(() => newKey("--rate", "2"), path, servers, 2);
      await expectOneBucket(() => newKey(), path, servers);
      const [first] = servers;
      // A token comes back every two seconds.
      const { headers } = await eventually(async () => {
        const answer = await first.get(path, key.key);
        return answer.status === 429 ? answer : undefined;
      });
      expect(headers.get("ratelimit-policy")).toBe('"value";q=30;w=60');
      expect(headers.get("retry-after")).toBeOneOf(["1", "2"]);
      for (const server of servers) expect(await server.stop()).toBe(0);
    });

    test("without the store a server counts alone, logs that once, and returns to the store later", async () => {
      await newKey();
      const own = await startStore();
      const server = await site.serve({ env: { KEYHOLE_LIMITER_URL: own.url, KEYHOLE_OPS_PORT: "0" } });
      const metric = async (name: string) =>
        Number(new RegExp(`^${name} (\\d+)$`, "m").exec(await (await fetch(`${server.ops()}/metrics`)).text())?.[1]);
      const fallback = () => metric("keyhole_limiter_fallback");
      const losses = () => metric("keyhole_limiter_fallbacks_total");
      expect((await server.get(path, key.key)).status).toBe(200);
      // On a slow machine the store may have missed a deadline before.
      await eventually(async () => (await fallback()) === 0);
      const before = await losses();
      own.signal("SIGSTOP");
      const beganAt = ranMs();
      const all = await statuses(server, 10);
      expectWithin(ranMs() - beganAt, 1000);
      expect(all).toEqual(Array(10).fill(200));
      expect(await fallback()).toBe(1);
      const lost = await losses();
      expect(lost).toBeGreaterThan(before);
      expect(await statuses(server, 10)).toEqual(Array(10).fill(200));
      expect(await losses()).toBe(lost);
      own.signal("SIGCONT");
      await eventually(async () => (await fallback()) === 0);
      const said = () => server.said().stdout.match(/(?<="event":"limiter","shared":)\w+/g);
      await eventually(async () => said()?.length === 2 * (await losses()));
      expect(said()?.join()).toMatch(/^(false,true,?)+$/);
      await server.stop();
      await own.end();
    });

    test("a server starts without its store, warns, and never shows the store's password", async () => {
      await newKey();
      const port = freePort();
      const server = await site.serve({ env: { KEYHOLE_LIMITER_URL: `redis://:not-a-secret@127.0.0.1:${port}` } });
      const words = "WARNING: the store at KEYHOLE_LIMITER_URL cannot be reached: the connection was refused. Until";
      expect(server.said().stderr).toContain(words);
      expect((await server.get(path, key.key)).status).toBe(200);
      await server.stop();
      const { stdout, stderr } = server.said();
      expect(`${stdout}${stderr}`).not.toContain("not-a-secret");
    });
  }),
);
