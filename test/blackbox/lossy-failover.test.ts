/** A primary that fails with what its standby has not received. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import { eventually } from "../support/eventually.ts";
import { signAll } from "../support/notary.ts";
import type { Replica } from "../support/postgres.ts";
import { withReplicas } from "../support/replicas.ts";
import { furnish, type Key, makeSite, type Row, type Server, type Site } from "../support/server.ts";

const values = "/projects/web/variables?environment=staging";

await withReplicas("a failover that loses the newest entries", (a, { urlOf, run, received, cutOff, failOver }) => {
  let b: Replica;
  let site: Site;
  let server: Server;
  let key: Key;
  /** What the servers logged. */
  let log: Buffer;
  const read = async () => (await server.get(values, key.key)).status;
  const verify = async (...args: readonly string[]) => {
    const ran = await site.keyhole(["audit", "verify", "--json", "--checkpoint", "-", ...args], log);
    const { flaws: found = [], accepted } = JSON.parse(ran.stdout || "{}");
    const flaws = found.map(({ lane, seq, lastSeq, what }: Record<string, unknown>) => ({ lane, seq, lastSeq, what }));
    return { exitCode: ran.exitCode, flaws, accepted };
  };

  beforeAll(async () => {
    b = await a.startStandby();
    site = await makeSite("postgres", urlOf(a, b));
    await furnish(site, { staging: { TOKEN: "kept" } });
    key = await site.key("--org", "acme");
    server = await site.serve();
  });
  afterAll(async () => {
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("is brought back by a server that lives, and is one closed gap in the lane of one that ended", async () => {
    const ended = await site.serve();
    const laneOf = async (from: Server) =>
      ((await from.get(values, key.key)).headers.get("keyhole-audit") ?? "").split(":")[0] as string;
    for (let count = 0; count < 2; count++) expect(await read()).toBe(200);
    for (let count = 0; count < 2; count++) await laneOf(ended);
    const [lane, alive] = [await laneOf(ended), await laneOf(server)];
    await received(a);
    const lastOf = async (which: string) =>
      (await run(b, `select max(last_seq)::int as seq from audit_segments where lane = '${which}'`))[0]?.["seq"];
    const [people] = await run(b, "select seq::int from audit_heads");
    expect([await lastOf(lane), await lastOf(alive)]).toEqual([3, 3]);

    await cutOff(b, a);
    for (let count = 0; count < 10; count++) expect([await read(), await laneOf(ended)]).toEqual([200, lane]);
    await site.json(["var", "set", "web", "staging", "TOKEN"], "lost");
    expect(await ended.stop()).toBe(0); // its log has the ends of its lane and of the commands'
    await failOver(a, b);
    expect([await lastOf(lane), await lastOf(alive)]).toEqual([3, 3]);
    // What it stores again goes through the parent; new entries go into the month itself, and wait for it all the same.
    const holder = postgres(urlOf(b), { max: 1, fetch_types: false, onnotice: () => {} });
    await holder`select 1`;
    const held = await holder.reserve();
    await held`begin`;
    await held`lock table only audit_segments in share mode`;
    for (let count = 0; count < 3; count++) expect(await read()).toBe(503);
    await held`rollback`;
    held.release();
    await holder.end({ timeout: 5 });
    await eventually(async () => (await read()) === 200);
    for (let count = 0; count < 3; count++) expect(await read()).toBe(200);
    expect(await lastOf(alive)).toBe(13);
    await server.says('"event":"lane_moved","broughtBack":10,"mayLackMore":false');
    expect(await server.stop()).toBe(0);
    log = Buffer.from(ended.said().stdout + server.said().stdout);

    expect((await site.keyhole(["audit", "verify"])).exitCode).toBe(0);
    const seq = people?.["seq"] as number;
    expect(await verify()).toEqual({
      exitCode: 1,
      flaws: [
        { lane: "commands", seq: seq + 1, lastSeq: seq + 1, what: "lost" },
        { lane, seq: 4, lastSeq: 13, what: "lost" },
      ],
      accepted: [],
    });
    const gaps = [`${lane}:4-13`, `commands:${seq + 1}-${seq + 1}`];
    expect(await verify("--accept", gaps.join())).toMatchObject({ exitCode: 0, flaws: [] });
    expect((await verify()).accepted).toHaveLength(2);
  });

  test("hides nothing that comes after it", async () => {
    await site.json(["var", "set", "web", "staging", "TOKEN"], "written again");
    expect(await verify()).toMatchObject({ exitCode: 0, flaws: [] });
    await run(b, "delete from audit_segments where lane = 'commands' and first_seq = 2");
    await run(b, "update audit_segments set entries = '' where first_seq = 2 and lane <> 'commands'");
    const { exitCode, flaws, accepted } = await verify();
    expect([exitCode, accepted.length]).toEqual([1, 2]);
    const lanes = await run(b, "select distinct lane from audit_segments where first_seq = 2 order by 1");
    expect(flaws).toEqual([
      ...lanes.map(({ lane }) => ({ lane, seq: 2, lastSeq: 2, what: "broken" })),
      { lane: "commands", seq: 2, lastSeq: 2, what: "broken" },
    ]);
  });
});

/** A head of the tree is known to a server that lives, and lost with the primary. */
await withReplicas("a failover that loses a signed head", (a, { urlOf, received, cutOff, failOver }) => {
  let b: Replica;
  let site: Site;
  let key: Key;

  beforeAll(async () => {
    b = await a.startStandby();
    site = await makeSite("postgres", urlOf(a, b));
    await furnish(site, { staging: { TOKEN: "kept" } });
    key = await site.key("--org", "acme");
  });
  afterAll(async () => {
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("lets no request be answered by the new primary, from the first one on", async () => {
    await received(a);
    await cutOff(b, a);
    await signAll(site);
    const server = await site.serve();
    const metadata = `${values}&metadata_only=true`;
    const read = async (path: string) => (await server.get(path, key.key)).status;
    expect(await Promise.all([read(values), read(metadata)])).toEqual([200, 200]);
    await failOver(a, b);
    await eventually(async () => {
      for (const path of [metadata, values]) expect([path, await read(path)]).toEqual([path, 503]);
      return server.said().stdout.includes('"event":"database_put_back"');
    });
    expect(await server.stop()).toBe(0);
  });
});

/** The standby's next write looks like the lost one. */
await withReplicas("a write that a failover lost", (a, { urlOf, run, received, cutOff, failOver }) => {
  let b: Replica;
  let site: Site;
  let server: Server;
  let key: Key;
  const rowVersion = async (replica: Replica) => {
    const row = "select version::int, xmin::text::int, ctid::text from sets";
    return (await run(replica, `${row} where kind = 'variables' and environment = 'staging'`))[0] as Row;
  };
  const read = async () => {
    const { status, headers, json } = await server.get(values, key.key);
    const found = status === 200 ? json<{ variables: { value: string }[] }>().variables : [];
    return { status, etag: headers.get("etag"), values: found.map(({ value }) => value) };
  };

  beforeAll(async () => {
    b = await a.startStandby();
    site = await makeSite("postgres", urlOf(a, b));
    await furnish(site, { staging: { TOKEN: "first" } });
    key = await site.key("--org", "acme");
    server = await site.serve();
  });
  afterAll(async () => {
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("is not served any more, although the next write has the same version, xmin and ctid", async () => {
    await received(a);
    await cutOff(b, a);
    // Room for what the promotion itself writes.
    for (let count = 0; count < 100; count++) await run(a, "select pg_current_xact_id()");
    await site.json(["var", "set", "web", "staging", "TOKEN"], "lost");
    const lost = await rowVersion(a);
    const before = await read();
    expect(before).toMatchObject({ status: 200, values: ["lost"] });

    await failOver(a, b);
    const next = async () => (await run(b, "select pg_snapshot_xmax(pg_current_snapshot())::text::int as xid"))[0];
    const burnt = "select pg_current_xact_id()::text::int as xid";
    while ((await next())?.["xid"] !== lost["xmin"]) {
      expect((await run(b, burnt))[0]?.["xid"]).toBeLessThan(lost["xmin"] as number);
    }
    await site.json(["var", "set", "web", "staging", "TOKEN"], "written");
    expect(await rowVersion(b)).toEqual(lost);

    await eventually(async () => (await read()).status === 200);
    const after = await read();
    expect(after.values).toEqual(["written"]);
    expect(after.etag).not.toBe(before.etag);
    const { status } = await server.get(values, key.key, { "If-None-Match": before.etag ?? "" });
    expect(status).toBe(200);
  });
});
