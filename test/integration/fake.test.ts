import { beforeAll, expect, test } from "bun:test";
import { createClient, type KeyholeClient, type KeyholeError } from "../../src/client/npm/client.ts";
import { fakeKeyhole } from "../../src/client/testing.ts";
import { attempt } from "../../src/core/attempt.ts";
import { type FaultCode, faults } from "../../src/core/fault.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { createApp, serveOptions } from "../../src/serve/api/app.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { UnrecognizedLimiter } from "../../src/serve/limit/unrecognized.ts";
import { below } from "../support/answer.ts";
import { eventually } from "../support/eventually.ts";
import { rawAnswer } from "../support/raw.ts";
import { bytesOf, rawRequests } from "../support/raw-requests.ts";
import { describeOnce, everything } from "../support/world.ts";

/* `keyhole/testing` against the real server: one table, run on both. */

const variables = {
  production: { A: "1", GREETING: 'it\'s "two"\n', EMPTY: "", QUOTED: "a'b$c\\", API_TOKEN: "production-token" },
  staging: { A: "2", ONLY_HERE: "x" },
};
const mail = { user: "shop", password: "mail-password" };
const key = "-----BEGIN KEY-----\nabc\n-----END KEY-----\n";
const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`NAME_${at}`, "x"]));
const world = { web: variables, many: { production: many }, empty: {} };
const options = {
  accounts: { web: { production: { mail, "ä b": { pin: "1234" } }, staging: { mail } } },
  files: { web: { production: { "etc/app.pem": key, "b.txt": "b" }, staging: { "etc/app.pem": key } } },
};

type Fetch = (url: string, init?: RequestInit) => Promise<Response>;
type Served = { readonly fetch: Fetch; readonly apiKey: string };

const web = "/projects/web/variables?environment=production";
const files = "/files?project=web&environment=production";
const inProduction = "?environment=production";
const paths = [
  ...below("/organization", "", "?x=1"),
  ...below("/projects", "", "?a", "/web", "/none", "/many", "/empty", "/Web", "/web/", "/web?x=1", "/web/files"),
  ...below(web, "", "&keys=A,GONE", "&keys=", "&keys=A,,B", "&prefix=A", "&prefix=a%20b"),
  ...below(web, "&prefix=", "&format=env", "&format=xml", "&metadata_only=true", "&metadata_only=1", "&unknown=1"),
  ...below(web, "&metadata_only=true&format=env", "&environment=staging", "&keys=%ff", "&keys=API_TOKEN,A&prefix=API"),
  ...below("/projects/web/variables", "", "?environment=prod", "?metadata_only=true"),
  ...below("/projects/many/variables", inProduction, `${inProduction}&prefix=NAME_99`, "?metadata_only=true"),
  ...below("/projects/web/accounts", "", inProduction, "?metadata_only=true", "?environment=development", "?keys=a"),
  ...[`/projects/none/variables${inProduction}`, `/projects/empty/variables${inProduction}`, "/projects/none/accounts"],
  ...below(files, "", "&metadataOnly=1", "&metadataOnly=true", "&metadata_only=true", "&path=b.txt", "&path=none"),
  ...below(files, "&path=b.txt&path=etc/app.pem", "&path="),
  ...below("/files", "", "?project=web", `${inProduction}&project=none`, "?project=web&environment=development"),
  ...below(`/secrets${inProduction}`, "", "&project=none", "&project=web", "&project=web&format=env"),
  "/nothing",
];
/** Stands for the key of whoever is asked. */
const apiKey = "KEY";
const bearer = (text: string) => ({ headers: { Authorization: text } });
const requests: readonly (readonly [path: string, init: RequestInit])[] = [
  ...paths.map((path) => [path, {}] as const),
  ...["POST", "HEAD", "DELETE"].map((method) => ["/projects", { method }] as const),
  ["/nothing", { method: "POST" }],
  ["/organization", { headers: { "x-request-id": "mine-1" } }],
  ...[web, `${web}&metadata_only=true`, files].flatMap((path) =>
    ["*", '"other"', `"${"o".repeat(43)}"`, "junk"].map(
      (tag) => [path, { headers: { "If-None-Match": tag } }] as const,
    ),
  ),
  ["/projects/%77eb", {}],
  ["/projects/./x/../web", {}],
  ["/projects/%zz", {}],
  ["/projects", { method: "get" }],
  ["/projects", { method: "GETX" }],
  ["/projects", { method: "POST", body: "x" }],
  ["/projects", bearer(apiKey)],
  ["/projects", bearer(`Token ${apiKey}`)],
  ["/projects", bearer(`Bearer ${apiKey}, Bearer ${apiKey}`)],
  ["/projects", bearer(`BEARER   ${apiKey}`)],
  ["/projects", bearer("")],
  ["/projects", bearer("Basic a")],
  ["/projects", bearer(`Bearer kh_${"k".repeat(49)}`)],
  ["/projects", bearer("Bearer a,b")],
];

/** What the client's methods give, each from the one that it is called with. */
const calls: readonly (readonly [what: string, call: (keyhole: KeyholeClient) => Promise<unknown>])[] = [
  ["organization", (k) => k.organization().then(({ plan }) => plan)],
  ["projects", (k) => k.projects()],
  ["project", (k) => k.project("web")],
  ["no project", (k) => k.project("none")],
  ["variables", (k) => k.variables("web", "production")],
  ["some variables", (k) => k.variables("web", "production", { keys: ["A", "GONE"], prefix: "A" })],
  ["too many variables", (k) => k.variables("many", "production")],
  ["names", (k) => k.variableNames("web", null, { prefix: "A" })],
  ["values", (k) => k.values("web", "staging")],
  ["accounts", (k) => k.accounts("web", null)],
  ["accounts of one environment", (k) => k.accounts("web", "staging")],
  ["files", (k) => k.files("web", "production")],
  ["one file", (k) => k.files("web", "production", { paths: ["b.txt"] })],
  ["a list that is too long", (k) => k.values("web", "production", { keys: Array(1001).fill("A") })],
  ["what has not changed", (k) => again(k, () => {})],
  ["a watch", (k) => firstSeen(k, "web")],
  ["a watch of nothing", (k) => firstSeen(k, "none")],
];

async function again(keyhole: KeyholeClient, between: () => void): Promise<unknown> {
  const { etag } = await keyhole.variables("web", "production");
  between();
  return keyhole.variables("web", "production", { ifNoneMatch: etag });
}

async function firstSeen(keyhole: KeyholeClient, project: string): Promise<unknown> {
  const watch = keyhole.watch(project, "production", { keys: ["A"] });
  try {
    return [await watch.ready, watch.current(), watch.staleSince];
  } finally {
    watch.close();
  }
}

describeOnce("keyhole/testing", (w) => {
  let organization: { readonly slug: string };
  let real: Served;
  beforeAll(async () => {
    const place = await w.place({
      variables,
      accounts: [
        { name: "mail", environments: ["production", "staging"], values: mail },
        { name: "ä b", environments: ["production"], values: { pin: "1234" } },
      ],
      files: [
        { path: "etc/app.pem", environments: ["production", "staging"], content: key },
        { path: "b.txt", environments: ["production"], content: "b" },
      ],
    });
    organization = place.organization;
    await w.project(place.organization, "many", { variables: { production: many } });
    await w.project(place.organization, "empty");
    real = { fetch, apiKey: (await w.key(place.organization, everything)).key };
  });
  /** Both, each with full buckets that gain nothing. */
  const both = (): readonly Served[] => {
    const client = w.client(({ gate }) => ({ gate: { ...gate, nowUs: () => 1000 } }));
    return [
      {
        ...real,
        fetch: (url, init) => client.handle(new Request(url.replace(/^https:..[^/]*/, "http://localhost"), init)),
      },
      fakeKeyhole(world, { ...options, nowMs: () => 1 }),
    ];
  };
  const expectSame = async (ask: (one: Served) => Promise<unknown>) => {
    const [theirs, ours] = await Promise.all(both().map(ask));
    expect(ours).toEqual(theirs);
  };

  test.each(requests)("answers %s with %p as the real server does", (path, init) =>
    expectSame((one) => answerOf(one, path, init)),
  );

  test.each(calls)("gives the client %s as the real server does", (_, call) =>
    expectSame(async ({ apiKey, fetch }) => {
      const keyhole = createClient({ url: "https://keyhole.test", apiKey, fetch, waitMs: 0 });
      return told(await call(keyhole).catch(({ code, message }: KeyholeError) => ({ code, message })));
    }),
  );

  test("answers each request on the wire as the real server does, headers included", async () => {
    // Whenever a clock is looked at, an hour has passed, so that each request finds full buckets.
    const hours = () => {
      let passed = 0;
      return () => 3_600 * passed++;
    };
    const [theirHours, ourHours] = [hours(), hours()];
    const own = { limiter: new Limiter(), unrecognized: new UnrecognizedLimiter(undefined, 2 ** 10) };
    const gate = { ...w.keyhole.gate, ...own, nowUs: () => theirHours() * 1_000_000 };
    const app = createApp({ ...w.keyhole, gate }).listen({ ...serveOptions, hostname: "127.0.0.1", port: 0 });
    const fake = fakeKeyhole(world, { ...options, nowMs: () => ourHours() * 1000 });
    const { url, close } = await fake.listen();
    const all = rawRequests(paths);
    expect(all.length).toBeGreaterThan(277);
    const differing: unknown[] = [];
    const compare = async (request: string) => {
      const [theirs, ours] = await Promise.all([
        rawAnswer(app.server?.port as number, bytesOf(request, real.apiKey)),
        rawAnswer(Number(new URL(url).port), bytesOf(request, fake.apiKey)),
      ]);
      const [expected, found] = [partsOf(theirs), partsOf(ours)];
      if (!Bun.deepEquals(expected, found)) differing.push({ request: request.slice(0, 200), expected, found });
    };
    try {
      for (let at = 0; at < all.length; at += 16) await Promise.all(all.slice(at, at + 16).map(compare));
    } finally {
      app.server?.stop(true);
      await close();
    }
    expect(differing).toEqual([]);
  }, 120_000);

  const limited: readonly (readonly [what: string, path: string, init: RequestInit, count: number])[] = [
    ["values", web, {}, 31],
    ["metadata", "/projects", {}, 121],
    ["reads that did not change", web, { headers: { "If-None-Match": "*" } }, 121],
    ["a wrong key", "/projects", bearer(`Bearer kh_${"k".repeat(49)}`), 11],
  ];
  test.each(limited)("limits %s as the real server does", (_, path, init, count) =>
    expectSame(async (one) => {
      for (let at = 1; at < count; at++) await answerOf(one, path, init);
      const { status, headers } = (await answerOf(one, path, init)) as { status: number; headers: object };
      return [status, status === 429 && Object.keys(headers).sort()];
    }),
  );

  test("a revoked key gets the real server's 401", async () => {
    const fake = fakeKeyhole(world);
    const { key, id } = await w.key(organization as never, everything);
    await revokeKey(w.admin, id, "key");
    fake.revoke();
    const theirs = await answerOf({ fetch: both()[0]?.fetch as Fetch, apiKey: key }, "/projects", {});
    expect(await answerOf(fake, "/projects", {})).toEqual(theirs);
  });

  test.each(Object.entries(faults))("fails as it is told: %s", async (code, [status, error]) => {
    const fake = fakeKeyhole(world);
    fake.fail(code as FaultCode);
    expect(await answerOf(fake, "/projects", {})).toMatchObject({ status, text: JSON.stringify({ error, code }) });
    fake.fail();
    expect(await answerOf(fake, "/projects", {})).toMatchObject({ status: 200 });
  });

  type Mend = (fake: ReturnType<typeof fakeKeyhole>) => void;
  const ends: readonly (readonly [what: string, status: number, end: Mend])[] = [
    ["a change", 200, (fake) => fake.set("web", "production", "A", "3")],
    ["a failure", 403, (fake) => fake.fail("plan_required")],
    ["the key's end", 401, (fake) => fake.revoke()],
  ];
  test.each(ends)("lets a read wait for %s, for one metadata token", async (_, status, end) => {
    const fake = fakeKeyhole(world, { nowMs: () => 1 });
    const { url, close } = await fake.listen();
    try {
      const { etag = "" } = await createClient(fake).variables("web", "production");
      const headers = { Authorization: `Bearer ${fake.apiKey}`, "If-None-Match": etag };
      const ask = (get: Fetch, Prefer: string) => get(`${url}/api/v1${web}`, { headers: { ...headers, Prefer } });
      const waits = [ask(fake.fetch, "wait=60"), ask(fetch, "wait=60")];
      await ask(fetch, "wait=1"); // it ends after both have begun to wait
      expect((await ask(fetch, "")).headers.get("ratelimit")).toContain("r=116");
      end(fake);
      for (const answer of await Promise.all(waits)) expect(answer.status).toBe(status);
    } finally {
      await close();
    }
  });

  test("answers a read that waits for nothing more once its seconds are over, or its caller has left", async () => {
    const fake = fakeKeyhole(world);
    const { etag = "" } = await createClient(fake).variables("web", "production");
    const headers = { Authorization: `Bearer ${fake.apiKey}`, "If-None-Match": etag };
    const answer = await fake.fetch(`${fake.url}/api/v1${web}`, { headers: { ...headers, Prefer: "wait=1" } });
    expect([answer.status, answer.headers.get("preference-applied")]).toEqual([304, "wait=1"]);
    const leaving = new AbortController();
    const left = fake.fetch(`${fake.url}/api/v1${web}`, {
      headers: { ...headers, Prefer: "wait=60" },
      signal: leaving.signal,
    });
    leaving.abort();
    expect(await left.catch(({ name }: Error) => name)).toBe("AbortError");
  });

  test("a watch is told at once of a change and of the key's end, and does not wait on after it is closed", async () => {
    const fake = fakeKeyhole(world);
    const ends: AbortSignal[] = [];
    const noting = ({ fetch }: { readonly fetch: Fetch }): Fetch => {
      return (url, init) => {
        ends.push(init?.signal as AbortSignal);
        return fetch(url, init);
      };
    };
    const watch = createClient({ ...fake, fetch: noting(fake) }).watch("web", "staging");
    await watch.ready;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    watch.onChange(resolve);
    await eventually(() => ends.length === 2);
    fake.set("web", "staging", "A", "3");
    expect(await promise).toEqual({ A: "3", ONLY_HERE: "x" });
    await eventually(() => ends.length === 3);
    fake.revoke();
    await eventually(() => attempt(watch.current) === undefined);
    watch.close();
    ends.length = 0;
    const other = fakeKeyhole(world);
    const closed = createClient({ ...other, fetch: noting(other) }).watch("web", "staging");
    await eventually(() => ends.length === 2);
    closed.close();
    expect(ends.at(-1)?.aborted).toBeTrue();
  });

  test("listens, and answers by the network what it answers by its fetch", async () => {
    const fake = fakeKeyhole(world, options);
    const { url, close } = await fake.listen();
    try {
      const far = createClient({ url, apiKey: fake.apiKey });
      expect(await far.values("web", "production")).toEqual(await createClient(fake).values("web", "production"));
      fake.set("web", "production", "A", "3");
      fake.set("web", "production", "EMPTY");
      expect(await far.values("web", "production", { keys: ["A", "EMPTY"] })).toEqual({ A: "3" });
      const posted = await globalThis.fetch(`${url}/api/v1/projects`, { method: "POST", body: "x" });
      expect(posted.status).toBe(405);
    } finally {
      await close();
    }
  });
});

/** An answer without what differs from one server to the other: ids, times, lanes and tags. */
async function answerOf({ fetch, apiKey }: Served, path: string, init: RequestInit): Promise<unknown> {
  const own = Object.entries((init.headers ?? {}) as Record<string, string>);
  const asked = Object.fromEntries(own.map(([name, value]) => [name, value.replaceAll("KEY", apiKey)]));
  const headers = { Authorization: `Bearer ${apiKey}`, ...asked };
  const answer = await fetch(`https://keyhole.test/api/v1${path}`, { ...init, headers });
  return { status: answer.status, headers: told(Object.fromEntries(answer.headers)), text: told(await answer.text()) };
}

function told<T>(answer: T): T {
  const text = (JSON.stringify(answer) ?? "null")
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID")
    .replace(/(At\\?":)\d{13}/g, "$1TIME")
    .replace(/(keyhole-audit|receipt)":"[^":]+:\d+(-\d+)?/g, (_, name, more) => `${name}":"LANE${more ? "-" : ""}`)
    .replace(/\\"[0-9A-Za-z_-]{43}\\"/g, "TAG")
    .replace(/Fake|fake(?=\\")|org-\d+/g, "ORG");
  return JSON.parse(text.replace(/:TIME/g, ":0"));
}

/** An answer on the wire, without what the connection is for, and what differs as in {@link answerOf}. */
function partsOf(answer: string): unknown {
  const text = Buffer.from(answer.replace(/^(HTTP\/1\.1 100 Continue\r\n\r\n)+/, ""), "latin1").toString();
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...fields] = text.slice(0, end).split("\r\n");
  const body = text.slice(end + 4);
  const headers = fields.map((field) => {
    const at = field.indexOf(":");
    const [name, value] = [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()];
    return [name, name === "content-length" && Number(value) === Buffer.byteLength(body) ? "ALL" : value] as const;
  });
  const own = headers.filter(([name]) => !["connection", "date", "keep-alive"].includes(name));
  return { status: first.split(" ")[1], headers: told(Object.fromEntries(own.sort())), text: told(body) };
}
