import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Fault } from "../../src/core/fault.ts";
import { readConfig } from "../../src/core/settings/settings.ts";
import { endpointPaths } from "../../src/serve/api/app.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { readinessChecks, watchReadiness } from "../../src/serve/process/health.ts";
import { summed } from "../../src/serve/process/metrics.ts";
import { startOps } from "../../src/serve/process/ops.ts";
import { together } from "../../src/serve/process/workers.ts";
import type { Database } from "../../src/store/database.ts";
import { eventually } from "../support/eventually.ts";
import { setVariables } from "../support/plans.ts";
import { type Client, clientOf, describeBoth, everything, type Key, type World } from "../support/world.ts";

/** One scrape: values by series, written as in the text. */
type Series = ReadonlyMap<string, number>;

function parse(text: string): Series {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const at = (line: string) => line.lastIndexOf(" ");
  return new Map(lines.map((line) => [line.slice(0, at(line)), Number(line.slice(at(line)))]));
}

test("the readiness of workers says why those that are not ready refuse", () => {
  const reason = "the database was put back";
  const sound = { ready: true, draining: false, checks: { database: true }, away: {} };
  const refusing = { ...sound, ready: false, checks: { database: false }, reason };
  expect(together([refusing, { ...refusing, reason: "another" }], false)).toEqual({
    ready: false,
    draining: false,
    checks: { workers: true, database: false },
    away: {},
    reason,
  });
  expect(together([sound, refusing], false)).toMatchObject({ ready: true, reason });
  expect(together([sound], true)).toMatchObject({ ready: false, draining: true, reason: undefined });
});

/** Checks that nothing in these tests breaks. */
const whole = { audit: true, history: true, comparison: true, notary: true };

describeBoth("metrics and traces", (w) => {
  let keyhole: Awaited<ReturnType<typeof openKeyhole>>;
  let client: Client;
  let collector: ReturnType<typeof startCollector>;
  let key: Key;
  const log: Readonly<Record<string, unknown>>[] = [];
  beforeAll(async () => {
    collector = startCollector();
    const options = { metered: true, tracesUrl: collector.url };
    keyhole = await openKeyhole(w.installation, (event) => log.push(event), options);
    // The clock stands still, so that no bucket refills on a slow machine. It is far ahead, because the server forgets
    // buckets that are full by its own clock.
    client = clientOf({ ...keyhole, gate: { ...keyhole.gate, nowUs: () => 1_000_000_000_000_000 } });
    const { organization: acme } = await w.place({
      variables: { staging: { TOKEN: "canary-of-a-variable", OTHER: "canary-of-another" } },
      accounts: [{ name: "registry", environments: ["staging"], values: { password: "canary-of-an-account" } }],
      files: [{ path: "a/b.txt", environments: ["staging"], content: "canary-of-a-file" }],
    });
    key = await w.key(acme, { ...everything, name: "canary-key-name" });
  });
  let closed = false;
  const close = async () => {
    if (!closed) await keyhole.close();
    closed = true;
  };
  afterAll(async () => {
    await close();
    await collector.stop();
  });
  const text = async () => summed([(await keyhole.metrics?.scrape()) ?? []], await keyhole.readiness());
  const scrape = async () => parse(await text());

  // First, while nothing else writes.
  test("checking readiness writes nothing", async () => {
    const count = async () => (await w.sql`select count(*) as n from audit_entries`)[0]?.["n"];
    const before = await count();
    await Promise.all(Array.from({ length: 5 }, () => keyhole.readiness()));
    expect(await count()).toBe(before);
  });

  test("every metric moves with what it names", async () => {
    const before = await scrape();
    // Without the zero, nobody would see the first refusal as an increase.
    const refused = [...before].filter(([name]) => name.startsWith("keyhole_requests_total"));
    expect(refused).toHaveLength(4 * (endpointPaths.length + 1));
    expect(refused.filter(([, count]) => count !== 0)).toEqual([]);
    const asked = [
      ...["/organization", "/projects", "/projects/web", "/projects/absent"],
      ...["nowhere", "staging", "staging&prefix=TOKEN"].map((query) => `/projects/web/variables?environment=${query}`),
      "/projects/web/accounts?environment=staging",
      ...["/files?project=web&environment=staging", "/secrets?project=web&environment=staging"],
    ];
    for (const path of asked) {
      const status = path.endsWith("absent") ? 404 : path.endsWith("nowhere") ? 400 : 200;
      expect([path, (await client.ask(path, { key })).status]).toEqual([path, status]);
    }
    for (let taken = 0; taken < 31; taken++) await client.ask("/secrets?project=web&environment=staging", { key });
    for (let taken = 0; taken < 11; taken++) await client.ask("/organization", { key: "kh_made-up" });
    expect((await client.ask("/nothing-here", { key })).status).toBe(404);
    const after = await scrape();
    const moved = (series: string) => (after.get(series) ?? 0) - (before.get(series) ?? 0);
    const requests = (route: string, status: number, code: string) =>
      moved(`keyhole_requests_total{route="${route}",status="${status}",code="${code}"}`);
    expect(requests("/projects/{slug}/variables", 200, "ok")).toBe(2);
    expect(requests("/projects/{slug}/variables", 400, "invalid_request")).toBe(1);
    expect(requests("/projects/{slug}", 404, "project_not_found")).toBe(1);
    expect(requests("/organization", 401, "unauthorized")).toBe(10);
    expect(requests("/organization", 429, "rate_limited")).toBe(1);
    expect(requests("none", 404, "not_found")).toBe(1);
    const stage = (route: string, name: string) =>
      moved(`keyhole_request_duration_seconds_count{route="${route}",stage="${name}"}`);
    for (const route of ["/projects/{slug}/variables", "/projects/{slug}/accounts", "/files", "/secrets"]) {
      for (const name of ["total", "look_up", "read", "open", "audit"]) expect(stage(route, name)).toBeGreaterThan(0);
    }
    expect(stage("/projects", "read")).toBe(1);
    expect(stage("/projects", "open")).toBe(0);
    expect(stage("/organization", "read")).toBe(0);
    expect(moved('keyhole_decryptions_total{kind="variable"}')).toBeGreaterThan(0);
    expect(moved('keyhole_decryptions_total{kind="account"}')).toBe(1);
    expect(moved('keyhole_decryptions_total{kind="file"}')).toBe(1);
    expect(moved('keyhole_audit_batches_total{outcome="durable"}')).toBeGreaterThan(4);
    expect(moved("keyhole_audit_batch_entries_sum")).toBe(moved("keyhole_audit_batch_entries_count"));
    expect(moved("keyhole_audit_commit_duration_seconds_sum")).toBeGreaterThan(0);
    expect(moved('keyhole_limiter_refusals_total{bucket="value"}')).toBeGreaterThan(0);
    expect(moved('keyhole_limiter_refusals_total{bucket="unrecognized"}')).toBe(1);
    expect(after.get("keyhole_limiter_buckets")).toBeGreaterThan(0);
    expect(after.get("keyhole_audit_queue_entries")).toBe(0);
    expect(after.get("process_resident_memory_bytes")).toBeGreaterThan(1e7);
    const connections = w.dialect === "postgres" ? [4, 6, 3] : [1, 1, 1];
    expect(
      ["look-up", "serve", "files"].map((pool) => after.get(`keyhole_database_connections_max{pool="${pool}"}`)),
    ).toEqual(connections);
  });

  test("the gauges count statements and file bytes while a request runs", async () => {
    const asking = client.ask("/files?project=web&environment=staging", { key });
    await Promise.resolve();
    const during = await scrape();
    const underWay = [...during].filter(([name]) => name.startsWith("keyhole_database_statements"));
    expect(underWay.map(([name]) => name)).toEqual([
      'keyhole_database_statements{pool="look-up"}',
      'keyhole_database_statements{pool="serve"}',
      'keyhole_database_statements{pool="files"}',
      'keyhole_database_statements{pool="journal"}',
    ]);
    expect((await asking).status).toBe(200);
    const left = async () =>
      [...(await scrape())].filter(([name, value]) => name.startsWith("keyhole_database_statements") && value !== 0);
    await eventually(async () => (await left()).length === 0); // key uses are written once a second, beside the requests
    expect((await scrape()).get('keyhole_memory_bytes{read="large"}')).toBe(0);
  });

  test("a histogram's buckets are cumulative, and the last one is its count", async () => {
    const series = await scrape();
    const buckets = [...series].filter(
      ([name]) =>
        name.startsWith("keyhole_request_duration_seconds_bucket{") &&
        name.includes('route="/organization",stage="total"'),
    );
    const counts = buckets.map(([, count]) => count);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(buckets.at(-1)?.[0]).toContain('le="+Inf"');
    const count = series.get('keyhole_request_duration_seconds_count{route="/organization",stage="total"}');
    expect(counts.at(-1)).toBe(count as number);
  });

  test("each request with a canary key and each read of a canary is counted", async () => {
    const { organization, project } = await w.place();
    const [bait, reader] = [await w.key(organization, { canary: true }), await w.key(organization)];
    await setVariables(w.admin, project.where, "staging", [{ name: "BAIT", value: "x", canary: true }]);
    for (let at = 0; at < 12; at++) await client.ask("/organization", { key: bait });
    for (let at = 0; at < 2; at++) await client.ask("/projects/web/variables?environment=staging", { key: reader });
    const series = await scrape();
    const counts = ["key", "read"].map((kind) => series.get(`keyhole_canary_uses_total{kind="${kind}"}`));
    expect(counts).toEqual([12, 2]);
  });

  test("no metric names a key, a slug, a variable, a value or a user agent", async () => {
    await client.ask("/projects/canary-slug", { key, headers: { "user-agent": "canary-agent" } });
    const said = await text();
    for (const word of ["canary-", "web", "acme", "org-", "TOKEN", key.id, key.key, "staging"]) {
      expect(said).not.toContain(word);
    }
  });

  test("the log has the size of a whole answer and its trace id", async () => {
    const { bytes } = await client.ask("/projects/web", { key, headers: { "x-request-id": "bytes" } });
    const line = log.find(({ requestId }) => requestId === "bytes");
    expect(line).toMatchObject({ bytes: bytes.length, traceId: expect.stringMatching(/^[0-9a-f]{32}$/) });
    const refusal = await client.ask("/projects/absent", { key, headers: { "x-request-id": "refused" } });
    expect(log.find(({ requestId }) => requestId === "refused")).toMatchObject({ bytes: refusal.bytes.length });
    const path = "/files?project=web&environment=staging";
    const files = await client.ask(path, { key, headers: { "x-request-id": "files" } });
    expect(log.find(({ requestId }) => requestId === "files")).toMatchObject({ bytes: files.bytes.length });
  });

  test("readiness names every check, and draining is not ready", async () => {
    expect(await keyhole.readiness()).toEqual({
      ready: true,
      draining: false,
      checks: { ...{ database: true, primary: true, migrations: true, root_key: true }, ...whole },
      away: {},
    });
  });

  test("readiness asks the look-ups' connections too", async () => {
    const { database } = keyhole;
    const needs = { ...w.installation, database, journal: { check: async () => true } };
    const gone = { ...database, query: () => () => Promise.reject(new Fault("unavailable", "gone")) } as Database;
    expect(await readinessChecks({ ...needs, lookups: database }).database()).toBe(true);
    expect(await readinessChecks({ ...needs, lookups: gone }).database()).toBe(false);
  });

  test("readiness names what failed: a system key that does not open, a missing audit table", async () => {
    const [row] = await w.sql`select wrapped from system_keys where purpose = 'audit'`;
    const wrapped = row?.["wrapped"] as Buffer;
    const changed = Buffer.from(wrapped);
    changed[30] = (changed[30] ?? 0) ^ 1;
    await w.sql`update system_keys set wrapped = ${changed} where purpose = 'audit'`;
    expect((await keyhole.readiness()).checks).toEqual({
      database: true,
      primary: true,
      migrations: true,
      root_key: false,
      ...whole,
    });
    const said = { event: "readiness", ready: false, failed: ["root_key"] };
    expect(log.findLast(({ event }) => event === "readiness")).toEqual(said);
    const during = await scrape();
    expect([during.get("keyhole_ready"), during.get('keyhole_check_passes{check="root_key"}')]).toEqual([0, 0]);
    expect(during.get('keyhole_check_passes{check="audit"}')).toBe(1);
    await w.sql`update system_keys set wrapped = ${wrapped} where purpose = 'audit'`;
    expect((await scrape()).get("keyhole_ready")).toBe(1);
    expect(log.findLast(({ event }) => event === "readiness")).toMatchObject({ ready: true, failed: [] });
    if (w.dialect === "sqlite") return;
    await w.run("alter table audit_segments rename to audit_segments_gone");
    expect((await keyhole.readiness()).checks).toMatchObject({ database: true, root_key: true, audit: false });
    await w.run("alter table audit_segments_gone rename to audit_segments");
    expect(await keyhole.readiness()).toMatchObject({ ready: true, checks: { audit: true } });
  });

  test("a migration that this program does not know makes it not ready", async () => {
    const table = "keyhole_migrations";
    await w.run(`insert into ${table} (hash, created_at) values ('newer', 9999999999999)`);
    expect((await keyhole.readiness()).checks).toMatchObject({ database: true, migrations: false });
    await w.run(`delete from ${table} where hash = 'newer'`);
    expect((await keyhole.readiness()).ready).toBe(true);
  });

  test("traces hold a span for the request and each stage, and nothing that the caller sent", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
    const path = "/projects/web/variables?environment=staging";
    expect((await client.ask("/organization", { key, headers: { traceparent } })).status).toBe(200);
    const acmeKey = await anotherKey(w, key);
    expect((await client.ask(path, { key: acmeKey, headers: { traceparent } })).status).toBe(200);
    await client.ask("/projects/canary-slug", { key, headers: { traceparent: "00-nonsense" } });
    await close(); // which sends what is left
    const spans = collector.spans();
    const own = spans.filter((span) => span.traceId === traceId);
    expect(own.filter(({ parentSpanId }) => parentSpanId === "b7ad6b7169203331").map(({ name }) => name)).toEqual([
      "GET /organization",
      "GET /projects/{slug}/variables",
    ]);
    const root = own.find(({ name }) => name === "GET /projects/{slug}/variables");
    const children = own.filter(({ parentSpanId }) => parentSpanId === root?.spanId);
    expect(children.map(({ name }) => name)).toEqual(["look-up", "read", "open", "audit"]);
    for (const { startTimeUnixNano: start, endTimeUnixNano: end } of children) {
      expect(BigInt(start)).toBeLessThanOrEqual(BigInt(end));
      expect(BigInt(start)).toBeGreaterThanOrEqual(BigInt(root?.startTimeUnixNano ?? 0));
      expect(BigInt(end)).toBeLessThanOrEqual(BigInt(root?.endTimeUnixNano ?? 0));
    }
    expect(root?.attributes).toEqual([
      { key: "http.request.method", value: { stringValue: "GET" } },
      { key: "http.route", value: { stringValue: "/projects/{slug}/variables" } },
      { key: "http.response.status_code", value: { intValue: 200 } },
    ]);
    for (const word of ["canary", "TOKEN", key.id, key.key, acmeKey.id, acmeKey.key, "staging", 'web"']) {
      expect(collector.received()).not.toContain(word);
    }
  });
});

describe("settings of the second listener, the store and traces", () => {
  const base = { KEYHOLE_DATA: "/nowhere" };
  test("are taken as they stand", () => {
    expect(readConfig({ ...base, KEYHOLE_OPS_PORT: "9100" }).ops).toEqual({ host: "127.0.0.1", port: 9100 });
    const { ops } = readConfig({ ...base, KEYHOLE_OPS_PORT: "0", KEYHOLE_OPS_HOST: "::1" });
    expect(ops).toEqual({ host: "::1", port: 0 });
    const url = "rediss://u:p@h:6380/1";
    expect(readConfig({ ...base, KEYHOLE_LIMITER_URL: url }).limiterUrl).toBe(url);
    expect(readConfig({ ...base, OTEL_EXPORTER_OTLP_ENDPOINT: "" }).tracesUrl).toBeUndefined();
  });

  test.each([
    ["KEYHOLE_OPS_PORT", ""],
    ["KEYHOLE_OPS_PORT", "99999"],
    ["KEYHOLE_OPS_HOST", "127.0.0.1"],
    ["KEYHOLE_LIMITER_URL", ""],
    ["KEYHOLE_LIMITER_URL", "http://secret@host"],
    ["KEYHOLE_LIMITER_URL", "secret"],
    ["KEYHOLE_LIMITER_URL", "redis://host/limits"],
    ["KEYHOLE_LIMITER_URL", "redis://host:0"],
    ["KEYHOLE_LIMITER_URL", "redis://host/1/2"],
    ["KEYHOLE_LIMITER_URL", "redis://host?tls=secret"],
    ["KEYHOLE_LIMITER_URL", "redis://host/#secret"],
    ["KEYHOLE_LIMITER_URL", "redis://secret@host"],
    ["KEYHOLE_LIMITER_URL", "redis://user:secret%zz@host"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
  ])("%s=%s is refused with one sentence that names it", (name, value) => {
    let message = "";
    try {
      readConfig({ ...base, [name]: value });
    } catch (error) {
      expect(error).toMatchObject({ exitCode: 2, code: "invalid_configuration" });
      message = (error as Error).message;
    }
    expect(message).toStartWith(name);
    expect(message).not.toContain("secret");
  });
});

describe("the second listener", () => {
  test("a check that rejects or says no has failed, and the others are still named", async () => {
    const checks = {
      good: async () => true,
      bad: async () => false,
      broken: async () => {
        throw new Error("canary");
      },
    };
    const log = () => {};
    expect(await watchReadiness(checks, () => false, log)()).toEqual({
      ready: false,
      draining: false,
      checks: { good: true, bad: false, broken: false },
      away: {},
    });
    const draining = watchReadiness({ good: async () => true }, () => true, log);
    expect(await draining()).toMatchObject({ ready: false, draining: true });
  });

  test("answers three paths and nothing else, and concurrent requests share one answer", async () => {
    let asked = 0;
    const { promise: letGo, resolve } = Promise.withResolvers<void>();
    const ops = startOps(
      { host: "127.0.0.1", port: 0 },
      {
        readiness: async () => {
          asked += 1;
          await letGo;
          return { ready: false, draining: false, checks: { database: false }, away: {} };
        },
        metrics: async ({ ready }) => `ready ${ready}\n`,
      },
    );
    const asking = Array.from({ length: 20 }, () => fetch(`${ops.origin}/readyz`));
    expect(await (await fetch(`${ops.origin}/livez`)).json()).toEqual({ status: "alive" });
    resolve();
    for (const answer of await Promise.all(asking)) {
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual({ status: "not_ready", failed: ["database"], checks: { database: false } });
    }
    expect(asked).toBeLessThan(20);
    const metrics = await fetch(`${ops.origin}/metrics`);
    expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await metrics.text()).toBe("ready false\n");
    expect(await withoutHost(ops.origin, "/livez")).toStartWith("HTTP/1.1 200 ");
    expect(await withoutHost(ops.origin, "/livez/x")).toStartWith("HTTP/1.1 404 ");
    for (const path of ["/", "/api/v1/organization", "/metrics/", "/constructor", "/livez/x"]) {
      expect((await fetch(`${ops.origin}${path}`)).status).toBe(404);
    }
    expect((await fetch(`${ops.origin}/livez`, { method: "POST" })).status).toBe(405);
    await ops.stop();
  });
});

/** Asks as simple health checks do, by HTTP/1.0. Returns the whole answer. */
async function withoutHost(origin: string, path: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const { promise, resolve } = Promise.withResolvers<void>();
  let answer = "";
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => {
        answer += bytes.toString();
      },
      close: () => resolve(),
    },
  });
  socket.write(`GET ${path} HTTP/1.0\r\n\r\n`);
  await promise;
  return answer;
}

async function anotherKey(world: World, key: Key): Promise<Key> {
  const [row] = await world.sql`select o.slug as slug from api_keys k join organizations o on o.id = k.organization_id
    where k.id = ${key.id}`;
  return world.key({ slug: row?.["slug"] } as never, everything);
}

type CollectedSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: unknown;
};

/** A collector of OTLP over HTTP, as JSON. */
function startCollector() {
  const bodies: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      if (new URL(request.url).pathname === "/v1/traces") bodies.push(await request.text());
      return Response.json({});
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    received: () => bodies.join("\n"),
    spans: (): CollectedSpan[] =>
      bodies.flatMap((body) =>
        (JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: CollectedSpan[] }[] }[] }).resourceSpans.flatMap(
          ({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    stop: () => server.stop(true),
  };
}
