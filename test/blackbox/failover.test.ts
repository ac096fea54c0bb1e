/** PostgreSQL as a primary and a standby: one takes the other's place, under servers that answer meanwhile. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ranMs } from "../support/clock.ts";
import { type Answer, type Outcome, startReaders } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { childrenOf, freeze, isRunning } from "../support/freeze.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { runBinary } from "../support/keyhole.ts";
import type { Replica } from "../support/postgres.ts";
import { withReplicas } from "../support/replicas.ts";
import { expectWithin, furnish, type Key, makeSite, type Server, type Site, waitsOf } from "../support/server.ts";

const values = "/projects/web/variables?environment=staging";
const metadata = `${values}&metadata_only=true`;
const keysMax = 12;
const revokedMax = 6;

await withReplicas("a primary that fails and its standby", (a, { urlOf, run, received, failOver }) => {
  let b: Replica;
  let site: Site;
  let servers: Server[];
  let lone: Server;
  /** Of a job that gets three answers with values. */
  let token: string;
  const revoked: Key[] = [];
  const keys: Key[] = [];
  const replicas: Replica[] = [a];
  const serve = (databaseUrl: string) => site.serve({ env: { DATABASE_URL: databaseUrl, KEYHOLE_OPS_PORT: "0" } });

  /** Each commit on the first server waits for a standby of this name. */
  const waitFor = async (standby: string) => {
    await run(a, `alter system set synchronous_standby_names = '${standby}'`);
    await run(a, "select pg_reload_conf()");
    await eventually(
      async () => (await run(a, "show synchronous_standby_names"))[0]?.["synchronous_standby_names"] === standby,
    );
  };

  beforeAll(async () => {
    b = await a.startStandby();
    replicas.push(b);
    site = await makeSite("postgres", urlOf(b, a)); // commands meet the standby first
    await waitFor("*");
    await furnish(site, { staging: { TOKEN: "canary" } });
    while (keys.length < keysMax) keys.push(await site.key("--org", "acme"));
    while (revoked.length < revokedMax) revoked.push(await site.key("--org", "acme"));
    const [signing, iss] = [newSigningKey("ES256"), "https://issuer.example"];
    const jwks = join(site.folder, "jwks.json");
    writeFileSync(jwks, JSON.stringify({ keys: [publicJwk("one", signing)] }));
    token = compact({ alg: "ES256", kid: "one" }, usualClaims(iss), signing);
    const terms = ["--issuer", iss, "--audience", audience, "--claim", "sub=job", "--jwks-file", jwks];
    const reach = ["--all-projects", "--all-environments", "--reads-per-job", "3"];
    await site.json(["trust", "add", "--org", "acme", "--name", "job", ...terms, ...reach]);
    servers = [await serve(urlOf(a, b)), await serve(urlOf(b, a))];
    lone = await serve(urlOf(a));
  });
  afterAll(async () => {
    await site?.remove();
    for (const replica of replicas.reverse()) await replica.stop();
  });

  test("a standby alone is not served from: the server does not start, and commands refuse", async () => {
    for (const command of [
      ["serve", "--port", "0"],
      ["org", "list"],
    ]) {
      const env = { ...site.env, DATABASE_URL: urlOf(b) };
      const { exitCode, stdout, stderr } = await runBinary(command, { env });
      expect([exitCode, stdout]).toEqual([6, ""]);
      expect(stderr).toContain("is a standby");
    }
  });

  /** Reads while a standby is awaited that is away, and ends the wait. */
  const readCutShort = async (server: Server, end: string) => {
    const { key } = keys[0] as Key;
    expect((await server.get(values, key)).status).toBe(200); // else its journal would go on to the standby
    await waitFor("absent");
    try {
      const asked = server.get(values, key);
      const waiting = "from pg_stat_activity where application_name = 'keyhole journal' and wait_event = 'SyncRep'";
      await eventually(async () => (await run(a, `select ${end}(pid) ${waiting}`)).length > 0);
      expect((await asked).json()).toMatchObject({ code: "unavailable" });
    } finally {
      await waitFor("*");
    }
    await eventually(async () => (await server.get(values, key)).status === 200);
  };

  test.each(["pg_cancel_backend", "pg_terminate_backend"])(
    "no value leaves if %s ends the wait for a standby: its entry is on one server only",
    (end) => readCutShort(servers[0] as Server, end),
  );

  test.each(["error", "debug5"])(
    "nor if the database gives its sessions client_min_messages = %s, and whole commits are known as such",
    async (level) => {
      const database = new URL(urlOf(a)).pathname.slice(1);
      await run(a, `alter database ${database} set client_min_messages = ${level}`);
      try {
        const server = await serve(urlOf(a));
        await readCutShort(server, "pg_cancel_backend");
        expect(await server.stop()).toBe(0);
      } finally {
        await run(a, `alter database ${database} reset client_min_messages`);
      }
    },
  );

  test("a promotion under load loses nothing, gives no wrong answer, and is served from within 3 s", async () => {
    const right = (await servers[0]?.get(values, (keys[0] as Key).key)) as Answer;
    expect(right.status).toBe(200);
    expect(await run(a, "select sync_state from pg_stat_replication")).toMatchObject([{ sync_state: "sync" }]);
    const [last, ...others] = revoked as [Key, ...Key[]];
    for (const { id, key } of revoked) {
      for (const server of servers) expect((await server.get(metadata, key)).status).toBe(200);
      await site.json(["key", "revoke", id]);
    }
    for (const server of servers) expect((await server.get(values, token)).status).toBe(200);
    const isRevoked = (outcome: Outcome) => outcome.path === "/projects";
    const next = (client: number, request: number) => {
      // Seldom, or the limit of unrecognized keys answers for all of them.
      if (client === 0 && request % 3 === 0) {
        return { path: "/projects", key: (others[(request / 3) % others.length] as Key).key };
      }
      return { path: client % 2 === 0 ? metadata : values, key: (keys[(client + request) % keysMax] as Key).key };
    };
    const loads = servers.map((server) => startReaders(8, () => server.origin, next, 20));
    const all = () => loads.flatMap(({ outcomes }) => outcomes);
    const served = (since: number) => (one: Outcome) => one.status === 200 && one.beganAt > since;
    await Promise.all(loads.map((load) => load.more(10, served(0))));
    const { key } = await site.key("--org", "acme");
    const tag = (await servers[0]?.get(values, key))?.headers.get("etag") ?? "";
    const waits = servers.map((server) => server.get(values, key, { "if-none-match": tag, prefer: "wait=60" }));
    for (const server of servers) await eventually(async () => (await waitsOf(server)) === 1);

    const backends = childrenOf(a.pid as number);
    process.kill(a.pid as number, "SIGKILL");
    await eventually(() => !backends.some(isRunning));
    const killedAt = ranMs();
    const isAway = ({ status, beganAt }: Outcome) => beganAt > killedAt && status === 503;
    await Promise.all(loads.map((load) => load.more(20, isAway)));
    const ready = await fetch(`${servers[1]?.ops()}/readyz`);
    expect(ready.status).toBe(503);
    const promotingAt = ranMs();
    await run(b, "select pg_promote(true, 60)");
    const promotedAt = ranMs();
    await Promise.all(loads.map((load) => load.more(10, served(promotedAt))));
    for (const load of loads) await load.stop();

    for (const { outcomes } of loads) {
      const firstServed = Math.min(...outcomes.filter(served(promotingAt)).map(({ endedAt }) => endedAt));
      expectWithin(firstServed - promotedAt, 3000);
    }
    expect(all().filter((one) => isRevoked(one) && one.status === 401).length).toBeGreaterThan(1);
    for (const one of all()) {
      const { path, status, answer } = one;
      expect(isRevoked(one) ? [401, 429, 503] : [200, 429, 503]).toContain(status as number);
      if (path === values && status === 200) expect(answer?.body.equals(right.body)).toBe(true);
      else expect(answer?.body.toString()).not.toContain("canary");
    }
    const betweenTimes = all().filter(({ beganAt, endedAt }) => beganAt > killedAt && endedAt < promotingAt);
    expect(betweenTimes.filter(({ status }) => status === 200 || status === 401)).toEqual([]);
    const audited = new Set((await run(b, "select request_id from audit_entries")).map((row) => row["request_id"]));
    const released = all().filter(({ path, status }) => path === values && status === 200);
    expect(released.length).toBeGreaterThan(10);
    expect(released.filter(({ requestId }) => !audited.has(requestId))).toEqual([]);
    // A job's reads are counted on: two were answered before.
    const more = [...servers, ...servers].map((server) => server.get(values, token));
    const statuses = (await Promise.all(more)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 401, 401, 401]);
    for (const server of servers) {
      expect((await server.get(metadata, last.key)).status).toBe(401);
      await eventually(async () => (await fetch(`${server.ops()}/readyz`)).status === 200);
    }
    // Those that waited outlast it, and are told of a change that the new primary makes.
    for (const server of servers) expect(await waitsOf(server)).toBe(1);
    await site.json(["var", "set", "acme/web", "staging", "TOKEN", "--value", "canary-of-the-new-primary"]);
    for (const { status, body } of await Promise.all(waits)) {
      expect(status).toBe(200);
      expect(body.toString()).toContain("canary-of-the-new-primary");
    }
  });

  test("a primary rebuilt as a standby behind its old address is served from no more, until it is promoted", async () => {
    const rebuilt = await b.startStandby(Number(new URL(a.url).port));
    replicas.push(rebuilt);
    const { key, id } = keys[0] as Key;
    const refused = await lone.get(metadata, key);
    expect([refused.status, refused.json()]).toMatchObject([503, { code: "unavailable" }]);
    for (const path of [values, "/organization", "/projects", "/projects/absent"]) {
      expect((await lone.get(path, key)).status).toBe(503);
    }
    const ready = await fetch(`${lone.ops()}/readyz`);
    const { checks } = (await ready.json()) as { checks: Record<string, boolean> };
    expect([ready.status, checks]).toMatchObject([503, { database: true, primary: false }]);

    await site.json(["key", "revoke", id]);
    // This standby is not a synchronous one: what it has not received is lost with the primary.
    await received(b);
    await failOver(b, rebuilt);
    await eventually(async () => (await fetch(`${lone.ops()}/readyz`)).status === 200);
    expect((await lone.get(metadata, key)).status).toBe(401);
    expect((await lone.get(values, (keys[1] as Key).key)).status).toBe(200);
    for (const server of servers) {
      await eventually(async () => (await server.get(metadata, (keys[1] as Key).key)).status === 200);
    }
  });
  test("a primary that stands still is left by all pools at once: served within 3 s of the promotion", async () => {
    const frozen = replicas.at(-1) as Replica;
    const standby = await frozen.startStandby(Number(new URL(b.url).port));
    replicas.push(standby);
    const [server] = servers as [Server];
    const key = (request: number) => (keys[1 + (request % (keysMax - 1))] as Key).key;
    const paths = [values, metadata, "/projects"];
    const next = (client: number, request: number) => {
      return { path: paths[client % paths.length] as string, key: key(client + request) };
    };
    const load = startReaders(9, () => server.origin, next, 20);
    const served = (path: string, since: number) => (one: Outcome) =>
      one.path === path && one.status === 200 && one.beganAt > since;
    await load.more(10, served(values, 0));
    const goOn = freeze(frozen.pid as number);
    try {
      const frozenAt = ranMs();
      await load.more(20, ({ status, beganAt }) => beganAt > frozenAt && status === 503);
      await run(standby, "select pg_promote(true, 60)");
      const promotedAt = ranMs();
      for (const path of paths) await load.more(1, served(path, promotedAt));
      await load.stop();
      for (const path of paths) {
        const endedAt = load.outcomes.filter(served(path, promotedAt)).map((one) => one.endedAt - promotedAt);
        expectWithin(Math.min(...endedAt), 3000);
      }
    } finally {
      goOn();
    }
  });
});
